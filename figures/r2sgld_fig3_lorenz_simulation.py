"""r2SGLD (2024), figure 3: Lorenz' system simulated from the modes of reSGLD and r2SGLD, beside the truth.

Parameters are the mean marginal modes of ten seeds (figure 4). Below, x(t) of the first times: on a chaotic system any
error of the parameters grows as e^(0.906 t), so that paths part soon, however good the posterior; the dotted line marks
where they are apart by 40 % of the states' RMS.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from figures import run_script, save, style
from figures.identification_panels import portrait, rows_of, simulations, time_apart
from figures.r2sgld_identification import result_of

METHODS = ("reSGLD", "r2SGLD")
EXPONENT = 0.9056  # Lyapunov's, per time unit


def draw(out: Path, quick: bool) -> list[Path]:
    """Run the samplers, solve from their modes, draw paths in space and in time."""
    results = [result_of("lorenz", method, quick=quick) for method in METHODS]
    times = np.linspace(0.0, 40.0, 8001)
    states = simulations("lorenz", results, times)
    n = len(states)
    figure = plt.figure(figsize=(style.WIDTH, 1.35 + 1.0 * n + (1.0 if n < 4 else 1.6)))
    grid = figure.add_gridspec(2, 1, height_ratios=[2.4 if n < 4 else 3.4, n])
    upper = grid[0].subgridspec(1 if n < 4 else 2, 3, wspace=0.0)
    lower = grid[1].subgridspec(n - 1, 1)
    for i, (path, title) in enumerate(zip(states, ["truth", *METHODS], strict=True)):
        portrait(figure.add_subplot(upper[i // 3, i % 3], projection="3d"), path, f"({'abcde'[i]}) {title}")
    rows = rows_of(results)
    shared = None
    for i, (method, path) in enumerate(zip(METHODS, states[1:], strict=True)):
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
    return save(figure, rows, out, "r2sgld_fig3_lorenz_simulation")


if __name__ == "__main__":
    run_script(draw)
