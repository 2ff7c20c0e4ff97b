"""Systems of the catalogue are what their terms and sources say, and a user's own is checked before it is used."""

import functools
import inspect

import numpy as np
import pytest

from sysid import libraries, systems
from sysid.model import Model, model_of, model_of_system
from sysid.solvers.integrate import solve
from sysid.systems.system import System

CATALOGUE = systems.catalogue()
LINEAR = [name for name, system in CATALOGUE.items() if system.terms]


def library_of(system):
    whole = libraries.polynomial(system.states, 3) + libraries.fourier(system.states, 1)
    needed = {term for row in system.terms.values() for term in row}
    return whole.subset([name for name in whole.names if name in needed])


def test_the_catalogue_has_all_systems_under_their_names():
    assert list(CATALOGUE) == [
        "lorenz", "lotka_volterra", "rossler", "van_der_pol", "fitzhugh_nagumo", "sir", "damped_pendulum",
    ]  # fmt: skip
    for name, system in CATALOGUE.items():
        assert getattr(systems, name)().rhs is system.rhs
        assert system.source
        assert np.isfinite(system.rhs(0.0, tuple(system.start), tuple(system.usual))).all()


@pytest.mark.parametrize("name", LINEAR)
def test_terms_and_right_hand_side_are_the_same(name):
    system = CATALOGUE[name]
    model = model_of_system(system, library_of(system))
    assert isinstance(model, Model)
    assert model.parameters == system.parameters
    draws = np.random.default_rng(0)
    x = draws.lognormal(size=(50, system.dim))
    p = draws.lognormal(size=(50, system.n_parameters))
    expected = np.array([system.rhs(0.0, a, b) for a, b in zip(x, p, strict=True)])
    features = model.library.evaluate(x)
    found = np.einsum("nt,nte->ne", features, model.coefficients(p))
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    generated = np.array([model.system.rhs(0.0, a, b) for a, b in zip(x, p, strict=True)])
    np.testing.assert_allclose(generated, expected, rtol=1e-12, atol=1e-12)
    assert not np.allclose(np.einsum("nt,nte->ne", features, model.coefficients(-p)), expected)


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_system_passes_the_checks_of_a_users(name):
    s = CATALOGUE[name]
    made = systems.own(
        s.rhs, states=s.states, parameters=s.parameters, usual=s.usual, start=s.start, name=name, terms=s.terms
    )
    assert repr(made) == repr(s)


def test_known_numbers():
    assert CATALOGUE["lorenz"].lyapunov == 0.9056
    assert CATALOGUE["rossler"].lyapunov == 0.0714
    fixed_point = solve(CATALOGUE["lotka_volterra"], [0.0, 5.0], start=[1.5 / 0.075, 1.0 / 0.1]).states[-1]
    np.testing.assert_allclose(fixed_point, [20.0, 10.0], rtol=1e-9)
    # The limit cycle of van der Pol at μ = 1 has the period 6.6632868593231 (Andersen & Geer 1982).
    start = solve(CATALOGUE["van_der_pol"], [0.0, 200.0], rtol=1e-12, atol=1e-13).states[-1]
    again = solve(CATALOGUE["van_der_pol"], [0.0, 6.6632868593231], start=start, rtol=1e-12, atol=1e-13).states[-1]
    np.testing.assert_allclose(again, start, atol=1e-8)
    # Final size of an epidemic: log(s / s₀) = −R₀ (1 − s) with no recovered at first (Kermack & McKendrick 1927).
    s = solve(CATALOGUE["sir"], [0.0, 2000.0]).states[-1, 0]
    assert np.log(s / 0.99) == pytest.approx(-3.0 * (1.0 - s), rel=1e-6)


TWO = {"states": ("x", "y"), "parameters": ("a",), "usual": [2.0], "start": [1.0, 2.0]}


def raising(t, x, p):
    if x[0] > 5.0:
        raise ValueError("too large")
    return x[0], x[1]


WRONG = {
    "abs": (lambda t, x, p: (p[0] * abs(x[1]), -x[0]),
        "function must be analytic .* derivative of dx/dt with respect to y is 0 by a complex step and 2 by .*sqrt"),
    "real part": (lambda t, x, p: (p[0].real * x[1], -x[0]), "function must be analytic .* with respect to a is 0 by"),
    "max": (lambda t, x, p: (p[0] * max(x[1], 0.0), -x[0]), "rhs must be .* for complex numbers, by which derivatives"),
    "one slope": (lambda t, x, p: (p[0] * x[1],), "rhs must be .* tuple of 2 numbers, .* it returns a tuple of 1"),
    "three slopes": (lambda t, x, p: (x[1], x[0], x[0]), "rhs must be .* it returns a tuple of 3"),
    "no tuple": (lambda t, x, p: p[0] * x[1], "rhs must be .* it returns float64"),
    "a list": (lambda t, x, p: [x[1], x[0]], "rhs must be .* it makes arrays or lists; let it return a tuple"),
    "unknown name": (lambda t, x, p: (x[1], nowhere(x[0])), "rhs must be .* name 'nowhere' is not defined"),  # noqa: F821
    "index": (lambda t, x, p: (x[1], p[1]), "rhs must be .* tuple index out of range"),
    "not finite": (lambda t, x, p: (x[1], np.log(-x[0])),
        r"function must be finite at start = \[1.0, 2.0\] .* dy/dt is nan"),
    "raises": (raising, "function must not raise or assert, .* but raising does"),
    "no function": (3.0, "rhs must be a function"),
}  # fmt: skip


LORENZ_TERMS = CATALOGUE["lorenz"].terms
WRONG_TERMS = {
    "sign": ({**LORENZ_TERMS, "x": {"x": "sigma", "y": {"sigma": -1.0}}},
        r"terms must be those of function, but dx/dt is -150 by terms and 150 by function, -300, at t = 0, x = \[-8.0"),
    "missing": ({**LORENZ_TERMS, "z": {"xy": 1.0}}, "terms must be those of function, but dz/dt is -56 by terms and -"),
    "no row": ({k: LORENZ_TERMS[k] for k in "xy"}, "terms must be those of function, but dz/dt is 0 by terms"),
    "at the start alone": ({**LORENZ_TERMS, "y": {"x": {"": 28.0}, "y": -1.0, "xz": -1.0}}, ".* dy/dt is .* at t = 1"),
    "a list": (["x"], r"terms must be a mapping, got \['x'\] of type list"),
    "a row": ({"x": "sigma"}, r"terms\['x'\] must be a mapping, got 'sigma'"),
    "a state": ({"w": {}}, r"terms must name states \(x, y, z\), got 'w'"),
    "a parameter": ({**LORENZ_TERMS, "z": {"z": "typo"}},
        r"terms\['z'\]\['z'\] must name parameters \(sigma, rho, beta\), got 'typo'"),
    "a factor": ({"x": {"x": {"sigma": "-1"}}}, r"terms\['x'\]\['x'\] must be a number, got '-1'"),
    "no coefficient": ({"x": {"x": None}}, r"terms\['x'\]\['x'\] must be a number, got None"),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG_TERMS)
def test_terms_of_another_function_are_refused(what):
    terms, words = WRONG_TERMS[what]
    s = CATALOGUE["lorenz"]
    with pytest.raises((TypeError, ValueError), match=f"^{words}"):
        systems.own(s.rhs, states=s.states, parameters=s.parameters, usual=s.usual, start=s.start, terms=terms)


def test_a_slope_that_time_moves_has_no_terms():
    terms = {"x": {"y": "a"}, "y": {"x": -1.0}}
    with pytest.raises(ValueError, match="terms must be those of function, but dx/dt is"):
        systems.own(lambda t, x, p: (p[0] * x[1] + np.sin(t), -x[0]), **TWO, terms=terms)
    kept = systems.own(lambda t, x, p: (p[0] * x[1] ** 0.5, -x[0]), **TWO, terms={**terms, "x": {"√y": "a"}})
    assert kept.terms["x"] == {"√y": "a"}  # a user's own term, which only a library of the user's knows


def about(states, parameters):
    """As many zeros as states."""
    return np.zeros(len(states))


def test_what_is_known_of_a_users_system_is_kept():
    """By ``own`` and by ``from_sympy``: their fields, and the terms as those of a model."""
    sympy = pytest.importorskip("sympy")
    known = {"units": ("m", "m/s"), "time_unit": "s", "source": "a book", "invariant": about, "lyapunov": 0.25,
        "terms": {"x": {"y": "a"}, "y": {"x": -1.0}}}  # fmt: skip
    x, y, a = sympy.symbols("x y a")
    by_hand = systems.own(lambda t, x, p: (p[0] * x[1], -x[0]), **TWO, **known)
    written = systems.from_sympy({x: a * y, y: -x}, parameters=[a], usual=[2.0], start=[1.0, 2.0], **known)
    for made in (by_hand, written):
        assert {field: getattr(made, field) for field in known} == known
        assert model_of_system(made).equations([2.0]) == "dx/dt = +2 y\ndy/dt = -1 x"


def test_units_that_are_none_are_refused():
    with pytest.raises(TypeError, match=r"^units must be a sequence of texts, got None"):
        systems.own(lambda t, x, p: (p[0] * x[1], -x[0]), **TWO, units=None)


@pytest.mark.parametrize("what", WRONG)
def test_a_function_that_cannot_be_used_is_refused_with_what_to_do(what):
    function, words = WRONG[what]
    with pytest.raises((TypeError, ValueError), match=f"^{words}"):
        systems.own(function, **TWO)


def test_a_users_own_system_is_solved():
    oscillator = systems.own(lambda t, x, p: (x[1], -p[0] * x[0]), **{**TWO, "usual": [4.0]}, name="oscillator")
    times = np.linspace(0.0, 3.0, 7)
    np.testing.assert_allclose(
        solve(oscillator, times).states[:, 0], np.cos(2.0 * times) + np.sin(2.0 * times), atol=1e-7
    )
    assert repr(oscillator) == "<System 'oscillator': x, y; a>"


def test_an_expression_is_the_system_it_says():
    sympy = pytest.importorskip("sympy")
    x, y, a, t = sympy.symbols("x y a t")
    expressions = {
        x: y**2 * sympy.sin(t) / a - sympy.sqrt(x) * y**-3 + sympy.pi,
        y: -x * sympy.exp(-(x**2)) + y ** sympy.Rational(3, 2) + sympy.tanh(x * y**2) + x**2 * y**2,
    }
    made = systems.from_sympy(expressions, parameters=[a], time=t, usual=[2.0], start=[1.0, 2.0], units=("m", "s"))
    draws = np.random.default_rng(0).lognormal(size=(20, 4))
    for u, v, w, s in draws:
        expected = [float(e.subs({x: u, y: v, a: w, t: s})) for e in expressions.values()]
        np.testing.assert_allclose(made.rhs(s, (u, v), (w,)), expected, rtol=1e-12)
    assert made.states == ("x", "y")
    assert made.units == ("m", "s")
    assert "def rhs" in inspect.getsource(made.rhs)
    lorenz = CATALOGUE["lorenz"]
    z, p, q, r = sympy.symbols("z sigma rho beta")
    same = systems.from_sympy(
        {x: p * (y - x), y: x * (q - z) - y, z: x * y - r * z},
        parameters=[p, q, r],
        usual=lorenz.usual,
        start=lorenz.start,
    )
    times = np.linspace(0.0, 1.0, 5)
    np.testing.assert_allclose(solve(same, times).states, solve(lorenz, times).states, rtol=1e-6)


def test_expressions_that_are_none_are_refused():
    sympy = pytest.importorskip("sympy")
    x, y, a = sympy.symbols("x y a")
    make = functools.partial(systems.from_sympy, parameters=[a], usual=[1.0], start=[1.0])
    wrong = {
        "unknown": ({x: a * y}, r"expressions\[x\] must be of the states, .* which has y"),
        "function": ({x: a * sympy.besselj(0, x)}, "expressions must be of sums, .*, got besselj"),
        "abs": ({x: a * sympy.Abs(x)}, "expressions must be of sums, products, powers and cos, .*, got Abs"),
        "complex": ({x: a * sympy.I * x}, "expressions must hold finite real numbers only, got I"),
        "infinite": ({x: a * x + sympy.zoo}, "expressions must hold finite real numbers only"),
        "none": ({}, "expressions must map states to their slopes, got {}"),
        "text": ({"x": a}, "states, parameters, inputs and time must be SymPy symbols, got 'x'"),
        "parameter": ({a: a * 2}, "parameters must be distinct and no states, got a"),
    }
    for expressions, words in wrong.values():
        with pytest.raises((TypeError, ValueError), match=f"^{words}"):
            make(expressions)


def test_tied_terms_of_a_system_are_those_of_the_library():
    lorenz = CATALOGUE["lorenz"]
    model = model_of(
        libraries.polynomial(lorenz.states, 2),
        free=["dy:x"],
        tied={"sigma": {"dx:x": -1, "dx:y": 1}},
        fixed={"dy:y": -1, "dy:xz": -1, "dz:z": -8 / 3, "dz:xy": 1},
    )
    np.testing.assert_allclose(
        model.system.rhs(0.0, (1.0, 2.0, 3.0), (10.0, 28.0)), lorenz.rhs(0.0, (1.0, 2.0, 3.0), lorenz.usual)
    )
    assert isinstance(model.system, System)
