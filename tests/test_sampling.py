"""``sample`` and ``stream``: same bits however it is laid out, errors before the launch, and during it."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from targets import constrained, mixtures, shapes
from toolkit import (
    DivergenceError,
    Layout,
    Problem,
    Sampler,
    Target,
    boundaries,
    sample,
    samplers,
    schedules,
    stream,
    tempering,
)

ROOT = Path(__file__).resolve().parents[1]
FLOWER = constrained(mixtures.cosine25(), shapes.flower())
R2SGLD = samplers.r2sgld(step_sizes=(2e-3, 2e-2), gradient_noise=0.05, energy_noise=0.05)
NORMAL = mixtures.gaussian_mixture([[0.0]], 1.0)


def run_flower(n_chains=7, layout=Layout(), threads=1, **options):
    options = {"n_steps": 200, "burn_in": 20, "thin": 3, "seed": 2**63 + 5, **options}
    return sample(
        FLOWER,
        R2SGLD,
        n_chains=n_chains,
        threads=threads,
        layout=layout,
        keep_replicas=True,
        keep_energies=True,
        **options,
    )


def assert_same(a, b, chains=None):
    for field in ("replica_draws", "energies", "swaps", "swap_rates", "reflections", "reflection_fallbacks"):
        first, second = getattr(a, field), getattr(b, field)
        np.testing.assert_array_equal(first[:chains], second[:chains], err_msg=field)


@pytest.fixture(scope="module")
def reference():
    return run_flower(n_chains=1000, layout=Layout(lanes=2, chunk_steps=200))


@pytest.mark.parametrize("n_chains", [1, 7, 64, 1000])
@pytest.mark.parametrize("threads", [1, 2])
def test_bits_do_not_depend_on_threads_or_on_other_chains(reference, n_chains, threads):
    run = run_flower(n_chains=n_chains, threads=threads)
    assert run.reflections.sum() > 0
    assert run.swaps.sum() > 0
    assert_same(run, reference, n_chains)


@pytest.mark.parametrize("lanes", [1, 2, 5, 26, 54, 128, 3000])
def test_bits_do_not_depend_on_the_block(reference, lanes):
    """Blocks of 1, 1, 2, 13, 27, 64 and all chains; 13 and 27 do not divide their number."""
    assert_same(run_flower(n_chains=100, layout=Layout(lanes=lanes)), reference, 100)


@pytest.mark.parametrize("chunk_steps", [1, 7, 64, 199, 10_000])
def test_bits_do_not_depend_on_the_chunk(reference, chunk_steps):
    assert_same(run_flower(n_chains=9, layout=Layout(chunk_steps=chunk_steps)), reference, 9)


@pytest.mark.parametrize("chunk_steps", [1, 13, 64])
def test_a_stream_joins_to_the_sample(chunk_steps):
    arguments = {"n_steps": 150, "burn_in": 20, "thin": 3, "n_chains": 5, "seed": 3, "keep_energies": True}
    chunks = list(stream(FLOWER, R2SGLD, layout=Layout(chunk_steps=chunk_steps), **arguments))
    whole = sample(FLOWER, R2SGLD, **arguments)
    assert len(chunks) == -(-150 // chunk_steps)
    np.testing.assert_array_equal(np.concatenate([c.draws for c in chunks], axis=1), whole.draws)
    np.testing.assert_array_equal(np.concatenate([c.energies for c in chunks], axis=2), whole.energies)
    np.testing.assert_array_equal(np.concatenate([c.steps for c in chunks]), whole.steps)
    np.testing.assert_array_equal(chunks[-1].swap_rates, whole.swap_rates)
    assert [c.n_steps for c in chunks][-1] == 150


def test_a_stream_does_not_grow():
    """Arrays handed out are of the chunk's size, whatever the number of steps."""
    sizes = set()
    for i, chunk in enumerate(stream(NORMAL, samplers.sgld(0.1), n_steps=10**12, n_chains=4, seed=1)):
        sizes.add(chunk.replica_draws.nbytes + chunk.steps.nbytes)
        if i == 4:
            break
    assert len(sizes) == 1
    assert sizes.pop() < 4e6


def test_cyclical_bits_do_not_depend_on_the_chunk():
    sampler = samplers.cyclical_sgld(0.02, n_cycles=3, exploration=0.3, boundary=boundaries.reflect())
    runs = [
        sample(FLOWER, sampler, n_steps=500, n_chains=3, seed=4, layout=Layout(chunk_steps=c)) for c in (None, 1, 37)
    ]
    for run in runs[1:]:
        np.testing.assert_array_equal(run.draws, runs[0].draws)


def test_shapes_and_counts():
    run = run_flower()
    assert run.draws.shape == (7, 60, 2)
    assert run.replica_draws.shape == (7, 2, 60, 2)
    assert run.weights.shape == (7, 60)
    assert (run.weights == 1.0).all()
    assert run.energies.shape == (7, 2, 60)
    assert run.swap_rates.shape == (7, 1)
    assert run.reflections.shape == (7, 2)
    assert run.gradient_evaluations == 200 * 7 * 2
    assert run.steps.tolist() == list(range(22, 200, 3))
    assert run.elapsed > 0
    assert "r2sgld on cosine25 in flower: 7 chains" in repr(run)
    np.testing.assert_array_equal(run.draws, run.replica_draws[:, 0])


def test_energies_are_those_of_the_draws():
    run = run_flower()
    points = run.replica_draws.reshape(-1, 2)
    np.testing.assert_array_equal(run.energies.ravel(), FLOWER.target.evaluate(points)[0])


def test_the_whole_seed_counts():
    draws = [
        sample(NORMAL, samplers.sgld(0.1), n_steps=1, seed=s).draws.item() for s in (0, 1, 2**32, 2**63, 2**64 - 1)
    ]
    assert len(set(draws)) == 5


def test_starts():
    shapes_of_start = {(2,): 1, (3, 2): 3, (3, 2, 2): 6}
    for shape, different in shapes_of_start.items():
        start = np.random.default_rng(1).uniform(-0.5, 0.5, shape)
        sampler = samplers.resgld((1e-12, 2e-12), temperatures=(1.0, 2.0), correction=1e9)
        run = sample(FLOWER, sampler, n_steps=1, n_chains=3, init=start, seed=1, keep_replicas=True)
        assert len(np.unique(run.replica_draws.round(3).reshape(-1, 2), axis=0)) == different


def log_block(position, energy, gradient, parameters, scratch):
    """U = −log x for x > 0: −log of a negative number is nan, and 1/x grows without bound."""
    for lane in range(position.shape[1]):
        x = position[0, lane]
        energy[lane] = -np.log(x)
        gradient[0, lane] = -1.0 / x


def quartic_block(position, energy, gradient, parameters, scratch):
    for lane in range(position.shape[1]):
        energy[lane] = position[0, lane] ** 4
        gradient[0, lane] = 4.0 * position[0, lane] ** 3


LOG, QUARTIC = Target("log", 1, log_block), Target("quartic", 1, quartic_block)
GOOD = {"problem": NORMAL, "sampler": samplers.sgld(0.1), "n_steps": 10, "seed": 0}

BAD_CALLS = {
    "problem": ({"problem": "normal"}, TypeError, "problem must be a Problem or a Target, got 'normal'"),
    "sampler": ({"sampler": 0.1}, TypeError, "sampler must be a Sampler, got 0.1"),
    "n_steps 0": ({"n_steps": 0}, ValueError, "n_steps must be ≥ 1"),
    "n_steps real": ({"n_steps": 10.0}, TypeError, "n_steps must be an integer, got 10.0"),
    "n_chains": ({"n_chains": 0}, ValueError, "n_chains must be ≥ 1"),
    "burn_in all": ({"burn_in": 10}, ValueError, "burn_in must be ≥ 0 and < 10, got 10"),
    "burn_in negative": ({"burn_in": -1}, ValueError, "burn_in must be ≥ 0"),
    "thin": ({"thin": 11}, ValueError, "thin must be ≥ 1 and < 11, got 11"),
    "seed negative": ({"seed": -1}, ValueError, "seed must be ≥ 0"),
    "seed too large": ({"seed": 2**64}, ValueError, "seed must be ≥ 0 and < 18446744073709551616"),
    "seed None": ({"seed": None}, TypeError, "seed must be an integer, got None"),
    "backend": ({"backend": "gpu"}, ValueError, "backend must be one of 'cpu', got 'gpu'"),
    "threads": ({"threads": 0}, ValueError, "threads must be ≥ 1"),
    "init shape": ({"init": [0.0, 1.0]}, ValueError, r"init must have shape \(dim,\) = \(1,\)"),
    "init nan": ({"init": [np.nan]}, ValueError, "init must be finite, got nan"),
    "init text": ({"init": "zero"}, TypeError, "init must be an array of real numbers"),
    "init outside": (
        {"problem": FLOWER, "init": [3.0, 0.0]}, ValueError,
        r"init must lie inside the domain .*got \[3.0, 0.0\] for chain 0",
    ),
    "init of infinite energy": (
        {"problem": LOG, "init": [0.0]}, ValueError, r"init must have a finite energy, got energy inf at \[0.0\]",
    ),
    "origin outside": (
        {"problem": constrained(mixtures.cosine25(), shapes.polygon_of("far", [[1, 1], [2, 1], [1, 2]]))},
        ValueError, "init defaults to the origin, which must lie inside",
    ),
    "no domain": (
        {"sampler": samplers.sgld(0.1, boundary=boundaries.reflect())}, ValueError,
        "boundary 'reflect' needs a problem with a domain",
    ),
    "init complex": ({"init": [1j]}, TypeError, "init must be an array of real numbers"),
    "flag": ({"keep_replicas": "no"}, TypeError, "keep_replicas must be True or False, got 'no'"),
    "layout": ({"layout": 64}, TypeError, "layout must be a Layout"),
    "lanes": ({"layout": Layout(lanes=0)}, ValueError, "layout.lanes must be ≥ 1"),
    "chunk_steps": ({"layout": Layout(chunk_steps=0)}, ValueError, "layout.chunk_steps must be ≥ 1"),
}  # fmt: skip


@pytest.mark.parametrize("function", [sample, stream])
@pytest.mark.parametrize("name", BAD_CALLS)
def test_bad_calls_are_refused_before_anything_runs(name, function):
    change, kind, message = BAD_CALLS[name]
    arguments = {**GOOD, **change}
    with pytest.raises(kind, match=message):
        function(arguments.pop("problem"), arguments.pop("sampler"), **arguments)


def test_seed_has_no_default():
    with pytest.raises(TypeError, match="seed"):
        sample(NORMAL, samplers.sgld(0.1), n_steps=1)


BAD_SAMPLERS = {
    "step size 0": (lambda: samplers.sgld(0.0), "step_size must be finite and > 0, got 0.0"),
    "step size inf": (lambda: samplers.sgld(np.inf), "step_size must be finite and > 0, got inf"),
    "step size text": (lambda: samplers.sgld("small"), "step_size must be a number, got 'small'"),
    "temperature": (
        lambda: samplers.sgld(0.1, temperature=-1.0),
        "temperature must be finite and > 0, got -1.0",
    ),
    "not increasing": (lambda: samplers.r2sgld(temperatures=(10.0, 1.0)), r"temperatures must increase.*\(10.0, 1.0\)"),
    "equal": (lambda: samplers.r2sgld(temperatures=(1.0, 1.0)), "temperatures must increase"),
    "lengths": (lambda: samplers.r2sgld((0.1,), temperatures=(1.0, 2.0)), "one value per replica, got 1 step sizes"),
    "one replica": (lambda: samplers.resgld((0.1,), temperatures=(1.0,)), "needs at least 2 temperatures"),
    "no tempering": (lambda: Sampler("x", (0.1, 0.2), (1.0, 2.0)), "several temperatures need it"),
    "a number": (lambda: samplers.r2sgld(0.1), "step_sizes must be a sequence of numbers, got 0.1"),
    "noise": (lambda: samplers.sgld(0.1, gradient_noise=-0.1), "gradient_noise must be finite and ≥ 0, got -0.1"),
    "energy noise": (lambda: samplers.r2sgld(energy_noise=np.nan), "energy_noise must be finite and ≥ 0, got nan"),
    "correction": (lambda: samplers.r2sgld(correction=-1.0), "correction must be finite and ≥ 0, got -1.0"),
    "swap_every": (lambda: samplers.r2sgld(swap_every=0), "swap_every must be ≥ 1, got 0"),
    "threshold": (
        lambda: samplers.r2sgld(swap_threshold=2.0),
        "swap_threshold must be finite and > 0 and ≤ 1, got 2.0",
    ),
    "boundary": (lambda: samplers.sgld(0.1, boundary="reflect"), "boundary must be a Boundary, got 'reflect'"),
    "schedule": (lambda: samplers.sgld(0.1, schedule=0.5), "schedule must be a Schedule, got 0.5"),
    "penalty": (lambda: boundaries.penalise(0.0), "coefficient must be finite and > 0, got 0.0"),
    "bounces": (lambda: boundaries.reflect(max_bounces=0), "max_bounces must be ≥ 1, got 0"),
    "unknown kind": (lambda: boundaries.Boundary("bounce"), "kind must be one of 'reflect', 'penalise', 'ignore'"),
    "kind without its number": (lambda: boundaries.Boundary("reflect"), "max_bounces must be ≥ 1, got 0"),
    "number of another kind": (
        lambda: boundaries.Boundary("ignore", 1.0),
        "coefficient must be 0 for 'ignore', got 1.0",
    ),
    "swap_every direct": (lambda: tempering.ReplicaExchange(swap_every=0), "swap_every must be ≥ 1, got 0"),
    "huge": (lambda: samplers.sgld(10**400), "step_size must be finite and > 0"),
    "huge count": (lambda: boundaries.reflect(max_bounces=10**30), "max_bounces must be ≥ 1 and < 9223372036854775808"),
    "no sequence": (lambda: samplers.r2sgld(np.array(1e-3)), "step_sizes must be a sequence of numbers"),
    "idle noise": (lambda: Sampler("x", [0.1], energy_noise=1.0), "energy_noise must be 0 without a tempering"),
    "problem of nothing": (lambda: Problem("x"), "target must be a Target, got 'x'"),
    "problem of a shape": (lambda: Problem(mixtures.cosine25(), shapes.flower()), "domain must be None or a Domain"),
    "target without function": (lambda: Target("t", 1, None), "energy_gradient must be a block function, got None"),
    "dimensions": (lambda: Problem(NORMAL, FLOWER.domain), "domain has dimension 2, but the target has 1"),
}


def user_schedule(*factors):
    return schedules.Schedule("mine", lambda steps, total: schedules.Factors(*(f(steps) for f in factors)))


def ones(steps):
    return np.ones(steps.size)


def always(steps):
    return np.ones(steps.size, bool)


BAD_SCHEDULES = {
    "short": (user_schedule(lambda s: np.ones(1), ones, always), "step_size of schedule 'mine' must be ≥ 0"),
    "nan": (user_schedule(ones, lambda s: np.full(s.size, np.nan), always), "temperature of schedule 'mine' must be"),
    "negative": (user_schedule(lambda s: -ones(s), ones, always), "minimum -1.0"),
    "keep": (user_schedule(ones, ones, ones), "keep of schedule 'mine' must be booleans"),
    "no factors": (schedules.Schedule("mine", lambda steps, total: 1.0), "must return Factors, got float"),
    "keeps nothing": (
        user_schedule(ones, ones, lambda s: np.zeros(s.size, bool)), "schedule mine keeps none of the draws",
    ),
    "too many cycles": (schedules.cosine_cycles(30), "n_cycles must be ≤ n_steps = 10, got 30"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_SCHEDULES)
def test_bad_schedules_are_refused(name):
    schedule, message = BAD_SCHEDULES[name]
    with pytest.raises((TypeError, ValueError), match=message):
        sample(NORMAL, samplers.sgld(0.1, schedule=schedule), n_steps=10, seed=1)


def test_a_user_schedule_works():
    mine = user_schedule(lambda s: 1.0 / (1 + s), lambda s: 2.0 * ones(s), lambda s: s % 2 == 1)
    run = sample(NORMAL, samplers.sgld(0.1, schedule=mine), n_steps=10, seed=1)
    assert run.steps.tolist() == [1, 3, 5, 7, 9]


def test_no_swap_is_attempted_at_temperature_0():
    schedule = schedules.cosine_cycles(4, exploration=0.75, floor=0.2)
    run = sample(FLOWER, samplers.r2sgld(schedule=schedule), n_steps=4000, n_chains=20, seed=1)
    plain = sample(FLOWER, samplers.r2sgld(step_sizes=(1e-4, 3e-4)), n_steps=1000, n_chains=20, seed=1)
    assert run.swap_rates.mean() == pytest.approx(plain.swap_rates.mean(), abs=0.05)


@pytest.mark.parametrize("name", BAD_SAMPLERS)
def test_bad_samplers_are_refused(name):
    make, message = BAD_SAMPLERS[name]
    with pytest.raises((TypeError, ValueError), match=message):
        make()


def test_every_combination_runs():
    """Langevin × schedule × tempering × boundary on the flower: finite draws, and the same ones again."""
    for schedule in (
        schedules.constant(),
        schedules.exponential_decay(0.99),
        schedules.cosine_cycles(2, exploration=0.2),
    ):
        for temperatures in ((1.0,), (1.0, 3.0), (1.0, 2.0, 4.0, 8.0)):
            for boundary in (boundaries.ignore(), boundaries.penalise(1.0), boundaries.reflect()):
                sampler = Sampler(
                    "combination", [1e-3 * t for t in temperatures], temperatures, schedule=schedule, boundary=boundary,
                    tempering=tempering.replica_exchange() if len(temperatures) > 1 else None, gradient_noise=0.1,
                )  # fmt: skip
                first, second = (sample(FLOWER, sampler, n_steps=60, n_chains=3, seed=5).draws for _ in range(2))
                assert np.isfinite(first).all()
                assert np.ptp(first, axis=1).min() > 0
                np.testing.assert_array_equal(first, second)


def test_divergence_names_the_place_and_keeps_the_draws():
    start = np.array([[0.1], [5.0], [0.2]])
    with pytest.raises(DivergenceError, match="chain 1, replica 0 diverged at step") as caught:
        sample(
            QUARTIC, samplers.sgld(0.02), n_steps=500, n_chains=3, init=start, seed=6, layout=Layout(chunk_steps=100)
        )
    error = caught.value
    assert (error.chain, error.replica) == (1, 0)
    assert np.isfinite(error.state).all()
    assert abs(error.state.item()) > 10.0
    assert "make the step size smaller" in str(error)
    draws = error.run.draws
    assert draws.shape == (3, 100, 1)
    assert np.isfinite(draws[1, : error.step]).all()
    assert np.isnan(draws[1, error.step :]).all()
    alone = sample(QUARTIC, samplers.sgld(0.02), n_steps=100, n_chains=1, init=start[:1], seed=6).draws
    np.testing.assert_array_equal(draws[0], alone[0])  # the others went on as if nothing had been
    assert np.isfinite(draws[2]).all()
    np.testing.assert_array_equal(error.state, draws[1, error.step - 1])


def test_divergence_of_the_energy_alone():
    with pytest.raises(DivergenceError, match="The energy is not finite there"):
        sample(LOG, samplers.sgld(0.5), n_steps=2000, n_chains=4, init=[1.0], seed=7)


def test_divergence_of_a_hot_replica_does_not_swap_into_the_cold_one():
    sampler = samplers.resgld((1e-4, 0.3), temperatures=(1.0, 1.5))
    with pytest.raises(DivergenceError) as caught:
        sample(QUARTIC, sampler, n_steps=300, n_chains=5, init=[1.5], seed=8)
    assert caught.value.replica == 1
    assert np.isfinite(caught.value.run.draws).all()


def wall_block(position, energy, gradient, parameters, scratch):
    """U = x²/2 for |x| < ½ and infinite beyond."""
    for lane in range(position.shape[1]):
        x = position[0, lane]
        energy[lane] = 0.5 * x * x if abs(x) < 0.5 else np.inf
        gradient[0, lane] = x


WALL = Target("wall", 1, wall_block)


def test_an_infinite_energy_never_swaps():
    """Of two replicas the one that diverged is named, and its place does not pass to the other."""
    sampler = samplers.resgld((1.0, 1e-9), temperatures=(1.0, 10.0))
    with pytest.raises(DivergenceError, match=r"chain 0, replica 0 .* 1 of 2 replicas diverged") as caught:
        sample(WALL, sampler, n_steps=50, init=[0.1], seed=1, keep_replicas=True)
    assert np.isfinite(caught.value.run.replica_draws[0, 1]).all()


def test_a_last_draw_of_infinite_energy_does_not_pass():
    with pytest.raises(DivergenceError) as caught:
        sample(WALL, samplers.sgld(10.0), n_steps=1, n_chains=2, seed=0, keep_energies=True)
    assert caught.value.step == 1
    assert np.isnan(caught.value.run.energies).any()


def test_divergence_in_a_stream():
    chunks = stream(QUARTIC, samplers.sgld(0.02), n_steps=500, init=[5.0], seed=6, layout=Layout(chunk_steps=1))
    with pytest.raises(DivergenceError):
        list(chunks)


def test_no_progress_bar_where_there_is_no_terminal(capfd):
    sample(NORMAL, samplers.sgld(0.1), n_steps=1000, seed=1)
    assert capfd.readouterr().err == ""
    sample(NORMAL, samplers.sgld(0.1), n_steps=1000, seed=1, progress=True)
    assert "sgld" in capfd.readouterr().err
    sample(NORMAL, samplers.sgld(0.1), n_steps=1000, seed=1, progress=False)
    assert capfd.readouterr().err == ""


def test_threads_are_given_back():
    before = threading.active_count()
    sample(NORMAL, samplers.sgld(0.1), n_steps=100, n_chains=100, seed=1, threads=2)
    running = stream(NORMAL, samplers.sgld(0.1), n_steps=10**9, n_chains=100, seed=1, threads=2)
    next(running)
    running.close()
    assert threading.active_count() == before


INTERRUPTED = """
import json, sys, warnings
import numpy as np
from toolkit import Layout, sample, samplers
from targets import mixtures
warnings.simplefilter("ignore")
arguments = dict(n_chains=3, seed=9, threads=2, layout=Layout(lanes=1, chunk_steps=1000))
sampler = samplers.resgld((1e-3, 1e-2), temperatures=(1.0, 5.0))
sample(mixtures.cosine25(), sampler, n_steps=1, **arguments)  # so that nothing is left to compile
print("ready", flush=True)
run = sample(mixtures.cosine25(), sampler, n_steps=40_000_000, thin=1000, **arguments)
again = sample(mixtures.cosine25(), sampler, n_steps=run.n_steps, thin=1000, **arguments)
equal = bool((run.draws == again.draws).all() and (run.swap_rates == again.swap_rates).all())
print(json.dumps([run.interrupted, run.n_steps, run.draws.shape, equal, again.interrupted]))
"""


@pytest.mark.skipif(os.name == "nt", reason="sends SIGINT")
def test_interrupt_returns_the_draws_so_far():
    process = subprocess.Popen([sys.executable, "-c", INTERRUPTED], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline().strip() == "ready"
    time.sleep(2.0)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    interrupted, n_steps, shape, equal, again_interrupted = json.loads(out)
    assert interrupted
    assert not again_interrupted
    assert 0 < n_steps < 40_000_000
    assert shape == [3, n_steps // 1000, 2]
    assert equal
