"""Derivatives at the edge of a function's domain: powers with free exponents at 0."""

import numpy as np
import pytest

from sysid import systems


def repressed(t, x, p):
    return (-x[0] + p[0] / (1.0 + x[1] ** p[1]), x[0] - x[1])


def activated(t, x, p):
    return (-x[0] + p[0] * x[1] ** p[1] / (1.0 + x[1] ** p[1]), x[0] - x[1])


def made(function, exponent, start):
    return systems.own(
        function, states=("m", "p"), parameters=("alpha", "n"), usual=(10.0, exponent), start=(0.1, start)
    )


@pytest.mark.parametrize("function", [repressed, activated])
def test_a_hill_term_with_a_free_exponent_may_begin_at_zero(function):
    """The derivative of x**n at 0 is 0 for n > 1, 1 for n = 1, and infinite below."""
    for exponent in (1.0, 1.2, 2.1, 4.0):
        assert made(function, exponent, 0.0).usual[1] == exponent
    for exponent in (0.6, 1.5):
        assert made(function, exponent, 1e-9).start[1] == 1e-9  # inside
    with pytest.raises(ValueError, match=r"with respect to p is .* not finite .* start be inside .* as 1e-6"):
        made(function, 0.6, 0.0)


@pytest.mark.parametrize(
    "function",
    [
        lambda t, x, p: (p[0] * np.sqrt(x[0]),),
        lambda t, x, p: (p[0] * x[0] ** 0.9,),
        lambda t, x, p: (p[0] * abs(x[0]) + x[0] ** 1.5,),
    ],
)
def test_what_has_no_finite_or_another_derivative_at_zero_is_refused(function):
    with pytest.raises(ValueError, match="function must be analytic at start and usual"):
        systems.own(function, states=("x",), parameters=("a",), usual=(0.7,), start=(0.0,))
