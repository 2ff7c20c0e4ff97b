"""The likelihood of velocities: least squares of Θ(X) Ξ against dX/dt, as the r2SGLD paper has it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy

from targets.posteriors.quadratic import N_NUMBERS, quadratic_numbers, use_quadratic
from toolkit._compiler import COUNTER_ROWS, MODE, kernel
from toolkit.errors import check_array, check_choice, check_count, is_a, shown
from toolkit.maths.elementary import fma
from toolkit.problem import draw_pair

from ..arrays import Array
from ..data.gaps import parts_of
from ..data.labels import check_labels
from ..data.series import Series, has_doses, in_order, with_inputs
from ..model import Model, as_model
from ..solvers.lane_access import lane_number, set_lane_number
from ..systems.system import System
from .interface import Measured, NoValues, Prepared, ValueByValue

# Minibatches: every replica draws new data at every step. Each datum's normal equations, about the least-squares
# solution of all data, are a row of numbers; those of a batch are the sum of its rows. "independent": rows drawn with
# replacement. "windows": neighbours in a fixed random order from a random row on, as a difference of two running sums.

# After the numbers of ``use_quadratic``: data, data drawn, whether these are windows; then the rows, each A_kᵀ A_l
# (l ≤ k), A_kᵀ r, rᵀ r of a datum's equations A β = r + A mean; for windows their sums up to each, from 0 on.
N_DATA, N_DRAWN, IS_WINDOW, N_COUNTS = range(4)
FIRST_SUMS = COUNTER_ROWS + 2  # of the work rows, after the engine's counters and two data drawn


@kernel
def batch_energy(theta, energy, slope, numbers, work):
    """Energy and gradient of every lane from its own batch, scaled to all data; or from all data, by ``MODE``."""
    if work[MODE, 0] == 0.0:
        use_quadratic(theta, energy, slope, numbers, work)
        return
    q, lanes = theta.shape
    first = N_NUMBERS + q + q * q
    counts, rows = numbers[first : first + N_COUNTS], numbers[first + N_COUNTS :]
    width = row_width(q)
    drawn = work[COUNTER_ROWS:FIRST_SUMS]
    n_data, n_drawn = int(counts[N_DATA]), int(counts[N_DRAWN])
    if counts[IS_WINDOW] != 0.0:
        draw_pair(drawn, work, 0, n_data)
        for lane in range(lanes):
            set_window_sums(work, width, lane, rows, int(drawn[0, lane]), n_drawn, n_data)
    else:
        for row in range(FIRST_SUMS, FIRST_SUMS + width):
            for lane in range(lanes):
                work[row, lane] = 0.0
        for pair in range((n_drawn + 1) // 2):
            draw_pair(drawn, work, pair, n_data)
            for i in range(min(2, n_drawn - 2 * pair)):
                for lane in range(lanes):
                    begin = width * int(drawn[i, lane])
                    add_row(work, width, lane, rows[begin : begin + width])
    scale = float(n_data) / float(n_drawn)
    for lane in range(lanes):
        write_batch_energy(theta, energy, slope, numbers, work, width, scale, lane)


@kernel
def row_width(q):
    """Numbers of a datum's row."""
    return (q * (q + 1)) // 2 + q + 1


@kernel
def add_row(work, width, lane, row):
    """Add a datum's row to a lane's sums."""
    for i in range(width):
        set_lane_number(work, FIRST_SUMS, width, lane, i, lane_number(work, FIRST_SUMS, width, lane, i) + row[i])


@kernel
def set_window_sums(work, width, lane, sums, begin, n_drawn, n_data):
    """A lane's sums ← the sum of ``n_drawn`` rows from ``begin`` on, cyclically."""
    end = begin + n_drawn
    low = sums[width * begin : width * (begin + 1)]
    if end <= n_data:
        high = sums[width * end : width * (end + 1)]
        for i in range(width):
            set_lane_number(work, FIRST_SUMS, width, lane, i, high[i] - low[i])
    else:
        high, last = sums[width * (end - n_data) : width * (end - n_data + 1)], sums[width * n_data :]
        for i in range(width):
            set_lane_number(work, FIRST_SUMS, width, lane, i, (last[i] - low[i]) + high[i])


@kernel
def write_batch_energy(theta, energy, slope, numbers, work, width, scale, lane):
    """Energy and gradient of one lane from its batch's normal equations, about the mean in ``numbers``."""
    q = theta.shape[0]
    for k in range(q):
        slope[k, lane] = 0.0
    entry = 0
    for k in range(q):
        gap = theta[k, lane] - numbers[N_NUMBERS + k]
        for j in range(k + 1):
            total = lane_number(work, FIRST_SUMS, width, lane, entry)
            slope[k, lane] = fma(total, theta[j, lane] - numbers[N_NUMBERS + j], slope[k, lane])
            if j < k:
                slope[j, lane] = fma(total, gap, slope[j, lane])
            entry += 1
    value = 0.5 * lane_number(work, FIRST_SUMS, width, lane, entry + q)
    for k in range(q):
        gap = theta[k, lane] - numbers[N_NUMBERS + k]
        total = lane_number(work, FIRST_SUMS, width, lane, entry)
        value = fma(gap, fma(0.5, slope[k, lane], -total), value)
        slope[k, lane] = scale * (slope[k, lane] - total)
        entry += 1
    energy[lane] = scale * value


CHUNK_ROWS = 100_000  # of states whose terms are evaluated at a time
MAX_NUMBERS = 2**27  # of the rows that minibatches are summed from, 1 GiB


class NormalEquations(NamedTuple):
    """Normal equations of each state's velocities in the free parameters, over rows with a known velocity."""

    gram: Array  # (states, q, q)
    cross: Array  # (states, q)
    rows: Array  # (states,)
    speed: Array  # (states,) mean squares of the velocities


def normal_equations(model: Model, states: Array, velocities: Array) -> NormalEquations:
    """Sums over all rows, some 10⁵ at a time."""
    q, dim = len(model.parameters), len(model.states)
    equations = NormalEquations(np.zeros((dim, q, q)), np.zeros((dim, q)), np.zeros(dim), np.zeros(dim))
    for first in range(0, len(states), CHUNK_ROWS):
        terms = check_array("the library's terms", model.library.evaluate(states[first : first + CHUNK_ROWS]))
        for e in range(dim):
            velocity = velocities[first : first + CHUNK_ROWS, e]
            known = np.isfinite(velocity)
            design = terms[known] @ model.directions[:, :, e].T
            residual = velocity[known] - terms[known] @ model.constant[:, e]
            equations.gram[e] += design.T @ design
            equations.cross[e] += design.T @ residual
            equations.rows[e] += known.sum()
            equations.speed[e] += velocity[known] @ velocity[known]
    np.divide(equations.speed, equations.rows, out=equations.speed)
    return equations


def squared_residuals(model: Model, states: Array, velocities: Array, parameters: Array) -> Array:
    """Sums of squared residuals (states,), each state's at its own row of ``parameters`` (states, q)."""
    total = np.zeros(len(parameters))
    for first in range(0, len(states), CHUNK_ROWS):
        terms = model.library.evaluate(states[first : first + CHUNK_ROWS])
        for e, beta in enumerate(parameters):
            rest = velocities[first : first + CHUNK_ROWS, e] - terms @ model.coefficients(beta)[:, e]
            total[e] += np.nansum(rest**2)
    return total


def least_squares(precision: Array, pull: Array) -> Array:
    """A least-squares solution of precision · β = pull, the shortest in units of the columns where it is not unique."""
    scale = np.sqrt(np.diag(precision))
    scale[scale == 0.0] = 1.0
    solution = np.linalg.lstsq(precision / np.outer(scale, scale), pull / scale, rcond=None)[0]
    return np.asarray(solution / scale)


def weighted_design(model: Model, states: Array, velocities: Array, weights: Array) -> tuple[Array, Array]:
    """All states' equations in the free parameters (n, states, q) and right-hand sides (n, states), by weight."""
    terms, roots = model.library.evaluate(states), np.sqrt(weights)
    design = np.einsum("nt,kte->nek", terms, model.directions) * roots[:, None]
    return design, (velocities - terms @ model.constant) * roots


def batch_numbers(
    model: Model,
    states: Array,
    velocities: Array,
    weights: Array,
    mean: Array,
    constant: float,
    batch_size: int,
    windows: bool,
) -> Array:
    """The numbers of ``batch_energy`` that follow those of ``use_quadratic``."""
    n, q = len(states), len(mean)
    width = row_width.py_func(q)
    if windows and batch_size > n:
        raise ValueError(f"batch_size must be ≤ {n}, the number of data, for batches='windows', got {batch_size}")
    if (n + 1) * width > MAX_NUMBERS:
        raise ValueError(
            f"batch_size must be None for {n} data and {q} parameters, whose {n * width:.0e} numbers are more than "
            f"{MAX_NUMBERS:.0e}: all data cost less, or take fewer"
        )
    order = np.random.default_rng(0).permutation(n) if windows else np.arange(n)
    lower = np.tril_indices(q)
    table = np.zeros((n + 1, width))
    for first in range(0, n, CHUNK_ROWS):
        chosen = order[first : first + CHUNK_ROWS]
        design, target = weighted_design(model, states[chosen], velocities[chosen], weights)
        residual = target - design @ mean
        rows = table[first + 1 : first + 1 + len(chosen)]
        rows[:, : len(lower[0])] = np.einsum("nek,nel->nkl", design, design)[:, lower[0], lower[1]]
        rows[:, len(lower[0]) : -1] = np.einsum("nek,ne->nk", design, residual)
        rows[:, -1] = (residual**2).sum(axis=1) + 2.0 * constant / n
    rows = np.cumsum(table, axis=0) if windows else table[1:]
    return np.concatenate([[n, batch_size, float(windows)], rows.ravel()])


METHODS = ("exact", "finite_difference", "savitzky_golay", "spline")
FILTER_DEGREE = 3  # degree of the Savitzky–Golay filter
DEFAULT_WINDOW = 11  # samples of the Savitzky–Golay filter
EVEN_TOLERANCE = 1e-6  # of the mean step: largest difference of steps that count as even


class StatesAndVelocities(NamedTuple):
    """States and their velocities, each (n, dim), at the times (n,) where both are known; inputs beside the states."""

    states: Array
    velocities: Array
    times: Array


def velocities_of(
    series: Series, method: str, window: int | None = None, inputs: tuple[str, ...] = ()
) -> StatesAndVelocities:
    """States and velocities by ``method``, one of ``METHODS``; window: samples under a Savitzky–Golay filter, None: 11.

    finite_difference: second order, also between uneven times. savitzky_golay: cubic, and the smoothed states with it;
    even times only. spline: cubic smoothing splines whose smoothness is by generalised cross-validation. Rows with
    missing values, and those that need one, are left out; a filter and a spline need complete columns. inputs: names
    of those whose values are wanted beside the states.
    Raises ValueError where a method cannot be used on the data.
    """
    times, values = series.times, series.values
    if method == "exact":
        if series.velocities is None:
            raise ValueError(
                f"velocities='exact' needs a Series with velocities, which {series.name!r} has not: take "
                f"'finite_difference', 'savitzky_golay' or 'spline', or the weak or trajectory likelihood"
            )
        return complete_rows(with_inputs(series, inputs, times, values), series.velocities, times)
    if method == "finite_difference":
        if len(series) < 3:
            raise ValueError(f"velocities='finite_difference' needs at least 3 times, got {len(series)}")
        slope = np.asarray(np.gradient(values, times, axis=0, edge_order=2))
        return complete_rows(with_inputs(series, inputs, times, values), slope, times)
    if not series.is_complete:
        raise ValueError(f"velocities={shown(method)} needs data without missing values: take 'finite_difference'")
    if method == "savitzky_golay":
        width = check_window(DEFAULT_WINDOW if window is None else window)
        if width > len(series):
            raise ValueError(f"window must be odd and ≤ {len(series)}, the number of times, got {width}")
        steps = np.diff(times)
        if np.ptp(steps) > EVEN_TOLERANCE * steps.mean():
            raise ValueError(
                f"velocities='savitzky_golay' needs even times, got steps from {steps.min():g} to {steps.max():g}: "
                f"take 'spline' or 'finite_difference'"
            )
        from scipy.signal import savgol_filter  # which takes a second to import

        smooth = savgol_filter(values, width, FILTER_DEGREE, axis=0)
        slope = savgol_filter(values, width, FILTER_DEGREE, deriv=1, delta=float(steps.mean()), axis=0)
        return StatesAndVelocities(with_inputs(series, inputs, times, np.asarray(smooth)), np.asarray(slope), times)
    if len(series) < 5:
        raise ValueError(f"velocities='spline' needs at least 5 times, got {len(series)}")
    curves = [scipy.interpolate.make_smoothing_spline(times, column) for column in values.T]
    columns = [(curve(times), curve.derivative()(times)) for curve in curves]
    path, slope = (np.stack([b[k] for b in columns], axis=1) for k in range(2))
    return StatesAndVelocities(with_inputs(series, inputs, times, path), slope, times)


def check_window(window: Any) -> int:
    """``window`` as the width of a Savitzky–Golay filter. Raises TypeError or ValueError where it is none."""
    width = check_count("window", window, at_least=FILTER_DEGREE + 2, below=2**31)
    if width % 2 == 0:
        raise ValueError(f"window must be odd, got {width}")
    return width


def complete_rows(states: Array, velocities: Any, times: Array) -> StatesAndVelocities:
    """The rows in which all states and a velocity are known; a velocity that is not stays nan."""
    known = np.isfinite(states).all(axis=1) & np.isfinite(velocities).any(axis=1)
    return StatesAndVelocities(states[known], np.asarray(velocities)[known], times[known])


MIN_NOISE_SHARE = 1e-9  # of a state's RMS velocity: residuals below it are taken for rounding


@dataclass(frozen=True)
class Derivative:
    """See ``derivative``."""

    velocities: str
    noise: str | tuple[float, ...]
    batch_size: int | None
    batches: str
    window: int | None

    def prepare(self, data: Any, model: Any) -> Prepared:
        """The least squares of ``data``, a Series or several, under ``model``, a System, Library or Model."""
        given = check_data(data, as_model(model), model)
        model = as_model(model)
        moving = self._moving(given, model)
        states, velocities = (np.concatenate([m[k] for m in moving]) for k in range(2))
        if not len(states):
            raise ValueError("data must have rows without missing values, got none")
        equations = normal_equations(model, states, velocities)
        weights, constant = self._weights(equations, model, states, velocities)
        precision = np.einsum("e,ekl->kl", weights, equations.gram)
        mean = least_squares(precision, weights @ equations.cross)
        residuals = squared_residuals(model, states, velocities, np.tile(mean, (len(weights), 1)))
        lowest = constant + 0.5 * float(weights @ residuals)
        numbers = quadratic_numbers(mean, precision, lowest)
        names, kernel, rows = model.parameters, use_quadratic, 0
        if self.batch_size is not None:
            if not np.isfinite(velocities).all():
                raise ValueError("batch_size needs data without missing values")
            batch_table = batch_numbers(
                model, states, velocities, weights, mean, constant, self.batch_size, self.batches == "windows"
            )
            kernel, rows = batch_energy, FIRST_SUMS + row_width.py_func(len(mean))
            numbers = np.concatenate([numbers, batch_table])
        return Prepared(
            names,
            kernel,
            numbers,
            rows,
            (False,) * len(names),
            mean,
            self.batch_size is not None,
            (mean, precision, lowest),
            values=self._values(data, model, weights),
        )

    def _moving(self, data: Any, model: Model) -> list[StatesAndVelocities]:
        """States and velocities of each of the series ``data``; no estimate of velocities reaches over a gap."""
        least = {"exact": 1, "finite_difference": 3, "savitzky_golay": self.window or DEFAULT_WINDOW, "spline": 5}
        found = []
        for series in check_data(data, model):
            parts = [series] if self.velocities == "exact" else parts_of(series, least[self.velocities])
            moving = [velocities_of(part, self.velocities, self.window, model.library.inputs) for part in parts]
            columns = map(np.concatenate, zip(*moving, strict=True))
            found.append(moving[0] if len(moving) == 1 else StatesAndVelocities(*columns))
        return found

    def _values(self, data: Any, model: Model, weights: Array) -> ValueByValue:
        """The log density value by value."""
        if self.batch_size is not None:
            return NoValues("derivative(batch_size=) takes a few at a time: leave batch_size out")
        if self.noise == "mean":
            return NoValues("derivative(noise='mean') has no noise, and so no density: give noise")
        return Velocities(self, data, model, weights)

    def _weights(
        self, equations: NormalEquations, model: Model, states: Array, velocities: Array
    ) -> tuple[Array, float]:
        """1/noise² of each state's velocities, and the constant of their normal law, in nats."""
        if self.noise == "mean":
            return np.ones(len(equations.rows)) / equations.rows.max(), 0.0
        if self.noise == "estimated":
            best = np.array(
                [least_squares(gram, pull) for gram, pull in zip(equations.gram, equations.cross, strict=True)]
            )
            free = equations.rows - [np.linalg.matrix_rank(gram) for gram in equations.gram]
            sds = np.sqrt(squared_residuals(model, states, velocities, best) / np.maximum(free, 1.0))
            sds = np.maximum(sds, MIN_NOISE_SHARE * np.sqrt(equations.speed))
        else:
            if len(self.noise) not in (1, len(equations.rows)):
                raise ValueError(f"noise must be one or one per state, {len(equations.rows)}, got {len(self.noise)}")
            sds = np.resize(np.array(self.noise, np.float64), len(equations.rows))
        constant_states = np.flatnonzero(sds <= 0.0)
        if constant_states.size:
            raise ValueError(
                f"velocities of {model.states[constant_states[0]]!r} are all 0, so noise must be given, not estimated"
            )
        return sds**-2.0, float(equations.rows @ np.log(np.sqrt(2.0 * np.pi) * sds))


@dataclass(frozen=True, eq=False)
class Velocities:
    """Velocities one by one, each Gaussian about Θ(x) Ξ; computed again from the data. weights: 1/noise² (states,)."""

    likelihood: Derivative
    data: Any
    model: Model
    weights: Array

    def measured(self) -> tuple[Measured, ...]:
        """What the values are: at each time the states whose velocity is known."""
        found = []
        for _, velocities, times in self.likelihood._moving(self.data, self.model):
            rows, columns = np.nonzero(np.isfinite(velocities))
            found.append(Measured(times[rows], tuple(self.model.states[e] for e in columns)))
        return tuple(found)

    def log_densities(self, theta: Array) -> Array:
        """Log densities (n, values) at ``theta`` (n, q)."""
        parts, sds = [], self.weights**-0.5
        for states, velocities, _ in self.likelihood._moving(self.data, self.model):
            design, constant = weighted_design(self.model, states, velocities, np.ones(len(sds)))
            known = np.isfinite(velocities)
            residual = (constant[known] - theta @ design[known].T) / np.broadcast_to(sds, known.shape)[known]
            parts.append(-0.5 * residual**2 - np.log(np.sqrt(2.0 * np.pi) * np.broadcast_to(sds, known.shape)[known]))
        return np.concatenate(parts, axis=1)


def derivative(
    *,
    velocities: str = "exact",
    noise: str | float | Sequence[float] = "estimated",
    batch_size: int | None = None,
    batches: str = "independent",
    window: int | None = None,
) -> Derivative:
    """Velocities are Θ(x) Ξ(β) plus independent Gaussian errors: U = Σ_e Σ_i (v_ie − Θ_i Ξ_e)² / (2 noise_e²).

    velocities: "exact" (``Series.velocities``), "finite_difference", "savitzky_golay" (cubic, under ``window`` samples,
    odd and ≥ 5, None: 11; of no effect on the others) or "spline"; the latter two smooth the states too.
    noise: standard deviation of the velocities' errors, one or one per state; "estimated": that of the least-squares
    residuals, state by state; "mean": no noise, but U = ½ mean_i |v_i − Θ_i Ξ|², the energy of the r2SGLD paper, whose
    gradient is divided by the batch length.
    batch_size: None: all data, in O(q²) from their normal equations, whatever their number. Else each replica draws so
    many anew at every step and has energy and gradient from them, scaled to all: unbiased. batches, if so:
    "independent": drawn with replacement; "windows": neighbours in a fixed random order, each datum as likely, in O(q²)
    from running sums.
    Errors in the states bias this likelihood, as Θ is taken for exact: for noisy states use ``weak`` or ``trajectory``.
    Law: Gaussian posterior in closed form, for all data and flat or Gaussian priors.
    Raises TypeError or ValueError naming the argument where something is off.
    Source: Brunton et al. (2016); r2SGLD (2024), eqs. (19) and (20).
    """
    check_choice("velocities", velocities, METHODS)
    check_choice("batches", batches, ("independent", "windows"))
    if isinstance(noise, str):
        check_choice("noise", noise, ("estimated", "mean"))
    else:
        sds = check_array("noise", noise)
        if sds.ndim > 1 or sds.size == 0 or (sds <= 0.0).any():
            raise ValueError(f"noise must be one or one per state, each > 0, got {shown(noise)}")
        noise = tuple(sds.ravel().tolist())
    if batch_size is not None:
        batch_size = check_count("batch_size", batch_size, at_least=1, below=2**17)
    if window is not None:
        check_window(window)
    return Derivative(velocities, noise, batch_size, batches, window)


def check_data(data: Any, model: Model, system: Any = None) -> list[Series]:
    """``data`` as a list of series, each with its columns in the order of the model's states.

    system: a System whose labels of units the series must have, too; other objects have none.
    """
    given = [data] if is_a(data, Series) or not is_a(data, Sequence) else list(data)
    if not given:
        raise ValueError("data must be a Series or several, got none")
    labels = [f"data[{i}]" for i in range(len(given))] if len(given) > 1 else ["data"]
    found = [in_order(label, series, model.states) for label, series in zip(labels, given, strict=True)]
    check_labels(labels, found, system if is_a(system, System) else None)
    for label, series in zip(labels, found, strict=True):
        if has_doses(series):
            raise ValueError(f"{label} must be without doses, at which states jump, for all likelihoods but trajectory")
    return found
