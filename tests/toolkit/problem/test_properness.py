"""Energies that belong to no law, or that float64 does not resolve: found by a few evaluations, and nowhere else."""

import re

import numpy as np
import pytest

import targets
from targets import constrained, domains
from toolkit import from_callable
from toolkit.problem.definition import as_problem
from toolkit.problem.properness import (
    LEAST_COMPILED,
    MOST_EVALUATIONS,
    budget_of,
    endless_fall,
    improper_words,
    places_of,
    resolution_words,
)

RNG = np.random.default_rng(0)


def words(function, dim, *, region=None, points=None):
    """The finding for a function of points; gradients are not looked at."""
    target = from_callable(lambda x: (function(x), np.zeros_like(x)), dim=dim, name="mine")
    problem = as_problem(target) if region is None else constrained(target, region)
    points = RNG.normal(size=(40, dim)) if points is None else points
    bases, scale = places_of(problem, points, points)
    with np.errstate(all="ignore"):
        return improper_words(problem, bases[:2], scale)


def gaussian(x):
    return 0.5 * (x**2).sum(axis=1)


def student(x, freedom=1.0):
    return 0.5 * (freedom + x.shape[1]) * np.log1p((x**2).sum(axis=1) / freedom)


LOG_DENSITIES = {
    "normal": lambda x: -gaussian(x),
    "Student": lambda x: -student(x),
    "mixture": lambda x: np.logaddexp(-gaussian(x - 3.0), -gaussian(x + 3.0)),
    "quartic": lambda x: -(x**4).sum(axis=1),
    "with a constant": lambda x: 50.0 - 0.1 * gaussian(x - 20.0),
}
PROPER = {
    "normal": gaussian,
    "Student, 1 degree of freedom": student,
    "Student, 0.1 degrees of freedom": lambda x: student(x, 0.1),
    "Laplace": lambda x: np.abs(x).sum(axis=1),
    "a million times wider than the starts": lambda x: gaussian(1e-6 * x),
    "far from the starts": lambda x: gaussian(x - 1e5),
    "a rugged well": lambda x: gaussian(x) - 30.0 * np.cos(5.0 * x).sum(axis=1),
    "log normal": lambda x: np.where(
        (x > 0.0).all(axis=1), (np.log(np.abs(x)) + 0.5 * np.log(np.abs(x)) ** 2).sum(axis=1), np.inf
    ),
    "a floor of the density": lambda x: -np.log(np.exp(-gaussian(x)) + 1e-12),
}


@pytest.mark.parametrize("name", LOG_DENSITIES)
@pytest.mark.parametrize("dim", [1, 3])
def test_a_log_density_given_for_the_energy_is_named(name, dim):
    found = words(LOG_DENSITIES[name], dim)
    assert "falls without end in every direction" in found
    assert "Did you return the log density? Return its negative" in found


@pytest.mark.parametrize("name", PROPER)
@pytest.mark.parametrize("dim", [1, 3])
def test_an_energy_with_a_law_is_not(name, dim):
    assert words(PROPER[name], dim, points=np.abs(RNG.normal(size=(40, dim))) + 0.1) == ""


@pytest.mark.parametrize(
    "problem", [each for each in targets.catalogue() if not as_problem(each).target.stochastic], ids=repr
)
@pytest.mark.parametrize("size", [1e-3, 1.0, 30.0])
def test_no_problem_of_the_catalogue_is(problem, size):
    problem = as_problem(problem)
    points = size * RNG.normal(size=(100, problem.target.dim))
    bases, scale = places_of(problem, points, points)
    assert improper_words(problem, bases[:2], scale) == ""


@pytest.mark.parametrize(
    ("energy", "remedy"),
    [
        (lambda x: -3.0 * np.cos(x[:, 0]) + x[:, 1] ** 2, "repeats every 2π: .*box over \\[-pi, pi\\]"),
        (lambda x: -80.0 * np.cos(x[:, 0] - 1.0) - np.cos(3.0 * x[:, 0]) + x[:, 1] ** 2, "box over \\[-pi, pi\\]"),
        (lambda x: np.sin(np.deg2rad(x[:, 0])) + x[:, 1] ** 2, "repeats every 360: .*box over \\[0, 360\\]"),
        (lambda x: np.cos(0.37 * x[:, 0]) + x[:, 1] ** 2, "for a periodic one, such as an angle"),
        (lambda x: x[:, 1] ** 2, "give the coordinate a prior, or the problem a domain"),
        (lambda x: np.log1p(np.exp(-np.clip(x[:, 0], -500, 500))) + x[:, 1] ** 2, "coordinate 0 goes to \\+∞"),
    ],
)
def test_a_coordinate_along_which_the_energy_stays_low_is_named(energy, remedy):
    found = words(energy, 2)
    assert "coordinate 0" in found
    assert "has no finite integral" in found
    assert re.search(remedy, found)


def test_walls_make_a_law():
    energy = lambda x: -3.0 * np.cos(x[:, 0]) + x[:, 1] ** 2  # noqa: E731
    angle = domains.box([-np.pi, -np.inf], [np.pi, np.inf])
    assert words(energy, 2, region=angle, points=RNG.uniform(-1.0, 1.0, (20, 2))) == ""
    assert "coordinate 1" in words(lambda x: np.zeros(len(x)), 2, region=angle, points=RNG.uniform(-1.0, 1.0, (20, 2)))


def test_one_sign_that_is_wrong_is_named():
    found = words(lambda x: 0.5 * x[:, 0] ** 2 - 0.5 * x[:, 1] ** 2, 2)
    assert "falls without end as coordinate 1 goes to +∞" in found
    assert "check the sign of that term" in found


def test_it_costs_what_it_may():
    calls = []
    target = from_callable(lambda x: (calls.append(len(x)) or gaussian(x), x), dim=200, name="mine")
    points = RNG.normal(size=(2, 200))
    improper_words(as_problem(target), points, np.ones(200), 500)
    assert 0 < sum(calls) <= 500
    assert budget_of(10**9) == MOST_EVALUATIONS
    assert budget_of(50_000) == 500
    assert budget_of(100) == 1
    assert budget_of(100, is_compiled=True) == LEAST_COMPILED
    assert budget_of(50_000, is_compiled=True) == 500


def test_the_kind_of_a_finding_does_not_hang_on_its_words():
    """A target whose name says that it falls, and does not."""
    angle = from_callable(lambda x: (-np.cos(x[:, 0]), np.sin(x)), dim=1, name="falls without end")
    assert "does not rise" in improper_words(as_problem(angle), np.zeros((1, 1)), np.ones(1))
    assert endless_fall(as_problem(angle), np.zeros((2, 1))) == ""
    hill = from_callable(lambda x: (-gaussian(x), -x), dim=1, name="hill")
    assert "falls without end in every direction" in endless_fall(as_problem(hill), np.ones((2, 1)))


def test_faults_of_the_package_are_not_taken_for_those_of_a_function(monkeypatch):
    def raises(*_):
        raise KeyError("mine")

    points = np.ones((2, 1))
    assert endless_fall(as_problem(from_callable(raises, dim=1, name="broken")), points) == ""
    monkeypatch.setattr("toolkit.problem.properness.distances", raises)
    with pytest.raises(KeyError):
        endless_fall(as_problem(from_callable(lambda x: (gaussian(x), x), dim=1, name="normal")), points)


@pytest.mark.parametrize(
    ("constant", "are_used", "is_said"),
    [
        (1e17, True, True),
        (-1e16, True, True),
        (1e15, True, True),
        (1e17, False, True),
        (1e15, False, False),
        (1e9, True, False),
        (0.0, True, False),
    ],
)
def test_energies_that_float64_does_not_resolve_are_said(constant, are_used, is_said):
    problem = as_problem(targets.mixtures.cosine25())
    energies = constant + np.array([0.5, 1.5, 2.5])
    found = resolution_words(problem, energies, are_used=are_used)
    assert ("leave out the constant of the energy" in found) == is_said
    if is_said:
        assert f"{np.spacing(abs(constant)):.2g} nats apart" in found
