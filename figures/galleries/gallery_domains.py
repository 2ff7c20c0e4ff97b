"""The README's gallery of domains: distance to the edge inside each, a billiard's path, outward normals at the edge."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from figures import Data, Study, run_script
from figures.arrays import Array
from figures.plots import style
from figures.scripts.flat_target import FLAT
from targets import domains
from toolkit import Problem, Sampler, boundaries, dynamics

COLUMNS = 5
SEED = 21
ANGLES = 2.0 * np.pi * np.arange(12) / 12


def regions_drawn() -> list[Any]:
    """All domains of the plane that end somewhere."""
    return [region for region in domains.catalogue() if region.dim == 2 and np.isfinite(region.volume)]


def frame(region: Any) -> tuple[Array, float]:
    """Centre (2,) and half the side of a panel."""
    corners = np.reshape(region.bounds, (2, 2))
    return corners.mean(axis=0), 0.56 * float(np.ptp(corners, axis=0).max())


def billiard(study: Study, region: Any, start: Array) -> Array:
    """A straight flight from ``start`` that walls mirror, without friction, energy or noise: places (step, 2)."""
    length = 0.02 * np.ptp(np.reshape(region.bounds, (2, 2)), axis=0).max()
    sampler = Sampler(
        step_sizes=(length**2,), dynamics=dynamics.underdamped_langevin(friction=1e-12), boundary=boundaries.reflect()
    )
    problem = Problem(FLAT, region.domain)
    run = study.sample(region.name, problem, sampler, n_steps=study.size(160, 60), init=start)
    return np.asarray(run.draws[0])


def measure(study: Study) -> dict[str, Any]:
    """Distances on a grid, and a path, in each domain."""
    cells = study.size(140, 30)
    data: dict[str, Any] = {}
    for region in regions_drawn():
        centre, half = frame(region)
        grid = np.stack(np.meshgrid(*(np.linspace(c - half, c + half, cells) for c in centre)), axis=-1).reshape(-1, 2)
        distance = region.distance(grid)
        path = billiard(study, region, grid[np.argmin(abs(distance - 0.6 * distance.max()))])
        data[f"{region.name}: distance"] = distance.reshape(cells, cells).astype(np.float32)
        data[f"{region.name}: largest distance"] = distance.max()
        data[f"{region.name}: path"] = path
        data[f"{region.name}: share outside"] = 1.0 - region.contains(path).mean()
    return data


def draw(data: Data) -> Figure:
    """A panel per domain."""
    regions = regions_drawn()
    lines = -(-len(regions) // COLUMNS)
    figure, panels = plt.subplots(lines, COLUMNS, figsize=(style.WIDTH, 1.45 * lines))
    for region, axes in zip(regions, panels.flat, strict=False):
        draw_domain(region, axes, data[f"{region.name}: distance"], data[f"{region.name}: path"])
    for axes in panels.flat[len(regions) :]:
        axes.set_axis_off()
    return figure


def draw_domain(region: Any, axes: Any, distance: NDArray[np.float32], path: Array) -> None:
    """One panel."""
    centre, half = frame(region)
    x, y = (np.linspace(c - half, c + half, len(distance)) for c in centre)
    axes.contourf(x, y, np.ma.masked_less(distance, 0.0), 12, cmap="cividis")
    axes.contour(x, y, distance, [0.0], colors="black", linewidths=0.8)
    axes.plot(*path.T, color="white", linewidth=0.6)
    edge = region.nearest(centre + half * np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=1))
    normals = region.normal(edge + 0.02 * half * (edge - centre))
    axes.quiver(*edge.T, *normals.T, color=style.LIGHT, scale=12, width=0.012)
    (left, right), (low, high) = ((c - 1.12 * half, c + 1.12 * half) for c in centre)  # room for the arrows
    axes.set(aspect="equal", title=region.name, xlim=(left, right), ylim=(low, high))
    axes.set_axis_off()


def table(data: Data) -> list[dict[str, Any]]:
    """One row per domain."""
    return [
        {"domain": region.name, "area": region.volume,
         "largest_distance": float(data[f"{region.name}: largest distance"]),
         "share_of_path_outside": float(data[f"{region.name}: share outside"])}
        for region in regions_drawn()
    ]  # fmt: skip


if __name__ == "__main__":
    run_script(__file__)
