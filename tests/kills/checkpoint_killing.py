"""Kills runs by SIGKILL and lets others go on; prints what came of it. A script, which forks: it must have no threads.

``random N``: one run killed at N random moments. ``everywhere``: a run killed before, in and after every operation
on its files, each time from the beginning.
"""

import hashlib
import json
import mmap
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from targets import mixtures
from toolkit import Layout, sample, samplers
from toolkit._engine.driver import Driver
from toolkit._output.storage import checkpoint, checkpoint_file

SAMPLER = samplers.resgld((0.01, 0.02), temperatures=(1.0, 3.0), energy_noise=0.5)
PROBLEM = mixtures.cosine25()
SHORT = {"n_steps": 40, "seed": 5, "n_chains": 3, "threads": 1, "layout": Layout(chunk_steps=10)}
LONG = {"thin": 500, "seed": 5, "n_chains": 10, "threads": 1, "keep_energies": True}
SHARED = mmap.mmap(-1, 8 * 8)
SEEN = np.frombuffer(SHARED, np.int64)  # what a child says before it dies
WRITING, RESTORED, SAVED, OPERATION, SAVES = range(5)


def digest(run):
    """All bits of a run."""
    parts = [run.replica_draws, run.steps, run.energies, *run.counts, *run.statistics]
    return hashlib.sha256(b"".join(np.ascontiguousarray(p).tobytes() for p in parts if p is not None)).hexdigest()


def in_child(path, arguments, kill_after=None, prepare=lambda: None):
    """Fork a child that runs; the digest it comes to, or None where it was killed."""
    SEEN[:] = 0
    said = path.with_name("said")
    said.unlink(missing_ok=True)
    pid = os.fork()
    if pid == 0:
        try:
            prepare()
            said.write_text(digest(sample(PROBLEM, SAMPLER, checkpoint=path, **arguments)))
        except BaseException as error:
            said.write_text(f"{type(error).__name__}: {error}")
        os._exit(0)
    if kill_after is not None:
        kill_after()
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    return None if os.WIFSIGNALED(status) else said.read_text()


def note(owner, name, place, value):
    """Have a function tell ``SEEN`` when it is under way (``value`` None), or what it was given."""
    plain = getattr(owner, name)

    def noting(*given, **named):
        SEEN[place] = 1 if value is None else value(*given, **named)
        result = plain(*given, **named)
        if value is None:
            SEEN[place] = 0
        return result

    setattr(owner, name, noting)


def at_random(folder, n_kills):
    """One run, killed at random moments till it has been killed often enough, then left to end."""
    arguments, draw = {**LONG, "n_steps": 20_000 * n_kills}, random.Random(7)
    whole = digest(sample(PROBLEM, SAMPLER, **arguments))
    note(checkpoint.Checkpoint, "_append", WRITING, lambda *given: 1)
    note(checkpoint, "write_state", WRITING, None)
    note(Driver, "resume", RESTORED, lambda self, steps, *given: steps)
    note(checkpoint, "write_state", SAVES, lambda *given, **named: SEEN[SAVES] + 1)
    kills, writing, restored, leftovers, span = 0, 0, [], 0, 0.0

    def wait_for_saves():
        nonlocal span
        started = time.monotonic()
        while SEEN[SAVES] < 4 and time.monotonic() < started + 60.0:
            time.sleep(0.001)
        span = time.monotonic() - started

    def wait_some_time():
        time.sleep(draw.uniform(0.0, 1.5 * span))

    while kills < n_kills:
        wait = wait_for_saves if kills % 5 == 0 else wait_some_time  # the machine may be busier than before
        said = in_child(folder / "run.ckpt", {**arguments, "checkpoint_every": 0.001}, wait)
        if said is not None:
            return {"kills": kills, "equal": False, "said": f"ended early: {said}"}
        kills += 1
        writing += int(SEEN[WRITING])
        restored.append(int(SEEN[RESTORED]))
        leftovers += (folder / "run.ckpt.writing").exists()
    said = in_child(folder / "run.ckpt", arguments)
    last = int(SEEN[RESTORED])
    return {
        "kills": kills, "writing": writing, "leftovers": leftovers, "restored": restored, "last": last,
        "equal": said == whole, "said": said,
    }  # fmt: skip


def everywhere(folder):
    """The same short run from the beginning again and again, killed at the next operation each time."""
    whole, results = digest(sample(PROBLEM, SAMPLER, **SHORT)), []
    write_all, append = checkpoint_file.write_all, checkpoint.Checkpoint._append
    replace, fsync = os.replace, os.fsync

    def die_at(fatal):
        def counted(plain, partly=None):
            def operation(*given):
                for act in (lambda: None, *([lambda: partly(*given)] if partly else [])):
                    if SEEN[OPERATION] == fatal:
                        act()
                        os.kill(os.getpid(), signal.SIGKILL)
                    SEEN[OPERATION] += 1
                return plain(*given)

            return operation

        def prepare():
            checkpoint_file.write_all = counted(write_all, lambda file, data: write_all(file, data[: len(data) // 2]))
            os.replace, os.fsync = counted(replace), counted(fsync)

        return prepare

    def save(self, position, outputs):
        SEEN[SAVED] = position.steps
        return append(self, position, outputs)

    checkpoint.Checkpoint._append = save
    note(Driver, "resume", RESTORED, lambda self, steps, *given: steps)
    for fatal in range(10_000):
        shutil.rmtree(folder / "at", ignore_errors=True)
        (folder / "at").mkdir()
        path, arguments = folder / "at" / "run.ckpt", {**SHORT, "checkpoint_every": 1e-9}
        first = in_child(path, arguments, prepare=die_at(fatal))
        saving = int(SEEN[SAVED])
        if first is not None:
            return {"operations": fatal, "whole": first == whole, "results": results}
        second = in_child(path, arguments)
        results.append([saving, int(SEEN[RESTORED]), second == whole, second])
    return {}


if __name__ == "__main__":
    assert checkpoint_file.Journal is checkpoint.Journal
    assert checkpoint_file.write_record is checkpoint_file.write_record
    with tempfile.TemporaryDirectory() as name:
        print(
            json.dumps(
                everywhere(Path(name)) if sys.argv[1] == "everywhere" else at_random(Path(name), int(sys.argv[2]))
            )
        )
