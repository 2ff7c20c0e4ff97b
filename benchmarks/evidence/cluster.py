"""Runs on a cluster: overhead, seconds of a task, equal bits while workers are killed, and simulated clusters.

Many chains: moments and KL of 100 steps each, pooled, with the peak memory of each process, against sampling alone.
Overhead: the same run with 2 threads, and as tasks of about two seconds on 2 processes with a thread each, alternating;
and the processors' time of all processes, which other work on the machine changes less.
The simulation is of tasks that take a fixed time on any of W workers, while one scheduler takes ``per_task`` for each,
and one client ``merge`` for each result: the efficiency is the share of the workers' time that is spent on tasks.
"""

import heapq
import os
import random
import signal
import statistics
import threading
import time
import warnings
from typing import Any

import numpy as np

from benchmarks.runner.plan import Plan
from benchmarks.runner.tables import Table
from benchmarks.speed.processes.memory_ours import peak
from targets import mixtures
from toolkit import accumulators, sample, samplers
from toolkit._distributed.part import arrays_of

PROBLEM = mixtures.cosine25()
GRID = np.linspace(-4.0, 4.0, 21)
CASES = {
    "sgld, moments": (samplers.sgld(0.01), 1_600_000, 2_000),
    "resgld, moments": (samplers.resgld(), 300_000, 2_000),
}
MANY, FEW = 10**8, 10**5
KILLS, TASKS_A_WORKER = 20, 20


def pools() -> dict[str, Any]:
    """Pooled moments."""
    return {"moments": accumulators.pooled(accumulators.moments())}


def seconds_of(sampler: Any, n_chains: int, n_steps: int, **options: Any) -> float:
    """Seconds of a run of which pooled moments are kept."""
    started = time.perf_counter()
    sample(PROBLEM, sampler, n_steps=n_steps, n_chains=n_chains, seed=0, keep_draws=False, thin=10,
           accumulators=pools(), **options)  # fmt: skip
    return time.perf_counter() - started


def processor_seconds(client: Any) -> float:
    """Of the workers and of this process, which has the scheduler, so far."""
    return float(sum(client.run(time.process_time).values()) + time.process_time())


def many_chains(client: Any, plan: Plan) -> None:
    """The table of a run of very many chains."""
    sgld, n_chains = samplers.sgld(0.01), FEW if plan.is_small else MANY
    kl = accumulators.pooled(accumulators.kl(PROBLEM.truth, GRID, GRID, at=[100]))
    table = Table(
        plan.folder, "cluster_chains", "results of 100 steps", "chains", "seconds", "µs a chain of a processor",
        "peak of a worker, MB", "of the client, MB",
    )  # fmt: skip
    for name, own, count in [
        ("moments", pools(), FEW),
        ("moments and KL of 400 cells", {**pools(), "kl": kl}, FEW),
        ("moments and KL of 400 cells", {**pools(), "kl": kl}, n_chains),
        ("none, one thread here", None, FEW),
    ]:
        options: dict[str, Any] = {"threads": 1} if own is None else {"accumulators": own, "client": client}
        options |= {"n_steps": 100, "seed": 0, "keep_draws": False}
        sample(PROBLEM, sgld, n_chains=FEW, **options)
        before, started = processor_seconds(client), time.perf_counter()
        sample(PROBLEM, sgld, n_chains=count, **options)
        seconds, used = time.perf_counter() - started, processor_seconds(client) - before
        memory = (
            ["–"] * 2
            if own is None
            else [f"{n_bytes / 2**20:.0f}" for n_bytes in (max(client.run(peak).values()), peak())]
        )
        table.row(name, f"{count:,}", f"{seconds:.1f}", f"{1e6 * used / count:.2f}", *memory)


def nothing(i: int) -> int:
    """An empty task."""
    return i


def seconds_of_a_task(client: Any, n: int) -> float:
    """What submitting, scheduling and gathering an empty task takes."""
    started = time.perf_counter()
    client.gather(client.map(nothing, range(n), pure=False))
    return (time.perf_counter() - started) / n


def efficiency(n_workers: int, task: float, per_task: float, merge: float) -> float:
    """The share of the workers' time that tasks take, by simulation of ``TASKS_A_WORKER`` tasks for each worker."""
    ready = [(0.0, worker) for worker in range(n_workers)]
    heapq.heapify(ready)
    scheduler = client = end = 0.0
    for _ in range(TASKS_A_WORKER * n_workers):
        free, worker = heapq.heappop(ready)
        scheduler = max(scheduler, free) + per_task
        done = scheduler + task
        heapq.heappush(ready, (done, worker))
        client = max(client, done) + merge
        end = max(end, client)
    return TASKS_A_WORKER * task / end


def killed_run(client: Any, cluster: Any, kills: int) -> tuple[bool, int, float]:
    """Whether a run has the bits of one machine while workers are killed at random, how many were, and its seconds."""
    sampler, options = samplers.resgld(), {"n_steps": 20_000, "thin": 5_000, "n_chains": 20_000 * kills, "seed": 3}
    killed, over = [0], threading.Event()

    def kill() -> None:
        while not over.wait(random.uniform(1.0, 3.0)) and killed[0] < kills:
            running = [
                nanny.process.pid
                for nanny in cluster.workers.values()
                if nanny.process is not None and nanny.process.status.name == "running"
            ]
            if len(running) == 2:
                os.kill(random.choice(running), signal.SIGKILL)
                killed[0] += 1

    thread = threading.Thread(target=kill)
    thread.start()
    started = time.perf_counter()
    spread = sample(PROBLEM, sampler, **options, client=client)
    seconds = time.perf_counter() - started
    over.set()
    thread.join()
    mine, theirs = (arrays_of(run, {}) for run in (spread, sample(PROBLEM, sampler, **options)))
    return all(np.array_equal(mine[name], theirs[name], equal_nan=True) for name in theirs), killed[0], seconds


def main(plan: Plan) -> None:
    """Print the tables."""
    from dask.distributed import Client, LocalCluster

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50)
    with cluster, Client(cluster) as client:
        many_chains(client, plan)
        table = Table(
            plan.folder, "cluster", "run", "chains", "2 threads, s", "2 processes, s", "ratio",
            "ratio of processor time",
        )  # fmt: skip
        for name, (sampler, n_chains, n_steps) in CASES.items():
            n_chains = n_chains // 50 if plan.is_small else n_chains
            ratios, threads, processes, used = [], [], [], []
            seconds_of(sampler, n_chains // 10, n_steps, threads=2)
            seconds_of(sampler, n_chains // 10, n_steps, client=client)
            for _ in range(plan.rounds):
                before = processor_seconds(client)
                threads.append(seconds_of(sampler, n_chains, n_steps, threads=2))
                between = processor_seconds(client)
                processes.append(seconds_of(sampler, n_chains, n_steps, client=client))
                ratios.append(processes[-1] / threads[-1])
                used.append((processor_seconds(client) - between) / (between - before))
            table.row(
                name, f"{n_chains:,}", f"{statistics.median(threads):.1f}", f"{statistics.median(processes):.1f}",
                f"{statistics.median(ratios):.2f}", f"{statistics.median(used):.2f}",
            )  # fmt: skip
        per_task = seconds_of_a_task(client, 50 if plan.is_small else 2000)
        print(f"\nan empty task takes {1e3 * per_task:.2f} ms")
        equal, kills, seconds = killed_run(client, cluster, 1 if plan.is_small else KILLS)
        print(f"{kills} workers killed at random within {seconds:.0f} s: {'equal' if equal else 'OTHER'} bits\n")
    simulated = Table(plan.folder, "cluster_simulated", "workers", "task, s", "efficiency, pooled", "efficiency, 1 MB")
    for n_workers in (10, 100) if plan.is_small else (10, 1_000, 100_000):
        for task in (1.0, 10.0, 100.0):
            shares = [efficiency(n_workers, task, per_task, merge) for merge in (1e-4, 1e-2)]
            simulated.row(f"{n_workers:,}", f"{task:g}", *(f"{share:.2f}" for share in shares))
