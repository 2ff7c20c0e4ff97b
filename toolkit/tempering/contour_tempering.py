"""Contour tempering: an energy flattened by θ, which is learned as the run goes; its numbers, state and kernels."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba import uint64
from numpy.typing import NDArray

from .._compiler import signatures as s
from .._compiler.block_rows import (
    BIN,
    CONTOUR,
    ENTRY,
    LOG_PSI,
    LOG_THETA,
    LOG_WEIGHT,
    MASSES,
    MULTIPLIER,
    NEXT_SCALE,
    NOISY_ENERGY,
    PLACE,
    SHARE,
    STEP_SIZE,
    TEMPERATURE,
    THETA_BELOW,
)
from .._compiler.decorators import inlined, kernel, noinline
from ..errors import check_choice, check_count, check_flag, check_number, shown
from ..maths.elementary import exp, fma, larger, log_of_normal, power, select, smaller
from .interface import Tempering, scale_gradients

FIELDS = ("theta_zeta", "theta")


@dataclass(frozen=True)
class Partition:
    """``n_bins`` ≥ 2 bins of energy of equal ``width`` > 0, from ``u_min`` up, in nats."""

    u_min: float
    width: float
    n_bins: int

    def __post_init__(self) -> None:
        check_number("u_min", self.u_min)
        check_number("width", self.width, above=0.0)
        check_count("n_bins", self.n_bins, at_least=2, below=2**31)

    @property
    def u_max(self) -> float:
        """Upper end of the last bin."""
        return self.u_min + self.width * self.n_bins

    @property
    def edges(self) -> NDArray[np.float64]:
        """The n_bins + 1 edges of the bins."""
        return np.asarray(self.u_min + self.width * np.arange(self.n_bins + 1.0))


@dataclass(frozen=True)
class StepDecay:
    """Numbers of ``step_decay``."""

    gain: float = 1.0
    exponent: float = 0.6
    offset: float = 100.0
    cap: float = 3e-3

    def __post_init__(self) -> None:
        check_number("gain", self.gain, above=0.0)
        check_number("exponent", self.exponent, at_least=0.0, at_most=1.0)
        check_number("offset", self.offset, at_least=0.0)
        check_number("cap", self.cap, above=0.0, at_most=1.0)


def step_decay(*, gain: float = 1.0, exponent: float = 0.6, offset: float = 100.0, cap: float = 3e-3) -> StepDecay:
    """Steps ω_k = min(cap, gain / (k^exponent + offset)) of the stochastic approximation of θ, k = 1, 2, ….

    gain > 0; exponent in [0, 1] (above ½ and at most 1 for convergence); offset ≥ 0; cap in (0, 1].
    Defaults: ICSGLD (2022), D.2; its D.5 has cap 1, and CSGLD's demonstration gain 10, exponent 0.8.
    Raises ValueError where out of range.
    """
    return StepDecay(gain, exponent, offset, cap)


@dataclass(frozen=True)
class Contour(Tempering):
    """Numbers of ``contour``."""

    kind = CONTOUR
    reads_energies = True
    is_weighted = True
    weighs_by_chain = True
    keeps_law = False
    scratch_rows = MASSES
    raced = {"zeta": ("ζ", 1.4)}  # noqa: RUF012
    field_types = (Partition, StepDecay)

    zeta: float = 0.75
    partition: Partition | None = None
    field: str = "theta"
    decay: StepDecay = StepDecay()
    interpolated: bool = True
    freezes: bool = False

    def __post_init__(self) -> None:
        check_number("zeta", self.zeta, at_least=0.0)
        if self.partition is not None and not isinstance(self.partition, Partition):
            raise TypeError(f"partition must be None or a Partition, got {shown(self.partition)}")
        check_choice("field", self.field, FIELDS)
        if not isinstance(self.decay, StepDecay):
            raise TypeError(f"decay must be a StepDecay, got {shown(self.decay)}")
        check_flag("interpolated", self.interpolated)
        check_flag("freezes", self.freezes)

    @property
    def step(self) -> Callable[..., None]:
        """The block function of one step."""
        return temper_by_contour

    def parameters(self, burn_in: int = 0, energy_noise: float = 0.0) -> NDArray[np.float64]:
        """The numbers as the kernels take them."""
        assert self.partition is not None
        values = np.zeros(N_PARAMETERS)
        values[U_MIN], values[WIDTH], values[ZETA] = self.partition.u_min, self.partition.width, self.zeta
        values[FIELD_POWER] = 0.0 if self.field == "theta_zeta" else 1.0 - self.zeta
        values[OMEGA_GAIN], values[OMEGA_EXPONENT] = self.decay.gain, self.decay.exponent
        values[OMEGA_OFFSET], values[OMEGA_CAP] = self.decay.offset, self.decay.cap
        values[INTERPOLATED] = self.interpolated
        values[LEARN_UNTIL] = burn_in if self.freezes else np.inf
        values[COUNT_FROM] = burn_in
        return values

    @property
    def energy_partition(self) -> Partition | None:
        """The partition."""
        return self.partition

    def check_length(self, n_steps: int, burn_in: int) -> None:
        """Raise ValueError where θ is to be frozen before it is learnt."""
        if self.freezes and burn_in == 0:
            raise ValueError("burn_in must be ≥ 1 for a contour that freezes, which learns during burn-in alone; got 0")

    def check_noise(self, moves: str, energy_noise: float, *, has_test: bool) -> None:
        """Raise ValueError where a Metropolis test needs the flattened energy itself."""
        if has_test and energy_noise > 0:
            raise ValueError(
                f"energy_noise must be 0 for {moves!r} under contour, whose Metropolis test needs the flattened energy "
                f"itself; got {energy_noise}"
            )

    def words(self, n_replicas: int) -> str:
        """ζ and the partition."""
        bins = self.partition
        grid = f", {bins.n_bins} bins of {bins.width:.4g} nats from {bins.u_min:.4g}" if bins else ""
        return f"contour (ζ = {self.zeta:g}{grid})"


(
    U_MIN, WIDTH, ZETA, FIELD_POWER, OMEGA_GAIN, OMEGA_EXPONENT, OMEGA_OFFSET, OMEGA_CAP, INTERPOLATED, COUNT_FROM,
    LEARN_UNTIL, N_PARAMETERS,
) = range(12)  # fmt: skip


DECAYS = 64  # steps


class ContourState(NamedTuple):
    """What a block has learned of θ; all sizes are 0 without contour."""

    # (chain, 2 · bin): table and visits of the bins in turn, so that a step reads one place of memory; θ is scale ×
    # table, so that a step changes one entry and the scale.
    table: s.Matrix
    scale: s.Vector  # (chain,)
    # (chain, bin): θ where the steps since the end of burn-in were a power of 2, the last one and the one before:
    # marks that do not depend on where the run is to end.
    theta_at_mark: s.Matrix
    theta_before: s.Matrix
    # (3, chain): energies looked at since the end of burn-in below the partition, above it, and in all
    outside: s.IntMatrix
    next_mark: s.IntVector  # (chain,): the steps since the end of burn-in at which θ is kept next
    # (2, chain): the lowest and the highest visited bin, n_bins and −1 where none has been; ``UNKNOWN`` until a kernel
    # needs them. They follow from the table: who writes that from outside calls ``forget_visited_range``.
    visited_range: s.IntMatrix
    # (DECAYS,): k^exponent of steps k in a row, which one loop of SIMD makes; (0,) where each step makes its own, as on
    # CUDA
    decays: s.Vector
    decays_of: s.Vector  # (2,): the first of those steps, −1 for none, and the exponent


CONTOUR_STATE = s.tuple_type(ContourState)
UNKNOWN = -1


def contour_state(tempering: Tempering, n_chains: int) -> ContourState:
    """Nothing visited, and so no θ; empty for other temperings."""
    bins = tempering.energy_bins
    if bins == 0:
        nothing, none, no_counts = np.zeros((0, 0)), np.zeros(0), np.zeros((0, 0), np.int64)
        no_marks = np.zeros(0, np.int64)
        return ContourState(nothing, none, nothing, nothing, no_counts, no_marks, no_counts, none, none)
    return ContourState(
        table=np.zeros((n_chains, 2 * bins)),
        scale=np.ones(n_chains),
        theta_at_mark=np.zeros((n_chains, bins)),
        theta_before=np.zeros((n_chains, bins)),
        outside=np.zeros((3, n_chains), np.int64),
        next_mark=np.ones(n_chains, np.int64),
        visited_range=np.full((2, n_chains), UNKNOWN),
        decays=np.empty(DECAYS),
        decays_of=np.full(2, -1.0),
    )


def forget_visited_range(state: ContourState) -> None:
    """Have the visited ranges found anew: the table has been written from outside."""
    state.visited_range[...] = UNKNOWN


def contour(
    *,
    zeta: float = 0.75,
    partition: Partition | None = None,
    field: str = "theta",
    decay: StepDecay = StepDecay(),
    interpolated: bool = True,
    freezes: bool = False,
) -> Contour:
    """Flatten the energy: the P replicas of a chain sample exp(−U/T) / Ψ_θ(U)^ζ, and learn θ together on the way.

    The energies are cut into bins 1 … m. log Ψ is piecewise linear, from log θ(i−1) at a bin's lower edge to log θ(i)
    at its upper one; below the first edge and above the last it is constant. The gradient is multiplied by
    1 + ζ T (log θ(J) − log θ(J−1)) / Δu, J the bin of the (noisy) energy; by 1 in the first bin, beyond the last and
    where the bin below was never visited. Learning: θ ← θ + ω/P Σ_p c_p (e_{J_p} − θ), in O(1) per replica and step.

    zeta: ζ ≥ 0; 0 is no tempering, bit for bit. partition: None finds one by a pilot run (``partition_pilot``).
    field: 'theta_zeta' has c = Ψ^ζ (2020), whose θ settles on the probabilities of the bins under exp(−U/T), given that
    the energy is inside the partition; 'theta' has c = Ψ^ζ θ(J)^{1−ζ} (2022), whose θ^ζ is proportional to them.
    decay: the steps ω_k. interpolated=False: weights θ(J)^ζ and c = θ(J)^ζ or θ(J), as printed.
    freezes: θ is learned during burn-in and then rests, so that the law below holds for whatever it has become. While
    it learns, it runs away from where the replica is, and the fewer the replicas the more: on cosine25 at h = 1e-3 one
    replica's E x² is 6 % too large after 4·10⁵ steps, 150,000 of them burn-in, and within its error of 2 % when it
    freezes.

    Under MALA and HMC, whose test keeps that law whatever gradient proposals follow, a multiplier m is 1 where h
    (m − 1)² |∇U|² > 16 T (HMC: h = ε²/2). As long as a chain stays in a bin, θ and m grow there, and where a step goes
    through ten bins or more, proposals by m would end ever further away and chains stand still for good, with
    ``freezes`` too. Where a given partition has bins as narrow as a fifth of a step, the run warns before it begins.

    Law: draws with their weights Ψ^ζ have the law exp(−U/T), for any θ that has settled; of P replicas at equal cost,
    θ's variance is that of one at P times the steps over P ω_{Pk} / ω_k, which is P^{1−α} for ω_k ∝ k^−α. Biased: by
    the step size (on N(0, 1), Δu = 0.5, ζ = 0.75, E x² is 0.9996, 0.9990, 0.9972 at h = 0.01, 0.02, 0.04: SGLD's own
    +h/2, less what the steps do where the multiplier is negative); bins narrower than the energy's change in one step
    make it worse. As printed it is biased by the bins too, and does not vanish with h: 0.956, 0.874, 0.804 at Δu =
    0.25, 0.5, 1. Gradient noise is multiplied with the gradient, and no noise estimate knows it. With noisy energies
    the weight is that of the noisy one; the error is of second order in the noise times the slope of log Ψ: there E x²
    is 1.02 to 1.03 for noise of Δu/2, and 1.06 to 1.11 for Δu. Bins below all energies, which noise alone visits, are
    steep: steps overshoot there, E x² is 0.7, and the run warns.
    Departures from print, each needed: as commonly coded, a bin below the lowest occupied one keeps its first θ, the
    multiplier grows to hundreds, and E x² of N(0, 1) comes out as 0.01 to 0.03. Here it counts as not there; a bin
    takes the θ of its nearest neighbour when first visited; and energies outside the partition teach nothing, or the
    last bin's θ would be that of all of the tail.
    Source: CSGLD (2020), algorithm 1; ICSGLD (2022), algorithm 1 and eq. 15. Raises where out of range.
    """
    return Contour(zeta, partition, field, decay, interpolated, freezes)


def theta_of(state: ContourState) -> NDArray[np.float64]:
    """θ (chain, bin), which sums to 1 in every chain once a bin has been visited."""
    return state.scale[:, None] * state.table[:, ::2]


def visits_of(state: ContourState) -> NDArray[np.int64]:
    """Visits of each bin, (chain, bin), since the start."""
    return state.table[:, 1::2].astype(np.int64)


MOST_LOST = 4.0  # nats: moves by the multiplied gradient would be accepted in 1 of 50 tests or less


@noinline
def nearest_visited(table, visited_range, c, j):
    """The bin nearest to ``j`` that chain ``c`` has visited, the lower one of two; −1 where none has been visited.

    Only for a bin between visited ones does the time depend on the number of bins: on those to the nearest.
    """
    if visited_range[0, c] == UNKNOWN:
        find_visited_range(table, visited_range, c)
    lowest, highest = visited_range[0, c], visited_range[1, c]
    if j >= highest:
        return highest
    if j <= lowest:
        return lowest
    for away in range(j - lowest):
        if table[c, 2 * (j - away) + 1] > 0.0:
            return j - away
        if j + away <= highest and table[c, 2 * (j + away) + 1] > 0.0:
            return j + away
    return lowest


@noinline
def find_visited_range(table, visited_range, c):
    """The lowest and the highest visited bin of chain ``c`` by its table."""
    n_bins = table.shape[1] // 2
    lowest, highest = n_bins, -1
    for j in range(n_bins):
        if table[c, 2 * j + 1] > 0.0:
            lowest, highest = min(lowest, j), j
    visited_range[0, c], visited_range[1, c] = lowest, highest


class Levels(NamedTuple):
    """What contour makes of energies, lane by lane, each (lane,)."""

    place: Any  # the energy in units of bins from u_min
    bins: Any  # its bin, from 0
    log_theta: Any  # log Ψ at the bin's upper end
    theta_below: Any  # Ψ at its lower one
    multiplier: Any  # of the gradient
    log_psi: Any
    log_weight: Any  # the logarithm whose multiples weigh draws and steps: log Ψ, or the bin's log θ


class Shares(NamedTuple):
    """What one step adds to θ: a lane's share of it, that in the table's units, and the scale that is left."""

    share: Any  # (lane,)
    entry: Any  # (lane,)
    next_scale: Any  # (chain,) of (lane,)


@kernel
def contour_multiplier(energy, temperature, levels, state, parameters, n_chains, n_replicas):
    """The gradient's multiplier and log Ψ of every lane at ``energy``, and what led there, into ``levels``."""
    place, bins, log_theta, theta_below = levels.place, levels.bins, levels.log_theta, levels.theta_below
    multiplier, log_psi, log_weight = levels.multiplier, levels.log_psi, levels.log_weight
    u_min, width, zeta = parameters[U_MIN], parameters[WIDTH], parameters[ZETA]
    interpolated = parameters[INTERPOLATED] != 0.0
    highest = float(state.table.shape[1] // 2 - 1)
    for lane in range(energy.size):
        where = (energy[lane] - u_min) / width
        number = math.floor(where)
        number = select(number > 0.0, number, 0.0)
        place[lane] = where
        bins[lane] = select(number < highest, number, highest)
        log_theta[lane] = 1.0
        theta_below[lane] = 1.0
    read_masses(bins, log_theta, theta_below, state.table, state.scale, state.visited_range, n_chains, n_replicas)
    for lane in range(energy.size):
        log_theta_here = log_of_normal(log_theta[lane])
        log_theta_below = log_of_normal(select(place[lane] < highest + 1.0, theta_below[lane], log_theta[lane]))
        rise = log_theta_here - log_theta_below
        log_theta[lane] = log_theta_here
        multiplier[lane] = 1.0 + zeta * temperature[lane] * rise / width
        log_psi[lane] = log_theta_here - (bins[lane] + 1.0 - place[lane]) * rise
        log_weight[lane] = select(interpolated, log_psi[lane], log_theta_here)


@inlined
def read_masses(bins, log_theta, theta_below, table, scale, visited_range, n_chains, n_replicas):
    """top, bottom ← Ψ at the two ends of each lane's bin: θ of the bin and of the one below, where it was visited."""
    for r in range(n_replicas):
        for c in range(n_chains):
            lane = r * n_chains + c
            here = int(bins[lane])
            below = max(here - 1, 0)
            mass = table[c, uint64(2 * here)]
            if table[c, uint64(2 * here + 1)] > 0.0:
                has_slope = table[c, uint64(2 * below + 1)] > 0.0
                log_theta[lane] = scale[c] * mass
                theta_below[lane] = scale[c] * select(has_slope, table[c, uint64(2 * below)], mass)
            else:
                nearest = nearest_visited(table, visited_range, c, here)
                if nearest >= 0:
                    log_theta[lane] = scale[c] * table[c, 2 * nearest]
                    theta_below[lane] = log_theta[lane]


@inlined
def levels_of(state, multiplier):
    """The rows in which the engine keeps a block's levels."""
    rows, masses = state.rows, state.masses
    return Levels(
        rows[PLACE], rows[BIN], masses[LOG_THETA], masses[THETA_BELOW], multiplier, rows[LOG_PSI], rows[LOG_WEIGHT]
    )  # fmt: skip


@inlined
def find_multipliers(energy, multiplier, state, numbers, parameters):
    """``contour_multiplier`` of the rows where the engine keeps them; inlined, as a block is large to pass.

    Under a Metropolis test the gradient must not be multiplied yet, and a multiplier m with h (m − 1)² |∇U|²/(4T) >
    ``MOST_LOST`` becomes 1 (∇U in the scale of
    each coordinate): a step of √(2hT) back against the excess drift has the logarithm of its probability density
    less by as much. The test keeps the law whatever gradient a trajectory follows, as a function of the place alone.
    """
    rows = state.rows
    levels = levels_of(state, multiplier)
    contour_multiplier(
        energy, rows[TEMPERATURE], levels, state.contour, parameters, numbers.n_chains, numbers.n_replicas
    )
    if numbers.leapfrogs > 0:
        # A bin that is not left gains θ at every step, and its slope with it: the gradient times that slope would throw
        # proposals ever further away, and no energy that θ takes off the other bins would make up for it.
        step_size, temperature = rows[STEP_SIZE], rows[TEMPERATURE]
        for lane in range(multiplier.size):
            square = 0.0
            for d in range(state.gradient.shape[0]):
                slope = state.scale[d] * state.gradient[d, lane]
                square = fma(slope, slope, square)
            h = step_size[lane] if numbers.is_mala else 0.5 * step_size[lane] * step_size[lane]
            excess = multiplier[lane] - 1.0
            steep = 0.25 * h * excess * excess * square > MOST_LOST * temperature[lane]
            multiplier[lane] = select(steep, 1.0, multiplier[lane])


SMALLEST_SCALE = 1e-100
SMALLEST_THETA = 1e-200  # of a visited bin, about; times the smallest scale it is still above 0, as its log needs
SMALLEST_REST = 1e-16  # what a step leaves of θ, also where ω c = 1


@inlined
def decay_of(state, parameters, step):
    """(step + 1)^exponent, looked up where the state has room for steps in a row."""
    exponent = parameters[OMEGA_EXPONENT]
    if state.decays.size == 0:
        return power(float(step + 1), exponent)
    first = int(state.decays_of[0])
    if first < 0 or step < first or step >= first + state.decays.size or exponent != state.decays_of[1]:
        fill_decays(state.decays, state.decays_of, step, exponent)
        first = step
    return state.decays[step - first]


@noinline
def fill_decays(decays, decays_of, step, exponent):
    """(k + 1)^exponent of the steps k from ``step`` on."""
    for i in range(decays.size):
        decays[i] = power(float(step + 1 + i), exponent)
    decays_of[0], decays_of[1] = float(step), exponent


@inlined
def update_theta(levels, shares, state, parameters, step, n_chains, n_replicas):
    """One step of stochastic approximation, θ ← θ + ω/P Σ_p c_p (e_{J_p} − θ); ``shares`` is scratch.

    Only the visited entries and the common scale change, so the cost does not grow with the number of bins.
    """
    bins, place, log_theta_here, log_weight = levels.bins, levels.place, levels.log_theta, levels.log_weight
    share, entry, next_scale = shares.share, shares.entry, shares.next_scale
    omega = parameters[OMEGA_GAIN] / (decay_of(state, parameters, step) + parameters[OMEGA_OFFSET])
    omega = smaller(omega, parameters[OMEGA_CAP]) / n_replicas
    zeta, rest, n_bins = parameters[ZETA], parameters[FIELD_POWER], state.table.shape[1] // 2
    beyond = float(n_bins)
    learns = step < parameters[LEARN_UNTIL]
    most = 1.0 / n_replicas  # ω c ≤ 1, or θ would not stay a probability: c grows without bounds with ζ
    for lane in range(share.size):
        field = zeta * log_weight[lane] if rest == 0.0 else fma(zeta, log_weight[lane], rest * log_theta_here[lane])
        inside = (place[lane] >= 0.0) & (place[lane] < beyond)  # false for nan: a lane that has diverged
        share[lane] = smaller(omega * exp(field), most)
        share[lane] = select(inside & learns, share[lane], 0.0)
    if step >= parameters[COUNT_FROM]:
        count_outside(state, place, beyond, n_chains, n_replicas)
    divide_shares(share, entry, next_scale, state.scale, n_chains, n_replicas)
    add_visits(bins, shares, state.table, state.scale, state.visited_range, n_chains, n_replicas)
    sampled = step + 1 - np.int64(parameters[COUNT_FROM])
    if sampled >= state.next_mark[0]:  # the first step that learns since then
        for c in range(n_chains):
            while state.next_mark[c] <= sampled:
                state.next_mark[c] *= 2
            for j in range(n_bins):
                state.theta_before[c, j] = state.theta_at_mark[c, j]
                state.theta_at_mark[c, j] = state.scale[c] * state.table[c, 2 * j]


@inlined
def divide_shares(share, entry, next_scale, scale, n_chains, n_replicas):
    """left (chain) ← the scale that a step leaves; added (lane) ← what its shares of θ are in the table's units."""
    for c in range(n_chains):
        next_scale[c] = 0.0
    for r in range(n_replicas):
        own = share[r * n_chains : (r + 1) * n_chains]
        for c in range(n_chains):
            next_scale[c] += own[c]
    for c in range(n_chains):
        next_scale[c] = scale[c] * larger(1.0 - next_scale[c], SMALLEST_REST)
    for r in range(n_replicas):
        own, divided = share[r * n_chains : (r + 1) * n_chains], entry[r * n_chains : (r + 1) * n_chains]
        for c in range(n_chains):
            divided[c] = own[c] / next_scale[c]


@inlined
def add_visits(bins, shares, table, scale, visited_range, n_chains, n_replicas):
    """Put what a step adds into the table, and what it leaves of the scale into its place."""
    share, entry, next_scale = shares.share, shares.entry, shares.next_scale
    for r in range(n_replicas):
        for c in range(n_chains):
            lane = r * n_chains + c
            if share[lane] > 0.0:
                visits = uint64(2 * int(bins[lane]) + 1)
                if table[c, visits] == 0.0:
                    initialise_bin(table, scale, visited_range, c, int(bins[lane]))
                    next_scale[c] = 0.0
                table[c, visits] += 1.0
    ends = 0
    for c in range(n_chains):
        ends += int(next_scale[c] < SMALLEST_SCALE)
    if ends > 0:
        for c in range(n_chains):
            if next_scale[c] == 0.0:
                divide_again(share, entry, next_scale, scale, c, n_chains, n_replicas)
    for r in range(n_replicas):
        for c in range(n_chains):
            lane = r * n_chains + c
            table[c, uint64(2 * int(bins[lane]))] += entry[lane]
    for c in range(n_chains):
        scale[c] = next_scale[c]
    if ends > 0:
        for c in range(n_chains):
            if scale[c] < SMALLEST_SCALE:
                rescale(table, scale, c)


@noinline
def divide_again(share, entry, next_scale, scale, c, n_chains, n_replicas):
    """``divide_shares`` of one chain, whose scale has changed."""
    next_scale[c] = 0.0
    for r in range(n_replicas):
        next_scale[c] += share[r * n_chains + c]
    next_scale[c] = scale[c] * larger(1.0 - next_scale[c], SMALLEST_REST)
    for r in range(n_replicas):
        entry[r * n_chains + c] = share[r * n_chains + c] / next_scale[c]


@inlined
def count_outside(state, place, beyond, n_chains, n_replicas):
    """Count the energies below the partition, above it, and all."""
    low, high, seen = state.outside[0], state.outside[1], state.outside[2]
    for r in range(n_replicas):
        own = place[r * n_chains : (r + 1) * n_chains]
        for c in range(n_chains):
            low[c] += int(own[c] < 0.0)
            high[c] += int(own[c] >= beyond)
            seen[c] += 1


@noinline
def rescale(table, scale, c):
    """Bring the scale of chain ``c`` back to 1."""
    for j in range(table.shape[1] // 2):
        if table[c, 2 * j + 1] > 0.0:
            table[c, 2 * j] = larger(scale[c] * table[c, 2 * j], SMALLEST_THETA)
    scale[c] = 1.0


@noinline
def initialise_bin(table, scale, visited_range, c, j):
    """Give the bin ``j`` of chain ``c`` the θ of the nearest visited bin, and let θ sum to 1 as before."""
    nearest = nearest_visited(table, visited_range, c, j)
    visited_range[0, c], visited_range[1, c] = min(visited_range[0, c], j), max(visited_range[1, c], j)
    if nearest < 0:
        table[c, 2 * j] = 1.0
        return
    table[c, 2 * j] = table[c, 2 * nearest]
    scale[c] /= fma(scale[c], table[c, 2 * j], 1.0)


def temper_by_contour(state, numbers, parameters, step, samples, changes):
    """Learn θ from the energies, and multiply the gradients by what they gave before it."""
    rows, masses = state.rows, state.masses
    if samples:
        place = rows[PLACE]
        for lane in range(place.size):
            place[lane] = select(state.status[lane] == 0, place[lane], math.nan)  # the diverged teach nothing
        shares = Shares(masses[SHARE], masses[ENTRY], masses[NEXT_SCALE])
        levels = levels_of(state, rows[MULTIPLIER])
        update_theta(levels, shares, state.contour, parameters, step, numbers.n_chains, numbers.n_replicas)
    if numbers.leapfrogs > 0:  # the Metropolis test compares energies that one θ has flattened
        find_multipliers(rows[NOISY_ENERGY], rows[MULTIPLIER], state, numbers, parameters)
    scale_gradients(state, rows[MULTIPLIER])
