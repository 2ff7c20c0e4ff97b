"""``@target``: the same values as a block function, every allowed form, and what it refuses, with the message."""

import math
import types
from math import cos as cosine

import numpy as np
import pytest
from numba import njit

import toolkit
from targets import mixtures
from toolkit import Target, sample, samplers
from toolkit.maths import special
from toolkit.problem.definition import compile_block
from toolkit.problem.math_substitution import rebind
from toolkit.problem.point_function import block_of, target

BLOCK = mixtures.cosine25()
POINTS = np.random.default_rng(0).normal(size=(37, 2)) * 4.0
TURN = 2.0 * math.pi


def as_tuple(x):
    squared = x[0] * x[0] + x[1] * x[1]
    energy = 0.2 * squared - 2.0 * (math.cos(TURN * x[0]) + math.cos(TURN * x[1]))
    slope_x = 0.4 * x[0] + 4.0 * math.pi * math.sin(TURN * x[0])
    slope_y = 0.4 * x[1] + 4.0 * math.pi * math.sin(TURN * x[1])
    if squared > 20.0:
        energy += squared - 20.0
        slope_x += 2.0 * x[0]
        slope_y += 2.0 * x[1]
    return energy, (slope_x, slope_y)


def wave(t):
    return -2.0 * cosine(TURN * t)


@njit
def slope(t):
    return 0.4 * t + 4.0 * np.pi * np.sin(2.0 * np.pi * t)


def as_scalars(x, y):
    squared = x**2 + y**2
    beyond = squared > 20.0
    energy = 0.2 * squared + wave(x) + wave(y) + np.maximum(squared - 20.0, 0.0)
    return energy, (slope(x) + np.where(beyond, 2.0 * x, 0), slope(y) + (2.0 * y if beyond else 0))


def with_parameters(x, numbers):
    energy, (slope_x, slope_y) = as_tuple(x)
    squared = x[0] * x[0] + x[1] * x[1]
    return energy + numbers[0] * squared, (slope_x + numbers[1] * x[0], slope_y + numbers[1] * x[1])


def scalars_with_table(x, y, table):
    return with_parameters((x, y), table[1])


FORMS = {
    "tuple": (as_tuple, None),
    "scalars, helpers, NumPy": (as_scalars, None),
    "parameters": (with_parameters, [0.0, 0.0]),
    "scalars and a table": (scalars_with_table, [[1.0, 2.0], [0.0, 0.0]]),
}


@pytest.mark.cases(2)
@pytest.mark.parametrize("name", FORMS)
def test_every_form_equals_the_block_function(name):
    function, parameters = FORMS[name]
    made = target(function, dim=2, parameters=parameters)
    for got, expected in zip(made.evaluate(POINTS), BLOCK.evaluate(POINTS), strict=True):
        np.testing.assert_allclose(got, expected, rtol=2e-14, atol=5e-14)


def test_the_decorator_makes_a_target_with_name_and_truth():
    @target(dim=1, name="bell", truth=BLOCK.truth)
    def normal(x):
        return 0.5 * x[0] * x[0], x[0]

    assert isinstance(normal, Target)
    assert (normal.name, normal.dim, normal.truth) == ("bell", 1, BLOCK.truth)
    assert target(as_tuple, dim=2).name == "as_tuple"
    energy, gradient = normal.evaluate(np.array([[3.0]]))
    assert (energy.item(), gradient.item()) == (4.5, 3.0)
    assert sample(normal, samplers.sgld(0.1), n_steps=3, seed=0).problem.name == "bell"


def test_other_numbers_change_the_target():
    made = [target(with_parameters, dim=2, parameters=[a, 2.0 * a]) for a in (0.0, 1.0)]
    energies = [t.evaluate(POINTS)[0] for t in made]
    np.testing.assert_allclose(energies[1] - energies[0], (POINTS**2).sum(axis=1), rtol=1e-12, atol=1e-12)


def test_integers_and_truths_become_floats():
    made = target(lambda x: (1, (x[0] > 0.0, 2)), dim=2)
    energy, gradient = made.evaluate(np.array([[1.0, 2.0], [-1.0, 0.0]]))
    np.testing.assert_array_equal(energy, [1.0, 1.0])
    np.testing.assert_array_equal(gradient, [[1.0, 2.0], [0.0, 2.0]])


def factorial(n):
    return 1 if n <= 1 else n * factorial(n - 1)


def test_closures_recursion_and_arrays_of_its_own():
    scale = 3.0

    def weighted(x):
        both = np.array([x[0], x[1]])
        return scale * (both * both).sum() + factorial(4), (2.0 * scale * both[0], 2.0 * scale * both[1])

    energy, gradient = target(weighted, dim=2).evaluate(np.array([[1.0, 2.0]]))
    assert energy.item() == 3.0 * 5.0 + 24.0
    np.testing.assert_array_equal(gradient, [[6.0, 12.0]])
    assert weighted((1.0, 2.0))[0] == 39.0  # the user's function is left as it was
    assert weighted.__closure__[0].cell_contents == 3.0


CENTRES = np.array([[0.0, 1.0], [2.0, -1.0]])


def of_arrays(x, width=0.5):
    apart = np.array([x[0], x[1]]) - CENTRES
    weights = np.exp(-0.5 * (apart**2).sum(axis=1) / width**2)
    slopes = (weights.reshape(-1, 1) * apart).sum(axis=0) / weights.sum() / width**2
    return -np.log(weights.sum()), (slopes[0], slopes[1])


def test_functions_of_arrays_are_numbas_own():
    """``np.exp`` of an array, which our maths does not take; and an argument left at its default."""
    energy, gradient = target(of_arrays, dim=2).evaluate(POINTS / 4.0)
    expected = [of_arrays(point) for point in POINTS / 4.0]
    np.testing.assert_allclose(energy, [e for e, _ in expected], rtol=1e-13)
    np.testing.assert_allclose(gradient, [g for _, g in expected], rtol=1e-12, atol=1e-13)


def test_functions_of_the_users_modules_are_compiled_too():
    source = "import math\nSTEEPNESS = 3.0\ndef bowl(x): return math.exp(0.0) * 0.5 * STEEPNESS * x * x"
    outside = types.ModuleType("outside")
    exec(source, vars(outside))

    def bowl(x):
        return outside.bowl(x[0]), outside.STEEPNESS * x[0]

    energy, gradient = target(bowl, dim=1).evaluate(np.array([[2.0]]))
    assert (energy.item(), gradient.item()) == (6.0, 6.0)
    assert isinstance(outside.bowl, types.FunctionType)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_what_raises_as_it_runs_ends_the_run():
    """Compiled code cannot pass it on; without care the energy and gradient before would stay in place."""

    def picks(x):
        return 0.5 * x[int(abs(x[0]))] ** 2, x[0]

    with pytest.raises(IndexError, match="tuple index out of range"):
        sample(target(picks, dim=1), samplers.sgld(0.5), n_steps=1000, seed=0)


FUNCTIONS = ["exp", "log", "log1p", "expm1", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh"]
INVERSE = ["asin", "acos", "atan", "asinh", "atanh"]


@pytest.mark.parametrize("module", ["math", "np"])
def test_functions_of_math_and_numpy_are_right(module):
    """Those that vectorise, and some that do not."""
    names = [*FUNCTIONS, *INVERSE, "erf", "gamma", "floor"]
    if module == "np":
        names = [*FUNCTIONS, *(name.replace("a", "arc", 1) for name in INVERSE), "abs", "floor", "square"]
    space = {"math": math, "np": np}
    exec(f"def point(x): return 0, ({', '.join(f'{module}.{name}(x[{d}])' for d, name in enumerate(names))})", space)
    x = np.linspace(0.05, 0.95, 19)
    _, got = target(space["point"], dim=len(names)).evaluate(np.repeat(x[:, None], len(names), axis=1))
    for d, name in enumerate(names):
        expected = [getattr(space[module], name)(v) for v in x]
        np.testing.assert_allclose(got[:, d], expected, rtol=2e-15, atol=3e-16, err_msg=name)


def test_two_arguments_and_choices():
    def point(x, y):
        return math.atan2(y, x) + np.maximum(x, y) + 10.0 * np.minimum(x, y), (np.where(x > y, 1.0, 2), abs(y))

    energy, gradient = target(point, dim=2).evaluate(POINTS)
    x, y = POINTS.T
    np.testing.assert_allclose(energy, np.arctan2(y, x) + np.maximum(x, y) + 10.0 * np.minimum(x, y), rtol=1e-13)
    np.testing.assert_array_equal(gradient, np.stack([np.where(x > y, 1.0, 2.0), abs(y)], axis=1))


@pytest.mark.usefixtures("nothing_kept")
def test_the_loop_vectorises_in_two_and_in_twenty_dimensions():
    """Packed fused multiply-adds in the machine code, and no calls: seconds would not tell as surely."""
    lines = ", ".join(f"t * x[{d}]" for d in range(20))
    squares = " + ".join(f"x[{d}] * x[{d}]" for d in range(20))
    space = {"math": math}
    exec(f"def many(x):\n    s = {squares}\n    t = math.exp(-s)\n    return s - t, ({lines})", space)
    for made in (target(as_tuple, dim=2), target(space["many"], dim=20)):
        assembly = next(iter(made.compiled().inspect_asm().values()))
        body = [line.split() for line in assembly.splitlines()]
        fused = [words[0] for words in body if words and words[0].startswith(("vfmadd", "vfnmadd", "fmla"))]
        packed = sum(word.endswith("pd") or word == "fmla" for word in fused)
        scalar_calls = [words[-1] for words in body if words and words[0].startswith("call")]
        assert packed > 10
        assert not [name for name in scalar_calls if any(f in name for f in ("exp", "sin", "cos"))]


def test_functions_of_math_are_ours_by_whatever_name():
    def by_name(x):
        return cosine(x) + math.cos(x)

    names = rebind(by_name, allocates=False, ours=True).py_func.__globals__
    assert names["cosine"] is names["math"].cos is special.cos


def test_draws_equal_those_of_the_block_function():
    runs = [
        sample(t, samplers.sgld(1e-3), n_steps=200, n_chains=5, seed=1, init=[0.0, 0.0]).draws
        for t in (BLOCK, target(as_tuple, dim=2))
    ]
    np.testing.assert_allclose(runs[0], runs[1], atol=1e-12)


@pytest.mark.usefixtures("nothing_kept")
@pytest.mark.parametrize(
    "function", [lambda x: (0.5 * x[0] ** 2, x), lambda x: (0.5 * np.array([x[0] ** 2]).sum(), x)], ids=["", "array"]
)
def test_what_is_on_disk_is_not_compiled_to_check_it(function, monkeypatch):
    compile_block(block_of.__wrapped__(function, 1))
    monkeypatch.setattr("toolkit.problem.point_function.compile_point", None)
    energy, gradient = Target("loaded", 1, block_of.__wrapped__(function, 1)).evaluate([[3.0]])
    assert (energy.item(), gradient.item()) == (4.5, 3.0)


def no_helper(x):
    return undefined(x), x  # noqa: F821


def raises(x):
    assert x[0] > 0.0
    return x[0], (1.0,)


def calls_raising(x):
    return raises(x)


def raises_inside(x):
    def positive(a):
        if a < 0.0:
            raise ValueError("negative")
        return a

    return positive(x[0]), (1.0,)


REFUSED = {
    "no function": (3.0, {"dim": 2}, TypeError, r"target is put above a function of one point, got 3.0 of type float"),
    "neither": (False, {}, TypeError, "target is put above a function of one point, got False of type bool"),
    "no dim": (as_tuple, {}, TypeError, r"target needs .*: write @target\(dim=...\) above as_tuple"),
    "dim 0": (as_tuple, {"dim": 0}, ValueError, "dim must be ≥ 1"),
    "parameters": (with_parameters, {"dim": 2, "parameters": ["a"]}, TypeError, "parameters must be an array of real"),
    "three arguments": (
        lambda x, y, z: 0.0, {"dim": 2}, TypeError,
        r"<lambda> must take one point, a tuple of 2 floats or 2 floats; its arguments are \(x, y, z\)",
    ),
    "forgotten parameters": (
        with_parameters, {"dim": 3}, TypeError, r"its arguments are \(x, numbers\); give parameters=... where the sec",
    ),
    "no room for parameters": (as_tuple, {"dim": 2, "parameters": [1.0]}, TypeError, "the array of parameters; its"),
    "star": (lambda *x: 0.0, {"dim": 2}, TypeError, r"its arguments are \(\*x\)"),
    "no pair": (
        lambda x: x[0], {"dim": 2}, TypeError,
        r"must return \(energy, gradient\), a float and a tuple of 2 floats; it returns a float",
    ),
    "nothing": (lambda x: None, {"dim": 2}, TypeError, "on every path; on some it returns None"),
    "nothing for some": (lambda x: (x[0], x) if x[0] > 0.0 else None, {"dim": 2}, TypeError, "on some it returns None"),
    "three": (lambda x: (x[0], x, x), {"dim": 2}, TypeError, "it returns a tuple of 3"),
    "short gradient": (lambda x: (x[0], (x[1],)), {"dim": 2}, ValueError, "a tuple of 2 floats; its gradient has 1"),
    "float gradient": (lambda x: (x[0], x[1]), {"dim": 2}, TypeError, "its gradient is a float"),
    "complex energy": (lambda x: (1j * x[0], x), {"dim": 1}, TypeError, "tuple of 1 float; its energy is complex"),
    "complex gradient": (lambda x: (x[0], (x[0], 1j * x[1])), {"dim": 2}, TypeError, r"gradient\[1\] is complex"),
    "array energy": (lambda x: (np.zeros(2), x), {"dim": 2}, TypeError, "its energy is an array"),
    "array gradient": (lambda x: (x[0], np.array([x[0], x[1]])), {"dim": 2}, TypeError, "its gradient is an array"),
    "list gradient": (lambda x: (x[0], [x[0], x[1]]), {"dim": 2}, TypeError, "its gradient is a list"),
    "text": (lambda x: ("low", x), {"dim": 2}, TypeError, "its energy is an object of type unicode_type"),
    "no helper": (no_helper, {"dim": 2}, TypeError, "does not compile: NameError: name 'undefined' is"),
    "no attribute": (
        lambda x: (x[0].nonsense, x), {"dim": 2}, TypeError,
        r"does not compile: Unknown attribute 'nonsense' of type float64, in line \d+ of test_point_function.py; where "
        "it needs what Numba lacks, give a function of arrays of points to toolkit.from_callable",
    ),
    "a tuple is no array": (
        lambda x: (0.5 * x * x, x), {"dim": 2}, TypeError, r"for signature mul\(float64, UniTuple\(float64 x 2\)\)",
    ),
    "raises": (raises, {"dim": 1}, TypeError, "raises must not raise or assert, .* return an energy of math.inf"),
    "raises inside": (raises_inside, {"dim": 1}, TypeError, "raises_inside must not raise or assert"),
    "calls what raises": (calls_raising, {"dim": 1}, TypeError, "raises must not raise or assert"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_wrong_is_said_at_decoration(name):
    function, arguments, kind, message = REFUSED[name]
    with pytest.raises(kind, match=message):
        toolkit.target(function, **arguments) if not arguments else toolkit.target(**arguments)(function)
