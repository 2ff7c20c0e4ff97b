"""Why a gradient is off: the usual mistakes, recognised by what got and expected slopes have in common."""

import numpy as np
import scipy
from numpy.typing import NDArray

Array = NDArray[np.float64]


def likely_cause(expected: Array, got: Array, clear: NDArray[np.bool_], allowed: Array) -> str:
    """A sentence on the cause; empty where it is none of the usual. All of shape (points, dim).

    Only entries that are ``clear`` count; two slopes are equal where they differ by less than ``allowed``.
    """
    factor = common_factor(expected, got, clear, allowed)
    if factor is not None:
        return factor_sentence(factor)
    order = exchange(expected, got, clear, allowed)
    if order is not None:
        moved = np.flatnonzero(order != np.arange(order.size))
        pairs = ", ".join(f"gradient[{d}] is the slope in coordinate {order[d]}" for d in moved[:4])
        return f"Coordinates are exchanged: {pairs}"
    found = []
    for d in range(expected.shape[1]):
        column = np.s_[:, d : d + 1]
        if is_same(expected[column], got[column], clear[column], allowed[column]):
            continue
        factor = common_factor(expected[column], got[column], clear[column], allowed[column])
        if factor is None:
            return ""
        if factor == 0.0:
            found.append(f"gradient[{d}] is always 0: coordinate {d} is missing")
        elif np.isclose(factor, -1.0, rtol=1e-4):
            found.append(f"gradient[{d}] has the wrong sign")
        else:
            found.append(f"gradient[{d}] is {factor:.6g} times the slope")
    return "; ".join(found[:4])


def is_same(expected: Array, got: Array, clear: NDArray[np.bool_], allowed: Array) -> bool:
    """Whether all clear entries agree."""
    return bool((np.abs(got - expected) <= allowed)[clear].all())


def common_factor(expected: Array, got: Array, clear: NDArray[np.bool_], allowed: Array) -> float | None:
    """The number that ``got`` is of ``expected`` in all clear entries; None where there is none, or too few entries."""
    x, y, w = expected[clear], got[clear], 1.0 / np.maximum(allowed[clear], 1e-300)
    if x.size < 3 or not np.abs(x * w).max() > 1.0:
        return None
    factor = float((x * w) @ (y * w) / ((x * w) @ (x * w)))
    same = np.abs(y - factor * x) <= max(1.0, abs(factor)) * allowed[clear]
    if not same.all():
        return None
    return 0.0 if not y.any() else factor


def factor_sentence(factor: float) -> str:
    """What a common factor of all slopes suggests."""
    if factor == 0.0:
        return "The gradient is 0 everywhere"
    if factor < 0.0:
        times = "" if np.isclose(factor, -1.0, rtol=1e-4) else f", and {-factor:.6g} times the length"
        return (
            f"The gradient has the wrong sign{times}: a step along −gradient raises the energy. Both are to be those "
            "of U = −log density"
        )
    return (
        f"The gradient is {factor:.6g} times the slope of the energy everywhere: a factor is in only one of the two, "
        "such as ½, a temperature, or N/n of a minibatch"
    )


def exchange(expected: Array, got: Array, clear: NDArray[np.bool_], allowed: Array) -> NDArray[np.intp] | None:
    """Which coordinate's slope each entry of the gradient is, where that is a permutation; else None."""
    rows = clear.all(axis=1)
    if rows.sum() < 2 or expected.shape[1] < 2:
        return None
    x, y, room = expected[rows], got[rows], allowed[rows]
    apart = np.abs(y[:, :, None] - x[:, None, :]) / np.maximum(room[:, :, None] + room[:, None, :], 1e-300)
    distance = np.minimum(apart.max(axis=0), 1e6)
    mine, theirs = scipy.optimize.linear_sum_assignment(distance)
    return theirs if distance[mine, theirs].max() <= 1.0 else None
