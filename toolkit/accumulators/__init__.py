"""Accumulators: statistics of draws, updated while these are drawn, so that no draw need be stored."""

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ..errors import is_a, shown
from .cells import HistogramSoFar, PooledHistogram, histogram
from .chain_tree import pooled
from .energies import BestPoint, EnergiesSoFar, PooledBestPoint, PooledEnergies, best_point, energy_histogram
from .grid_kl import KlSoFar, PooledKl, kl
from .running_moments import BatchMeansSoFar, MomentsSoFar, PooledBatchMeans, PooledMoments, batch_means, moments

__all__ = [
    "Accumulator",
    "BatchMeansSoFar",
    "BestPoint",
    "EnergiesSoFar",
    "HistogramSoFar",
    "KlSoFar",
    "MomentsSoFar",
    "PooledBatchMeans",
    "PooledBestPoint",
    "PooledEnergies",
    "PooledHistogram",
    "PooledKl",
    "PooledMoments",
    "batch_means",
    "best_point",
    "energy_histogram",
    "histogram",
    "kl",
    "moments",
    "pooled",
]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
State = dict[str, NDArray[Any]]


@runtime_checkable
class Accumulator(Protocol):
    """What ``sample`` and ``stream`` need of an accumulator.

    If its state has indices or loop bounds, it also has ``is_valid(state) -> bool``, which a checkpoint calls before it
    resumes with a state from a file. If steps without a draw matter, it also has ``advance_to(state, step)``, which is
    called with the steps done before ``result``; later updates must give the same bits with and without that call. On a
    GPU the toolkit's own accumulators run on the device; all others run on the host, to which draws are then copied.
    """

    @property
    def needs_energies(self) -> bool:
        """Whether ``update`` needs the draws' energies."""

    def start(self, problem: Any, n_chains: int) -> State:
        """The state before the first draw: arrays by name, chains first. Raises where it does not fit the problem."""

    def update(
        self, state: State, draws: Floats, weights: Floats | None, energies: Floats | None, steps: Integers
    ) -> None:
        """Add draws (chain, draw, dim) with weights and energies (chain, draw), and their steps (draw,), in place.

        The state must be the same bit for bit however the draws are divided into calls; and a call may have only some
        of the chains, with their part of the state, while another thread updates others.
        """

    def result(self, state: State) -> Any:
        """The result: a NamedTuple of arrays."""


def check_accumulators(accumulators: Any) -> dict[str, Accumulator]:
    """A copy of ``accumulators``, empty for None. Raises TypeError where they do not map names to accumulators."""
    if accumulators is None:
        return {}
    if not is_a(accumulators, Mapping):
        raise TypeError(
            f"accumulators must be a mapping from names to accumulators, got {shown(accumulators)} of type "
            f"{type(accumulators).__name__}"
        )
    for name, accumulator in accumulators.items():
        if not is_a(name, str) or not name:
            raise TypeError(f"accumulators must have names that are words, got {shown(name)}")
        if isinstance(accumulator, type) or not isinstance(accumulator, Accumulator):
            raise TypeError(f"accumulators[{shown(name)}] must be an accumulator, got {shown(accumulator)}")
    return dict(accumulators)
