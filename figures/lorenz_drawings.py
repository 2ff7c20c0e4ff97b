"""Whole figures of the identification experiments that differ in their samplers alone."""

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from . import style
from .identification_panels import legend_of, portrait, posterior_panel, rows_of, simulations, time_apart
from .r2sgld_identification import result_of

EXPONENT = 0.9056  # Lorenz' largest Lyapunov exponent, per time unit

Table = list[dict[str, object]]


def lorenz_posteriors(
    methods: Sequence[str], limits: Sequence[tuple[float, float]], *, height: float, quick: bool
) -> tuple[Figure, Table]:
    """A row per method, a column per parameter; and the table of modes and moments."""
    results = [result_of("lorenz", method, quick=quick) for method in methods]
    figure, panels = plt.subplots(len(methods), 3, figsize=(style.WIDTH, height))
    for row, result in zip(panels, results, strict=True):
        for k, axes in enumerate(row):
            posterior_panel(axes, result, k, limits=limits[k])
        row[0].set_ylabel(f"{result.method}\ndensity")
    figure.legend(*legend_of(panels[0, 0], printed=True), loc="outside lower center", ncols=6)
    return figure, rows_of(results)


def lorenz_simulations(methods: Sequence[str], *, quick: bool) -> tuple[Figure, Table]:
    """Paths from the truth and from each method's modes, in space and in time; and the table of modes."""
    results = [result_of("lorenz", method, quick=quick) for method in methods]
    times = np.linspace(0.0, 40.0, 8001)
    states = simulations("lorenz", results, times)
    n = len(states)
    figure = plt.figure(figsize=(style.WIDTH, 1.35 + 1.0 * n + (1.0 if n < 4 else 1.6)))
    grid = figure.add_gridspec(2, 1, height_ratios=[2.4 if n < 4 else 3.4, n])
    upper = grid[0].subgridspec(1 if n < 4 else 2, 3, wspace=0.0)
    lower = grid[1].subgridspec(n - 1, 1)
    for i, (path, title) in enumerate(zip(states, ["truth", *methods], strict=True)):
        portrait(figure.add_subplot(upper[i // 3, i % 3], projection="3d"), path, f"({'abcde'[i]}) {title}")
    rows = rows_of(results)
    shared: Any = None
    for i, (method, path) in enumerate(zip(methods, states[1:], strict=True)):
        axes = figure.add_subplot(lower[i], sharex=shared)
        shared = shared or axes
        axes.plot(times, states[0, :, 0], color=style.DARK, linewidth=0.8, label="truth")
        axes.plot(times, path[:, 0], color=style.LIGHT, linewidth=1.0, linestyle=(0, (4, 1.2)), label="from the modes")
        apart = time_apart(times, path, states[0])
        axes.axvline(apart, color="0.4", linestyle=":", linewidth=1.0)
        axes.set(xlim=(0, 20), ylabel=f"x, {method}", yticks=[-15, 0, 15])
        axes.tick_params(labelbottom=i == n - 2)
        axes.set_title(f"together for {apart:.1f} = {apart * EXPONENT:.1f} Lyapunov times", loc="right", pad=2)
        for row in rows:
            if row["method"] == method:
                row["time_together"] = apart
    axes.set_xlabel("time")
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2)
    return figure, rows
