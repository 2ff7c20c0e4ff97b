"""Run a given sampler: check the arguments, run in chunks, return the results; the lower part of ``sample``."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from .._engine.driver import Driver, RunsToEnd, Watch, execute
from .._engine.job import Job, check_footprint, make_job, needs_host_draws
from .._engine.run_options import RunOptions
from ..diagnostics.stopping import (
    Condition,
    UntilWatch,
    check_budget,
    check_fits,
    check_until,
    judged_accumulators,
)
from ..errors import check_flag, check_progress
from .report.warnings import warn_about
from .run import Run
from .saving import saves_of


def run_sampler(problem: Any, sampler: Any, options: RunOptions) -> Run:
    """``sample`` with a given sampler, as documented there."""
    condition = check_until(options.until)
    job = make_job(problem, sampler, options)
    progress = options.progress
    check_progress(progress)
    keep_draws = check_flag("keep_draws", options.keep_draws)
    room = {"keep_draws": keep_draws, "keep_trace": True, "has_draws": needs_host_draws(job, keep_draws)}
    job = check_condition(condition, job, keeps_draws=keep_draws)
    check_footprint(job, **room, end=end_of_first_look(condition, job, room))
    next(job.kept_pieces())  # raises where there are none
    with saves_of(job, "sample" if keep_draws else "sample without draws") as saved:
        job = saved.complete(job)
        watch = watch_of(condition, job, room)
        run = execute(job, Run, saved, progress=progress, keep_draws=keep_draws, watch=watch)
    warn_about(run)
    return run


def stream_sampler(problem: Any, sampler: Any, options: RunOptions) -> Iterator[Run]:
    """``stream`` with a given sampler, as documented there."""
    condition = check_until(options.until)
    job = make_job(problem, sampler, options)
    check_progress(options.progress)
    job = check_condition(condition, job, keeps_draws=False)
    next(job.kept_pieces())  # raises where there are none
    room = {"keep_draws": False, "keep_trace": False, "has_draws": True}
    check_footprint(job, **room)
    with saves_of(job, "stream") as saved:
        job = saved.complete(job)
    return stream_chunks(job, options.progress, watch_of(condition, job, room))


def check_arguments(problem: Any, sampler: Any, options: RunOptions) -> None:
    """Raise what ``run_sampler`` would for these arguments, but for what depends on memory or a checkpoint's file."""
    condition = check_until(options.until)
    job = make_job(problem, sampler, options)
    check_progress(options.progress)
    check_condition(condition, job, keeps_draws=check_flag("keep_draws", options.keep_draws))


def check_condition(condition: Condition | None, job: Job, *, keeps_draws: bool) -> Job:
    """``job`` with what the condition is judged by. Raises ValueError or TypeError where it cannot be."""
    if condition is None:
        return job
    check_fits(condition, job, keeps_draws=keeps_draws)
    check_budget(condition, job)
    return replace(job, accumulators=job.accumulators | judged_accumulators(condition, keeps_draws=keeps_draws))


def watch_of(condition: Condition | None, job: Job, room: dict[str, bool]) -> Watch:
    """What ends the run of ``job``; room: the arguments of ``check_footprint``."""
    if condition is None:
        return RunsToEnd(job)
    check_budget(condition, job)  # again, with the pilot's evaluations
    return UntilWatch(condition, job, room=room)


def end_of_first_look(condition: Condition | None, job: Job, room: dict[str, bool]) -> int | None:
    """The step at which the outputs that are allocated first end; None: the last."""
    return None if condition is None else UntilWatch(condition, job, room=room).next_end(0)


def stream_chunks(job: Job, progress: bool | None, watch: Watch) -> Iterator[Run]:
    """The chunks of a checked job."""
    nothing = job.empty_outputs(0, 0)
    none = np.zeros(0, np.int64)
    with saves_of(job, "stream") as saved, Driver(job, progress, Run) as driver:
        saved.restore(driver, nothing)
        driver.raise_divergence((nothing, none, none), saved, nothing)
        done = driver.done
        is_over = done > 0 and (
            watch.is_over(driver) or (watch.next_end(done - 1) == done and watch.look(driver, nothing))
        )
        if is_over:
            yield driver.result(nothing, none, none, stopping=watch.stopping(driver, nothing, interrupted=False))
        while not is_over:
            end = watch.next_end(driver.done)
            chunks = (
                driver.growing_chunks(job.chunk_length, end, in_time=True)
                if watch.in_time
                else job.chunks(driver.done, end)
            )
            for first, last in chunks:
                steps, trace_steps = job.plan(first, last)[1], job.traced(first, last)
                outputs = job.empty_outputs(steps.size, trace_steps.size)
                driver.advance(first, last, outputs, offset=0, trace_offset=0)
                driver.raise_divergence((outputs, steps, trace_steps), saved, nothing)
                is_over = watch.look(driver, nothing) if last == end else watch.is_over(driver)
                stopping = watch.stopping(driver, nothing, interrupted=False) if is_over else None
                run = driver.result(outputs, steps, trace_steps, stopping=stopping)
                if is_over:
                    warn_about(run)
                yield run
                saved.after_chunk(driver, nothing)
                if is_over:
                    break
        saved.save(driver, nothing)
