"""Powers in a user's functions: what complex steps give of them is n xⁿ⁻¹, at states of both signs, in every door."""

import math

import numpy as np
import pytest
from numba import njit

from sysid import Series, identify, libraries, likelihoods, systems
from sysid.likelihoods.term_derivatives import term_jacobian
from sysid.likelihoods.trajectories import trajectory
from sysid.model import all_free
from sysid.solvers.adjoint import pullback_of_model, pullback_of_system
from sysid.solvers.integrate import solve
from sysid.systems.system import System
from sysid.systems.user_systems import slopes_at
from toolkit._compiler import kept
from toolkit.problem.math_substitution import rebind

STEP = 1e-40
THREE = 3
POINTS = [-400.0, -2.5, -1.0, -1e-3, 1e-3, 0.5, 1.0, 3.0]


def cubed(z):
    z **= 3
    return z


@njit
def cubed_by_numba(z):
    return pow(z, THREE)


def counted(z):
    n = 0
    for _ in range(3):
        n += 1
    return z**n


def inner(z):
    return (lambda y: y**3)(z)


def by_closure():
    n = 3
    return lambda z: z**n


FORMS = {
    "x**3": (lambda z: z**3, 3),
    "x**1": (lambda z: z**1, 1),
    "x**0": (lambda z: z**0, 0),
    "x**7": (lambda z: z**7, 7),
    "x**2": (lambda z: z**2, 2),
    "x**-1": (lambda z: z**-1, -1),
    "x**-2": (lambda z: z**-2, -2),
    "x**-3": (lambda z: z**-3, -3),
    "x**3.0": (lambda z: z**3.0, 3),
    "x**-2.0": (lambda z: z**-2.0, -2),
    "a global": (lambda z: z**THREE, 3),
    "a closure": (by_closure(), 3),
    "a local": (counted, 3),
    "**=": (lambda z: cubed(z), 3),
    "a helper": (lambda z: cubed_by_numba(z), 3),
    "pow": (lambda z: pow(z, 3), 3),
    "np.power": (lambda z: np.power(z, 3), 3),
    "np.float_power": (lambda z: np.float_power(z, 3), 3),
    "math.pow": (lambda z: math.pow(z, 3.0), 3),
    "a complex exponent": (lambda z: z ** (3.0 + 0.0 * z), 3),
    "inside a lambda": (inner, 3),
    "an array": (lambda z: np.power(np.array([z, 2.0 * z]), 3)[0], 3),
}  # fmt: skip


def for_complex(function):
    return kept(rebind(function, allocates=True, ours=False, products=True))


@pytest.mark.parametrize("form", FORMS)
def test_the_slope_of_an_integer_power_is_that_of_the_closed_form(form):
    """To 64 units of rounding: a dozen products, where exp(n log z) is off by 1e24."""
    function, n = FORMS[form]
    compiled = for_complex(function)
    for x in POINTS:
        value = compiled(complex(x, STEP))
        assert value.real == pytest.approx(x**n, rel=1e-14)
        assert value.imag / STEP == pytest.approx(n * x ** (n - 1), rel=1e-14)


def test_a_float_exponent_without_a_fraction_makes_the_same_products_to_the_bit():
    by_float, by_product = for_complex(lambda z: z**3.0), for_complex(lambda z: z * z * z)
    for x in np.random.default_rng(0).normal(0.0, 3.0, 50).tolist():
        assert by_float(complex(x, STEP)) == by_product(complex(x, STEP))


def test_other_powers_are_those_of_real_numbers():
    """x^p = exp(p log x): its slopes p x^(p−1) and x^p log x where x > 0; nan where x < 0; at 0 what p says."""
    raised = for_complex(lambda z, p: z**p)
    for x, p in ((2.0, 0.5), (0.3, -1.7), (5.0, 2.5)):
        assert raised(complex(x, STEP), p).imag / STEP == pytest.approx(p * x ** (p - 1.0), rel=1e-14)
        for base in (x, complex(x)):
            assert raised(base, complex(p, STEP)).imag / STEP == pytest.approx(x**p * math.log(x), rel=1e-14)
    assert raised(2, complex(3.0, STEP)).imag / STEP == pytest.approx(8.0 * math.log(2.0), rel=1e-14)
    assert np.isnan(raised(complex(-2.0, STEP), 0.5).imag)
    assert raised(complex(-2.0), complex(3.0, STEP)).real == -8.0
    assert np.isnan(raised(complex(-2.0), complex(3.0, STEP)).imag)
    assert raised(complex(0.0, STEP), 1.5) == 0.0
    assert raised(complex(0.0, STEP), 0.5).imag == math.inf
    assert np.isinf(raised(0j, -1).real)
    assert (raised(-2, 3), raised(-2.0, 3), raised(2.0, 0.5)) == (-8, -8.0, 2.0**0.5)


def test_a_power_of_an_array_of_complex_numbers_is_refused_where_it_is_no_call():
    with pytest.raises(TypeError, match=r"\*\* of arrays is not compiled for complex numbers: write np.power"):
        for_complex(lambda z: (np.array([z, z]) ** 3)[0])(1j)


def membrane(t, x, p):
    return x[0] - x[0] ** 3 / 3 - x[1] + p[0], p[3] * (x[0] + p[1] - p[2] * x[1])


MEMBRANE = {"states": ("v", "w"), "parameters": ("I", "a", "b", "eps"), "usual": [0.5, 0.7, 0.8, 0.08]}


@pytest.mark.parametrize("start", [[-1.0, 1.0], [1.0, 1.0]])
def test_a_cube_of_a_textbook_is_taken_and_differentiated_exactly(start):
    """FitzHugh–Nagumo as it is written: its Jacobian by hand, at states of both signs."""
    made = systems.own(membrane, **MEMBRANE, start=start)
    pull = kept(pullback_of_system(made))
    draws = np.random.default_rng(0)
    p = (0.5, 0.7, 0.8, 0.08)
    for v, w, a, b in draws.normal(0.0, 2.0, (20, 4)):
        of_states, of_parameters = pull(0.0, (v, w), p, (a, b))
        np.testing.assert_allclose(of_states, [a * (1.0 - v * v) + b * p[3], -a - b * p[3] * p[2]], rtol=1e-12)
        np.testing.assert_allclose(
            of_parameters, [a, b * p[3], -b * p[3] * w, b * (v + p[1] - p[2] * w)], rtol=1e-12, atol=1e-14
        )


def test_the_energy_of_duffings_data_is_that_of_products_to_the_bit():
    """With x**3 and x*x*x, at the truth and about it; the data go through both signs."""
    names = {"states": ("x", "v"), "parameters": ("k", "c"), "usual": [0.5, 0.2], "start": [1.0, 0.1]}
    by_power = systems.own(lambda t, x, p: (x[1], -p[0] * x[0] ** 3 - p[1] * x[1]), **names)
    by_product = systems.own(lambda t, x, p: (x[1], -p[0] * (x[0] * x[0] * x[0]) - p[1] * x[1]), **names)
    times = np.linspace(0.0, 20.0, 41)
    states = solve(by_product, times, parameters=[1.0, 0.1], start=[1.0, 0.0]).states
    assert states[:, 0].min() < -0.5
    data = Series(times, states + 0.02 * np.random.default_rng(1).standard_normal(states.shape), ("x", "v"))
    law = trajectory(step=0.1)
    (shot, start), (other, expected) = law.energy_and_start(data, by_power), law.energy_and_start(data, by_product)
    np.testing.assert_array_equal(start, expected)
    np.testing.assert_allclose(start[:2], [1.0, 0.1], atol=0.1)  # sds 0.01 and 0.002
    theta = np.array([[1.0, 0.1, 1.0, 0.0, 0.02, 0.02], [1.3, 0.05, -0.8, 0.4, 0.1, 0.1]])
    assert np.isfinite(shot.evaluate(theta)[0]).all()
    for found, wanted in zip(shot.evaluate(theta), other.evaluate(theta), strict=True):
        np.testing.assert_array_equal(found, wanted)


@njit
def cube_of_numba(x):
    return x[0] ** 3


@pytest.mark.parametrize("function", [lambda x: x[0] ** 3, cube_of_numba])
def test_the_slopes_of_a_users_term_are_its_own(function):
    library = libraries.functions(("x", "y"), {"cube": function}) + libraries.polynomial(("x", "y"), 1)
    path = np.array([[-2.5, 1.0], [-1.0, 0.0], [2.0, 3.0]])
    expected = np.stack([3.0 * path[:, 0] ** 2, 0.0 * path[:, 0]], axis=1)
    np.testing.assert_allclose(term_jacobian(library, path)[:, 0], expected)
    pull = kept(pullback_of_model(all_free(library)))
    p = tuple(np.arange(1.0, 9.0))
    for x, y in path.tolist():
        rows = all_free(library).coefficients(np.array(p))
        of_states, _ = pull(0.0, (x, y), p, (1.0, 2.0))
        (cube, *_), (wanted,) = rows.tolist(), [rows.T @ np.array([3.0 * x * x, 0.0, 1.0, 0.0])]
        assert len(cube) == 2
        assert of_states[0] == pytest.approx(wanted @ np.array([1.0, 2.0]), rel=1e-12)


@pytest.mark.parametrize("power", [3, 5.0])
def test_the_nearest_point_of_a_wall_by_a_power_at_a_negative_parameter(power):
    """x³ ≥ −1 is x ≥ −1."""
    times = np.linspace(0.0, 1.0, 30)
    series = Series(times, np.exp(-times)[:, None], ("x",), velocities=-np.exp(-times)[:, None])
    problem = identify(
        series, libraries.polynomial(("x",), 1), likelihood=likelihoods.derivative(velocities="exact", noise=0.1),
        constraints=lambda q: 1.0 + q[1] ** power,
    )  # fmt: skip
    position, foot, outside = np.array([[0.2], [-1.4]]), np.zeros((2, 1)), np.ones(1)
    problem.domain.locate(position, foot, outside, problem.domain.float_table, problem.domain.int_table)
    assert outside[0] == 1.0
    np.testing.assert_allclose(foot[:, 0], [0.2, -1.0], rtol=1e-9)


def test_high_and_written_out_powers_of_an_expression():
    """x¹⁷ and x^3.0, which as exp(n log x) would be nan at x < 0."""
    sympy = pytest.importorskip("sympy")
    x, a = sympy.symbols("x a")
    made = systems.from_sympy({x: a * x**17 + x**3.0 - x**-19}, parameters=[a], usual=[2.0], start=[1.1])
    for value in (-1.2, 0.9):
        exact = 2.0 * value**17 + value**3 - value**-19
        assert slopes_at(made, np.array([value, 2.0]))[0] == pytest.approx(exact, rel=1e-13)
        slope = slopes_at(made, np.array([complex(value, STEP), 2.0 + 0j])).imag[0] / STEP
        assert slope == pytest.approx(34.0 * value**16 + 3.0 * value**2 + 19.0 * value**-20, rel=1e-13)


HIDDEN = {
    "a factor that is 0 at the start": (lambda t, x, p: (p[0] * abs(x[0]) * x[1], -x[0]), "abs"),
    "beside a larger term": (lambda t, x, p: (p[0] * x[0] + x[1] * np.sign(x[0]), -x[0]), "sign"),
    "a sign that only turns": (lambda t, x, p: (p[0] * x[1], -(x[0] if x[0].real > 0.0 else x[0].real)), "real"),
}  # fmt: skip


@pytest.mark.parametrize("what", HIDDEN)
def test_what_is_analytic_at_the_start_alone_is_refused_and_its_cause_named(what):
    function, cause = HIDDEN[what]
    named = {"states": ("x", "y"), "parameters": ("a",), "usual": [2.0], "start": [1.0, 0.0]}
    with pytest.raises(ValueError, match=rf"^function must be analytic, also at x = .*by differences, as of {cause}"):
        systems.own(function, **named)


def test_a_function_may_end_where_states_change_their_sign():
    """Roots and logarithms of a positive state: there are no numbers to compare at the other sign."""
    made = systems.own(
        lambda t, x, p: (p[0] * np.sqrt(x[0]) - x[1] ** 1.5, np.log(x[1]) / (1.0 + x[0])),
        states=("x", "y"), parameters=("a",), usual=[2.0], start=[1.0, 2.0],
    )  # fmt: skip
    assert made.dim == 2


def growth(t, x, p):
    return (p[0] * x[0] - p[1] * x[0] ** 2,)


def of_growth(rhs=growth):
    system = System("growth", ("x",), ("r", "s"), rhs, np.array([1.0, 1.0]), np.array([0.1]))
    times = np.linspace(0.0, 8.0, 30)
    exact = 1.0 / (1.0 + 9.0 * np.exp(-times))
    return Series(times, (exact + 0.01 * np.random.default_rng(2).standard_normal(30))[:, None], ("x",)), system


def test_a_function_that_is_not_analytic_at_the_data_is_told_before_the_search():
    """Of a ``System`` that was not made by ``own``, and a term of a library; the data are not to blame."""
    data, system = of_growth(lambda t, x, p: (p[0] * x[0] - p[1] * abs(x[0]) ** 2,))
    with pytest.raises(ValueError, match=r"^function must be analytic, also at x = .* as of abs"):
        identify(data, system, likelihood="trajectory")
    library = libraries.functions(("x",), {"size": lambda x: abs(x[0])})
    with pytest.raises(ValueError, match=r"^function must be analytic, also at x = .*by differences"):
        identify(data, library, likelihood="trajectory")


def test_a_term_that_is_not_analytic_is_told_by_the_weak_likelihood():
    data, _ = of_growth()
    series = Series(data.times, data.values - 0.5, ("x",))
    even = {"size": lambda x: abs(x[0])}
    with pytest.raises(ValueError, match=r"^functions must be analytic, but at .* of 'size' with respect to x is 0 by"):
        identify(series, libraries.functions(("x",), even), likelihood="weak")
    smooth = {"size": lambda x: np.sqrt(x[0] * x[0] + 1e-2)}
    assert identify(series, libraries.functions(("x",), smooth), likelihood="weak").dim == 1


def test_the_search_shows_where_it_is_and_ends_after_its_time(capsys):
    data, system = of_growth()
    law = likelihoods.trajectory(step=0.2)
    found = identify(data, system, likelihood=law, progress=True).prepared.start
    assert "start values, stage 2 of 2 (1 segment)" in capsys.readouterr().err
    for progress in (None, False):  # stderr is no terminal here
        quiet = identify(data, system, likelihood=law, progress=progress, time_limit=1e5).prepared.start
        np.testing.assert_array_equal(quiet, found)
    assert capsys.readouterr().err == ""
    words = r"^the search for start values has not ended within time_limit = 1e-09 s, after \d+ evaluations: it is in "
    with pytest.raises(TimeoutError, match=words + r"stage 1 of 2 \(10 segments\), where the lowest energy is "):
        identify(data, system, likelihood=law, time_limit=1e-9)


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"time_limit": 0.0}, ValueError, "time_limit must be finite and > 0"),
        ({"time_limit": "1"}, TypeError, "time_limit must be a number"),
        ({"progress": 1}, TypeError, "progress must be"),
    ],
)
def test_options_of_the_search_that_are_none_are_refused(options, kind, words):
    data, system = of_growth()
    with pytest.raises(kind, match=f"^{words}"):
        identify(data, system, likelihood="trajectory", **options)


def test_a_constraint_that_is_not_analytic_is_refused():
    """Of abs(θ) a complex step says that it does not rise: its wall's normal would be 0, and its mirror point nan."""
    times = np.linspace(0.0, 1.0, 30)
    series = Series(times, np.exp(-times)[:, None], ("x",), velocities=-np.exp(-times)[:, None])
    setting = {"likelihood": likelihoods.derivative(velocities="exact", noise=0.1)}
    with pytest.raises(ValueError, match=r"analytic functions, and the slope of <lambda> with respect to .* is 0 by a"):
        identify(series, libraries.polynomial(("x",), 1), constraints=lambda q: 3.0 - abs(q[1]), **setting)
    both = [lambda q: 3.0 - q[1], lambda q: 3.0 + q[1]]
    assert identify(series, libraries.polynomial(("x",), 1), constraints=both, **setting).contains([[0.0, -2.9]]).all()
