"""Time series of a run's coordinates and traced fields, one line per chain."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from toolkit import Run
from toolkit.errors import check_array, check_count, check_instance, check_text, is_a, is_sequence, shown

from ..arrays import Array
from .named_draws import names_of, parameters_of


def traces(
    source: Any,
    axes: Any,
    *,
    field: str = "energy",
    replica: int = 0,
    chains: Any = None,
    at: Any = None,
    **line: Any,
) -> list[Line2D]:
    """Draw one quantity of ``source`` over the steps into ``axes``; a line for each chain.

    source: a Run, or an array (chain, time). field, of a Run: a coordinate of its draws as 'x[0]', a parameter's name
    where it is a run of an ``Identification``, or what its trace holds (``trace_every``): 'energy', 'multiplier',
    'walker', 'thermostat', 'xi', …; 'energy' also of the draws, where they were kept and there is no trace. replica:
    which one of a Run. chains: numbers of those to draw; None: all. at: (time,), the steps of an array; None: 0, 1, ….
    ``line``: settings of the lines.
    Raises TypeError or ValueError naming the argument where something is off.
    Picture: docs/plots.png, (h).
    """
    check_instance("axes", axes, Axes)
    check_text("field", field)
    if is_a(source, Run):
        if at is not None:
            raise ValueError(f"at must be None for a Run, which knows its steps, got {shown(at)}")
        steps, values = series_of(source, field, replica)
    else:
        values = check_array("source", source)
        if values.ndim != 2 or values.size == 0:
            raise ValueError(f"source must be a Run or an array (chain, time), got an array of {values.shape}")
        check_count("replica", replica, at_least=0, below=1)
        steps = np.arange(float(values.shape[1])) if at is None else check_array("at", at)
        if steps.shape != values.shape[1:]:
            raise ValueError(f"at must have shape {values.shape[1:]}, got {steps.shape}")
    wanted = range(len(values)) if chains is None else chosen(chains, len(values))
    settings = {"linestyle": "-", "linewidth": 0.6} | line
    return [axes.plot(steps, values[chain], **settings)[0] for chain in wanted]


def series_of(run: Run, field: str, replica: Any) -> tuple[Array, Array]:
    """Steps (time,) and values (chain, time) of one field of a run."""
    known = {f"x[{k}]": run.replica_draws[..., k] for k in range(run.replica_draws.shape[-1])}
    names = names_of(run)
    if names and run.replica_draws.size:
        known |= dict(zip(names, np.moveaxis(parameters_of(run, run.replica_draws), -1, 0), strict=True))
    series = {name: (run.steps, values) for name, values in known.items()}
    if run.energies is not None:
        series["energy"] = (run.steps, run.energies)
    if run.trace is not None:
        series |= {name: (run.trace.steps, values) for name, values in run.trace.fields.items()}
    if field not in series:
        hint = "" if run.trace is not None else "; more with trace_every"
        raise ValueError(f"field must be one of {', '.join(series)}{hint}, got {shown(field)}")
    steps, values = series[field]
    if values.shape[2] == 0:
        raise ValueError(f"source must hold at least one time of {field}, got none")
    return steps.astype(np.float64), values[:, check_count("replica", replica, at_least=0, below=values.shape[1])]


def chosen(chains: Any, n: int) -> list[int]:
    """Numbers of chains, at least one, each of those there are."""
    if not is_sequence(chains) or not len(chains):
        raise TypeError(f"chains must be None or a sequence of numbers of chains, got {shown(chains)}")
    return [check_count(f"chains[{i}]", chain, at_least=0, below=n) for i, chain in enumerate(chains)]
