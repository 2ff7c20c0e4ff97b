"""Truths that are found for any target of one or two dimensions are those that are known of it otherwise."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize_scalar

from targets import classics, constrained, domains, mixtures, shapes, with_truth
from tests.support.laws import gaussian
from toolkit import check_gradient, diagnostics, target
from toolkit.problem import Spread

KNOWN = {
    "a line": mixtures.unequal_pair(), "the plane": mixtures.five_spots(),
    "25 narrow modes": mixtures.gaussian_grid25(), "a ring": classics.ring(),
    "a curved ridge": classics.banana(dim=2), "four minima": classics.himmelblau(),
}  # fmt: skip


@target(dim=1)
def far(x):
    distance = (x[0] - 5000.0) / 0.01
    return 0.5 * distance * distance, (100.0 * distance,)


@target(dim=1)
def cauchy(x):
    return np.log(1.0 + x[0] * x[0]), (2.0 * x[0] / (1.0 + x[0] * x[0]),)


@target(dim=1)
def student(x):
    """Student's t of 3 degrees of freedom."""
    return 2.0 * np.log(1.0 + x[0] * x[0] / 3.0), (4.0 * x[0] / (3.0 + x[0] * x[0]),)


@target(dim=2)
def trident(x):
    """Three wells in a row, as a user writes it; its mass to the right of a wall that is open on a side."""
    wave = 3.0 * np.sin(2.0 * x[0])
    return 0.5 * x[1] * x[1] + 0.1 * x[0] * x[0] + wave, (0.2 * x[0] + 6.0 * np.cos(2.0 * x[0]), x[1])


@pytest.mark.parametrize("name", KNOWN)
def test_the_truth_is_found(name):
    known = KNOWN[name].truth
    found = with_truth(replace(KNOWN[name], truth=None)).truth
    assert found.log_normaliser == pytest.approx(known.log_normaliser, abs=1e-9)
    np.testing.assert_allclose(found.mean, known.mean, atol=1e-9)
    np.testing.assert_allclose(found.covariance, known.covariance, rtol=1e-8, atol=1e-8)
    assert len(found.modes.centres) == len(known.modes.centres)
    if name != "four minima":  # its own truth takes the nearest minimum in place of the basin
        np.testing.assert_allclose(np.sort(found.modes.weights), np.sort(known.modes.weights), atol=1e-6)
    if name in ("a line", "four minima"):  # the others take some seconds
        np.testing.assert_allclose(found.energy_quantiles([0.1, 0.9]), known.energy_quantiles([0.1, 0.9]), rtol=1e-4)


@pytest.mark.slow  # 25 modes and a ring are among the truths above, every time
def test_every_mode_of_a_lattice_is_found_and_a_flat_way_joins_places():
    rugged = with_truth(replace(mixtures.cosine25(), truth=None)).truth.modes
    assert len(rugged.centres) == 81  # 9 × 9 minima, of which the target's own truth lists those inside a circle
    assert rugged.weights.sum() == pytest.approx(1.0, abs=1e-9)
    assert len(with_truth(replace(classics.ring(), truth=None)).truth.modes.centres) == 1


def test_mass_that_is_far_and_narrow_is_followed():
    truth = with_truth(far).truth
    assert truth.mean[0] == pytest.approx(5000.0, abs=1e-9)
    assert truth.covariance[0, 0] == pytest.approx(1e-4, rel=1e-6)


def test_a_window_and_centres_that_are_given_are_taken():
    truth = with_truth(
        replace(mixtures.unequal_pair(), truth=None), window=[-15.0, 12.0], centres=[[-6.0], [4.0]]
    ).truth
    np.testing.assert_allclose(truth.modes.weights, mixtures.unequal_pair().truth.modes.weights, atol=1e-7)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: with_truth(student, window=[-400.0, 400.0]),
            r"but at \[-400.0\] to \[400.0\] a share of [0-9.e-]+ of it lies beyond; give a wider window",
        ),
        (
            lambda: with_truth(cauchy, window=[-1e5, 1e5]),
            r"but at \[-100000.0\] to \[100000.0\] its density does not yet fall fast enough for one; give a",
        ),
        (lambda: with_truth(cauchy), "its density does not yet fall fast enough for a second moment"),
        (lambda: with_truth(gaussian(np.eye(3))), "target must have one or two dimensions, got 3"),
        (lambda: with_truth(trident, window=[-1.0, 1.0]), r"window must be \(x_low, x_high, y_low, y_high\) or"),
        (lambda: with_truth(trident, window=[-1.0, 1.0, -1.0, 1.0]), "the window must hold the mass of 'trident'"),
        (lambda: with_truth(target(lambda x: (np.inf, (0.0,)), dim=1, name="nowhere")), "must have a finite energy"),
    ],
)
def test_what_has_no_such_truth_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_an_open_region_takes_its_extent_from_the_truth_that_was_found():
    region = domains.box([-5.0, 0.5], [np.inf, np.inf])
    with pytest.raises(ValueError, match="with_truth gives it one"):
        constrained(trident, region).truth.mean  # noqa: B018
    known = with_truth(trident)
    problem = constrained(known, region)
    x = np.linspace(-6.0, 9.0, 4)
    whole, beyond = known.truth.cell_masses(x, [0.5, 9.0]), known.truth.cell_masses([-5.0, 15.0], [0.5, 9.0]).sum()
    inside = problem.truth.cell_masses(x, [0.5, 9.0])
    np.testing.assert_allclose(inside[1:], whole[1:] / beyond, atol=1e-6)
    cut = known.truth.cell_masses([-5.0, -1.0], [0.5, 9.0])[0] / beyond
    np.testing.assert_allclose(inside[0], cut, atol=1e-6)  # the wall at −5 cuts the first cell
    assert (whole[0] / beyond - cut > 1e-4).all()


def test_a_bounded_region_of_a_target_without_a_truth_has_draws():
    problem = constrained(trident, shapes.flower(petals=5, offset=3.0, radius=2.0))
    draws = problem.truth.independent_draws(20_000, seed=0)
    assert problem.contains(draws).all()
    edges = np.linspace(-2.5, 2.5, 6)
    expected = problem.truth.cell_masses(edges, edges).ravel()
    counts = diagnostics.cell_counts(draws, edges, edges).ravel()
    some = expected > 1e-3
    chi_squared = ((counts - len(draws) * expected)[some] ** 2 / (len(draws) * expected)[some]).sum()
    assert chi_squared < some.sum() + 4.5 * np.sqrt(2.0 * some.sum())
    wrong = ((counts[::-1] - len(draws) * expected)[some] ** 2 / (len(draws) * expected)[some]).sum()
    assert wrong > 10.0 * chi_squared
    assert "agrees" in str(check_gradient(problem))


def well(k, q, tilt=0.0, angle=0.0):
    """k (u² − 1)² + t u + q v², u and v turned by an angle."""
    c, s = np.cos(angle), np.sin(angle)

    @target(dim=2)
    def tilted_well(x):
        u, v = c * x[0] + s * x[1], c * x[1] - s * x[0]
        g = u * u - 1.0
        along, across = 4.0 * k * g * u + tilt, 2.0 * q * v
        return k * g * g + tilt * u + q * v * v, (c * along - s * across, s * along + c * across)

    return tilted_well


def integrals(energy, *ends):
    """∫ exp(−U) between one end and the next."""
    return np.array(
        [quad(lambda x: np.exp(-energy(x)), a, b, epsabs=0, epsrel=1e-11)[0] for a, b in itertools.pairwise(ends)]
    )


@pytest.mark.slow_cases("20.0-0.1")
@pytest.mark.parametrize(("k", "q"), [(1.0, 0.5), (20.0, 0.1)])
def test_the_search_for_a_window_ends(k, q):
    """Windows were narrowed and widened in turn, for ever, and then refused."""
    truth = with_truth(well(k, q)).truth
    one = integrals(lambda x: k * (x * x - 1.0) ** 2, -6.0, 0.0, 6.0)
    assert truth.log_normaliser == pytest.approx(np.log(one.sum()) + 0.5 * np.log(np.pi / q), abs=1e-9)
    assert truth.covariance[1, 1] == pytest.approx(0.5 / q, rel=1e-7)
    assert len(truth.modes.weights) == 2


def test_a_bent_ridge_with_starts_of_its_own_has_one_mode():
    """x₁ | x₀ ~ N(x₀², 0.05²): narrower than the lattice, which has minima along it that are none."""

    @target(dim=2)
    def ridge(x):
        a = x[1] - x[0] ** 2
        return 0.5 * x[0] ** 2 + 200.0 * a * a, (x[0] - 800.0 * a * x[0], 400.0 * a)

    truth = with_truth(replace(ridge, spread=Spread(4.0))).truth
    assert truth.log_normaliser == pytest.approx(np.log(2.0 * np.pi / 20.0), abs=1e-9)
    assert truth.modes.weights == pytest.approx([1.0], abs=1e-12)


@pytest.mark.parametrize("angle", [0.0, 0.4])
def test_a_mode_weighs_what_its_basin_holds(angle):
    """Turned, a well's basins keep their weights; cut halfway between the minima they are 1e-3 off."""
    k, tilt = 2.0, 0.8
    truth = with_truth(well(k, 1.0, tilt, angle)).truth
    top = minimize_scalar(lambda x: -k * (x * x - 1.0) ** 2 - tilt * x, bounds=(-0.7, 0.8), method="bounded").x
    left, right = integrals(lambda x: k * (x * x - 1.0) ** 2 + tilt * x, -6.0, top, 6.0)
    assert truth.modes.weights[0] == pytest.approx(left / (left + right), abs=2e-6)
    nearest = integrals(lambda x: k * (x * x - 1.0) ** 2 + tilt * x, -6.0, truth.modes.centres.sum(axis=0)[0], 6.0)
    assert angle or abs(nearest[0] / nearest.sum() - truth.modes.weights[0]) > 1e-3
    beside = np.array([[top - 1e-3, 0.3], [top + 1e-3, -0.3]])
    turned = beside @ np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    assert truth.memberships(turned).argmax(axis=1).tolist() == [0, 1]


def test_a_window_may_be_given_by_rows():
    rows = with_truth(well(2.0, 1.0), window=[[-3.0, 3.0], [-6.0, 6.0]]).truth
    assert rows.log_normaliser == with_truth(well(2.0, 1.0), window=(-3.0, 3.0, -6.0, 6.0)).truth.log_normaliser
    assert with_truth(far, window=[[4999.0, 5001.0]]).truth.mean[0] == pytest.approx(5000.0, abs=1e-9)


def test_heavy_tails_have_their_second_moment_or_are_refused():
    def student(nu):
        @target(dim=1)
        def t(x):
            return 0.5 * (nu + 1.0) * np.log(1.0 + x[0] * x[0] / nu), ((nu + 1.0) * x[0] / (nu + x[0] * x[0]),)

        return t

    truth = with_truth(student(3.0)).truth
    assert truth.covariance[0, 0] == pytest.approx(3.0, rel=truth.accuracy)
    with pytest.raises(ValueError, match="does not yet fall fast enough for a second moment"):
        with_truth(student(2.1))
    with pytest.raises(ValueError, match="give a wider window"):
        with_truth(student(3.0), window=[-2000.0, 2000.0])
