"""Student's t and counts: densities of scipy.stats, gradients by differences, starts, segments and simulations."""

import numpy as np
import pytest
import scipy.stats
from numba import njit

import sysid
from sysid import Series
from sysid.likelihoods import error_laws
from sysid.likelihoods.trajectories import trajectory
from tests.sysid.likelihoods.test_trajectories import (
    FIRST,
    LINEAR,
    TRUE,
    prey_and_predators,
    slopes_by_differences,
    solution,
)

TIMES = np.linspace(0.0, 10.0, 31)
STATES = solution(prey_and_predators, TIMES, FIRST, TRUE)
SCALES = {"student": (2.0, 1.0), "poisson": (), "negative_binomial": (0.05, 0.1)}


def drawn(errors, seed=0):
    """Values of a law about the states; one is missing."""
    rng = np.random.default_rng(seed)
    if errors == "student":
        values = STATES + SCALES[errors] * rng.standard_t(4.0, STATES.shape)
    elif errors == "poisson":
        values = rng.poisson(STATES).astype(float)
    else:
        a = np.array(SCALES[errors])
        values = scipy.stats.nbinom(1.0 / a, 1.0 / (1.0 + a * STATES)).rvs(random_state=rng).astype(float)
    values[3, 0] = np.nan
    return Series(TIMES, values, LINEAR.states)


def density(errors, states, scale, dof=4.0):
    """The law of the data by scipy.stats."""
    if errors == "student":
        return scipy.stats.t(dof, states, scale).logpdf
    if errors == "poisson":
        return scipy.stats.poisson(states).logpmf
    scale = np.asarray(scale)
    return scipy.stats.nbinom(1.0 / scale, 1.0 / (1.0 + scale * states)).logpmf


@pytest.mark.parametrize("errors", SCALES)
def test_the_energy_is_the_log_density_and_the_start_is_near_the_truth(errors):
    data = drawn(errors)
    shot, start = trajectory(errors=errors, step=1 / 32).energy_and_start(data, LINEAR)
    word = "dispersion" if errors == "negative_binomial" else "sd"
    scales = tuple(f"{word}({state})" for state in LINEAR.states) if SCALES[errors] else ()
    assert shot.names == ("a", "b", "c", "d", "prey(0)", "predator(0)", *scales)
    assert shot.positive[6:] == (True,) * len(scales)
    there = ~np.isnan(data.values)
    for theta in (start, 1.05 * start):
        states = solution(prey_and_predators, TIMES, theta[4:6], theta[:4])
        wanted = -density(errors, states, theta[6:])(data.values)[there].sum()
        assert abs(shot.evaluate(theta)[0][0] - wanted) < 1e-5
    assert np.abs(start[:6] / (*TRUE, *FIRST) - 1.0).max() < 0.3
    near = start * np.exp(0.01 * np.random.default_rng(1).standard_normal((8, start.size)))
    sizes = [np.linalg.norm(slope * theta) for slope, theta in zip(shot.evaluate(near)[1], near, strict=True)]
    assert np.linalg.norm(shot.evaluate(start)[1][0] * start) < 0.02 * min(sizes)


@pytest.mark.parametrize("options", [{}, {"segments": 3, "gap": 0.05}, {"noise": 1.5}], ids=str)
@pytest.mark.parametrize("errors", SCALES)
def test_gradient_is_that_of_the_energy(errors, options):
    if errors == "poisson" and "noise" in options:
        with pytest.raises(ValueError, match=r"noise must be left out for errors='poisson', .* got 1\.5"):
            trajectory(errors=errors, **options)
        return
    shot, start = trajectory(errors=errors, step=0.25, **options).energy_and_start(drawn(errors), LINEAR)
    theta = start * np.exp(0.05 * np.random.default_rng(1).standard_normal(start.size))
    (energy,), (slope,) = shot.evaluate(theta)
    wanted = slopes_by_differences(shot.evaluate, theta, 3e-4)
    scale = np.abs(wanted) + 1e-5 * abs(energy) / np.maximum(np.abs(theta), 0.1)
    assert np.abs((slope - wanted) / scale).max() < 1e-6
    assert np.abs(slope).min() > 0.0


def test_student_t_of_another_dof_and_of_many_is_the_normal_law():
    data = drawn("student")
    theta = np.array([*TRUE, *FIRST, 2.0, 1.0])
    there = ~np.isnan(data.values)
    shot, _ = trajectory(errors="student", dof=2.5, step=1 / 32).energy_and_start(data, LINEAR)
    wanted = -density("student", STATES, theta[6:], 2.5)(data.values)[there].sum()
    assert abs(shot.evaluate(theta)[0][0] - wanted) < 1e-5
    normal, _ = trajectory(step=1 / 32).energy_and_start(data, LINEAR)
    away = [
        trajectory(errors="student", dof=dof, step=1 / 32).energy_and_start(data, LINEAR)[0].evaluate(theta)[0][0]
        - normal.evaluate(theta)[0][0]
        for dof in (1e4, 1e5)
    ]
    assert abs(away[1]) < 0.12 * abs(away[0]) < 0.1


def test_an_outlier_moves_students_t_less_than_the_normal_law():
    clean = drawn("student", seed=3)
    spoiled = np.array(clean.values)
    spoiled[15] += 60.0
    away = {}
    for errors in ("student", "gaussian"):
        law = trajectory(errors=errors, step=0.25)
        starts = [law.energy_and_start(Series(TIMES, v, LINEAR.states), LINEAR)[1] for v in (clean.values, spoiled)]
        away[errors] = np.abs(starts[1][:4] / starts[0][:4] - 1.0).max()
    assert away["student"] < 0.3 * away["gaussian"]


@njit
def one_negative_binomial(x, energy, sums, inverse, value):
    error_laws.add_negative_binomial(x, energy, sums, inverse, value, False)
    error_laws.finish_negative_binomial(energy, sums, inverse, 1.0)


@pytest.mark.parametrize("y", [0.0, 1.0, 7.0, 1e3, 1e6])
@pytest.mark.parametrize("dispersion", [1e-8, 1e-3, 0.3, 5.0, 1e3])
def test_the_negative_binomial_law_of_small_and_large_counts_and_dispersions(y, dispersion):
    def energy_and_slope(a):
        energy, sums = np.zeros(1), np.zeros(1)
        one_negative_binomial(np.array([y + 2.0]), energy, sums, np.array([1.0 / a]), y)
        return energy[0], sums[0]

    mpmath = pytest.importorskip("mpmath")
    mpmath.mp.dps = 60
    a, x = mpmath.mpf(dispersion), mpmath.mpf(y + 2.0)

    def exact(a):
        n = 1 / a
        ratio = mpmath.loggamma(y + n) - mpmath.loggamma(n) - y * mpmath.log(n)
        return (y + n) * mpmath.log(1 + x / n) - ratio - y * mpmath.log(x)

    wanted, step = exact(a), a * mpmath.mpf(10) ** -15
    slope = (exact(a + step) - exact(a - step)) / (2 * step)
    energy, found = energy_and_slope(dispersion)
    size = 1.0 + y * (1.0 + abs(np.log(y + 2.0)))
    assert abs(energy - float(wanted)) < 1e-11 + 1e-14 * size
    # In the slope terms of y/n cancel down to 1/n², which costs rounding over the dispersion.
    assert abs(found - float(slope)) < 1e-10 * (1.0 / dispersion**2 + 1.0) * 1e-2 + 1e-14 * size / dispersion


def test_counts_must_be_whole_and_states_stay_positive():
    for errors in ("poisson", "negative_binomial"):
        for bad in (1.5, -1.0):
            values = np.full((4, 2), 3.0)
            values[2, 1] = bad
            data = Series(np.arange(4.0), values, LINEAR.states)
            with pytest.raises(
                ValueError, match=rf"data must be whole numbers ≥ 0 .*, got {bad:g} of 'predator' at row 2"
            ):
                trajectory(errors=errors).prepare(data, LINEAR)
        shot, start = trajectory(errors=errors, step=0.25).energy_and_start(drawn(errors), LINEAR)
        below = np.array(start)
        below[4] = -1.0
        energy, slope = shot.evaluate(np.array([below, start]))
        assert np.isposinf(energy[0])
        assert (slope[0] == 0.0).all()
        assert np.isfinite(energy[1])


WRONG = {
    "known": ("noise must be 'free' or dispersions", {"errors": "negative_binomial", "noise": "known"}),
    "dof": ("dof must be finite and > 0", {"errors": "student", "dof": 0.0}),
    "errors": ("errors must be one of", {"errors": "cauchy"}),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_arguments_are_named(case):
    message, arguments = WRONG[case]
    with pytest.raises(ValueError, match=message):
        trajectory(**arguments)


def test_simulations_have_the_moments_of_their_law():
    draws, times = np.tile(TRUE, (4000, 1)), [0.0, 1.0]
    arguments = {"problem": LINEAR, "n_draws": None, "seed": 1}
    found = {
        "student": sysid.simulate(draws, times, noise=2.0, errors="student", dof=8.0, **arguments),
        "poisson": sysid.simulate(draws, times, errors="poisson", **arguments),
        "negative_binomial": sysid.simulate(draws, times, noise=0.2, errors="negative_binomial", **arguments),
    }
    for errors, ensemble in found.items():
        x = ensemble.states[0]
        variance = {"student": 4.0 * 8.0 / 6.0 + 0.0 * x, "poisson": x, "negative_binomial": x + 0.2 * x**2}[errors]
        away = (ensemble.observed.mean(axis=0) - x) / np.sqrt(variance / len(draws))
        assert np.abs(away).max() < 4.5
        # The variance of a variance is some (kurtosis − 1)/n; kurtosis at most 4.5 for these.
        ratio = ensemble.observed.var(axis=0) / variance
        assert np.abs(ratio - 1.0).max() < 4.5 * np.sqrt(4.0 / len(draws))
    for errors in ("poisson", "negative_binomial"):
        assert (found[errors].observed == np.round(found[errors].observed)).all()
    with pytest.raises(ValueError, match="noise must be dispersions for 'negative_binomial', and None for 'poisson'"):
        sysid.simulate(draws, times, errors="negative_binomial", **arguments)
    with pytest.raises(ValueError, match="noise must be dispersions"):
        sysid.simulate(draws, times, errors="poisson", noise=1.0, **arguments)


def test_experiments_of_counts_share_their_dispersion():
    data = [drawn("negative_binomial", seed) for seed in (0, 1)]
    law = trajectory(errors="negative_binomial", step=0.25, own=("dispersion(prey)",))
    joint, start = law.energy_and_start(data, LINEAR)
    assert joint.names[-3:] == ("dispersion(prey)[0]", "dispersion(prey)[1]", "dispersion(predator)")
    assert np.isfinite(joint.evaluate(start)[0][0])
    assert np.abs(start[:4] / TRUE - 1.0).max() < 0.3


@pytest.mark.parametrize("law", ["normal", "student", "poisson", "negative_binomial"])
def test_normal_scores_of_draws_are_standard_normal(law):
    """Of counts, up to the steps; and values far out are far out."""
    rng, n = np.random.default_rng(4), 20_000
    states = rng.uniform(20.0, 60.0, n)
    scale = np.full(n, {"normal": 2.0, "student": 2.0}.get(law, 0.1))
    draws = {
        "normal": lambda: states + scale * rng.standard_normal(n),
        "student": lambda: states + scale * rng.standard_t(3.0, n),
        "poisson": lambda: rng.poisson(states).astype(float),
        "negative_binomial": lambda: rng.poisson(states * rng.gamma(10.0, 0.1, n)).astype(float),
    }[law]()
    scores = error_laws.normal_scores(law, 3.0, draws, states, scale)
    assert scipy.stats.kstest(scores, "norm").statistic < 0.03
    assert abs(scores.std() - 1.0) < 0.02
    far = error_laws.normal_scores(law, 3.0, np.array([0.0, 1e4]), np.array([1e3, 40.0]), np.array([0.1, 0.1]))
    assert far[0] < -4.0
    assert far[1] > 7.0
