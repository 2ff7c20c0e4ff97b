"""Steps of trajectory likelihoods: posteriors are held to closed forms, from guesses far from the truth."""

import warnings
from typing import NamedTuple

import numpy as np
import pytest
from scipy.optimize import least_squares
from scipy.stats import genpareto

import toolkit
from sysid import Series, data, identify, priors, systems
from sysid.likelihoods import trajectory
from sysid.modes.search import Mode
from sysid.modes.steps.solver_check import generalised_pareto_shape, pareto_shape
from sysid.modes.steps.step_check import factor_where_same
from sysid.modes.steps.step_refinement import Grids, SteppedPosterior, checked_steps, steps_in_words
from sysid.solvers.step_length import MAX_STEPS, SMALLEST_JUDGED, Steps, too_long
from tests.sysid.right_hand_sides import relaxation

TIMES = np.arange(0.0, 13.0)
TRUTH = np.array([1.7, 6.0])
Y = TRUTH[1] * (1.0 - np.exp(-TRUTH[0] * TIMES)) + 0.08 * np.random.default_rng(4).standard_normal(13)
DATA = Series(TIMES, Y[:, None], ("x",))
FIT = least_squares(lambda q: q[1] * (1.0 - np.exp(-q[0] * TIMES)) - Y, TRUTH)
BEST = FIT.x
NOISE = np.sqrt((FIT.fun @ FIT.fun) / 12.0)  # at the mode of the logarithm's density, of 13 data
SD = NOISE * np.sqrt(np.diag(np.linalg.inv(FIT.jac.T @ FIT.jac)))


def relaxing(rate):
    return systems.own(relaxation, states=["x"], parameters=["k", "A"], usual=[rate, 5.0], start=[0.0])


def posterior(rate, prior=None, **options):
    return identify(DATA, relaxing(rate), likelihood=trajectory(start=[0.0], **options), prior=prior)


def exact(theta):
    """Energy of rows (k, A, sd) by the closed form."""
    k, level, sd = theta.T[:, :, None]
    residual = (level * (1.0 - np.exp(-k * TIMES)) - Y) / sd
    return 0.5 * (residual**2).sum(axis=1) + len(Y) * np.log(theta[:, 2] * np.sqrt(2.0 * np.pi))


@pytest.mark.slow_cases("0.01-rk4", "0.1-rk4")
@pytest.mark.parametrize("method", ["rk4", "rk5"])
@pytest.mark.parametrize("factor", [0.01, 0.1, 100.0])
def test_the_mode_is_that_of_the_closed_form_from_guesses_far_off(method, factor):
    modes = posterior(TRUTH[0] * factor, method=method).modes
    assert len(modes.weights) == 1
    assert np.abs((modes.parameters[0, :2] - BEST) / SD).max() < 0.05
    assert np.abs(modes.sd[0, :2] / SD - 1.0).max() < 0.03


@pytest.mark.parametrize("factor", [0.01, 0.1, 100.0])
def test_the_start_of_the_likelihood_alone_is_near_the_closed_form_with_steps_that_suit_it(factor):
    """Half the step changes its energy by a tenth of a nat at most, and so moves the mode by 0.3 sd or so."""
    energy, theta = trajectory(start=[0.0], method="rk5").energy_and_start(DATA, relaxing(TRUTH[0] * factor))
    assert np.abs((theta[:2] - BEST) / SD).max() < 0.5
    assert factor_where_same(energy, theta) == 1


def test_a_wide_prior_finds_no_rates_that_only_long_steps_have():
    fast = np.linspace(4.0, 500.0, 4001)
    points = np.stack([fast, np.full(fast.size, BEST[1]), np.full(fast.size, 0.08)], axis=1)
    problem = posterior(0.2, {"k": priors.gaussian(0.0, 50.0)})
    assert len(problem.modes.weights) == 1
    energies = problem.prepared.values.evaluate(points)[0]
    lowest = problem.prepared.values.evaluate(np.array([[*BEST, 0.08]]))[0][0]
    assert (energies > lowest + 30.0).all()
    assert np.isinf(energies[-1])
    coarse = trajectory(start=[0.0], step=0.25).energy_and_start(DATA, relaxing(0.2))[0]
    assert (coarse.evaluate(points)[0] < lowest + 30.0).any()  # the law is not empty: this grid has such rates


def test_a_flat_prior_has_no_rates_that_only_long_steps_have_either():
    points = np.stack([np.linspace(4.0, 100.0, 4001), np.full(4001, BEST[1]), np.full(4001, 0.08)], axis=1)
    energy = posterior(0.2).prepared.values
    assert (energy.evaluate(points)[0] > energy.evaluate(np.array([[*BEST, 0.08]]))[0][0] + 30.0).all()


def test_energies_are_within_a_tenth_of_a_nat_of_the_closed_form_where_the_posterior_is():
    problem = posterior(0.05)
    rng = np.random.default_rng(1)
    sds = np.array([*SD, 0.015])
    points = np.array([*BEST, 0.08]) + sds * rng.uniform(-2.0, 2.0, (64, 3))
    assert np.abs(problem.prepared.values.evaluate(points)[0] - exact(points)).max() < 0.1


def test_a_judged_energy_has_the_same_bits_where_steps_are_short_enough_and_is_infinite_elsewhere():
    plain, start = trajectory(start=[0.0], step=0.25).energy_and_start(DATA, relaxing(1.0))
    judged = plain.judged_at(start)
    points = np.stack([np.geomspace(0.1, 10.0, 40), np.full(40, 6.0), np.full(40, 0.1)], axis=1)
    long = plain.unresolved(points, start)
    np.testing.assert_array_equal(long, points[:, 0] > 6.0)  # 1.5 / 0.25
    np.testing.assert_array_equal(np.isinf(judged.evaluate(points)[0]), long)
    for before, after in zip(plain.evaluate(points), judged.evaluate(points), strict=True):
        np.testing.assert_array_equal(before[~long], after[~long])


def test_half_the_step_is_the_energy_of_half_the_step():
    whole, start = trajectory(start=[0.0], step=0.5).energy_and_start(DATA, relaxing(1.0))
    half, _ = trajectory(start=[0.0], step=0.25).energy_and_start(DATA, relaxing(1.0))
    for one, other in zip(whole.with_steps(2).evaluate(start), half.evaluate(start), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("method", ["rk4", "rk5"])
def test_a_step_is_too_long_where_it_is_long_for_a_rate_that_shows(method):
    def law(lengths, states, spread):
        n = len(lengths)
        steps = Steps(np.zeros(n), lengths, states, np.tile([3.0, 0.0], (n, 1)))
        return too_long(relaxation, method, steps, np.array([spread]))

    lengths = np.linspace(0.05, 2.0, 40)  # rate 3, level 0
    np.testing.assert_array_equal(law(lengths, np.ones((40, 1)), 1.0), 3.0 * lengths > 1.5)
    assert not law(lengths, np.zeros((40, 1)), 1.0).any()  # nothing moves
    assert not law(lengths[:20], np.full((20, 1), 0.01 * SMALLEST_JUDGED), 1.0).any()


def test_a_step_that_is_given_is_kept_and_its_error_told():
    with pytest.warns(UserWarning, match=r"step=1 is too coarse.*\d nats.*k = .*give step=0.5"):
        problem = posterior(1.0, step=1.0)
    assert problem.prepared.values.n_steps == 12
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        posterior(1.0, step=0.1)


def warnings_of_estimates(problem, run):
    """What ``estimates`` warns of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        problem.estimates(run)
    return [str(warning.message) for warning in caught]


def test_draws_are_solved_again_and_a_coarse_step_is_told_of():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        coarse = posterior(1.0, step=0.6).scaled()
    fine = posterior(0.05).scaled()
    sampler = toolkit.samplers.hmc(0.3, n_leapfrogs=5)
    runs = [toolkit.sample(p, sampler, n_steps=200, burn_in=50, n_chains=8, seed=0) for p in (coarse, fine)]
    check = coarse.solver_check(runs[0])
    assert check.n_draws == 600  # every second of 1,200
    assert not check.is_fine
    told = warnings_of_estimates(coarse, runs[0])
    assert any("problem.refined()" in text for text in told)
    check = fine.solver_check(runs[1])
    assert check.ess_fraction > 0.999
    assert check.largest < 0.1
    assert not any("problem.refined()" in text for text in warnings_of_estimates(fine, runs[1]))
    assert coarse.refined().prepared.values.n_steps == 2 * coarse.prepared.values.n_steps
    finer = coarse.refined().refined()
    assert finer.solver_check(toolkit.sample(finer, sampler, n_steps=50, n_chains=4, seed=0)).is_fine


def test_other_likelihoods_have_no_steps():
    system = systems.lotka_volterra()
    series = data.simulate(system, np.linspace(0.0, 10.0, 101), noise=0.01, seed=0)
    problem = identify(series, system, likelihood="weak")
    with pytest.raises(ValueError, match="likelihood must be trajectory"):
        problem.refined()


class NeverSame:
    """An energy that depends on the number of steps without end."""

    method, n_steps = "rk4", 100

    def __init__(self, factor=1):
        self.factor = factor

    def evaluate(self, theta):
        return np.full(len(theta), float(np.log(self.factor) * 5.0)), theta

    def with_steps(self, factor):
        return NeverSame(self.factor * factor)

    def unresolved(self, theta, at):
        return np.zeros(len(theta), bool)


def test_a_method_that_does_not_converge_is_refused_and_another_named():
    with pytest.raises(ValueError, match=r"method='rk4' does not converge.*method='sdirk4'"):
        factor_where_same(NeverSame(), np.zeros(2))


@pytest.mark.parametrize("shape", [-0.3, 0.0, 0.4, 0.9])
def test_the_shape_of_a_pareto_tail_is_found(shape):
    found = [generalised_pareto_shape(np.sort(genpareto.rvs(shape, size=1000, random_state=k))) for k in range(20)]
    error = 4.5 * (1.0 + max(shape, 0.0)) / np.sqrt(20 * 1000) + 0.01  # of maximum likelihood, and a bias of 1/n
    assert abs(np.mean(found) - shape) < error


def test_weights_that_are_equal_have_no_tail():
    assert pareto_shape(np.zeros(500)) == -np.inf
    assert np.isnan(pareto_shape(np.zeros(4)))
    heavy = pareto_shape(np.random.default_rng(0).standard_exponential(1000))  # exp of it: a Pareto law of shape 1
    assert 0.7 < heavy < 1.3


class Long(NamedTuple):
    """An energy whose solutions have so many steps that nothing finer is solved."""

    n_steps: int = MAX_STEPS // 2 + 1
    n_states: int = MAX_STEPS
    method: str = "rk4"

    def evaluate(self, theta):
        return np.zeros(len(theta)), np.zeros_like(theta)

    def judged_at(self, theta):
        return self


def test_steps_too_many_for_finer_ones_are_kept_and_said_not_to_be_checked():
    energy, theta = Long(), np.array([2.0])
    assert factor_where_same(energy, theta) == 1
    plain = SteppedPosterior(
        energy, lambda energy: energy.evaluate, lambda theta: theta, lambda theta: theta, lambda evaluate, energy: (),
        theta, np.zeros((0, 1)), theta[None] + np.arange(3.0)[:, None], np.full((3, 1), np.nan), np.array([True]),
    )  # fmt: skip
    checked = checked_steps(plain, may_refine=True)
    assert not checked.is_fine
    assert "are not checked" in steps_in_words(checked, ("k",), theta, None)


def test_modes_of_a_search_whose_time_was_up_are_those_of_the_steps_before():
    def evaluate(points):
        return 0.5 * (points**2).sum(axis=1), points

    found = iter([(Mode(np.array([0.1]), 0.005, np.eye(1), 1.0),), ()])
    posterior = SteppedPosterior(
        Long(n_steps=4, n_states=4), lambda energy: evaluate, lambda theta: theta, lambda theta: theta,
        lambda evaluate, energy: next(found), np.zeros(1), np.zeros((0, 1)), np.zeros((1, 1)),
        np.full((3, 1), np.nan), np.array([True]),
    )  # fmt: skip
    grids = Grids(posterior, posterior.energy, is_judged=False)
    first = grids.modes(())
    assert len(first) == 1
    (kept,) = grids.modes(first)
    assert abs(kept.position[0]) < 1e-6


PLATEAU = Series(
    np.arange(9.0), np.append(np.nan, 7.0 + 0.2 * np.random.default_rng(2).standard_normal(8))[:, None], ("x",)
)


def test_a_rate_that_data_leave_open_is_free_over_its_prior():
    """Data that begin after the rise: the posterior of k follows its prior, and steps of the solver do not cut it.

    By quadrature the 95 % quantile of k is 21 where its prior is LN(1, 1); at k = 40 is 0.4 % of the prior.
    """
    law = trajectory(start=[0.0], noise=0.2)
    prior = {"k": priors.lognormal(1.0, 1.0), "A": priors.gaussian(5.0, 20.0)}
    problem = identify(PLATEAU, relaxing(0.5), likelihood=law, prior=prior)
    level = problem.modes.parameters[0, 1]
    energies = problem.target.evaluate(problem.positions([[5.0, level], [20.0, level], [40.0, level]]))[0]
    log_prior = 0.5 * (np.log([5.0, 20.0, 40.0]) - 1.0) ** 2
    np.testing.assert_allclose(np.diff(energies), np.diff(log_prior), atol=0.3)
    with pytest.warns(UserWarning, match="is too coarse for this posterior"):
        identify(PLATEAU, relaxing(0.5), likelihood=law, prior=prior | {"k": priors.lognormal(1.0, 3.0)})
