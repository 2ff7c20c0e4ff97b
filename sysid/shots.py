"""What is shot: a system's equations with data, as the numbers and rows that ``shooting`` works on."""

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .libraries import Library
from .model import Model, all_free, model_of_system
from .sensitivities import pullback_of_model, pullback_of_system
from .series import Series
from .shooting import N_BANDS, shooting_kernel
from .system import System

Array = NDArray[np.float64]
MOST_STEPS = 1_000_000


class Equations(NamedTuple):
    """A system with the pullback of its right-hand side, and the model where it is linear in its parameters."""

    system: System
    pull: Any
    model: Model | None


@functools.cache
def equations_of(model: System | Library | Model) -> Equations:
    """The equations of a system, model or library: their derivatives written out where linear in the parameters."""
    if isinstance(model, Library):
        model = all_free(model)
    if isinstance(model, Model):
        return Equations(model.system, pullback_of_model(model), model)
    if model.terms is not None:
        try:
            linear = model_of_system(model)
            return Equations(model, pullback_of_model(linear), linear)
        except ValueError:  # of terms that are in no library, or parameters that stand at none
            pass
    return Equations(model, pullback_of_system(model), None)


class Errors(NamedTuple):
    """How data differ from states.

    logarithmic: whether their logarithms do. sd: (dim,), where known; free: whether they are parameters instead.
    observed: which states have data at all.
    """

    logarithmic: bool
    sd: Array
    free: bool
    observed: NDArray[np.bool_]


class Segments(NamedTuple):
    """How a solution is cut: where segments begin, and how what follows may differ from what went before.

    first_rows: rows of the data at which segments begin. kicks: standard deviations (dim,) of the kicks between them.
    first: the first state (dim,) where it is fixed.
    """

    first_rows: NDArray[np.int64]
    kicks: Array
    first: Array | None


@dataclass(frozen=True, eq=False)
class Shot:
    """The energy of data as a function of θ = parameters, free initial states, free standard deviations."""

    names: tuple[str, ...]
    positive: tuple[bool, ...]
    kernel: Any
    numbers: Array
    work_rows: int
    dim: int
    first: Array | None  # (dim,), the initial state where it is fixed

    def evaluate(self, theta: Array) -> tuple[Array, Array]:
        """Energy (n,) and dU/dθ (n, q) at ``theta`` (n, q)."""
        energy, slope, _ = self.follow(theta)
        return energy, slope

    def follow(self, theta: Array) -> tuple[Array, Array, Array]:
        """The same, with the states at every start and after every step, (n, starts and steps, dim)."""
        columns = np.array(np.atleast_2d(theta).T, order="C")
        energy, slope = np.empty(columns.shape[1]), np.empty_like(columns)
        work = np.zeros((self.work_rows, columns.shape[1]))
        self.kernel(columns, energy, slope, self.numbers, work)
        path = work.T.reshape(len(energy), -1, self.dim)[:, N_BANDS:]
        return energy, np.ascontiguousarray(slope.T), path


def values_in_order(data: Series, states: tuple[str, ...]) -> Array:
    """The data (n, dim) with columns in the order of ``states``; nan for those that were not measured."""
    unknown = [name for name in data.states if name not in states]
    if unknown:
        raise ValueError(f"data must have states of the model, {', '.join(states)}, got {unknown[0]!r}")
    values = np.full((len(data), len(states)), np.nan)
    for k, name in enumerate(data.states):
        values[:, states.index(name)] = data.values[:, k]
    return values


def steps_between(times: Array, step: float) -> NDArray[np.int64]:
    """Number of steps from each time to the next, none longer than ``step``, and 0 after the last."""
    counts = np.ceil(np.diff(times) / step * (1.0 - 1e-12)).astype(np.int64)
    return np.append(np.maximum(counts, 1), 0)


def shot_of(
    equations: Equations,
    times: Array,
    values: Array,
    errors: Errors,
    segments: Segments,
    *,
    method: str,
    step: float,
    limit: float,
) -> Shot:
    """The shot at ``values`` (n, dim), nan where missing, by ``segments``."""
    first_rows, kicks, first = segments
    system = equations.system
    dim, n_segments = system.dim, len(first_rows)
    steps = steps_between(times, step)
    if steps.sum() > MOST_STEPS:
        raise ValueError(f"step must leave at most {MOST_STEPS} steps, got {step:g} and so {steps.sum()} steps")
    there = ~np.isnan(values)
    kept = np.where(there, values, 1.0)
    free = np.flatnonzero(errors.observed) if errors.free else np.zeros(0, np.int64)
    names = list(system.parameters)
    names += [f"{s}({k})" for k in range(first is not None, n_segments) for s in system.states]
    free_rows = np.full(dim, -1.0)
    free_rows[free] = len(names) + np.arange(len(free))
    names += [f"sd({system.states[d]})" for d in free]
    counts = there.sum(axis=0)
    constant = 0.5 * np.log(2.0 * np.pi) * (counts.sum() + dim * (n_segments - 1))
    constant += (n_segments - 1) * float(np.log(kicks).sum())
    if errors.logarithmic:
        kept = np.log(kept)
        constant += float(kept.sum())
    head = [len(times), system.n_parameters, errors.logarithmic, first is None, limit, constant]
    start = np.zeros(dim) if first is None else first
    sd = np.where(errors.observed & ~np.full(dim, errors.free), errors.sd, 1.0)
    table = np.zeros((len(times), 4 + 2 * dim))
    table[:, 0], table[:, 2] = times, steps
    table[:-1, 1] = np.diff(times) / steps[:-1]
    table[first_rows, 3] = 1.0
    table[:, 4::2], table[:, 5::2] = there, kept
    numbers = np.concatenate([head, kicks, sd, free_rows, counts, start, table.ravel()]).astype(np.float64)
    positive = [False] * system.n_parameters
    positive += [errors.logarithmic] * (len(names) - len(free) - system.n_parameters) + [True] * len(free)
    kernel = shooting_kernel(system.rhs, equations.pull, method, dim, system.n_parameters)
    rows = dim * (N_BANDS + int(steps.sum()) + n_segments)
    return Shot(tuple(names), tuple(positive), kernel, numbers, rows, dim, first)
