"""r2SGLD (2024), figure 8: posteriors of Lotka–Volterra's parameters by six samplers, with and without reflection.

Settings and our choices: figures/papers/r2sgld/identification.py. Ten seeds each, pooled; ticks are each seed's mode.
The posterior is Gaussian in closed form. The walls at 0 are eight and more of its standard deviations away: reflection
acts on the first steps only, and the lines of SGLD and cycSGLD lie under those of their reflected versions.
"""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from figures import Data, Study, run_script
from figures.papers.r2sgld.identification import (
    LETTERS,
    METHODS,
    closed_form,
    densities_of,
    moments_of,
    normal_density,
    result_of,
    rows_of,
    system_of,
)
from figures.plots import style

SEED = 3407
DIFFERS = (
    "The figure's text holds no number that could be read; a pair with and without reflection has the same posterior, "
    "its walls being too far away."
)
COLOURS = {"SGLD": style.LIGHT, "cycSGLD": style.FOURTH, "reSGLD": style.MEDIUM}


def measure(study: Study) -> dict[str, Any]:
    """Modes, moments and pooled kernel densities (method, parameter, place) at ``grids`` (parameter, place)."""
    results = [result_of(study, "lotka_volterra", method) for method in METHODS]
    means, sds = closed_form(results[0])
    grids = np.linspace(means - 4.0 * sds, means + 4.0 * sds, 400, axis=1)
    return {**moments_of(results), "grids": grids, "densities": densities_of(results, grids)[:, -1]}


def draw(data: Data) -> Figure:
    """A panel per parameter."""
    figure, panels = plt.subplots(2, 2, figsize=(style.WIDTH, 4.6))
    system = system_of("lotka_volterra")
    for k, axes in enumerate(panels.flat):
        grid = data["grids"][k]
        exact = normal_density(grid, data["exact_means"][0, k], data["exact_sds"][0, k])
        axes.fill_between(grid, exact, color="0.85", label="closed form")
        axes.axvline(system.usual[k], color="0.55", linewidth=1.0, label="truth")
        for i, method in enumerate(METHODS):
            reflects = i % 2 == 1
            axes.plot(
                grid, data["densities"][i, k], color=COLOURS[METHODS[i // 2 * 2]], label=method,
                linestyle="-" if reflects else (0, (3, 1.5)), linewidth=1.4 if reflects else 1.0,
            )  # fmt: skip
            modes = data["modes"][i, :, k]
            heights = np.full(len(modes), -0.06 * exact.max() * (1 + i))
            axes.plot(modes, heights, "|", color=COLOURS[METHODS[i // 2 * 2]], markersize=3.5)
        axes.set(xlim=(grid[0], grid[-1]), ylim=(-0.45 * exact.max(), None), yticks=[])
        axes.set_xlabel(LETTERS[system.parameters[k]])
        axes.set_ylabel("density; modes below" if k % 2 == 0 else "")
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, handlelength=3.0)
    return figure


def table(data: Data) -> list[dict[str, Any]]:
    """One row per method and parameter."""
    return rows_of(data)


if __name__ == "__main__":
    run_script(__file__)
