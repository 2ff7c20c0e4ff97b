"""The README's gallery of domains: distance to the edge inside each, a billiard's path, outward normals at the edge."""

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray

from figures import run_script, save, style
from targets import domains
from toolkit import Problem, Sampler, Target, boundaries, dynamics, sample

COLUMNS = 5
SEED = 21
ANGLES = 2.0 * np.pi * np.arange(12) / 12


def flat_block(position: Any, energy: Any, gradient: Any, parameters: Any, scratch: Any) -> None:
    """No energy anywhere."""
    for lane in range(position.shape[1]):
        energy[lane] = 0.0
        gradient[0, lane] = 0.0
        gradient[1, lane] = 0.0


def billiard(region: Any, start: NDArray[np.float64], n_steps: int) -> NDArray[np.float64]:
    """A straight flight from ``start`` that walls mirror, without friction, energy or noise: places (n_steps, 2)."""
    length = 0.02 * np.ptp(np.reshape(region.bounds, (2, 2)), axis=0).max()
    sampler = Sampler(
        step_sizes=(length**2,), dynamics=dynamics.underdamped_langevin(friction=1e-12), boundary=boundaries.reflect()
    )
    flat = Target("flat", 2, flat_block)
    return np.asarray(sample(Problem(flat, region.domain), sampler, n_steps=n_steps, init=start, seed=SEED).draws[0])


def draw_domain(region: Any, axes: Any, n_steps: int, cells: int) -> dict[str, object]:
    """One panel, and its row of the table."""
    corners = np.reshape(region.bounds, (2, 2))
    centre, half = corners.mean(axis=0), 0.56 * np.ptp(corners, axis=0).max()
    x, y = (np.linspace(c - half, c + half, cells) for c in centre)
    grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    distance = region.distance(grid).reshape(cells, cells)
    inside = np.ma.masked_less(distance, 0.0)
    axes.contourf(x, y, inside, 12, cmap="cividis")
    axes.contour(x, y, distance, [0.0], colors="black", linewidths=0.8)
    start = grid[np.argmin(abs(distance - 0.6 * distance.max()))]
    path = billiard(region, start, n_steps)
    axes.plot(*path.T, color="white", linewidth=0.6)
    edge = region.nearest(centre + half * np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=1))
    normals = region.normal(edge + 0.02 * half * (edge - centre))
    axes.quiver(*edge.T, *normals.T, color=style.LIGHT, scale=12, width=0.012)
    axes.set(aspect="equal", title=region.name)
    axes.set_axis_off()
    return {
        "domain": region.name,
        "area": region.volume,
        "largest_distance": float(distance.max()),
        "share_of_path_outside": float(1.0 - region.contains(path).mean()),
    }


def draw(out: Path, quick: bool) -> list[Path]:
    """Draw all domains of the plane that end somewhere."""
    regions = [region for region in domains.catalogue() if region.dim == 2 and np.isfinite(region.volume)]
    lines = -(-len(regions) // COLUMNS)
    figure, panels = plt.subplots(lines, COLUMNS, figsize=(style.WIDTH, 1.45 * lines))
    n_steps, cells = (60, 60) if quick else (160, 240)
    rows = [
        draw_domain(region, axes, n_steps, cells)
        for region, axes in zip(regions, panels.flat, strict=False)
    ]  # fmt: skip
    for axes in panels.flat[len(regions) :]:
        axes.set_axis_off()
    return save(figure, rows, out, "gallery_domains")


if __name__ == "__main__":
    run_script(draw)
