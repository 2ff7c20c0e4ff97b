"""Problems in a box, as nested samplers use them, with their truths: coin flip, egg crate, Gaussian shells, dual moon.

The energies have the uniform prior of the box in them, so that ``truth.log_normaliser`` is the evidence that the
literature prints.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy

from toolkit.errors import check_array, check_count, check_scale
from toolkit.maths.elementary import exp, fma, larger, log, select, sincos_turns, smaller
from toolkit.problem import EnergyAccuracy, Modes, Problem, Spread, Target, check_finite_points, recorded

from ..arrays import Array
from ..domains import box
from ..truth.quantiles import check_probabilities, checked_edges
from ..truth.rejection import accepted, check_draws, generator
from ..truth.running_integral import RunningIntegral
from ..truth.tail_quantiles import quantiles_from_tails
from ..truth.window import plane_truth

SMALLEST, LARGEST = 1e-300, 1.0 - 2.0**-53  # of p₁p₂ in logarithms, so that no energy is nan beyond the square
MAX_FLIPS = 2**24  # beyond which log of the binomial coefficient is wrong by 1e-7
MAX_ENERGY = 700.0  # nats above the lowest energy beyond which the law has nothing in float64
DEPTH = 750.0  # nats below the highest density at which the integrals end
MAX_NEWTON_STEPS = 60
PANELS = 256  # of each side of a running integral
EGG_CRATE_SIDE = 10.0 * np.pi
SHELL_BOX = 6.0  # half the side
MOON_BOX = 4.0  # half the side
SHELL_REACH = 9.0  # standard deviations from a shell's radius beyond which no draw lies: 1e-19 of the mass


def coin_flip_block(position: Any, energy: Any, gradient: Any, parameters: Any, scratch: Any) -> None:
    """Energy and gradient of ``coin_flip``; parameters: heads, tails, log of the binomial coefficient."""
    heads, tails, constant = parameters[0], parameters[1], parameters[2]
    first, second, slope_first, slope_second = position[0], position[1], gradient[0], gradient[1]
    for lane in range(energy.size):
        product = first[lane] * second[lane]
        share = select(product > SMALLEST, product, SMALLEST)
        share = select(share < LARGEST, share, LARGEST)
        energy[lane] = -fma(heads, log(share), fma(tails, log(1.0 - share), constant))
        slope = tails / (1.0 - share) - heads / share
        slope_first[lane], slope_second[lane] = slope * second[lane], slope * first[lane]


@recorded("classics")
def coin_flip(*, n: int = 100_000, heads: int = 50_000) -> Problem:
    """U(p) = −log C(n, k) − k log p₁p₂ − (n − k) log(1 − p₁p₂) in the unit square: k heads in n flips of two coins.

    A flip is a head where both coins show one, and only p₁p₂ can be told: the mass lies on the curve p₁p₂ = k / n,
    √(k (n − k) / n³) wide in p₁p₂ (0.0016 for the defaults), between two walls. n: flips, 2 to 2²⁴ − 1. heads: k, from
    1 to n − 1. Raises TypeError or ValueError otherwise.
    Law: u = p₁p₂ has density ∝ u^k (1 − u)^(n − k) (−log u), and log p₁ is uniform on (log u, 0) given u. With the
    uniform prior, log Z = log((ψ(n + 2) − ψ(k + 1)) / (n + 1)), ψ the digamma function: −11.8794 for the defaults.
    It is one mode.
    Source: Surjanovic et al. (2023), "Pigeons.jl", whose example this is, with the default numbers.
    """
    n = check_count("n", n, at_least=2, below=MAX_FLIPS)
    heads = check_count("heads", heads, at_least=1, below=n)
    truth = CoinFlipTruth(n, heads)
    numbers = np.array([heads, n - heads, truth.log_binomial], np.float64)
    target = Target(f"coin_flip({n}, {heads})", 2, coin_flip_block, numbers, spread=Spread([0.5, 0.5], [0.5, 0.5]))
    return Problem(target, box([0.0, 0.0], [1.0, 1.0]).domain, truth)


@dataclass(frozen=True, eq=False)
class CoinFlipTruth:
    """Truth of ``coin_flip`` by its law of u = p₁p₂: moments in closed form, the rest by integrals over logit u."""

    n: int
    heads: int
    accuracy: float = 1e-9

    at_hand: ClassVar[tuple[str, ...]] = ("memberships", "moments")  # ``toolkit._output.report.warnings``

    @property
    def log_binomial(self) -> float:
        """log C(n, k)."""
        n, k = self.n, self.heads
        return float(scipy.special.gammaln(n + 1) - scipy.special.gammaln(k + 1) - scipy.special.gammaln(n - k + 1))

    @property
    def _mean_log(self) -> float:
        """(n + 1) Z: the mean of −log u where u is beta(k + 1, n − k + 1)."""
        return float(scipy.special.digamma(self.n + 2) - scipy.special.digamma(self.heads + 1))

    @property
    def log_normaliser(self) -> float:
        """log ∫ exp(−U) over the square, in nats."""
        return float(np.log(self._mean_log) - np.log(self.n + 1))

    @property
    def mean(self) -> Array:
        """Mean (2,)."""
        return np.full(2, (self.n - self.heads + 1) / (self.n + 2) / self._mean_log)

    @property
    def covariance(self) -> Array:
        """Covariance (2, 2)."""
        n, k = self.n, self.heads
        square = 0.5 * (1.0 - (k + 1) * (k + 2) / ((n + 2) * (n + 3))) / self._mean_log
        product = (k + 1) / (n + 2) * (scipy.special.digamma(n + 3) - scipy.special.digamma(k + 2)) / self._mean_log
        mean = self.mean[0]
        return np.asarray(np.array([[square, product], [product, square]]) - mean**2)

    @property
    def modes(self) -> Modes:
        """The curve, by its point on the diagonal."""
        return Modes(np.full((1, 2), np.sqrt(self.heads / self.n)), np.ones(1))

    def memberships(self, points: Any) -> Array:
        """Ones (n, 1)."""
        return np.ones((len(check_finite_points(points, 2)), 1))

    @property
    def lowest_energy(self) -> float:
        """U on the curve p₁p₂ = k / n."""
        n, k = self.n, self.heads
        return float(-self.log_binomial - k * np.log(k / n) - (n - k) * np.log1p(-k / n))

    def _gap(self, logit: Array) -> Array:
        """p₁p₂ − k / n where logit p₁p₂ is ``logit``, without cancellation near the curve."""
        share = self.heads / self.n
        shift = logit - scipy.special.logit(share)
        size = -np.expm1(-np.abs(shift))
        above, below = scipy.special.expit(logit) * (1.0 - share), scipy.special.expit(-logit) * share
        return np.asarray(np.where(shift > 0.0, above * size, -below * size))

    def excess(self, logit: Array) -> Array:
        """U above its lowest where logit p₁p₂ is ``logit``, without cancellation near the curve."""
        share, gap = self.heads / self.n, self._gap(logit)
        near = np.abs(logit - scipy.special.logit(share)) < 1.0
        rise = -np.logaddexp(0.0, -logit) - np.log(share)  # log(u n / k), u = p₁p₂
        fall = -np.logaddexp(0.0, logit) - np.log1p(-share)  # log((1 − u) / (1 − k / n))
        rise = np.where(near, np.log1p(np.where(near, gap, 0.0) / share), rise)
        fall = np.where(near, np.log1p(-np.where(near, gap, 0.0) / (1.0 - share)), fall)
        return np.asarray(np.maximum(-self.heads * rise - (self.n - self.heads) * fall, 0.0))

    def _law(self, logit: Array) -> Array:
        """Density of logit u up to a constant: exp(−U), du / d logit u = u (1 − u), and the factor −log u."""
        minus_log, minus_log_rest = np.logaddexp(0.0, -logit), np.logaddexp(0.0, logit)
        return np.asarray(np.exp(-self.excess(logit) - minus_log - minus_log_rest) * minus_log)

    @cached_property
    def _sides(self) -> tuple[RunningIntegral, RunningIntegral]:
        """Integrals of the law below and above logit(k / n)."""
        middle = float(scipy.special.logit(self.heads / self.n))
        ends = [self._level(DEPTH, side) for side in (-1.0, 1.0)]
        low, high = (np.linspace(middle, end, PANELS + 1) for end in ends)
        return RunningIntegral(self._law, low[::-1]), RunningIntegral(self._law, high)

    def _level(self, excess: Any, side: float) -> Array:
        """logit u below (side −1) or above (+1) the curve's where U is ``excess`` above its lowest, of its shape."""
        wanted = np.sqrt(np.maximum(np.asarray(excess, np.float64), 1e-300))
        share = self.heads / self.n
        middle = scipy.special.logit(share)
        far = wanted * np.sqrt(2.0 / (self.n * share * (1.0 - share)))
        for _ in range(MAX_NEWTON_STEPS):  # on √U, which is nearly linear; its slope is n (u − k / n) / (2 √U)
            place = middle + side * far
            root = np.sqrt(self.excess(place))
            step = 2.0 * root * (wanted - root) / np.maximum(self.n * np.abs(self._gap(place)), 1e-300)
            far = np.maximum(far + step, 0.25 * far)
            if (np.abs(step) <= 1e-14 * far).all():
                break
        return np.asarray(middle + side * far)

    def energy_tails(self, energies: Any) -> tuple[Array, Array]:
        """P(U ≤ u) and P(U > u) for each u of ``energies``, of its shape."""
        excess = np.clip(check_array("energies", energies) - self.lowest_energy, 0.0, DEPTH)
        left, right = self._sides
        low, high = self._level(excess, -1.0), self._level(excess, 1.0)
        whole = left.whole + right.whole
        return (left.above(low) + right.below(high)) / whole, (left.below(low) + right.above(high)) / whole

    def energy_quantiles(self, probabilities: Any) -> Array:
        """Energies u with P(U ≤ u) = p."""

        def tails(level: float) -> tuple[float, float]:
            below, above = self.energy_tails(level)
            return float(below), float(above)

        lowest = self.lowest_energy
        return quantiles_from_tails(tails, check_probabilities(probabilities), lowest, lowest + MAX_ENERGY)

    @property
    def energy_accuracy(self) -> EnergyAccuracy:
        """Of energy quantiles; the absolute part is the rounding of energies just above the lowest."""
        return EnergyAccuracy(1e-6, 1e-7)

    def cell_masses(self, x_edges: Any, y_edges: Any = None) -> Array:
        """Probability of each cell, shape (nx, ny): differences of P(p₁ ≤ x, p₂ ≤ y), a function of w = xy alone.

        That function is ∫₀ʷ (log w − log u) over the beta law of u, over the mean of −log u.
        """
        x, y = (np.clip(edges, 0.0, 1.0) for edges in checked_edges(x_edges, y_edges, 2))
        product = np.outer(x, y)
        logit = scipy.special.logit(np.clip(product, 1e-300, 1.0))
        left, right = self._sides
        share = (left.below(logit) + right.below(logit)) / (left.whole + right.whole)  # of the integral of −log u
        logs = np.log(np.clip(product, 1e-300, 1.0))
        below = share + logs * scipy.special.betainc(self.heads + 1, self.n - self.heads + 1, product) / self._mean_log
        return np.asarray(np.maximum(np.diff(np.diff(below, axis=0), axis=1), 0.0))

    def independent_draws(self, n: int, *, seed: int) -> Array:
        """Exact draws (n, 2): u by rejection under a beta law, as −log u ≤ (1 − u) / u; then log p₁ is uniform."""
        rng = generator(seed)

        def propose(batch: int) -> Array:
            u = rng.beta(self.heads, self.n - self.heads + 2, batch)
            u = u[(u > 0.0) & (u < 1.0)]
            kept = u[rng.random(u.size) * (1.0 - u) < -u * np.log(u)]
            first = kept ** rng.random(kept.size)
            return np.stack([first, kept / first], axis=1)

        return accepted(check_draws(n, 2), 2, propose, name="draws of coin_flip")


def egg_crate_block(position: Any, energy: Any, gradient: Any, parameters: Any, scratch: Any) -> None:
    """Energy and gradient of ``egg_crate``; parameters: log of the square's area."""
    row_x, row_y, slope_x, slope_y = position[0], position[1], gradient[0], gradient[1]
    for lane in range(energy.size):
        sin_x, cos_x = sincos_turns(0.07957747154594767 * row_x[lane])  # of x / 2: turns are x / (4 π)
        sin_y, cos_y = sincos_turns(0.07957747154594767 * row_y[lane])
        base = fma(cos_x, cos_y, 2.0)
        fourth = (base * base) * (base * base)
        energy[lane] = fma(-fourth, base, parameters[0])
        slope_x[lane], slope_y[lane] = 2.5 * fourth * sin_x * cos_y, 2.5 * fourth * cos_x * sin_y


@recorded("classics")
def egg_crate() -> Problem:
    """U(x) = 2 log 10π − (2 + cos(x₁/2) cos(x₂/2))⁵ in [0, 10π]²: 18 equal peaks, 211 nats above the saddles.

    The classic egg box of nested sampling; ``egg_box`` is a gentler one without walls. With the uniform prior,
    log Z = 235.8559. Modes: the peaks at 2π (i, j), i + j even, i and j from 0 to 5, each about 0.1 wide: eight inside
    the square have 4/50 of the mass each, eight at an edge 2/50, and two in corners 1/50.
    Source: Feroz, Hobson & Bridges (2009), "MultiNest"; dynesty's example has the same square.
    """
    target = Target("egg_crate", 2, egg_crate_block, np.array([2.0 * np.log(EGG_CRATE_SIDE)]))
    steps = np.stack(np.meshgrid(np.arange(6), np.arange(6), indexing="ij"), axis=-1).reshape(-1, 2)
    peaks = 2.0 * np.pi * steps[steps.sum(axis=1) % 2 == 0].astype(np.float64)
    window = (0.0, EGG_CRATE_SIDE, 0.0, EGG_CRATE_SIDE)
    truth = plane_truth(target, window, peaks, has_walls=True)
    return Problem(target, box([0.0, 0.0], [EGG_CRATE_SIDE, EGG_CRATE_SIDE]).domain, truth)


def gaussian_shells_block(position: Any, energy: Any, gradient: Any, parameters: Any, scratch: Any) -> None:
    """Energy and gradient of ``gaussian_shells``; parameters: distance, radius, 1 / width², constant."""
    distance, radius, precision, constant = parameters[0], parameters[1], parameters[2], parameters[3]
    row_x, row_y, slope_x, slope_y = position[0], position[1], gradient[0], gradient[1]
    for lane in range(energy.size):
        left, right, y = row_x[lane] + distance, row_x[lane] - distance, row_y[lane]
        from_left, from_right = math.sqrt(fma(left, left, y * y)), math.sqrt(fma(right, right, y * y))
        gap_left, gap_right = from_left - radius, from_right - radius
        depth_left, depth_right = 0.5 * precision * gap_left * gap_left, 0.5 * precision * gap_right * gap_right
        lower = smaller(depth_left, depth_right)
        weight_left, weight_right = exp(lower - depth_left), exp(lower - depth_right)
        total = weight_left + weight_right
        energy[lane] = lower - log(total) + constant
        pull_left = precision * gap_left / larger(from_left, SMALLEST) * (weight_left / total)
        pull_right = precision * gap_right / larger(from_right, SMALLEST) * (weight_right / total)
        slope_x[lane] = fma(pull_left, left, pull_right * right)
        slope_y[lane] = (pull_left + pull_right) * y


@recorded("classics")
def gaussian_shells(*, distance: float = 3.5, radius: float = 2.0, width: float = 0.1) -> Problem:
    """U(x) = log 144 − log Σ_c N(‖x − c‖; r, w²), c = (±d, 0), in [−6, 6]²: two thin shells of equal weight.

    N(·; r, w²) is the normal density, so that with the uniform prior log Z = log(4πr / 144) but for what walls and
    centres cut off: −1.746 for the defaults. distance: d > 0. radius: r > 0. width: w > 0, at most r / 10. All three
    such that the shells lie apart and inside the box, to 5 w: r + 5 w ≤ d, d + r + 5 w ≤ 6. Raises TypeError or
    ValueError otherwise. Modes: the shells, each by its point nearest to the middle.
    Source: Feroz, Hobson & Bridges (2009), "MultiNest", with the default numbers; dynesty's example has them too.
    """
    distance, radius, width = (
        check_scale(name, value) for name, value in (("distance", distance), ("radius", radius), ("width", width))
    )
    reach = radius + 5.0 * width
    if width > 0.1 * radius:
        raise ValueError(f"width must be ≤ radius / 10 = {0.1 * radius:g}, got {width:g}")
    if distance < reach or distance + reach > SHELL_BOX:
        raise ValueError(
            f"distance must be ≥ radius + 5 width = {reach:g} and ≤ 6 − radius − 5 width = {SHELL_BOX - reach:g}, got "
            f"{distance:g}"
        )
    side = 2.0 * SHELL_BOX
    constant = 2.0 * np.log(side) + 0.5 * np.log(2.0 * np.pi) + np.log(width)
    numbers = np.array([distance, radius, width**-2, constant])
    target = Target(f"gaussian_shells({distance:g}, {radius:g}, {width:g})", 2, gaussian_shells_block, numbers)

    def draw(n: int, seed: int) -> Array:
        """Exact draws: the distance from a centre by rejection under its normal law, the angle uniform."""
        rng = generator(seed)

        def propose(batch: int) -> Array:
            normal = rng.standard_normal(batch)
            length = radius + width * normal
            keep = rng.random(batch) * (radius + SHELL_REACH * width) < length
            length = length[keep & (np.abs(normal) < SHELL_REACH)]
            turns, sides = rng.random(length.size), rng.choice([-1.0, 1.0], length.size)
            x = sides * distance + length * np.cos(2.0 * np.pi * turns)
            points = np.stack([x, length * np.sin(2.0 * np.pi * turns)], axis=1)
            return np.asarray(points[(np.abs(points) <= SHELL_BOX).all(axis=1)])

        return accepted(n, 2, propose, name=f"draws of {target.name!r}")

    inner = distance - radius
    window = (-SHELL_BOX, SHELL_BOX, -SHELL_BOX, SHELL_BOX)
    truth = plane_truth(target, window, [[-inner, 0.0], [inner, 0.0]], draw=draw, has_walls=True)
    return Problem(target, box([-SHELL_BOX] * 2, [SHELL_BOX] * 2).domain, truth)


def dual_moon_block(position: Any, energy: Any, gradient: Any, parameters: Any, scratch: Any) -> None:
    """Energy and gradient of ``dual_moon``; parameters: radius, 1 / width², 1 / length², constant."""
    radius, across, along, constant = parameters[0], parameters[1], parameters[2], parameters[3]
    row_x, row_y, slope_x, slope_y = position[0], position[1], gradient[0], gradient[1]
    for lane in range(energy.size):
        x, y = row_x[lane], row_y[lane]
        length = math.sqrt(fma(x, x, y * y))
        gap = length - radius
        size = select(x < 0.0, -x, x)
        away = size - radius
        other = exp(-2.0 * along * radius * size)  # the farther moon's share of the nearer one's density
        energy[lane] = 0.5 * fma(across * gap, gap, along * away * away) - log(1.0 + other) + constant
        pull = across * gap / larger(length, SMALLEST)
        inward = along * fma(2.0 * radius, other / (1.0 + other), away)
        slope_x[lane] = fma(pull, x, select(x < 0.0, -inward, inward))
        slope_y[lane] = pull * y


@recorded("classics")
def dual_moon() -> Problem:
    """U = log 64 + ½ ((‖x‖ − 2)/0.4)² − log(e^(−½ ((x₁ − 2)/0.6)²) + e^(−½ ((x₁ + 2)/0.6)²)), two moons in [−4, 4]².

    Modes at (±2, 0), of equal weight; the way from one to the other along the circle is 4.9 nats up, through the middle
    17.4, where the gradient has no value. With the uniform prior log Z = −2.2814; of the target in all the plane,
    without log 64, it is 1.8775. U is of fourth order along the circle at the modes, which no Hessian shows.
    Source: Rezende & Mohamed (2015), "Variational inference with normalizing flows", table 1, first potential; the
    square is that of jaxns's example of this name, which is another target: its log Z = −5.1049 is of two arcs of a
    circle of radius 2, whose density jumps where the angle is ±π.
    """
    numbers = np.array([2.0, 0.4**-2, 0.6**-2, 2.0 * np.log(2.0 * MOON_BOX)])
    target = Target("dual_moon", 2, dual_moon_block, numbers)
    window = (-MOON_BOX, MOON_BOX, -MOON_BOX, MOON_BOX)
    truth = plane_truth(target, window, [[-2.0, 0.0], [2.0, 0.0]], has_walls=True)
    return Problem(target, box([-MOON_BOX] * 2, [MOON_BOX] * 2).domain, truth)
