"""The README's gallery of targets: the density of each target of the catalogue, and a table of what is known of it.

Of targets in more than two dimensions the first two coordinates are shown; units of both axes have the same length
unless one axis would be less than a third of the other. The quick version leaves out those whose truth takes more than
a second to find.
"""

import textwrap
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure

from figures import Data, Study, run_script
from figures.arrays import Array
from figures.plots import style
from targets import catalogue
from toolkit import Target

COLUMNS = 5
SEED = 20
SLOW = ("cosine", "egg_box", "muller_brown", "himmelblau", "logistic_regression")  # truths of more than a second


def targets_drawn(*, quick: bool) -> list[Target]:
    """All targets; in the quick version those whose truth is found at once."""
    return [target for target in catalogue() if not (quick and target.name.startswith(SLOW))]


def limits(values: Array) -> tuple[float, float]:
    """Where all but a thousandth of a coordinate's draws lie, with a margin; of long tails eight quartile distances."""
    low, lower, middle, upper, high = np.quantile(values, [0.0005, 0.25, 0.5, 0.75, 0.9995])
    margin, reach = 0.06 * (high - low), 8.0 * (upper - lower)
    return float(max(low - margin, middle - reach)), float(min(high + margin, middle + reach))


def known_of(target: Target, cells: int, seed: int) -> dict[str, Any]:
    """What is known of a target, and its probabilities in cells of the first two coordinates, or the only one."""
    truth = target.truth
    assert truth is not None
    draws = truth.independent_draws(20_000, seed=seed)
    edges = [np.linspace(*limits(draws[:, d]), cells + 1) for d in range(min(2, target.dim))]
    return {
        "edges": edges, "masses": truth.cell_masses(*edges), "dim": target.dim,
        "log_normaliser": truth.log_normaliser, "modes": len(truth.modes.weights),
        "lightest_mode": float(truth.modes.weights.min()),
        "energy_median": float(truth.energy_quantiles(np.array(0.5))), "accuracy": truth.accuracy,
    }  # fmt: skip


def measure(study: Study) -> dict[str, Any]:
    """What is known of every target."""
    cells = study.size(120, 40)
    return {
        f"{target.name}: {key}": value
        for target in targets_drawn(quick=study.quick)
        for key, value in known_of(target, cells, study.seed).items()
    }


def draw(data: Data) -> Figure:
    """A panel per target."""
    targets = [target for target in catalogue() if f"{target.name}: masses" in data]
    lines = -(-len(targets) // COLUMNS)
    figure, panels = plt.subplots(lines, COLUMNS, figsize=(style.WIDTH, 1.6 * lines))
    for target, axes in zip(targets, panels.flat, strict=False):
        draw_target(target, axes, data[f"{target.name}: edges"], data[f"{target.name}: masses"])
    for axes in panels.flat[len(targets) :]:
        axes.set_axis_off()
    scale = plt.cm.ScalarMappable(PowerNorm(0.5, 0.0, 1.0))
    figure.colorbar(
        scale, ax=panels, label="density of the first two coordinates / the panel's highest", orientation="horizontal",
        shrink=0.4, aspect=40, pad=0.01, ticks=[0.0, 0.01, 0.1, 0.25, 0.5, 1.0],
    )  # fmt: skip
    return figure


def draw_target(target: Target, axes: Any, edges: Array, masses: Array) -> None:
    """One panel."""
    if target.dim == 1:
        axes.stairs(masses / np.diff(edges[0]), edges[0], color=style.DARK, linewidth=0.9)
        axes.set(xlabel="$x_1$", ylabel="density")
        axes.set_ylim(bottom=0.0)
    else:
        share = masses / np.outer(*map(np.diff, edges))
        extent = (edges[0][0], edges[0][-1], edges[1][0], edges[1][-1])
        width, height = np.ptp(edges, axis=1)
        aspect = "equal" if max(width, height) < 3.0 * min(width, height) else "auto"
        axes.imshow(share.T / share.max(), origin="lower", extent=extent, aspect=aspect, norm=PowerNorm(0.5, 0.0, 1.0))
        axes.set(xlabel="$x_1$", ylabel="$x_2$")
    name = target.name if target.dim <= 2 or "-D" in target.name else f"{target.name}, {target.dim}-D"
    axes.set_title(textwrap.fill(name, 27, break_long_words=False), fontsize=5.5)
    axes.xaxis.label.set_size(6)
    axes.yaxis.label.set_size(6)
    axes.xaxis.labelpad = axes.yaxis.labelpad = 1.0
    axes.tick_params(labelsize=5, length=2, pad=1)
    axes.locator_params(nbins=4)


def table(data: Data) -> list[dict[str, Any]]:
    """One row per target."""
    keys = ("dim", "log_normaliser", "modes", "lightest_mode", "energy_median", "accuracy")
    return [
        {"target": target.name, **{key: data[f"{target.name}: {key}"].item() for key in keys}}
        for target in catalogue()
        if f"{target.name}: masses" in data
    ]  # fmt: skip


if __name__ == "__main__":
    run_script(__file__)
