"""A run ends at the first look at which it has what was asked for, and is then the run of that many steps."""

import os
import pickle
import signal
import time

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from targets import mixtures
from tests.support.checkpoint_cases import PARTITION, assert_same
from toolkit import (
    InterruptedWarning,
    Layout,
    diagnostics,
    from_callable,
    load,
    sample,
    samplers,
    schedules,
    stopping,
    stream,
)
from toolkit.diagnostics.stopping import FIRST_LOOK, cause, check_until, holds, quality_holds, singles
from toolkit.tempering import estimated_correction

COSINE = mixtures.cosine25()
WIDE = mixtures.gaussian_mixture([[0.0, 0.0]], 1.0)
APART = mixtures.gaussian_mixture([[-50.0], [50.0]], 1.0)
SGLD = samplers.sgld(0.05)
HMC = samplers.hmc(0.1, n_leapfrogs=3)
PAIR = samplers.resgld((0.05, 0.2), temperatures=(1.0, 4.0))
RUN = {"seed": 3, "n_chains": 4}


def is_left(draws):
    """Whether a draw is left of 0."""
    return draws[..., 0] < 0.0


def looks(n_steps, burn_in=0, thin=1):
    """The steps at which a run of so many is looked at."""
    k = np.arange(40)
    steps = burn_in + thin * FIRST_LOOK * 2**k
    return steps[steps <= n_steps].tolist()


def found(run, condition):
    """The record of the condition with that name."""
    return next(judged for judged in run.stopping.conditions if judged.condition.startswith(condition))


@pytest.mark.parametrize(("burn_in", "thin"), [(0, 1), (50, 3)])
def test_it_ends_at_the_first_look_with_enough(burn_in, thin):
    """By ESS of the draws so far at 64, 128, … draws; a look after every 64 draws would have ended it sooner."""
    settings = {**RUN, "burn_in": burn_in, "thin": thin}
    whole = sample(COSINE, SGLD, n_steps=20_000, **settings)
    draws = [(step, whole.draws[:, : np.searchsorted(whole.steps, step)]) for step in looks(20_000, burn_in, thin)]
    enough = {step: diagnostics.ess(part).min() for step, part in draws}
    first = next(step for step, size in enough.items() if size >= 150.0)
    run = sample(COSINE, SGLD, until=stopping.ess(150), **settings)
    assert run.n_steps == run.total_steps == first > 256
    assert found(run, "ess").value == enough[first]
    assert run.stopping.satisfied
    assert run.stopping.reason == f"ess(150) holds, after {first:,} steps"
    often = (n for n in range(64, 20_000, 64) if diagnostics.ess(whole.draws[:, :n]).min() >= 150.0)
    assert burn_in + thin * next(often) < first


@pytest.mark.filterwarnings("ignore::toolkit.ContourWarning")  # runs too short for θ
@pytest.mark.parametrize("sampler", [PAIR, samplers.csgld(0.02, partition=PARTITION), HMC],
                         ids=lambda sampler: sampler.name)  # fmt: skip
def test_it_is_the_run_of_that_many_steps(sampler):
    kept = {"keep_energies": True, "trace_every": 7, "burn_in": 20, "thin": 3, **RUN}
    run = sample(COSINE, sampler, until=stopping.ess(60), layout=Layout(chunk_steps=50), **kept)
    assert run.stopping is not None
    assert_same(run, sample(COSINE, sampler, n_steps=run.n_steps, **kept))


def test_a_limit_of_steps_ends_it_and_is_said():
    run = sample(COSINE, SGLD, n_steps=500, until=stopping.ess(1e6), **RUN)
    assert (run.n_steps, run.total_steps) == (500, 500)
    assert not run.stopping.satisfied
    assert run.stopping.reason == "all n_steps=500 steps are done, after 500 steps"
    value = diagnostics.ess(run.draws).min()
    assert found(run, "ess").value == value
    (sentence,) = [words for words in run.warnings if "until" in words]
    assert f"ess(1e+06) is at {value:.4g}" in sentence
    assert "all n_steps=500 steps are done" in sentence
    assert f"  until      ess(1e+06): {value:.4g}, not met\n" in str(run)
    assert_same(run, sample(COSINE, SGLD, n_steps=500, **RUN))


@pytest.mark.parametrize("sampler", [SGLD, PAIR, HMC], ids=lambda sampler: sampler.name)
def test_gradients_end_it_at_one_step_whatever_the_chunks(sampler):
    """At or just below the number; one step more would be above it."""
    limit = 12_345
    runs = [
        sample(COSINE, sampler, until=stopping.ess(1e9) | stopping.gradients(limit), **RUN, **layout)
        for layout in ({"layout": Layout(chunk_steps=7)}, {"threads": 1}, {"keep_draws": False})
    ]
    assert len({run.n_steps for run in runs}) == 1
    run = runs[0]
    assert run.gradient_evaluations <= limit
    assert sample(COSINE, sampler, n_steps=run.n_steps + 1, **RUN).gradient_evaluations > limit
    assert run.stopping.reason.startswith("gradients(12345) holds")
    assert found(run, "gradients").value == run.gradient_evaluations
    assert not run.stopping.satisfied


def test_seconds_end_it_in_time():
    """Of a function that takes 2 ms; a chunk of the usual length would take minutes."""

    def slow(points):
        time.sleep(2e-3)
        return 0.5 * (points**2).sum(axis=1), points

    problem = from_callable(slow, dim=1)
    run = sample(problem, SGLD, until=stopping.ess(1e9) | stopping.seconds(0.3), seed=1)
    assert 0.3 <= run.elapsed < 1.5
    assert run.stopping.reason.startswith("seconds(0.3) holds")
    *_, last = stream(problem, SGLD, until=stopping.seconds(0.3), seed=1)
    assert 0.3 <= last.elapsed < 1.5
    assert last.stopping.satisfied  # nothing but time was asked for


def test_alternatives_are_judged_by_themselves():
    """An unmet rule hides no other: neither in ``|``, nor in what the record says of each."""
    run = sample(COSINE, SGLD, until=(stopping.ess(1e9) & stopping.r_hat(1.5)) | stopping.mcse(0.5), **RUN)
    assert [judged.met for judged in run.stopping.conditions] == [False, True, True]
    assert run.stopping.reason.startswith("mcse(0.5) holds")
    assert run.stopping.satisfied
    assert not [words for words in run.warnings if "until" in words]
    both = sample(COSINE, SGLD, until=stopping.r_hat(1.5) & stopping.gradients(10_000), **RUN)
    assert both.gradient_evaluations == 10_000  # a lower limit here, and the run is looked at there
    assert both.stopping.satisfied


def test_conditions_of_functions():
    of = {"function": is_left, "columns": lambda x: np.stack([x[..., 0], x[..., 1] ** 2], axis=-1)}
    for name, function in of.items():
        run = sample(WIDE, SGLD, until=stopping.ess(80, of=function, method="mean"), **RUN)
        values = function(run.draws).astype(float)
        values = values[..., None] if values.ndim == 2 else values
        assert found(run, "ess").value == diagnostics.ess(values, method="mean").min(), name
    run = sample(WIDE, SGLD, until=stopping.mcse(0.02, of=is_left, relative=False), **RUN)
    share = is_left(run.draws)
    size = diagnostics.ess(share[..., None].astype(float), method="mean")[0]
    assert found(run, "mcse").value == pytest.approx(share.std() / np.sqrt(size), rel=1e-12)


def test_a_condition_of_which_nothing_is_known_is_not_met():
    """Where no function moves its value is nan; where one moves, those that do not keep no run from ending."""
    for condition in (stopping.ess, stopping.mcse):
        run = sample(WIDE, SGLD, until=condition(10, of=lambda x: 0.0 * x), n_steps=1000, **RUN)
        assert run.n_steps == 1000
        assert not run.stopping.conditions[0].met
        assert np.isnan(run.stopping.conditions[0].value)
    one_moves = stopping.ess(10, of=lambda x: x * np.arange(x.shape[2]))
    assert sample(WIDE, SGLD, until=one_moves, n_steps=100_000, **RUN).n_steps < 100_000
    with pytest.raises(ValueError, match="which has one mode, of weight 1"):
        sample(WIDE, SGLD, until=stopping.ess(10, of="modes"), n_steps=100, **RUN)


def test_a_mode_that_was_not_found_is_not_enough():
    """All chains in one of two modes: one-sided, ESS of the modes' weights is 0, whatever the coordinates say."""
    until = stopping.ess(30, of="modes")
    run = sample(APART, samplers.sgld(0.5), until=until, n_steps=2000, init=[-50.0], **RUN)
    assert run.n_steps == 2000
    assert found(run, "ess").value == 0.0
    near = mixtures.gaussian_mixture([[-1.0], [1.0]], 1.0)
    run = sample(near, samplers.sgld(0.5), until=until, **RUN)
    shares = near.truth.memberships(run.draws.reshape(-1, 1)).reshape(4, -1, 2)
    assert found(run, "ess").value == diagnostics.ess(shares).min() >= 30.0


def test_chains_apart_do_not_converge():
    run = sample(APART, SGLD, until=stopping.r_hat(1.01), n_steps=1000, init=[[-50.0], [-50.0], [50.0], [50.0]], **RUN)
    assert run.n_steps == 1000
    assert found(run, "r_hat").value > 1.5


def test_a_sweep_is_judged_setting_by_setting():
    """Two temperatures have no R-hat in common; each has its own."""
    sampler = samplers.sgld(0.1, temperature=[1.0, 1.0, 100.0, 100.0])
    run = sample(WIDE, sampler, until=stopping.r_hat(1.05), n_steps=2**14, **RUN)
    assert run.n_steps < 2**14
    each = [diagnostics.r_hat(run.draws[chains]).max() for chains in (slice(0, 2), slice(2, 4))]
    assert found(run, "r_hat").value == max(each) <= 1.05 < diagnostics.r_hat(run.draws).max()


def test_weights_count():
    run = sample(COSINE, samplers.csgld(0.02, partition=PARTITION), n_steps=256, until=stopping.ess(1e9), **RUN)
    assert found(run, "ess").value == diagnostics.ess(run.draws, weights=run.weights).min()
    assert found(run, "ess").value != diagnostics.ess(run.draws).min()


def test_without_draws_the_chains_means_are_judged():
    """MCSE² = variance of the chains' means over their number; ESS = variance / MCSE²; the classical R-hat."""
    until = (stopping.ess(50) & stopping.r_hat(1.2) & stopping.mcse(0.2)) | stopping.gradients(1e6)
    run = sample(WIDE, SGLD, until=until, seed=3, n_chains=8, keep_draws=False)
    assert run.accumulated == {}
    draws = sample(WIDE, SGLD, n_steps=run.n_steps, seed=3, n_chains=8).draws
    means, within = draws.mean(axis=1), draws.var(axis=1).mean(axis=0)
    total, error = draws.var(axis=(0, 1)), means.std(axis=0, ddof=1) / np.sqrt(8)
    assert found(run, "ess").value == pytest.approx((total / error**2).min(), rel=1e-10)
    assert found(run, "mcse").value == pytest.approx((error / np.sqrt(total)).max(), rel=1e-10)
    assert found(run, "r_hat").value == pytest.approx(np.sqrt(1 + means.var(axis=0, ddof=1) / within).max(), rel=1e-10)
    chunks = list(stream(WIDE, SGLD, until=until, seed=3, n_chains=8, layout=Layout(chunk_steps=50)))
    assert [chunk.stopping for chunk in chunks[:-1]] == [None] * (len(chunks) - 1)
    assert [judged[:2] for judged in chunks[-1].stopping.conditions[:3]] == [
        judged[:2] for judged in run.stopping.conditions[:3]
    ]
    assert_array_equal(np.concatenate([chunk.draws for chunk in chunks], axis=1), draws)


def test_of_many_draws_evenly_spaced_ones_are_judged(monkeypatch):
    """With room for 1,024 numbers, of 4 × 2,048 draws one in eight; and at least 16 times the ESS asked for."""
    monkeypatch.setattr("toolkit.diagnostics.stopping.MOST_JUDGED", 2048)
    monkeypatch.setattr("toolkit.diagnostics.stopping.FEWEST_JUDGED", 1)
    for limit, stride in ((10.0, 8), (127.0, 4), (1e6, 1)):
        until = stopping.ess(limit) & stopping.gradients(4 * 2048)
        run = sample(WIDE, SGLD, n_steps=2048, until=until, **RUN)
        part = run.draws[:, (2048 - 1) % stride :: stride]
        assert found(run, "ess").value == diagnostics.ess(part).min()


def test_it_does_not_end_before_the_correction_is_estimated():
    correction = estimated_correction(every=300)
    sampler = samplers.resgld((0.05, 0.2), temperatures=(1.0, 4.0), energy_noise=0.1, correction=correction)
    assert sample(COSINE, sampler, until=stopping.ess(1e-3), **RUN).n_steps == 512


def test_ctrl_c_ends_it_and_the_record_says_so():
    def press(draws):
        if draws.shape[1] == 256:
            os.kill(os.getpid(), signal.SIGINT)
        return draws[..., 0]

    until = stopping.ess(1e9, of=press)
    with pytest.warns(InterruptedWarning, match="interrupted after 256 steps; the run holds 256 draws"):
        run = sample(COSINE, SGLD, until=stopping.ess(1e9) & until, **RUN)
    assert run.interrupted
    assert run.stopping.reason == "interrupted, after 256 steps"
    assert found(run, "ess").value == diagnostics.ess(run.draws[:, :128]).min()  # of the last look
    assert [words for words in run.warnings if "interrupted after 256 steps;" in words]


def test_round_trips_of_all_chains():
    run = sample(COSINE, PAIR, until=stopping.round_trips(100), **RUN)
    assert found(run, "round_trips").value == run.round_trips.sum() >= 100
    before = sample(COSINE, PAIR, n_steps=run.n_steps // 2, **RUN)
    assert before.round_trips.sum() < 100


def test_the_memory_ends_it(monkeypatch):
    monkeypatch.setattr("toolkit.errors.available_memory", lambda: 200_000)
    monkeypatch.setattr("toolkit.errors.FITS", 0)
    run = sample(WIDE, SGLD, until=stopping.ess(1e9), **RUN)
    assert 8 * run.draws.size < 200_000 < 8 * 4 * run.draws.size
    assert run.stopping.reason.startswith("the memory is full: n_steps must fit into memory")
    assert not run.stopping.satisfied
    assert [words for words in run.warnings if "the memory is full" in words]


@pytest.mark.parametrize("keep_draws", [True, False])
def test_a_stopped_run_goes_on_to_the_same_end(tmp_path, monkeypatch, keep_draws):
    """Cut off by a limit, called again: the same bits and the same record; a stricter condition makes it longer."""
    path, until = tmp_path / "run.ckpt", stopping.ess(100) & stopping.r_hat(1.3)
    kept = {"checkpoint": path, "trace_every": 9, "keep_draws": keep_draws, **RUN}
    bare = {**kept, "checkpoint": None}
    whole = sample(COSINE, SGLD, until=until, **bare)
    assert whole.n_steps > 300
    sample(COSINE, SGLD, until=until, n_steps=100, **kept)
    sample(COSINE, SGLD, until=until | stopping.gradients(1200), **kept)
    for _ in range(2):
        run = sample(COSINE, SGLD, until=until, **kept)
        assert_same(run, whole)
        assert run.stopping == whole.stopping
    longer = sample(COSINE, SGLD, until=stopping.ess(400), **kept)
    assert longer.n_steps > whole.n_steps
    assert_same(longer, sample(COSINE, SGLD, until=stopping.ess(400), **bare))
    assert_same(sample(COSINE, SGLD, until=stopping.ess(100), **kept), longer)  # what is done is done


def test_a_stream_goes_on_to_the_same_end(tmp_path):
    kept = {"until": stopping.ess(100), "layout": Layout(chunk_steps=100), **RUN}
    whole = list(stream(COSINE, SGLD, **kept))
    chunks = stream(COSINE, SGLD, checkpoint=tmp_path / "run.ckpt", checkpoint_every=1e-9, **kept)
    first = [next(chunks) for _ in range(3)]
    chunks.close()
    again = list(stream(COSINE, SGLD, checkpoint=tmp_path / "run.ckpt", **kept))
    assert_array_equal(
        np.concatenate([run.draws for run in [*first[:2], *again]], axis=1),
        np.concatenate([run.draws for run in whole], axis=1),
    )
    assert again[-1].stopping == whole[-1].stopping
    (end,) = stream(COSINE, SGLD, checkpoint=tmp_path / "run.ckpt", **kept)
    assert end.stopping == whole[-1].stopping
    assert end.draws.shape[1] == 0


def test_a_checkpoint_without_moments_is_not_judged_by_them(tmp_path):
    kept = {"checkpoint": tmp_path / "run.ckpt", "keep_draws": False, **RUN}
    sample(COSINE, SGLD, n_steps=100, **kept)
    with pytest.raises(ValueError, match="until must be as in the call that made checkpoint"):
        sample(COSINE, SGLD, until=stopping.ess(100), **kept)
    assert sample(COSINE, SGLD, until=stopping.gradients(800), **kept).n_steps == 200


@pytest.mark.parametrize("suffix", [".npz", ".nc", ".zarr"])
def test_the_record_is_kept_in_files(tmp_path, suffix):
    if suffix != ".npz":
        pytest.importorskip("xarray")
    run = sample(WIDE, SGLD, until=stopping.ess(30, of=lambda x: 0.0 * x) | stopping.gradients(1e4), **RUN)
    run.save(tmp_path / f"run{suffix}")
    again = load(tmp_path / f"run{suffix}").stopping
    assert repr(again) == repr(run.stopping)  # nan is not equal to itself
    sample(WIDE, SGLD, n_steps=10, **RUN).save(tmp_path / f"plain{suffix}")
    assert load(tmp_path / f"plain{suffix}").stopping is None


def test_the_bar_shows_what_was_found(capsys):
    sample(COSINE, SGLD, until=stopping.ess(150) | stopping.seconds(60), progress=True, **RUN)
    err = capsys.readouterr().err
    assert "ess(150): " in err
    assert "seconds(60): " in err


def test_conditions_combine_print_and_travel():
    a, b, c = stopping.ess(1000), stopping.r_hat(), stopping.seconds(60)
    assert repr((a & b) | c) == "(ess(1000) & r_hat(1.01)) | seconds(60)"
    assert repr(a & (b | c)) == "ess(1000) & (r_hat(1.01) | seconds(60))"
    assert repr(a & b & c) == "ess(1000) & r_hat(1.01) & seconds(60)"
    assert repr(stopping.mcse(0.1, of=is_left, relative=False)) == "mcse(0.1, of=is_left, relative=False)"
    assert repr(stopping.ess(5, method="tail", of="modes")) == "ess(5, method='tail', of='modes')"
    nested = (a & stopping.mcse(0.1, of=is_left)) | (b & stopping.round_trips(3)) | stopping.gradients(1e6)
    assert pickle.loads(pickle.dumps(nested)) == nested
    with pytest.raises(TypeError, match=r"combined by & and \|"):
        bool(a)
    with pytest.raises(TypeError, match="unsupported operand"):
        a & True


def test_the_truth_of_a_combination():
    a, b, c = stopping.ess(1), stopping.r_hat(2.0), stopping.seconds(1)
    tree = (a & b) | c
    assert list(singles(tree)) == [a, b, c]
    for met in ([1, 1, 0], [1, 0, 0], [0, 1, 1], [0, 0, 0], [1, 1, 1]):
        of = {id(part): bool(m) for part, m in zip((a, b, c), met, strict=True)}
        asked = lambda part, of=of: of[id(part)]  # noqa: E731
        assert holds(tree, asked) == bool((met[0] and met[1]) or met[2])
        assert quality_holds(tree, asked) == bool(met[0] and met[1])
        assert quality_holds(c, asked) is None
        if holds(tree, asked):
            assert cause(tree, asked) == (a & b if met[0] and met[1] else c)
    assert check_until(None) is None


COSINES = samplers.sgld(0.05, schedule=schedules.cosine_cycles(4))
REFUSED = [
    ({"until": "ess"}, TypeError, "until must be None or a condition of toolkit.stopping, got 'ess'"),
    ({}, TypeError, "n_steps must be"),
    ({"until": stopping.round_trips(1)}, ValueError, r"round_trips\(1\) of sampler 'sgld', which has no replica exch"),
    ({"until": stopping.ess(9), "sampler": COSINES}, ValueError, "n_steps must be given with schedule cosine_cycles"),
    ({"until": stopping.ess(9), "n_chains": 3, "keep_draws": False}, ValueError, "n_chains must be ≥ 4 .* got 3"),
    ({"until": stopping.ess(9, of=is_left), "keep_draws": False}, ValueError, "until must ask for coordinates"),
    ({"until": stopping.ess(9, method="tail"), "keep_draws": False}, ValueError, "method='tail'"),
    ({"until": stopping.gradients(30), "burn_in": 10}, ValueError, r"allow the 44 .* got gradients\(30\)"),
    ({"until": stopping.ess(9, of=lambda x: x.sum())}, ValueError, r"of must return shape \(chain, draw\)"),
    ({"until": stopping.ess(9, of=lambda x: "left")}, TypeError, "of must return numbers, got 'left'"),
    ({"until": stopping.ess(9, of=lambda x: np.log(0 * x - 1))}, ValueError, "of must return finite numbers"),
    ({"until": stopping.ess(9, of="modes"), "problem": from_callable(lambda x: (x[:, 0] ** 2, 2 * x), dim=1)},
     ValueError, "which has no truth"),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize(("given", "error", "words"), REFUSED)
def test_refused_before_anything_runs(monkeypatch, given, error, words):
    monkeypatch.setattr("toolkit._output.execution.saves_of", lambda *asked: 1 / 0)  # nothing is to run
    arguments = {"problem": COSINE, "sampler": SGLD, **RUN} | given
    with pytest.raises(error, match=words):
        sample(arguments.pop("problem"), arguments.pop("sampler"), **arguments)
