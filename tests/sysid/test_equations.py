"""Equations as text, LaTeX and SymPy: only what is there, with digits that the errors allow."""

import re

import numpy as np
import pytest
import sympy

from sysid import Series, identify, libraries, model_of, systems
from sysid.model import LINE_LENGTH, all_free, model_of_system, with_error

LORENZ = model_of_system(systems.lorenz())
VALUES = [10.0, 28.0, 8 / 3]
LONG = all_free(libraries.polynomial(("prey", "predator"), 4) + libraries.fourier(("prey", "predator"), 2))


def test_terms_that_are_0_are_left_out():
    model = all_free(libraries.polynomial(("x", "y"), 2))
    values = np.zeros(12)
    assert model.equations(values) == "dx/dt = 0\ndy/dt = 0"
    values[1], values[9] = -1.5, 1e-300
    assert model.equations(values) == "dx/dt = -1.5 x\ndy/dt = +1e-300 xx"
    assert model.equations(values, 0.1 * np.ones(12)).startswith("dx/dt = +(-1.50 ± 0.10) x\n")
    assert "0" not in model.equations(values, style="latex").partition("\\\\")[0].replace("-300", "")
    assert model.sympy_equations(np.zeros(12)) == {sympy.Symbol("x"): 0, sympy.Symbol("y"): 0}


def test_long_equations_are_broken_and_lose_nothing():
    values = np.random.default_rng(0).normal(size=len(LONG.parameters))
    text = LONG.equations(values, 0.1 * np.abs(values))
    lines = text.split("\n")
    assert max(map(len, lines)) <= LINE_LENGTH
    assert len(lines) > 10
    first = [line for line in lines if not line.startswith("    +(")]
    assert [line.partition(" = ")[0] for line in first] == ["dprey/dt", "dpredator/dt"]
    assert text.count("±") == len(values)
    whole = " ".join(line.strip() for line in lines)
    terms = re.findall(r"\+\(([-0-9.e]+) ± [0-9.e-]+\) (.*?)(?= \+\(| d\w+/dt|$)", whole)
    assert [name for _, name in terms] == list(LONG.library.names) * 2
    np.testing.assert_allclose([float(number) for number, _ in terms], values, rtol=0.02)


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        (9.98765, 0.0123, "9.988 ± 0.012"),
        (5.0, 0.0996, "5.00 ± 0.10"),
        (-1.0, 9.97, "-1 ± 10"),
        (1234.0, 120.0, "1.23e3 ± 0.12e3"),
        (0.0001, 2.0, "0.0 ± 2.0"),
        (1.5e-9, 2e-10, "1.50e-9 ± 0.20e-9"),
        (1e-9, 3e-8, "0.1e-8 ± 3.0e-8"),
        (3e200, 1e190, "3.00000000000e200 ± 0.00000000010e200"),
        (1e-310, 1e-320, "1.00000000000e-310 ± 0.00000000010e-310"),
        (np.nan, 1.0, "nan ± 1"),
        (1.0, np.inf, "1 ± inf"),
    ],
)
def test_digits_are_those_that_the_error_allows(value, error, words):
    assert with_error(value, error) == words


def test_errors_of_tied_parameters():
    """σ stands at two terms of Lorenz; a coefficient of two parameters has the root of the sum of squares."""
    assert LORENZ.equations(VALUES, [0.1, 0.0, 0.02]) == (
        "dx/dt = +(-10.00 ± 0.10) x +(10.00 ± 0.10) y\ndy/dt = +28 x -1 y -1 xz\ndz/dt = +(-2.667 ± 0.020) z +1 xy"
    )
    both = model_of(LORENZ.library, free=(), tied={"a": {"dx:x": 3.0}, "b": {"dx:x": 4.0, "dy:y": 1.0}})
    assert "+(7.0 ± 5.0) x" in both.equations([1.0, 1.0], [1.0, 1.0])


def test_latex_has_powers_and_names():
    assert LORENZ.equations(VALUES, style="latex") == (
        "\\begin{aligned}\n"
        r"\frac{\mathrm{d} x}{\mathrm{d} t} &= - 10\, x + 10\, y" + "\\\\\n"
        r"\frac{\mathrm{d} y}{\mathrm{d} t} &= 28\, x - y - x \, z" + "\\\\\n"
        r"\frac{\mathrm{d} z}{\mathrm{d} t} &= - 2.667\, z + x \, y" + "\n\\end{aligned}"
    )
    library = libraries.polynomial(("x_1", "lynx_b"), 3) + libraries.fourier(("x_1", "lynx_b"), 2)
    text = all_free(library).equations(np.full(2 * len(library), 2e-9), np.full(2 * len(library), 1e-10), style="latex")
    for part in (r"x_{1}^{3}", r"\mathrm{lynx\_b}", r"\sin(2 x_{1})", r"2.00 \times 10^{-9} \pm 0.10 \times 10^{-9}"):
        assert part in text
    assert text.count("{") == text.count("}")
    from matplotlib import mathtext

    parser = mathtext.MathTextParser("path")  # draws what LaTeX would, but for the environment
    for row in text.split("\n")[1:-1]:
        parser.parse("$" + row.removesuffix("\\\\").replace("&", "") + "$")


def test_sympy_has_the_same_slopes():
    library = libraries.polynomial(("x", "y"), 3) + libraries.fourier(("x", "y"), 2, frequency=0.7)
    model = all_free(library)
    values = np.random.default_rng(0).normal(size=len(model.parameters))
    found = model.sympy_equations(values)
    x, y = sympy.symbols("x y")
    assert list(found) == [x, y]
    at = {x: 0.3, y: -1.2}
    expected = library.evaluate([[0.3, -1.2]]) @ model.coefficients(values)
    np.testing.assert_allclose([float(found[s].subs(at)) for s in (x, y)], expected[0], rtol=1e-12)
    again = systems.from_sympy(found, parameters=[], usual=[], start=[0.3, -1.2])
    np.testing.assert_allclose(again.rhs(0.0, (0.3, -1.2), ()), expected[0], rtol=1e-12)
    own = all_free(libraries.functions(("x", "y"), {"half": lambda s: s[0] / 2.0}))
    assert own.sympy_equations([3.0, 0.0]) == {x: 3.0 * sympy.Function("half")(x, y), y: 0}


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: LORENZ.equations(VALUES, [0.1, 0.2]), r"errors must have shape \(3,\), got \(2,\)"),
        (lambda: LORENZ.equations(VALUES, [0.1, 0.2, -0.1]), r"errors must be ≥ 0, got \[0.1, 0.2, -0.1\]"),
        (lambda: LORENZ.equations(VALUES, style="html"), "style must be one of 'text', 'latex', got 'html'"),
        (lambda: LORENZ.sympy_equations([1.0]), r"parameters must have shape \(3,\), got \(1,\)"),
    ],
)
def test_what_is_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_a_lambda_leaves_no_name_of_its_own():
    """Neither in the system, nor in the problem, nor in its domain."""
    made = systems.own(lambda t, x, p: (-p[0] * x[0],), states=("x",), parameters=("k",), usual=[1.0], start=[1.0])
    assert made.name == "model"
    assert (
        systems.own(made.rhs, states=("x",), parameters=("k",), usual=[1.0], start=[1.0], name="decay").name == "decay"
    )
    times = np.linspace(0.0, 1.0, 11)
    noise = 0.01 * np.random.default_rng(0).standard_normal(11)  # without any there is no mode
    series = Series(times, (np.exp(-times) + noise)[:, None], ("x",))
    problem = identify(
        series, made, likelihood="trajectory", constraints=[lambda k: 2.0 - k[0]], progress=False, prior=None
    )
    assert problem.name == "model by trajectory in constraints of a function"
