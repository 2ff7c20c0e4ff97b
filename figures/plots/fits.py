"""How trajectories fit data: data, the band of trajectories and residuals of each state."""

from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from sysid import Ensemble, Series
from sysid.data.series import check_measured_states, check_series, in_order
from toolkit.errors import check_instance, check_number, is_a, shown

from ..arrays import Array
from .style import DARK, MEDIUM

MOST_COLUMNS = 3  # states side by side
MANY = 200  # data, of which the marks are smaller
MARK: dict[str, Any] = {"color": DARK, "marker": ".", "linestyle": "none", "markeredgewidth": 0.0, "label": "data"}


class FitPanel(NamedTuple):
    """The axes of one state: data with the band, and residuals below."""

    states: Axes
    residuals: Axes


def fit(series: Any, ensemble: Any, figure: Any, *, level: float = 0.9) -> dict[str, FitPanel]:
    """Draw data and trajectories of each state measured into an empty ``figure``, residuals below; its panels by state.

    series: the data, a Series of the ensemble's quantities, or some of them. ensemble: what ``sysid.simulate``
    gives, or ``simulate`` of a Discovery, from the data's first time to its last, or a part of that: of the rest
    there is no band and no residual. level: share of trajectories within the band, of those that did not diverge.
    With errors of ``noise`` in the trajectories the band is one of data. Residuals: data minus the band's median,
    interpolated between its times, in the state's unit. figure: a Figure or a SubFigure without axes, some 2.2
    inches wide for each of up to three states side by side and 2.5 high for each row of them. Names and units are
    those of the series.
    Raises TypeError or ValueError naming the argument where something is off.
    Picture: docs/discovery.png, above.
    """
    check_instance("ensemble", ensemble, Ensemble)
    check_series("series", series)
    check_measured_states("series", series.states, ensemble.quantities, all_of_them=False)
    data = in_order("series", series, tuple(name for name in ensemble.quantities if name in series.states))
    level = check_number("level", level, above=0.0, below=1.0)
    columns = [ensemble.quantities.index(name) for name in data.states]
    low, median, high = ensemble.bands([0.5 - 0.5 * level, 0.5, 0.5 + 0.5 * level])[:, :, columns]
    if not np.isfinite(median).any():
        raise ValueError(f"ensemble must have a trajectory that did not diverge, got {shown(ensemble)}")
    check_empty_figure(figure)
    dim = len(data.states)
    n_columns = min(dim, MOST_COLUMNS)
    n_rows = -(-dim // n_columns)
    grid = figure.add_gridspec(2 * n_rows, n_columns, height_ratios=[3.0, 1.0] * n_rows)
    panels: dict[str, FitPanel] = {}
    for d, state in enumerate(data.states):
        row, column = divmod(d, n_columns)
        above = figure.add_subplot(grid[2 * row, column])
        below = figure.add_subplot(grid[2 * row + 1, column], sharex=above)
        panels[state] = FitPanel(above, below)
        draw_state(panels[state], data, d, ensemble.times, (low[:, d], median[:, d], high[:, d]), level)
    handles, labels = panels[data.states[0]].states.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return panels


def draw_state(
    panel: FitPanel, data: Series, d: int, times: Array, band: tuple[Array, Array, Array], level: float
) -> None:
    """Draw one state's data and band, and its residuals."""
    low, median, high = band
    values = data.values[:, d]
    words = f"{level:.0%} of trajectories"
    panel.states.fill_between(times, low, high, color=MEDIUM, alpha=0.3, linewidth=0.0, label=words)
    mark = {**MARK, "markersize": 2.5 if len(data) > MANY else 4.0}
    panel.states.plot(data.times, values, **mark)
    panel.states.plot(times, median, color=MEDIUM, linestyle="-", linewidth=1.0, label="median")
    inside = (data.times >= times[0]) & (data.times <= times[-1])
    panel.residuals.fill_between(times, low - median, high - median, color=MEDIUM, alpha=0.3, linewidth=0.0)
    panel.residuals.plot(data.times[inside], values[inside] - np.interp(data.times[inside], times, median), **mark)
    panel.residuals.axhline(0.0, color=MEDIUM, linestyle="-", linewidth=1.0)
    panel.states.tick_params(labelbottom=False)
    panel.states.set_ylabel(with_unit(data.states[d], data.units[d]))
    panel.residuals.set_ylabel("residual")
    panel.residuals.set_xlabel(with_unit("time", data.time_unit))


def with_unit(name: str, unit: str) -> str:
    """A label with its unit in brackets, where there is one."""
    return f"{name} ({unit})" if unit else name


def check_empty_figure(figure: Any) -> None:
    """Raise unless ``figure`` is an empty Figure or SubFigure; one without a layout gets a constrained one."""
    if not is_a(figure, Figure | SubFigure):
        raise TypeError(f"figure must be a Figure or a SubFigure, got {shown(figure)} of type {type(figure).__name__}")
    if figure.axes or figure.subfigs:
        raise ValueError(f"figure must be empty, got one with {len(figure.axes)} axes; a SubFigure of it will do")
    if is_a(figure, Figure) and figure.get_layout_engine() is None:
        figure.set_layout_engine("constrained")
