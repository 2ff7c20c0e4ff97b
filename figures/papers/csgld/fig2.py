"""CSGLD (2020), figure 2: paths of SGLD and CSGLD, with the gradient multiplier and its sign.

Target and settings of figure 1, ζ = 0.75. (a), (b) 50,000 steps of one chain (10,000 in the quick version), every 20th
shown, after 100,000 in which CSGLD learns θ. Colour is the multiplier of the gradient where the chain stands: SGLD's is
1 throughout; triangles are places where CSGLD's is negative, so that the chain is driven uphill, a bounce. (c) By bins
of energy: mean multiplier over 32 chains, and that of the θ by quadrature; below, the share of CSGLD's steps in each
bin, and the target's. The multiplier is 1 in the first bin, by the algorithm's (J − 1) ∨ 1.
"""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure

from figures import Claim, Data, Study, run_script
from figures.papers.csgld.unequal_modes import (
    NOISE,
    PARTITION,
    PROBLEM,
    STEP_SIZE,
    bin_probabilities,
    contour_sampler,
    crossings,
)
from figures.plots import style
from figures.scripts.claims import DERIVED, said_above, said_below
from figures.scripts.statistics import difference, mean_and_error
from toolkit import samplers

SEED = 2020
DIFFERS = "The poster states neither target nor settings of its paths; ours are those of figure 1."
BURN_IN, BINS = 100_000, 14
SIGNED = LinearSegmentedColormap.from_list(
    "signed", [(0.0, "#b34700"), (0.33, style.LIGHT), (0.34, "#8cc4ea"), (0.66, style.MEDIUM), (1.0, style.DARK)]
)
LIMITS = Normalize(-0.5, 1.0)


def measure(study: Study) -> dict[str, Any]:
    """Paths of one chain, (draw,), with CSGLD's multiplier; and by chain what the bins of energy hold, (chain, bin)."""
    shown, chains, steps = study.size((50_000, 32, 200_000), (10_000, 8, 100_000))
    sgld = samplers.sgld(STEP_SIZE, gradient_noise=NOISE)
    contour = contour_sampler(0.75)
    path_settings = {"n_steps": BURN_IN + shown, "burn_in": BURN_IN, "init": [0.0]}
    plain = study.sample("SGLD, the path", PROBLEM, sgld, **path_settings)
    path = study.sample("CSGLD, the path", PROBLEM, contour, trace_every=1, **path_settings)
    assert path.trace is not None
    # The multiplier of a step is that where it begins, which is the draw before.
    multiplier = path.trace.fields["multiplier"][0, 0, BURN_IN + 1 :]
    chain_settings = {"n_steps": BURN_IN + steps, "burn_in": BURN_IN, "init": [0.0], "n_chains": chains, "thin": 10}
    free = study.sample("SGLD", PROBLEM, sgld, **chain_settings)
    run = study.sample("CSGLD", PROBLEM, contour, trace_every=50, **chain_settings)
    assert run.trace is not None
    after_burn_in = run.trace.steps >= BURN_IN
    energy, factor = (run.trace.fields[name][:, 0, after_burn_in] for name in ("energy", "multiplier"))
    bin_number = np.clip((energy - PARTITION.u_min) // PARTITION.width, 0, PARTITION.n_bins - 1).astype(int)
    visits, sums = (
        np.array([np.bincount(j, w, PARTITION.n_bins) for j, w in zip(bin_number, values, strict=True)])
        for values in (np.ones_like(factor), factor)
    )
    return {
        "steps": np.arange(shown - 1)[::20],
        "sgld": plain.draws[0, :-1:20, 0],
        "csgld": path.draws[0, :-1:20, 0],
        "multiplier": multiplier[::20],
        "visits": visits[:, :BINS] / visits.sum(axis=1, keepdims=True),
        "bin_multiplier": sums[:, :BINS] / np.maximum(visits[:, :BINS], 1.0),
        "negative": (factor < 0.0).mean(axis=1),
        "crossings": np.stack([crossings(r.draws[..., 0]) for r in (free, run)]) * 1e6 / steps,
        "probabilities": bin_probabilities(),
    }


def draw(data: Data) -> Figure:
    """Two paths, and the bins."""
    figure, panels = plt.subplots(1, 3, figsize=(style.WIDTH, 3.1), width_ratios=(1.0, 1.15, 1.0))
    draw_path(panels[0], data["steps"], data["sgld"], np.ones(len(data["steps"])))
    points = draw_path(panels[1], data["steps"], data["csgld"], data["multiplier"])
    panels[1].sharey(panels[0])
    panels[0].set(title="(a) SGLD", ylabel="$x$", ylim=(-15.5, 21.5))
    panels[1].set(title="(b) CSGLD")
    figure.colorbar(points, ax=panels[1], label="gradient multiplier", pad=0.02, extend="both")
    spec = panels[2].get_subplotspec().subgridspec(2, 1)
    panels[2].remove()
    above = figure.add_subplot(spec[0])
    draw_bins(above, figure.add_subplot(spec[1], sharex=above), data)
    return figure


def draw_path(axes: Axes, steps: Any, x: Any, multiplier: Any) -> PathCollection:
    """Positions against steps, coloured by the multiplier; triangles where it is negative."""
    axes.axhline(-1.042, color="0.6", linewidth=0.6, zorder=0, label="top of the barrier")
    bounces = multiplier < 0.0
    settings: dict[str, Any] = {"cmap": SIGNED, "norm": LIMITS, "linewidths": 0, "rasterized": True}
    points = axes.scatter(steps[~bounces] / 1e3, x[~bounces], 2.0, multiplier[~bounces], **settings)
    axes.scatter(steps[bounces] / 1e3, x[bounces], 6.0, multiplier[bounces], marker="^", **settings)
    if bounces.any():
        axes.plot([], [], "^", color=style.LIGHT, markersize=3, label="negative: driven uphill")
    axes.legend(loc="upper left", handlelength=1.0)
    axes.set(xlabel="step, thousands")
    return points


def draw_bins(axes: Axes, below: Axes, data: Data) -> None:
    """Multiplier by bins of energy, and below it the share of the steps in them."""
    edges, middles = PARTITION.edges[: BINS + 1], PARTITION.edges[:BINS] + 0.5
    below.stairs(data["visits"].mean(axis=0), edges, fill=True, color="0.8", label="CSGLD")
    below.stairs(data["probabilities"][:BINS], edges, color=style.DARK, linewidth=0.8, label="target")
    below.set(xlabel="energy, nats", ylabel="share of steps")
    below.legend(loc="upper right", handlelength=1.2)
    axes.axhline(0.0, color="0.6", linewidth=0.6, zorder=0)
    axes.plot(middles, expected_multiplier(data), "_", color=style.DARK, markersize=7, label="by quadrature")
    mean, error = data["bin_multiplier"].mean(axis=0), data["bin_multiplier"].std(axis=0, ddof=1)
    axes.errorbar(middles, mean, error / np.sqrt(len(data["visits"])), fmt="o", color=style.MEDIUM, markersize=3,
                  elinewidth=0.8, label="CSGLD")  # fmt: skip
    axes.set(ylabel="multiplier", title="(c) by bins of energy")
    axes.set_ylim(top=1.9)
    axes.tick_params(labelbottom=False)
    axes.legend(loc="upper right", handlelength=1.2)


def expected_multiplier(data: Data) -> Any:
    """1 + ζ (log θ(J) − log θ(J − 1)) / Δu at the θ of quadrature, (bin,)."""
    steps = np.diff(np.log(data["probabilities"][:BINS])) / PARTITION.width
    return np.concatenate([[1.0], 1.0 + 0.75 * steps])


def table(data: Data) -> list[dict[str, Any]]:
    """One row per bin."""
    mean, spread = data["bin_multiplier"].mean(axis=0), data["bin_multiplier"].std(axis=0, ddof=1)
    return [
        {
            "bin": j + 1,
            "from_energy": float(PARTITION.edges[j]),
            "multiplier": float(mean[j]),
            "standard_error": float(spread[j] / np.sqrt(len(data["visits"]))),
            "multiplier_by_quadrature": float(expected_multiplier(data)[j]),
            "share_of_steps": float(data["visits"][:, j].mean()),
            "probability": float(data["probabilities"][j]),
        }
        for j in range(BINS)
    ]


def compare(data: Data) -> list[Claim]:
    """The poster's sentence on the multiplier, bounces and SGLD; and the multiplier beside quadrature."""
    second, third = expected_multiplier(data)[1:3]
    low, text = mean_and_error(data["bin_multiplier"][:, 1]), "figure 2's text"
    sgld, csgld = data["crossings"]
    learns = "θ grows in the bin where the chain is, and so does the multiplier while it stays there"
    return [
        said_below("multiplier in the second bin, the lowest with one below it", 1.0, low,
                   f"{text}, “smaller … gradient multiplier in low energy regions”"),
        said_below("multiplier in the second bin", 0.0, low, f"{text}, “or even negative”"),
        said_above("share of CSGLD's steps that are bounces", 0.0, mean_and_error(data["negative"]),
                   f"{text}, “bounces the sampler back to high energy”"),
        said_above("crossings between the modes in 10⁶ steps, CSGLD's less SGLD's", 0.0, difference(csgld, sgld),
                   f"{text}, “SGLD gets stuck in a local region”"),
        Claim("multiplier in the second bin, beside quadrature", float(second), *low, float(second),
              source="θ by quadrature", origin=DERIVED, why=learns),
        Claim("multiplier in the third bin, beside quadrature", float(third),
              *mean_and_error(data["bin_multiplier"][:, 2]), float(third), source="θ by quadrature", origin=DERIVED,
              why=learns),
        Claim("crossings between the modes in 10⁶ steps, CSGLD", np.nan, *mean_and_error(csgld), "higher"),
        Claim("crossings between the modes in 10⁶ steps, SGLD", np.nan, *mean_and_error(sgld), "lower"),
    ]  # fmt: skip


if __name__ == "__main__":
    run_script(__file__)
