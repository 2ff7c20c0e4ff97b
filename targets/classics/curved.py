"""Targets with curved or narrow mass: ring, banana, funnel and pinched, each with its truth."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy

from toolkit.errors import check_array, check_count, check_number, check_scale
from toolkit.maths.elementary import exp, fma, select
from toolkit.maths.philox import MAX_DIM
from toolkit.problem import EnergyAccuracy, Modes, Spread, Target, check_finite_points, recorded

from ..arrays import Array
from ..truth.energy_levels import BOTH_TAILS
from ..truth.quantiles import check_probabilities
from ..truth.rejection import accepted, check_draws, generator
from ..truth.ridges import RidgeTruth
from ..truth.tail_quantiles import quantiles_from_tails
from ..truth.window import WindowTruth, plane_truth

WINDOW_SDS = 10.0  # standard deviations a quadrature goes to: all but e⁻⁵⁰
MAX_ENERGY = 700.0  # nats above which a normal law has nothing in float64
MIN_LOG_VARIANCE = -700.0


def ring_block(position: Any, energy: Any, gradient: Any, parameters: Any, scratch: Any) -> None:
    """Energy and gradient of ``ring``; parameters: radius², 1 / (8 radius² width²)."""
    squared_radius, stiffness = parameters[0], parameters[1]
    row_x, row_y, slope_x, slope_y = position[0], position[1], gradient[0], gradient[1]
    for lane in range(energy.size):
        x, y = row_x[lane], row_y[lane]
        excess = fma(x, x, fma(y, y, -squared_radius))
        energy[lane] = stiffness * excess * excess
        factor = 4.0 * stiffness * excess
        slope_x[lane], slope_y[lane] = factor * x, factor * y


@recorded("classics")
def ring(*, radius: float = 3.0, width: float = 0.3) -> Target:
    """U(x) = (‖x‖² − R²)² / (8 R² w²) in the plane: a ring of radius R, about w wide.

    radius: R > 0. width: w > 0, the standard deviation across, to first order. Raises TypeError or ValueError
    otherwise. It is one mode.
    Law: ‖x‖² is N(R², (2 R w)²) cut off at 0, the angle uniform; so all but cells has a closed form.
    Source: folklore, there with (‖x‖ − R)², whose gradient has no value in the middle; this one is smooth.
    """
    radius, width = check_scale("radius", radius), check_scale("width", width)
    numbers = np.array([radius**2, 0.125 / (radius * width) ** 2])
    return Target(
        f"ring({radius:g}, {width:g})",
        2,
        ring_block,
        numbers,
        truth=RingTruth(radius, width),
        spread=Spread(radius + 2.0 * width),
    )


@dataclass(frozen=True, eq=False)
class RingTruth:
    """Closed-form truth of ``ring``, but for the cells: ``plane_truth``, to 1e-6."""

    radius: float
    width: float
    accuracy: float = 1e-6

    at_hand: ClassVar[tuple[str, ...]] = ("memberships", "moments")  # ``toolkit._output.report.warnings``

    @property
    def cut(self) -> float:
        """Standard deviations of ‖x‖² from its centre R² to 0."""
        return 0.5 * self.radius / self.width

    @property
    def log_normaliser(self) -> float:
        """log of π √2π 2 R w Φ(R / 2w)."""
        constant = np.pi * np.sqrt(2.0 * np.pi) * 2.0 * self.radius * self.width
        return float(np.log(constant) + np.log(scipy.special.ndtr(self.cut)))

    @property
    def mean(self) -> Array:
        """0."""
        return np.zeros(2)

    @property
    def covariance(self) -> Array:
        """½ E‖x‖² I."""
        hazard = np.exp(-0.5 * self.cut**2) / np.sqrt(2.0 * np.pi) / scipy.special.ndtr(self.cut)
        return np.asarray(np.eye(2) * (0.5 * self.radius**2 + self.radius * self.width * hazard))

    @property
    def modes(self) -> Modes:
        """The ring, by its point on the first axis."""
        return Modes(np.array([[self.radius, 0.0]]), np.ones(1))

    def memberships(self, points: Any) -> Array:
        """Ones (n, 1)."""
        return np.ones((len(check_finite_points(points, 2)), 1))

    def energy_quantiles(self, probabilities: Any) -> Array:
        """Quantiles of U = ½ z², z normal and cut off at −R / 2w."""

        def tails(level: float) -> tuple[float, float]:
            below, above = self.energy_tails(level)
            return float(below), float(above)

        return quantiles_from_tails(tails, check_probabilities(probabilities), 0.0, MAX_ENERGY, nearest=1e-100)

    def energy_tails(self, energies: Any) -> tuple[Array, Array]:
        """P(U ≤ u) and P(U > u) for each u of ``energies``, of its shape."""
        root = np.sqrt(2.0 * np.maximum(check_array("energies", energies), 0.0))
        inner_root, mass = np.minimum(root, self.cut), scipy.special.ndtr(self.cut)
        below = 0.5 * (scipy.special.erf(root / np.sqrt(2.0)) + scipy.special.erf(inner_root / np.sqrt(2.0)))
        above = scipy.special.ndtr(-root) + (scipy.special.ndtr(-inner_root) - scipy.special.ndtr(-self.cut))
        return np.asarray(below / mass), np.asarray(above / mass)

    @property
    def energy_accuracy(self) -> EnergyAccuracy:
        """Of energy quantiles."""
        return BOTH_TAILS

    def cell_masses(self, x_edges: Any, y_edges: Any = None) -> Array:
        """Probability of each cell, shape (nx, ny)."""
        return self._in_window.cell_masses(x_edges, y_edges)

    @cached_property
    def _in_window(self) -> WindowTruth:
        """The truth by quadrature in a square."""
        half = float(np.sqrt(self.radius**2 + 2.0 * WINDOW_SDS * self.radius * self.width))
        target = ring(radius=self.radius, width=self.width)
        return plane_truth(target, (-half, half, -half, half), self.modes.centres)

    def independent_draws(self, n: int, *, seed: int) -> Array:
        """Exact draws (n, 2): ‖x‖² by its quantile function, the angle uniform."""
        rng = generator(seed)
        share, turns = rng.random((2, check_draws(n, 2)))
        normal = -scipy.special.ndtri((1.0 - share) * scipy.special.ndtr(self.cut))  # above −cut, without cancellation
        distance = np.sqrt(np.maximum(self.radius**2 + 2.0 * self.radius * self.width * normal, 0.0))
        return np.stack([distance * np.cos(2.0 * np.pi * turns), distance * np.sin(2.0 * np.pi * turns)], axis=1)


def banana_block(position: Any, energy: Any, gradient: Any, parameters: Any, scratch: Any) -> None:
    """Energy and gradient of ``banana``; parameters: curvature, scale², 1 / scale²."""
    bend, variance, precision = parameters[0], parameters[1], parameters[2]
    row_x, row_y, slope_x, slope_y = position[0], position[1], gradient[0], gradient[1]
    for lane in range(energy.size):
        x = row_x[lane]
        straight = fma(bend, fma(x, x, -variance), row_y[lane])
        energy[lane] = 0.5 * fma(precision * x, x, straight * straight)
        slope_x[lane] = x * fma(2.0 * bend, straight, precision)
        slope_y[lane] = straight
    for d in range(2, position.shape[0]):
        row, slope = position[d], gradient[d]
        for lane in range(energy.size):
            x = row[lane]
            slope[lane] = x
            energy[lane] = fma(0.5 * x, x, energy[lane])


@recorded("classics")
def banana(*, curvature: float = 0.03, scale: float = 10.0, dim: int = 2) -> Target:
    """U(x) = x₁² / (2 s²) + ½ (x₂ + b (x₁² − s²))² + ½ Σ_{i>2} x_i²: a normal law bent along a parabola.

    curvature: b, any finite number. scale: s > 0, standard deviation of x₁. dim: ≥ 2. Raises TypeError or ValueError
    otherwise. Law: the bend keeps volume, so U is ½ χ²(dim); x₂ has variance 1 + 2 b² s⁴ and is uncorrelated with x₁.
    Source: Haario, Saksman & Tamminen (1999), with b = 0.03 and 0.1, s = 10.
    """
    bend = check_number("curvature", check_number("curvature", curvature), above=-1e100, below=1e100)
    scale = check_scale("scale", scale)
    dim = check_count("dim", dim, at_least=2, below=MAX_DIM)
    mode = np.zeros((1, dim))
    mode[0, 1] = bend * scale**2
    truth = RidgeTruth(
        dim,
        level=lambda x: 0.5 * (x / scale) ** 2,
        centre=lambda x: bend * (scale**2 - x**2),
        width=np.ones_like,
        window=(-WINDOW_SDS * scale, WINDOW_SDS * scale),
        draw_first=lambda n, rng: scale * rng.standard_normal(n),
        centres=mode,
    )
    numbers = np.array([bend, scale**2, scale**-2])
    sds = np.ones(dim)
    sds[:2] = scale, np.hypot(1.0, 2.0**0.5 * bend * scale**2)
    name = f"banana({bend:g}, {scale:g}) in {dim}-D"
    return Target(name, dim, banana_block, numbers, truth=truth, spread=Spread(2.0 * sds))


def funnel_block(position: Any, energy: Any, gradient: Any, parameters: Any, scratch: Any) -> None:
    """Energy and gradient of ``funnel``; parameters: 1 / scale²; scratch: one row for e^−v."""
    inverse, half_rest = parameters[0], 0.5 * (position.shape[0] - 1)
    first, slope_first, precision = position[0], gradient[0], scratch[0]
    for lane in range(energy.size):
        energy[lane] = 0.0
    for d in range(1, position.shape[0]):
        row = position[d]
        for lane in range(energy.size):
            energy[lane] = fma(row[lane], row[lane], energy[lane])
    for lane in range(energy.size):
        v = first[lane]
        precision[lane] = exp(-select(v < MIN_LOG_VARIANCE, MIN_LOG_VARIANCE, v))
        spread = 0.5 * precision[lane] * energy[lane]
        energy[lane] = fma(v, fma(0.5 * inverse, v, half_rest), spread)
        slope_first[lane] = fma(inverse, v, half_rest - spread)
    for d in range(1, position.shape[0]):
        row, slope = position[d], gradient[d]
        for lane in range(energy.size):
            slope[lane] = precision[lane] * row[lane]


@recorded("classics")
def funnel(*, dim: int = 10, scale: float = 3.0) -> Target:
    """U(x) = v² / (2 s²) + ½ (dim − 1) v + ½ e^−v Σ_{i>1} x_i², v = x₁: the others have variance e^v.

    dim: ≥ 2. scale: s > 0, standard deviation of v; at most 20, for the variances e^v leave float64 beyond. Raises
    TypeError or ValueError otherwise. Where v < −700 the factor e^−v is held at e^700, so that no energy is nan.
    Law: v is N(0, s²), x_i given v N(0, e^v); U = v² / (2 s²) + ½ (dim − 1) v + ½ χ²(dim − 1).
    Source: Neal (2003), section 8, with dim = 10 and s = 3.
    """
    dim = check_count("dim", dim, at_least=2, below=MAX_DIM)
    scale = check_scale("scale", check_number("scale", scale, above=0.0, at_most=20.0))
    mode = np.zeros((1, dim))
    mode[0, 0] = -0.5 * (dim - 1) * scale**2
    truth = RidgeTruth(
        dim,
        level=lambda v: 0.5 * (v / scale) ** 2 + 0.5 * (dim - 1) * v,
        centre=np.zeros_like,
        width=lambda v: np.exp(0.5 * v),
        window=(-WINDOW_SDS * scale, (WINDOW_SDS + scale) * scale),  # the covariance's mass lies scale² higher
        draw_first=lambda n, rng: scale * rng.standard_normal(n),
        centres=mode,
    )
    reach = np.full(dim, 2.0)
    reach[0] = min(scale, 3.0)  # far out in the neck a usual step overshoots
    name = f"funnel({scale:g}) in {dim}-D"
    return Target(name, dim, funnel_block, np.array([scale**-2]), 1, truth, spread=Spread(reach))


def pinched_block(position: Any, energy: Any, gradient: Any, parameters: Any, scratch: Any) -> None:
    """Energy and gradient of ``pinched``; parameters: barrier, left, right, neck, 1 / reach²."""
    barrier, left, right, neck, tightness = parameters[0], parameters[1], parameters[2], parameters[3], parameters[4]
    row_x, row_y, slope_x, slope_y = position[0], position[1], gradient[0], gradient[1]
    for lane in range(energy.size):
        x, y = row_x[lane], row_y[lane]
        before, after = x + 1.0, x - 1.0
        bulb_left = left * exp(-0.5 * tightness * before * before)
        bulb_right = right * exp(-0.5 * tightness * after * after)
        inverse = 1.0 / (neck + (bulb_left + bulb_right))
        share = y * inverse
        well = before * after
        widening = -tightness * fma(before, bulb_left, after * bulb_right)
        energy[lane] = fma(0.5 * share, share, barrier * well * well)
        slope_x[lane] = fma(4.0 * barrier * x, well, -share * share * inverse * widening)
        slope_y[lane] = share * inverse


@recorded("classics")
def pinched(
    *, left: float = 0.5, right: float = 0.1, neck: float = 0.02, reach: float = 0.3, barrier: float = 2.0
) -> Target:
    """U(x) = b (x₁² − 1)² + x₂² / (2 s(x₁)²), s(x) = neck + left e^(−(x + 1)²/2r²) + right e^(−(x − 1)²/2r²).

    Modes at (±1, 0), both of energy 0, of widths ``left`` and ``right`` and so of unequal weight, almost disconnected:
    between them the law is but ``neck`` wide, which holds a chain back by log(left / neck) besides the barrier b.
    All five > 0; raises TypeError or ValueError otherwise. reach: r, the bulbs' standard length.
    Law: x₂ given x₁ is N(0, s²); x₁ has density ∝ s e^(−b (x₁² − 1)²). Source: made for this zoo.
    """
    widths = [("left", left), ("right", right), ("neck", neck), ("reach", reach), ("barrier", barrier)]
    left, right, neck, reach, barrier = (check_scale(name, value) for name, value in widths)
    end = float(np.sqrt(1.0 + np.sqrt(60.0 / barrier)))

    def width(x: Array) -> Array:
        bulbs = left * np.exp(-0.5 * ((x + 1.0) / reach) ** 2) + right * np.exp(-0.5 * ((x - 1.0) / reach) ** 2)
        return np.asarray(neck + bulbs)

    def draw_first(n: int, rng: np.random.Generator) -> Array:
        """By rejection: b (x² − 1)² ≥ b (|x| − 1)², and s ≤ neck + left + right."""

        def propose(batch: int) -> Array:
            size = 1.0 + rng.standard_normal(batch) / np.sqrt(2.0 * barrier)
            size = size[size >= 0.0]
            x = size * rng.choice([-1.0, 1.0], size.size)
            log_keep = barrier * ((size - 1.0) ** 2 - (size**2 - 1.0) ** 2)
            keep = np.exp(log_keep) * width(x) / (neck + left + right)
            return np.asarray(x[rng.random(x.size) < keep, None])

        return accepted(n, 1, propose, name="pinched")[:, 0]

    truth = RidgeTruth(
        2,
        level=lambda x: barrier * (x**2 - 1.0) ** 2,
        centre=np.zeros_like,
        width=width,
        window=(-end, end),
        draw_first=draw_first,
        centres=np.array([[-1.0, 0.0], [1.0, 0.0]]),
        borders=(0.0,),
        breaks=tuple(centre + far * reach for centre in (-1.0, 1.0) for far in (-6.0, -2.0, 0.0, 2.0, 6.0)),
    )
    numbers = np.array([barrier, left, right, neck, reach**-2])
    return Target(
        f"pinched({left:g}, {right:g}, {neck:g})", 2, pinched_block, numbers, truth=truth, spread=Spread([1.5, neck])
    )
