"""r2SGLD (2024), figure 1: paths of the two replicas of one r2SGLD chain in the flower, and their swaps.

Settings of figure 5, from the origin, 2,000 steps (400 in the quick version). A swap exchanges the two positions; the
paths break there, and a dot marks where the cold replica is one move after it.
"""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from figures import Data, Study, run_script, trajectory
from figures.plots import style
from targets import constrained, mixtures, shapes
from toolkit import Layout, samplers, stream

SEED = 1
DIFFERS = "The paper draws a sketch; these paths come from a run, and every break in them is a swap that happened."
DOT = "cold replica, first step after a swap, where lines break"
SHAPE = shapes.flower(petals=5, offset=3.0, radius=2.0)


def measure(study: Study) -> dict[str, Any]:
    """Paths (replica, step, 2) of one chain, step by step, and the steps that a swap came before."""
    sampler = samplers.r2sgld(gradient_noise=0.05, energy_noise=0.05)
    chunks = list(
        stream(constrained(mixtures.cosine25(), SHAPE), sampler, n_steps=study.size(2_000, 400), seed=study.seed,
               init=[0.0, 0.0],
               keep_replicas=True, progress=False, threads=1, layout=Layout(chunk_steps=1), backend=study.backend)
    )  # fmt: skip
    study.note("r2SGLD", chunks[-1])
    return {
        "paths": np.concatenate([chunk.replica_draws[0] for chunk in chunks], axis=1),
        "swapped": np.diff([int(chunk.swaps[0, 0]) for chunk in chunks], prepend=0) > 0,
    }


def draw(data: Data) -> Figure:
    """Two panels, one for each replica, over the energy."""
    paths, swapped = data["paths"], data["swapped"]
    figure, axes = plt.subplots(1, 2, figsize=(style.WIDTH, 3.7), sharex=True, sharey=True)
    edges = np.linspace(-2.5, 2.5, 301)
    grid = np.stack(np.meshgrid(edges, edges, indexing="ij"), axis=-1).reshape(-1, 2)
    energy = np.where(SHAPE.contains(grid), mixtures.cosine25().evaluate(grid)[0], np.nan).reshape(301, 301)
    names = ["cold replica, T = 1", "hot replica, T = 10"]
    for replica, (panel, name, colour) in enumerate(zip(axes, names, (style.DARK, style.MEDIUM), strict=True)):
        levels = panel.contourf(edges, edges, energy.T, levels=np.arange(-4, 7, 1), cmap="Greys_r", alpha=0.45)
        panel.plot(*np.vstack([SHAPE.rings[0], SHAPE.rings[0][:1]]).T, color="black", linewidth=1.0)
        trajectory(paths[replica], panel, breaks=swapped, color=colour, linewidth=0.5)
        panel.set_title(f"({'ab'[replica]}) {name}")
        panel.set(aspect="equal", xlabel="$x_1$", xticks=[-2, -1, 0, 1, 2], yticks=[-2, -1, 0, 1, 2])
    arrivals = paths[0][swapped]
    axes[0].plot(*arrivals.T, ".", color=style.LIGHT, markersize=3, label=DOT, zorder=3)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center")
    axes[0].set_ylabel("$x_2$")
    figure.colorbar(levels, ax=axes, label="energy $U$, nats", shrink=0.85, pad=0.01)
    return figure


def table(data: Data) -> list[dict[str, Any]]:
    """One row per step."""
    names = ("cold_x1", "cold_x2", "hot_x1", "hot_x2")
    rows = np.moveaxis(data["paths"], 0, 1).reshape(-1, 4)
    return [
        {"step": step, "swapped": int(data["swapped"][step])} | dict(zip(names, map(float, row), strict=True))
        for step, row in enumerate(rows)
    ]


if __name__ == "__main__":
    run_script(__file__)
