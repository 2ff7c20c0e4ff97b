"""The figures of Lorenz' system, two of each kind, which differ in their samplers."""

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from scipy.signal import find_peaks

from ...arrays import Array
from ...plots import style
from ...scripts.claims import Claim, said_above
from ...scripts.statistics import mean_and_error
from ...scripts.study import Data, Study
from .identification import (
    LETTERS,
    densities_of,
    distances_of,
    legend_of,
    moments_of,
    portrait,
    posterior_panel,
    prediction_time,
    result_of,
    rows_of,
    simulations,
    simulations_of_seeds,
)

EXPONENT = 0.9056  # Lorenz' largest Lyapunov exponent, per time unit


def measure_posteriors(
    study: Study, methods: Sequence[str], limits: Sequence[tuple[float, float]], beside: Sequence[str] = ()
) -> dict[str, Any]:
    """Modes, moments and kernel densities (method, chain + 1, parameter, place) at ``grids`` (parameter, place).

    beside: methods that are compared and not drawn.
    """
    results = [result_of(study, "lorenz", method) for method in methods]
    others = [result_of(study, "lorenz", method) for method in beside]
    grids = np.array([np.linspace(low, high, 400) for low, high in limits])
    densities = densities_of(results, grids)
    return {**moments_of(results), **distances_of([*results, *others]), "grids": grids, "densities": densities}


def draw_posteriors(data: Data, height: float) -> Figure:
    """A row per method, a column per parameter."""
    methods = data["methods"]
    figure, panels = plt.subplots(len(methods), 3, figsize=(style.WIDTH, height))
    for m, row in enumerate(panels):
        for k, axes in enumerate(row):
            posterior_panel(axes, data, m, k)
        row[0].set_ylabel(f"{methods[m]}\ndensity")
    figure.align_ylabels(panels[:, 0])
    figure.legend(*legend_of(panels[0, 0], printed=True), loc="outside lower center", ncols=3, title_fontsize=7,
                  title="above the panels: mean ± standard deviation of the seeds' modes")  # fmt: skip
    return figure


def measure_simulations(study: Study, methods: Sequence[str], beside: Sequence[str] = ()) -> dict[str, Any]:
    """Modes, moments, and the states (truth and methods, time, 3) that follow from the modes.

    together: the times for which they stay with the truth; seeds_together (method, seed): for which those from each
    seed's mode do. beside: methods that are compared and not drawn.
    """
    results = [result_of(study, "lorenz", method) for method in methods]
    others = [result_of(study, "lorenz", method) for method in beside]
    times = np.linspace(0.0, 40.0, 8001)
    states = simulations(results, times)
    return {
        **moments_of(results), "times": times, "states": states,
        "together": [prediction_time(times, path, states[0]) for path in states[1:]],
        "compared": [*methods, *beside],
        "seeds_together": [
            [prediction_time(times, path, states[0]) for path in simulations_of_seeds(result, times)]
            for result in [*results, *others]
        ],
    }  # fmt: skip


def longer(data: Data, first: str, second: str, source: str, why: str = "") -> Claim:
    """The claim in words that simulations from one method's modes stay longer with the truth than another's."""
    times = dict(zip(data["compared"].tolist(), data["seeds_together"], strict=True))
    what = f"time for which a seed's simulation stays with the truth: {first}'s less {second}'s"
    return said_above(what, 0.0, mean_and_error(times[first] - times[second]), source, why)


def draw_simulations(data: Data) -> Figure:
    """Paths from the truth and from each method's modes, in space and in time."""
    methods, times, states, n = data["methods"].tolist(), data["times"], data["states"], len(data["states"])
    figure = plt.figure(figsize=(style.WIDTH, 1.35 + 1.0 * n + (1.0 if n < 4 else 1.6)))
    grid = figure.add_gridspec(2, 1, height_ratios=[2.4 if n < 4 else 3.4, n])
    upper = grid[0].subgridspec(1 if n < 4 else 2, 3, wspace=0.0)
    lower = grid[1].subgridspec(n - 1, 1)
    for i, (path, title) in enumerate(zip(states, ["truth", *methods], strict=True)):
        panel = figure.add_subplot(upper[i // 3, i % 3], projection="3d")
        portrait(panel, path, f"({'abcde'[i]}) {title}", 0.88 if n < 4 else 1.15)
    shared: Any = None
    for i, (method, path, apart) in enumerate(zip(methods, states[1:], data["together"], strict=True)):
        axes = figure.add_subplot(lower[i], sharex=shared)
        shared = shared or axes
        axes.plot(times, states[0, :, 0], color=style.DARK, linewidth=0.8, label="truth")
        axes.plot(times, path[:, 0], color=style.LIGHT, linewidth=1.0, linestyle=(0, (4, 1.2)), label="from the modes")
        axes.axvline(apart, color="0.4", linestyle=":", linewidth=1.0, label="apart by 40 % of the states' RMS")
        axes.set(xlim=(0, 20), ylabel=f"x, {method}", yticks=[-15, 0, 15])
        axes.tick_params(labelbottom=i == n - 2)
        axes.set_title(
            f"together for a time of {apart:.1f} ({apart * EXPONENT:.1f} Lyapunov times)", loc="right", pad=2
        )
    axes.set_xlabel("time (of the model, without unit)")
    handles, labels = axes.get_legend_handles_labels()
    if n < 4:
        figure.legend(handles, labels, loc="outside lower center", ncols=3)
    else:
        key = figure.add_subplot(upper[1, 2])
        key.set_axis_off()
        key.legend(handles, labels, loc="center", title="x against time, below")
    return figure


def simulation_rows(data: Data) -> list[dict[str, Any]]:
    """Modes and moments, and how long the path from the modes stays with the truth's."""
    together = dict(zip(data["methods"].tolist(), data["together"].tolist(), strict=True))
    return [{**row, "time_together": together[row["method"]]} for row in rows_of(data)]


def mode_claims(data: Data) -> list[Claim]:
    """The printed modes beside the mean of ours and the scatter of one seed's mode, which is the paper's error too."""
    return [
        Claim(
            f"mode of {LETTERS[row['parameter']]} by {row['method']}", row["printed_mode"], row["mode"],
            row["mode_sd_over_seeds"] / row["seeds"] ** 0.5, row["truth"], row["mode_sd_over_seeds"],
            "printed" if row["printed_mode"] == row["printed_mode"] else "not legible in the text",
        )
        for row in rows_of(data)
    ]  # fmt: skip


def peaks(data: Data, method: str) -> Array:
    """Number of peaks of each seed's posterior (seed,), mean over the parameters.

    A peak stands out of its surroundings by a tenth of the highest.
    """
    *densities, _ = data["densities"][data["methods"].tolist().index(method)]
    return np.array([
        np.mean([len(find_peaks(curve, prominence=0.1 * curve.max())[0]) for curve in seed]) for seed in densities
    ])  # fmt: skip
