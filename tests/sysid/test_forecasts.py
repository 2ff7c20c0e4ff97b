"""Trajectories of draws end in a status whatever the draws, their bands cover, and exponents are the known ones."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from sysid import data, likelihoods, systems
from sysid.forecasts import NOT_FINITE, histograms, largest_lyapunov, simulate
from sysid.identification import identify
from sysid.solvers.integrate import BLEW_UP, DONE, STEP_LIMIT, solve
from sysid.systems.system import System
from tests.sysid.right_hand_sides import decay
from toolkit import Problem, sample, samplers

LORENZ = systems.lorenz()
TIMES = np.linspace(0.0, 2.0, 41)
RARE = 1e-5  # false-alarm rate of each look at random numbers


def square_rhs(t, x, p):
    return (p[0] * x[0] * x[0],)


DECAY = System("decay", ("x",), ("rate",), decay, [1.0], [1.0], lyapunov=1.0)
SQUARE = System("square", ("x",), ("a",), square_rhs, [1.0], [1.0])


def normal(n, mean=1.0, sd=0.3, seed=0):
    return mean + sd * np.random.default_rng(seed).standard_normal((n, 1))


def test_bands_are_the_quantiles_of_the_law_of_draws():
    # x = exp(−rate t) falls with the rate, so its quantile to p is that of the rate to 1 − p.
    draws = normal(4000)
    found = simulate(draws, TIMES, problem=DECAY, n_draws=None)
    p = np.array([0.05, 0.25, 0.5, 0.95])
    bands = found.bands(p)[:, 1:, 0]
    rates = -np.log(bands) / TIMES[1:]
    below = stats.norm(1.0, 0.3).sf(rates)
    limit = stats.norm.isf(RARE / 8) * np.sqrt(p * (1.0 - p) / 4000)
    assert (np.abs(below.T - p) < limit + 1e-6).all()
    assert (np.abs(stats.norm(1.0, 0.35).sf(rates).T - p)[:, [0, -1]] > limit[[0, -1]]).all()
    assert found.diverged == 0.0
    assert found.reasons == {"done": 4000}


def test_errors_widen_the_bands_to_those_of_data():
    exact = simulate(normal(1, sd=0.0), TIMES, problem=DECAY, n_draws=2000, noise=0.1)
    assert (exact.states == exact.states[0]).all()
    errors = (exact.observed - exact.states) / 0.1
    assert stats.kstest(errors.ravel(), "norm").pvalue > RARE
    assert stats.kstest(errors.ravel() * 1.05, "norm").pvalue < RARE
    factors = simulate(normal(1, sd=0.0), TIMES, problem=DECAY, n_draws=2000, noise=[0.1], errors="lognormal")
    np.testing.assert_allclose(np.log(factors.observed / factors.states) / 0.1, errors, rtol=1e-9, atol=1e-9)


def test_the_share_that_diverges_is_that_of_draws_that_must():
    # x' = a x² from 1 is infinite at 1/a, which is before the end for a > ½.
    draws = normal(1000, mean=0.5)
    found = simulate(draws, TIMES, problem=SQUARE, n_draws=None)
    lost = draws[:, 0] > 0.5
    np.testing.assert_array_equal(found.status == BLEW_UP, lost)
    assert found.diverged == lost.mean()
    assert found.reasons == {"done": (~lost).sum(), "blew up": lost.sum()}
    late = np.maximum(1.0 / draws[lost, 0], 0.0)
    assert (np.abs(found.reached[lost] - late) < 0.051).all()
    kept = found.bands([0.0, 1.0])
    assert np.isfinite(kept).all()
    np.testing.assert_allclose(kept[1, -1, 0], 1.0 / (1.0 - 2.0 * draws[~lost].max()), rtol=1e-4)
    assert np.isnan(simulate([[1.0]], TIMES, problem=SQUARE).bands()).all()


def test_whatever_the_draws_an_ensemble_ends():
    draws = np.random.default_rng(0)
    hostile = draws.standard_normal((200, 3)) * 10.0 ** draws.uniform(-300, 300, (200, 1))
    hostile[0, 0], hostile[1, 1], hostile[2, 2] = np.nan, np.inf, -np.inf
    found = simulate(hostile, np.linspace(0.0, 100.0, 11), problem=LORENZ, n_draws=None, max_steps=2000)
    assert found.status[:3].tolist() == [NOT_FINITE] * 3
    assert np.isnan(found.states[:3]).all()
    assert "parameters or start not finite" in found.reasons
    assert {BLEW_UP, STEP_LIMIT} & set(found.status.tolist())
    assert sum(found.reasons.values()) == 200
    gone = found.times > np.nan_to_num(found.reached, nan=-1.0)[:, None]
    np.testing.assert_array_equal(np.isnan(found.states).any(axis=2), gone)
    nowhere = simulate(np.full((5, 3), np.nan), TIMES, problem=LORENZ, n_draws=None)
    assert nowhere.diverged == 1.0
    starts = np.tile(LORENZ.start, (200, 1))
    starts[7] = np.nan
    some = simulate(np.tile(LORENZ.usual, (200, 1)), TIMES, problem=LORENZ, n_draws=None, start=starts)
    assert some.reasons == {"done": 199, "parameters or start not finite": 1}


def test_draws_are_taken_by_seed_and_trajectories_are_those_of_solve():
    draws = normal(500)
    one, same, other = (simulate(draws, TIMES, problem=DECAY, n_draws=50, seed=s) for s in (1, 1, 2))
    np.testing.assert_array_equal(one.parameters, same.parameters)
    assert not np.array_equal(one.parameters, other.parameters)
    assert len(np.unique(one.parameters)) == 50
    np.testing.assert_array_equal(one.states, solve(DECAY, TIMES, one.parameters).states)
    assert len(simulate(draws[:5], TIMES, problem=DECAY, n_draws=50).states) == 50


def test_the_valid_time_is_that_of_errors_that_grow_exponentially():
    # x = exp(t) from 1 + δ is off by δ exp(t), so it predicts up to log(threshold · rms / δ).
    times = np.linspace(0.0, 10.0, 10_001)
    truth = np.exp(times)[:, None]
    rms = np.sqrt((truth**2).mean())
    sizes = np.array([0.05, 0.2, 1.0])
    found = simulate(-np.ones((3, 1)), times, problem=DECAY, n_draws=None, start=1.0 + sizes[:, None], rtol=1e-11)
    expected = np.log(0.4 * rms / sizes)
    np.testing.assert_allclose(found.valid_time(truth), np.minimum(expected, 10.0), atol=2e-3)
    np.testing.assert_allclose(
        found.valid_time(truth, threshold=0.1, lyapunov=3.0), 3.0 * np.log(0.1 * rms / sizes), atol=6e-3
    )
    assert (simulate([[-1.0]], times, problem=DECAY).valid_time(truth) == 10.0).all()


def test_better_parameters_predict_longer():
    times = np.linspace(0.0, 15.0, 1501)
    truth = data.simulate(LORENZ, times, seed=0)
    near, far = (
        simulate(LORENZ.usual * (1.0 + size * np.ones((1, 3))), times, problem=LORENZ, n_draws=1).valid_time(truth)[0]
        for size in (1e-6, 1e-2)
    )
    # An error grows as exp(λ t), so 10⁴ times less of it is worth log 10⁴ = 9.2 Lyapunov times, give or take.
    assert 4.0 < near - far < 14.0


def test_bands_of_a_posterior_cover_the_truth_as_often_as_they_say():
    # The estimate is N(1, 0.1²) about the true rate, and the posterior N(estimate, 0.1²).
    estimates = normal(300, sd=0.1, seed=1)[:, 0]
    inside = dict.fromkeys((0.5, 0.9), 0)
    for k, estimate in enumerate(estimates):
        found = simulate(normal(400, estimate, 0.1, seed=k + 2), [0.0, 1.0], problem=DECAY, n_draws=None)
        for share in inside:
            low, high = found.bands([0.5 - share / 2, 0.5 + share / 2])[:, 1, 0]
            inside[share] += low < np.exp(-1.0) < high
    for share, count in inside.items():
        law = stats.binom(300, share)
        assert law.ppf(RARE) <= count <= law.isf(RARE)
        wrong = 2.0 * stats.norm.cdf(0.5 * stats.norm.isf(0.5 - share / 2)) - 1.0  # of bands half as wide
        assert not stats.binom(300, wrong).ppf(RARE) <= count <= stats.binom(300, wrong).isf(RARE)


def test_bands_of_a_weak_posterior_hold_the_truth_and_those_from_a_noisy_row_do_not():
    """Of ten data sets at all times on the way and ahead: nearly 90 %, though times of one data set hang together."""
    system, times = systems.lotka_volterra(), np.linspace(0.0, 20.0, 201)
    ahead = np.linspace(0.0, 40.0, 81)
    exact = simulate(system.usual, ahead, problem=system, n_draws=1, start=system.start).states[0]
    inside = {"the path": [], "the row": []}
    for seed in range(10):
        series = data.simulate(system, times, noise=0.05, seed=seed)
        problem = identify(series, system, likelihood="weak").scaled()
        run = sample(problem, samplers.hmc(0.5), n_steps=300, n_chains=4, burn_in=50, seed=seed)
        for name, start in (("the path", None), ("the row", series.values[0])):
            low, _, high = simulate(run, ahead, start=start, seed=1).bands()
            inside[name].append(((low <= exact) & (exact <= high)).mean())
    assert np.mean(inside["the path"]) > 0.75  # 0.9 ± 3 × 0.16 / √10, 0.16 between data sets
    assert np.mean(inside["the row"]) < 0.4
    assert (simulate(run, ahead, seed=1).start == simulate(run, ahead, seed=1).start).all()
    assert (simulate(run, ahead, seed=1).start != simulate(run, ahead, seed=2).start).any()


def test_every_series_of_a_weak_posterior_has_a_first_state_of_its_own():
    system, times = systems.lotka_volterra(), np.linspace(0.0, 10.0, 101)
    starts = [[10.0, 5.0], [14.0, 3.0]]
    both = [data.simulate(system, times, noise=0.02, seed=k, start=start) for k, start in enumerate(starts)]
    problem = identify(both, system, likelihood=likelihoods.weak(pieces=3))
    for k, start in enumerate(starts):
        first = problem.start_of(problem.prepared.start, experiment=k)[0]
        assert np.abs(first - start).max() < 0.3
        assert np.abs(first - starts[1 - k]).max() > 1.0


def test_the_run_of_an_identification_gives_its_parameters_and_starts():
    series = data.simulate(systems.lotka_volterra(), np.linspace(0.0, 10.0, 101), noise=0.002, seed=0)
    problem = identify(series, systems.lotka_volterra(), likelihood="derivative").scaled()
    run = sample(problem, samplers.sgld(0.1), n_steps=200, n_chains=4, burn_in=100, thin=4, seed=0)
    found = simulate(run, series.times, n_draws=50)
    assert found.system.states == ("prey", "predator")
    np.testing.assert_array_equal(found.start, np.tile(series.values[0], (50, 1)))
    theta = problem.parameters(run).reshape(-1, problem.dim)
    assert all((row == theta).all(axis=1).any() for row in found.parameters)
    again = simulate(theta, series.times, problem=problem, n_draws=50)
    np.testing.assert_array_equal(found.states, again.states)
    assert np.abs(found.bands([0.5])[0] - series.values).max() < 0.05 * series.values.max()
    plain = sample(Problem(problem.target), samplers.sgld(0.1), n_steps=20, seed=0)
    with pytest.raises(TypeError, match="draws must be the run of an Identification, got that of"):
        simulate(plain, TIMES)


def begun(values, likelihood="weak"):
    """Lorenz identified from rows that lack some values, and its exact parameters."""
    series = data.simulate(LORENZ, np.arange(0.0, 4.0, 0.01), seed=1)
    problem = identify(data.from_arrays(series.times, values(series.values.copy()), series.states), LORENZ,
        likelihood=likelihood)  # fmt: skip
    return series, problem, np.tile(LORENZ.usual, (2, 1))


def without_path(problem):
    """The problem as one whose likelihood has no path, such as ``derivative`` of measured velocities."""
    return replace(problem, prepared=problem.prepared._replace(first_states=()))


def lacking(rows, states):
    def lack(values):
        values[rows, states] = np.nan
        return values

    return lack


@pytest.mark.parametrize("method", ["dopri5", "rk5"])
def test_trajectories_begin_at_the_first_whole_row_and_its_time(method):
    """Row 30 is at t = 0.3: from there the exact system is the truth, also where times begin later; not before."""
    series, problem, exact = begun(lacking(slice(30), 0), likelihoods.weak(noise=0.01))
    problem = without_path(problem)
    for first in (30, 55):
        found = simulate(exact, series.times[first:150], problem=problem, n_draws=None, method=method)
        np.testing.assert_allclose(found.states, np.tile(series.values[first:150], (2, 1, 1)), rtol=1e-4, atol=1e-4)
        assert found.times[0] == series.times[first]
        assert (found.reached == series.times[149]).all()
        np.testing.assert_array_equal(found.start, np.tile(series.values[30], (2, 1)))
    with pytest.raises(ValueError, match=r"^start must be given where times begin before 0\.3, .* got 0\.29$"):
        simulate(exact, series.times[29:], problem=problem)
    given = simulate(exact, series.times[:9], problem=problem, start=series.values[0], method=method)
    np.testing.assert_allclose(given.states[0], series.values[:9], rtol=1e-4, atol=1e-4)
    beyond = simulate(exact, [5.0, 5.5], problem=problem).states[0]
    np.testing.assert_allclose(beyond, solve(LORENZ, [0.0, 5.0, 5.5], rtol=1e-10).states[1:], rtol=1e-2)


def test_the_path_of_a_weak_posterior_begins_where_the_data_do_whatever_is_missing():
    series, problem, exact = begun(lacking(slice(30), 0), likelihoods.weak(noise=0.01))
    found = simulate(exact, series.times[:60], problem=problem, n_draws=None)
    assert found.times[0] == series.times[0]
    assert np.abs(found.states - series.values[:60]).max() < 0.2


def test_without_a_whole_row_a_start_must_be_given():
    def alternate(values):
        values[::2, 0], values[1::2, 1] = np.nan, np.nan
        return values

    series, problem, exact = begun(alternate, likelihoods.weak(noise=0.01))
    problem = without_path(problem)
    with pytest.raises(ValueError, match=r"^start must be given, as no row of 'data' has all states"):
        simulate(exact, series.times, problem=problem)
    assert simulate(exact, series.times[:3], problem=problem, start=LORENZ.start).diverged == 0.0


def test_the_lorenz_exponent_is_the_known_one():
    found = largest_lyapunov(LORENZ)
    limit = stats.t(15).isf(RARE / 2) * found.standard_error
    assert found.standard_error < 0.01
    assert abs(found.value - LORENZ.lyapunov) < limit
    assert abs(found.value - 1.1 * LORENZ.lyapunov) > limit
    assert largest_lyapunov(LORENZ, [10.0, 10.0, 8.0 / 3.0], time=50.0).value < -0.1  # it ends in a fixed point


def test_the_rossler_exponent_is_the_known_one():
    system = systems.rossler()
    found = largest_lyapunov(system, time=800.0, interval=2.0, step=0.02)
    limit = stats.t(15).isf(RARE / 2) * found.standard_error
    assert found.standard_error < 0.003
    assert abs(found.value - system.lyapunov) < limit
    assert abs(found.value - 1.4 * system.lyapunov) > limit


def test_exponents_in_closed_form():
    cycle = largest_lyapunov(systems.van_der_pol())
    assert abs(cycle.value) < 0.01  # O(1 / time)
    still = largest_lyapunov(systems.damped_pendulum(), [0.4, 9.81], burn_in=60.0)
    assert still.value == pytest.approx(-0.2, abs=0.01)  # half the damping
    assert largest_lyapunov(DECAY, [0.5], time=20.0).value == pytest.approx(-0.5, rel=1e-6)
    with pytest.raises(ArithmeticError, match=r"square has no exponent: path . blew up near t = [01]"):
        largest_lyapunov(SQUARE)


def test_histograms_tell_one_attractor_from_another():
    times = np.linspace(0.0, 400.0, 20_001)
    first, second = (solve(LORENZ, times, start=x).states[1000:] for x in ([-8.0, 7.0, 27.0], [1.0, 1.0, 1.0]))
    other = solve(LORENZ, times, [10.0, 32.0, 8.0 / 3.0]).states[1000:]
    truth = histograms(first)
    np.testing.assert_allclose(truth.shares.sum(axis=1), 1.0)
    assert (truth.distance(truth) == 0.0).all()
    same = truth.distance(histograms(second, edges=truth.edges))
    different = truth.distance(histograms(other, edges=truth.edges))
    assert (same < 0.06).all()
    assert different[2] > 0.12
    assert (truth.distance(histograms(first + 1000.0, edges=truth.edges)) == 1.0).all()


def test_histograms_count():
    found = histograms([[0.5], [1.5], [2.0], [5.0], [-1.0], [np.nan]], edges=[[0.0, 1.0, 2.0]])
    np.testing.assert_allclose(found.shares, [[0.2, 0.2, 0.4, 0.2]])
    even = histograms(np.random.default_rng(0).random((10_000, 2)), bins=10)
    assert stats.chisquare(even.shares[0, 1:-1] * 10_000).pvalue > RARE


REFUSED = {
    "problem": (
        lambda: simulate([[1.0]], TIMES), "problem must be the System or Identification of the draws, got None",
    ),
    "width": (lambda: simulate([[1.0]], TIMES, problem=LORENZ), r"draws must have shape \(…, 3\), got \(1, 1\)"),
    "a system": (
        lambda: simulate(LORENZ, TIMES), "draws must be a run or parameters, got .*: sysid.data.simulate makes data of",
    ),
    "none": (lambda: simulate(np.zeros((0, 3)), TIMES, problem=LORENZ), "draws must be at least one, got none"),
    "start": (
        lambda: simulate([[1.0]], TIMES, problem=DECAY, start=[1.0, 2.0]),
        r"start must have shape \(1,\) or \(1, 1\), got \(2,\)",
    ),
    "noise": (lambda: simulate([[1.0]], TIMES, problem=DECAY, noise=-1.0), "noise must be ≥ 0, got -1"),
    "times": (lambda: simulate([[1.0]], [1.0, 0.0], problem=DECAY), "times must increase"),
    "n_draws": (lambda: simulate([[1.0]], TIMES, problem=DECAY, n_draws=0), "n_draws must be ≥ 1"),
    "probabilities": (
        lambda: simulate([[1.0]], TIMES, problem=DECAY).bands([2.0]), r"probabilities must be within \[0, 1\]",
    ),
    "exponent": (
        lambda: simulate([[1.0]], TIMES, problem=SQUARE).valid_time(np.ones((41, 1))),
        "lyapunov must be given, as it is",
    ),
    "no chaos": (
        lambda: simulate([[1.0]], TIMES, problem=DECAY).valid_time(np.ones((41, 1)), lyapunov=0.0),
        "lyapunov must be finite and > 0",
    ),
    "truth": (
        lambda: simulate([[1.0]], TIMES, problem=DECAY).valid_time(np.ones(3)),
        r"truth must have shape \(41, 1\)",
    ),
    "method": (lambda: largest_lyapunov(LORENZ, method="dopri5"), "method must be one of 'rk4', 'rk5', got 'dopri5'"),
    "paths": (lambda: largest_lyapunov(LORENZ, n_paths=1), "n_paths must be ≥ 2"),
    "edges": (lambda: histograms([[1.0]], edges=[[1.0, 0.0]]), "edges must increase"),
    "no states": (lambda: histograms([[np.nan]]), "states must be finite at some time"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_off_is_refused_with_its_value(what):
    call, words = REFUSED[what]
    with pytest.raises((TypeError, ValueError), match=f"^{words}"):
        call()


def test_options_of_the_solver_reach_it():
    """step: ten times as long, 10⁴ times the error of a method of order 4; limit: a state beyond it has blown up."""
    exact = np.exp(-TIMES)
    errors = [
        np.abs(
            simulate([[1.0]], [0.0, 2.0], problem=DECAY, n_draws=1, method="rk4", step=h).states[0, -1, 0] - exact[-1]
        )
        for h in (0.5, 0.05)
    ]
    assert 3.5e3 < errors[0] / errors[1] < 4e4
    for limit, status in ((0.9, BLEW_UP), (1e8, DONE)):
        assert simulate([[-1.0]], TIMES, problem=DECAY, n_draws=1, limit=limit).status.tolist() == [status]
    many = normal(600, mean=0.0, sd=1.0)
    one, three = (simulate(many, TIMES, problem=DECAY, n_draws=None, noise=0.1, threads=n) for n in (1, 3))
    np.testing.assert_array_equal(one.observed, three.observed)
    with pytest.raises(ValueError, match="threads must be ≥ 1 and < 4096, got 0"):
        simulate(many, TIMES, problem=DECAY, threads=0)


def test_an_exponent_is_that_of_the_paths_from_a_start():
    """Of x' = a x² the tangent grows by 2 a x a time, so 1/(1 − x)² from x over one: log 4 from ½, at x near ½."""
    found = largest_lyapunov(SQUARE, start=[0.5], time=1.0, burn_in=0.0, seed=3)
    assert found.value == pytest.approx(np.log(4.0), rel=0.03)
    assert (found.paths != largest_lyapunov(SQUARE, start=[0.5], time=1.0, burn_in=0.0, seed=4).paths).all()


def test_seeds_have_the_range_of_sample():
    """0 to 2⁶⁴ − 1, all bits count: the largest gives other numbers than those of its lower half."""
    large, low = 2**64 - 1, 2**32 - 1
    noisy = [simulate([[1.0]], TIMES, problem=DECAY, noise=0.1, seed=seed).observed for seed in (large, low)]
    paths = [largest_lyapunov(LORENZ, time=1.0, burn_in=0.0, seed=seed).paths for seed in (large, low)]
    assert (noisy[0] != noisy[1]).any()
    assert (paths[0] != paths[1]).any()
    for call in (lambda: simulate([[1.0]], TIMES, problem=DECAY, seed=2**64), lambda: largest_lyapunov(DECAY, seed=-1)):
        with pytest.raises(ValueError, match=r"^seed must be ≥ 0"):
            call()


def test_what_is_done_is_done():
    assert simulate([[1.0]], TIMES, problem=DECAY).status.tolist() == [DONE] * 200
