"""The rules that a tuning decides by: barrier, rungs, step sizes, gradient noise, drift, narrow places."""

import dataclasses
import math

import numpy as np
import pytest
from scipy.linalg import solve_continuous_lyapunov
from scipy.special import ndtr

from targets import classics, constrained, domains, mixtures, posteriors
from toolkit import Sampler, boundaries, dynamics, sample, samplers, target, tune
from toolkit.diagnostics import ess
from toolkit.errors import DivergenceError
from toolkit.problem.definition import as_problem
from toolkit.tempering import continuous_tempering
from toolkit.tempering.contour_tempering import Partition
from toolkit.tuning.biased_moves import find_biased_ladder, fitted, with_stable_thermostat
from toolkit.tuning.exact_moves import (
    MOST_FOR_SCALES,
    acceptance_at_extremes,
    dense_scale,
    diagonal_scale,
    is_drifting,
    mean_curvature,
    race_scales,
)
from toolkit.tuning.exchange_rounds import (
    Ladder,
    below_divergence,
    coldest_divergence,
    equal_parts,
    recut,
)
from toolkit.tuning.exploration import (
    Explored,
    barriers,
    best_pairs,
    between_share,
    choose_top,
    descended,
    mean_difference,
    scans_per_restart,
    step_sizes_above,
)
from toolkit.tuning.gradient_noise import (
    BIAS,
    around_minima,
    most_for_noise,
    noise_covariance,
    step_at_exact_draws,
    step_by_law,
    widening,
)
from toolkit.tuning.procedure import describe
from toolkit.tuning.race import by_lane, least_ess, raced, remembered_ess
from toolkit.tuning.step_sizes import BEST, Improvement, first_step_sizes, harmonic_mean
from toolkit.tuning.study import LANES, Study, geometric_mean, rounded


def study_of(problem, **options):
    """A study that nothing has been spent of."""
    problem = as_problem(problem)
    boundary = boundaries.ignore() if problem.domain is None else boundaries.reject()
    return Study(problem, 3, 200_000, boundary, **options)


def levels_of(between, virial=None, barrier=0.5, temperatures=None):
    """Explored whose chains have such shares of the variance between them."""
    n = len(between)
    temperatures = 2.0 ** np.arange(n) if temperatures is None else temperatures
    return Explored(
        temperatures=temperatures, step_sizes=np.ones(n), acceptance=np.full(n, 0.65), between=np.array(between),
        virial=np.ones(n) if virial is None else np.array(virial), steepness=np.ones((n, 2)),
        barrier=barrier * temperatures, energies=np.zeros((n, 8)), positions=np.zeros((n, 8, 2)), steps=64, leapfrogs=4,
    )  # fmt: skip


def test_mean_difference_is_that_of_all_pairs():
    values = np.random.default_rng(1).standard_normal(40)
    pairs = np.abs(values[:, None] - values)[np.triu_indices(40, 1)]
    assert mean_difference(values) == pytest.approx(pairs.mean(), rel=1e-12)
    assert mean_difference(values[:1]) == 0.0


def test_the_barrier_of_a_gaussian_grows_with_the_logarithm_of_temperature():
    """U is T times a Gamma(d/2): ½ E|U − U'| / T is the same at all T, so Λ = that · log T."""
    draws = np.random.default_rng(2).gamma(2.0, size=20_000)
    half = mean_difference(draws) / 2.0
    for temperatures in (2.0 ** np.arange(8), 2.0 ** np.array([0, 1, 2, 4, 6, 9, 12, 16])):
        found = barriers(levels_of([0.1] * 8, barrier=half, temperatures=temperatures))
        np.testing.assert_allclose(found, half * np.log(temperatures), rtol=1e-12)


@pytest.mark.parametrize("barrier", [0.2, 0.7, 1.5, 4.0, 12.0])
def test_the_number_of_rungs_has_the_least_cost(barrier):
    """2 + 2 Σ r/(1 − r) scans a restart, r = Λ/n (Syed et al. 2022); each costs a step of n + 1 rungs."""
    costs = {n: (n + 1) * (2.0 + 2.0 * n * (barrier / n) / (1.0 - barrier / n)) for n in range(1, 64) if n > barrier}
    assert best_pairs(barrier) == min(costs, key=costs.get)
    assert scans_per_restart(3.0, 3) == math.inf
    if barrier >= 4.0:
        assert abs(best_pairs(barrier) / (2.0 * barrier) - 1.0) < 0.2


def test_places_of_equal_barrier():
    places = np.linspace(0.0, 3.0, 31)
    total = places**2  # so places of equal parts are square roots
    np.testing.assert_allclose(equal_parts(places, total, 4), np.sqrt(9.0 * np.arange(5) / 4.0), rtol=2e-3)


def test_rungs_move_to_where_swaps_are_rejected():
    ladder = Ladder(np.array([1.0, 2.0, 4.0, 8.0]), np.array([0.1, 0.2, 0.4, 0.8]), np.zeros((5, 4, 2)), 0.0)
    found = recut(ladder, np.array([0.8, 0.2, 0.2]), np.zeros((5, 4, 2)), may_resize=False)
    assert found.temperatures[0] == 1.0
    assert found.temperatures[-1] == 8.0
    assert found.temperatures[1] < 1.6  # into the gap that rejects most
    assert found.barrier == pytest.approx(1.2)
    np.testing.assert_allclose(found.step_sizes, 0.1 * found.temperatures, rtol=1e-3)  # as they were, in logarithms
    assert len(recut(ladder, np.array([1.0, 1.0, 1.0]), np.zeros((5, 4, 2))).temperatures) > 4


def test_the_top_is_the_lowest_at_which_chains_mix():
    shares = [1.1, 1.0, 0.5, 0.15, 0.1, 0.1, 0.1, 0.1]
    assert choose_top(levels_of(shares, barrier=0.4), False).level in (3, 4)
    assert choose_top(levels_of([0.05] * 8), False).level == 0
    alone = [0.05, 1.1, 1.1, 1.1, 1.1, 1.1, 1.1, 1.1]  # all chains in one mode, by chance
    assert not np.isfinite(choose_top(levels_of(alone), False).costs).any()
    drifts = choose_top(levels_of([1.1, 0.4, 0.1, 0.1], virial=[1.0, 0.9, 0.1, 0.0]), False)
    assert drifts.level == 1  # hotter ones have no law
    assert choose_top(levels_of([1.1, 0.55, 0.1, 0.1], virial=[1.0, 0.9, 0.1, 0.0]), True).level == 2  # walls hold


@pytest.mark.parametrize(
    ("between", "virial", "level", "top"),
    [
        (
            [1.14, 1.14, 1.1, 0.9, 0.8],
            [1.0, 1.0, 1.0, 1.0, 0.3],
            0,
            4,
        ),  # stuck when cold: the least between, for a ladder
        ([1.14, 1.14, 1.1, 0.9, 0.8], [1.0, 1.0, 1.0, 1.0, 0.1], 0, 3),  # the hottest has no law
        ([0.9, 0.9, 0.9, 0.8, 0.7], [1.0] * 5, 0, 1),  # slow, not stuck
        ([1.14, 1.14, 1.1, 0.9, 0.4], [1.0, 1.0, 1.0, 1.0, 0.3], 4, 4),  # perhaps a law, and it mixes: races judge
    ],
)
def test_a_ladder_that_has_to_be_gets_a_top_where_no_temperature_is_known_to_mix(between, virial, level, top):
    choice = choose_top(levels_of(between, virial=virial), is_bounded=False)
    assert np.isinf(choice.costs).all()
    assert (choice.level, choice.top) == (level, top)


def test_that_no_law_is_said_of_chains_that_move():
    """A chain that stands still has all draws near its own mean, whatever the law: its virial is 0."""
    for acceptance, said in ((0.65, True), (0.1, False)):
        study, levels = study_of(mixtures.cosine25()), levels_of([0.9, 0.5, 0.1], virial=[0.1, 1.0, 1.0])
        levels = levels._replace(acceptance=np.full(3, acceptance))
        describe(study, levels, choose_top(levels, False))
        assert any("no finite integral" in warning for warning in study.warnings) == said


@target(dim=1, parameters=[77.0, 57.0, 100.0, 20.0, 40000.0])
def many_wells(x, p):
    """Narrow wells 57 apart with 77 nats between them, under N(20, 100²); no energy beyond 40,000."""
    wave = 2.0 * np.pi / p[1]
    energy = 0.5 * p[0] * (1.0 + np.cos(wave * x[0])) + 0.5 * ((x[0] - p[3]) / p[2]) ** 2
    gradient = -0.5 * p[0] * wave * np.sin(wave * x[0]) + (x[0] - p[3]) / p[2] ** 2
    return energy if abs(x[0]) <= p[4] else math.inf, (gradient,)


def test_steps_of_far_hotter_temperatures_are_measured_and_those_of_others_left():
    """At 4,096 times the temperature the wells are nothing, and a stable step is that of the wide normal law."""
    study = study_of(many_wells)
    levels = levels_of([1.14] * 8)._replace(step_sizes=np.ones(8))
    temperatures = 2.0 ** np.array([0, 1, 2, 4, 6, 9, 12, 16])
    found = step_sizes_above(study, levels, np.full((8, 8, 1), 28.5), temperatures)
    assert (found[:5] == 0.0).all()
    assert 8.0 <= found[6] <= 200.0
    assert study.spent < 1_000


def test_a_ladder_whose_hot_rungs_leave_the_energy_gets_a_cooler_top():
    temperatures = np.array([1.0, 8.0, 64.0, 2.0**18, 2.0**20])  # sds 100, …, 51,200 between walls at ±40,000
    hot = samplers.r2sghmc([0.1, 0.1, 0.1, 1e3, 1e3], temperatures=temperatures, boundary=boundaries.ignore())
    states = np.full((12, 5, 1), 28.5)
    study = study_of(many_wells)
    with pytest.raises(DivergenceError) as caught:  # all chains
        study.run(hot, 3_000, states)
    run = caught.value.run
    assert coldest_divergence(run) == 3
    ladder = below_divergence(study, Ladder(temperatures, np.full(5, 1.0), states, 3.0), run, 3)
    assert ladder.temperatures.tolist() == [1.0, 8.0, 64.0, 16380.0]  # four digits of the sixteenth
    assert ladder.states.shape == (16, 4, 1)
    assert np.isfinite(ladder.states).all()
    assert "diverged: the top of the ladder is" in study.reasons[-1]


def test_rounds_of_which_all_chains_diverged_count_as_spent():
    temperatures, steps = np.array([1.0, 8.0, 2.0**20]), np.array([0.1, 0.1, 1e5])
    hot = samplers.r2sghmc(steps, temperatures=temperatures, boundary=boundaries.ignore())
    study = study_of(many_wells)
    ladder = find_biased_ladder(study, hot, Ladder(temperatures, steps, np.full((12, 3, 1), 28.5), 3.0))
    assert "diverged: the top of the ladder is" in study.reasons[0]
    assert len(ladder.temperatures) < 3 or ladder.temperatures[-1] < 2.0**20
    assert study.spent == sum(one.gradients for one in study.rounds) > study.rounds[0].gradients > 0


@pytest.mark.parametrize("name", ["r2sghmc", "resgld"])
def test_tuned_ladders_reach_temperatures_at_which_chains_leave_far_wells(name):
    """Before, one of three ended at T = 2, and one at nan, where a hot rung had left the energy."""
    x = np.linspace(-1_000.0, 1_000.0, 200_001)
    density = np.exp(-many_wells.evaluate(x[:, None])[0])
    exact = density[x < 0.0].sum() / density.sum()
    shares = []
    for seed in (1, 2, 3):
        starts = np.repeat([-28.5, 28.5], 8)[:, None]
        tuned = tune(many_wells, getattr(samplers, name)(boundary=boundaries.ignore()), seed=seed, init=starts)
        assert 16.0 <= tuned.sampler.temperatures[-1] <= 4096.0
        run = sample(many_wells, tuned, n_steps=20_000, n_chains=16, seed=seed)
        below = run.draws[..., 0] < 0.0
        assert (below[:, 1:] != below[:, :-1]).sum() > 100
        shares.append(below.mean())
    assert abs(np.mean(shares) - exact) < 0.08, (shares, exact)


def test_the_share_between_chains():
    rng = np.random.default_rng(4)
    mixed = rng.standard_normal((8, 500, 2))
    assert between_share(mixed, mixed[..., 0]) < 0.02
    stuck = mixed + 20.0 * rng.standard_normal((8, 1, 2))
    assert between_share(stuck, mixed[..., 0]) > 0.9


def test_descent_comes_down_and_keeps_the_domain():
    study = study_of(classics.badly_scaled_gaussian())
    points = np.random.default_rng(5).uniform(-50.0, 50.0, (16, 8))
    before = study.problem.target.evaluate(points)[0]
    moved, energies = descended(study, points, np.full(16, 20.0))
    np.testing.assert_array_equal(study.problem.target.evaluate(moved)[0], energies)
    assert (energies < 0.6 * before).all()
    assert np.median(energies) < 0.1 * np.median(before)
    boxed = study_of(constrained(mixtures.cosine25(), domains.box([0.5, 0.5], [1.8, 1.8])))
    inside, _ = descended(boxed, np.full((4, 2), 1.75), np.full(4, -100.0))  # a mode at 2 is near
    assert boxed.problem.contains(inside).all()


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_first_step_sizes_have_the_scale_of_the_target(scale):
    study = study_of(mixtures.gaussian_mixture([[0.0, 0.0]], scale**2))
    points = scale * np.random.default_rng(6).standard_normal((64, 2))
    sizes = first_step_sizes(study, points, np.ones(64))
    assert (np.log2(sizes) % 1.0 == 0.0).all()
    assert 0.4 < np.median(sizes) / scale <= 2.0


@pytest.mark.parametrize(("name", "power"), [("hmc", 2.0), ("mala", 1.5)])
def test_step_sizes_come_to_the_best_acceptance(name, power):
    constants = np.array([1e-4, 1.0, 300.0])
    steps, sizes = Improvement(name), np.ones(3)
    for _ in range(40):
        acceptance = 2.0 * ndtr(-constants * sizes**power)
        sizes = steps.next(sizes, acceptance)
    np.testing.assert_allclose(2.0 * ndtr(-constants * sizes**power), BEST[name], atol=0.03)


def test_step_sizes_stay_below_a_cliff():
    """Acceptance that falls from 0.9 to 0.05 at h = 1, as at the edge of stability."""
    steps, size = Improvement("hmc"), np.array([0.1])
    for _ in range(30):
        size = steps.next(size, np.where(size < 1.0, 0.9, 0.05))
    assert 0.5 < size[0] < 1.8


def test_the_harmonic_mean_sees_chains_that_hardly_move():
    shares = np.array([[0.8], [0.8], [0.8], [0.02]])
    assert harmonic_mean(shares, 100)[0] == pytest.approx(4.0 / (3.0 / 0.8 + 50.0))
    assert harmonic_mean(np.zeros((4, 1)), 100)[0] == 0.005


def test_the_error_of_a_slope_is_its_spread():
    rng, sizes, spread = np.random.default_rng(7), 2.0 ** -np.arange(6.0), []
    for _ in range(400):
        common = rng.standard_normal(8)
        slope, error, _ = fitted(sizes, 3.0 + 2.0 * sizes[:, None] + common + 0.3 * rng.standard_normal((6, 8)))
        spread.append((slope - 2.0) / error)
    assert abs(np.mean(spread)) < 4.5 * np.std(spread) / 20.0
    assert 0.8 < np.std(spread) < 1.6  # weights are of eight chains, so above 1


@pytest.mark.parametrize(
    ("move", "heating"),
    [
        (dynamics.langevin(), 1.0),
        (dynamics.underdamped_langevin(friction=0.2), 5.0),
        (dynamics.baoab(friction=0.2), 1.8 / 0.4),
        (dynamics.nose_hoover(friction=0.05), 0.04 / 0.1),
    ],
)
def test_noise_limits_the_step_size_by_the_law_of_the_dynamics(move, heating):
    """On N(0, 1) with noise s the variance is T (1 + h s²/2 · heating) to first order, so the sd half of that."""
    problem, noise = classics.correlated_gaussian(dim=2, correlation=0.0), 3.0
    sampler = Sampler("s", (0.1,), (1.0,), dynamics=move, gradient_noise=noise)
    found = most_for_noise(study_of(problem), sampler, np.zeros((4, 2)))
    assert found == pytest.approx(BIAS / (noise**2 / 4.0 * heating))
    quiet = Sampler("s", (0.1,), (1.0,), dynamics=move)
    assert most_for_noise(study_of(problem), quiet, np.zeros((4, 2))) == math.inf


def test_the_noise_of_minibatches_is_measured():
    rng, n, batch = np.random.default_rng(8), 400, 20
    features = rng.standard_normal((n, 2))
    labels = features @ [1.0, -2.0] + rng.standard_normal(n)
    target = posteriors.linear_regression(features, labels, noise=1.0, prior=1.0, batch_size=batch)
    point = np.array([0.3, 0.1])
    terms = (features @ point - labels)[:, None] * features
    exact = n**2 / batch * np.cov(terms.T)
    found = noise_covariance(study_of(target), samplers.sgld(), np.tile(point, (LANES, 1)))
    np.testing.assert_allclose(found, exact, atol=0.25 * np.diag(exact).min())  # 1,024 minibatches: 4.4 % each


def regression_by(batch_size, **options):
    """Correlated features, so that noise and curvature are correlated, too."""
    rng = np.random.default_rng(12)
    features = rng.standard_normal((300, 4)) @ np.array(
        [[1.0, 0.8, 0.0, 0.3], [0.0, 0.6, 0.5, 0.0], [0.0, 0.0, 1.5, 0.0], [0.0, 0.0, 0.0, 0.5]]
    )
    labels = features @ [1.0, -2.0, 0.5, 1.0] + rng.standard_normal(300)
    return posteriors.linear_regression(features, labels, noise=1.0, prior=1.0, batch_size=batch_size, **options)


def test_control_variates_are_as_noisy_as_two_draws_are_apart():
    target = regression_by(30, refresh_every=50)
    study = study_of(target)
    laws = around_minima(study, np.tile(target.truth.mean, (LANES, 1)))
    found = noise_covariance(study, samplers.sgld(), laws.draws)
    plain = noise_covariance(study, samplers.sgld(), np.tile(target.truth.mean, (LANES, 1)))
    assert np.abs(plain).max() < 1e-9 * np.abs(found).max()  # of anchors at the points themselves
    assert found.diagonal().min() > 0.0


def test_normal_laws_around_minima_are_those_of_a_regression():
    target = regression_by(30)
    laws = around_minima(study_of(target), np.tile(target.truth.mean, (4 * LANES, 1)))
    found = laws.directions[0] * laws.widths[0] ** 2 @ laws.directions[0].T
    np.testing.assert_allclose(found, target.truth.covariance, rtol=1e-5, atol=1e-8)
    normal = np.linalg.solve(np.linalg.cholesky(target.truth.covariance), (laws.draws - target.truth.mean).T)
    np.testing.assert_allclose(np.cov(normal), np.eye(4), atol=4.5 * np.sqrt(2.0 / (4 * LANES)))


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("family", ["linear", "logistic"])
def test_minima_of_condition_ten_thousand_are_reached(family, seed):
    """Descent alone leaves the flattest direction up to dozens of its standard deviations from the minimum."""
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    features = rng.standard_normal((300, 4)) * [10.0, 3.0, 0.5, 0.1] @ turn
    if family == "linear":
        labels = features @ [1.0, -2.0, 0.5, 1.0] + rng.standard_normal(300)
        target = posteriors.linear_regression(features, labels, noise=1.0, prior=10.0, batch_size=30)
    else:
        labels = (rng.random(300) < 1.0 / (1.0 + np.exp(-features @ [0.2, -0.1, 0.1, 0.1]))).astype(float)
        target = posteriors.logistic_regression(features, labels, prior=10.0, batch_size=30)
    study = study_of(target)
    starts = 3.0 * rng.standard_normal((LANES, 4))
    ends = descended(study, starts, np.full(LANES, -math.inf))[0]
    spent = study.spent
    laws = around_minima(study, ends)
    assert 8 * 4 < study.spent - spent < 4 * 9 * (2 * 4 + 1) + 8  # a curvature of each minimum, of a few steps
    gradient = target.evaluate(laws.minima)[1]
    offsets = np.einsum("nij,ni->nj", laws.directions, gradient) / np.sqrt(laws.values)  # in standard deviations
    assert np.abs(offsets).max() < 0.03
    assert laws.values.max() > 1e3 * laws.values.min()
    if family == "linear":
        np.testing.assert_allclose(
            laws.minima, np.tile(target.truth.mean, (4, 1)), atol=0.03 / math.sqrt(laws.values.min())
        )


def test_what_noise_widens_is_the_solution_of_lyapunovs_equation():
    rng = np.random.default_rng(13)
    half, other = rng.standard_normal((2, 3, 3))
    curvature, noise = half @ half.T + np.eye(3), other @ other.T
    values, directions = np.linalg.eigh(curvature)
    laws = around_minima(study_of(regression_by(30)), np.zeros((4, 4)))._replace(
        values=values[None], directions=directions[None], widths=1.0 / np.sqrt(values)[None]
    )
    added = solve_continuous_lyapunov(curvature, noise)
    exact = (np.diag(added) / np.diag(np.linalg.inv(curvature)) / 2.0).max()
    assert widening(noise, laws) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("sampler", [samplers.sgld(), samplers.sghmc(friction=0.3), samplers.sghmc(friction=1.0)])
def test_a_step_by_law_has_the_bias_that_is_allowed(sampler):
    """At five times the step, which forgets sooner: five times the bias, to first order."""
    target = regression_by(30)
    study = study_of(target)
    found = step_by_law(study, sampler, around_minima(study, np.tile(target.truth.mean, (LANES, 1))))
    run = sample(
        target, dataclasses.replace(sampler, step_sizes=(5.0 * found.step_size,)), n_steps=40_000, burn_in=1_000,
        n_chains=64, init=found.states[:, None], seed=1, thin=20, progress=False,
    )  # fmt: skip
    wide = run.draws.reshape(-1, 4).std(axis=0) / np.sqrt(np.diag(target.truth.covariance)) - 1.0
    noise = 4.5 / np.sqrt(2.0 * ess((run.draws - run.draws.mean(axis=(0, 1))) ** 2).min())
    assert noise < 1.5 * BIAS
    assert 2.5 * BIAS < wide.max() < 5.5 * BIAS + noise


@pytest.mark.parametrize("sampler", [samplers.sgld(), samplers.sghmc(friction=0.3), samplers.sgld(gradient_noise=2.0)])
def test_a_step_at_exact_draws_has_the_bias_that_is_allowed(sampler):
    """Of the stiffest direction, variance 0.05: T (1 + h k/2) for Langevin, T/(1 − h k/(4 − 2η)) for SGHMC."""
    target = classics.correlated_gaussian(dim=2)
    study = study_of(target)
    levels = levels_of([0.0] * 2)._replace(positions=target.truth.independent_draws(16, seed=3).reshape(2, 8, 2))
    found = step_at_exact_draws(study, sampler, levels._replace(step_sizes=np.array([0.2, 0.2]), leapfrogs=8))
    stiffest = 1.0 / np.linalg.eigvalsh(target.truth.covariance)[0]
    share = 1.0 / (8.0 - 4.0 * 0.3) if sampler.dynamics.name == "underdamped_langevin" else 0.25
    exact = BIAS / (share * stiffest + sampler.gradient_noise**2 / 4.0)
    assert found.step_size == pytest.approx(exact, rel=0.2)
    assert found.states.shape == (LANES, 2)


@pytest.mark.parametrize("top", [1.0, 8.0, 128.0, 4096.0])
def test_the_friction_of_the_tempering_variable_is_stable(top):
    found = with_stable_thermostat(continuous_tempering(), top, 0.01, 2.0)
    limit = 1.0 / found.steepest**2
    assert found.top_temperature == max(top, 2.0)
    assert found.friction <= 0.501 * limit
    assert found.friction + 5.9 * math.sqrt(0.01 * 2.0 / found.inertia) < limit
    assert with_stable_thermostat(continuous_tempering(inertia=1e9), top, 0.01, 2.0).inertia == 1e9


# Independent draws of short chains.


def test_short_chains_are_not_taken_for_independent_ones():
    """Autoregressive chains of 64 draws that forget in 1,000: their bulk ESS is near their number."""
    rng, n_chains, n, rate = np.random.default_rng(14), 64, 64, math.exp(-1.0 / 500.0)
    draws = np.empty((n_chains, n, 1))
    draws[:, 0] = rng.standard_normal((n_chains, 1))
    for i in range(1, n):
        draws[:, i] = rate * draws[:, i - 1] + math.sqrt(1.0 - rate**2) * rng.standard_normal((n_chains, 1))
    exact = n_chains * n * (1.0 - rate) / (1.0 + rate)
    assert ess(draws).min() > 5.0 * exact
    assert 0.5 * exact < remembered_ess(draws)[0] < 2.0 * exact
    run = sample(
        mixtures.gaussian_mixture([[0.0]], 1.0), samplers.hmc(1e-3, n_leapfrogs=1), n_steps=64, n_chains=64, seed=1,
        init=rng.standard_normal((64, 1, 1)), progress=False,
    )  # fmt: skip
    assert least_ess(run) < 1.0


def test_independent_draws_have_no_memory():
    draws = np.random.default_rng(15).standard_normal((64, 64, 3))
    assert np.isinf(remembered_ess(draws)).all()
    assert np.isinf(remembered_ess(draws, np.exp(draws[..., 0]))).all()


def test_equal_weights_do_not_change_what_is_remembered():
    draws = np.random.default_rng(16).standard_normal((8, 256, 2)).cumsum(axis=1)
    np.testing.assert_allclose(remembered_ess(draws, np.full((8, 256), 3.0)), remembered_ess(draws), rtol=1e-9)


def test_replicas_that_stay_in_their_modes_are_not_independent_draws():
    """Their draws, next to each other, alternate between modes: ``ess`` sees memory, and tells 149 of 60 at most."""
    target = mixtures.gaussian_mixture([[-20.0], [20.0]], 1.0)
    starts = np.where(np.arange(60) % 2, -20.0, 20.0).reshape(12, 5, 1)
    bins = Partition(0.5, 0.5, 20)
    run = sample(
        target, samplers.icsgld(1e-2, partition=bins), n_steps=400, burn_in=100, n_chains=12, init=starts, seed=1,
        keep_replicas=True, progress=False,
    )  # fmt: skip
    draws, weights = by_lane(run)
    np.testing.assert_array_equal(draws[7], run.replica_draws[1, 2])
    np.testing.assert_allclose(weights[7] / weights[7, 0], run.replica_weights[1, 2] / run.replica_weights[1, 2, 0])
    assert np.sign(draws[:, 0]).tolist() == np.sign(draws[:, -1]).tolist()
    assert 60.0 < ess(run.draws, weights=run.weights).min() < 300.0
    assert least_ess(run) < 60.0


# Scales of coordinates, and a matrix.


def raced_on(target):
    """A study, and a race whose draws are near the target's law."""
    study = study_of(target)
    starts = target.truth.independent_draws(64, seed=2)[:, None]
    return study, raced(study, "as it is", samplers.hmc(0.2, n_leapfrogs=10), starts, 40_000)


def scale_by(find, target):
    """The scale that ``find`` makes of the curvature seen in such a race."""
    study, best = raced_on(target)
    return find(best.sampler, mean_curvature(study, best))


def test_a_dense_scale_is_the_inverse_of_the_mean_curvature():
    target = classics.correlated_gaussian(dim=5)
    matrix = scale_by(dense_scale, target)
    found, covariance = matrix @ matrix.T, target.truth.covariance
    size = (np.linalg.det(found) / np.linalg.det(covariance)) ** 0.2
    np.testing.assert_allclose(found, size * covariance, rtol=0.3)
    assert geometric_mean(np.diag(matrix)) == pytest.approx(1.0, rel=1e-3)
    assert scale_by(diagonal_scale, target) is None  # they are as they should be
    assert scale_by(dense_scale, classics.correlated_gaussian(dim=5, correlation=0.2)) is None


def test_scales_are_those_of_the_mean_curvature():
    target = classics.badly_scaled_gaussian(dim=4, condition=100.0)
    scales = scale_by(diagonal_scale, target)
    ratio = scales / np.sqrt(np.diag(target.truth.covariance))
    assert ratio.max() / ratio.min() < 1.3


def test_the_curvature_is_evaluated_once_where_no_scale_wins():
    study, best = raced_on(classics.correlated_gaussian(dim=5, correlation=0.2))
    spent = study.spent
    assert race_scales(study, best, 1_000) is best
    assert spent < study.spent <= spent + MOST_FOR_SCALES


# Drift and narrow places.


def test_drifts_and_outlying_chains_are_seen():
    rng = np.random.default_rng(9)
    alarms = sum(is_drifting(rng.standard_normal((64, 32, 5))) for _ in range(200))
    assert alarms <= 6  # 10 tests of 4 sd: 0.06 % each, and t with 63 degrees of freedom
    drifting = rng.standard_normal((64, 32, 5)) + np.linspace(0.0, 1.0, 32)[:, None]
    assert is_drifting(drifting)
    outlying = rng.standard_normal((64, 32, 5))
    outlying[7] += 10.0
    assert is_drifting(outlying)


def test_moves_from_extreme_draws_show_narrow_places():
    rng = np.random.default_rng(10)
    gaussian = classics.correlated_gaussian(dim=2, correlation=0.0)
    usual = acceptance_at_extremes(study_of(gaussian), samplers.hmc(1.3, n_leapfrogs=2), rng.standard_normal((4000, 2)))
    banana = classics.banana()
    draws = banana.truth.independent_draws(4000, seed=1)
    narrow = acceptance_at_extremes(study_of(banana), samplers.hmc(1.3, n_leapfrogs=2), draws)
    assert usual > 0.55 > 0.45 > narrow


def test_numbers_are_rounded_to_four_digits():
    assert rounded(0.123456) == 0.1235
    assert rounded(98765.0) == 98760.0
    np.testing.assert_array_equal(rounded([[1.00004, 2.0]]), [[1.0, 2.0]])
