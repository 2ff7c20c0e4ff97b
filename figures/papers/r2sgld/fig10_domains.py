"""r2SGLD (2024), figure 10: 25 modes in a heart, an octagon and a cross, by the truth and three reflected samplers.

Settings and equal cost as in figure 5 (figures/papers/r2sgld/nine_samplers.py), every domain of radius 2. Densities are
of one chain of 50,000 draws, on cells of side 0.05, a row on one scale; white: the edge. Right: KL(truth ‖ draws) of
the paper's nine samplers (blue: reflected), of the penalised ones with a penalty that has a law (wine: by the distance
from the domain, λ = 400, "ours"), and of our composition, reflected replica exchange with momentum (r2SGHMC: the same
step sizes and temperatures, friction 0.1, the best of nine variants that were tried on the flower and the heart), mean
and 95 % interval over ten chains; the grey line is what as many independent draws have on average.
"""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from figures import Claim, Data, Study, density, run_script
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
from targets.shapes import Shape

SEED = 2024
DIFFERS = (
    "The paper shows one run of three samplers and no number; the nine are counted here on every domain at equal cost, "
    "and swaps follow the printed equation, not the released rule."
)
SHAPES: dict[str, Shape] = {
    "heart": shapes.heart(radius=2.0), "octagon": shapes.polygon(sides=8, radius=2.0), "cross": shapes.cross(radius=2.0)
}  # fmt: skip
SHOWN = ("r2SGLD", "R-cycSGLD", "R-SGLD")
CELL = 0.05


def edges_of(shape: Shape) -> tuple[Any, Any]:
    """Edges of square cells that cover the domain."""
    low_x, low_y, high_x, high_y = np.concatenate([shape.rings[0].min(axis=0), shape.rings[0].max(axis=0)])
    spans = ((np.floor(low / CELL), np.ceil(high / CELL)) for low, high in ((low_x, high_x), (low_y, high_y)))
    x, y = (CELL * np.arange(first, last + 1) for first, last in spans)
    return x, y


def measure(study: Study) -> dict[str, Any]:
    """The nine, the composition and our penalty on every domain."""
    n_draws, n_chains = study.size((50_000, 10), (2_000, 4))
    methods = {**nine_samplers(), COMPOSITION: composition(), **with_own_penalty()}
    return {
        f"{name}: {key}": value
        for name, shape in SHAPES.items()
        for key, value in measure_samplers(
            study, shape, methods, n_draws=n_draws, n_chains=n_chains, edges=edges_of(shape), n_checkpoints=7,
            shown=SHOWN,
        ).items()
    }  # fmt: skip


def of_shape(data: Data, name: str) -> Data:
    """What was measured on one domain."""
    return {key.removeprefix(f"{name}: "): value for key, value in data.items() if key.startswith(f"{name}: ")}


def draw(data: Data) -> Figure:
    """A row per domain: four densities and the numbers."""
    figure, rows = plt.subplots(3, 5, figsize=(style.WIDTH, 5.7), width_ratios=[1, 1, 1, 1, 0.9])
    letters = iter("abcdefghijklmno")
    for row, (name, shape) in zip(rows, SHAPES.items(), strict=True):
        numbers, (x, y) = of_shape(data, name), edges_of(shape)
        highest = float(numbers["masses"].max()) / CELL**2
        pictures = [numbers["masses"], *numbers["shares"]]
        for panel, title, cells in zip(row, (f"{name}, truth", *SHOWN), pictures, strict=False):
            density(cells, panel, x_edges=x, y_edges=y, shape=shape, highest=highest)
            panel.set_title(f"({next(letters)}) {title}", fontsize=7)
            panel.set(xticks=[-2, 0, 2], yticks=[-2, 0, 2])
            panel.tick_params(labelleft=panel is row[0])
        row[0].set_ylabel("$x_2$")
        draw_numbers(row[4], numbers, next(letters), name)
    for panel in rows[-1][:4]:
        panel.set_xlabel("$x_1$")
    rows[-1][4].set_xlabel("KL, nats")
    keys: dict[str, dict[str, Any]] = {
        "reflected": {"color": style.MEDIUM}, "our penalty": {"color": style.FIFTH},
        "the paper's penalty, or none": {"color": style.DARK},
    }  # fmt: skip
    handles = [Line2D([], [], marker="o", markersize=3, linewidth=0.9, **line) for line in keys.values()]
    handles.append(Line2D([], [], **style.TRUTH))
    names = [*keys, "as many independent draws"]
    figure.legend(handles, names, loc="outside lower right", ncols=4, title_fontsize=7,
                  title="KL(truth ‖ draws) at the end, mean and 95 % interval over chains")  # fmt: skip
    return figure


def draw_numbers(axes: Any, numbers: Data, letter: str, name: str) -> None:
    """Last KL of every method, our penalty below the paper's."""
    means, half_widths = (
        dict(zip(numbers["methods"], row, strict=False)) for row in interval(numbers["kl"][:-1, :, -1].T)
    )
    methods = [*NINE[:6], *OWN_PENALTY, *NINE[6:], COMPOSITION]
    places = -np.arange(len(methods))
    highest = [means[method] + half_widths[method] for method in methods]
    blue, wine = (*SHOWN, COMPOSITION), OWN_PENALTY
    axes.axvline(numbers["floor"][-1], **style.TRUTH)
    for method, y in zip(methods, places, strict=True):
        colour = style.MEDIUM if method in blue else style.FIFTH if method in wine else style.DARK
        axes.errorbar(means[method], y, xerr=half_widths[method], fmt="o", color=colour, markersize=2.5, linewidth=0.9)
    axes.set_yticks(places, methods, fontsize=5.5)
    axes.set(xscale="log", ylim=(places[-1] - 0.7, 0.7))
    axes.set_xticks([0.03, 0.1, 0.3, 1.0], ["0.03", "0.1", "0.3", "1"])
    axes.minorticks_off()
    axes.set_xlim(left=min(0.02, 0.8 * float(numbers["floor"][-1])), right=max(2.0, 1.1 * max(highest)))
    axes.set_title(f"({letter}) {name}, KL", fontsize=7)


def table(data: Data) -> list[dict[str, Any]]:
    """One row per domain, method and checkpoint."""
    rows = []
    for name in SHAPES:
        numbers = of_shape(data, name)
        for m, method in enumerate(numbers["methods"].tolist()):
            means, half_widths = interval(numbers["kl"][m])
            for i, draws in enumerate(numbers["checkpoints"]):
                rows.append({
                    "domain": name, "method": method, "draws": int(draws),
                    "gradient_evaluations": EVALUATIONS * int(draws), "kl_nats": float(means[i]),
                    "kl_half_width_95": float(half_widths[i]), "kl_of_independent_draws": float(numbers["floor"][i]),
                    "swap_rate": float(numbers["swap_rates"][m]), "share_outside": float(numbers["outside"][m]),
                })  # fmt: skip
    return rows


def compare(data: Data) -> list[Claim]:
    """Whether r2SGLD is the best of the nine on every domain."""
    return [claim for name in SHAPES for claim in order_of_nine(of_shape(data, name), name)]


if __name__ == "__main__":
    run_script(__file__)
