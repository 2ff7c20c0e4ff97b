"""A saved run goes on to the bits of one never stopped, whatever it is and wherever it was stopped."""

import itertools
import os
import signal
import threading
import warnings
from dataclasses import replace

import numpy as np
import pytest

from targets import mixtures
from tests.support.checkpoint_cases import (
    CASES,
    COSINE,
    N_STEPS,
    PARTITION,
    RUN,
    SGLD,
    Sums,
    assert_same,
    run_case,
    same,
    stopped,
)
from tests.support.simple_targets import QUARTIC
from toolkit import (
    CheckpointError,
    DivergenceError,
    InterruptedWarning,
    Layout,
    from_callable,
    sample,
    samplers,
    schedules,
    stream,
)
from toolkit._engine.driver import Driver, HostAccumulation
from toolkit._output.storage.checkpoint import Checkpoint

pytestmark = pytest.mark.filterwarnings("ignore::toolkit.ContourWarning")  # runs too short for θ


@pytest.mark.cases(8)
@pytest.mark.parametrize("name", CASES)
def test_a_run_stopped_and_resumed_is_the_run_never_stopped(name, tmp_path, monkeypatch):
    """Stopped after burn-in's middle and twice more, each time laid out otherwise; and once finished, it stays so."""
    path, whole = tmp_path / "run.ckpt", run_case(name)
    for layout, step in ((1, 30), (2, 151), (0, 280)):
        stopped(monkeypatch, step, run_case, name, layout, checkpoint=path)
    run = run_case(name, 2, checkpoint=path)
    assert_same(run, whole)
    monkeypatch.setattr(Driver, "advance", None)  # from here on nothing is sampled
    again = run_case(name, 1, checkpoint=path)
    assert_same(again, whole)
    assert again.elapsed == run.elapsed > 0.0


@pytest.mark.cases(8)
@pytest.mark.parametrize("name", [name for name in CASES if not name.startswith("cyclical")])
def test_a_finished_run_is_extended(name, tmp_path):
    path = tmp_path / "run.ckpt"
    first = run_case(name, 0, checkpoint=path, n_steps=N_STEPS // 2)
    second = run_case(name, 1, checkpoint=path)
    assert_same(second, run_case(name))
    assert second.elapsed > first.elapsed


@pytest.mark.parametrize("name", ["cyclical_sgld", "cyclical_sghmc"])
def test_cycles_are_not_extended(name, tmp_path):
    path = tmp_path / "run.ckpt"
    run_case(name, checkpoint=path, n_steps=N_STEPS // 2)
    with pytest.raises(
        CheckpointError, match=r"n_steps must be 200, with which .*run\.ckpt' was made, got 400.*cosine"
    ):
        run_case(name, checkpoint=path)


def test_cycles_are_extended_where_what_is_done_would_be_the_same(tmp_path, monkeypatch):
    """99 and 100 steps in 10 cycles: cycles of 10 steps both."""
    path, sampler = tmp_path / "run.ckpt", samplers.cyclical_sgld(0.05, n_cycles=10)
    sample(COSINE, sampler, checkpoint=path, **{**RUN, "n_steps": 99})
    assert_same(sample(COSINE, sampler, checkpoint=path, **RUN), sample(COSINE, sampler, **RUN))
    with pytest.raises(CheckpointError, match="n_steps must be 100, with which"):
        sample(COSINE, sampler, checkpoint=path, **{**RUN, "n_steps": 101})


@pytest.mark.parametrize("which", [0, 1, 2, None])
def test_each_factor_of_a_schedule_counts(which, tmp_path):
    """Step size, temperature or what is kept, of one step alone, that depends on where the run ends."""

    def factors(steps, total_steps):
        values = [np.ones(steps.size), np.ones(steps.size), np.ones(steps.size, np.bool_)]
        if which is not None and total_steps == 100:
            values[which][steps == 37] = 0
        return schedules.Factors(*values)

    path, sampler = tmp_path / "run.ckpt", samplers.sgld(0.02, schedule=schedules.Schedule("own", factors))
    sample(COSINE, sampler, checkpoint=path, **{**RUN, "n_steps": 60})
    if which is None:
        assert_same(sample(COSINE, sampler, checkpoint=path, **RUN), sample(COSINE, sampler, **RUN))
        return
    with pytest.raises(
        CheckpointError, match=r"n_steps must be 60, with which .* schedule own depends on it, and the 60"
    ):
        sample(COSINE, sampler, checkpoint=path, **RUN)


def test_fewer_steps_than_done_are_refused_and_fewer_than_asked_are_not(tmp_path, monkeypatch):
    path = tmp_path / "run.ckpt"
    stopped(monkeypatch, 50, sample, COSINE, SGLD, checkpoint=path, **RUN)
    with pytest.raises(CheckpointError, match=r"n_steps must be ≥ 50, the steps that .* has done, got 49"):
        sample(COSINE, SGLD, checkpoint=path, **{**RUN, "n_steps": 49})
    short = {**RUN, "n_steps": 70}
    assert_same(sample(COSINE, SGLD, checkpoint=path, **short), sample(COSINE, SGLD, **short))
    assert_same(sample(COSINE, SGLD, checkpoint=path, **RUN), sample(COSINE, SGLD, **RUN))


def test_a_pilot_does_not_run_again(tmp_path, monkeypatch):
    path = tmp_path / "run.ckpt"
    sampler = samplers.csgld(0.02)
    whole = sample(COSINE, sampler, checkpoint=path, **RUN)
    assert whole.gradient_evaluations > 200
    monkeypatch.setattr("toolkit._output.storage.checkpoint_head.completed_by_pilot", None)
    again = sample(COSINE, sampler, checkpoint=path, **RUN)
    assert_same(again, whole)
    assert again.partition == whole.partition
    with pytest.raises(CheckpointError, match="partition: None there, Partition here"):
        sample(COSINE, samplers.csgld(0.02, partition=whole.partition), checkpoint=path, **RUN)


def by_sum(points):
    """A function that breaks where NumPy's sum does, of which its description knows the package alone."""
    return 0.5 * np.sum(points**2, axis=1), points


def failing_sum(calls_until):
    """NumPy's sum, but for one call."""
    calls, plain = itertools.count(), np.sum

    def failing(*given, **named):
        if next(calls) == calls_until:
            raise OSError("the model is out")
        return plain(*given, **named)

    return failing


SUMMED = from_callable(by_sum, dim=2)


def test_what_a_python_function_raises_loses_no_whole_chunk(tmp_path, monkeypatch):
    """It breaks off a chunk, and the state with it: what is saved is the last whole one."""
    path, seen, resume = tmp_path / "run.ckpt", [], Driver.resume
    monkeypatch.setattr(Driver, "resume", lambda self, *given: (seen.append(given[0]), resume(self, *given)))
    with monkeypatch.context() as patch:
        patch.setattr(np, "sum", failing_sum(calls_until=48))
        with pytest.raises(OSError, match="the model is out") as caught:
            sample(SUMMED, SGLD, checkpoint=path, **RUN)
    assert caught.value.run.n_steps == 40
    assert_same(sample(SUMMED, SGLD, checkpoint=path, **RUN), sample(SUMMED, SGLD, **RUN))
    assert seen == [40]


@pytest.mark.skipif(os.name == "nt", reason="sends SIGINT")
@pytest.mark.parametrize("moment", ["chunk", "write"])
def test_ctrl_c_saves_what_is_whole(moment, tmp_path, monkeypatch):
    path, presses = tmp_path / "run.ckpt", []

    def pressing(original):
        def pressed(self, *given, **named):
            if self_done(self, given) == 50 and not presses:
                presses.append(1)
                signal.raise_signal(signal.SIGINT)
            return original(self, *given, **named)

        return pressed

    def self_done(self, given):
        return self.done if isinstance(self, Driver) else given[0].steps

    owner, method = (Driver, "_advance") if moment == "chunk" else (Checkpoint, "_append")
    every = 60.0 if moment == "chunk" else 1e-9
    monkeypatch.setattr(owner, method, pressing(getattr(owner, method)))
    assert threading.current_thread() is threading.main_thread()
    with pytest.warns(InterruptedWarning):
        run = sample(COSINE, SGLD, checkpoint=path, checkpoint_every=every, **RUN)
    assert run.n_steps == (60 if moment == "chunk" else 50)
    seen, resume = [], Driver.resume
    monkeypatch.setattr(Driver, "resume", lambda self, *given: (seen.append(given[0]), resume(self, *given)))
    assert_same(sample(COSINE, SGLD, checkpoint=path, **RUN), sample(COSINE, SGLD, **RUN))
    assert seen == [run.n_steps]


def test_a_chunk_broken_off_is_not_saved(tmp_path, monkeypatch):
    """A second Ctrl-C does not wait for the end of the chunk from step 50; the last copy of the state is of step 40."""
    path, accumulate = tmp_path / "run.ckpt", HostAccumulation.add_draws
    stopped(monkeypatch, 30, sample, COSINE, SGLD, checkpoint=path, **RUN)

    def press(self, pool, outputs, offset, kept):
        if 50 in kept:
            raise KeyboardInterrupt
        accumulate(self, pool, outputs, offset, kept)

    with monkeypatch.context() as patch:
        patch.setattr(HostAccumulation, "add_draws", press)
        patch.setattr(Checkpoint, "_needs_snapshot", lambda self, driver: driver.done == 40)  # else it is by the clock
        with pytest.warns(InterruptedWarning, match="after 50 of 100"):
            sample(COSINE, SGLD, checkpoint=path, **RUN)
    seen, resume = [], Driver.resume
    monkeypatch.setattr(Driver, "resume", lambda self, *given: (seen.append(given[0]), resume(self, *given)))
    assert_same(sample(COSINE, SGLD, checkpoint=path, **RUN), sample(COSINE, SGLD, **RUN))
    assert seen == [40]


def test_a_diverged_run_is_not_saved_past_its_last_good_chunk(tmp_path):
    """Steps too large from step 60 on: the checkpoint stands before them, and the run diverges there again."""
    path = tmp_path / "run.ckpt"
    sizes = np.where(np.arange(100) < 60, 1.0, 1e6)
    sampler = samplers.sgld(0.02, schedule=schedules.custom(sizes))
    for _ in range(2):
        with pytest.raises(DivergenceError) as caught:
            sample(mixtures.gaussian_mixture([[0.0, 0.0]], 1.0), sampler, checkpoint=path, checkpoint_every=1e-9, **RUN)
        assert caught.value.run.n_steps > 60
    whole = caught.value.run
    short = sample(mixtures.gaussian_mixture([[0.0, 0.0]], 1.0), SGLD, **{**RUN, "n_steps": 60})
    same("draws", whole.draws[:, :60], short.draws)


QUARTICS = {"init": [[0.1], [5.0], [0.2]], "seed": 6, "n_chains": 3, "layout": Layout(chunk_steps=1)}


def test_a_run_with_a_diverged_chain_goes_on_to_its_bits(tmp_path):
    """Its status is stored where it is not all 0; ended in the middle, it has the bits of a run never stopped."""
    path, kept = tmp_path / "run.ckpt", {"on_divergence": "keep", "trace_every": 3, **QUARTICS}
    whole = sample(QUARTIC, SGLD, n_steps=300, **kept)
    first = int(whole.counts.status.max())
    assert whole.diverged.tolist() == [False, True, False]
    for n_steps in (first - 1, first + 2, 150, 300, 300):
        run = sample(QUARTIC, SGLD, n_steps=n_steps, checkpoint=path, **kept | {"layout": Layout(lanes=1)})
    assert_same(run, whole)
    with pytest.raises(DivergenceError, match=f"Checkpoint '{path}' stands at step 300"):
        sample(QUARTIC, SGLD, n_steps=300, checkpoint=path, **{**kept, "on_divergence": "stop"})


def test_a_divergence_leaves_what_was_before_it(tmp_path):
    """Nothing had been saved when it came; the state before is, the error says so, and "keep" goes on from there."""
    path, kept = tmp_path / "run.ckpt", {"n_steps": 300, "trace_every": 1, **QUARTICS}
    with pytest.raises(DivergenceError) as caught:
        sample(QUARTIC, SGLD, checkpoint=path, **kept)
    words = str(caught.value)
    saved = int(words.partition("stands at step ")[2].partition(";")[0])
    assert 0 < saved <= caught.value.step
    assert "on_divergence='keep' would go on from there" in words
    seen = sample(QUARTIC, SGLD, checkpoint=path, on_divergence="keep", **{**kept, "n_steps": saved})
    assert not seen.diverged.any()
    assert_same(
        sample(QUARTIC, SGLD, checkpoint=path, on_divergence="keep", **kept),
        sample(QUARTIC, SGLD, on_divergence="keep", **kept),
    )


def test_a_divergence_in_the_first_chunk_leaves_nothing(tmp_path):
    kept = {"n_steps": 300, **QUARTICS, "layout": Layout(chunk_steps=300)}
    with pytest.raises(DivergenceError, match="Nothing is saved in checkpoint"):
        sample(QUARTIC, SGLD, checkpoint=tmp_path / "run.ckpt", **kept)
    run = sample(QUARTIC, SGLD, checkpoint=tmp_path / "run.ckpt", on_divergence="keep", **kept)
    assert_same(run, sample(QUARTIC, SGLD, on_divergence="keep", **kept))


def test_a_stream_that_diverged_goes_on_without_that_chain(tmp_path):
    kept = {"n_steps": 60, "checkpoint": tmp_path / "run.ckpt", **QUARTICS}
    with pytest.raises(DivergenceError, match="stands at step"):
        list(stream(QUARTIC, SGLD, **kept))
    last = list(stream(QUARTIC, SGLD, on_divergence="keep", **kept))[-1]
    whole = list(stream(QUARTIC, SGLD, on_divergence="keep", **{**kept, "checkpoint": None}))[-1]
    same("draws", last.draws, whole.draws)
    same("status", last.counts.status, whole.counts.status)


def collect(chunks):
    """Draws and steps of what is left of a stream."""
    runs = list(chunks)
    return [run.draws for run in runs], [run.n_steps for run in runs]


def test_a_stream_goes_on_after_the_chunks_taken(tmp_path):
    path = tmp_path / "run.ckpt"
    arguments = {"accumulators": {"sums": Sums()}, "trace_every": 3, **RUN}
    whole = list(stream(COSINE, SGLD, **arguments))
    chunks = stream(COSINE, SGLD, checkpoint=path, checkpoint_every=1e-9, **arguments)
    first = [next(chunks) for _ in range(4)]
    chunks.close()  # the fourth was handed out, and nothing said that it was taken
    again = list(stream(COSINE, SGLD, checkpoint=path, **{**arguments, "threads": 2}))
    assert [run.n_steps for run in again] == [40, 50, 60, 70, 80, 90, 100]
    for run, other in zip([*first[:3], *again], whole, strict=True):
        assert_same(run, other)
    (end,) = stream(COSINE, SGLD, checkpoint=path, **arguments)
    assert end.draws.shape == (2, 0, 2)
    assert end.n_steps == 100
    same("sums", end.accumulated["sums"], whole[-1].accumulated["sums"])
    longer = {**arguments, "n_steps": 125}
    more = list(stream(COSINE, SGLD, checkpoint=path, **longer))
    for run, other in zip(more, list(stream(COSINE, SGLD, **longer))[10:], strict=True):
        assert_same(run, other)


def test_a_stream_that_is_not_iterated_holds_nothing(tmp_path):
    path = tmp_path / "run.ckpt"
    unused = stream(COSINE, SGLD, checkpoint=path, **RUN)
    assert_same(sample(COSINE, SGLD, checkpoint=path, **RUN), sample(COSINE, SGLD, **RUN))
    with pytest.raises(CheckpointError, match="called: 'sample' there, 'stream' here"):
        next(unused)


def test_without_a_checkpoint_nothing_is_done(monkeypatch):
    for name in ("describe_call", "open_journal", "write_state", "state_arrays", "load_state"):
        monkeypatch.setattr(f"toolkit._output.storage.checkpoint.{name}", None)
    monkeypatch.setattr("toolkit._output.storage.checkpoint.time.monotonic", None)
    run = sample(COSINE, SGLD, **RUN)
    assert run.n_steps == 100


def test_the_interval_is_kept(tmp_path, monkeypatch):
    """By a clock that ticks a second at every chunk: a save every 3 chunks, and one at the end."""
    saves, now = [], itertools.count()
    append = Checkpoint._append
    monkeypatch.setattr("toolkit._output.storage.checkpoint.time.monotonic", lambda: float(next(now) // 2))
    monkeypatch.setattr(Checkpoint, "_append", lambda self, p, o: (saves.append(p.steps), append(self, p, o))[1])
    sample(COSINE, SGLD, checkpoint=tmp_path / "run.ckpt", checkpoint_every=2.0, **RUN)
    assert saves[-1] == 100
    assert 2 <= len(saves) <= 6


def test_chunks_of_a_saved_run_begin_short(tmp_path, monkeypatch):
    """Where nothing is known of a step's time yet; the draws are the same."""
    lengths, advance = [], Driver.advance

    def noting(self, first, last, *given, **named):
        lengths.append(last - first)
        advance(self, first, last, *given, **named)

    monkeypatch.setattr(Driver, "advance", noting)
    arguments = {**RUN, "n_steps": 3000, "layout": Layout()}
    run = sample(COSINE, SGLD, checkpoint=tmp_path / "run.ckpt", **arguments)
    assert lengths[0] == 16
    assert max(b / a for a, b in itertools.pairwise(lengths)) <= 2
    assert_same(run, sample(COSINE, SGLD, **arguments))


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"checkpoint": 3}, TypeError, "checkpoint must be None or the path of a file, got 3"),
        ({"checkpoint": b"run.ckpt"}, TypeError, "checkpoint must be None or the path"),
        ({"checkpoint": ""}, ValueError, "checkpoint must be the path of a file, got ''"),
        ({"checkpoint": "a\0b"}, ValueError, "checkpoint must be the path of a file"),
        ({"checkpoint": "HERE"}, ValueError, "checkpoint must be the path of a file"),
        ({"checkpoint": "HERE/"}, ValueError, "checkpoint must be the path of a file"),
        ({"checkpoint": "HERE/none/run.ckpt"}, ValueError, "there is no such folder"),
        ({"checkpoint": "HERE/busy"}, ValueError, "checkpoint must be the path of a file.*busy.draws"),
        ({"checkpoint": "HERE/" + "a" * 300}, ValueError, "of at most 240 bytes"),
        ({"checkpoint_every": 0.0}, ValueError, "checkpoint_every must be finite and > 0, got 0.0"),
        ({"checkpoint_every": "60"}, TypeError, "checkpoint_every must be a number"),
        ({"checkpoint_every": float("nan")}, ValueError, "checkpoint_every must be finite"),
    ],
)  # fmt: skip
def test_bad_paths_are_refused_before_anything_runs(given, error, message, tmp_path, monkeypatch):
    (tmp_path / "busy.draws").mkdir()
    monkeypatch.setattr(Driver, "advance", None)
    path = given.get("checkpoint")
    if isinstance(path, str):
        given = {"checkpoint": path.replace("HERE", str(tmp_path))}
    for call in (sample, lambda *a, **b: list(stream(*a, **b))):
        with pytest.raises(error, match=message):
            call(COSINE, SGLD, **given, **RUN)
    assert os.listdir(tmp_path) == ["busy.draws"]


def test_a_file_of_someone_else_s_is_not_touched(tmp_path):
    for name in ("run.ckpt", "run.ckpt.previous", "run.ckpt.draws", "run.ckpt.writing"):
        (tmp_path / name).write_bytes(b"my thesis")
        with pytest.raises(
            CheckpointError, match=rf"{name}' is no checkpoint of this toolkit, and is left alone; give"
        ):
            sample(COSINE, SGLD, checkpoint=tmp_path / "run.ckpt", **RUN)
        assert (tmp_path / name).read_bytes() == b"my thesis"
        assert os.listdir(tmp_path) == [name]
        os.remove(tmp_path / name)


def test_a_half_written_state_of_ours_is_written_anew(tmp_path):
    for begin in (b"", b"many", bytes(64)):
        (tmp_path / "run.ckpt.writing").write_bytes(begin)
        sample(COSINE, SGLD, checkpoint=tmp_path / "run.ckpt", **RUN)
        assert sorted(os.listdir(tmp_path)) == ["run.ckpt", "run.ckpt.draws"]
        for left in os.listdir(tmp_path):
            os.remove(tmp_path / left)


def test_the_bar_starts_where_the_run_goes_on(tmp_path, capfd, monkeypatch):
    path = tmp_path / "run.ckpt"
    sample(COSINE, SGLD, checkpoint=path, **RUN)
    seen, resume = [], Driver.resume

    def noting(self, *given):
        resume(self, *given)
        seen.append((self._bar.n, self._bar.initial, self._bar.total))

    monkeypatch.setattr(Driver, "resume", noting)
    sample(COSINE, SGLD, checkpoint=path, progress=True, **{**RUN, "n_steps": 150})
    assert seen == [(100, 100, 150)]
    assert "sgld" in capfd.readouterr().err


def test_a_run_from_its_checkpoint_warns_as_it_did(tmp_path):
    arguments = {**RUN, "n_steps": 400, "burn_in": 100}
    sampler = samplers.csgld(0.02, partition=replace(PARTITION, u_min=50.0))
    for _ in range(2):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            sample(COSINE, sampler, checkpoint=tmp_path / "run.ckpt", **arguments)
        assert [w.category.__name__ for w in caught] == ["ContourWarning"]
        assert caught[0].filename == __file__
