"""ICSGLD (2022), figure 6, what step size, field and bins change: final KL, energies, the gradient's multiplier.

As figure 6, all in the box, 400,000 gradient evaluations a repeat, 24 repeats; all step sizes of a method times the
same factor, 1 being the paper's (for reSGHMC and ICSGHMC, not in the paper: h = 0.001 in the coldest replica).

(a) KL at full cost; bars are ± standard error. (b) ICSGLD's weighted share of draws in bins of energy of 0.25 nats,
over the truth's. (c) ICSGLD's multiplier 1 + ζ Δlog θ / Δu at the end, mean over repeats, of bins with 0.1 % of the
visits or more. With curvature 79 at the modes, a step of 0.003 goes beyond the minimum where the multiplier exceeds 4.2
(dotted) and diverges from it above 8.4: the lowest energies are missed, and a smaller step finds them.
"""

from dataclasses import replace
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from figures import Claim, Data, Study, run_script
from figures.papers.icsgld.rugged_box import (
    BOXED,
    CELLS,
    PARTITION,
    Method,
    box_energies,
    box_masses,
    methods,
    run_method,
    with_step_sizes,
)
from figures.plots import style
from figures.scripts.claims import AUTHORS_CODE, said_above
from figures.scripts.statistics import mean_and_error, means_and_errors, ratio_and_error
from toolkit import boundaries
from toolkit.diagnostics import energy_histogram, expected_kl, kl_path
from toolkit.tempering import Partition, contour

SEED = 2023
DIFFERS = (
    "The paper has one step size, 0.003. There steps overshoot at the lowest energies, where contour multiplies the "
    "gradient by 5 (about 9 in the released code); at half of it CSGLD equals ICSGLD. Wider bins make it worse."
)
FACTORS = np.array([0.125, 0.25, 0.5, 1.0, 2.0, 4.0])
ENERGIES = np.arange(-4.0, 2.01, 0.25)
LOWEST = np.array([-4.0, -3.25])
WIDE, NEW_FIELD = "ICSGLD×P5, Δu = 0.5", "CSGLD×T5, field of 2022"
DASHED = style.DASHES[1]
LINES: dict[str, dict[str, Any]] = {  # a colour for every kind of sampler
    "SGLD×P5": {"color": style.LIGHT, "linestyle": DASHED, "marker": "o"},
    "cycSGLD×T5": {"color": style.LIGHT, "linestyle": "-", "marker": "s"},
    "reSGLD×P5": {"color": style.MEDIUM, "linestyle": DASHED, "marker": "o"},
    "CSGLD×T5": {"color": style.FIFTH, "linestyle": DASHED, "marker": "o"},
    "ICSGLD×P5": {"color": style.DARK, "linestyle": "-", "marker": "s"},
    NEW_FIELD: {"color": style.FIFTH, "linestyle": "-", "marker": "s"},
    WIDE: {"color": style.DARK, "linestyle": DASHED, "marker": "o"},
    "ICSGHMC×P5": {"color": style.FOURTH, "linestyle": "-", "marker": "^"},
    "reSGHMC×P2": {"color": style.MEDIUM, "linestyle": "-", "marker": "s"},
}
LIMIT = 1.0 / (3e-3 * 79.0)  # of the multiplier: beyond it a step of 0.003 passes the minimum, curvature 79
AUTHORS = 0.48  # bins 8 to 13 of one run of theirs, 0.0897, over the exact 0.187
SHOWN = {1.0: (0, (1, 1)), 0.5: (0, (5, 1.5)), 0.25: "-"}


def everyone() -> dict[str, Method]:
    """All methods in the box, CSGLD with ICSGLD's field, and ICSGLD with wider bins."""
    known = methods(boundaries.reject())
    (single, start), (interacting, five) = known["CSGLD×T5"], known["ICSGLD×P5"]
    new_field = Method(replace(single, tempering=interacting.tempering), start)
    wide = Method(replace(interacting, tempering=contour(partition=Partition(-5.0, 0.5, 25))), five)
    return known | {NEW_FIELD: new_field, WIDE: wide}


def measure(study: Study) -> dict[str, Any]:
    """KL (method, factor, repeat); ICSGLD's shares of energies and multipliers, (factor, bin)."""
    n_chains, share = study.size((24, 1.0), (4, 0.1))
    masses, found = box_masses(CELLS), everyone()
    kl, shares, low, multipliers = [], [], [], []
    for name in LINES:
        scaled = with_step_sizes(found[name], np.repeat(FACTORS, n_chains))
        settings: dict[str, Any] = {"keep_energies": name == "ICSGLD×P5", "threads": None}
        run = run_method(study, name, BOXED, scaled, FACTORS.size * n_chains, share, **settings)
        kl.append(kl_path(run.draws, masses, CELLS, CELLS, weights=run.weights).reshape(FACTORS.size, n_chains))
        if name == "ICSGLD×P5":
            assert run.energies is not None
            energies = np.swapaxes(run.energies, 1, 2).reshape(run.weights.shape)
            for rows in np.split(np.arange(len(energies)), FACTORS.size):
                shares.append(energy_histogram(energies[rows], ENERGIES, weights=run.weights[rows]).shares)
                lowest = energy_histogram(energies[rows], LOWEST, weights=run.weights[rows])
                low.append([lowest.shares[0], lowest.standard_errors[0]])
                multipliers.append(multiplier(run.theta[rows], run.counts.visits[rows]))
    return {
        "kl": kl,
        "floor": expected_kl(masses, run.draws.shape[1]),
        "shares": shares,
        "true_shares": box_energies(ENERGIES),
        "low": low,
        "true_low": box_energies(LOWEST)[0],
        "multipliers": multipliers,
    }


def multiplier(theta: Any, visits: Any) -> Any:
    """Mean over repeats of 1 + ζ (log θ(J) − log θ(J−1)) / Δu, (bin,); nan for bins of few visits."""
    logs = np.log(np.maximum(theta, 1e-300))
    values = 1.0 + 0.75 * np.diff(logs, axis=1, prepend=logs[:, :1]) / PARTITION.width
    often = (visits > 1e-3 * visits.sum(axis=1, keepdims=True)).all(axis=0)
    below = np.concatenate([[False], (visits > 0).all(axis=0)[:-1]])
    return np.where(often & below, values.mean(axis=0), np.nan)


def draw(data: Data) -> Figure:
    """Three panels."""
    figure, axes = plt.subplots(1, 3, figsize=(style.WIDTH, 3.2), width_ratios=[1.3, 1.0, 1.0])
    means, errors = means_and_errors(data["kl"])
    for name, line, mean, bar in zip(LINES, LINES.values(), means, errors, strict=True):
        axes[0].errorbar(FACTORS, mean, bar, label=name, markersize=3, **line)
    axes[0].axhline(data["floor"], label="independent draws", **style.TRUTH)
    axes[0].set(xscale="log", yscale="log", xlabel="step size over the paper's", xticks=FACTORS)
    axes[0].set_xticks(FACTORS, ["⅛", "¼", "½", "1", "2", "4"])
    axes[0].minorticks_off()
    axes[0].yaxis.set_major_locator(LogLocator(10.0, (1.0, 2.0, 5.0)))
    axes[0].yaxis.set_major_formatter("{x:g}")
    axes[0].set_ylabel("KL(truth ‖ draws) at full cost, nats")
    for factor, dashes in SHOWN.items():
        i = int(np.argmin(np.abs(FACTORS - factor)))
        settings: dict[str, Any] = {"color": style.DARK, "linestyle": dashes, "label": f"h = {3e-3 * factor:g}"}
        axes[1].stairs(data["shares"][i] / data["true_shares"], ENERGIES, baseline=None, **settings)
        axes[2].plot(PARTITION.edges[:-1], data["multipliers"][i], drawstyle="steps-post", **settings)
    axes[1].axhline(1.0, **style.TRUTH)
    axes[2].axhline(LIMIT, color="black", linewidth=0.9, linestyle=(0, (1, 2)))
    axes[1].set(xlabel="energy $U$, nats", ylabel="share of draws over the truth's", ylim=(0.0, None))
    axes[2].set(xlabel="energy $U$, nats", ylabel="multiplier of the gradient", xlim=(-5.0, 2.0))
    axes[1].legend(loc="lower right")
    axes[2].annotate("above, h = 0.003\novershoots the modes", (2.0, LIMIT), (0, -4), textcoords="offset points",
                     ha="right", va="top", fontsize=7)  # fmt: skip
    for panel, title in zip(
        axes, ("(a) KL by step size", "(b) ICSGLD×P5: energies", "(c) ICSGLD×P5: multiplier"), strict=True
    ):
        panel.set_title(title, loc="left")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, handlelength=3.0)
    return figure


def table(data: Data) -> list[dict[str, Any]]:
    """One row per method and factor."""
    repeats = data["kl"].shape[2]
    return [
        {
            "method": name,
            "factor": float(factor),
            "kl": float(data["kl"][m, f].mean()),
            "kl_standard_error": float(data["kl"][m, f].std(ddof=1) / repeats**0.5),
            "floor": float(data["floor"]),
        }
        for m, name in enumerate(LINES)
        for f, factor in enumerate(FACTORS)
    ]


def best(data: Data, name: str) -> tuple[float, float]:
    """Least mean KL over the factors, and its standard error."""
    values = data["kl"][list(LINES).index(name)]
    return mean_and_error(values[np.argmin(values.mean(axis=1))])


def compare(data: Data) -> list[Claim]:
    """ICSGLD beside every baseline, each at its best step size; how far energies are off at the paper's."""
    claims = []
    interacting = best(data, "ICSGLD×P5")
    for name in ("SGLD×P5", "cycSGLD×T5", "reSGLD×P5", "CSGLD×T5", "reSGHMC×P2"):
        what = f"KL of {name} over KL of ICSGLD×P5, each at its best step size, all in the box (ICSGLD better: above 1)"
        why = (
            "at barriers of 4 nats swaps mix the modes faster than a flattened energy" if name.startswith("re") else ""
        )
        value = ratio_and_error(best(data, name), interacting)
        if name == "reSGHMC×P2":
            claims.append(Claim(what, np.nan, *value, "lower", why=why))
        else:
            claims.append(said_above(what, 1.0, value, "figure 6, “converges faster than all the others”", why))
    for factor in SHOWN:
        share, error = data["low"][np.argmin(np.abs(FACTORS - factor))] / data["true_low"]
        what = f"ICSGLD×P5's share of energies below −3.25 over the truth's, h = {3e-3 * factor:g}"
        claims.append(Claim(what, AUTHORS if factor == 1.0 else np.nan, share, error, 1.0, source="one run of it",
                            origin=AUTHORS_CODE))  # fmt: skip
    return claims


if __name__ == "__main__":
    run_script(__file__)
