"""r2SGLD (2024), figure 8: posteriors of Lotka–Volterra's parameters by six samplers, with and without reflection.

Settings and our choices: figures/r2sgld_identification.py. Ten seeds each, pooled; ticks are each seed's mode. The
posterior is Gaussian in closed form. The walls at 0 are eight and more of its standard deviations away: reflection acts
on the first steps only, and the lines of SGLD and cycSGLD lie under those of their reflected versions.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from figures import run_script, save, style
from figures.identification_panels import closed_form, density_of, rows_of
from figures.r2sgld_identification import LETTERS, METHODS, result_of

COLOURS = {"SGLD": style.LIGHT, "cycSGLD": style.FOURTH, "reSGLD": style.MEDIUM}


def draw(out: Path, quick: bool) -> list[Path]:
    """Run the six samplers, draw their densities, write modes and moments."""
    results = [result_of("lotka_volterra", method, quick=quick) for method in METHODS]
    figure, panels = plt.subplots(2, 2, figsize=(style.WIDTH, 4.6))
    means, sds = closed_form(results[0])
    system = results[0].system
    for k, axes in enumerate(panels.flat):
        grid = np.linspace(means[k] - 4.0 * sds[k], means[k] + 4.0 * sds[k], 400)
        exact = np.exp(-0.5 * ((grid - means[k]) / sds[k]) ** 2) / (np.sqrt(2.0 * np.pi) * sds[k])
        axes.fill_between(grid, exact, color="0.85", label="closed form")
        axes.axvline(system.usual[k], color="0.55", linewidth=1.0, label="truth")
        for i, result in enumerate(results):
            family = METHODS[i // 2 * 2]
            reflects = i % 2 == 1
            axes.plot(
                grid, density_of(result.named[..., k].ravel(), grid), color=COLOURS[family], label=result.method,
                linestyle="-" if reflects else (0, (3, 1.5)), linewidth=1.4 if reflects else 1.0,
            )  # fmt: skip
            heights = np.full(len(result.modes), -0.06 * exact.max() * (1 + i))
            axes.plot(result.modes[:, k], heights, "|", color=COLOURS[family], markersize=3.5)
        axes.set(xlim=(grid[0], grid[-1]), ylim=(-0.45 * exact.max(), None), yticks=[])
        axes.set_xlabel(LETTERS[system.parameters[k]])
        axes.set_ylabel("density; modes below" if k % 2 == 0 else "")
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, handlelength=3.0)
    return save(figure, rows_of(results), out, "r2sgld_fig8_lotka_volterra_posterior")


if __name__ == "__main__":
    run_script(draw)
