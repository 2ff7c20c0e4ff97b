"""r2SGLD (2024), figure 1: paths of the two replicas of one r2SGLD chain in the flower, and their swaps.

Settings of figure 5, from the origin, 2,000 steps (400 in the quick version). A swap exchanges the two positions; the
paths break there, and a dot marks where the cold replica is one move after it.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from figures import run_script, save, style, trajectory
from targets import constrained, mixtures, shapes
from toolkit import Layout, samplers, stream

SEED = 1


def draw(out: Path, quick: bool) -> list[Path]:
    """Run one chain step by step, draw its paths, write them as a table."""
    shape = shapes.flower(petals=5, offset=3.0, radius=2.0)
    problem = constrained(mixtures.cosine25(), shape)
    sampler = samplers.r2sgld(gradient_noise=0.05, energy_noise=0.05)
    chunks = list(
        stream(problem, sampler, n_steps=400 if quick else 2_000, seed=SEED, keep_replicas=True, progress=False,
               threads=1, layout=Layout(chunk_steps=1))
    )  # fmt: skip
    paths = np.concatenate([chunk.replica_draws[0] for chunk in chunks], axis=1)
    swapped = np.diff([int(chunk.swaps[0, 0]) for chunk in chunks], prepend=0) > 0

    figure, axes = plt.subplots(1, 2, figsize=(style.WIDTH, 3.3), sharex=True, sharey=True)
    edges = np.linspace(-2.5, 2.5, 301)
    grid = np.stack(np.meshgrid(edges, edges, indexing="ij"), axis=-1).reshape(-1, 2)
    energy = np.where(shape.contains(grid), problem.target.evaluate(grid)[0], np.nan).reshape(301, 301)
    names = ["cold replica, T = 1", "hot replica, T = 10"]
    for replica, (panel, name, colour) in enumerate(zip(axes, names, (style.DARK, style.MEDIUM), strict=True)):
        levels = panel.contourf(edges, edges, energy.T, levels=np.arange(-4, 7, 1), cmap="Greys_r", alpha=0.45)
        panel.plot(*np.vstack([shape.rings[0], shape.rings[0][:1]]).T, color="black", linewidth=1.0)
        trajectory(paths[replica], panel, breaks=swapped, color=colour, linewidth=0.5)
        panel.set_title(f"({'ab'[replica]}) {name}")
        panel.set(aspect="equal", xlabel="$x_1$", xticks=[-2, -1, 0, 1, 2], yticks=[-2, -1, 0, 1, 2])
    arrivals = paths[0][swapped]
    axes[0].plot(*arrivals.T, ".", color=style.LIGHT, markersize=3, label="one move after a swap", zorder=3)
    axes[0].legend(loc="lower left", handletextpad=0.2)
    axes[0].set_ylabel("$x_2$")
    figure.colorbar(levels, ax=axes, label="energy $U$, nats", shrink=0.85, pad=0.01)
    rows = [
        {
            "step": step,
            "swapped": int(swapped[step]),
            "cold_x1": float(paths[0, step, 0]),
            "cold_x2": float(paths[0, step, 1]),
            "hot_x1": float(paths[1, step, 0]),
            "hot_x2": float(paths[1, step, 1]),
        }
        for step in range(paths.shape[1])
    ]
    return save(figure, rows, out, "r2sgld_fig1_trajectory")


if __name__ == "__main__":
    run_script(draw)
