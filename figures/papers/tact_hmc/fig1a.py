"""TACT-HMC (2018), figure 1a: draws of TACT-HMC and its two ablations on three modes, beside the truth.

The paper prints no settings. Ours: 0.3 N(−10, 1) + 0.4 N(0, 1.5²) + 0.3 N(11, 1); normal noise of standard deviation
3 on every gradient and energy, unknown to all samplers; η = 0.02 for θ, 0.002 for ξ; c = 0.05, γ = 1 and K = 50 as
for the paper's networks; effective temperatures from 1 to 15. Each of 512 chains starts at 0 and makes 10⁵ gradient
evaluations after 2 · 10⁴ of burn-in; of TACT-HMC's, every 50th state counts if λ = 1, which some 200 are.

(a) to (d): histograms of all chains, the truth as a line. (d) is our addition at the same number of gradient
evaluations: replica exchange (temperatures 1 and 12) under thermostats. (e) weight of each mode and variance within
it, over the true ones, ± 2 standard errors over chains. (f) the same errors in standard errors: ± 2 is right.
"""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from figures import Claim, Data, Study, run_script
from figures.papers.tact_hmc.ablations import (
    LABELS,
    NO_TEMPERING,
    NO_THERMOSTATS,
    Settings,
    claims_of_ablations,
    in_standard_errors,
    mode_errors,
    mode_rows,
    runs_at_equal_cost,
    truth_of,
)
from figures.plots import style
from targets import mixtures

SEED = 2018
DIFFERS = (
    "Target, noise and step sizes are ours, as the paper prints none. Our barriers are 7 to 9 nats high, so without "
    "tempering chains do change modes about once in 10⁵ steps; the shares of the modes are still far off."
)
SETTINGS = Settings()
EDGES = np.linspace(-20.0, 20.0, 101)
COLOURS, MARKS = (style.MEDIUM, style.LIGHT, style.FOURTH, style.FIFTH), ("o", "s", "^", "D")


def measure(study: Study) -> dict[str, Any]:
    """Histograms (sampler, bin), errors of the modes (sampler, 2, mode, 2), numbers of draws and their costs."""
    target, (n_steps, burn_in) = mixtures.three_on_a_line(), study.size((100_000, 20_000), (20_000, 10_000))
    heights, tables, numbers, costs = [], [], [], []
    for run, points in runs_at_equal_cost(
        study, target, SETTINGS, n_chains=study.size(512, 64), n_steps=n_steps, burn_in=burn_in, start=[0.0]
    ):
        draws = points[:, 0]
        heights.append(np.histogram(draws, EDGES)[0] / (len(draws) * np.diff(EDGES)))
        tables.append(mode_errors(run, truth_of(target)))
        numbers.append(len(draws))
        costs.append(n_steps * run.n_chains / len(draws))
    return {"heights": heights, "modes": tables, "draws": numbers, "evaluations_per_draw": costs}


def draw(data: Data) -> Figure:
    """Four histograms; the modes' errors, relative and in standard errors."""
    figure = plt.figure(figsize=(style.WIDTH, 4.3))
    above, below = figure.subfigures(2, 1, height_ratios=[1.0, 1.2])
    top = above.subplots(1, 4, sharey=True)
    at = np.linspace(-20.0, 20.0, 801)
    truth = np.exp(truth_of(mixtures.three_on_a_line()).log_density(at[:, None]))
    for i, (label, panel) in enumerate(zip(LABELS, top, strict=True)):
        panel.stairs(data["heights"][i], EDGES, fill=True, color="0.72", label="draws")
        panel.plot(at, truth, color=style.MEDIUM, linewidth=1.0, label="truth")
        panel.set(xlabel=r"$\theta$", xlim=(-20, 20), ylim=(0.0, 0.2), title=f"({'abcd'[i]}) {label}")
    top[0].set_ylabel("density")
    top[0].legend(loc="upper right", handlelength=1.2, borderaxespad=0.0)
    relative, standard = below.subplots(1, 2)
    for i, label in enumerate(LABELS):
        values, places = data["modes"][i].reshape(6, 2), np.arange(6) + 0.16 * (i - 1.5)
        style_of = {"color": COLOURS[i], "marker": MARKS[i], "linestyle": "none", "markersize": 3.5}
        relative.errorbar(places, values[:, 0], 2.0 * values[:, 1], label=label, linewidth=1.0, **style_of)
        standard.plot(places, in_standard_errors(data["modes"][i]).ravel(), label=label, **style_of)
    relative.axhline(1.0, color="black", linewidth=0.6)
    relative.set(ylim=(0.0, 2.6), ylabel="ratio to the truth", title="(e) weights and variances of the modes")
    standard.axhspan(-2.0, 2.0, color="0.88", linewidth=0)
    standard.set_yscale("symlog", linthresh=3.0, linscale=1.0)
    standard.set_yticks([-100, -10, -2, 0, 2, 10, 100], ["−100", "−10", "−2", "0", "2", "10", "100"])
    standard.set_yticks([], minor=True)
    standard.set(ylabel="error, standard errors", title="(f) the same errors in standard errors")
    for panel in (relative, standard):
        panel.set_xticks(range(6), ["weight\n−10", "weight\n0", "weight\n11", "var.\n−10", "var.\n0", "var.\n11"])
    handles, labels = relative.get_legend_handles_labels()
    below.legend(handles, labels, loc="outside lower center", ncols=4)
    return figure


def table(data: Data) -> list[dict[str, Any]]:
    """One row per sampler, mode and quantity."""
    columns = zip(LABELS, data["modes"], data["draws"], data["evaluations_per_draw"], strict=True)
    return [row for label, errors, n, cost in columns for row in mode_rows("three_on_a_line", label, errors, n, cost)]


def compare(data: Data) -> list[Claim]:
    """That TACT-HMC alone is right in weights and widths of the modes."""
    return [
        claim._replace(why=next((why for key, why in WHY.items() if claim.what.startswith(key)), ""))
        for claim in claims_of_ablations(data["modes"], "", "figure 1 (a)")
    ]


WHY = {
    f"{NO_THERMOSTATS}: largest error of a mode's variance": "The noise heats it, as the paper's figure shows.",
    f"{NO_TEMPERING}: largest error of a mode's weight": "Chains seldom leave a mode, as the paper's figure shows.",
    f"{NO_TEMPERING}: largest error of a mode's variance": (
        "Modes are 1 % too narrow at this step size, which its many draws show."
    ),
}


if __name__ == "__main__":
    run_script(__file__)
