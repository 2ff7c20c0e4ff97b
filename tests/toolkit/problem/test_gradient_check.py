"""``check_gradient``: right gradients pass, and every usual mistake is named, with its place."""

import numpy as np
import pytest

from targets import catalogue, constrained, domains, mixtures, shapes
from toolkit import GradientError, Target, check_gradient, from_callable, sample, samplers

COSINE = mixtures.cosine25()
MIXTURE = mixtures.gaussian_mixture(np.random.default_rng(0).normal(size=(3, 4)) * 2.0, 0.5)
ORIGIN = np.zeros(2)


def gaussian(precision, offset=0.0):
    return lambda x: (0.5 * np.einsum("ni,ij,nj->n", x, precision, x) + offset, x @ precision)


def kinked(x):
    return np.abs(x).sum(axis=1), np.sign(x)


def student(x):
    squared = (x**2).sum(axis=1)
    return 1.5 * np.log1p(squared), 3.0 * x / (1.0 + squared)[:, None]


def gamma(x):
    with np.errstate(all="ignore"):
        return x[:, 0] - 2.0 * np.log(x[:, 0]), 1.0 - 2.0 / x


def single(x):
    energies, gradients = COSINE.evaluate(x.astype(np.float32))
    return energies.astype(np.float32), gradients.astype(np.float32)


def turned(dim, condition):
    q = np.linalg.qr(np.random.default_rng(1).normal(size=(dim, dim)))[0]
    precision = q @ np.diag(np.geomspace(1.0, condition, dim)) @ q.T
    return 0.5 * (precision + precision.T)


def on_the_circle():
    """Points at, and very near, cosine25's kink."""
    angles = np.random.default_rng(2).uniform(0.0, 6.28, 30)
    circle = np.sqrt(20.0) * np.column_stack([np.cos(angles), np.sin(angles)])
    return np.vstack([circle * (1.0 + away) for away in (0.0, 1e-15, 1e-12, 1e-9, 1e-6, 1e-4, -1e-3)])


RIGHT = {
    **{f"scale {s:g}": (gaussian(np.eye(2) / s**2), 2, None) for s in (1e-6, 1e-3, 1.0, 1e3, 1e6)},
    **{f"condition {c:g}": (gaussian(turned(5, c)), 5, None) for c in (1e4, 1e8, 1e12)},
    "scales 1e-6 to 1e6": (
        gaussian(np.diag(np.geomspace(1e-12, 1e12, 7))), 7,
        np.random.default_rng(3).normal(size=(16, 7)) * np.geomspace(1e6, 1e-6, 7),
    ),
    "offset 1e6": (gaussian(np.eye(3), 1e6), 3, np.random.default_rng(8).normal(size=(1000, 3))),
    "offset 1e10": (gaussian(np.eye(3), 1e10), 3, None),
    "at a kink": (kinked, 2, np.vstack([np.zeros((1, 2)), np.random.default_rng(4).normal(size=(9, 2))])),
    "odd about its points": (
        lambda x: (np.sin(2.0 * np.pi * x[:, 0]), 2.0 * np.pi * np.cos(2.0 * np.pi * x)), 1, [[-1.0], [0.0], [1.0]],
    ),
    "cosine25 at its kink": (COSINE.evaluate, 2, on_the_circle()),
    "cosine25 far out": (COSINE.evaluate, 2, np.random.default_rng(5).normal(size=(20, 2)) * 1e3),
    "cosine25 at its symmetries": (COSINE.evaluate, 2, np.round(np.random.default_rng(6).normal(size=(20, 2)) * 3.0)),
    "Student": (student, 3, np.random.default_rng(7).standard_cauchy(size=(20, 3)) * 100.0),
    "half a line": (gamma, 1, None),
    "flat": (lambda x: (0.0 * x[:, 0], 0.0 * x), 2, None),
    "flat in one direction": (lambda x: (0.5 * x[:, 0] ** 2, x * [1.0, 0.0]), 2, None),
    "float32": (single, 2, None),
    "rounding that the value hides": (lambda x: (np.log(1.0 + x[:, 0] ** 2), 2.0 * x / (1.0 + x**2)), 1, None),
    "an offset taken away again": (lambda x: ((1e6 + (x**2).sum(axis=1)) - 1e6, 2.0 * x), 2, None),
    "float32 that hides it": (
        lambda x: (np.log(1.0 + x[:, 0].astype(np.float32) ** 2), 2.0 * x / (1.0 + x**2)), 1, None,
    ),
    "a plateau": (lambda x: ((np.abs(x) - 1.0).clip(0.0).sum(axis=1), np.sign(x) * (np.abs(x) > 1.0)), 2, None),
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT)
def test_right_gradients_pass(name):
    function, dim, points = RIGHT[name]
    report = check_gradient(from_callable(function, dim=dim, name=name), points)
    assert report.compared >= 0.85 * report.n_points
    assert report.compared + report.unclear == report.n_points * dim


@pytest.mark.cases(8)
@pytest.mark.slow_cases("linear_regression, Heart", "logistic_regression, Heart")
@pytest.mark.parametrize("target", catalogue(), ids=lambda target: target.name)
def test_the_zoo_passes(target):
    assert check_gradient(target).error < 1e-6


def test_the_report_says_what_was_compared():
    report = check_gradient(constrained(COSINE, shapes.flower()), n_points=10, seed=3)
    assert (report.n_points, report.compared, report.unclear) == (10, 20, 0)
    assert report.error < 1e-9
    assert str(report).startswith("gradient of 'cosine25 in flower' agrees with differences at 10 points (20 slopes): ")
    assert f"coordinate {report.coordinate}: got " in str(report)


def column(d, by):
    """All but coordinate ``d`` as they are, that one times ``by``."""
    return lambda x, e, g: (e, g * np.where(np.arange(g.shape[1]) == d, by, 1.0))


WRONG = {
    "sign": (
        lambda x, e, g: (e, -g),
        "The gradient has the wrong sign: a step along −gradient raises the energy. Both are to be those of U = −log "
        "density",
    ),
    "log density": (lambda x, e, g: (-e, g), "The gradient has the wrong sign: a step along −gradient raises the en"),
    "sign and twice": (
        lambda x, e, g: (e, -2.0 * g),
        "The gradient has the wrong sign, and 2 times the length: a step",
    ),
    "half": (
        lambda x, e, g: (e, 0.5 * g),
        "The gradient is 0.5 times the slope of the energy everywhere: a factor is in only one of the two, such as ½, "
        "a temperature, or N/n of a minibatch",
    ),
    "another temperature": (lambda x, e, g: (e / 10.0, g), "The gradient is 10 times the slope of the energy everyw"),
    "a little": (lambda x, e, g: (e, 1.0001 * g), "The gradient is 1.0001 times the slope of the energy everywhere"),
    "exchanged": (
        lambda x, e, g: (e, g[:, [1, 0, *range(2, g.shape[1])]]),
        "Coordinates are exchanged: gradient[0] is the slope in coordinate 1, gradient[1] is the slope in coordinate 0",
    ),
    "missing": (column(1, 0.0), "gradient[1] is always 0: coordinate 1 is missing"),
    "sign of one": (column(0, -1.0), "gradient[0] has the wrong sign"),
    "half of one": (column(1, 0.5), "gradient[1] is 0.5 times the slope"),
    "zero": (lambda x, e, g: (e, 0.0 * g), "The gradient is 0 everywhere"),
    "a term": (lambda x, e, g: (e, g + 1e-3 * x), ""),
}


@pytest.mark.parametrize("base", [COSINE, MIXTURE], ids=["2-D", "4-D"])
@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("draws", [True, False], ids=["draws", "around"])
def test_wrong_gradients_are_refused_with_the_cause(base, name, draws):
    change, cause = WRONG[name]
    made = from_callable(
        lambda x: change(x, *base.evaluate(x)), dim=base.dim, name="mine", truth=base.truth if draws else None
    )
    with pytest.raises(GradientError) as caught:
        check_gradient(made)
    error = caught.value
    assert error.cause.startswith(cause)
    assert bool(error.cause) == bool(cause)
    assert f"coordinate {error.coordinate}: got {error.got:.10g}, but differences of the energy" in str(error)
    assert str(error).endswith(f"slopes are off. {error.cause}" if cause else "slopes are off")
    energy, gradient = (a[0] for a in made.evaluate(error.point[None]))
    assert gradient[error.coordinate] == error.got
    factor = {"log density": -1.0, "another temperature": 0.1}.get(name, 1.0)
    assert error.expected == pytest.approx(factor * base.evaluate(error.point[None])[1][0, error.coordinate], rel=1e-6)
    assert np.isfinite(energy)


def test_what_is_within_the_tolerance_passes():
    made = from_callable(lambda x: WRONG["a little"][0](x, *COSINE.evaluate(x)), dim=2)
    assert check_gradient(made, tolerance=2e-4).error == pytest.approx(1e-4, rel=1e-3)


def no_second(position, energy, gradient, parameters, scratch):
    for lane in range(position.shape[1]):
        energy[lane] = 0.5 * (position[0, lane] ** 2 + position[1, lane] ** 2)
        gradient[0, lane] = position[0, lane]


def nearby(position, energy, gradient, parameters, scratch):
    for lane in range(position.shape[1]):
        energy[lane] = 0.5 * position[0, lane] ** 2
        gradient[0, lane] = position[0, lane - 1]


def noisy(x):
    return 0.5 * x[:, 0] ** 2 + 1e-3 * np.random.default_rng().normal(size=len(x)), x


OUTPUTS = {
    "a row not filled": (
        Target("mine", 2, no_second), r"^gradient\[1\] of 'mine' is nan at .*\. It is nan everywhere: the target does",
    ),
    "infinite slope": (
        from_callable(lambda x: (x[:, 0], np.where(x > 0.0, 1.0, np.inf)), dim=1, name="mine"),
        r"^gradient\[0\] of 'mine' is inf at .*, of energy .*\. It is so at \d+ of 16 points$",
    ),
    "noise": (
        from_callable(noisy, dim=1, name="mine"),
        r"^energy of 'mine' differs between two calls at .*: .*, then .*\. It is noisy, or depends on the other points",
    ),
    "another lane": (Target("mine", 1, nearby), r"^gradient\[0\] of 'mine' differs between two calls at"),
    "all lanes": (
        from_callable(lambda x: (0.5 * (x**2).sum() + 0.0 * x[:, 0], x), dim=2, name="mine"),
        "^energy of 'mine' differs between two calls at",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OUTPUTS)
def test_bad_outputs_are_named(name):
    target, message = OUTPUTS[name]
    with pytest.raises(GradientError, match=message):
        check_gradient(target)


def test_an_energy_that_is_nan_at_a_given_point():
    with pytest.raises(GradientError, match=r"energy of 'mine' is nan at \[-1\]\. It is so at 1 of 2 points"):
        check_gradient(from_callable(gamma, dim=1, name="mine"), [[1.0], [-1.0]])


def test_a_row_not_filled_is_refused_as_a_start():
    with pytest.raises(ValueError, match=r"init must have a finite gradient, got gradient \[0.0, nan\] with energy 0"):
        sample(Target("mine", 2, no_second), samplers.sgld(0.1), n_steps=1, seed=0, init=[0.0, 0.0])
    with pytest.raises(
        ValueError, match=r"none has a finite energy and gradient; .*, nan\]; an entry that is always nan"
    ):
        sample(Target("mine", 2, no_second), samplers.sgld(0.1), n_steps=1, seed=0)


REFUSED = {
    "shape": (lambda: check_gradient(COSINE, [1.0, 2.0]), r"points must have shape \(n, 2\), got \(2,\)"),
    "no points": (lambda: check_gradient(COSINE, np.zeros((0, 2))), r"points must have shape \(n, 2\), got \(0, 2\)"),
    "init": (lambda: check_gradient(COSINE, init=[1.0]), r"init must have shape \(2,\), got \(1,\)"),
    "n_points": (lambda: check_gradient(COSINE, n_points=0), "n_points must be ≥ 1"),
    "tolerance": (lambda: check_gradient(COSINE, tolerance=0.0), "tolerance must be finite and > 0 and < 1, got 0.0"),
    "nowhere": (
        lambda: check_gradient(from_callable(gamma, dim=1, name="mine"), init=[-100.0]),
        r"found no point around \[-100.0\] in 'mine' where its energy is finite; give points=...",
    ),
    "drowned": (
        lambda: check_gradient(from_callable(gaussian(np.eye(2), 1e18), dim=2, name="mine")),
        "the energy of 'mine' is too noisy for differences at all 16 points; give others",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_arguments_are_refused(name):
    call, message = REFUSED[name]
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.slow
def test_false_alarms():
    """None in 1,700 checks of right gradients: each of them, at 100 sets of points."""
    for name, (function, dim, points) in RIGHT.items():
        for seed in range(100):
            moved = points if points is None else np.random.default_rng(seed).permutation(points) * 1.03125
            check_gradient(from_callable(function, dim=dim, name=name), moved, seed=seed)


@pytest.mark.parametrize(
    "region",
    [
        domains.box([0.0, 0.0], [np.inf, np.inf]),
        domains.box([-np.inf, 40.0], [np.inf, np.inf]),
        domains.half_spaces([[1.0, 1.0]], [-30.0]),
        domains.box([0.0, 2.0, -np.inf], [np.inf, 3.0, np.inf]),
    ],
    ids=repr,
)
def test_a_target_without_a_truth_is_checked_inside_an_open_region(region):
    """A wrong factor is found there, and the points lie inside."""
    dim = region.dim

    def energy(x, factor=1.0):
        assert region.contains(x).mean() > 0.5  # differences may reach across the wall
        return 0.5 * (x**2).sum(axis=1), factor * x

    right = from_callable(energy, dim=dim, name="mine")
    report = check_gradient(constrained(right, region))
    assert report.compared > 8
    with pytest.raises(GradientError, match=r"1\.5 times the slope"):
        check_gradient(constrained(from_callable(lambda x: energy(x, 1.5), dim=dim, name="mine"), region))
