"""Tempering: how replicas help each other over barriers; here replica exchange, its law and its block function."""

import math
from dataclasses import dataclass

import numpy as np
from numba import uint64

from .checks import check_count, check_number
from .compiling import kernel
from .maths import exp, select
from .philox import SWAP, uniform_pair


@dataclass(frozen=True)
class ReplicaExchange:
    """Numbers of the swap, as ``replica_exchange`` explains them."""

    correction: float | None = None
    swap_every: int = 1
    swap_threshold: float | None = None

    def __post_init__(self) -> None:
        if self.correction is not None:
            check_number("correction", self.correction, at_least=0.0)
        check_count("swap_every", self.swap_every, at_least=1)
        if self.swap_threshold is not None:
            check_number("swap_threshold", self.swap_threshold, above=0.0, at_most=1.0)


def replica_exchange(
    *, correction: float | None = None, swap_every: int = 1, swap_threshold: float | None = None
) -> ReplicaExchange:
    """Swap neighbouring rungs a (colder) and b with probability min(1, S), S = exp(δ (Ũ_a − Ũ_b − δ F)).

    Here δ = 1/T_a − 1/T_b, and the swap happens where u < S for a fresh uniform u. Pairs (0,1), (2,3), … and (1,2),
    (3,4), … take turns, so that each noisy energy serves one decision; with two replicas every attempt takes the
    one pair there is. While a schedule holds the temperature at 0 nothing is attempted.

    correction: F ≥ 0. For normal energy noise of standard deviation s per energy, F = s² leaves the swap exactly
    reversible (Ceperley & Dewing 1999: half the variance 2 s² of the difference); None means this F. In the
    paper's eq. 7, F = σ̃²/C.
    swap_every: steps between attempts, ≥ 1.
    swap_threshold: None, or in (0, 1]: swap if and only if min(1, S) ≥ swap_threshold, with no uniform. This is what
    the released code does (3e-4); it is biased, and kept because the paper's figure used it.
    Source: r2SGLD (2024), eq. 7 and algorithm 1. Raises ValueError where out of range.
    """
    return ReplicaExchange(correction, swap_every, swap_threshold)


@kernel
def swap_replicas(
    position, momentum, gradient, noisy_energy, temperature, alive, swapped, attempted, accepted,
    attempt, step, seed, chain, n_chains, n_replicas, correction, swap_threshold, counts,
):  # fmt: skip
    """Attempt the swaps of one step in a block whose lane of (replica r, chain c) is r · n_chains + c.

    Exchanged are position and gradient, and momentum scaled by √(T_new / T_old), which keeps it in
    equilibrium. A lane whose ``alive`` is 0 never swaps. ``swapped`` (lane) is scratch;
    ``attempted`` and ``accepted`` (pair, chain) count where ``counts``.
    """
    parity = attempt % min(2, n_replicas - 1)
    for pair in range(parity, n_replicas - 1, 2):
        cold = slice(pair * n_chains, (pair + 1) * n_chains)
        hot = slice((pair + 1) * n_chains, (pair + 2) * n_chains)
        cold_temperature, hot_temperature = temperature[cold], temperature[hot]
        cold_energy, hot_energy, cold_alive, hot_alive = noisy_energy[cold], noisy_energy[hot], alive[cold], alive[hot]
        for c in range(n_chains):
            slope = 1.0 / cold_temperature[c] - 1.0 / hot_temperature[c]
            exponent = slope * (cold_energy[c] - hot_energy[c] - slope * correction)
            u = uniform_pair(seed, chain[c], uint64(pair), uint64(step), uint64(SWAP), np.uint64(0))[0]
            bar = select(swap_threshold > 0.0, swap_threshold, u)
            swapped[c] = select(exp(exponent) >= bar, cold_alive[c] * hot_alive[c], 0.0)
        for d in range(position.shape[0]):
            exchange(position[d, cold], position[d, hot], swapped)
            exchange(gradient[d, cold], gradient[d, hot], swapped)
        for d in range(momentum.shape[0]):
            cold_momentum, hot_momentum = momentum[d, cold], momentum[d, hot]
            for c in range(n_chains):
                heat = select(swapped[c] != 0.0, math.sqrt(hot_temperature[c] / cold_temperature[c]), 1.0)
                cold_momentum[c] *= heat
                hot_momentum[c] /= heat
            exchange(cold_momentum, hot_momentum, swapped)
        if counts:
            for c in range(n_chains):
                attempted[pair, c] += 1
                accepted[pair, c] += np.int64(swapped[c])


@kernel
def exchange(first, second, swapped):
    """Exchange ``first`` and ``second``, each (chain,), where ``swapped`` is not 0."""
    for c in range(first.size):
        a, b = first[c], second[c]
        first[c] = select(swapped[c] != 0.0, b, a)
        second[c] = select(swapped[c] != 0.0, a, b)
