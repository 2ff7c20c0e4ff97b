"""Moves of a Gibbs sampler over the parts of mixtures of normals, the coefficients integrated out."""

import math
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from toolkit.compiling import compile_part, kernel
from toolkit.maths import exp, log

Array = NDArray[np.float64]
LEAST = 1e-14  # of 1 + x where rounding can make it 0


class NormalLikelihood(NamedTuple):
    """A likelihood that is normal in the coefficients."""

    precision: Array  # (q, q)
    pull: Array  # (q,), precision · mean


class GibbsState(NamedTuple):
    """The parts that coefficients are in, and the normal law of the coefficients given their parts."""

    which: NDArray[np.int64]  # (q,)
    present: NDArray[np.bool_]  # (q,), whether a coefficient's part means presence
    presence: Array  # (q,), the probability of that when the part was last drawn
    mean: Array  # (q,)
    cov: Array  # (q, q)
    root: Array  # (q, q), the inverse Cholesky factor of the precision in units of ``scale``
    scale: Array  # (q,)


class Mixtures(NamedTuple):
    """Mixtures' parts: log weights and variances (q, parts), which mean presence, and each mixture's number of them.

    A mixture with fewer parts has log weights −∞ at its end.
    """

    log_weights: Array
    variances: Array
    present: NDArray[np.bool_]
    counts: NDArray[np.int64]  # (q,)


@kernel
def gain(change, variance, own_variance, mean):
    """Log evidence, up to a constant, of a variance: ``change`` in 1/variance, from a coefficient's law as it is."""
    factor = max(1.0 + change * own_variance, LEAST)
    return -0.5 * log(variance * factor) - 0.5 * change * mean * mean / factor


@kernel
def shift(cov, mean, j, change, column):
    """Add ``change`` to 1/variance j: cov (q, q) and mean (q,) of the coefficients, in place."""
    q = mean.shape[0]
    factor = change / max(1.0 + change * cov[j, j], LEAST)
    mean_before = mean[j]
    for k in range(q):
        column[k] = cov[k, j]
    for k in range(q):
        step = factor * column[k]
        mean[k] -= step * mean_before
        for i in range(q):
            cov[k, i] -= step * column[i]


@kernel
def settle(likelihood, variances, state):
    """Write the law of the coefficients given their parts, whose variances are (q, parts).

    The factor is that of s (Λ + D⁻¹) s with scales s (q,) that make its diagonal 1. Loops of our own, as the threads
    of a BLAS take longer to wake than matrices of this size take to invert.
    """
    precision, pull, which = likelihood.precision, likelihood.pull, state.which
    mean, cov, root, scale = state.mean, state.cov, state.root, state.scale
    q = mean.shape[0]
    for k in range(q):
        scale[k] = 1.0 / math.sqrt(precision[k, k] + 1.0 / variances[k, which[k]])
    for i in range(q):  # the Cholesky factor in cov
        for j in range(i + 1):
            total = 1.0 if i == j else precision[i, j] * scale[i] * scale[j]
            for k in range(j):
                total -= cov[i, k] * cov[j, k]
            cov[i, j] = math.sqrt(max(total, LEAST)) if i == j else total / cov[j, j]
    for j in range(q):
        for i in range(j):
            root[i, j] = 0.0
        root[j, j] = 1.0 / cov[j, j]
        for i in range(j + 1, q):
            total = 0.0
            for k in range(j, i):
                total -= cov[i, k] * root[k, j]
            root[i, j] = total / cov[i, i]
    for i in range(q):
        for j in range(q):
            total = 0.0
            for k in range(max(i, j), q):
                total += root[k, i] * root[k, j]
            cov[i, j] = total * scale[i] * scale[j]
    for i in range(q):
        mean[i] = 0.0
        for j in range(q):
            mean[i] += cov[i, j] * pull[j]


@kernel
def sweep(likelihood, mixtures, state, order, uniforms, logs, column):
    """Draw the parts of the coefficients in ``order``, each given the others', and settle.

    logs (parts,) and column (q,): to work in.
    """
    which, cov, mean = state.which, state.cov, state.mean
    log_weights, variances = mixtures.log_weights, mixtures.variances
    for j in order:
        n = mixtures.counts[j]
        highest = -1e300
        for k in range(n):
            change = 1.0 / variances[j, k] - 1.0 / variances[j, which[j]]
            logs[k] = log_weights[j, k] + gain(change, variances[j, k], cov[j, j], mean[j])
            highest = max(highest, logs[k])
        total, presence = 0.0, 0.0
        for k in range(n):
            logs[k] = exp(logs[k] - highest)
            total += logs[k]
            if mixtures.present[j, k]:
                presence += logs[k]
        state.presence[j] = presence / total
        left = uniforms[j] * total
        pick = n - 1
        for k in range(n - 1):
            left -= logs[k]
            if left < 0.0:
                pick = k
                break
        if pick != which[j]:
            shift(cov, mean, j, 1.0 / variances[j, pick] - 1.0 / variances[j, which[j]], column)
            which[j] = pick
        state.present[j] = mixtures.present[j, pick]
    settle(likelihood, variances, state)


@kernel
def change_of(variances, which, k, part):
    """Change in 1/variance of coefficient k that a part would bring."""
    return 1.0 / variances[k, part] - 1.0 / variances[k, which[k]]


@kernel
def exchange(likelihood, mixtures, state, i, j, uniform, column):
    """A Metropolis move that gives coefficients i and j each other's parts, and settles; column (q,): to work in."""
    which, cov, mean = state.which, state.cov, state.mean
    log_weights, variances, counts = mixtures.log_weights, mixtures.variances, mixtures.counts
    a, b = which[i], which[j]
    if a == b or a >= counts[j] or b >= counts[i]:
        return
    ratio = log_weights[i, b] + log_weights[j, a] - log_weights[i, a] - log_weights[j, b]
    ratio += 0.5 * log(variances[i, a] * variances[j, b])
    first, second = change_of(variances, which, j, a), change_of(variances, which, i, b)
    ratio += gain(first, variances[j, a], cov[j, j], mean[j])
    shift(cov, mean, j, first, column)
    ratio += gain(second, variances[i, b], cov[i, i], mean[i])
    shift(cov, mean, i, second, column)
    if log(uniform) < ratio:
        which[i], which[j] = b, a
        state.present[i], state.present[j] = mixtures.present[i, b], mixtures.present[j, a]
    else:
        shift(cov, mean, i, -second, column)
        shift(cov, mean, j, -first, column)
    settle(likelihood, variances, state)


VECTOR, MATRIX = types.float64[::1], types.float64[:, ::1]
WHOLE = types.int64[::1]
LIKELIHOOD = types.BaseTuple.from_types((MATRIX, VECTOR), NormalLikelihood)
MIXTURES = types.BaseTuple.from_types((MATRIX, MATRIX, types.boolean[:, ::1], WHOLE), Mixtures)
STATE = types.BaseTuple.from_types((WHOLE, types.boolean[::1], VECTOR, VECTOR, MATRIX, MATRIX, VECTOR), GibbsState)


def compiled_moves() -> tuple[Any, Any, Any]:
    """``settle``, ``sweep`` and ``exchange`` as machine code."""
    given = (LIKELIHOOD, MIXTURES, STATE)
    return (
        compile_part(settle.py_func, types.void(LIKELIHOOD, MATRIX, STATE)),
        compile_part(sweep.py_func, types.void(*given, WHOLE, VECTOR, VECTOR, VECTOR)),
        compile_part(exchange.py_func, types.void(*given, types.int64, types.int64, types.float64, VECTOR)),
    )
