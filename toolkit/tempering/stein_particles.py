"""Stein variational gradient descent: particles that descend together and push each other apart."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._compiler.block_rows import ALIVE, BANDWIDTH, ENERGY, KERNEL, TEMPERATURE
from .._compiler.decorators import in_float32, kernel
from ..errors import check_number
from ..maths.elementary import exp, fma, log, select
from ..maths.medians import median, median_by_partition
from .interface import Tempering

SMALLEST = 1e-300  # a bandwidth below it has no finite reciprocal to speak of


@dataclass(frozen=True)
class Stein(Tempering):
    """The bandwidth, as ``stein`` explains it."""

    comes_to_rest = True

    bandwidth: float | None = None

    def __post_init__(self) -> None:
        if self.bandwidth is not None:
            check_number("bandwidth", self.bandwidth, above=0.0)

    @property
    def step(self) -> Callable[..., None]:
        """The block function of one step."""
        return temper_by_stein

    def parameters(self, burn_in: int = 0, energy_noise: float = 0.0) -> NDArray[np.float64]:
        """The bandwidth, 0 for the median heuristic."""
        return np.array([self.bandwidth or 0.0])

    def words(self, n_replicas: int) -> str:
        """The number of particles."""
        return f"Stein's repulsion of {n_replicas} particles"


def stein(*, bandwidth: float | None = None) -> Stein:
    """The P replicas of a chain are particles: in place of its gradient each descends along −φ, without noise.

    φ_i = (1/P) Σ_j [−k(x_j, x_i) ∇U(x_j) + T ∇_{x_j} k(x_j, x_i)], k(x, y) = exp(−|x − y|² / b), j = i included:
    shared gradients pull towards the modes, the kernel's gradient pushes apart.

    bandwidth: b > 0; None means b = median / log(P + 1) of the squared distances of the P (P − 1) / 2 pairs, anew at
    each step and for each chain. Where that median is 0 the mean takes its place; where all particles are at one
    place b is 1, which is then of no effect, and they never part.
    Law: no random draws but points at rest, where Σ_i [T ∇f(x_i) − f(x_i) ∇U(x_i)] = 0 for the P functions
    f = k(x_j, ·): Stein's identity, which for all f only the law at temperature T satisfies. Biased for any P: the
    particles are too narrow, and more so the more dimensions; 100 of them rest on N(0, I) at a variance of 0.96, 0.92,
    0.70, 0.43 and 0.1 in 1, 2, 5, 10 and 50. Two on N(0, T) rest at ±a, a² = (b/4) log(1 + 4T/b), which with the
    median's b is 0.549 T. One particle descends to a mode. Nothing carries particles over a barrier but the push of
    others, so the shares of distant modes are those of the start; begin at different places.
    Source: Liu & Wang (2016), algorithm 1 and section 5, with log(P + 1) for log P; the SVGD baseline of ICSGLD
    (2022). Raises ValueError where out of range.
    """
    return Stein(bandwidth)


def distances_room(n_replicas: int) -> int:
    """Length of the scratch ``distances`` of ``stein_gradients``."""
    return n_replicas * (n_replicas - 1) // 2


class Particles(NamedTuple):
    """Where particles are, their gradients, and their temperatures: (dim, lane), (dim, lane) and (lane,)."""

    position: Any
    gradient: Any
    temperature: Any


class Scratch(NamedTuple):
    """Scratch of ``stein_gradients``. bandwidths is left with reciprocals, near which the next median is sought."""

    direction: Any  # (dim, lane)
    weight: Any  # (lane,)
    distances: Any  # (distances_room,)
    bandwidths: Any  # (lane,)


@kernel
def stein_gradients(particles, scratch, bandwidth, n_chains, n_replicas):
    """gradient ← −φ in a block whose lane of (replica r, chain c) is r · n_chains + c; padding lanes keep theirs.

    bandwidth 0 means the median heuristic. A lane's sum runs over its partners in an order that P alone determines.
    """
    position, gradient = particles.position, particles.gradient
    direction, weight, distances, bandwidths = scratch.direction, scratch.weight, scratch.distances, scratch.bandwidths
    if n_replicas == 1:
        return
    used = n_replicas * n_chains
    for chain in range(n_chains):
        b = bandwidth
        if b == 0.0:
            last = 1.0 / bandwidths[chain]  # as the step before left it, or anything
            b = median_bandwidth(position, direction, distances, last, chain, n_chains, n_replicas)
        for r in range(n_replicas):
            bandwidths[r * n_chains + chain] = b
    # With gradients in units of 2/b the kernel's own gradient needs no factor but T. Here j = i, where k = 1.
    for d in range(position.shape[0]):
        scaled, sums = gradient[d, :used], direction[d, :used]
        for lane in range(used):
            scaled[lane] *= 0.5 * bandwidths[lane]
            sums[lane] = scaled[lane]
    for lane in range(used):
        bandwidths[lane] = 1.0 / bandwidths[lane]
    for shift in range(1, n_replicas // 2 + 1):  # partners r and r + shift modulo P: two straight runs of lanes
        offset = shift * n_chains
        rest = used - offset
        runs = ((0, offset, rest), (rest, 0, offset))
        for here, there, count in runs:
            measure(position, weight, here, there, count)
        for lane in range(weight.size):  # padding too: a scalar remainder costs more
            weight[lane] = exp(-weight[lane] * bandwidths[lane])
        for here, there, count in runs:
            pull(particles, weight, direction, here, there, here, count)
            if 2 * shift < n_replicas:  # the pair's other end; half way round both ends come up by themselves
                pull(particles, weight, direction, there, here, here, count)
    for d in range(position.shape[0]):
        scaled, sums = gradient[d, :used], direction[d, :used]
        for lane in range(used):
            scaled[lane] = sums[lane] * (2.0 / n_replicas * bandwidths[lane])


@kernel
def measure(position, weight, here, there, count):
    """weight ← |x − y|² for the ``count`` pairs of lanes x from ``here`` and y from ``there``; weight is at x."""
    squares = weight[here : here + count]
    for d in range(position.shape[0]):
        row = position[d]
        x, y = row[here : here + count], row[there : there + count]
        if d == 0:
            for lane in range(count):
                squares[lane] = (x[lane] - y[lane]) * (x[lane] - y[lane])
        else:
            for lane in range(count):
                squares[lane] = fma(x[lane] - y[lane], x[lane] - y[lane], squares[lane])


@kernel
def pull(particles, weight, direction, here, there, pair, count):
    """Add k (∇U(y) b/2 + T (y − x)) to the sums of lanes x from ``here``; y is from ``there``, k from ``pair``."""
    position, gradient, temperature = particles.position, particles.gradient, particles.temperature
    heat, k = temperature[here : here + count], weight[pair : pair + count]
    for d in range(position.shape[0]):
        row = position[d]
        x, y = row[here : here + count], row[there : there + count]
        slope, sums = gradient[d, there : there + count], direction[d, here : here + count]
        for lane in range(count):
            sums[lane] = fma(k[lane], fma(heat[lane], y[lane] - x[lane], slope[lane]), sums[lane])


@in_float32({1e-300: 1e-37})
@kernel
def median_bandwidth(position, copy, distances, last, chain, n_chains, n_replicas):
    """b = median / log(P + 1) of the squared distances of one chain's particles; ``copy`` (dim, lane) is scratch.

    last: a b that may be near.
    """
    divisor = log(n_replicas + 1.0)
    measure_all(position, copy, distances, chain, n_chains, n_replicas)
    typical = median(distances, last * divisor)
    if typical < SMALLEST:
        typical = 0.0
        measure_all(position, copy, distances, chain, n_chains, n_replicas)
        median_by_partition(distances)
        for pair in range(distances.size):
            typical += distances[pair] / distances.size
    return select(typical < SMALLEST, 1.0, typical / divisor)


@kernel
def measure_all(position, copy, distances, chain, n_chains, n_replicas):
    """distances ← |x − y|² of all pairs of one chain's particles."""
    for d in range(position.shape[0]):
        row, particles = position[d], copy[d]
        for r in range(n_replicas):
            particles[r] = row[r * n_chains + chain]
        first = 0
        for r in range(n_replicas - 1):
            count = n_replicas - 1 - r
            x, others, squares = particles[r], particles[r + 1 : n_replicas], distances[first : first + count]
            if d == 0:
                for j in range(count):
                    squares[j] = (others[j] - x) * (others[j] - x)
            else:
                for j in range(count):
                    squares[j] = fma(others[j] - x, others[j] - x, squares[j])
            first += count


def temper_by_stein(state, numbers, parameters, step, samples, changes):
    """Put Stein's direction in the gradients' place; a particle that diverges moves the others no more."""
    rows, alive = state.rows, state.rows[ALIVE]
    if samples:
        for lane in range(alive.size):
            alive[lane] = rows[ENERGY, lane] - rows[ENERGY, lane]
        for d in range(state.gradient.shape[0]):
            for lane in range(alive.size):
                alive[lane] += state.gradient[d, lane] - state.gradient[d, lane]
        for lane in range(alive.size):
            diverges = alive[lane] != 0.0 and state.status[lane] == 0  # true for nan
            state.status[lane] = select(diverges, step + 1, state.status[lane])
        for d in range(state.gradient.shape[0]):
            for lane in range(alive.size):
                state.gradient[d, lane] = select(alive[lane] == 0.0, state.gradient[d, lane], 0.0)
        particles = Particles(state.position, state.gradient, rows[TEMPERATURE])
        scratch = Scratch(state.mirror_point, rows[KERNEL], state.distances, rows[BANDWIDTH])
        stein_gradients(particles, scratch, parameters[0], numbers.n_chains, numbers.n_replicas)
