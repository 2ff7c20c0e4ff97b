"""A run on a cluster: its arguments checked here, its chains divided into tasks, the results joined as they come."""

import dataclasses
import sys
import time
import warnings
from typing import Any, NamedTuple

import numpy as np

from .._engine.job import Job, check_footprint, make_job
from .._engine.partition_pilot import with_partition
from .._output.report.warnings import warn_about
from .._output.run import Run
from ..accumulators import check_accumulators
from ..errors import (
    ClusterError,
    DivergenceError,
    InterruptedWarning,
    check_choice,
    check_count,
    check_flag,
    check_progress,
    check_room,
    optional,
)
from ..problem.definition import Spread
from ..samplers.sampler import Sampler
from .collection import ByChain, PooledResults, PooledRun
from .part import Request, is_pooled, numbers_of_chain
from .sizes import TaskSizes
from .tasks import Lost, TaskQueue, check_client, part_on_worker

FEW = 64  # chains with which arguments are checked here, where all of them would be many


class Asked(NamedTuple):
    """A run as it is asked for, checked. job: of few chains. starts: (chain, replica, dim), where given by chain."""

    request: Request
    job: Job
    starts: Any
    pilot_gradients: int
    threads: int
    chains_per_task: int | None


def run_distributed(
    problem: Any,
    sampler: Any,
    *,
    client: Any,
    n_chains: Any,
    init: Any,
    threads: Any,
    backend: Any,
    progress: Any,
    keep_draws: Any,
    chains_per_task: Any,
    stacklevel: int,
    **options: Any,
) -> Run | PooledRun:
    """``sample`` with a client, as documented there. options: others of ``make_job``."""
    check_client(client)
    check_progress(progress)
    asked = checked(
        problem, sampler, n_chains=n_chains, init=init, threads=threads, backend=backend, keep_draws=keep_draws,
        chains_per_task=chains_per_task, stacklevel=stacklevel + 1, **options,
    )  # fmt: skip
    collection: ByChain | PooledResults = (PooledResults if asked.request.pools else ByChain)(asked.job, asked.request)
    bar = chains_bar(asked, progress)
    try:
        run = collected(asked, client, collection, bar, stacklevel + 1)
    finally:
        if bar is not None:
            bar.close()
    if isinstance(run, Run):
        warn_about(run, stacklevel=stacklevel + 1)
    return run


def checked(
    problem: Any, sampler: Any, *, n_chains: Any, init: Any, threads: Any, backend: Any, keep_draws: Any,
    chains_per_task: Any, stacklevel: int, **options: Any,
) -> Asked:  # fmt: skip
    """All arguments, checked with few chains, and contour's partition found by a pilot on this machine."""
    n_chains = check_count("n_chains", n_chains, at_least=1, below=2**32)
    keep_draws = check_flag("keep_draws", keep_draws)
    check_choice("backend", backend, ["cpu", "cuda"])
    if threads is not None:
        check_count("threads", threads, at_least=1)
    if chains_per_task is not None:
        chains_per_task = check_count("chains_per_task", chains_per_task, at_least=1)
    accumulators = check_accumulators(options["accumulators"])
    by_chain = not (init is None or isinstance(init, Spread) or np.ndim(init) == 1)
    is_swept = isinstance(sampler, Sampler) and sampler.n_chains is not None
    few = n_chains if by_chain or is_swept else min(n_chains, FEW)
    job = make_job(problem, sampler, n_chains=few, init=init, **options)
    next(job.kept_pieces())  # raises where there are none
    completed, pilot_gradients = with_partition(job, stacklevel=stacklevel + 1, n_chains=n_chains)
    job = dataclasses.replace(job, sampler=completed)
    given = {**options, "accumulators": accumulators, "on_divergence": job.on_divergence, "backend": backend}
    start = init if by_chain or init is None or isinstance(init, Spread) else job.init[0, 0]
    pools = not keep_draws and is_pooled(accumulators) and job.trace_every is None
    request = Request(job.problem, completed, n_chains, None if by_chain else start, given, keep_draws, pools)
    if not pools:
        all_chains = np.broadcast_to(job.init[:1], (n_chains, *job.init.shape[1:]))
        check_footprint(dataclasses.replace(job, init=all_chains), keep_draws=keep_draws, keep_trace=True)
        hint = "; give keep_draws=False and accumulators.pooled(...) alone, whose results do not grow with n_chains"
        check_room("n_chains", n_chains, 8.0 * n_chains * numbers_of_chain(job), hint=hint)
    return Asked(request, job, job.init if by_chain else None, pilot_gradients, threads or 1, chains_per_task)


def collected(
    asked: Asked, client: Any, collection: ByChain | PooledResults, bar: Any, stacklevel: int
) -> Run | PooledRun:
    """The run, of all chains; of those that are done where Ctrl-C is pressed."""
    started = time.perf_counter()

    def result(interrupted: bool = False) -> Any:
        seconds = time.perf_counter() - started
        return collection.result(pilot_gradients=asked.pilot_gradients, elapsed=seconds, interrupted=interrupted)

    try:
        compute_all(asked, client, collection, bar)
        run = result()
        raise_where_all_diverged(asked, run)
        return run
    except KeyboardInterrupt:
        run = result(interrupted=True)
        if run is None:
            raise
        done = int(collection.done.sum())
        warnings.warn(
            f"interrupted after {done:,} of {asked.request.n_chains:,} chains; the run holds these, in order",
            InterruptedWarning,
            stacklevel=stacklevel + 1,
        )
        return run
    except (DivergenceError, ClusterError) as error:
        error.run = result(interrupted=True) or error.run
        raise


def compute_all(asked: Asked, client: Any, collection: ByChain | PooledResults, bar: Any) -> None:
    """Submit tasks until ``collection`` has all chains."""
    request, job = asked.request, asked.job
    sizes = TaskSizes(
        request.n_chains, each=asked.chains_per_task, multiple=1, n_bytes=bytes_of_chain(asked),
        gradients=job.n_steps * request.sampler.gradients_per_step,
    )  # fmt: skip
    todo = gaps(collection.done)
    left = sum(last - first for first, last in todo)
    with TaskQueue(client, request, resources_for(client, request)) as queue:

        def submit(first: int, last: int) -> None:
            starts = None if asked.starts is None else asked.starts[first:last]
            queue.submit(part_on_worker, (first, last), first, last, asked.threads, starts)

        while todo or queue.n_waiting:
            while todo and queue.has_room:
                first, end = todo.pop()
                last = min(end, first + sizes.next(left, queue.n_threads))
                left -= last - first
                submit(first, last)
                if last < end:
                    todo.append((last, end))
            (first, last), part = queue.next()
            if isinstance(part, Lost):
                if last - first == 1:
                    raise ClusterError(
                        f"chain {first} was lost with its workers again and again, alone on each: too little memory? "
                        f"{part.reason}"
                    )
                middle = (first + last) // 2
                submit(first, middle)
                submit(middle, last)
                continue
            collection.add(part)
            sizes.add(last - first, part.seconds)
            if bar is not None:
                bar.update(last - first)


def gaps(done: Any) -> list[tuple[int, int]]:
    """First and last chain (exclusive) of each stretch that is not done, the last stretch first."""
    edges = np.flatnonzero(np.diff(np.concatenate([[True], done, [True]]).astype(np.int8)))
    return [(int(first), int(last)) for first, last in edges.reshape(-1, 2)][::-1]


def bytes_of_chain(asked: Asked) -> float:
    """Bytes of the results of one chain that a task returns."""
    job, request = asked.job, asked.request
    if request.pools:
        return 0.0
    draws = job.counts_before(job.n_steps)[0] if request.keep_draws else 0
    times = job.n_steps // job.trace_every if job.trace_every else 0
    each = job.n_kept * (job.init.shape[2] + job.records_energies + job.sampler.is_weighted + 2 * job.keep_statistics)
    traced = job.sampler.n_replicas * len(job.trace_fields)
    return float(8.0 * (draws * each + times * traced + numbers_of_chain(job)))


def resources_for(client: Any, request: Request) -> dict[str, float] | None:
    """For backend="cuda": a worker's resource "GPU", where workers have one of this name; each task takes one."""
    if request.options["backend"] != "cuda":
        return None
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    return {"GPU": 1} if any("GPU" in worker.get("resources", {}) for worker in workers) else None


def raise_where_all_diverged(asked: Asked, run: Run | PooledRun) -> None:
    """Raise DivergenceError where on_divergence is "keep" and no chain is left."""
    diverged = int(run.diverged.sum()) if isinstance(run, Run) else run.n_diverged
    if diverged < asked.request.n_chains:
        return
    step, chain, replica = -1, 0, 0
    if isinstance(run, Run):
        status = run.counts.status
        step = int(status[status > 0].min()) - 1
        chain, replica = (int(i) for i in np.argwhere(status == step + 1)[0])
    raise DivergenceError(
        f"all {diverged:,} chains diverged: make the step size smaller; this error's `run` holds what there is.",
        chain=chain, replica=replica, step=step, state=np.full(asked.job.init.shape[2], np.nan), run=run,
    )  # fmt: skip


def chains_bar(asked: Asked, progress: bool | None) -> Any:
    """A progress bar of chains on stderr, or None, as of a run on one machine."""
    if progress is False or (progress is None and (sys.stderr is None or not sys.stderr.isatty())):
        return None
    return optional("tqdm", "cluster").tqdm(
        total=asked.request.n_chains, desc=asked.request.sampler.name, unit="chain", unit_scale=True, leave=False
    )
