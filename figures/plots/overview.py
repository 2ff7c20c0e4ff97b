"""The first picture of a run: where its draws are, how they got there, and whether its chains agree."""

from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes

from toolkit import Run
from toolkit.errors import check_instance, shown
from toolkit.weighting import shares_of

from ..arrays import Array
from .densities import density
from .fits import check_empty_figure
from .named_draws import is_identified, names_of, parameters_of
from .style import CYCLE, STYLE, TRUTH, WIDTH

MOST_ROWS, MOST_CHAINS, MOST_TIMES = 8, 10, 1000  # coordinates, chains and draws of a chain that are drawn
N_CELLS, N_RANKS = 100, 20
LONGEST_SIDE = 3.0  # of the shorter one, where both axes have one unit
MARGIN, BEYOND = 0.05, 5e-4  # of the width; share of the draws beyond each end of a picture
ROW_HEIGHT, PLANE_HEIGHT = 1.3, 3.0  # inches


def overview(run: Any, figure: Any = None) -> dict[str, Axes]:
    """Draw a run into an empty ``figure``; its panels by name.

    run: a Run with draws. figure: a Figure or a SubFigure without axes; None: a new one of pyplot. Of two coordinates:
    ``density`` on 100 × 100 cells with the domain's edge, and traces. Else a row for each coordinate, of the first
    eight: its trace, at most 1,000 draws of each of the first ten chains, and the ranks of its draws among those of all
    chains, which are even, at the grey line, where chains agree. Panels are named ``x``, ``ranks of x`` by coordinate.
    Importance weights count in density and ranks. Coordinates have the problem's names, else x[0], x[1], ….
    Raises TypeError or ValueError where ``run`` is no Run or has no draws of finite value, or ``figure`` is not empty.
    """
    check_instance("run", run, Run)
    draws = parameters_of(run, run.draws)
    usable = np.isfinite(draws).all(axis=(1, 2))
    if not usable.any() or not draws.size:
        raise ValueError(f"run must have draws of a chain that has not diverged, got {shown(run.draws.shape)}")
    names = names_of(run) or tuple(f"x[{k}]" for k in range(draws.shape[-1]))
    in_plane, rows = len(names) == 2, min(len(names), MOST_ROWS)
    if figure is None:
        from matplotlib import pyplot

        with mpl.rc_context(STYLE):
            figure = pyplot.figure(figsize=(WIDTH, PLANE_HEIGHT if in_plane else 0.5 + ROW_HEIGHT * rows))
            return panels_of(run, draws, usable, names, figure)
    check_empty_figure(figure)
    return panels_of(run, draws, usable, names, figure)


def panels_of(run: Run, draws: Array, usable: Any, names: tuple[str, ...], figure: Any) -> dict[str, Axes]:
    """The panels, drawn."""
    given = shares_of(run)
    shares = np.full(draws.shape[:2], 1.0) if given is None else given.reshape(draws.shape[:2])
    draws, shares = draws[usable], shares[usable] / shares[usable].sum()
    in_plane, rows = len(names) == 2, min(len(names), MOST_ROWS)
    grid = figure.add_gridspec(rows, 2, width_ratios=(1.25, 1.0) if in_plane else (1.6, 1.0))
    panels: dict[str, Axes] = {}
    if in_plane:
        panels["density"] = figure.add_subplot(grid[:, 0])
        draw_density(run, draws, shares, names, panels["density"])
    for k in range(rows):
        panels[names[k]] = trace = figure.add_subplot(grid[k, 1 if in_plane else 0])
        draw_trace(run, draws[..., k], trace)
        trace.set(ylabel=names[k], xlabel="step" if k == rows - 1 else "")
        if not in_plane:
            panels[f"ranks of {names[k]}"] = ranks = figure.add_subplot(grid[k, 1])
            draw_ranks(draws[..., k], shares, ranks)
            ranks.set(xlabel="rank among the draws of all chains" if k == rows - 1 else "", ylabel="share")
            ranks.set_title("" if k else "ranks; grey: where all chains agree")
    hidden = [f"the first {rows} of {len(names)} coordinates"] if rows < len(names) else []
    hidden += [f"lines: the first {MOST_CHAINS} of {len(draws)} chains"] if len(draws) > MOST_CHAINS else []
    figure.suptitle("; ".join([f"{run.sampler.name} on {run.problem.name}", *hidden]), fontsize=8)
    return panels


def draw_density(run: Run, draws: Array, shares: Array, names: tuple[str, ...], axes: Axes) -> None:
    """The density of two coordinates, and the edge of the domain."""
    points, weights = draws.reshape(-1, 2), shares.ravel()
    edges: Any = [np.linspace(*ends_of(x, weights, run.problem.domain is not None), N_CELLS + 1) for x in points.T]
    cells = np.histogram2d(points[:, 0], points[:, 1], bins=edges, weights=weights)[0]
    image = density(cells, axes, x_edges=edges[0], y_edges=edges[1])
    axes.set(xlabel=names[0], ylabel=names[1])
    widths = [edge[-1] - edge[0] for edge in edges]
    if is_identified(run) or max(widths) > LONGEST_SIDE * min(widths):
        axes.set_aspect("auto")
    if run.problem.domain is not None and not is_identified(run):
        at = [np.linspace(edge[0], edge[-1], 4 * N_CELLS) for edge in edges]
        places = np.stack(np.meshgrid(*at), axis=-1)
        inside = run.problem.contains(places.reshape(-1, 2)).reshape(places.shape[:2])
        if not inside.all():
            axes.contour(*at, inside, levels=[0.5], colors="white", linewidths=0.8)
    axes.figure.colorbar(image, ax=axes, label="density", shrink=0.8)


def ends_of(values: Array, weights: Array, has_walls: bool) -> tuple[float, float]:
    """Lowest and highest value of an axis: of the draws, or where there are no walls of nearly all."""
    low, high = values.min(), values.max()
    if not has_walls:
        low, high = np.quantile(values, [BEYOND, 1.0 - BEYOND], weights=weights, method="inverted_cdf")
    margin = MARGIN * (high - low) or 0.5
    return float(low - margin), float(high + margin)


def draw_trace(run: Run, values: Array, axes: Axes) -> None:
    """One coordinate (chain, draw) over the steps. Draws of several replicas of a chain stand at the same step."""
    steps = np.repeat(run.steps, values.shape[1] // len(run.steps))
    axes.set_prop_cycle(CYCLE)
    stride = -(-values.shape[1] // MOST_TIMES)
    axes.plot(steps[::stride], values[:MOST_CHAINS, ::stride].T, linewidth=0.5, linestyle="-")


def draw_ranks(values: Array, shares: Array, axes: Axes) -> None:
    """Histograms of the ranks of each chain's draws among all, which are flat where chains have one law."""
    order = np.argsort(values, axis=None, kind="stable")
    sorted_shares = shares.ravel()[order]
    ranks = np.empty(values.size)
    ranks[order] = np.cumsum(sorted_shares) - 0.5 * sorted_shares
    edges = np.linspace(0.0, 1.0, N_RANKS + 1)
    axes.axhline(1.0 / N_RANKS, **TRUTH)
    axes.set_prop_cycle(CYCLE)
    for chain, weights in zip(ranks.reshape(values.shape)[:MOST_CHAINS], shares, strict=False):
        heights = np.histogram(chain, edges, weights=weights)[0]
        axes.plot(edges, np.append(heights, heights[-1]) / weights.sum(), drawstyle="steps-post", linewidth=0.8)
    axes.set(xlim=(0.0, 1.0), ylim=(0.0, None))
