"""The index process of replica exchange: on which rung every walker is, step by step."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

from toolkit import Run
from toolkit.errors import check_array, check_count, check_instance, is_a, shown

from ..arrays import Array, Integers
from .style import LIGHT, MEDIUM

GREY = "0.75"  # grey: a walker that has been at neither end, or is not the one to look at


def swaps(
    source: Any, axes: Any, *, chain: int = 0, highlight: int | None = None, at: Any = None, **line: Any
) -> list[LineCollection]:
    """Draw the rung of every walker over the steps into ``axes``; one collection of lines per walker.

    A walker is a state on its way through the rungs, named by the rung it began on. source: a Run of replica exchange
    with a trace, or with statistics of draws of all replicas (``keep_replicas``), of which ``chain`` is drawn; or the
    walkers (replica, time) that sit on the rungs, coldest first. at: (time,), the steps of an array; None: 0, 1, ….
    Blue: on its way up, since it was last at the coldest rung and not at the hottest; orange: on its way down; grey:
    before it was at either end. A round trip is a blue stretch and an orange one. highlight: the walker to draw in
    blue, all others being grey. ``line``: settings of the lines.
    Raises TypeError or ValueError naming the argument where something is off.
    Picture: docs/plots.png, (g).
    """
    check_instance("axes", axes, Axes)
    if is_a(source, Run):
        if at is not None:
            raise ValueError(f"at must be None for a Run, which knows its steps, got {shown(at)}")
        check_count("chain", chain, at_least=0, below=source.n_chains)
        steps, walkers = walkers_of(source, chain)
    else:
        check_count("chain", chain, at_least=0, below=1)
        walkers = check_array("source", source)
        if walkers.ndim != 2 or walkers.shape[1] == 0:
            raise ValueError(f"source must be a Run or walkers (replica, time), got an array of {walkers.shape}")
        steps = np.arange(float(walkers.shape[1])) if at is None else check_array("at", at)
        if steps.shape != walkers.shape[1:]:
            raise ValueError(f"at must have shape {walkers.shape[1:]}, got {steps.shape}")
    n = len(walkers)
    if (np.sort(walkers, axis=0) != np.arange(n)[:, None]).any():
        raise ValueError(f"source must have each of the {n} walkers on one rung at every time, got others")
    if highlight is not None:
        check_count("highlight", highlight, at_least=0, below=n)
    rungs = np.argsort(walkers, axis=0)  # the inverse permutation: (walker, time)
    artists = []
    for walker in range(n) if highlight is None else [*(w for w in range(n) if w != highlight), highlight]:
        pieces, colours = segments_of(steps, rungs[walker], directions(rungs[walker], n))
        if highlight is not None:
            colours = [MEDIUM if walker == highlight else GREY] * len(pieces)
        settings = {"linewidths": 0.8, "zorder": 2.0 + 0.5 * (walker == highlight)} | line
        artists.append(axes.add_collection(LineCollection(pieces, colors=colours, **settings)))
    axes.autoscale_view()
    if n <= 12:
        axes.set_yticks(range(n))
    return artists


def walkers_of(run: Run, chain: int) -> tuple[Array, Array]:
    """Steps (time,) and walkers (replica, time) of a chain, of the trace or of the draws."""
    n = run.sampler.n_replicas
    if run.trace is not None and n > 1:
        steps, walkers = run.trace.steps, run.trace.fields["walker"][chain]
    elif run.statistics is not None and run.statistics.walker.shape[1] == n > 1:
        steps, walkers = run.steps, run.statistics.walker[chain]
    else:
        raise ValueError(
            f"source must be a Run of several replicas with trace_every or keep_replicas=True, got {shown(run)}"
        )
    if steps.size == 0:
        raise ValueError("source must hold at least one time, got none")
    return steps.astype(np.float64), walkers.astype(np.float64)


def directions(rungs: Integers, n: int) -> Integers:
    """Of a walker, at each time: 1 since it was at rung 0, −1 since it was at rung n − 1, 0 before either (time,)."""
    end = np.where(rungs == 0, 1, np.where(rungs == n - 1, -1, 0))
    last = np.maximum.accumulate(np.where(end != 0, np.arange(end.size), 0))
    return end[last]


def segments_of(steps: Array, rungs: Integers, direction: Integers) -> tuple[list[Array], list[str]]:
    """Lines of one direction each, which end where the next begins, and their colours."""
    points = np.stack([steps, rungs.astype(np.float64)], axis=1)
    starts = np.concatenate([[0], np.flatnonzero(np.diff(direction)) + 1])
    ends = np.append(starts[1:], len(points) - 1)
    pieces = [points[first : last + 1] for first, last in zip(starts, ends, strict=True)]
    return pieces, [{1: MEDIUM, -1: LIGHT, 0: GREY}[int(direction[first])] for first in starts]
