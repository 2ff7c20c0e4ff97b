"""Coefficients of terms with their intervals, equation by equation, and whether the terms are there."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from sysid import Discovery, Estimates
from toolkit.errors import check_number, is_a, shown

from .fits import check_empty_figure
from .style import DARK, MEDIUM

PRESENT = 0.5  # probability from which a mark is filled
SAID = 0.05  # probability from which that of a hollow mark is written, and above 1 − 0.005 it is no more
MARK: dict[str, Any] = {"marker": "o", "markersize": 4.5, "linestyle": "none"}


def terms(source: Any, figure: Any, *, least: float = 0.0) -> dict[str, Axes]:
    """Draw all coefficients with their intervals into an empty ``figure``, a panel per equation; these by name.

    source: a Discovery, or Estimates whose names are of the form "dx:xy", for term xy in dx/dt; others share a panel
    without a name. A mark is at the median, a line from the lower to the upper end of the interval. Filled: inclusion
    probability ≥ ½; hollow: below. On the right: the median of what is filled, and the probability where that is from
    5 to 99 %. least: inclusion probability from which a term is shown, within [0, 1].
    figure: a Figure or a SubFigure without axes, some 2.2 inches wide for each equation and 0.2 high for each term.
    Raises TypeError or ValueError naming the argument where something is off, or where no term is to be shown.
    Picture: docs/discovery.png, below.
    """
    if not is_a(source, Discovery | Estimates):
        raise TypeError(f"source must be a Discovery or Estimates, got {shown(source)} of type {type(source).__name__}")
    least = check_number("least", least, at_least=0.0, at_most=1.0)
    table: Estimates = source.estimates if is_a(source, Discovery) else source
    groups: dict[str, list[int]] = {}
    for k, name in enumerate(table.names):
        if table.inclusion[k] >= least:
            groups.setdefault(name.rpartition(":")[0], []).append(k)
    if not groups:
        raise ValueError(f"least must leave a term, got {least:g} where the highest is {table.inclusion.max():g}")
    check_empty_figure(figure)
    panels = dict(zip(groups, figure.subplots(1, len(groups), squeeze=False)[0], strict=True))
    for name, chosen in groups.items():
        draw_terms(panels[name], table, chosen)
        panels[name].set_title(f"{name}/dt" if name else "parameters")
    marks = [
        Line2D([], [], color=MEDIUM, **MARK, label="there (probability ≥ ½)"),
        Line2D([], [], color=DARK, fillstyle="none", **MARK, label="not there"),
        Line2D([], [], linestyle="none", label="at the right: median, probability from 5 to 99 %"),
    ]
    figure.legend(handles=marks, loc="outside lower center", ncols=3)
    return panels


def draw_terms(axes: Axes, table: Estimates, chosen: list[int]) -> None:
    """Draw the terms of one equation, the first at the top."""
    rows = np.arange(len(chosen))
    axes.axvline(0.0, color="0.7", linestyle="-", linewidth=0.8, zorder=0)
    for row, k in zip(rows, chosen, strict=True):
        share = float(table.inclusion[k])
        is_there = share >= PRESENT
        colour = MEDIUM if is_there else DARK
        axes.plot([table.lower[k], table.upper[k]], [row, row], color=colour, linestyle="-", linewidth=1.2)
        axes.plot(table.median[k], row, color=colour, markerfacecolor=colour if is_there else "white", **MARK)
        words = [f"{table.median[k]:.4g}".replace("-", "−")] if is_there else []
        words += [f"{share:.0%}"] if SAID <= share < 0.995 else []
        axes.annotate(
            ", ".join(words), (1.02, row), xycoords=("axes fraction", "data"), va="center", fontsize="small",
            annotation_clip=False,
        )  # fmt: skip
    axes.set_yticks(rows, [table.names[k].rpartition(":")[2] for k in chosen])
    axes.set_ylim(len(chosen) - 0.5, -0.5)
    axes.margins(x=0.1)
    axes.set_xlabel("coefficient")
