"""Panels of the identification figures: marginal posteriors beside their closed form, and simulations from modes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray
from scipy.stats import gaussian_kde

from sysid.integrate import solve

from . import style
from .r2sgld_identification import LETTERS, PRINTED, Result, named_parameters, system_of

Array = NDArray[np.float64]


def closed_form(result: Result) -> tuple[Array, Array]:
    """Means and standard deviations (n,) of the named parameters under the posterior without constraints."""
    posterior, problem = result.problem.posterior, result.problem
    assert posterior is not None
    origin = named_parameters(problem, np.zeros(problem.dim))
    slopes = np.array([named_parameters(problem, row) - origin for row in np.eye(problem.dim)])
    covariance = slopes.T @ posterior.covariance @ slopes
    return named_parameters(problem, problem.positions(posterior.mean)), np.sqrt(np.diag(covariance))


def posterior_panel(axes: Axes, result: Result, k: int, *, limits: tuple[float, float]) -> None:
    """Densities of parameter ``k``: every seed, all together, the closed form; the truth and the modes."""
    grid = np.linspace(*limits, 400)
    mean, sd = (values[k] for values in closed_form(result))
    for chain in result.named[..., k]:
        axes.plot(grid, density_of(chain, grid), color=style.MEDIUM, linewidth=0.5, alpha=0.45)
    axes.plot(grid, density_of(result.named[..., k].ravel(), grid), color=style.MEDIUM, linewidth=1.4)
    exact = np.exp(-0.5 * ((grid - mean) / sd) ** 2) / (np.sqrt(2.0 * np.pi) * sd)
    axes.plot(grid, exact, color=style.DARK, linewidth=1.2, linestyle=(0, (4, 1.5)))
    axes.axvline(result.system.usual[k], color="0.55", linewidth=1.0, zorder=1)
    modes = result.modes[:, k]
    axes.plot(modes, np.full(len(modes), 0.03 * exact.max()), "|", color=style.MEDIUM, markersize=6)
    symbol = LETTERS[result.system.parameters[k]]
    said = f"mode {modes.mean():.4g} ± {modes.std(ddof=1):.2g}"
    printed = PRINTED.get(result.method, {}).get(result.system.parameters[k])
    if printed is not None and result.system.name == "lorenz":
        axes.plot(printed, 0.0, "^", color=style.LIGHT, markersize=5, clip_on=False, zorder=4)
        said += f"\nprinted {printed:g}"
    axes.set(xlim=limits, ylim=(0.0, 2.2 * exact.max()), yticks=[], xlabel=symbol)
    box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1.0}
    axes.text(0.02, 0.98, said, transform=axes.transAxes, va="top", fontsize=6.5, bbox=box, zorder=5)


def density_of(values: Array, grid: Array) -> Array:
    """A Gaussian kernel density, of at most 4,000 values; nothing where they do not vary."""
    points = values[:: -(-len(values) // 4000)]
    if np.ptp(points) == 0.0:
        return np.full(grid.shape, np.nan)
    return np.asarray(gaussian_kde(points)(grid))


def legend_of(axes: Axes, *, printed: bool) -> tuple[list[Any], list[str]]:
    """Handles and labels of a posterior panel."""
    (seed,) = axes.plot([], [], color=style.MEDIUM, linewidth=0.5)
    (pooled,) = axes.plot([], [], color=style.MEDIUM, linewidth=1.4)
    (exact,) = axes.plot([], [], color=style.DARK, linestyle=(0, (4, 1.5)))
    (truth,) = axes.plot([], [], color="0.55", linewidth=1.0)
    (mode,) = axes.plot([], [], "|", color=style.MEDIUM, markersize=6)
    handles, labels = [seed, pooled, exact, truth, mode], ["one seed", "all seeds", "closed form", "truth", "modes"]
    if printed:
        (mark,) = axes.plot([], [], "^", color=style.LIGHT, markersize=5)
        handles, labels = [*handles, mark], [*labels, "printed mode"]
    return handles, labels


def simulations(name: str, results: Sequence[Result], times: Array, start: Array | None = None) -> Array:
    """States (results + 1, times, dim) of the truth, then from each method's mean mode; nan where they blow up."""
    system = system_of(name)
    rows = np.vstack([system.usual, *(result.modes.mean(axis=0) for result in results)])
    return np.asarray(solve(system, times, rows, start, rtol=1e-10, atol=1e-10).states)


def portrait(axes: Any, states: Array, title: str) -> None:
    """A path of three states (times, 3) in space."""
    axes.plot(*states.T, color=style.MEDIUM, linewidth=0.35)
    axes.set_title(title, pad=-4)
    axes.set(xlim=(-22, 22), ylim=(-28, 28), zlim=(0, 52), xlabel="x", ylabel="y", zlabel="z")
    axes.set(xticks=[-20, 0, 20], yticks=[-25, 0, 25], zticks=[0, 25, 50])
    axes.tick_params(pad=-3, labelsize=6)
    axes.xaxis.labelpad = axes.yaxis.labelpad = axes.zaxis.labelpad = -9
    axes.view_init(elev=18, azim=-55)
    axes.set_box_aspect(None, zoom=0.88)


def time_apart(times: Array, states: Array, truth: Array, share: float = 0.4) -> float:
    """How long ``states`` stay within ``share`` of the truth's RMS; the last time where they never part."""
    size = np.sqrt((truth**2).sum(axis=1).mean())
    apart = ~(np.sqrt(((states - truth) ** 2).sum(axis=1)) <= share * size)
    return float(times[np.argmax(apart)] if apart.any() else times[-1])


def rows_of(results: Sequence[Result]) -> list[dict[str, object]]:
    """The table of a figure: every method's modes and moments beside closed form and print."""
    table: list[dict[str, object]] = []
    for result in results:
        mean, sd = closed_form(result)
        for k, parameter in enumerate(result.system.parameters):
            draws = result.named[..., k]
            table.append({
                "method": result.method, "parameter": parameter,
                "truth": float(result.system.usual[k]),
                "mode": float(result.modes[:, k].mean()),
                "mode_sd_over_seeds": float(result.modes[:, k].std(ddof=1)),
                "printed_mode": PRINTED.get(result.method, {}).get(parameter, float("nan"))
                if result.system.name == "lorenz" else float("nan"),
                "mean": float(draws.mean()), "sd": float(draws.std()),
                "closed_form_mean": float(mean[k]), "closed_form_sd": float(sd[k]),
                "seeds": len(draws), "swap_rate": result.swap_rate,
                "reflections_per_seed": float(result.run.reflections.sum() / len(draws)),
            })  # fmt: skip
    return table
