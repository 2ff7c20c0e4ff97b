"""Replica exchange: its law, its schemes, its correction for noisy energies, its state. ``swapping`` does it."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from . import signatures as s
from .checks import check_choice, check_count, check_flag, check_number

SCHEMES = ("deo", "seo", "adjacent", "all_pairs")
DEO, SEO, ADJACENT, ALL_PAIRS = range(4)


@dataclass(frozen=True)
class EstimatedCorrection:
    """Numbers of ``estimated_correction``."""

    every: int = 100
    evaluations: int = 10

    def __post_init__(self) -> None:
        check_count("every", self.every, at_least=1)
        check_count("evaluations", self.evaluations, at_least=2, below=2**16)


def estimated_correction(*, every: int = 100, evaluations: int = 10) -> EstimatedCorrection:
    """The correction F estimated as the run goes: mean noise variance of the two energies of a pair.

    Every ``every`` steps each replica's noisy energy is evaluated ``evaluations`` ≥ 2 times where it stands, and F
    moves towards the mean of the two sample variances with weight 1/n at the n-th estimate, for each pair and chain.
    Until the first estimate F is 0; it is estimated also where the schedule explores. every ≥ 1. Raises TypeError or
    ValueError where out of range.
    Source: Deng et al. (2020), algorithm 1; r2SGLD (2024), eq. 7.
    """
    return EstimatedCorrection(every, evaluations)


@dataclass(frozen=True)
class AdaptedCorrection:
    """Numbers of ``adapted_correction``."""

    target_rate: float
    gain: float = 1.0
    start: float = 0.0

    def __post_init__(self) -> None:
        check_number("target_rate", self.target_rate, above=0.0, below=1.0)
        check_number("gain", self.gain, above=0.0)
        check_number("start", self.start, at_least=0.0)


def adapted_correction(target_rate: float, *, gain: float = 1.0, start: float = 0.0) -> AdaptedCorrection:
    """The correction F of each pair moved until it swaps at ``target_rate``: δ²F ← max(0, δ²F + a_n (swap − rate)).

    swap is 1 or 0, a_n = gain / n^0.6 at the n-th step of the run at which swaps are due, counted where the schedule
    explores too and none is attempted, and nothing changes after the end of burn-in.
    target_rate in (0, 1); gain > 0, better 1 / target_rate where that is small; start ≥ 0, the first F. It tunes a rate
    and not a law: draws are unbiased only where F comes to fit the noise (``replica_exchange``), and a rate that F = 0
    does not reach is not reached. Raises TypeError or ValueError where out of range.
    Source: r2SGLD (2024), algorithm 2, with a gain that falls in place of its fixed γ, and an F per pair.
    """
    return AdaptedCorrection(target_rate, gain, start)


Correction = float | None | EstimatedCorrection | AdaptedCorrection


@dataclass(frozen=True)
class ReplicaExchange:
    """Numbers of the swap, as ``replica_exchange`` explains them."""

    correction: Correction = None
    swap_every: int = 1
    swap_threshold: float | None = None
    scheme: str = "deo"
    window: int = 1
    one_swap_per_window: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.correction, EstimatedCorrection | AdaptedCorrection) and self.correction is not None:
            check_number("correction", self.correction, at_least=0.0)
        check_count("swap_every", self.swap_every, at_least=1)
        if self.swap_threshold is not None:
            check_number("swap_threshold", self.swap_threshold, above=0.0, at_most=1.0)
        check_choice("scheme", self.scheme, SCHEMES)
        check_count("window", self.window, at_least=1)
        check_flag("one_swap_per_window", self.one_swap_per_window)
        if self.scheme != "deo" and (self.window > 1 or self.one_swap_per_window):
            raise ValueError(
                f"window and one_swap_per_window belong to scheme 'deo', got scheme {self.scheme!r}, window "
                f"{self.window} and one_swap_per_window={self.one_swap_per_window}"
            )

    def pairs(self, n_replicas: int) -> list[tuple[int, int]]:
        """Pairs of replicas that may swap, in the order of ``run.swap_rates``."""
        if self.scheme == "all_pairs":
            return [(a, b) for a in range(n_replicas - 1) for b in range(a + 1, n_replicas)]
        return [(a, a + 1) for a in range(n_replicas - 1)]

    def parameters(self, energy_noise: float, burn_in: int) -> NDArray[np.float64]:
        """The numbers as the kernels take them."""
        values = np.zeros(N_PARAMETERS)
        values[NOISE] = energy_noise
        values[THRESHOLD] = self.swap_threshold or 0.0
        values[SCHEME] = SCHEMES.index(self.scheme)
        values[WINDOW] = self.window
        values[GATED] = self.one_swap_per_window
        values[SWAP_EVERY] = self.swap_every
        if isinstance(self.correction, EstimatedCorrection):
            values[ESTIMATE_EVERY], values[ESTIMATES] = self.correction.every, self.correction.evaluations
        elif isinstance(self.correction, AdaptedCorrection):
            values[TARGET_RATE], values[GAIN] = self.correction.target_rate, self.correction.gain
            values[ADAPT_UNTIL] = burn_in
        return values

    def start(self, energy_noise: float) -> float:
        """The correction before the first step."""
        if isinstance(self.correction, EstimatedCorrection):
            return 0.0
        if isinstance(self.correction, AdaptedCorrection):
            return float(self.correction.start)
        return float(energy_noise) ** 2 if self.correction is None else float(self.correction)


(
    NOISE, THRESHOLD, SCHEME, WINDOW, GATED, SWAP_EVERY, ESTIMATE_EVERY, ESTIMATES, TARGET_RATE, GAIN, ADAPT_UNTIL,
    N_PARAMETERS,
) = range(12)  # fmt: skip


def replica_exchange(
    *,
    correction: Correction = None,
    swap_every: int = 1,
    swap_threshold: float | None = None,
    scheme: str = "deo",
    window: int = 1,
    one_swap_per_window: bool = False,
) -> ReplicaExchange:
    """Swap rungs a (colder) and b with probability min(1, S), S = exp(δ (Ũ_a − Ũ_b − δ F)).

    Here δ = 1/T_a − 1/T_b, and the swap happens where u < S for a fresh uniform u; Ũ are the energies with fresh
    noise for every decision. Exchanged are position, gradient and energy, and the momentum, at the position's time and
    with its size fitted to the temperature; what a rung has learned (a thermostat, a preconditioner) stays with the
    rung. While a schedule holds the temperature at 0 nothing is attempted.
    Law: each temperature keeps its own. With preconditioned Langevin, whose V lags behind, hot rungs get too wide, by 3
    % with four rungs and α = 0.99, unless swap_every is about 1/(1 − α) or more.

    correction: F ≥ 0, or ``estimated_correction(...)``, or ``adapted_correction(...)``. For normal energy noise of
    standard deviation s per energy, F = s² leaves the swap exactly reversible (Ceperley & Dewing 1999: half the
    variance 2 s² of the difference); None means this F. In the paper's eq. 7, F = σ̃²/C.
    swap_every: steps between attempts, ≥ 1.
    scheme: which pairs an attempt tries. 'deo' (deterministic even–odd): (0,1), (2,3), … and (1,2), (3,4), … take
    turns, every ``window`` attempts; not reversible, with the fewest steps per round trip. 'seo': one of the two sets
    at random, reversible. 'adjacent': (0,1), (1,2), … one after the other. 'all_pairs': all, (0,1), (0,2), …, in
    order. With two replicas all try the one pair there is.
    one_swap_per_window: a pair that has swapped rests until the next window, as printed in the paper's algorithm 2;
    biased for window > 1, since what is then held back depends on the state.
    swap_threshold: None, or in (0, 1]: swap if and only if min(1, S) ≥ swap_threshold, with no uniform. 3e-4 is
    what the released code does, 1 what algorithm 2 prints; biased, and kept because the paper's figures used it.
    Source: r2SGLD (2024), eq. 7, algorithms 1 and 2. Raises ValueError where out of range.
    """
    return ReplicaExchange(correction, swap_every, swap_threshold, scheme, window, one_swap_per_window)


class ExchangeState(NamedTuple):
    """What a block remembers of its swaps; all sizes are 0 without replica exchange."""

    attempted: NDArray[np.int64]  # (pair, chain), since the end of burn-in
    accepted: NDArray[np.int64]  # (pair, chain)
    correction: NDArray[np.float64]  # (pair, chain)
    rests: NDArray[np.float64]  # (pair, chain): 1 where the pair has swapped in this window
    walker: NDArray[np.int64]  # (lane,): which of the first states has come to this rung
    last_end: NDArray[np.int64]  # (lane,): 1 where its walker last met the coldest rung, 2 the hottest, 0 neither
    round_trips: NDArray[np.int64]  # (chain,), of all walkers, coldest → hottest → coldest, since the end of burn-in


EXCHANGE_STATE = types.NamedTuple(
    (s.COUNTS, s.COUNTS, s.MATRIX, s.MATRIX, s.INTEGERS, s.INTEGERS, s.INTEGERS), ExchangeState
)


def exchange_state(
    exchange: ReplicaExchange | None, n_replicas: int, replica: NDArray[np.int64], energy_noise: float, n_chains: int
) -> ExchangeState:
    """The state before the first step; ``replica`` (lane,) names the rung of every lane."""
    pairs = len(exchange.pairs(n_replicas)) if exchange else 0
    lanes = replica.size if exchange else 0
    start = exchange.start(energy_noise) if exchange else 0.0
    return ExchangeState(
        attempted=np.zeros((pairs, n_chains), np.int64),
        accepted=np.zeros((pairs, n_chains), np.int64),
        correction=np.full((pairs, n_chains), start),
        rests=np.zeros((pairs, n_chains)),
        walker=replica[:lanes].astype(np.int64),
        last_end=(replica[:lanes] == 0).astype(np.int64),
        round_trips=np.zeros(n_chains if exchange else 0, np.int64),
    )
