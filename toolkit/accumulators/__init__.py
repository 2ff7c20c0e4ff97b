"""Accumulators: statistics of draws, updated while these are drawn, so that no draw need be stored."""

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from .cells import HistogramSoFar, histogram
from .energies import BestPoint, EnergiesSoFar, best_point, energy_histogram
from .grid_kl import KlSoFar, kl
from .running_moments import BatchMeansSoFar, MomentsSoFar, batch_means, moments

__all__ = [
    "Accumulator",
    "BatchMeansSoFar",
    "BestPoint",
    "EnergiesSoFar",
    "HistogramSoFar",
    "KlSoFar",
    "MomentsSoFar",
    "batch_means",
    "best_point",
    "energy_histogram",
    "histogram",
    "kl",
    "moments",
]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
State = dict[str, NDArray[Any]]


@runtime_checkable
class Accumulator(Protocol):
    """What ``sample`` and ``stream`` need of an accumulator.

    Where numbers of its state are places in memory or end a loop, it also has ``is_valid(state) -> bool``, which a
    checkpoint asks before it goes on with a state from a file. Where steps count that leave no draw, it also has
    ``advance_to(state, step)``, which is told the steps done before the result is asked for; told or not, a state must
    then go on to the same bits. On a GPU the toolkit's own take in draws where these are written; any
    other runs on the host, to which draws are then brought.
    """

    @property
    def needs_energies(self) -> bool:
        """Whether ``update`` wants the draws' energies."""

    def start(self, problem: Any, n_chains: int) -> State:
        """The state before the first draw: arrays by name, chains first. Raises where it does not fit the problem."""

    def update(
        self, state: State, draws: Floats, weights: Floats | None, energies: Floats | None, steps: Integers
    ) -> None:
        """Take in draws (chain, draw, dim) with weights and energies (chain, draw), and their steps (draw,), in place.

        The state must come out the same, bit for bit, wherever the draws are cut into calls; and a call may be given
        some of the chains, with their part of the state, while another thread takes in others.
        """

    def result(self, state: State) -> Any:
        """What has come of it: a NamedTuple of arrays."""


def check_accumulators(accumulators: Any) -> dict[str, Accumulator]:
    """A copy of ``accumulators``, or none for None. Raises TypeError where they are no mapping of names to such."""
    if accumulators is None:
        return {}
    if not isinstance(accumulators, Mapping):
        raise TypeError(
            f"accumulators must be a mapping from names to accumulators, got {accumulators!r} of type "
            f"{type(accumulators).__name__}"
        )
    for name, accumulator in accumulators.items():
        if not isinstance(name, str) or not name:
            raise TypeError(f"accumulators must have names that are words, got {name!r}")
        if isinstance(accumulator, type) or not isinstance(accumulator, Accumulator):
            raise TypeError(f"accumulators[{name!r}] must be an accumulator, got {accumulator!r}")
    return dict(accumulators)
