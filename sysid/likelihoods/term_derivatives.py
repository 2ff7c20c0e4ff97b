"""Derivatives of a library's terms with respect to the states, by complex steps."""

import functools
from typing import Any

import numpy as np
from numba.extending import is_jitted

from toolkit.errors import shown

from ..arrays import Array
from ..libraries import Library, Term, compiled_product, values_of
from ..systems.system import analytic

COMPLEX_STEP = 1e-40  # its square is 0 beside any state
N_CHECKED = 24  # states at which derivatives are compared with differences


def term_jacobian(library: Library, path: Array) -> Array:
    """∂θ_t/∂x_d (nodes, terms, dim) at a path (nodes, dim), with the inputs in further columns, by complex steps."""
    dim, monomials = len(library.states), library.monomials
    columns = tuple(path.T)
    out = np.empty((dim, len(path), len(library)))
    factors = monomials.factors(columns)
    others = [(k, term) for k, term in enumerate(library.terms) if term.powers is None]
    for d in range(dim):
        moved = columns[d] + 1j * COMPLEX_STEP
        slopes = factors.copy()  # the imaginary part of a product of which one factor is complex is that of its own
        for place, (column, power) in enumerate(monomials.used):
            if column == d:
                slopes[place] = (moved**power).imag
        compiled_product()(slopes, monomials.places, out[d])
        out[d, :, monomials.places[:, d] < 0] = 0.0
        for k, term in others:
            out[d, :, k] = np.imag(complex_values(term, (*columns[:d], moved, *columns[d + 1 :])))
    out /= COMPLEX_STEP
    return np.ascontiguousarray(out.transpose(1, 2, 0))


def complex_values(term: Term, columns: tuple[Any, ...]) -> Any:
    """A term that is no monomial (nodes,) at complex states, from their columns."""
    if term.own is None:
        return values_of(term, columns)
    own = cached_analytic(term.own) if is_jitted(term.own) else term.own
    return np.array([complex(own(point)) for point in zip(*columns, strict=True)])


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
