"""Tails of posteriors whose integrals are known: Gaussian, Student's t, and energies that level off."""

import numpy as np
import pytest

from sysid.modes.laplace import curvature_at
from sysid.modes.propriety import LEAST_SLOPE, Centre, centre_of, improper_words, open_tails
from sysid.modes.search import mode_from


def with_slopes(energies):
    """Energy and gradient by central differences."""

    def evaluate(points):
        with np.errstate(all="ignore"):
            lengths = 1e-6 * np.maximum(np.abs(points), 1e-2)
            slopes = []
            for k in range(points.shape[1]):
                move = lengths * (np.arange(points.shape[1]) == k)
                slopes.append((energies(points + move) - energies(points - move)) / (2.0 * lengths[:, k]))
            return energies(points), np.stack(slopes, axis=1)

    return evaluate


def centre_near(evaluate, start):
    mode = mode_from(evaluate, start, None)
    return Centre(mode.position, mode.energy, mode.root @ mode.root.T, True)


def tails(energies, start, *, log=None, flat=None, **asked):
    q = len(start)
    evaluate = with_slopes(energies)
    flat = np.ones(q, np.bool_) if flat is None else np.array(flat)
    log = np.zeros(q, np.bool_) if log is None else np.array(log)
    found = open_tails(evaluate, centre_near(evaluate, np.array(start)), flat, log, **asked)
    return [(tail.number, bool(tail.end > tail.begin)) for tail in found]


def rates(noise, *, scale=1.0):
    """Energy of y = A (1 − exp(−kt)) at six times, of (k, A)."""
    times = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 7.0])
    data = 19.0 * (1.0 - np.exp(-0.5 * times)) + noise * np.array([0.2, -1.3, 1.6, -0.7, -1.0, 0.8])

    def energies(points):
        k, a = points[:, :1], points[:, 1:2]
        return 0.5 * (((a * (1.0 - np.exp(-k * times)) - data) / (scale * noise)) ** 2).sum(axis=1)

    return energies


def test_gaussian_and_student_tails_are_closed():
    covariance = np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.3], [0.0, 0.3, 2.0]])
    precision = np.linalg.inv(covariance)
    assert tails(lambda x: 0.5 * np.einsum("ni,ij,nj->n", x, precision, x), [0.3, 0.2, 0.1]) == []
    for dof in (1.0, 3.0):  # slope dof + 1 of −log density by log distance
        assert tails(lambda x, dof=dof: 0.5 * (dof + 1.0) * np.log1p(x[:, 0] ** 2 / dof), [0.2]) == []


@pytest.mark.parametrize("height", [1.0, 4.0, 9.0])
def test_an_energy_that_levels_off_is_told_of_with_its_height(height):
    def energies(points):
        x, y = points.T
        return height * x**2 / (1.0 + x**2) + 0.5 * (y - 0.3 * np.arctan(x)) ** 2

    evaluate = with_slopes(energies)
    centre = centre_near(evaluate, np.array([0.1, 0.0]))
    found = open_tails(evaluate, centre, np.array([True, True]), np.zeros(2, np.bool_))
    assert [(tail.number, np.sign(tail.end)) for tail in found] == [(0, 1.0), (0, -1.0)]
    assert np.allclose([tail.height for tail in found], height, atol=0.01)
    words = improper_words(found, ("rate", "other"), np.zeros(2, np.bool_))
    assert "levels off with rate from" in words
    assert "prior={'rate': sysid.priors.lognormal" in words


def test_a_rate_that_the_data_leave_open_above_is_told_of_and_a_known_one_is_not():
    assert (0, True) in tails(rates(3.0), [0.5, 19.0])
    assert tails(rates(0.3), [0.5, 19.0]) == []  # levels off, but hundreds of nats up


def test_a_proper_prior_closes_the_tail():
    open_above = rates(3.0)

    def with_prior(points):
        with np.errstate(all="ignore"):
            logs = np.log(points[:, 0])
        return np.where(points[:, 0] > 0.0, open_above(points) + 0.5 * (logs / 0.5) ** 2 + logs, np.inf)

    assert tails(with_prior, [0.5, 19.0], flat=[False, True]) == []


def test_a_ridge_of_a_product_is_told_of_by_both_names_unless_one_has_a_prior():
    """∫ exp(−U) da db over a b = c is ∫ da / a: the slope by log distance is 1.

    A Gaussian prior of a closes the tail of b only where it is small at a = 0, to which large b lead.
    """

    def ridge(points):
        with np.errstate(all="ignore"):
            return 50.0 * (points[:, 0] * points[:, 1] - 0.4) ** 2

    evaluate, start = with_slopes(ridge), np.array([1.0, 0.4])
    curvature = curvature_at(evaluate, start, np.full(2, 1e-4))
    centre = centre_of(start, 0.0, curvature)
    assert not centre.has_scale
    found = open_tails(evaluate, centre, np.ones(2, np.bool_), np.zeros(2, np.bool_))
    assert {tail.number for tail in found} == {0, 1}
    assert LEAST_SLOPE > 1.0
    assert tails(lambda x: ridge(x) + 0.5 * ((x[:, 0] - 1.0) / 0.5) ** 2, [1.0, 0.4], flat=[False, True]) != []
    assert tails(lambda x: ridge(x) + 0.5 * ((x[:, 0] - 1.0) / 0.1) ** 2, [1.0, 0.4], flat=[False, True]) == []


def test_a_logarithm_is_judged_in_its_own_measure():
    """exp(−U) of u = log θ must be integrable in u: −0.5 nats per unit are, a level energy is not."""

    def falling(points, rate):
        u = points[:, 0]
        return np.logaddexp(rate * u, -3.0 * u)

    assert tails(lambda x: falling(x, 2.0), [0.2], log=[True]) == []

    def level(x):
        return 4.0 * x[:, 0] ** 2 / (1.0 + x[:, 0] ** 2)

    assert tails(level, [0.1], log=[True]) == [(0, True), (0, False)]


def test_a_constraint_ends_a_tail():
    def level(x):
        return 4.0 * x[:, 0] ** 2 / (1.0 + x[:, 0] ** 2)

    assert tails(level, [0.1], contains=lambda at: np.abs(at[:, 0]) < 2.0) == []


def test_the_check_is_cheap_where_nothing_is_wrong():
    counts = []

    def evaluate(x):
        return (0.5 * (x**2).sum(axis=1), x)

    centre = Centre(np.zeros(8), 0.0, np.eye(8), True)
    found = open_tails(
        evaluate, centre, np.ones(8, np.bool_), np.zeros(8, np.bool_), count=lambda e: counts.append(len(e))
    )
    assert found == []
    assert sum(counts) <= 8 * 2 * (1 + 3 * 3)
