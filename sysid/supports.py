"""Moves of a Gibbs sampler over the parts of mixtures of normals, the coefficients integrated out."""

import math
from typing import Any

from numba import types

from toolkit.compiling import compile_part, kernel
from toolkit.maths import exp, log

LEAST = 1e-14  # of 1 + x where rounding can make it 0


@kernel
def gain(change, variance, own, centre):
    """Log evidence, up to a constant, of a variance: ``change`` in 1/variance, from a coefficient's law as it is."""
    factor = max(1.0 + change * own, LEAST)
    return -0.5 * log(variance * factor) - 0.5 * change * centre * centre / factor


@kernel
def shift(cov, centre, j, change, column):
    """Add ``change`` to 1/variance j: cov (q, q) and centre (q,) of the coefficients, in place."""
    q = centre.shape[0]
    factor = change / max(1.0 + change * cov[j, j], LEAST)
    mean = centre[j]
    for k in range(q):
        column[k] = cov[k, j]
    for k in range(q):
        step = factor * column[k]
        centre[k] -= step * mean
        for i in range(q):
            cov[k, i] -= step * column[i]


@kernel
def settle(precision, pull, variances, which, scale, root, cov, centre):
    """Covariance and mean of the coefficients given their variances; root (q, q): inverse Cholesky factor, unscaled.

    The factor is that of s (Λ + D⁻¹) s with scales s (q,) that make its diagonal 1. Loops of our own, as the threads
    of a BLAS take longer to wake than matrices of this size take to invert.
    """
    q = centre.shape[0]
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
        centre[i] = 0.0
        for j in range(q):
            centre[i] += cov[i, j] * pull[j]


@kernel
def sweep(cov, centre, log_weights, variances, present, counts, which, order, uniforms, chances, logs, column):
    """Draw every coefficient's part given the others', in ``order``; ``chances`` (q,) of parts that mean presence."""
    for j in order:
        n = counts[j]
        highest = -1e300
        for k in range(n):
            change = 1.0 / variances[j, k] - 1.0 / variances[j, which[j]]
            logs[k] = log_weights[j, k] + gain(change, variances[j, k], cov[j, j], centre[j])
            highest = max(highest, logs[k])
        total, there = 0.0, 0.0
        for k in range(n):
            logs[k] = exp(logs[k] - highest)
            total += logs[k]
            if present[j, k]:
                there += logs[k]
        chances[j] = there / total
        left = uniforms[j] * total
        pick = n - 1
        for k in range(n - 1):
            left -= logs[k]
            if left < 0.0:
                pick = k
                break
        if pick != which[j]:
            shift(cov, centre, j, 1.0 / variances[j, pick] - 1.0 / variances[j, which[j]], column)
            which[j] = pick


@kernel
def change_of(variances, which, k, part):
    """Change in 1/variance of coefficient k that a part would bring."""
    return 1.0 / variances[k, part] - 1.0 / variances[k, which[k]]


@kernel
def exchange(cov, centre, log_weights, variances, counts, which, i, j, uniform, column):
    """A Metropolis move that gives coefficients i and j each other's parts."""
    a, b = which[i], which[j]
    if a == b or a >= counts[j] or b >= counts[i]:
        return
    ratio = log_weights[i, b] + log_weights[j, a] - log_weights[i, a] - log_weights[j, b]
    ratio += 0.5 * log(variances[i, a] * variances[j, b])
    first, second = change_of(variances, which, j, a), change_of(variances, which, i, b)
    ratio += gain(first, variances[j, a], cov[j, j], centre[j])
    shift(cov, centre, j, first, column)
    ratio += gain(second, variances[i, b], cov[i, i], centre[i])
    shift(cov, centre, i, second, column)
    if log(uniform) < ratio:
        which[i], which[j] = b, a
    else:
        shift(cov, centre, i, -second, column)
        shift(cov, centre, j, -first, column)


VECTOR, MATRIX = types.float64[::1], types.float64[:, ::1]
WHOLE = types.int64[::1]


def compiled_moves() -> tuple[Any, Any, Any]:
    """``settle``, ``sweep`` and ``exchange`` as machine code."""
    flags = types.boolean[:, ::1]
    state = (MATRIX, VECTOR, MATRIX, MATRIX)
    return (
        compile_part(settle.py_func, types.void(MATRIX, VECTOR, MATRIX, WHOLE, VECTOR, MATRIX, MATRIX, VECTOR)),
        compile_part(sweep.py_func, types.void(*state, flags, WHOLE, WHOLE, WHOLE, VECTOR, VECTOR, VECTOR, VECTOR)),
        compile_part(
            exchange.py_func, types.void(*state, WHOLE, WHOLE, types.int64, types.int64, types.float64, VECTOR)
        ),
    )
