"""Log densities value by value: the energy is their sum and the prior, and each is that of scipy.stats."""

import pickle
import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.stats

from sysid import Series, identify, libraries, likelihoods, priors, systems
from sysid.likelihoods import trajectory
from sysid.likelihoods.trajectory_kernel import shooting_kernel
from tests.sysid.likelihoods.test_error_laws import SCALES, TIMES, density, drawn
from tests.sysid.likelihoods.test_experiments import KINETICS, experiments
from tests.sysid.likelihoods.test_inputs_and_doses import GIVEN, SD, blood
from tests.sysid.likelihoods.test_inputs_and_doses import KINETICS as DRIVEN
from tests.sysid.likelihoods.test_inputs_and_doses import TIMES as HOURS
from tests.sysid.likelihoods.test_stiff_search import ROBERTSON, robertson_data
from tests.sysid.likelihoods.test_trajectories import FIRST, LINEAR, TRUE, prey_and_predators, solution
from tests.sysid.right_hand_sides import growth
from toolkit import sample, samplers

STATES = solution(prey_and_predators, TIMES, FIRST, TRUE)
LAWS = ("gaussian", "lognormal", *SCALES)


def measured(errors):
    """Prey and predators with errors of a law, one value missing."""
    if errors in SCALES:
        return drawn(errors)
    noise = np.random.default_rng(2).standard_normal(STATES.shape)
    values = STATES + noise if errors == "gaussian" else STATES * np.exp(0.1 * noise)
    values[5, 1] = np.nan
    return Series(TIMES, values, LINEAR.states)


def prior_of(names):
    """A proper prior of each kind, in turn."""
    kinds = (priors.gaussian(0.5, 2.0), priors.lognormal(0.3, 1.5), priors.laplace(0.1, 3.0))
    return {name: kinds[1] if name.startswith(("sd", "disp")) else kinds[k % 3] for k, name in enumerate(names)}


def prior_near(system, names):
    """The same, but that of rates is near the usual ones: against other priors a stiff search takes long."""
    rates = zip(system.parameters, system.usual, strict=True)
    return prior_of(names) | {name: priors.lognormal(np.log(usual), 1.5) for name, usual in rates}


def log_prior(law, theta):
    """Log density by scipy.stats, whose Laplace's is −inf where the density is below 1e-308."""
    if law.kind == priors.LAPLACE:
        return -np.abs(theta - law.location) / law.scale - np.log(2.0 * law.scale)
    if law.kind == priors.LOG_NORMAL:
        return scipy.stats.lognorm(law.scale, scale=np.exp(law.location)).logpdf(theta)
    return scipy.stats.norm(law.location, law.scale).logpdf(theta)


def drug():
    """The blood and a concentration in an unknown volume, with inputs and doses, some values missing."""
    rng = np.random.default_rng(1)
    values = np.stack([blood(1.0, 0.3, HOURS), blood(1.0, 0.3, HOURS) / 3.0], axis=1)
    values += SD * rng.standard_normal(values.shape)
    values[4, 0] = values[7, 1] = values[10] = np.nan
    return Series(HOURS, values, ("blood", "level"), inputs=GIVEN)


def level(t, x, p, u):
    return np.exp(-p[0] * 0.1) * x[1] / 3.0 + 0.01 * u[0] + 1e-3 * t


def kept(data, model, **options):
    """A problem whose search for a start is short."""
    return lambda prior: identify(data, model, likelihood=trajectory(**options), prior=prior, n_searches=0)


CASES = {
    **{law: kept(measured(law), LINEAR, errors=law, step=0.25) for law in LAWS},
    "known noise": kept(measured("student"), LINEAR, errors="student", noise=1.5, dof=2.5, step=0.25),
    "fixed start": kept(measured("gaussian"), LINEAR, start="fixed", step=0.25),
    "doses": kept(drug(), DRIVEN, start=[0.0, 0.0], observe={"level": level}, step=0.5),
    "experiments": kept(experiments(), KINETICS, own=("out", "sd(blood)"), known={"back": 0.4}, step=0.5),
    "one with a known rate": kept(experiments()[0], KINETICS, known={"back": 0.4}, step=0.5),
    "stiff": lambda prior: kept(robertson_data(), ROBERTSON, errors="lognormal", method="sdirk4")(prior),
}


@pytest.mark.slow_cases("stiff")  # the same sums, of a kernel that takes ten seconds to compile
@pytest.mark.parametrize("case", CASES)
def test_the_energy_is_that_of_all_values_and_the_prior(case):
    """In scaled positions, at draws about the mode: all constants but the prior's own, and Jacobians of logarithms."""
    names = CASES[case](None).names
    law = prior_near(ROBERTSON, names) if case == "stiff" else prior_of(names)
    problem = CASES[case](law)
    start = problem.usual_start()
    sizes = np.where(problem.coordinates.log, 1.0, np.maximum(np.abs(start), 0.1))
    problem = problem.scaled(start, np.diag(0.002 * sizes))
    positions = np.random.default_rng(0).standard_normal((70, problem.dim))
    theta = problem.parameters(positions)
    values = problem._log_densities(theta)
    series = problem.data if isinstance(problem.data, list) else [problem.data]
    taken_for_exact = 2 if case == "fixed start" else 0  # the first row
    assert values.shape == (70, sum(int((~np.isnan(one.values)).sum()) for one in series) - taken_for_exact)
    wanted = -values.sum(axis=1) - np.log(theta[:, problem.coordinates.log]).sum(axis=1)
    for k, name in enumerate(problem.names):
        wanted -= log_prior(law[name], theta[:, k]) + law[name].constant
    energy = problem.target.evaluate(positions)[0]
    assert np.isfinite(energy).all()
    np.testing.assert_allclose(wanted, energy, rtol=0.0, atol=1e-8 * (1.0 + np.abs(values).sum(axis=1).max() / 1e4))


@pytest.mark.parametrize("errors", LAWS)
def test_each_value_has_its_density(errors):
    data = measured(errors)
    problem = kept(data, LINEAR, errors=errors, step=1 / 32)(None)
    theta = problem.prepared.start
    states = solution(prey_and_predators, TIMES, theta[4:6], theta[:4])
    there = ~np.isnan(data.values)
    if errors == "gaussian":
        wanted = scipy.stats.norm(states, theta[6:]).logpdf(data.values)
    elif errors == "lognormal":
        wanted = scipy.stats.lognorm(theta[6:], scale=states).logpdf(data.values)
    else:
        wanted = density(errors, states, theta[6:])(data.values)
    np.testing.assert_allclose(problem._log_densities(theta[None])[0], wanted[there], atol=1e-5)
    (found,) = problem.prepared.values.measured()
    rows, columns = np.nonzero(there)
    np.testing.assert_array_equal(found.times, TIMES[rows])
    assert found.quantities == tuple(LINEAR.states[d] for d in columns)


def test_functions_and_doses_are_in_their_places():
    """Of the closed form: the value at a dose is that before it, and a function has the inputs of its time."""
    problem = kept(drug(), DRIVEN, start=[0.0, 0.0], observe={"level": level}, noise=SD, step=0.02)(None)
    found = problem._log_densities(np.array([[1.0, 0.3]]))[0]
    inside = blood(1.0, 0.3, HOURS)
    levels = np.exp(-0.1) * inside / 3.0 + 0.01 * (HOURS >= 6.0) + 1e-3 * HOURS
    data = drug().values
    wanted = scipy.stats.norm(np.stack([inside, levels], axis=1), SD).logpdf(data)
    np.testing.assert_allclose(found, wanted[~np.isnan(data)], atol=1e-5)


def test_kicks_between_segments_are_no_data():
    """With its kicks' Gaussian densities taken off, the energy is minus the sum."""
    problem = kept(measured("gaussian"), LINEAR, segments=3, gap=0.05, step=0.25)(None)
    energy = problem.prepared.values
    theta = problem.prepared.start * np.exp(0.01 * np.random.default_rng(0).standard_normal((5, problem.dim)))
    path = energy.evaluate_with_path(theta)[2]
    table = energy._table()
    starts = np.flatnonzero(table[:, 3])[1:]
    steps = table[:, 2].astype(int)
    kicks = np.zeros(5)
    for k, row in enumerate(starts, 1):
        at = k + steps[:row].sum()
        kicks += scipy.stats.norm(path[:, at - 1], energy.numbers[6:8]).logpdf(path[:, at]).sum(axis=1)
    total = -energy.evaluate(theta)[0]
    assert (np.abs(kicks) > 1.0).all()
    np.testing.assert_allclose(energy.log_densities(theta).sum(axis=1) + kicks, total, atol=1e-8)


def test_where_a_solution_leaves_its_limit_the_density_is_0():
    problem = kept(measured("gaussian"), LINEAR, noise=1.0, limit=200.0, step=0.25)(None)
    theta = np.array([problem.prepared.start, [5.0, 0.0, 0.1, 0.0, 150.0, 1.0]])
    values = problem._log_densities(theta)
    assert np.isfinite(values[0]).all()
    assert (values[1] == -np.inf).all()


def linear_data(seed=0, n=25):
    """Velocities of a line with Gaussian errors; two series."""
    rng = np.random.default_rng(seed)
    found = []
    for k in range(2):
        times = np.linspace(0.0, 2.0, n)
        states = np.stack([np.exp(-times - k), np.cos(times)], axis=1)
        velocities = states @ [[-1.0, 0.3], [0.2, 0.0]] + 0.1 * rng.standard_normal(states.shape)
        found.append(Series(times, states, ("x", "y"), velocities=velocities, name=f"part {k}"))
    return found


@pytest.mark.parametrize("noise", ["estimated", (0.1, 0.2)])
def test_velocities_one_by_one(noise):
    problem = identify(
        linear_data(), libraries.polynomial(("x", "y"), 1), likelihood=likelihoods.derivative(noise=noise)
    )
    theta = problem.posterior.mean + np.random.default_rng(0).standard_normal((9, problem.dim))
    values = problem._log_densities(theta)
    assert values.shape == (9, 100)
    np.testing.assert_allclose(values.sum(axis=1), -problem.target.evaluate(theta)[0], rtol=1e-12)
    if noise != "estimated":
        (one, two), coefficients = linear_data(), problem.model.coefficients(theta[4])
        for series, part in ((one, values[4, :50]), (two, values[4, 50:])):
            predicted = problem.model.library.evaluate(series.values) @ coefficients
            wanted = scipy.stats.norm(predicted, noise).logpdf(series.velocities)
            np.testing.assert_allclose(part, wanted.ravel(), rtol=1e-10)


def test_velocities_by_differences_that_need_a_missing_value_are_left_out():
    """A row without y has no terms; its neighbours have no velocity of y."""
    (series, _), library = linear_data(), libraries.polynomial(("x", "y"), 1)
    values = np.array(series.values)
    values[5, 1] = np.nan
    data = Series(series.times, values, series.states)
    law = likelihoods.derivative(velocities="finite_difference", noise=0.1)
    problem = identify(data, library, likelihood=law)
    theta = problem.posterior.mean[None] + 0.1
    found = problem._log_densities(theta)
    np.testing.assert_allclose(found.sum(axis=1), -problem.target.evaluate(theta)[0], rtol=1e-12)
    (one,) = problem.prepared.values.measured()
    assert found.shape == (1, 46)
    assert one.quantities[:12] == ("x", "y") * 4 + ("x", "x", "x", "y")
    np.testing.assert_array_equal(one.times[8:12], series.times[[4, 6, 7, 7]])


def test_what_has_no_values_says_why():
    data, library = linear_data(), libraries.polynomial(("x", "y"), 1)
    run = sample(identify(data, library), samplers.hmc(0.1), n_steps=5, seed=0)
    with pytest.raises(ValueError, match=r"likelihood must be .* but weak fits its path to all values together"):
        identify(data, library, likelihood="weak").log_likelihood(run)
    for options, why in (({"batch_size": 5}, "batch_size"), ({"noise": "mean"}, "has no noise, and so no density")):
        with pytest.raises(ValueError, match=f"likelihood must be one whose values are independent .*{why}"):
            identify(data, library, likelihood=likelihoods.derivative(**options)).log_likelihood(run)


def test_runs_of_other_data_and_draws_that_are_not_finite_are_refused():
    library = libraries.polynomial(("x", "y"), 1)
    one, other = (identify(linear_data(seed), library) for seed in (0, 1))
    run = sample(one, samplers.hmc(0.01), n_steps=5, n_chains=2, seed=0)
    assert one.log_likelihood(run).shape == (2, 5, 100)
    with pytest.raises(ValueError, match=r"run must be one of this problem, .* with other data, another model"):
        other.log_likelihood(run)
    run.replica_draws[1, 0, 2] = np.nan
    with pytest.raises(ValueError, match="run must have draws that are all finite, got some not"):
        one.log_likelihood(run)
    with pytest.raises(TypeError, match="run must be a Run"):
        one.log_likelihood(run.draws)


@pytest.mark.parametrize("case", ["negative_binomial", "doses", "experiments"])
def test_a_pickled_problem_has_the_same_densities(case):
    problem = CASES[case](None)
    again = pickle.loads(pickle.dumps(problem))
    theta = problem.prepared.start[None]
    np.testing.assert_array_equal(again._log_densities(theta), problem._log_densities(theta))


@pytest.mark.parametrize("case", ["doses", "experiments", "known noise"])
def test_a_pickle_that_holds_a_kernel_several_times_makes_it_once(case):
    """Each would be compiled on its own, which takes seconds."""
    content = pickle.dumps(CASES[case](None))
    before = shooting_kernel.cache_info().misses
    pickle.loads(content)
    assert shooting_kernel.cache_info().misses - before <= 1


# Leave-one-out, against closed forms.


def arviz():
    """ArviZ, whatever it warns of when it is imported."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("arviz")


def elpd(found):
    """The estimate of either version of ArviZ."""
    return float(found["elpd_loo"] if hasattr(found, "elpd_loo") else found.elpd)


def pointwise(found):
    """The estimate of each value."""
    return np.asarray(found["loo_i"] if hasattr(found, "loo_i") else found.elpd_i)


LINE = np.linspace(0.0, 3.0, 80)
NOISE = 0.1


def of_degree(degree):
    """Velocities quadratic in the state, and a polynomial with a Gaussian prior."""
    states = LINE[:, None] / 2.0
    velocities = 0.4 - states + 0.8 * states**2 + NOISE * np.random.default_rng(3).standard_normal(states.shape)
    data = Series(LINE, states, ("x",), velocities=velocities)
    library = libraries.polynomial(("x",), degree)
    law = likelihoods.derivative(noise=NOISE)
    return identify(data, library, likelihood=law, prior=priors.gaussian(0.0, 2.0)).scaled()


def drawn_exactly(problem):
    """A run whose draws are exact and independent."""
    run = sample(problem, samplers.hmc(0.6), n_steps=4_000, n_chains=4, seed=1)
    return replace(run, replica_draws=problem.truth.independent_draws(16_000, seed=0).reshape(4, 1, 4_000, -1))


def test_loo_is_exact_leave_one_out():
    """Of v ~ N(0, noise² + 4 Θ Θᵀ): the law of each given all others, by the inverse of the covariance."""
    arviz()
    problem = of_degree(2)
    terms = problem.model.library.evaluate(problem.data.values)
    inverse = np.linalg.inv(NOISE**2 * np.eye(80) + 4.0 * terms @ terms.T)
    velocities = problem.data.velocities[:, 0]
    variances = 1.0 / np.diag(inverse)
    wanted = scipy.stats.norm(velocities - variances * (inverse @ velocities), np.sqrt(variances)).logpdf(velocities)
    found = problem.loo(drawn_exactly(problem))
    assert np.asarray(found.pareto_k).max() < 0.5
    np.testing.assert_allclose(pointwise(found), wanted, atol=0.02)
    assert elpd(found) == pytest.approx(wanted.sum(), abs=0.08)
    in_sample = scipy.stats.norm(terms @ np.linalg.lstsq(terms, velocities)[0], NOISE).logpdf(velocities).sum()
    assert in_sample > wanted.sum() + 2.0  # what forgetting to leave out would give


def test_compare_prefers_the_model_that_made_the_data():
    az, trees = arviz(), {}
    for degree in (1, 2):
        problem = of_degree(degree)
        tree = problem.to_datatree(drawn_exactly(problem), log_likelihood=True)
        trees[f"degree {degree}"] = az.from_datatree(tree) if hasattr(az, "from_datatree") else tree
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = az.compare(trees)
    assert table.index[0] == "degree 2"


def test_the_tree_says_what_each_value_is_and_takes_resampled_draws():
    pytest.importorskip("xarray")
    problem = kept(experiments(), KINETICS, step=0.5)(None).scaled()
    run = sample(problem, samplers.hmc(0.2), n_steps=12, n_chains=2, seed=0, init=problem.starts(2, seed=0))
    assert "log_likelihood" not in problem.to_datatree(run).children
    group = problem.to_datatree(run, log_likelihood=True)["log_likelihood"]
    np.testing.assert_array_equal(group["y"], problem.log_likelihood(run))
    assert list(group["series"].values[[0, -1]]) == [problem.data[0].name, problem.data[-1].name]
    first = problem.data[0]
    row, column = np.argwhere(~np.isnan(first.values))[5]
    assert group["time"].values[5] == first.times[row]
    assert group["quantity"].values[5] == first.states[column]
    weights = np.ones((2, 1, 12))
    weights[:, :, :6] = 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        weighted = replace(run, replica_weights=weights)
        tree = problem.to_datatree(weighted, log_likelihood=True)
    picked = tree["sample_stats"]["source_draw"].values
    assert picked.min() == 6
    np.testing.assert_array_equal(
        tree["log_likelihood"]["y"], np.take_along_axis(problem.log_likelihood(run), picked[:, :, None], axis=1)
    )


def test_hot_draws_have_no_loo():
    problem = of_degree(1)
    run = sample(problem, samplers.sgld(0.01, temperature=2.0), n_steps=20, seed=0)
    assert problem.log_likelihood(run).shape == (1, 20, 80)
    with pytest.raises(ValueError, match="run must have its draws at temperature 1, got 2 to 2"):
        problem.loo(run)


def test_draws_without_a_solution_have_no_loo():
    """Where one leaves its limit, log densities are −inf, of which ArviZ makes nan."""
    pytest.importorskip("xarray")
    law = {"k": priors.lognormal(-1.0, 1.0), "sd(x)": priors.lognormal(-1.5, 1.0)}
    model = systems.own(growth, states=("x",), parameters=("k",), usual=(0.5,), start=(1.0,))
    times = np.linspace(0.0, 3.0, 8)
    data = Series(times, np.exp(0.5 * times)[:, None], ("x",))
    problem = identify(data, model, likelihood=trajectory(start=(1.0,), step=0.1), prior=law)
    run = sample(problem, samplers.hmc(0.05), n_steps=20, n_chains=2, seed=0, init=problem.starts(2, seed=0))
    run.replica_draws[1, 0, 3, 0] = 5.0
    assert np.isneginf(problem.log_likelihood(run)[1, 3]).all()
    with pytest.raises(ValueError, match="run must have draws that all have a density of the data, got 1 of 40"):
        problem.loo(run)


@pytest.mark.parametrize("name", ["gaussian", "doses", "experiments", "known noise"])
def test_normal_scores_are_those_of_the_densities(name):
    """−½ z² is the log density of Gaussian errors, up to a constant of each quantity; Student's tails are the same."""
    problem = CASES[name](None)
    values, theta = problem.prepared.values, problem.prepared.start[None]
    (scores,), (densities,) = values.normal_scores(theta), values.log_densities(theta)
    if name == "known noise":
        data, law = measured("student").values, scipy.stats.t(2.5)
        sides = 2.0 * law.sf(np.sqrt(2.5 * np.expm1(-2.0 * (densities - law.logpdf(0.0) + np.log(1.5)) / 3.5)))
        np.testing.assert_allclose(scipy.stats.norm.sf(np.abs(scores)), 0.5 * sides, rtol=1e-6)
        assert scores.size == np.isfinite(data).sum()
        return
    constants = np.round(densities + 0.5 * scores**2, 7)
    quantities = [(k, q) for k, one in enumerate(values.measured()) for q in one.quantities]
    assert len(set(constants)) <= len(set(quantities))
    assert problem.residual_check.doubts() == []


def test_residuals_at_a_mode_are_those_of_the_weak_path():
    """Errors that correlate by 0.8, by two likelihoods: the same residuals, and a warning of the estimates."""
    rng, times = np.random.default_rng(3), np.linspace(0.0, 10.0, 101)
    errors = rng.standard_normal((101, 2))
    for k in range(1, 101):
        errors[k] = 0.8 * errors[k - 1] + 0.6 * errors[k]
    path = solution(prey_and_predators, times, FIRST, TRUE)
    data = Series(times, path + 0.05 * path.std(axis=0) * errors, LINEAR.states)
    checks = [
        identify(data, LINEAR, likelihood=likelihood, **options).residual_check
        for likelihood, options in (("weak", {}), (trajectory(), {"n_searches": 0}))
    ]
    assert checks[0].has_memory.all()
    np.testing.assert_allclose(checks[0].correlation, checks[1].correlation, atol=1e-3)
    problem = identify(data, LINEAR, likelihood="weak")
    run = sample(problem, samplers.sgld(1e-6), n_steps=20, n_chains=2, seed=1, init=problem.starts(2, seed=1))
    with (
        pytest.warns(UserWarning, match="estimates: R-hat"),  # of 20 draws
        pytest.warns(UserWarning, match="estimates: the residuals contradict independent errors"),
    ):
        problem.estimates(run)
    assert identify(data, LINEAR, likelihood=likelihoods.derivative(velocities="spline")).residual_check is None
