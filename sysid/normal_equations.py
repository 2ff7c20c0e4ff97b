"""Normal equations of velocities in a model's free parameters: sums over data, and rows for minibatches."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from toolkit.checks import check_array

from .batches import row_width
from .model import Model

Array = NDArray[np.float64]

ROWS = 100_000  # whose terms are evaluated at a time
MOST_NUMBERS = 2**27  # of the rows that minibatches are summed from, 1 GiB


class Sums(NamedTuple):
    """Normal equations of each state's velocities in the free parameters, from the rows where they are known."""

    gram: Array  # (states, q, q)
    pull: Array  # (states, q)
    rows: Array  # (states,)
    speed: Array  # (states,) mean squares of the velocities


def normal_equations(model: Model, states: Array, velocities: Array) -> Sums:
    """Sums over all rows, some 10⁵ at a time."""
    q, dim = len(model.parameters), len(model.states)
    sums = Sums(np.zeros((dim, q, q)), np.zeros((dim, q)), np.zeros(dim), np.zeros(dim))
    for first in range(0, len(states), ROWS):
        terms = check_array("the library's terms", model.library.evaluate(states[first : first + ROWS]))
        for e in range(dim):
            target = velocities[first : first + ROWS, e]
            known = np.isfinite(target)
            design = terms[known] @ model.directions[:, :, e].T
            rest = target[known] - terms[known] @ model.constant[:, e]
            sums.gram[e] += design.T @ design
            sums.pull[e] += design.T @ rest
            sums.rows[e] += known.sum()
            sums.speed[e] += target[known] @ target[known]
    np.divide(sums.speed, sums.rows, out=sums.speed)
    return sums


def misfits(model: Model, states: Array, velocities: Array, parameters: Array) -> Array:
    """Sums of squared residuals (states,), each state's at its own row of ``parameters`` (states, q)."""
    total = np.zeros(len(parameters))
    for first in range(0, len(states), ROWS):
        terms = model.library.evaluate(states[first : first + ROWS])
        for e, beta in enumerate(parameters):
            rest = velocities[first : first + ROWS, e] - terms @ model.coefficients(beta)[:, e]
            total[e] += np.nansum(rest**2)
    return total


def minimiser(precision: Array, pull: Array) -> Array:
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
    """The numbers of ``batches.use_batch`` that follow those of all data."""
    n, q = len(states), len(mean)
    width = row_width.py_func(q)
    if windows and batch_size > n:
        raise ValueError(f"batch_size must be ≤ {n}, the number of data, for batches='windows', got {batch_size}")
    if (n + 1) * width > MOST_NUMBERS:
        raise ValueError(
            f"batch_size must be None for {n} data and {q} parameters, whose {n * width:.0e} numbers are more than "
            f"{MOST_NUMBERS:.0e}: all data cost less, or take fewer"
        )
    order = np.random.default_rng(0).permutation(n) if windows else np.arange(n)
    lower = np.tril_indices(q)
    table = np.zeros((n + 1, width))
    for first in range(0, n, ROWS):
        chosen = order[first : first + ROWS]
        design, target = weighted_design(model, states[chosen], velocities[chosen], weights)
        rest = target - design @ mean
        rows = table[first + 1 : first + 1 + len(chosen)]
        rows[:, : len(lower[0])] = np.einsum("nek,nel->nkl", design, design)[:, lower[0], lower[1]]
        rows[:, len(lower[0]) : -1] = np.einsum("nek,ne->nk", design, rest)
        rows[:, -1] = (rest**2).sum(axis=1) + 2.0 * constant / n
    rows = np.cumsum(table, axis=0) if windows else table[1:]
    return np.concatenate([[n, batch_size, float(windows)], rows.ravel()])
