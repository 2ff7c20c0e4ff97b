"""The identification figures: what is measured of the methods, panels of posteriors and simulations, and the table."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray
from scipy.stats import gaussian_kde

from sysid.integrate import solve

from . import style
from .r2sgld_identification import LETTERS, PRINTED, Result, named_parameters, system_of
from .study import Data

Array = NDArray[np.float64]


def closed_form(result: Result) -> tuple[Array, Array]:
    """Means and standard deviations (n,) of the named parameters under the posterior without constraints."""
    posterior, problem = result.problem.posterior, result.problem
    assert posterior is not None
    origin = named_parameters(problem, np.zeros(problem.dim))
    slopes = np.array([named_parameters(problem, row) - origin for row in np.eye(problem.dim)])
    covariance = slopes.T @ posterior.covariance @ slopes
    return named_parameters(problem, problem.positions(posterior.mean)), np.sqrt(np.diag(covariance))


def moments_of(results: Sequence[Result]) -> dict[str, Any]:
    """What the table needs: an entry per method, of modes also per chain."""
    exact = [closed_form(result) for result in results]
    return {
        "system": results[0].system.name,
        "methods": [result.method for result in results],
        "modes": [result.modes for result in results],
        "means": [result.named.mean(axis=(0, 1)) for result in results],
        "sds": [result.named.std(axis=(0, 1)) for result in results],
        "exact_means": [mean for mean, _ in exact],
        "exact_sds": [sd for _, sd in exact],
        "swap_rates": [result.swap_rate for result in results],
        "reflections": [result.run.reflections.sum() / len(result.named) for result in results],
    }


def densities_of(results: Sequence[Result], grids: Array) -> Array:
    """Kernel densities (method, chain + 1, n, place) at ``grids`` (n, place): of each chain, last of all together."""
    return np.array([
        [[density_of(draws[..., k].ravel(), grid) for k, grid in enumerate(grids)]
         for draws in (*result.named, result.named)]
        for result in results
    ])  # fmt: skip


def density_of(values: Array, grid: Array) -> Array:
    """A Gaussian kernel density, of at most 4,000 values; nothing where they do not vary."""
    points = values[:: -(-len(values) // 4000)]
    if np.ptp(points) == 0.0:
        return np.full(grid.shape, np.nan)
    return np.asarray(gaussian_kde(points)(grid))


def simulations(results: Sequence[Result], times: Array, start: Array | None = None) -> Array:
    """States (results + 1, times, dim) of the truth, then from each method's mean mode; nan where they blow up."""
    system = results[0].system
    rows = np.vstack([system.usual, *(result.modes.mean(axis=0) for result in results)])
    return np.asarray(solve(system, times, rows, start, rtol=1e-10, atol=1e-10).states)


def normal_density(grid: Array, mean: float, sd: float) -> Array:
    """The closed form of a parameter's posterior."""
    return np.asarray(np.exp(-0.5 * ((grid - mean) / sd) ** 2) / (np.sqrt(2.0 * np.pi) * sd))


def posterior_panel(axes: Axes, data: Data, m: int, k: int) -> None:
    """Densities of parameter ``k`` by method ``m``: every seed, all together, closed form; the truth and the modes."""
    system, method = system_of(str(data["system"])), str(data["methods"][m])
    parameter, grid = system.parameters[k], data["grids"][k]
    *seeds, pooled = data["densities"][m, :, k]
    for density in seeds:
        axes.plot(grid, density, color=style.MEDIUM, linewidth=0.5, alpha=0.45)
    axes.plot(grid, pooled, color=style.MEDIUM, linewidth=1.4)
    exact = normal_density(grid, data["exact_means"][m, k], data["exact_sds"][m, k])
    axes.plot(grid, exact, color=style.DARK, linewidth=1.2, linestyle=(0, (4, 1.5)))
    axes.axvline(system.usual[k], color="0.55", linewidth=1.0, zorder=1)
    modes = data["modes"][m, :, k]
    axes.plot(modes, np.full(len(modes), 0.03 * exact.max()), "|", color=style.MEDIUM, markersize=6)
    said = f"mode {modes.mean():.4g} ± {modes.std(ddof=1):.2g}"
    printed = PRINTED[method].get(parameter) if system.name == "lorenz" else None
    if printed is not None:
        axes.plot(printed, 0.0, "^", color=style.LIGHT, markersize=5, clip_on=False, zorder=4)
        said += f"\nprinted {printed:g}"
    axes.set(xlim=(grid[0], grid[-1]), ylim=(0.0, 2.2 * exact.max()), yticks=[], xlabel=LETTERS[parameter])
    box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1.0}
    axes.text(0.02, 0.98, said, transform=axes.transAxes, va="top", fontsize=6.5, bbox=box, zorder=5)


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


def rows_of(data: Data) -> list[dict[str, Any]]:
    """The table of a figure: every method's modes and moments beside closed form and print."""
    system = system_of(str(data["system"]))
    return [
        {
            "method": str(method), "parameter": parameter, "truth": float(system.usual[k]),
            "mode": float(data["modes"][m, :, k].mean()),
            "mode_sd_over_seeds": float(data["modes"][m, :, k].std(ddof=1)),
            "printed_mode": PRINTED[method].get(parameter, np.nan) if system.name == "lorenz" else np.nan,
            "mean": float(data["means"][m, k]), "sd": float(data["sds"][m, k]),
            "closed_form_mean": float(data["exact_means"][m, k]), "closed_form_sd": float(data["exact_sds"][m, k]),
            "seeds": data["modes"].shape[1], "swap_rate": float(data["swap_rates"][m]),
            "reflections_per_seed": float(data["reflections"][m]),
        }
        for m, method in enumerate(data["methods"].tolist())
        for k, parameter in enumerate(system.parameters)
    ]  # fmt: skip
