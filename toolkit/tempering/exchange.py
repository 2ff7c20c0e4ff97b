"""Replica exchange: its law, its schemes, its correction for noisy energies, its state, and the kernels that swap."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba import uint64
from numpy.typing import NDArray

from .._compiler import signatures as s
from .._compiler.block_rows import (
    ALIVE,
    ENERGY,
    ENERGY_DIFFERENCE,
    EXCHANGE,
    FIRST_RUNG,
    STEP_SIZE,
    SWAPPED,
    TEMPERATURE,
)
from .._compiler.decorators import inlined, kernel, noinline
from ..errors import check_choice, check_count, check_flag, check_number, shown
from ..maths.elementary import exp, fma, power, select
from ..maths.philox import ENERGY_NOISE, SWAP, normal_pair, uniform_pair
from .interface import Tempering

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
class ReplicaExchange(Tempering):
    """Numbers of the swap, as ``replica_exchange`` explains them."""

    kind = EXCHANGE
    reads_energies = True
    swaps = True
    field_types = (EstimatedCorrection, AdaptedCorrection)

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
                f"window and one_swap_per_window belong to scheme 'deo', got scheme {shown(self.scheme)}, window "
                f"{self.window} and one_swap_per_window={self.one_swap_per_window}"
            )

    def pairs(self, n_replicas: int) -> list[tuple[int, int]]:
        """Pairs of replicas that may swap, in the order of ``run.swap_rates``."""
        if self.scheme == "all_pairs":
            return [(a, b) for a in range(n_replicas - 1) for b in range(a + 1, n_replicas)]
        return [(a, a + 1) for a in range(n_replicas - 1)]

    @property
    def step(self) -> Callable[..., None]:
        """The block function of one step."""
        return temper_by_exchange

    def parameters(self, burn_in: int = 0, energy_noise: float = 0.0) -> NDArray[np.float64]:
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

    def words(self, n_replicas: int) -> str:
        """Scheme, interval and correction."""
        kinds = {EstimatedCorrection: "estimated", AdaptedCorrection: "adapted"}
        interval = f"{self.swap_every} steps" if self.swap_every > 1 else "step"
        correction = kinds.get(type(self.correction), "fixed")
        return f"replica exchange ({self.scheme}, swap tried every {interval}, {correction} correction)"

    def first_correction(self, energy_noise: float) -> float:
        """The correction before the first step."""
        if isinstance(self.correction, EstimatedCorrection):
            return 0.0
        if isinstance(self.correction, AdaptedCorrection):
            return float(self.correction.start)
        return float(energy_noise) ** 2 if self.correction is None else float(self.correction)

    @property
    def first_estimate(self) -> int:
        """The first step after which the correction is estimated."""
        return self.correction.every + 1 if isinstance(self.correction, EstimatedCorrection) else 0

    def check_minibatches(self, problem: str) -> None:
        """Raise ValueError where the correction cannot be known, or one noisy energy serves two decisions."""
        if self.correction is None or isinstance(self.correction, EstimatedCorrection):
            raise ValueError(
                f"correction must be a number, or adapted_correction(...), on {problem!r}, which draws minibatches: "
                "half the variance of the difference of two energies leaves swaps unbiased, and only you can know it; "
                f"got {self.correction}"
            )
        if self.scheme not in ("deo", "seo"):
            raise ValueError(
                f"scheme must be 'deo' or 'seo' on {problem!r}, which draws minibatches: one noisy energy must not "
                f"serve two decisions; got {shown(self.scheme)}"
            )

    def check_length(self, n_steps: int, burn_in: int) -> None:
        """Raise ValueError where the correction is not adapted or estimated in time."""
        if isinstance(self.correction, AdaptedCorrection) and burn_in == 0:
            raise ValueError("burn_in must be ≥ 1 for an adapted correction, which moves during burn-in alone; got 0")
        if isinstance(self.correction, EstimatedCorrection) and self.correction.every >= n_steps:
            raise ValueError(
                f"n_steps must be > {self.correction.every}, at which the correction is estimated first, got {n_steps}"
            )


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

    attempted: s.IntMatrix  # (pair, chain), since the end of burn-in
    accepted: s.IntMatrix  # (pair, chain)
    correction: s.Matrix  # (pair, chain)
    swapped_in_window: s.Matrix  # (pair, chain): 1 where the pair has swapped in this window
    walker: s.IntVector  # (lane,): which of the first states has come to this rung
    last_end: s.IntVector  # (lane,): 1 where its walker last met the coldest rung, 2 the hottest, 0 neither
    round_trips: s.IntVector  # (chain,), of all walkers, coldest → hottest → coldest, since the end of burn-in


EXCHANGE_STATE = s.tuple_type(ExchangeState)


def exchange_state(
    tempering: Tempering, n_replicas: int, replica: NDArray[np.int64], energy_noise: float, n_chains: int
) -> ExchangeState:
    """The state before the first step; ``replica`` (lane,) names the rung of every lane."""
    pairs, lanes = len(tempering.pairs(n_replicas)), replica.size if tempering.swaps else 0
    start = tempering.first_correction(energy_noise)
    return ExchangeState(
        attempted=np.zeros((pairs, n_chains), np.int64),
        accepted=np.zeros((pairs, n_chains), np.int64),
        correction=np.full((pairs, n_chains), start),
        swapped_in_window=np.zeros((pairs, n_chains)),
        walker=replica[:lanes].astype(np.int64),
        last_end=(replica[:lanes] == 0).astype(np.int64),
        round_trips=np.zeros(n_chains if tempering.swaps else 0, np.int64),
    )


# Rows of what swaps take of a lane's rung; the last is scratch for what differs by pair or coordinate.
BETA, HALF_KICK, MOMENTUM_SCALE, PAIR_MOMENTUM_SCALE, RUNG_ROWS = range(5)
END_OF_RUNGS = FIRST_RUNG + RUNG_ROWS


@kernel
def find_rungs(rungs, step_size, temperature, n_chains, has_momentum):
    """rungs (RUNG_ROWS, lane) ← 1/T, half a kick √h/2, and √(T/T') where T' is the temperature of the rung below."""
    beta, half_kick, scale = rungs[BETA], rungs[HALF_KICK], rungs[MOMENTUM_SCALE]
    for lane in range(temperature.size):
        beta[lane] = 1.0 / temperature[lane]
    if has_momentum:
        for lane in range(temperature.size):
            half_kick[lane] = 0.5 * math.sqrt(step_size[lane])
        for lane in range(n_chains, temperature.size):
            scale[lane] = math.sqrt(temperature[lane] / temperature[lane - n_chains])


@inlined
def find_momentum_scale(scale, cold_temperature, hot_temperature, thermostats, d, cold, hot):
    """heat (chain,) ← √ of the hot momenta's variance over the cold's in coordinate d: T/(1 − z/2) under a thermostat.

    cold, hot: the slices of the rungs' lanes. Without a thermostat the variance is T.
    """
    if thermostats.shape[0] == 0:
        for c in range(scale.size):
            scale[c] = math.sqrt(hot_temperature[c] / cold_temperature[c])
    else:
        row = min(d, thermostats.shape[0] - 1)
        cold_drag, hot_drag = thermostats[row, cold], thermostats[row, hot]
        for c in range(scale.size):
            cold_share, hot_share = 1.0 - 0.5 * cold_drag[c], 1.0 - 0.5 * hot_drag[c]
            cold_variance = cold_temperature[c] / select(cold_share > 0.1, cold_share, 0.1)
            hot_variance = hot_temperature[c] / select(hot_share > 0.1, hot_share, 0.1)
            scale[c] = math.sqrt(hot_variance / cold_variance)


class Rung(NamedTuple):
    """One coordinate of a rung's lanes, each (chain,)."""

    momentum: Any
    gradient: Any
    half_kick: Any  # √h/2


@kernel
def exchange_momenta(cold, hot, momentum_scale, coordinate_scale, swapped):
    """Exchange momenta where ``swapped`` is not 0, fitted to their heat, with gradients still in their old places.

    cold, hot: ``Rung`` each. momentum_scale: (chain,). coordinate_scale: the s by which a kick is √h s ∂U.
    A momentum is that of half a step before its position. It is brought to the position's time by half a kick, scaled
    there, and taken back by half a kick of its new rung; or it would keep a covariance with the position that belongs
    to the other temperature.
    """
    cold_momentum, cold_gradient, cold_half = cold.momentum, cold.gradient, cold.half_kick
    hot_momentum, hot_gradient, hot_half = hot.momentum, hot.gradient, hot.half_kick
    for c in range(cold_momentum.size):
        cold_kick, hot_kick = coordinate_scale * cold_half[c], coordinate_scale * hot_half[c]
        upward = fma(-cold_kick, cold_gradient[c], cold_momentum[c]) * momentum_scale[c]
        downward = fma(-hot_kick, hot_gradient[c], hot_momentum[c]) / momentum_scale[c]
        upward = fma(hot_kick, cold_gradient[c], upward)
        downward = fma(cold_kick, hot_gradient[c], downward)
        cold_momentum[c] = select(swapped[c] != 0.0, downward, cold_momentum[c])
        hot_momentum[c] = select(swapped[c] != 0.0, upward, hot_momentum[c])


@kernel
def exchange(first, second, swapped):
    """Exchange ``first`` and ``second``, each (chain,), floats or integers, where ``swapped`` is not 0."""
    for c in range(first.size):
        a, b = first[c], second[c]
        first[c] = select(swapped[c] != 0.0, b, a)
        second[c] = select(swapped[c] != 0.0, a, b)


class Pair(NamedTuple):
    """Two rungs that may swap: the colder, the hotter, and which of all pairs they are."""

    cold: Any
    hot: Any
    number: Any  # not "index", a method of tuples, which numba-cuda 0.30 takes for the field


@inlined
def swap_replicas(state, numbers, parameters, step):
    """Attempt the swaps of one step in a block whose lane of (replica r, chain c) is r · n_chains + c.

    The rows from FIRST_RUNG on hold the rungs as ``find_rungs`` leaves them. A lane whose ALIVE is 0 never swaps.
    Swaps are counted since the end of burn-in.
    """
    n_chains, n_replicas, swapped = numbers.n_chains, numbers.n_replicas, state.rows[SWAPPED]
    swapped_in_window = state.exchange.swapped_in_window
    attempt = step // np.int64(parameters[SWAP_EVERY])
    window = np.int64(parameters[WINDOW])
    scheme = np.int64(parameters[SCHEME])
    if attempt % window == 0 and parameters[GATED] != 0.0:
        for gate in range(swapped_in_window.shape[0]):
            for c in range(n_chains):
                swapped_in_window[gate, c] = 0.0
    pair = np.int64(0)
    for cold in range(n_replicas - 1):
        last = n_replicas if scheme == ALL_PAIRS else cold + 2
        for hot in range(cold + 1, last):
            if scheme != DEO or n_replicas == 2 or cold % 2 == (attempt // window) % 2:
                for c in range(n_chains):
                    swapped[c] = 1.0
                if scheme == SEO and n_replicas > 2:
                    for c in range(n_chains):
                        coin = uniform_pair(
                            numbers.seed, state.chain[c], uint64(0), uint64(step), uint64(SWAP), np.uint64(1)
                        )[0]
                        swapped[c] = select((coin < 0.5) == (cold % 2 == 0), 1.0, 0.0)
                attempt_pair(state, numbers, parameters, Pair(cold, hot, pair), attempt, step)
            pair += 1
    count_round_trips(state.exchange, n_chains, n_replicas, step >= numbers.burn_in)


@inlined
def attempt_pair(state, numbers, parameters, pair, attempt, step):
    """Attempt one pair in the chains where SWAPPED is 1, which it is afterwards where they have swapped."""
    n_chains, seed, chain, exchanged = numbers.n_chains, numbers.seed, state.chain, state.exchange
    position, momentum, gradient, curvature = state.position, state.momentum, state.gradient, state.curvature
    thermostats, rows = state.memory[: numbers.n_thermostats], state.rows
    rungs, energy, temperature, alive = (
        rows[FIRST_RUNG:END_OF_RUNGS],
        rows[ENERGY],
        rows[TEMPERATURE],
        rows[ALIVE],
    )
    swapped, difference = rows[SWAPPED], rows[ENERGY_DIFFERENCE]
    cold = slice(pair.cold * n_chains, (pair.cold + 1) * n_chains)
    hot = slice(pair.hot * n_chains, (pair.hot + 1) * n_chains)
    cold_energy, hot_energy, cold_alive, hot_alive = energy[cold], energy[hot], alive[cold], alive[hot]
    beta, hot_beta = rungs[BETA, cold], rungs[BETA, hot]
    correction, swapped_in_window = exchanged.correction[pair.number], exchanged.swapped_in_window[pair.number]
    uniform = difference[n_chains : 2 * n_chains]
    noise, threshold, gated = parameters[NOISE], parameters[THRESHOLD], parameters[GATED]
    for c in range(n_chains):
        difference[c] = cold_energy[c] - hot_energy[c]
        swapped[c] *= cold_alive[c] * hot_alive[c]
    if noise > 0.0:
        for c in range(n_chains):
            a, b = normal_pair(seed, chain[c], uint64(pair.number), uint64(step), uint64(ENERGY_NOISE), np.uint64(0))
            difference[c] += noise * (a - b)
    if gated != 0.0:
        for c in range(n_chains):
            swapped[c] *= 1.0 - swapped_in_window[c]
    if threshold > 0.0:
        for c in range(n_chains):
            uniform[c] = threshold
    else:
        draw_for_pair(uniform, seed, chain, pair.number, uint64(step))
    swaps = 0
    for c in range(n_chains):
        slope = beta[c] - hot_beta[c]
        exponent = slope * (difference[c] - slope * correction[c])
        tried = swapped[c]
        swaps_here = select(exp(exponent) >= uniform[c], tried, 0.0)
        difference[c], swapped[c] = tried, swaps_here
        swaps += int(swaps_here != 0.0)
    if parameters[TARGET_RATE] > 0.0 and step < np.int64(parameters[ADAPT_UNTIL]):
        gain = parameters[GAIN] / power(float(attempt), 0.6)
        for c in range(n_chains):
            slope = beta[c] - hot_beta[c]
            moved = correction[c] + gain * (swapped[c] - parameters[TARGET_RATE]) / (slope * slope) * difference[c]
            correction[c] = select(moved > 0.0, moved, 0.0)
    if step >= numbers.burn_in:
        attempted, accepted = exchanged.attempted[pair.number], exchanged.accepted[pair.number]
        for c in range(n_chains):
            attempted[c] += np.int64(difference[c])
            accepted[c] += np.int64(swapped[c])
    if swaps == 0:
        return
    if gated != 0.0:
        for c in range(n_chains):
            swapped_in_window[c] += swapped[c]
    exchange(cold_energy, hot_energy, swapped)
    for d in range(position.shape[0]):
        exchange(position[d, cold], position[d, hot], swapped)
    for d in range(curvature.shape[0]):
        exchange(curvature[d, cold], curvature[d, hot], swapped)
    of_pair = thermostats.shape[0] > 0 or pair.hot > pair.cold + 1
    scale = rungs[PAIR_MOMENTUM_SCALE if of_pair else MOMENTUM_SCALE, hot]
    for d in range(momentum.shape[0]):
        if of_pair and (d == 0 or thermostats.shape[0] > 1):
            find_momentum_scale(scale, temperature[cold], temperature[hot], thermostats, d, cold, hot)
        exchange_momenta(
            Rung(momentum[d, cold], gradient[d, cold], rungs[HALF_KICK, cold]),
            Rung(momentum[d, hot], gradient[d, hot], rungs[HALF_KICK, hot]), scale, state.scale[d], swapped,
        )  # fmt: skip
    for d in range(position.shape[0]):
        exchange(gradient[d, cold], gradient[d, hot], swapped)
    exchange(exchanged.walker[cold], exchanged.walker[hot], swapped)
    exchange(exchanged.last_end[cold], exchanged.last_end[hot], swapped)


@noinline
def draw_for_pair(uniform, seed, chain, pair, step):
    """uniform (chain,) ← the random numbers by which one step's swaps of one pair are decided."""
    for c in range(uniform.size):
        uniform[c] = uniform_pair(seed, chain[c], uint64(pair), step, uint64(SWAP), uint64(0))[0]


@inlined
def count_round_trips(state, n_chains, n_replicas, counts):
    """Note which walkers have met an end of the ladder, and count the round trips completed at the coldest rung."""
    cold, hot = state.last_end[:n_chains], state.last_end[(n_replicas - 1) * n_chains : n_replicas * n_chains]
    for c in range(n_chains):
        if counts:
            state.round_trips[c] += int(cold[c] == 2)
        cold[c] = 1
    for c in range(n_chains):
        hot[c] = 2 if hot[c] == 1 else hot[c]


@kernel
def estimate_corrections(variance, state, parameters, numbers, chain, replica, step):
    """Move each pair's correction towards the variance seen in fresh noisy energies; ``variance`` (lane) is scratch."""
    n_chains, n_replicas, seed = numbers.n_chains, numbers.n_replicas, numbers.seed
    all_pairs = parameters[SCHEME] == ALL_PAIRS
    count = np.int64(parameters[ESTIMATES])
    weight = 1.0 / (step // np.int64(parameters[ESTIMATE_EVERY]))
    for lane in range(n_chains * n_replicas):
        total, squares = 0.0, 0.0
        for i in range(count):
            z = normal_pair(seed, chain[lane], replica[lane], uint64(step), uint64(ENERGY_NOISE), uint64(i + 1))[0]
            total += parameters[NOISE] * z
            squares += parameters[NOISE] * z * parameters[NOISE] * z
        variance[lane] = (squares - total * total / count) / (count - 1)
    pair = 0
    for cold in range(n_replicas - 1):
        for hot in range(cold + 1, n_replicas if all_pairs else cold + 2):
            for c in range(n_chains):
                seen = 0.5 * (variance[cold * n_chains + c] + variance[hot * n_chains + c])
                state.correction[pair, c] += weight * (seen - state.correction[pair, c])
            pair += 1


def temper_by_exchange(state, numbers, parameters, step, samples, changes):
    """Estimate corrections, where the schedule explores too, and attempt swaps, where they are due."""
    rows = state.rows
    energy, alive, rungs = rows[ENERGY], rows[ALIVE], rows[FIRST_RUNG:END_OF_RUNGS]
    if changes > 1:
        find_rungs(rungs, rows[STEP_SIZE], rows[TEMPERATURE], numbers.n_chains, state.momentum.shape[0] > 0)
    if step == 0:
        return
    if parameters[ESTIMATE_EVERY] > 0.0 and step % int(parameters[ESTIMATE_EVERY]) == 0:
        estimate_corrections(
            rows[ENERGY_DIFFERENCE], state.exchange, parameters, numbers, state.chain, state.replica, step
        )  # fmt: skip
    if samples and step % int(parameters[SWAP_EVERY]) == 0:
        for lane in range(energy.size):
            alive[lane] = 1.0 if state.status[lane] == 0 and energy[lane] - energy[lane] == 0.0 else 0.0
        swap_replicas(state, numbers, parameters, step)
