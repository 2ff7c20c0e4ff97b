"""A run on a cluster: its arguments checked here, its chains divided into tasks, the results joined as they come."""

import contextlib
import dataclasses
import os
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._engine.driver import bar_of
from .._engine.job import Job, check_footprint, make_job
from .._engine.partition_pilot import with_partition
from .._engine.run_options import RunOptions
from .._output.report.warnings import warn_about
from .._output.run import Run
from .._output.storage import run_file
from ..accumulators import check_accumulators
from ..errors import (
    ClusterError,
    DivergenceError,
    InterruptedWarning,
    check_choice,
    check_count,
    check_flag,
    check_number,
    check_progress,
    check_room,
    shown,
    warn_user,
)
from ..problem.definition import Spread
from ..samplers.sampler import Sampler
from . import store
from .collection import ByChain, PooledResults, PooledRun
from .part import Request, is_pooled, job_of, numbers_of_chain, run_chains
from .parts_folder import PartsFolder, described
from .sizes import TaskSizes
from .stored_run import StoredResults, StoredRun, unfinished_path
from .tasks import Lost, TaskQueue, check_client, part_on_worker

Collection = ByChain | PooledResults
Result = Run | PooledRun | StoredRun

MOST_LOSSES = 3  # of a task that cannot be made smaller
MOST_BYTES = 128 << 20  # of a task's results
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
    problem: Any, sampler: Any, options: RunOptions, *, client: Any, chains_per_task: Any, save: Any
) -> Result:
    """``sample`` with a client, as documented there."""
    check_client(client)
    check_progress(options.progress)
    checkpoint_every = check_number("checkpoint_every", options.checkpoint_every, above=0.0)
    asked = checked(problem, sampler, options, chains_per_task=chains_per_task, is_saved=save is not None)
    collection: Collection
    if save is not None:
        asked, few = with_store(asked, save)
        collection = StoredResults(asked.job, asked.request, save, few)
    else:
        collection = (PooledResults if asked.request.pools else ByChain)(asked.job, asked.request)
    folder = PartsFolder(options.checkpoint, described(asked.job, asked.request.n_chains), checkpoint_every)
    bar = bar_of(options.progress, total=asked.request.n_chains, desc=asked.request.sampler.name, unit="chain")
    with folder, contextlib.nullcontext() if bar is None else bar:
        folder.restore(collection)
        if isinstance(collection, StoredResults):
            collection.begin()
        run = collected(UnderWay(asked, client, collection, folder, bar))
    if isinstance(run, Run):
        warn_about(run)
    return run


def checked(
    problem: Any, sampler: Any, options: RunOptions, *, chains_per_task: Any = None, is_saved: bool = False
) -> Asked:
    """All arguments, checked with few chains, and contour's partition found by a pilot on this machine.

    is_saved: draws go to a store, and not to memory.
    """
    n_chains = check_count("n_chains", options.n_chains, at_least=1, below=2**32)
    keep_draws = check_flag("keep_draws", options.keep_draws)
    check_choice("backend", options.backend, ["cpu", "cuda"])
    if options.threads is not None:
        check_count("threads", options.threads, at_least=1)
    if chains_per_task is not None:
        chains_per_task = check_count("chains_per_task", chains_per_task, at_least=1)
    accumulators, init = check_accumulators(options.accumulators), options.init
    by_chain = not (init is None or isinstance(init, Spread) or np.ndim(init) == 1)
    is_swept = isinstance(sampler, Sampler) and sampler.n_chains is not None
    few = n_chains if by_chain or is_swept else min(n_chains, FEW)
    of_tasks = dataclasses.replace(options, checkpoint=None, checkpoint_every=60.0, progress=None)
    here = dataclasses.replace(of_tasks, n_chains=few, backend="cpu", threads=None)
    job = make_job(problem, sampler, here)
    next(job.kept_pieces())  # raises where there are none
    completed, pilot_gradients = with_partition(job, n_chains=n_chains)
    job = dataclasses.replace(job, sampler=completed)
    of_tasks = dataclasses.replace(of_tasks, accumulators=accumulators, on_divergence=job.on_divergence, init=None)
    start = init if by_chain or init is None or isinstance(init, Spread) else job.init[0, 0]
    pools = not keep_draws and is_pooled(accumulators) and job.trace_every is None
    request = Request(job.problem, completed, n_chains, None if by_chain else start, of_tasks, keep_draws, pools)
    if not pools:
        hint = "; give keep_draws=False and accumulators.pooled(...) alone, whose results do not grow with n_chains"
        check_room("n_chains", n_chains, 8.0 * n_chains * numbers_of_chain(job), hint=hint)
        if not is_saved:
            all_chains = np.broadcast_to(job.init[:1], (n_chains, *job.init.shape[1:]))
            check_footprint(dataclasses.replace(job, init=all_chains), keep_draws=keep_draws, keep_trace=True)
    return Asked(request, job, job.init if by_chain else None, pilot_gradients, options.threads or 1, chains_per_task)


def with_store(asked: Asked, save: Any) -> tuple[Asked, Run]:
    """``asked`` with draws that go to a store at ``save``, and a run of its first chains. Raises where they cannot."""
    place, suffix = run_file.checked_path(save, "save")
    request = asked.request
    if suffix != ".zarr":
        raise ValueError(f"save must end in .zarr with a client, whose workers write regions of it, got {shown(save)}")
    run_file.check_replaceable(place, suffix, "save")
    if not request.keep_draws:
        raise ValueError("keep_draws must be True with save, got False")
    if request.options.accumulators and not is_pooled(request.options.accumulators):
        raise ValueError("accumulators must be accumulators.pooled(...) with save and a client, got results by chain")
    if request.sampler.n_chains is not None:
        raise ValueError("sampler must have one setting for all chains with save and a client")
    n_chains = min(2, request.n_chains)
    starts = None if asked.starts is None else asked.starts[:n_chains]
    few = run_chains(job_of(request, 0, n_chains, 1, starts), keep_draws=True)[0]
    block = store.block_of(few)
    region = store.Region(unfinished_path(Path(os.path.realpath(place))), block)
    return asked._replace(request=request._replace(region=region, pools=True)), few


class UnderWay(NamedTuple):
    """A run under way: what is asked for, of whom, and where its results go."""

    asked: Asked
    client: Any
    collection: Collection
    folder: PartsFolder
    bar: Any  # None: not shown


def collected(under_way: UnderWay) -> Result:
    """The run, of all chains; of those that are done where Ctrl-C is pressed."""
    asked, collection, started = under_way.asked, under_way.collection, time.perf_counter()

    def result(interrupted: bool = False) -> Any:
        seconds = time.perf_counter() - started
        return collection.result(pilot_gradients=asked.pilot_gradients, elapsed=seconds, interrupted=interrupted)

    try:
        try:
            compute_all(under_way)
        finally:
            under_way.folder.save(collection)
        run: Result = result()
        raise_where_all_diverged(asked, run)
        return run
    except KeyboardInterrupt:
        if not collection.done.any():
            raise
        run, done = result(interrupted=True), collection.done.count()
        warn_user(
            f"interrupted after {done:,} of {asked.request.n_chains:,} chains; the run holds these, in order",
            InterruptedWarning,
        )
        return run
    except Exception as error:
        if collection.done.any():
            with contextlib.suppress(Exception):  # one without attributes is raised unchanged
                error.run = result(interrupted=True)  # type: ignore[attr-defined]
                error.add_note(f"This error's `run` holds the {collection.done.count():,} chains that were done.")
        raise


def compute_all(under_way: UnderWay) -> None:
    """Submit tasks until all chains are done."""
    asked, client, collection, folder, bar = under_way
    request, job = asked.request, asked.job
    block = 1 if request.region is None else request.region.block
    sizes, each = TaskSizes(), max(1.0, job.n_steps * request.sampler.gradients_per_step)
    most = MOST_BYTES / max(1.0, bytes_of_chain(asked))
    losses: dict[int, int] = {}
    todo = collection.done.missing()[::-1]  # the first is taken first
    left = sum(last - first for first, last in todo)
    with TaskQueue(client, request, resources_for(client, request)) as queue:

        def submit(first: int, last: int) -> None:
            starts = None if asked.starts is None else asked.starts[first:last]
            queue.submit(part_on_worker, (first, last), first, last, asked.threads, starts)

        while todo or queue.n_waiting:
            while todo and queue.has_room:
                first, end = todo.pop()
                length = asked.chains_per_task or min(most, sizes.next(each * left, queue.n_threads) / each)
                last = min(end, first + block * max(1, round(length / block)))
                left -= last - first
                submit(first, last)
                if last < end:
                    todo.append((last, end))
            (first, last), part = queue.next()
            if isinstance(part, Lost):
                if last - first <= block:
                    losses[first] = losses.get(first, 0) + 1
                    if losses[first] > MOST_LOSSES:
                        raise ClusterError(
                            f"a task of {last - first} chains was lost with its workers again and again: too little "
                            f"memory? {part.reason}"
                        )
                    submit(first, last)  # others that shared its workers may have been at fault
                    continue
                middle = first + block * -(-(last - first) // (2 * block))
                submit(first, middle)
                submit(middle, last)
                continue
            collection.add(part)
            folder.after(part, collection)
            sizes.add(each * (last - first), part.seconds)
            if bar is not None:
                bar.update(last - first)


def bytes_of_chain(asked: Asked) -> float:
    """Bytes of the results of one chain that a task returns."""
    job, request = asked.job, asked.request
    if request.pools and request.region is None:
        return 0.0
    draws = job.counts_before(job.n_steps)[0] if request.keep_draws else 0
    times = job.n_steps // job.trace_every if job.trace_every else 0
    each = job.n_kept * (job.init.shape[2] + job.records_energies + job.sampler.is_weighted + 2 * job.keep_statistics)
    traced = job.sampler.n_replicas * job.n_trace_fields
    return float(8.0 * (draws * each + times * traced + numbers_of_chain(job)))


def resources_for(client: Any, request: Request) -> dict[str, float] | None:
    """For backend="cuda": a worker's resource "GPU", where workers have one of this name; each task takes one."""
    if request.options.backend != "cuda":
        return None
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    return {"GPU": 1} if any("GPU" in worker.get("resources", {}) for worker in workers) else None


def raise_where_all_diverged(asked: Asked, run: Result) -> None:
    """Raise DivergenceError where on_divergence is "keep" and no chain is left."""
    totals: Any = run.totals if isinstance(run, StoredRun) else run
    diverged = int(run.diverged.sum()) if isinstance(run, Run) else totals.n_diverged
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
