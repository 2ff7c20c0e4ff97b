"""Held chains have the bits of ``sample``, whatever the calls; and go on with what is theirs on another problem."""

import contextlib
import os
import re
import signal
import threading
from pathlib import Path

import numpy as np
import pytest

import toolkit
from targets import constrained, domains, mixtures, shapes
from targets.posteriors import linear, logistic_regression, posterior
from tests.support.checkpoint_cases import (
    ANCHORED,
    CASES,
    COSINE,
    N_STEPS,
    PARTITION,
    REGRESSION,
    bowl,
    same,
)
from tests.support.device_cases import CONSTRUCTORS, EXACT, flower, made
from toolkit import DivergenceError, Layout, Target, boundaries, from_callable, sample, samplers, target
from toolkit._engine.driver import Driver

pytestmark = pytest.mark.filterwarnings("ignore::toolkit.ContourWarning")  # runs too short for θ
SGLD = samplers.sgld(0.02)
CALLS = (1, 1, 1, 16, 1, 60, 47)  # steps of the first calls; the rest in one
FIELDS = ("replica_draws", "energies", "replica_weights", "steps", "statistics")


def joined(runs, field):
    """What runs of consecutive steps hold, joined along the draws."""
    parts = [getattr(run, field) for run in runs]
    if parts[0] is None:
        return None
    if field == "statistics":
        return tuple(np.concatenate(rows, axis=2) for rows in zip(*parts, strict=True))
    return np.concatenate(parts, axis=0 if field == "steps" else 2)


def assert_same_as(whole, runs, c):
    """The runs of consecutive steps hold what the whole run does, and the chains are where it ended."""
    for field in FIELDS:
        value = getattr(whole, field)
        same(field, joined(runs, field), tuple(value) if field == "statistics" and value is not None else value)
    for field, value in whole.counts._asdict().items():
        same(field, value, getattr(runs[-1].counts, field))
    assert c.steps == whole.n_steps == runs[-1].n_steps
    same("init", runs[-1].init, whole.init)


@pytest.mark.cases(5)
@pytest.mark.parametrize("name", CASES)
def test_any_calls_give_the_bits_of_sample(name):
    problem, sampler, own = CASES[name]
    kept = {key: own[key] for key in ("init", "keep_energies", "keep_replicas", "n_chains") if key in own}
    options = {"burn_in": 60, "seed": 2**63 + 11, "n_chains": 5, **kept}
    whole = sample(problem, sampler, n_steps=N_STEPS, thin=2, threads=1, **options)
    needs_length = sampler.schedule.name.startswith(("cosine", "custom"))
    with toolkit.chains(problem, sampler, threads=2, n_steps=N_STEPS if needs_length else None, **options) as c:
        runs = [c.advance(n, thin=2) for n in CALLS]
        runs.append(c.advance(N_STEPS - c.steps, thin=2))
        assert_same_as(whole, runs, c)


@pytest.mark.cases(6)
@pytest.mark.parametrize("name", CONSTRUCTORS)
def test_steps_one_by_one_give_the_bits_of_every_constructor(name):
    """With a domain, at whose edge chains are reflected, or rejected where there is a Metropolis test."""
    edge = {"boundary": boundaries.reject() if name in EXACT else boundaries.reflect()}
    problem, sampler = flower(), made(name, **edge)
    whole = sample(problem, sampler, n_steps=60, n_chains=3, seed=5, burn_in=7, keep_replicas=True, keep_energies=True)
    given = {"n_steps": 60, "n_chains": 3, "seed": 5, "burn_in": 7, "keep_replicas": True, "keep_energies": True}
    with toolkit.chains(problem, sampler, **given) as c:
        runs = []
        for _ in range(60):
            runs.append(c.advance(1, thin=1))
            at = whole.steps == c.steps - 1
            if at.any():
                recorded = whole.replica_weights
                same("positions", c.positions, whole.replica_draws[:, :, at][:, :, 0])
                same(
                    "weights", c.weights, np.ones(c.weights.shape) if recorded is None else recorded[:, :, at][:, :, 0]
                )
        assert_same_as(whole, runs, c)
        same("energies", c.energies, problem.target.evaluate(c.positions.reshape(-1, 2))[0].reshape(3, -1))


@pytest.mark.parametrize("noise", [0.0, 0.4])
def test_weights_are_those_of_a_draw_with_noise_and_penalty_too(noise):
    problem = constrained(COSINE, shapes.flower())
    sampler = samplers.icsgld(
        0.02, partition=PARTITION, n_replicas=3, energy_noise=noise, boundary=boundaries.penalise(3.0)
    )  # fmt: skip
    with toolkit.chains(problem, sampler, n_chains=5, seed=1, layout=Layout(lanes=6)) as c:
        assert (c.weights == 1.0).all()
        c.advance(200)
        assert c.theta.shape == (5, 20)
        np.testing.assert_allclose(c.theta.sum(axis=1), 1.0)
        for _ in range(5):
            run = c.advance(3, thin=1)
            same("weights", c.weights, run.replica_weights[:, :, -1])
        assert np.ptp(c.weights) > 1e-3


def test_a_sweep_keeps_step_sizes_by_chain():
    sampler = samplers.r2sgld([[0.001, 0.01], [0.002, 0.02], [0.004, 0.04]], temperatures=(1.0, 3.0))
    whole = sample(flower(), sampler, n_steps=50, n_chains=3, seed=2)
    with toolkit.chains(flower(), sampler, n_chains=3, seed=2, layout=Layout(lanes=2)) as c:
        runs = [c.advance(n, thin=1) for n in (1, 16, 33)]
        assert_same_as(whole, runs, c)


def test_draws_are_thinned_by_the_step_and_not_by_the_call():
    whole = sample(COSINE, SGLD, n_steps=100, n_chains=2, seed=1, burn_in=5, thin=10)
    with toolkit.chains(COSINE, SGLD, n_chains=2, seed=1, burn_in=5) as c:
        assert c.advance(13) is None
        runs = [c.advance(n, thin=10) for n in (1, 1, 30, 55)]
    assert [run.draws.shape[1] for run in runs] == [0, 1, 3, 5]
    assert [run.thin for run in runs] == [10] * 4
    same("draws", np.concatenate([run.draws for run in runs], axis=1), whole.draws)


def test_the_examples_of_the_page_run_as_written():
    """The bandit finds its best arm; the filter beats the observations, whose errors are 0.3, as Kalman's 0.16 does."""
    page = (Path(__file__).resolve().parents[3] / "docs" / "online.md").read_text(encoding="utf-8")
    names = {}
    for block in re.findall(r"```python\n(.*?)```", page, re.S):
        exec(compile(block, "online.md", "exec"), names)
    assert (names["features"][-10:] @ names["truth"] > 0.8 * (names["arms"] @ names["truth"]).max()).all()
    assert np.sqrt(np.mean(np.square(names["errors"]))) < 0.25


# Another problem.


def normal_about(centre, precision=1.0):
    """U = λ/2 ‖x − c‖², by one block function with c and λ as parameters."""
    return Target("normal", 2, normal_block, np.array([*centre, precision]))


def normal_block(position, energy, gradient, parameters, scratch):
    for lane in range(energy.size):
        energy[lane] = 0.0
    for d in range(position.shape[0]):
        for lane in range(energy.size):
            away = position[d, lane] - parameters[d]
            energy[lane] += 0.5 * parameters[2] * away * away
            gradient[d, lane] = parameters[2] * away


FIRST, SECOND = normal_about((0.0, 0.0)), normal_about((1.0, -2.0), 3.0)
STATEFUL = {
    "psgld": samplers.psgld(0.01),
    "sghmc": samplers.sghmc(0.02),
    "sgnht": samplers.sgnht(0.02, by_coordinate=True),
    "csgld": samplers.csgld(0.02, partition=PARTITION),
    "resgld": samplers.resgld((0.01, 0.03), temperatures=(1.0, 3.0), energy_noise=0.3),
    "tact_hmc": samplers.tact_hmc(0.02),
    "mala": samplers.mala(0.3),
}


@pytest.mark.parametrize("name", STATEFUL)
def test_a_replacement_is_a_change_of_numbers_and_of_nothing_else(name):
    """The oracle: a target whose parameters are overwritten while the engine reads them."""
    sampler, options = STATEFUL[name], {"n_chains": 3, "seed": 4, "layout": Layout(lanes=8)}
    changing = normal_about((0.0, 0.0))
    with toolkit.chains(changing, sampler, **options) as oracle:
        oracle.advance(30)
        changing.parameters[:] = SECOND.parameters
        expected = oracle.advance(40, thin=1)
    with toolkit.chains(FIRST, sampler, **options) as c:
        c.advance(30)
        before = c.positions
        c.replace(SECOND)
        same("positions", c.positions, before)
        assert c.steps == 30
        assert c.problem.target is SECOND
        same("energies", c.energies, SECOND.evaluate(before.reshape(-1, 2))[0].reshape(before.shape[:2]))
        run = c.advance(40, thin=1)
    same("draws", run.replica_draws, expected.replica_draws)
    assert run.problem.target is SECOND
    for field, value in run.counts._asdict().items():
        same(field, value, getattr(expected.counts, field))


def test_a_replacement_with_itself_changes_no_bit():
    for name in ("minibatches", "penalty", "r2sghmc", "icsghmc", "a Python function", "bounces run out"):
        problem, sampler, _ = CASES[name]
        whole = sample(problem, sampler, n_steps=60, n_chains=3, seed=7)
        with toolkit.chains(problem, sampler, n_chains=3, seed=7) as c:
            runs = []
            for _ in range(6):
                runs.append(c.advance(10, thin=1))
                c.replace(problem)
            assert_same_as(whole, runs, c)


def data_of(n, seed=0):
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((n, 2))
    return {"features": features, "response": features @ [1.0, -1.0] + 0.5 * seed, "noise": 1.0, "prior": 2.0}


def datum(x, row):
    away = row[2] - row[0] * x[0] - row[1] * x[1]
    return 0.5 * away * away, (-away * row[0], -away * row[1])


FAMILIES = {
    "linear": lambda n, seed, **own: linear.linear_regression(**data_of(n, seed), **own),
    "logistic": lambda n, seed, **own: logistic_regression(
        data_of(n, seed)["features"], np.arange(n) % 2, prior=2.0, **own
    ),
    "own": lambda n, seed, **own: posterior(
        datum, np.column_stack([data_of(n, seed)["features"], data_of(n, seed)["response"]]), 2, prior=2.0, **own
    ),
}  # fmt: skip


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("anchored_before", [True, False])
def test_an_anchor_is_where_the_chains_are_as_soon_as_the_data_are_others(family, anchored_before):
    """At its anchor the estimate is that of all data: the first step is that of the target without minibatches."""
    make = FAMILIES[family]
    first = make(30, 0, batch_size=4, refresh_every=50) if anchored_before else make(30, 0)
    drawn, all_data = make(47, 1, batch_size=4, refresh_every=50), make(47, 1)
    ends = []
    for other in (drawn, all_data):
        with toolkit.chains(first, samplers.sgld(0.001), n_chains=3, seed=3) as c:
            c.advance(20)
            c.replace(other)
            c.advance(1)
            ends.append(c.positions)
    np.testing.assert_allclose(ends[0], ends[1], rtol=1e-9)


def test_an_anchor_moves_again_when_it_is_due():
    """From the next step that ``refresh_every`` divides on, chains are those of a run that began there."""
    other = FAMILIES["linear"](47, 1, batch_size=4, refresh_every=25)
    with toolkit.chains(ANCHORED, samplers.sgld(0.001), n_chains=3, seed=3) as c:
        c.advance(20)
        c.replace(other)
        c.advance(5)
        c.replace(other)  # at step 25, where the anchor moves anyway
        run = c.advance(30, thin=1)
    with toolkit.chains(ANCHORED, samplers.sgld(0.001), n_chains=3, seed=3) as c:
        c.advance(20)
        c.replace(other)
        c.advance(5)
        same("draws", c.advance(30, thin=1).draws, run.draws)


def test_draws_after_a_replacement_have_the_law_of_the_new_problem():
    """Of 500 chains on N(c, 1/λ), after 200 steps at h = 0.05: variance 1/(λ (1 − λh/2)), to 5 standard errors."""
    with toolkit.chains(FIRST, samplers.sgld(0.05), n_chains=500, seed=11) as c:
        c.advance(50)
        c.replace(SECOND)
        c.advance(200)
        points = c.positions[:, 0]
    variance = 1.0 / (3.0 * (1.0 - 3.0 * 0.05 / 2.0))
    assert (np.abs(points.mean(axis=0) - [1.0, -2.0]) < 5.0 * np.sqrt(variance / 500)).all()
    assert (np.abs(points.var(axis=0) / variance - 1.0) < 5.0 * np.sqrt(2.0 / 500)).all()


def test_another_domain_holds_the_chains_from_then_on():
    wide, narrow = (constrained(mixtures.gaussian_mixture([[0.0, 0.0]], 1.0), domains.box([-s, -s], [s, s]))
                    for s in (2.0, 1.0))  # fmt: skip
    sampler = samplers.sgld(0.05, boundary=boundaries.reflect())
    start = np.random.default_rng(0).uniform(-0.9, 0.9, (50, 2))
    with toolkit.chains(narrow, sampler, n_chains=50, seed=1, init=start) as c:
        c.replace(wide)
        c.advance(100)
        positions = c.positions
        assert np.abs(positions).max() > 1.0
        with pytest.raises(
            ValueError, match=r"^problem must hold the chains' positions in its domain, and .* does not"
        ):
            c.replace(narrow)
        same("positions", c.positions, positions)
        run = c.advance(10, thin=1)
        assert c.problem is wide
    whole = sample(wide, sampler, n_steps=110, n_chains=50, seed=1, init=start)
    same("draws", run.draws, whole.draws[:, 100:])


@target(dim=2)
def half_plane(x):
    """Infinite on one side."""
    return (0.5 * (x[0] * x[0] + x[1] * x[1]) if x[0] > 0.5 else np.inf), (x[0], x[1])


def nothing_there(points):
    raise OSError("no model")


@pytest.mark.parametrize(
    ("other", "kind", "words"),
    [
        (mixtures.gaussian_mixture([[0.0]], 1.0), ValueError, "problem must have the chains' dimension 2, got 1 of"),
        (flower(), ValueError, "problem must have no domain, as 'normal', and 'cosine25 in flower' has one"),
        (half_plane, ValueError, "problem must have a finite energy at the chains' positions, and 'half_plane' does"),
        (from_callable(nothing_there, dim=2), OSError, "no model"),
        ("another", TypeError, "problem must be a Problem or a Target, got 'another'"),
        (None, TypeError, "problem must be"),
    ],
)
def test_a_problem_that_does_not_fit_is_refused_and_nothing_is_lost(other, kind, words):
    whole = sample(FIRST, SGLD, n_steps=40, n_chains=4, seed=2)
    with toolkit.chains(FIRST, SGLD, n_chains=4, seed=2) as c:
        c.advance(20)
        with pytest.raises(kind, match=words):
            c.replace(other)
        same("draws", c.advance(20, thin=1).draws, whole.draws[:, 20:])


def test_minibatches_are_refused_by_a_sampler_that_needs_exact_energies():
    with toolkit.chains(linear.linear_regression(**REGRESSION), samplers.mala(0.1), seed=0) as c:
        with pytest.raises(ValueError, match="need exact energies"):
            c.replace(ANCHORED)
        c.advance(1)


def test_a_python_function_may_take_over_and_hand_back():
    whole = sample(from_callable(bowl, dim=2), SGLD, n_steps=60, n_chains=3, seed=7)
    with toolkit.chains(normal_about((0.0, 0.0)), SGLD, n_chains=3, seed=7) as c:
        runs = [c.advance(20, thin=1)]
        c.replace(from_callable(bowl, dim=2))
        runs.append(c.advance(20, thin=1))
        c.replace(normal_about((0.0, 0.0)))
        runs.append(c.advance(20, thin=1))
    np.testing.assert_allclose(joined(runs, "replica_draws"), whole.replica_draws, rtol=1e-12)


@pytest.mark.slow
def test_the_fused_engine_takes_another_problem_too():
    options = {"n_chains": 3, "seed": 4}
    draws = []
    for layout in (Layout(fused=False), Layout(fused=True)):
        with toolkit.chains(FIRST, SGLD, **options, layout=layout) as c:
            c.advance(5)
            c.replace(SECOND)
            draws.append(c.advance(20, thin=1).draws)
    same("draws", *draws)


def test_nothing_compiles_where_numbers_alone_change(monkeypatch):
    from numba.core.dispatcher import Dispatcher

    with toolkit.chains(FIRST, SGLD, n_chains=3, seed=4) as c:
        c.advance(5)
        engine = c._driver._engine._general
        monkeypatch.setattr(Dispatcher, "compile", None)
        c.replace(SECOND)
        c.advance(5)
        assert c._driver._engine._general is engine


# What ends calls, and what is refused.


def test_open_chains_have_no_end_and_others_have_one():
    with toolkit.chains(COSINE, SGLD, seed=0, n_steps=20) as c:
        c.advance(15)
        with pytest.raises(ValueError, match=r"n_steps must be ≤ 5, the steps that are left of 20, got 6"):
            c.advance(6)
        c.advance(5)
    with pytest.raises(ValueError, match=r"n_steps must be given with schedule .*cosine"):
        toolkit.chains(COSINE, samplers.cyclical_sgld(0.05, n_cycles=3), seed=0)
    with pytest.raises(ValueError, match="burn_in must be ≥ 1 for a contour that freezes"):
        toolkit.chains(COSINE, samplers.csgld(0.02, partition=PARTITION, freezes=True), seed=0)


@pytest.mark.parametrize("bad", [0, -1, 1.0, "1", True, 2**48])
def test_numbers_of_steps_that_are_none_are_refused(bad):
    with toolkit.chains(COSINE, SGLD, seed=0) as c:
        with pytest.raises((TypeError, ValueError), match=r"^n_steps must be"):
            c.advance(bad)
        with pytest.raises((TypeError, ValueError), match=r"^thin must be"):
            c.advance(1, thin=bad)
        assert c.steps == 0


def test_draws_that_do_not_fit_into_memory_are_refused():
    with toolkit.chains(COSINE, SGLD, seed=0, n_chains=10) as c:
        with pytest.raises(ValueError, match=r"n_steps must fit into memory, got 1000000000000, .* give a larger thin"):
            c.advance(10**12, thin=1)
        assert c.steps == 0


@target(dim=1)
def quartic(x):
    """U = x⁴, which SGLD overshoots from afar."""
    return x[0] ** 4, (4.0 * x[0] ** 3,)


def test_a_divergence_ends_the_chains_with_what_there_is():
    start = np.array([[0.1], [10.0], [0.2]])
    whole = sample(quartic, samplers.sgld(0.05), n_steps=50, n_chains=3, seed=0, init=start, on_divergence="keep")
    with toolkit.chains(quartic, samplers.sgld(0.05), n_chains=3, seed=0, init=start) as c:
        with pytest.raises(DivergenceError, match="chain 1, replica 0 diverged at step") as caught:
            c.advance(50, thin=1)
        step = caught.value.step
        same("draws", caught.value.run.draws[:, :step], whole.draws[:, :step])
        assert c.diverged.tolist() == [False, True, False]
        assert np.isfinite(c.positions).all()
        assert np.isnan(c.weights[1]).all()
        with pytest.raises(DivergenceError, match="chain 1, replica 0 diverged at step"):
            c.advance(1)
        with pytest.raises(ValueError, match="before a chain diverges"):
            c.save("diverged.ckpt")
    with toolkit.chains(quartic, samplers.sgld(0.05), n_chains=3, seed=0, init=start, on_divergence="keep") as c:
        c.advance(20)
        c.replace(quartic)  # the diverged one stays where it is
        same("draws", c.advance(30, thin=1).draws, whole.draws[:, 20:])
        assert c.diverged.tolist() == [False, True, False]


def test_what_is_closed_stays_so():
    c = toolkit.chains(COSINE, SGLD, seed=0, n_chains=2)
    c.advance(3)
    c.close()
    c.close()
    assert repr(c) == "<2 chains of sgld on cosine25 after 3 steps, closed>"
    assert c.steps == 3
    for use in (lambda: c.advance(1), lambda: c.replace(COSINE), lambda: c.save("x"), lambda: c.positions,
                lambda: c.energies, lambda: c.weights, lambda: c.theta, lambda: c.diverged):  # fmt: skip
        with pytest.raises(RuntimeError, match="these chains are closed"):
            use()


def test_threads_are_given_back():
    before = threading.active_count()
    with toolkit.chains(COSINE, SGLD, seed=0, n_chains=100, threads=2) as c:
        c.advance(5)
        assert threading.active_count() > before
    assert threading.active_count() == before


def test_two_calls_at_once_are_refused():
    """From another thread, and from within a target's own function."""
    inside = []

    def curious(points):
        if held:
            for use in (lambda: held[0].advance(1), lambda: held[0].replace(COSINE), lambda: held[0].positions,
                        lambda: held[0].close()):  # fmt: skip
                with pytest.raises(RuntimeError, match="in use by another call"):
                    use()
                inside.append(use)
        return bowl(points)

    held = []
    with toolkit.chains(from_callable(curious, dim=2), SGLD, seed=0) as c:
        held.append(c)
        c.advance(2)
        held.clear()
    assert len(inside) >= 4
    assert c.steps == 2


class Failing:
    """A bowl that raises at one call."""

    def __init__(self, at, error=OSError("the model is out")):
        self.left, self.error = at, error

    def __call__(self, points):
        self.left -= 1
        if self.left == 0:
            raise self.error
        return bowl(points)


@pytest.mark.parametrize("error", [OSError("the model is out"), KeyboardInterrupt()], ids=["error", "interrupt"])
def test_what_a_python_function_raises_leaves_the_chains_where_the_last_chunk_ended(error):
    whole = sample(from_callable(bowl, dim=2), samplers.sghmc(0.02), n_steps=100, n_chains=3, seed=5)
    failing = Failing(70, error)
    with toolkit.chains(from_callable(failing, dim=2), samplers.sghmc(0.02), n_chains=3, seed=5) as c:
        c.advance(10)
        with pytest.raises(type(error)) as caught:
            c.advance(90, thin=1)
        assert caught.value.run.n_steps == c.steps
        assert 10 < c.steps < 70
        same("draws", caught.value.run.draws, whole.draws[:, 10 : c.steps])
        same("positions", c.positions[:, 0], whole.draws[:, c.steps - 1])
        n = c.steps
        same("draws", c.advance(100 - n, thin=1).draws, whole.draws[:, n:])


@pytest.mark.skipif(os.name == "nt", reason="sends SIGINT")
def test_ctrl_c_ends_a_call_after_its_chunk(monkeypatch):
    advance, presses = Driver._advance, []

    def pressing(self, *given, **named):
        if self.done == 20 and not presses:
            presses.append(1)
            signal.raise_signal(signal.SIGINT)
        advance(self, *given, **named)

    monkeypatch.setattr(Driver, "_advance", pressing)
    whole = sample(COSINE, SGLD, n_steps=100, n_chains=3, seed=5)
    presses.clear()
    with toolkit.chains(COSINE, SGLD, n_chains=3, seed=5, layout=Layout(chunk_steps=10)) as c:
        with pytest.raises(KeyboardInterrupt) as caught:
            c.advance(100, thin=1)
        assert c.steps == 30
        same("draws", caught.value.run.draws, whole.draws[:, :30])
        same("draws", c.advance(70, thin=1).draws, whole.draws[:, 30:])


def test_chains_broken_off_within_a_chunk_say_so(monkeypatch):
    """By a second Ctrl-C, which does not wait, or by no memory."""

    def fail(*_):
        raise MemoryError

    with toolkit.chains(COSINE, SGLD, n_chains=3, seed=5) as c:
        c.advance(10)
        with monkeypatch.context() as patch:
            patch.setattr(c._driver._engine, "run", fail)
            with pytest.raises(MemoryError):
                c.advance(1)
        for use in (lambda: c.advance(1), lambda: c.positions, lambda: c.replace(COSINE)):
            with pytest.raises(RuntimeError, match="broken off within a chunk of steps after step 10"):
                use()


@pytest.mark.parametrize("size", [20, 21, 20_000])
def test_messages_show_no_more_than_the_first_coordinates_of_a_long_position(size):
    def far(position, energy, gradient, parameters, scratch):
        for lane in range(energy.size):
            energy[lane] = 0.0
        for d in range(position.shape[0]):
            for lane in range(energy.size):
                energy[lane] += position[d, lane] ** 4
                gradient[d, lane] = 4.0 * position[d, lane] ** 3

    problem = Target("far", size, far)
    with contextlib.ExitStack() as stack:
        caught = stack.enter_context(pytest.raises(DivergenceError))
        sample(problem, samplers.sgld(0.5), n_steps=50, seed=0, init=np.full(size, 3.0))
    message = str(caught.value)
    assert caught.value.state.shape == (size,)
    assert len(message) < 1500
    assert ("…" in message) == (size > 20)
    with pytest.raises(ValueError, match="init must have a finite energy") as refused:
        sample(problem, SGLD, n_steps=50, seed=0, init=np.full(size, 1e200))
    assert len(str(refused.value)) < 1500
    assert ("1e+200, …]" in str(refused.value)) == (size > 20)


def test_a_replacement_calls_a_python_target_once_and_its_exception_arrives():
    """With all data, to check the energies; not at all where that is left out."""
    calls, is_broken = [], False

    def energies(points, picks):
        calls.append(None if picks is None else picks.shape)
        if is_broken:
            raise OSError("no data")
        return 0.5 * (points**2).sum(axis=1), points

    target = toolkit.from_callable(energies, dim=2, n_data=7, batch_size=3)
    with toolkit.chains(target, samplers.sgld(0.1), n_chains=2, seed=0) as c:
        calls.clear()
        c.replace(target)
        assert calls == [None]
        c.replace(target, checks_energies=False)
        assert calls == [None]
        c.advance(1)
        assert calls[1] == (2, 3)
        is_broken = True
        with pytest.raises(OSError, match="no data"):
            c.replace(target)
        is_broken = False
        c.advance(2)
        assert calls[-1] == (2, 3)
        with pytest.raises(TypeError, match="checks_energies"):
            c.replace(target, checks_energies=1)
