"""r2SGLD (2024), figure 5: nine samplers on 25 modes in a flower, their densities and KL(truth ‖ draws).

Equal cost: every method makes 20 gradient evaluations per kept draw, after a fifth as many for burn-in. From the paper
and its released code: step sizes 5e-4 (SGLD), 1e-3 in 5 cycles with floor 1e-4 and noise always on (cycSGLD), 5e-4 and
1.5e-3 at temperatures 1 and 10 (reSGLD); gradient and energy noise 0.05. Our choices: chains start at uniform random
points of the flower; penalty λ = 10, as the paper gives none; swaps by u < S with the correction that fits the noise.
P-SGLD, P-cycSGLD and P-reSGLD have the paper's penalty, which has no law; "(ours)" are the same with the penalty by
the distance from the domain, λ = 400 (figures/papers/r2sgld/nine_samplers.py). (e) has the paper's nine, with 95 %
intervals, (f) r2SGLD beside what the paper does not have. One curve is the released rule (swap wherever S ≥ 3e-4,
correction 9.5). Being biased towards a flatter law, it fills rare cells sooner than independent draws of the right
one, lies below their curve at first, and then stays where its bias is. Our composition is reflected replica exchange
with momentum (r2SGHMC) at r2SGLD's step sizes, temperatures and cost, friction 0.1: the best of nine variants that
were tried on the flower and the heart.
"""

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from figures import Claim, Data, Study, density, kl_curve, run_script
from figures.papers.r2sgld.nine_samplers import (
    COMPOSITION,
    EVALUATIONS,
    NINE,
    OWN_PENALTY,
    composition,
    measure_samplers,
    nine_samplers,
    order_of_nine,
    with_own_penalty,
)
from figures.plots import style
from figures.plots.kl_curves import interval
from targets import shapes
from toolkit import samplers
from toolkit.diagnostics import equivalent_draws

SEED = 2024
DIFFERS = (
    "The paper's curves are in units of its own (nats times the cell's area, dominated by empty cells) and its "
    "released swap rule is biased; here KL is in nats above a stated floor, and swaps follow the printed equation."
)
SHAPE = shapes.flower(petals=5, offset=3.0, radius=2.0)
EDGES = np.linspace(-2.5, 2.5, 101)
RELEASED = samplers.r2sgld(correction=9.5, swap_threshold=3e-4, gradient_noise=0.05, energy_noise=0.05)
SHOWN = ("R-SGLD", "R-cycSGLD", "r2SGLD")
COLOURS = {"cyc": style.MEDIUM, "re": style.DARK, "r2": style.DARK}
DASHES = {"P-": (0, (4, 1.5)), "R-": "-", "r2": "-"}
OWN_DASHES = (0, (4, 1.2, 1, 1.2, 1, 1.2))
RELEASED_NAME, EXACT = "r2SGLD (released swap)", "independent draws"
BESIDE = (RELEASED_NAME, COMPOSITION, *OWN_PENALTY)


def measure(study: Study) -> dict[str, Any]:
    """Run all methods."""
    n_draws, n_chains = study.size((50_000, 10), (2_000, 4))
    methods = {
        **nine_samplers(), RELEASED_NAME: RELEASED, COMPOSITION: composition(), **with_own_penalty()
    }  # fmt: skip
    return measure_samplers(
        study, SHAPE, methods, n_draws=n_draws, n_chains=n_chains,
        edges=(EDGES, EDGES), n_checkpoints=25, shown=SHOWN,
    )  # fmt: skip


def line_of(method: str) -> dict[str, Any]:
    """The style of a curve: colours by exploration, dashes by boundary."""
    if method == EXACT:
        return {"color": "0.6", "linewidth": 2.5, "zorder": 0}
    if method == COMPOSITION:
        return {"color": style.FIFTH, "linestyle": (0, (3, 1, 1, 1))}
    if method == RELEASED_NAME:
        return {"color": style.FOURTH, "linestyle": (0, (6, 1, 1, 1))}
    colour = next((c for part, c in COLOURS.items() if method.removeprefix("P-").removeprefix("R-").startswith(part)),
                  style.LIGHT)  # fmt: skip
    dashes = OWN_DASHES if method in OWN_PENALTY else DASHES.get(method[:2], (0, (1, 1.2)))
    return {"color": colour, "linestyle": dashes}


def draw(data: Data) -> Figure:
    """Densities of one chain above, all curves below."""
    figure = plt.figure(figsize=(style.WIDTH, 6.1))
    above, below = figure.subfigures(2, 1, height_ratios=[1.2, 2.1])
    panels = above.subplots(1, 4)
    masses = data["masses"]
    highest = float(masses.max()) / (EDGES[1] - EDGES[0]) ** 2  # of the truth; draws above it are shown in its colour
    titles = ["truth\n", *(f"{method}\none chain" for method in SHOWN)]
    for panel, letter, title, cells in zip(panels, "abcd", titles, [masses, *data["shares"]], strict=True):
        image = density(cells, panel, x_edges=EDGES, y_edges=EDGES, shape=SHAPE, highest=highest)
        panel.set(title=f"({letter}) {title}", xlabel="$x_1$", xticks=[-2, 0, 2], yticks=[-2, 0, 2])
        panel.tick_params(labelleft=panel is panels[0])
    panels[0].set_ylabel("$x_2$")
    above.colorbar(image, ax=panels, label="density", shrink=0.85, pad=0.01, extend="max")
    heads = (f"(e) the paper's nine, mean of {data['kl'].shape[1]} chains", "(f) r2SGLD, and not in the paper")
    highest, lowest = data["kl"].mean(axis=1).max(), data["floor"].min()
    for part, title, methods, n_columns in zip(
        below.subfigures(1, 2), heads, ((*NINE, EXACT), ("r2SGLD", *BESIDE, EXACT)), (3, 2), strict=True
    ):
        axes = part.subplots()
        draw_curves(axes, data, methods)
        axes.set(ylim=(0.8 * lowest, 1.4 * highest), ylabel="KL(truth ‖ draws), nats")
        axes.set_title(title, loc="left")
        part.legend(*by_rows(axes, n_columns), loc="outside lower center", ncols=n_columns, handlelength=2.6,
                    columnspacing=1.0)  # fmt: skip
    return figure


def draw_curves(axes: Any, data: Data, methods: Sequence[str]) -> None:
    """KL over cost of these methods, mean and 95 % interval over chains."""
    paths, cost = dict(zip(data["methods"].tolist(), data["kl"], strict=True)), EVALUATIONS * data["checkpoints"]
    for method in methods:
        kl_curve(cost, paths[method], axes, label=method, **line_of(method))
    axes.set(xscale="log", yscale="log", xlim=(cost[0], cost[-1]))
    axes.set_xlabel("gradient evaluations per chain")


def by_rows(axes: Any, n_columns: int) -> tuple[list[Any], list[str]]:
    """Handles and labels in an order by which a legend of so many columns reads row by row."""
    handles, labels = axes.get_legend_handles_labels()
    order = [i for column in range(n_columns) for i in range(column, len(labels), n_columns)]
    return [handles[i] for i in order], [labels[i] for i in order]


def table(data: Data) -> list[dict[str, Any]]:
    """One row per method and checkpoint: mean KL, its interval, the floor, and what the draws are worth."""
    means, half_widths = zip(*(interval(path) for path in data["kl"]), strict=True)
    worth = equivalent_draws(np.array(means), data["masses"])
    return [
        {
            "method": method,
            "draws": int(draws),
            "gradient_evaluations": EVALUATIONS * int(draws),
            "kl_nats": float(means[m][i]),
            "kl_half_width_95": float(half_widths[m][i]),
            "kl_of_independent_draws": float(data["floor"][i]),
            "worth_independent_draws": float(worth[m, i]),
            "swap_rate": float(data["swap_rates"][m]),
            "share_outside": float(data["outside"][m]),
        }
        for m, method in enumerate(data["methods"].tolist())
        for i, draws in enumerate(data["checkpoints"])
    ]


def compare(data: Data) -> list[Claim]:
    """The paper's order of the nine, and the distance to independent draws."""
    return order_of_nine(data, "flower")


if __name__ == "__main__":
    run_script(__file__)
