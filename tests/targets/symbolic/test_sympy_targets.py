"""``from_sympy``: energies and gradients against SymPy at 30 digits; sharing; refusals; and cosine25 once more."""

import inspect
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import mpmath
import numpy as np
import pytest
import sympy as sp
from sympy.codegen.cfunctions import expm1, log1p

from targets import mixtures
from targets.symbolic import from_sympy
from toolkit import sample, samplers
from toolkit._compiler import decorators

x, y, a, b = sp.symbols("x y a b")
SQUARED = x**2 + y**2
CENTRES = [(i, j) for i in (-4, -2, 0, 2, 4) for j in (-4, -2, 0, 2, 4)]
COSINE = (
    SQUARED / 5
    - 2 * (sp.cos(2 * sp.pi * x) + sp.cos(2 * sp.pi * y))
    + sp.Piecewise((SQUARED - 20, SQUARED > 20), (0, True))
)
POINTS = np.random.default_rng(0).uniform(-0.95, 0.95, (200, 2))

BATTERY = {
    "exp": sp.exp(x * y) + sp.exp(-2 * x),
    "log": sp.log(x + y + 2) ** 2,
    "log1p and expm1": log1p(x) + expm1(x * y),
    "log of exponentials": sp.log(1 + sp.exp(3 * x) + y**2 * sp.exp(x - y)),
    "log of exponentials, nested": sp.log(sp.exp(x * sp.log(1 + sp.exp(y))) + 2),
    "sin, cos and tan": sp.sin(x * y) ** 2 + sp.cos(3 * x) * sp.tan(y),
    "turns": sp.sin(2 * sp.pi * x + sp.pi / 3) + sp.cos(sp.pi * x * y) - sp.sin(sp.pi * y),
    "their reciprocals": sp.sec(x) + sp.csc(y + 2) + sp.cot(x + 2),
    "sinh, cosh and tanh": sp.sinh(x) * sp.cosh(y) + sp.tanh(2 * x + y),
    "their reciprocals too": sp.sech(x) + sp.csch(y + 2) + sp.coth(x + 3),
    "inverse hyperbolic": sp.asinh(3 * x) + sp.acosh(y + 3) + sp.atanh(x * y),
    "inverse trigonometric": sp.asin(x) + sp.acos(y) * sp.atan(5 * x),
    "atan2": sp.atan2(x, y + 0.1) * x,
    "powers": x**7 - 3 * x**2 * y**5 + (x + y + 3) ** -3 + (x - y) ** 2.0,
    "roots": sp.sqrt(x + 2) * (y + 2) ** sp.Rational(5, 2) + (x + y + 3) ** sp.Rational(-3, 2),
    "other powers": (x + 2) ** sp.Rational(1, 3) + 2**y + (x + 2) ** (y + 1),
    "constants": sp.pi * x + sp.E * y + sp.Rational(1, 3) * x**2 + sp.sqrt(2) * y**2 + sp.sin(1) * x * y,
    "Abs": sp.Abs(x * y - 0.1) + sp.sqrt((x + y) ** 2),
    "sign": sp.sign(x) * x**2 + sp.sign(y - x) * (y - x),
    "Max and Min": sp.Max(x, y, x * y) + sp.Min(x**2, y, 0.3),
    "what cancels only once lowered": x**2 + sp.cos(y) - 1 / sp.sec(y) + sp.Float("1e-400") * y + x * y**3,
    "exclusive or": sp.Piecewise((x**2 * y, sp.Xor(x > 0, y > 0.3)), (x - y, True)),
    "Heaviside": sp.Heaviside(x - y) * (x - y) ** 2 + y,
    "Piecewise": sp.Piecewise((x**2, x < -0.3), (2 * x * y, (x <= 0.4) & (y > 0)), (sp.exp(x), True)) + y**2,
    "Piecewise, nested": sp.Piecewise((sp.Piecewise((x, y > 0.5), (y, True)), sp.Or(x > y, x < -0.5)), (x * y, True)),
    "Piecewise of a Piecewise": sp.Piecewise(
        (x * y, sp.Piecewise((x, y < 0.2), (y**2, x > 0), (-1, True)) < 0.1), (x + y, True)
    ),
    "relations negated": sp.Piecewise((x**2 * y, sp.Not((x >= 0) & (y < 0))), (x - y, sp.Ne(x, y)), (0, True)),
    "Sum": sp.Sum(x**a * y / a, (a, 1, 5)) + sp.Product(x + a, (a, 1, 3)),
    "cosine25": COSINE,
    "Rosenbrock": 100 * (y - x**2) ** 2 + (1 - x) ** 2,
}


def exact(energy, points):
    """Energy and gradient by SymPy and mpmath."""
    real = {s: sp.Symbol(s.name, real=True) for s in (x, y)}
    u = energy.replace(lambda e: isinstance(e, sp.Sum | sp.Product), lambda e: e.doit()).xreplace(real)
    outputs = [u, *[sp.diff(u, v).replace(sp.DiracDelta, lambda *_: 0) for v in real.values()]]
    function = sp.lambdify(list(real.values()), outputs, modules="mpmath")
    with mpmath.workdps(30):
        rows = [[float(v) for v in function(*map(mpmath.mpf, point))] for point in points.tolist()]
    return np.array(rows)[:, 0], np.array(rows)[:, 1:]


@pytest.mark.cases(6)
@pytest.mark.parametrize("case", BATTERY)
def test_energy_and_gradient_are_those_of_sympy(case):
    target = from_sympy(BATTERY[case], (x, y))
    energy, gradient = target.evaluate(POINTS)
    u, slope = exact(BATTERY[case], POINTS)
    np.testing.assert_allclose(energy, u, rtol=2e-14, atol=5e-15)
    np.testing.assert_allclose(gradient, slope, rtol=2e-14, atol=5e-14)
    assert np.abs(slope).max() > 0.1  # a gradient of zeros would be found out


def test_what_parameters_alone_make_is_right_too():
    energy = (
        -a * b * x**2 + sp.sin(a) * y - sp.Max(a, b) * x + sp.Piecewise((x * y, a < b), (y, True)) + y**a * sp.tan(b)
    )
    numbers, points = {a: 2.5, b: 0.25}, np.abs(POINTS)
    energies, gradient = from_sympy(energy, (x, y), numbers).evaluate(points)
    u, slope = exact(energy.subs(numbers), points)
    np.testing.assert_allclose(energies, u, rtol=2e-14, atol=5e-15)
    np.testing.assert_allclose(gradient, slope, rtol=2e-14, atol=5e-15)


def test_cosine25_is_the_block_written_by_hand():
    points = np.random.default_rng(1).normal(size=(100_000, 2)) * 4
    ours, theirs = from_sympy(COSINE, (x, y)).evaluate(points), mixtures.cosine25().evaluate(points)
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-15, atol=1.5e-14)


def test_draws_of_cosine25_are_those_of_the_block():
    arguments = {"sampler": samplers.sgld(1e-3), "n_steps": 1000, "thin": 100, "n_chains": 64, "seed": 3,
                 "init": [0.0, 0.0]}  # fmt: skip
    ours = sample(from_sympy(COSINE, (x, y)), **arguments).draws
    theirs = sample(mixtures.cosine25(), **arguments).draws
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-10)
    other = sample(from_sympy(COSINE + x / 1000, (x, y)), **arguments).draws
    assert np.abs(other - theirs).max() > 1e-5


def code(target):
    """Source without the docstring."""
    return inspect.getsource(target.energy_gradient).split('"""')[2]


def written_mixture():
    return -sp.log(sum(sp.exp(-((x - i) ** 2 + (y - j) ** 2) / (2 * a)) for i, j in CENTRES) / 25)


@pytest.mark.cases(0)
def test_a_mixture_is_right_where_every_exponential_underflows():
    target = from_sympy(written_mixture(), (x, y), {a: 0.03})
    points = np.random.default_rng(2).normal(size=(2000, 2)) * 100
    energy, gradient = target.evaluate(points)
    u, slope = mixtures.gaussian_mixture(CENTRES, 0.03).evaluate(points)
    np.testing.assert_allclose(energy + np.log(2 * np.pi * 0.03), u, rtol=1e-13)
    np.testing.assert_allclose(gradient, slope, rtol=1e-11, atol=1e-9)


def test_subexpressions_are_shared_between_energy_and_gradient():
    mixture = code(from_sympy(written_mixture(), (x, y), {a: 0.03}))
    assert [mixture.count(f"{name}(") for name in ("exp_share", "exp", "log")] == [25, 0, 1]
    assert mixture.count("/") == 2  # by the variance before the loop, by the sum within
    assert code(from_sympy(COSINE, (x, y))).count("sincos") == 2
    before, within = code(from_sympy(x**2 * sp.exp(a) / b, x, {a: 1, b: 2})).split("for lane")
    assert before.count("exp(p0)") == before.count("/") == 1
    assert "p0" not in within
    assert "p1" not in within
    assert "/" not in within


def test_other_numbers_and_equal_expressions_compile_nothing(monkeypatch):
    compiled = []

    def make(first, second, v=x, p=a):
        target = from_sympy(p * v**4 + b * sp.cos(v), [v], {p: first, b: second})
        return target, target.evaluate([[0.7]])[0].item()

    target, value = make(1.0, 2.0)
    monkeypatch.setattr(decorators, "cache_stamp", compiled.append)
    other, larger = make(3, sp.Rational(1, 2))
    renamed, same = make(1.0, 2.0, *sp.symbols("v q"))
    assert target.energy_gradient is other.energy_gradient is renamed.energy_gradient
    assert compiled == []
    monkeypatch.undo()
    assert (value, larger, same) == pytest.approx([0.7**4 + 2 * np.cos(0.7), 3 * 0.7**4 + 0.5 * np.cos(0.7), value])
    assert list(other.parameters) == [3.0, 0.5]
    assert from_sympy(a * x**4 + b * sp.sin(x), [x], {a: 1, b: 2}).energy_gradient is not target.energy_gradient


def test_symbols_count_as_real_whatever_they_are_assumed_to_be():
    positive, integer = sp.Symbol("s", positive=True), sp.Symbol("n", integer=True)
    energy, gradient = from_sympy(positive**2 + sp.Abs(integer), (positive, integer)).evaluate([[-2.0, -0.5]])
    np.testing.assert_array_equal([*energy, *gradient[0]], [4.5, -4.0, -1.0])


def test_kinks_and_gaps():
    energy = sp.Abs(x) + sp.Max(2 * x, 0) + sp.Piecewise((x, x >= 0), (4 * x, True)) + sp.Heaviside(x)
    assert from_sympy(energy, x).evaluate([[0.0]])[1].item() == 0.0 + 1.0 + 1.0
    gap = from_sympy(sp.Piecewise((x, x < 0), (x**2, x > 1)), x)
    np.testing.assert_array_equal(gap.evaluate([[-1.0], [0.5], [2.0]])[0], [-1.0, np.nan, 4.0])


@pytest.mark.cases(0)
def test_a_max_of_many_costs_one_choice_each():
    """SymPy's own derivative holds a Max of all the others for each."""
    k = np.arange(14.0)
    made = [from_sympy(sp.Max(*[i * x - i * i for i in range(n)]) + sp.Min(x, y, -x), (x, y)) for n in (7, 14)]
    counts = [code(target).count("select") for target in made]
    assert counts[1] <= 2 * counts[0] + 8
    points = np.random.default_rng(5).normal(size=(100, 2)) * [20.0, 5.0]
    energy, gradient = made[1].evaluate(points)
    lines, others = points[:, :1] * k - k**2, np.column_stack([points, -points[:, 0]])
    np.testing.assert_allclose(energy, lines.max(axis=1) + others.min(axis=1), rtol=1e-14)
    slopes = np.column_stack([k[lines.argmax(axis=1)], np.zeros(100)])
    np.testing.assert_array_equal(gradient, slopes + np.array([[1, 0], [0, 1], [-1, 0]])[others.argmin(axis=1)])


def test_tracebacks_and_help_show_the_code():
    function = from_sympy(x**2, x).energy_gradient
    assert function.__doc__ == "U = x0**2"
    assert "slope0 = 2.0 * x0" in inspect.getsource(function)


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="reads x86-64 assembly")
@pytest.mark.usefixtures("nothing_kept")
def test_many_coordinates_vectorise():
    """Each of 16 coordinates costs one square root; LLVM left to itself compares rows, and gives up before 16."""
    rows = sp.symbols("x:16")
    target = from_sympy(sum(sp.sqrt(1 + v * v) for v in rows), rows)
    (assembly,) = target.compiled().inspect_asm().values()
    assert len(re.findall(r"sqrtpd\b", assembly)) >= 16
    points = np.random.default_rng(4).normal(size=(50, 16))
    np.testing.assert_allclose(target.evaluate(points)[1], points / np.sqrt(1 + points**2), rtol=1e-15)


def all_sources():
    return "".join(inspect.getsource(from_sympy(e, (x, y)).energy_gradient) for e in BATTERY.values())


@pytest.mark.cases(0)
def test_the_source_is_the_same_in_every_process():
    root = Path(__file__).resolve().parents[3]
    script = "from tests.targets.symbolic.test_sympy_targets import all_sources; print(all_sources(), end='')"
    other = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONHASHSEED": "1", "PYTHONPATH": str(root), "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        encoding="utf-8",
        check=True,
    ).stdout
    assert other == all_sources()


f = sp.Function("f")
BAD = {
    "a function": ((lambda p: p, x), TypeError, "energy must be a scalar SymPy expression, got <function"),
    "a number": ((2.0, x), TypeError, "energy must be a scalar SymPy expression, got 2.0 of type float"),
    "text": (("x**2", x), TypeError, "energy must be a scalar SymPy expression, got 'x**2' of type str"),
    "a relation": ((x > 0, x), TypeError, "energy must be a scalar SymPy expression, got x > 0"),
    "a matrix": ((sp.Matrix([x, y]), (x, y)), TypeError, "energy must be a scalar SymPy expression, got Matrix"),
    "a matrix symbol": ((sp.MatrixSymbol("M", 2, 2)[0, 0] * x, x), TypeError, "energy must be a scalar SymPy"),
    "symbols as text": ((x**2, "x"), TypeError, "symbols must be a sequence of SymPy symbols, got 'x' of type str"),
    "no symbols": ((x**2, ()), TypeError, "symbols must be a sequence of SymPy symbols, got ()"),
    "no symbol": ((x**2, (x, 2)), TypeError, "symbols[1] must be a SymPy symbol, got 2 of type int"),
    "twice": ((x * y, (x, y, x)), ValueError, "symbols must be distinct, got x twice"),
    "improper": ((x**2, (x, y)), ValueError, "energy does not depend on symbols[1] = y, so exp(−U) has no finite"),
    "cancelled": ((sp.sin(y) ** 2 + x, (x, a)), ValueError, "energy contains y, which is among neither symbols nor"),
    "unknown": ((a * x**2 + b, x), ValueError, "energy contains a, b, which is among neither symbols nor parameters"),
    "missing": ((a * x**2 + b, x, {a: 1}), ValueError, "energy contains b, which is among neither"),
    "idle": ((a * x**2, x, {a: 1, b: 2}), ValueError, "parameters must be symbols of energy = a*x**2, got b too"),
    "parameters": ((a * x**2, x, [1.0]), TypeError, "parameters must map symbols to numbers, got [1.0]"),
    "key": ((a * x**2, x, {"a": 1}), TypeError, "parameters must map SymPy symbols to numbers, got the key 'a'"),
    "coordinate": ((x**2, x, {x: 1}), ValueError, "parameters must not hold coordinates, got x"),
    "nan": ((a * x**2, x, {a: np.nan}), ValueError, "parameters[a] must be finite, got nan"),
    "no number": ((a * x**2, x, {a: "1"}), TypeError, "parameters[a] must be a number, got '1' of type str"),
    "complex": ((sp.I * x, x), ValueError, "energy must be real, but I*x is complex"),
    "root of a negative": ((sp.sqrt(-1 - x**2), x), ValueError, "energy must be real, but sqrt(-x**2 - 1) is complex"),
    "infinite": ((sp.Piecewise((sp.oo, x < 0), (x, True)), x), ValueError, "energy must be finite, got Piecewise"),
    "large": (
        (10**400 * x**2, x),
        ValueError,
        "energy must hold numbers within the range of floats, but it or its gradient has 1.00000E+400",
    ),
    "large too": ((sp.exp(1000) * x**2, x), ValueError, "energy must hold numbers within the range of floats, but"),
    "power of a negative": (
        (x**2 + (-1) ** x, x),
        ValueError,
        "energy must be real, but it or its gradient contains I*pi, which is comp",
    ),
    "a set": (
        (sp.Piecewise((x, sp.Contains(x, sp.Interval(0, 1), evaluate=False)), (y, True)), (x, y)),
        ValueError,
        "energy or its gradient contains Contains in Contains(x, Interval(0, 1))",
    ),
    "integral": (
        (sp.Integral(sp.exp(x * y), (y, 0, 1)), x),
        ValueError,
        "energy must be evaluated, but holds Integral",
    ),
    "derivative": ((sp.Derivative(f(x), x), x), ValueError, "energy must be evaluated, but holds Derivative(f(x), x)"),
    "endless sum": ((sp.Sum(x**a / a, (a, 1, b)), x, {b: 3}), ValueError, "energy must be evaluated, but holds Sum"),
    "no maths": ((sp.besselj(0, x), x), ValueError, "energy or its gradient contains besselj in besselj(0, x)"),
    "own function": ((f(x), x), ValueError, "energy or its gradient contains f in f(x), which has no vector maths"),
    "floor": ((sp.floor(x) + x, x), ValueError, "energy or its gradient contains floor in floor(x)"),
}


@pytest.mark.parametrize("case", BAD)
def test_refusals(case):
    arguments, error, message = BAD[case]
    with pytest.raises(error) as caught:
        from_sympy(*arguments)
    assert str(caught.value).startswith(message)


def test_without_sympy_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "sympy", None)
    with pytest.raises(ImportError, match=r'pip install .*\[symbolic\]"'):
        from_sympy(x**2, x)
