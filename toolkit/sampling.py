"""``sample`` and ``stream``: check the arguments, run in chunks, return the results."""

import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ._engine.driver import Driver, execute
from ._engine.job import Job, check_footprint, make_job, needs_host_draws
from ._engine.state import Layout
from ._output.report.warnings import warn_about
from ._output.run import Run
from ._output.storage.checkpoint import Checkpoint
from .accumulators import Accumulator
from .errors import check_flag, check_progress
from .samplers.sampler import Sampler


def sample(
    problem: Any,
    sampler: Sampler,
    *,
    n_steps: int,
    seed: int,
    n_chains: int = 1,
    burn_in: int = 0,
    thin: int = 1,
    init: Any = None,
    backend: str = "cpu",
    dtype: str = "float64",
    threads: int | None = None,
    progress: bool | None = None,
    keep_replicas: bool = False,
    keep_draws: bool = True,
    keep_energies: bool = False,
    keep_statistics: bool = True,
    trace_every: int | None = None,
    accumulators: Mapping[str, Accumulator] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 60.0,
    layout: Layout = Layout(),
) -> Run:
    """Run ``sampler`` on ``problem`` and return its draws.

    problem: a Problem or a Target. n_steps: steps in all, burn-in included; each is one gradient evaluation for
    every replica of every chain. seed: 0 to 2⁶⁴ − 1, all bits count; the same seed gives the same bits for any
    number of threads, other chains or layout. Every ``thin``-th step after ``burn_in`` is kept, where the schedule
    allows. init: start of shape (dim,), (n_chains, dim) or (n_chains, n_replicas, dim); or a ``Spread``, in which each
    chain and replica has a start of its own, drawn by the seed; None: in the domain, in the scale that the target
    states, or else within ±2 (docs/starts.md); a point without a finite energy is drawn anew, up to 100 times.
    backend: "cpu", or "cuda" for an NVIDIA GPU (docs/cuda.md). dtype: "float32" (backend "cuda" alone) computes with
    24 bits, which the run's arrays hold as float64. threads: None for all processors. progress: a bar on stderr; None:
    only on a terminal. keep_replicas: keep draws of all temperatures. keep_energies: keep the draws' energies.
    keep_statistics: keep ``run.statistics``, where there is anything to count. trace_every: also record ``run.trace``,
    what the sampler knows of itself (energies, thermostats, θ, walkers, …), after every so many steps, burn-in
    included. accumulators: name → what to gather from the draws (``accumulators``), which ``run.accumulated`` holds.
    keep_draws=False keeps none of them: memory does not grow with n_steps, but for a trace. checkpoint: a file in which
    the run is saved every ``checkpoint_every`` > 0 seconds of sampling, and at its end; called again the run goes on
    from there (docs/resume.md), with more n_steps too, and gives the bits of one that was never stopped.

    Ctrl-C ends the run after the chunk under way and returns the draws so far, with an ``InterruptedWarning``; a second
    one does not wait, unless for a GPU. A run with a checkpoint is saved first, as far as it has come in whole chunks.
    Raises TypeError or ValueError before anything runs, naming the argument, its value and what is allowed; ImportError
    or CudaError where there is no numba-cuda or no GPU for backend "cuda"; CudaWarning where its bits may not be a
    CPU's; CheckpointError where a checkpoint is another run's, in use or damaged beyond use; DivergenceError, with the
    run so far attached, where a position or energy stops being finite; what a target made by ``from_callable`` raises,
    with the run so far as its attribute ``run``.
    """
    job = make_job(
        problem, sampler, n_steps=n_steps, seed=seed, n_chains=n_chains, burn_in=burn_in, thin=thin, init=init,
        backend=backend, dtype=dtype, threads=threads, keep_replicas=keep_replicas, keep_energies=keep_energies,
        keep_statistics=keep_statistics, trace_every=trace_every, accumulators=accumulators,
        checkpoint=checkpoint, checkpoint_every=checkpoint_every, layout=layout,
    )  # fmt: skip
    check_progress(progress)
    check_flag("keep_draws", keep_draws)
    check_footprint(job, keep_draws=keep_draws, keep_trace=True, has_draws=needs_host_draws(job, keep_draws))
    next(job.kept_pieces())  # raises where there are none
    with Checkpoint(job, "sample" if keep_draws else "sample without draws") as saved:
        job = saved.complete(job)
        run = execute(job, Run, saved, progress=progress, keep_draws=keep_draws, stacklevel=2)
    warn_about(run, stacklevel=2)
    return run


def stream(
    problem: Any,
    sampler: Sampler,
    *,
    n_steps: int,
    seed: int,
    n_chains: int = 1,
    burn_in: int = 0,
    thin: int = 1,
    init: Any = None,
    backend: str = "cpu",
    dtype: str = "float64",
    threads: int | None = None,
    progress: bool | None = None,
    keep_replicas: bool = False,
    keep_energies: bool = False,
    keep_statistics: bool = True,
    trace_every: int | None = None,
    accumulators: Mapping[str, Accumulator] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 60.0,
    layout: Layout = Layout(),
) -> Iterator[Run]:
    """As ``sample``, but yield a ``Run`` for each chunk of steps, so that memory does not grow with ``n_steps``.

    A chunk's draws are its own; its rates and counts are those since the start. Chunks of burn-in have no draws.
    Joined along the draws, they equal ``sample``'s bit for bit. Checks its arguments when called, not when iterated.
    With a checkpoint, what is saved counts a chunk as taken once the next is asked for: a stream that is called again
    goes on after the last chunk saved as taken, and one that had come to its end yields a single run without draws.
    """
    job = make_job(
        problem, sampler, n_steps=n_steps, seed=seed, n_chains=n_chains, burn_in=burn_in, thin=thin, init=init,
        backend=backend, dtype=dtype, threads=threads, keep_replicas=keep_replicas, keep_energies=keep_energies,
        keep_statistics=keep_statistics, trace_every=trace_every, accumulators=accumulators,
        checkpoint=checkpoint, checkpoint_every=checkpoint_every, layout=layout,
    )  # fmt: skip
    check_progress(progress)
    next(job.kept_pieces())  # raises where there are none
    check_footprint(job, keep_draws=False, keep_trace=False)
    with Checkpoint(job, "stream") as saved:
        job = saved.complete(job)
    return stream_chunks(job, progress)


def stream_chunks(job: Job, progress: bool | None) -> Iterator[Run]:
    """The chunks of a checked job."""
    nothing = job.empty_outputs(0, 0)
    with Checkpoint(job, "stream") as saved, Driver(job, progress, Run) as driver:
        saved.restore(driver, nothing)
        if driver.done == job.n_steps:
            yield driver.result(nothing, np.zeros(0, np.int64), np.zeros(0, np.int64))
        for first, last in job.chunks(driver.done):
            steps, trace_steps = job.plan(first, last)[1], job.traced(first, last)
            outputs = job.empty_outputs(steps.size, trace_steps.size)
            driver.advance(first, last, outputs, offset=0, trace_offset=0)
            driver.raise_divergence(outputs, steps, trace_steps)
            run = driver.result(outputs, steps, trace_steps)
            if last == job.n_steps:
                warn_about(run, stacklevel=2)
            yield run
            saved.after_chunk(driver, nothing)
        saved.save(driver, nothing)
