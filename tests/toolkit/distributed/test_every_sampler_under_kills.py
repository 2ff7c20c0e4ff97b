"""Every constructor has the bits of one machine for 1 to 4 workers and any pieces, while workers are killed."""

import contextlib
import functools
import os
import random
import signal
import threading
import time

import numpy as np
import pytest

from tests.support.device_cases import CONSTRUCTORS, made
from tests.toolkit.distributed.clusters import local_cluster, worker_processes
from tests.toolkit.distributed.test_distributed_run import COSINE, FLOWER, assert_same
from toolkit import accumulators, sample

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::toolkit.ContourWarning"),
    pytest.mark.filterwarnings("ignore::toolkit.ClusterWarning"),  # a worker may take long to come back
]

PIECES = (1, 5, 11)
KILLS = 5  # for each number of workers
OPTIONS = {
    "n_steps": 400, "burn_in": 10, "thin": 5, "seed": 11, "n_chains": 24, "trace_every": 20, "keep_replicas": True,
    "keep_energies": True, "accumulators": {"moments": accumulators.moments()},
}  # fmt: skip


def run_of(name, **more):
    """The run of a constructor."""
    sampler = made(name)
    return sample(COSINE if sampler.boundary.kind == "ignore" else FLOWER, sampler, **OPTIONS, **more)


alone = functools.cache(run_of)


@contextlib.contextmanager
def a_kill(client, seconds, done):
    """SIGKILL to a random worker after so many seconds, unless the block has ended; ``done`` gets its process."""
    over, lock = threading.Event(), threading.Lock()

    def kill():
        over.wait(seconds)
        with lock:
            running = worker_processes(client)
            if running and not over.is_set():
                done.append(random.choice(running))
                os.kill(done[-1], signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield
    finally:
        with lock:
            over.set()
        thread.join()


@pytest.mark.parametrize("n_workers", [1, 2, 3, 4])
def test_every_sampler_while_workers_are_killed(n_workers):
    """``KILLS`` at random moments of the runs of all constructors and sizes, in random order."""
    rng = np.random.default_rng()
    cases = [(name, size) for name in CONSTRUCTORS for size in PIECES]
    cases = [cases[i] for i in rng.permutation(len(cases))]
    due = set(rng.choice(len(cases) - 3, KILLS, replace=False).tolist())
    killed, started = [], time.perf_counter()
    with local_cluster(n_workers) as client:
        for i, (name, size) in enumerate(cases):
            wants = len([case for case in due if case <= i]) > len(killed)  # one that came too late is made up for
            context = a_kill(client, rng.uniform(0.0, 0.2), killed) if wants else contextlib.nullcontext()
            with context:
                spread = run_of(name, client=client, chains_per_task=size)
            assert_same(alone(name), spread)
    assert len(killed) == KILLS
    print(f"{n_workers} workers: {len(cases)} runs, {len(killed)} kills, {time.perf_counter() - started:.0f} s")
