"""Derivatives of a library's terms with respect to the states, by complex steps."""

import functools
from typing import Any

import numpy as np
from numba.core.dispatcher import Dispatcher

from toolkit.errors import shown

from ..arrays import Array
from ..libraries import Library, TermValues
from ..systems.system import analytic

COMPLEX_STEP = 1e-40  # its square is 0 beside any state
N_CHECKED = 24  # states at which derivatives are compared with differences


def term_jacobian(library: Library, path: Array) -> Array:
    """∂θ_t/∂x_d (nodes, terms, dim) at a path (nodes, dim), with the inputs in further columns, by complex steps."""
    dim = len(library.states)
    out = np.zeros((len(path), len(library), dim))
    for d in range(dim):
        columns: tuple[Any, ...] = tuple(
            path[:, e] + (1j * COMPLEX_STEP if e == d else 0.0) for e in range(path.shape[1])
        )
        values = TermValues(columns)
        for k, term in enumerate(library.terms):
            if term.powers is not None and term.powers[d] == 0:
                continue
            if term.own is None:
                value = values.of(term)
            else:
                own = cached_analytic(term.own) if isinstance(term.own, Dispatcher) else term.own
                value = np.array([complex(own(point)) for point in zip(*columns, strict=True)])
            out[:, k, d] = np.imag(value) / COMPLEX_STEP
    return out


def check_term_derivatives(library: Library, states: Array) -> None:
    """Raise ValueError where a user's own term is not analytic at some ``states`` (n, dim + inputs), by differences."""
    if all(term.own is None for term in library.terms):
        return
    checked = states[np.unique(np.linspace(0.0, len(states) - 1, N_CHECKED).round().astype(np.int64))]
    exact, sizes = term_jacobian(library, checked), np.maximum(np.abs(checked), 1e-3)
    for d, state in enumerate(library.states):
        moves, size = np.where(np.arange(checked.shape[1]) == d, 6e-6 * sizes, 0.0), sizes[:, d, None]
        with np.errstate(all="ignore"):
            difference, longer_difference = (
                (library.evaluate(checked + f * moves) - library.evaluate(checked - f * moves)) / (1.2e-5 * f * size)
                for f in (1.0, 2.0)
            )
            rounding = 1e-6 * np.abs(library.evaluate(checked)) / size + 1e-9 * (1.0 + np.abs(checked).max())
            doubt = 20.0 * np.abs(longer_difference - difference) + rounding
            wrong = ~(np.abs(exact[:, :, d] - difference) <= 1e-4 * np.abs(difference) + doubt) & np.isfinite(doubt)
        if wrong.any():
            row, k = np.argwhere(wrong)[0]
            raise ValueError(
                f"functions must be analytic, but at {library.variables} = {checked[row].tolist()} the derivative of "
                f"{shown(library.names[k])} with respect to {state} is {exact[row, k, d]:.6g} by a complex step and "
                f"{difference[row, k]:.6g} by differences: write abs(x) as np.sqrt(x*x), and use no sign, min or max"
            )


@functools.cache
def cached_analytic(function: Any) -> Any:
    """``analytic`` of a function that Numba has compiled, whose globals are frozen already."""
    return analytic(function)
