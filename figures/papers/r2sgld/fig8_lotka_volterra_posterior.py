"""r2SGLD (2024), figure 8: posteriors of Lotka–Volterra's parameters by six samplers, with and without reflection.

Settings and our choices: figures/papers/r2sgld/identification.py. Ten seeds each, pooled; ticks are each seed's mode.
The posterior is Gaussian in closed form. The walls at 0 are eight and more of its standard deviations away: reflection
acts on the first steps only, and the dashes of SGLD and cycSGLD lie on the lines of their reflected versions.
"""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from figures import Claim, Data, Study, run_script
from figures.papers.r2sgld.identification import (
    LETTERS,
    METHODS,
    closed_form,
    densities_of,
    distances_of,
    farther,
    moments_of,
    normal_density,
    reflection_claims,
    result_of,
    rows_of,
    system_of,
)
from figures.plots import style

SEED = 3407
DIFFERS = (
    "The figure's text holds no number that could be read; a pair with and without reflection has the same posterior, "
    "its walls being too far away, and no order of the three reflected samplers is shown."
)
COLOURS = {"SGLD": style.LIGHT, "cycSGLD": style.FOURTH, "reSGLD": style.MEDIUM}


def measure(study: Study) -> dict[str, Any]:
    """Modes, moments and pooled kernel densities (method, parameter, place) at ``grids`` (parameter, place)."""
    results = [result_of(study, "lotka_volterra", method) for method in METHODS]
    means, sds = closed_form(results[0])
    grids = np.linspace(means - 4.0 * sds, means + 4.0 * sds, 400, axis=1)
    densities = densities_of(results, grids)[:, -1]
    return {**moments_of(results), **distances_of(results), "grids": grids, "densities": densities}


def draw(data: Data) -> Figure:
    """A panel per parameter."""
    figure = plt.figure(figsize=(style.WIDTH, 6.2))
    grid_spec, system = figure.add_gridspec(2, 2), system_of("lotka_volterra")
    for k in range(4):
        cell = grid_spec[k // 2, k % 2].subgridspec(2, 1, height_ratios=[2.0, 1.0], hspace=0.02)
        axes = figure.add_subplot(cell[0])
        below = figure.add_subplot(cell[1], sharex=axes)
        grid = data["grids"][k]
        exact = normal_density(grid, data["exact_means"][0, k], data["exact_sds"][0, k])
        axes.fill_between(grid, exact, color="0.85", label="closed form")
        for panel in (axes, below):
            panel.axvline(system.usual[k], color="0.55", linewidth=1.0, label="truth", zorder=0.5)
        for i, method in enumerate(METHODS):
            colour = COLOURS[METHODS[i // 2 * 2]]
            # Reflected ones wide and pale, so that the dashes of the others are seen on them.
            line: dict[str, Any] = (
                {"linewidth": 2.4, "alpha": 0.45} if i % 2 else {"linestyle": (0, (3, 1.5)), "zorder": 2.5}
            )
            axes.plot(grid, data["densities"][i, k], color=colour, label=method, **line)
            modes = data["modes"][i, :, k]
            below.plot(modes, np.full(len(modes), i), "|", color=colour, markersize=5)
        axes.set(xlim=(grid[0], grid[-1]), title=f"({'abcd'[k]}) {LETTERS[system.parameters[k]]}")
        axes.set_ylim(bottom=0.0)
        axes.tick_params(labelbottom=False)
        below.set_xlabel(LETTERS[system.parameters[k]])
        below.set_yticks(range(len(METHODS)), METHODS if k % 2 == 0 else [], fontsize=6)
        below.set_ylim(len(METHODS) - 0.4, -0.6)
        if k % 2 == 0:
            axes.set_ylabel("density")
            below.set_ylabel("modes of seeds")
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, handlelength=3.0)
    return figure


def table(data: Data) -> list[dict[str, Any]]:
    """One row per method and parameter."""
    return rows_of(data)


def compare(data: Data) -> list[Claim]:
    """What A.2 says of reflection, and of the order of the three reflected samplers."""
    least, as_good = "A.2, “R-SGLD … the least effective”", farther(data, "R-cycSGLD", "r2SGLD", "A.2, “comparable”")
    return [
        *reflection_claims(data, "A.2, “the beneficial impact of the reflection”"),
        farther(data, "R-SGLD", "R-cycSGLD", least),
        farther(data, "R-SGLD", "r2SGLD", least),
        as_good._replace(what=f"{as_good.what} (text: comparable)", printed=np.nan, source="printed", in_words=False),
    ]


if __name__ == "__main__":
    run_script(__file__)
