"""ICSGLD (2022), figure 6: KL(truth ‖ draws) against gradient evaluations and time, ICSGLD beside every baseline.

All methods make 400,000 gradient evaluations a repeat, 5,000 of them burn-in, and keep one draw per 20: ×P5 are five
replicas, ×T5 one with five times the steps. Settings of D.2, noise 0.25 on energies and gradients, starts of the
released code. 40 repeats (the paper has 20); bands are mean ± standard error. KL over cells of side 0.2, weighted
where the sampler has weights, with half a count added to each cell.

(a), (b) One domain for all: the box [−2.5, 2.5]², moves out of it taken back. (c) The paper's own comparison: only
CSGLD, ICSGLD and the truth in the box; of draws without a box 19.5 % are outside, so that their KL cannot fall below
0.217. (d) Nobody in a box, against the truth without one, on [−4.9, 4.9]².

reSGHMC×P2 is our composition: two rungs, T = (1, 5), h = (0.001, 0.005), friction 0.1, swaps at every step; the best
of some 25 with 2 to 4 rungs, with and without momentum, that keep one draw per 20 evaluations. Seconds are by the
clock, of one core of the machine that drew this, a method's repeats side by side, and longer where it had other work to
do: the only numbers that differ between two runs.
"""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from figures import Claim, Data, Study, kl_curve, run_script
from figures.arrays import Array
from figures.papers.icsgld.rugged_box import (
    BOXED,
    BURN_IN,
    CELLS,
    FREE,
    PER_DRAW,
    WIDE_CELLS,
    box_masses,
    methods,
    run_method,
)
from figures.plots import style
from figures.scripts.claims import DERIVED, said_above
from figures.scripts.statistics import mean_and_error, ratio_and_error
from toolkit import boundaries
from toolkit.diagnostics import equivalent_draws, expected_kl, kl_path

SEED = 2022
ALONE = True  # an axis is in seconds
DIFFERS = (
    "The paper's order, ICSGLD first, needs the box for CSGLD, ICSGLD and the truth alone, panel (c); on one domain "
    "ICSGLD ends below SGLD, cycSGLD and CSGLD at these step sizes, and replica exchange is below ICSGLD all along. "
    "Our replica exchange swaps with the correction that fits the noise, not one that begins at 30; our KL is over "
    "cells, the paper's by nearest neighbours."
)
LINES: dict[str, dict[str, Any]] = {
    "SGLD×P5": {"color": style.LIGHT, "linestyle": (0, (1, 1))},
    "cycSGLD×T5": {"color": style.LIGHT, "linestyle": "-"},
    "reSGLD×P5": {"color": style.MEDIUM, "linestyle": "-"},
    "CSGLD×T5": {"color": style.FIFTH, "linestyle": (0, (5, 1.5))},
    "ICSGLD×P5": {"color": style.FIFTH, "linestyle": "-"},
    "reSGHMC×P2": {"color": style.DARK, "linestyle": "-"},
}
CONTOUR = ("CSGLD×T5", "ICSGLD×P5")


def measure(study: Study) -> dict[str, Any]:
    """KL paths (method, chain, checkpoint) in the box and without it, against each truth, and seconds of one repeat."""
    n_chains, share = study.size((40, 1.0), (8, 0.1))
    assert FREE.truth is not None
    everywhere = FREE.truth.cell_masses(WIDE_CELLS, WIDE_CELLS)
    truths = {"box": (box_masses(CELLS), CELLS), "free": (everywhere, WIDE_CELLS)}
    n_draws = round(share * (400_000 - BURN_IN)) // PER_DRAW
    checkpoints = np.unique(np.geomspace(n_draws / 100, n_draws, study.size(25, 10)).astype(int))
    paths: dict[str, list[Array]] = {"box": [], "mixed": [], "free": []}
    seconds = []
    for name in LINES:
        boxed = run_method(study, f"{name}, box", BOXED, methods(boundaries.reject())[name], n_chains, share)
        free = run_method(study, f"{name}, no box", FREE, methods(boundaries.ignore())[name], n_chains, share)
        seconds.append(boxed.elapsed / n_chains)
        for key, run, (masses, cells) in (
            ("box", boxed, truths["box"]), ("mixed", free, truths["box"]), ("free", free, truths["free"])
        ):  # fmt: skip
            paths[key].append(kl_path(run.draws, masses, cells, cells, checkpoints, weights=run.weights))
    return {
        **{key: np.array(path) for key, path in paths.items()},
        **{f"floor_{key}": [expected_kl(masses, int(n)) for n in checkpoints] for key, (masses, _) in truths.items()},
        "masses": truths["box"][0],
        "inside": everywhere[12:37, 12:37].sum(),
        "draws": checkpoints,
        "evaluations": round(share * BURN_IN) + PER_DRAW * checkpoints,
        "seconds": seconds,
    }


def draw(data: Data) -> Figure:
    """Four panels."""
    figure, axes = plt.subplots(2, 2, figsize=(style.WIDTH, 6.0), sharey="row")
    at, least = data["evaluations"], -np.log(data["inside"])
    for i, (name, line) in enumerate(LINES.items()):
        boxed, settings = data["box"][i], {"label": name, "level": 0.683, **line}
        kl_curve(at, boxed, axes[0, 0], **settings)
        kl_curve(at / at[-1] * data["seconds"][i], boxed, axes[0, 1], **settings)
        kl_curve(at, boxed if name in CONTOUR else data["mixed"][i], axes[1, 0], **settings)
        kl_curve(at, data["free"][i], axes[1, 1], **settings)
    for panel, floor in ((axes[0, 0], "box"), (axes[1, 0], "box"), (axes[1, 1], "free")):
        panel.plot(at, data[f"floor_{floor}"], label="independent draws", **style.TRUTH)
    axes[1, 0].axhline(least, color="black", linewidth=0.8, linestyle=(0, (1, 2)))
    axes[1, 0].text(0.03, 0.05, f"dotted: least without a box, {least:.3f}", transform=axes[1, 0].transAxes, fontsize=7)
    titles = ("all in the box", "all in the box", "as the paper compares", "all without a box")
    for panel, letter, title in zip(axes.flat, "abcd", titles, strict=True):
        panel.set(xscale="log", yscale="log", xlabel="gradient evaluations per repeat")
        panel.set_title(f"({letter}) {title}", loc="left")
    axes[0, 1].set_xlabel("seconds of one core per repeat")
    for panel in axes[:, 0]:
        panel.set_ylabel("KL(truth ‖ draws), nats")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4, handlelength=3.5)
    return figure


def table(data: Data) -> list[dict[str, Any]]:
    """One row per method and checkpoint."""
    n_chains = data["box"].shape[1]
    worth = equivalent_draws(data["box"].mean(axis=1), data["masses"])
    columns = {key: "kl_" + name for key, name in (("box", "box"), ("mixed", "no_box_against_box"), ("free", "no_box"))}
    return [
        {"method": name, "gradient_evaluations": int(at), "draws": int(data["draws"][k])}
        | {column: float(data[key][i, :, k].mean()) for key, column in columns.items()}
        | {f"{c}_standard_error": float(data[key][i, :, k].std(ddof=1) / n_chains**0.5) for key, c in columns.items()}
        | {f"floor_{key}": float(data[f"floor_{key}"][k]) for key in ("box", "free")}
        | {"worth_independent_draws_box": float(worth[i, k])}
        | {"seconds": float(data["seconds"][i] * at / data["evaluations"][-1])}
        for i, name in enumerate(LINES)
        for k, at in enumerate(data["evaluations"])
    ]


def compare(data: Data) -> list[Claim]:
    """What D.2 says of figure 6: ICSGLD below every baseline, SGLD above all; and the floor that the box sets."""
    last = {
        (key, name): mean_and_error(data[key][i, :, -1])
        for key in ("box", "free", "mixed")
        for i, name in enumerate(LINES)
    }
    swaps = "replica exchange crosses these barriers of 4 nats more often"
    claims = []
    for key, where in (("box", "all in the box"), ("free", "all without a box"), ("mixed", "as the paper compares")):
        interacting = last["free" if key == "free" else "box", "ICSGLD×P5"]
        for name in LINES:
            what = f"KL of {name} over KL of ICSGLD×P5 at full cost, {where} (ICSGLD better: above 1)"
            why = swaps if name.startswith("re") and key != "mixed" else ""
            value = ratio_and_error(last[key, name], interacting)
            if name == "reSGHMC×P2" and key != "mixed":
                claims.append(Claim(what, np.nan, *value, "lower", why=why))
            elif name in ("SGLD×P5", "cycSGLD×T5", "reSGLD×P5") or (name == "CSGLD×T5" and key != "mixed"):
                claims.append(said_above(what, 1.0, value, "figure 6, “converges faster than all the others”", why))
    for name, words in (("cycSGLD×T5", "slowest … cycSGLD slightly alleviates"), ("CSGLD×T5", "the slowest"),
                        ("reSGLD×P5", "slowest … reSGLD greatly accelerates")):  # fmt: skip
        what = f"KL of SGLD×P5 over KL of {name} at full cost, all in the box (SGLD worse: above 1)"
        value = ratio_and_error(last["box", "SGLD×P5"], last["box", name])
        claims.append(said_above(what, 1.0, value, f"figure 6, “{words}”", BEHIND.get(name, "")))
    at_least = "KL of draws without a box against the truth in it, at least, nats"
    least = float(-np.log(data["inside"]))
    return [*claims, Claim(at_least, 0.217, least, 1e-6, 0.217, 5e-4, "quadrature", origin=DERIVED)]


BEHIND = dict.fromkeys(
    ("cycSGLD×T5", "CSGLD×T5"), "SGLD's five replicas start in five modes, the one long chain in one"
)


if __name__ == "__main__":
    run_script(__file__)
