"""What workers compile first: each part by one of them, and it is what a run uses."""

import functools
import threading
from functools import partial

import pytest

from targets.mixtures import cosine25
from tests import warm_up
from toolkit import samplers
from toolkit._compiler import beside, decorators
from toolkit._engine import cpu
from toolkit._engine.job import make_job
from toolkit._engine.run_options import RunOptions


def test_each_part_is_compiled_by_one_worker_and_all_wait_for_it(tmp_path, monkeypatch):
    done, both = [], threading.Barrier(2, timeout=60.0)

    def first():
        both.wait()  # until the other one is in the second part
        done.append("first")

    def second():
        both.wait()
        done.append("second")

    monkeypatch.setattr(warm_up, "PARTS", {"first": first, "second": second, "third": partial(done.append, "third")})
    seen = []

    def worker():
        warm_up.compile_in_turn(tmp_path)
        seen.append(sorted(done))

    workers = [threading.Thread(target=worker) for _ in range(2)]
    for one in workers:
        one.start()
    for one in workers:
        one.join()
    assert seen == [["first", "second", "third"]] * 2


def test_nobody_waits_for_a_part_that_failed(tmp_path, monkeypatch):
    def fail():
        raise RuntimeError("a fault in the part")

    monkeypatch.setattr(warm_up, "PARTS", {"part": fail})
    with pytest.raises(RuntimeError, match="a fault in the part"):
        warm_up.compile_in_turn(tmp_path)
    monkeypatch.setattr(warm_up.time, "sleep", lambda seconds: pytest.fail("waits"))
    warm_up.compile_in_turn(tmp_path)


def test_parts_are_compiled_as_runs_ask_for_them(monkeypatch):
    """With other options they would be compiled for nothing."""
    real, compiled = decorators.compile_part, []

    @functools.wraps(real)
    def note(function, *arguments, **options):
        compiled.append((function, arguments, tuple(sorted(options.items()))))
        return real(function, *arguments, **options)

    monkeypatch.setattr(decorators, "compile_part", note)
    for name in ("engine", "exact moves", "replica exchange", "mala", "phases of most runs", "other phases"):
        warm_up.PARTS[name]()
    prepared = set(compiled)
    compiled.clear()
    monkeypatch.setattr(beside, "compile_part", note)
    job = make_job(cosine25(), samplers.pt_mala((0.1,) * 4), RunOptions(n_steps=10, seed=1, keep_statistics=False))
    cpu.general_engine(job)
    called = {function.__name__ for function, *_ in compiled}
    moves = {"propose", "start_momenta", "use_trajectory_end"}
    assert called == moves | {"advance", "temper_by_exchange", "provide_noise", "freeze_diverged"}
    assert set(compiled) <= prepared
