"""``tune``: what it finds, keeps, spends and refuses; and ``sample`` without a sampler."""

import dataclasses
import pickle
import re
from types import SimpleNamespace

import numpy as np
import pytest

import toolkit
from targets import classics, constrained, domains, mixtures, posteriors, shapes
from toolkit import Sampler, boundaries, from_callable, samplers, schedules, stopping, tune
from toolkit.diagnostics import ess
from toolkit.problem.definition import as_problem
from toolkit.tempering import Contour, ReplicaExchange, adapted_correction
from toolkit.tuning import attempts
from toolkit.tuning.result import Cost, Tuned, cost_in_words
from toolkit.tuning.tuned_run import narrow_places, places_in_doubt, unvisited, with_tuning

FEW = 60_000


@pytest.fixture(scope="module")
def tuned():
    return tune(mixtures.cosine25(), seed=1, progress=False)


def test_far_modes_get_a_ladder_and_one_mode_none(tuned):
    assert isinstance(tuned.sampler.tempering, ReplicaExchange)
    assert tuned.sampler.name == "pt_hmc"
    assert 4.0 <= tuned.sampler.temperatures[-1] <= 128.0
    assert tuned.sampler.temperatures[0] == 1.0
    for target in (classics.correlated_gaussian(correlation=0.0), classics.badly_scaled_gaussian()):
        alone = tune(target, seed=1, progress=False)
        assert alone.sampler.tempering is None
        assert alone.sampler.name == "hmc"


@pytest.mark.parametrize("seed", [0, 2])
def test_many_modes_between_walls_get_a_ladder(seed):
    """Trajectories are not made longer before hot chains have had steps to mix: walls reject long ones."""
    flower = constrained(mixtures.cosine25(), shapes.flower(petals=5, offset=3.0, radius=2.0))
    found = tune(flower, seed=seed, progress=False)
    assert isinstance(found.sampler.tempering, ReplicaExchange)
    assert not found.warnings


def test_the_same_seed_finds_the_same_bits(tuned):
    for threads in (1, 2):
        again = tune(mixtures.cosine25(), seed=1, threads=threads, progress=False)
        assert again.sampler == tuned.sampler
        assert (again.init == tuned.init).all()
        assert again.rounds == tuned.rounds
    other = tune(mixtures.cosine25(), seed=2, progress=False)
    assert other.sampler != tuned.sampler


def test_it_spends_what_it_may_and_says_so(tuned):
    assert tuned.cost.gradients >= sum(each.gradients for each in tuned.rounds)
    assert tuned.cost.gradients < 1.3 * 200_000
    assert f"{tuned.cost.gradients:,} gradients" in tuned.report
    assert "temperatures" in str(tuned)
    assert tune(mixtures.cosine25(), seed=1, n_gradients=FEW, progress=False).cost.gradients < 2.0 * FEW


def test_the_report_says_what_a_gradient_takes(tuned):
    assert cost_in_words(tuned.cost) in tuned.report
    assert cost_in_words(Cost(200_000, 0.1234)) == "200,000 gradients in 0.12 s, 0.62 µs each"
    assert cost_in_words(Cost(200_000, 264.3)) == "200,000 gradients in 260 s, 1300 µs each"


def test_numbers_have_four_digits(tuned):
    for value in (*tuned.sampler.step_sizes, *tuned.sampler.temperatures):
        assert float(f"{value:.4g}") == value


def test_a_badly_scaled_target_gets_a_scale():
    target = classics.badly_scaled_gaussian()
    scale = np.array(tune(target, seed=3, progress=False).sampler.scale)
    ratio = scale / np.sqrt(np.diag(target.truth.covariance))
    assert ratio.max() / ratio.min() < 2.0
    assert tune(target, samplers.sgld(boundary=boundaries.ignore()), seed=3, n_gradients=FEW).sampler.scale is not None


@pytest.mark.parametrize("seed", [0, 7])
def test_a_funnel_gets_no_scale_and_long_paths(seed):
    """Curvature along the neck is of other coordinates than in the mouth: of no use is a scale by its mean."""
    sampler = tune(classics.funnel(dim=10), seed=seed, progress=False).sampler
    assert sampler.scale is None
    assert sampler.step_sizes[0] <= 0.2
    assert sampler.dynamics.leapfrogs * sampler.step_sizes[0] > 0.3


def test_temperatures_without_a_law_are_left_out():
    """(1 + x²/3)^(−5/2) to the power 1/T has no integral in the plane for T ≥ 2.5."""
    heavy = classics.student_mixture([[-4.0, 0.0], [4.0, 0.0]], 1.0, 3.0, [0.3, 0.7])
    for seed in (1, 2):
        assert tune(heavy, seed=seed, progress=False).sampler.temperatures[-1] <= 2.0


def test_the_target_keeps_its_temperature():
    found = tune(mixtures.cosine25(), samplers.pt_hmc((0.1, 0.1), temperatures=(2.0, 4.0)), seed=1, n_gradients=FEW)
    assert found.sampler.temperatures[0] == 2.0
    assert found.sampler.name == "pt_hmc"


CONSTRUCTORS = sorted(set(samplers.__all__) - {"Sampler"})


@pytest.mark.parametrize("name", CONSTRUCTORS)
def test_every_constructor_keeps_its_parts(name):
    problem = mixtures.gaussian_mixture([[-1.5, 0.0], [1.5, 0.0]], 0.7)
    own = {"boundary": boundaries.ignore()} if name in ("r2sgld", "r2sghmc") else {}
    begun = getattr(samplers, name)(**own)
    found = tune(problem, begun, seed=4, n_gradients=40_000, progress=False)
    sampler = found.sampler
    assert (sampler.name, sampler.dynamics.name) == (begun.name, begun.dynamics.name)
    assert type(sampler.tempering) is type(begun.tempering)
    assert sampler.boundary == begun.boundary
    assert sampler.schedule.name[:6] == begun.schedule.name[:6]
    assert sampler.step_sizes != begun.step_sizes
    assert found.init.shape == (found.n_chains, sampler.n_replicas, 2)
    assert np.isfinite(found.init).all()
    assert isinstance(found.report, str)
    assert found.report.startswith(begun.name)


def regression_by(batch_size, **options):
    """A linear regression of 300 data in four dimensions, by minibatches."""
    rng = np.random.default_rng(12)
    features = rng.standard_normal((300, 4)) * [1.0, 2.0, 0.5, 1.0]
    labels = features @ [1.0, -2.0, 0.5, 1.0] + rng.standard_normal(300)
    return posteriors.linear_regression(features, labels, noise=1.0, prior=1.0, batch_size=batch_size, **options)


@pytest.mark.parametrize("name", sorted(set(CONSTRUCTORS) - {"hmc", "mala", "pt_hmc", "pt_mala", "svgd"}))
def test_minibatches_spend_what_they_may(name):
    """A partition found once (6.7 times, where every race had a pilot), cycles that a race has steps for (1.9)."""
    own = {"boundary": boundaries.ignore()} if name in ("r2sgld", "r2sghmc") else {}
    found = tune(regression_by(30), getattr(samplers, name)(**own), seed=1, n_gradients=20_000, progress=False)
    assert found.cost.gradients <= 1.2 * 20_000
    assert found.sampler.step_sizes[0] < 1e-3
    if isinstance(found.sampler.tempering, Contour):
        assert found.sampler.tempering.partition is not None


@pytest.mark.parametrize("seed", [1, 2])
def test_swaps_by_minibatches_leave_the_law(seed):
    """F is the variance of an energy's noise, N²/n Var u; tuned to a rate of swaps it made sds 2.2 times too wide."""
    target = regression_by(32)
    found = tune(target, samplers.resgld(), seed=seed, progress=False)
    rng = np.random.default_rng(12)
    features, noise = rng.standard_normal((300, 4)) * [1.0, 2.0, 0.5, 1.0], rng.standard_normal(300)
    residuals = noise - features @ (target.truth.mean - [1.0, -2.0, 0.5, 1.0])
    exact = 300**2 / 32 * (0.5 * residuals**2).var()
    assert 0.8 < found.sampler.tempering.correction / exact < 2.0  # residuals are larger away from the mode
    assert any("replica exchange does not pay here" in sentence for sentence in found.warnings)
    run = toolkit.sample(target, found, seed=seed, n_steps=20_000, progress=False)
    spread = run.draws.reshape(-1, 4).std(axis=0) / np.sqrt(np.diag(target.truth.covariance))
    error = 4.5 / np.sqrt(2.0 * 32)  # chains of about one independent draw each
    assert (np.abs(spread - 1.0) < 0.03 + error).all()
    mixed = tune(target, samplers.resgld(correction=adapted_correction(0.3)), seed=seed, progress=False)
    assert any("mixes the laws of the temperatures" in sentence for sentence in mixed.warnings)


def test_steins_particles_are_tuned_by_minibatches_and_refused_in_a_domain():
    found = tune(regression_by(30), samplers.svgd(), seed=1, n_gradients=20_000, progress=False)
    assert found.cost.gradients <= 1.2 * 20_000
    assert 0.0 < found.sampler.step_sizes[0] < 1.0
    assert np.isfinite(found.init).all()
    with pytest.raises(ValueError, match="sampler must not be 'svgd' in the domain"):
        tune(constrained(mixtures.cosine25(), shapes.heart()), samplers.svgd(), seed=1)


def test_rungs_are_added_where_minibatches_let_them_swap():
    found = tune(regression_by(100), samplers.resgld(temperatures=(1.0, 1.5)), seed=1, progress=False)
    assert 4 < len(found.sampler.temperatures) < 16
    assert not found.warnings
    assert max(found.rounds[-2].rejection) < 0.7


def test_noise_that_depends_on_the_place_is_told():
    found = tune(regression_by(32, refresh_every=50), samplers.resgld(temperatures=(1.0, 8.0)), seed=1, progress=False)
    assert any("replica exchange does not pay here" in sentence for sentence in found.warnings)


@pytest.mark.parametrize("sampler", [samplers.sgld(boundary=boundaries.reflect()), samplers.r2sghmc(), None])
def test_walls_are_kept(sampler):
    problem = constrained(mixtures.cosine25(), shapes.heart())
    found = tune(problem, sampler, seed=5, n_gradients=FEW, progress=False)
    assert problem.contains(found.init.reshape(-1, 2)).all()
    assert found.sampler.boundary.kind == ("reject" if sampler is None else "reflect")


def test_bad_arguments_are_refused():
    problem = mixtures.cosine25()
    for arguments, error, words in (
        (({}, None), TypeError, "problem must be"),
        ((problem, 3), TypeError, "sampler must be None or a Sampler, got 3"),
        ((problem, samplers.sgld([0.1, 0.2])), ValueError, "sampler must have one setting"),
    ):
        with pytest.raises(error, match=words):
            tune(*arguments, seed=0)
    for options, words in (
        ({"seed": -1}, "seed must be"),
        ({"seed": 0, "n_gradients": 10}, "n_gradients must be ≥ 20000"),
        ({"seed": 0, "init": [[0.0]]}, "init must be a Spread or have shape"),
        ({"seed": 0, "threads": 0}, "threads must be"),
    ):
        with pytest.raises(ValueError, match=words):
            tune(problem, **options)
    inside = constrained(problem, shapes.heart())
    with pytest.raises(ValueError, match="init must lie inside"):
        tune(inside, seed=0, init=[[50.0, 50.0]])


# Without a sampler.


def z_scores(run, mean):
    """Of the means of all coordinates."""
    draws = run.draws.reshape(-1, run.draws.shape[2])
    return np.abs(draws.mean(axis=0) - mean) / (draws.std(axis=0) / np.sqrt(ess(run.draws)))


@pytest.mark.slow_cases("grid", "coin")
@pytest.mark.parametrize(
    "problem",
    [
        mixtures.gaussian_grid25(),
        classics.egg_crate(),
        classics.coin_flip(),
        constrained(mixtures.cosine25(), shapes.flower(petals=5, offset=3.0, radius=2.0)),
        classics.correlated_gaussian(dim=16),
    ],
    ids=["grid", "crate", "coin", "flower", "gaussian"],
)
def test_a_problem_and_a_seed_are_enough(problem):
    """All within 4.5 standard errors, and all modes found; the run says that it has what was wanted."""
    run = toolkit.sample(problem, seed=7, progress=False)
    exact = problem.truth.independent_draws(100_000, seed=1)  # of a truth between walls quicker than quadrature
    assert run.stopping.satisfied
    assert not run.warnings
    assert (z_scores(run, exact.mean(axis=0)) < 4.5).all()
    assert ess(run.draws).min() >= 1000.0
    weights = problem.truth.memberships(exact).mean(axis=0)
    if len(weights) > 1:
        found = run.problem.truth.memberships(run.draws.reshape(-1, 2)[::5]).mean(axis=0)
        error = np.sqrt(weights * (1.0 - weights) / 1000.0)
        assert (np.abs(found - weights) < 4.5 * error).all()
    assert run.tuning.gradients > 0
    assert "tuned with seed" in run.tuning.report


def test_minibatches_get_the_right_spread():
    """By the law of what their noise heats: 2 % of an sd is allowed; and 4.5 standard errors of the sd."""
    rng = np.random.default_rng(11)
    features = rng.standard_normal((40, 3)) * [1.0, 2.0, 0.5]
    labels = features @ [1.0, -2.0, 0.5] + rng.standard_normal(40)
    target = posteriors.linear_regression(features, labels, noise=1.0, prior=1.0, batch_size=4)
    run = toolkit.sample(target, seed=2, progress=False)
    spread = run.draws.reshape(-1, 3).std(axis=0) / np.sqrt(np.diag(target.truth.covariance))
    allowed = 0.02 + 4.5 / np.sqrt(2.0 * ess(run.draws))
    assert run.sampler.name == "sghmc"
    assert (np.abs(spread - 1.0) < allowed).all()


def test_a_tuned_sampler_is_taken_with_its_starts(tuned):
    problem = mixtures.cosine25()
    run = toolkit.sample(problem, tuned, seed=3, n_steps=2_000, progress=False)
    same = toolkit.sample(
        problem, tuned.sampler, seed=3, n_steps=2_000, n_chains=tuned.n_chains, init=tuned.init,
        burn_in=run.burn_in, thin=run.thin, progress=False,
    )  # fmt: skip
    assert (run.draws == same.draws).all()
    assert run.tuning.report == tuned.report
    assert same.tuning is None
    ended = toolkit.sample(problem, tuned, seed=3, until=stopping.ess(300), progress=False)
    assert ended.stopping.satisfied
    assert ended.burn_in == tuned.burn_in
    more = toolkit.sample(problem, tuned, seed=3, n_steps=500, n_chains=3, burn_in=7, thin=2, progress=False)
    assert (more.n_chains, more.burn_in, more.thin) == (3, 7, 2)
    chunks = list(toolkit.stream(problem, tuned, seed=3, n_steps=2_000, progress=False))
    joined = np.concatenate([chunk.draws for chunk in chunks], axis=1)
    assert (joined == run.draws).all()
    kept = toolkit.sample(problem, tuned, seed=3, n_steps=500, keep_draws=False, progress=False)
    assert kept.draws.shape[1] == 0


def test_no_bit_depends_on_threads_or_a_second_call():
    problem = mixtures.three_on_a_line()
    runs = [toolkit.sample(problem, seed=5, threads=threads, progress=False) for threads in (1, 2)]
    assert (runs[0].draws == runs[1].draws).all()
    assert runs[0].n_steps == runs[1].n_steps


def test_a_run_that_began_anew_says_so_and_counts_both(monkeypatch, tmp_path):
    monkeypatch.setattr(attempts, "ATTEMPTS", ((20_000, 2_000), (20_000, 200_000)))
    problem = mixtures.gaussian_mixture([[0.0, 0.0]], 1.0)
    run = toolkit.sample(problem, seed=3, progress=False)
    first = toolkit.sample(problem, seed=3, until=stopping.ess(1e9) | stopping.gradients(2_000), progress=False)
    assert run.stopping.satisfied
    assert run.seed != 3 == first.seed
    before, seed = re.search(r"of ([\d,]+) gradients together, .* seed, (\d+), was made", run.tuning.report).groups()
    own = int(re.search(r"cost +([\d,]+) gradients", run.tuning.report)[1].replace(",", ""))
    assert int(seed) == run.seed
    assert int(before.replace(",", "")) == run.tuning.gradients - own
    assert int(before.replace(",", "")) == first.tuning.gradients + first.gradient_evaluations
    assert "together" not in first.tuning.report
    assert run.given_seed == 3 == first.given_seed
    for text in (str(run), repr(run), run._repr_html_()):
        assert "seed 3" in text or "seed=3" in text
        assert str(run.seed) not in text
    run.save(tmp_path / "run.npz")
    again = toolkit.load(tmp_path / "run.npz", problem)
    assert (again.seed, again.given_seed) == (run.seed, 3)
    assert toolkit.sample(problem, seed=again.given_seed, progress=False).draws.tobytes() == run.draws.tobytes()


def test_the_report_is_kept_in_files(tuned, tmp_path):
    run = toolkit.sample(mixtures.cosine25(), tuned, seed=3, n_steps=400, progress=False)
    run.save(tmp_path / "run.npz")
    again = toolkit.load(tmp_path / "run.npz", mixtures.cosine25())
    assert again.tuning == run.tuning
    assert "tuning" in str(again)


def test_it_goes_on_from_a_checkpoint(tuned, tmp_path):
    problem, path = mixtures.cosine25(), tmp_path / "run.ckpt"
    part = toolkit.sample(problem, tuned, seed=3, n_steps=800, checkpoint=path, burn_in=50, thin=1, progress=False)
    whole = toolkit.sample(problem, tuned, seed=3, n_steps=1600, checkpoint=path, burn_in=50, thin=1, progress=False)
    once = toolkit.sample(problem, tuned, seed=3, n_steps=1600, burn_in=50, thin=1, progress=False)
    assert part.n_steps == 800
    assert (whole.draws == once.draws).all()


def test_a_tuned_sampler_pickles(tuned):
    again = pickle.loads(pickle.dumps(tuned))
    assert isinstance(again, Tuned)
    assert again.sampler == tuned.sampler
    assert again.report == tuned.report
    with pytest.raises(ValueError, match="was tuned for 'cosine25' of dimension 2"):
        toolkit.sample(mixtures.three_on_a_line(), tuned, seed=0)
    with pytest.raises(TypeError, match="sampler must be None, a Sampler or a Tuned, got 3"):
        toolkit.sample(mixtures.three_on_a_line(), 3, seed=0, n_steps=10)


def test_a_mode_that_the_run_has_lost_is_told(tuned):
    problem = mixtures.cosine25()
    run = toolkit.sample(problem, tuned, seed=3, n_steps=4_000, progress=False)
    assert unvisited(run, tuned) == ()
    draws = run.replica_draws.copy()
    draws[draws[..., 0] > 0.9] = [-1.0, 0.0]  # the modes on the right
    lost = toolkit.Run(**{**{f: getattr(run, f) for f in run.__dataclass_fields__}, "replica_draws": draws})
    (sentence,) = unvisited(lost, tuned)
    assert "places of low energy that the tuning had come to have no draw near" in sentence
    assert any(sentence in warning for warning in with_tuning(lost, tuned).warnings)


def test_a_python_function_is_looked_at_too_for_a_hundredth_of_the_calls(tuned):
    """A lost mode, and moves too long for a narrow place, are told as of a compiled target."""
    problem, points = mixtures.cosine25(), []

    def counted(x):
        points.append(len(x))
        return problem.evaluate(x)

    mine = from_callable(counted, dim=2, name="mine")
    run = toolkit.sample(problem, tuned, seed=3, n_steps=40_000, thin=20, progress=False)
    draws = run.replica_draws.copy()
    draws[draws[..., 0] > 0.9] = [-1.0, 0.0]
    parts = {f: getattr(run, f) for f in run.__dataclass_fields__}
    lost = toolkit.Run(**{**parts, "replica_draws": draws, "problem": as_problem(mine), "tuning": None})
    assert any("have no draw near" in sentence for sentence in with_tuning(lost, tuned).warnings)
    assert 0 < sum(points) <= min(2_000, 0.01 * run.gradient_evaluations)
    found = toolkit.Run(**{**parts, "problem": as_problem(mine), "tuning": None})
    assert with_tuning(found, tuned).tuning.warnings == ()


def test_places_too_narrow_for_a_python_function_are_told(tuned):
    """A funnel cut off at its neck by a step that is too long: the extremes accept nothing."""

    def neck(x):
        with np.errstate(all="ignore"):
            width = np.exp(0.5 * x[:, 0])
            energy = x[:, 0] ** 2 / 18.0 + 0.5 * x[:, 0] + 0.5 * (x[:, 1] / width) ** 2
            slope = np.stack([x[:, 0] / 9.0 + 0.5 - 0.5 * (x[:, 1] / width) ** 2, x[:, 1] / width**2], axis=1)
            return energy, slope

    options = {"n_steps": 3_000, "n_chains": 64, "thin": 20, "seed": 1, "progress": False}
    run = toolkit.sample(from_callable(neck, dim=2, name="neck"), samplers.mala(1.0), **options)
    assert any("too narrow for the step size" in sentence for sentence in narrow_places(run, budget=1_500))
    assert narrow_places(run, budget=50) == ()
    normal = from_callable(lambda x: (0.5 * (x**2).sum(axis=1), x), dim=2, name="normal")
    assert narrow_places(toolkit.sample(normal, samplers.mala(1.0), **options), budget=1_500) == ()


def test_a_function_that_raises_spoils_no_finished_run_and_hides_no_fault_of_the_package(monkeypatch):
    def raises(x):
        raise KeyError("mine")

    run = SimpleNamespace(problem=as_problem(from_callable(raises, dim=1, name="broken")), gradient_evaluations=10**6)
    look = "toolkit.tuning.tuned_run.unvisited"
    monkeypatch.setattr(look, lambda run, *_: run.problem.target.evaluate(np.zeros((1, 1))))
    assert places_in_doubt(run, None, None) == ()
    monkeypatch.setattr(look, lambda *_: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        places_in_doubt(run, None, None)


def test_failure_is_loud():
    """A funnel in ten dimensions, whose neck nothing comes into with so few gradients."""
    target = classics.funnel(dim=10)
    found = tune(target, seed=1, n_gradients=FEW, progress=False)
    run = toolkit.sample(target, found, seed=1, until=stopping.ess(1000) | stopping.gradients(600_000), progress=False)
    assert not run.stopping.satisfied
    assert len(run.warnings) >= 2


def test_a_sampler_of_ones_own_is_tuned():
    own = Sampler(step_sizes=(0.1,), schedule=schedules.polynomial_decay(exponent=0.3))
    found = tune(classics.correlated_gaussian(), own, seed=1, n_gradients=FEW, progress=False).sampler
    assert found.schedule == own.schedule
    assert found.step_sizes != own.step_sizes


def test_gradients_shorten_burn_in_only_where_they_end_a_run(tuned):
    problem = mixtures.cosine25()
    slow = dataclasses.replace(tuned, burn_in=400, thin=5)
    few = stopping.gradients(60_000)
    alone = toolkit.sample(problem, slow, seed=3, until=few, progress=False)
    assert alone.burn_in < 400
    assert alone.draws.shape[1] > 0
    both = toolkit.sample(problem, slow, seed=3, until=stopping.round_trips(1) & few, progress=False)
    assert (both.burn_in, both.thin) == (400, 5)
    either = toolkit.sample(problem, slow, seed=3, until=stopping.ess(10**6) | few, progress=False)
    assert either.burn_in == alone.burn_in


def test_a_valley_without_curvature_along_it_is_tuned():
    """Curvature of rank one, whose smallest eigenvalue is 0 to rounding: a matrix as scale is bounded."""

    def valley(x):
        along = 3.0 * x[:, 0] + x[:, 1]
        return 5.0 * along * along, np.stack([30.0 * along, 10.0 * along], axis=1)

    boxed = constrained(toolkit.from_callable(valley, dim=2), domains.box([-1.0, -1.0], [1.0, 1.0]))
    for seed in range(4):
        found = tune(boxed, samplers.hmc(boundary=boundaries.reject()), seed=seed, n_gradients=20_000, progress=False)
        assert np.isfinite(found.init).all()


def test_steps_stay_within_a_flat_box():
    flat = constrained(classics.correlated_gaussian(), domains.box([-1e-3, -1e-3], [1e-3, 1e-3]))
    found = tune(flat, samplers.sgld(boundary=boundaries.reflect()), seed=1, n_gradients=FEW, progress=False)
    assert np.sqrt(2.0 * found.sampler.step_sizes[0]) < 1e-3
