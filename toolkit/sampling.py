"""``sample`` and ``stream``: check everything, run in chunks, hand back what is there."""

import warnings
from collections.abc import Iterator
from typing import Any

from .blocks import Layout
from .checks import check_flag
from .driver import Driver
from .errors import InterruptedWarning
from .job import Job, make_job
from .result import Run
from .samplers import Sampler


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
    threads: int | None = None,
    progress: bool | None = None,
    keep_replicas: bool = False,
    keep_energies: bool = False,
    layout: Layout = Layout(),
) -> Run:
    """Run ``sampler`` on ``problem`` and return its draws.

    problem: a Problem or a Target. n_steps: steps in all, burn-in included; each is one gradient evaluation for
    every replica of every chain. seed: 0 to 2⁶⁴ − 1, all bits count; the same seed gives the same bits for any
    number of threads, other chains or layout. Every ``thin``-th step after ``burn_in`` is kept, where the schedule
    allows. init: start of shape (dim,), (n_chains, dim) or (n_chains, n_replicas, dim); None: the origin.
    threads: None for all processors. progress: a bar on stderr; None: only on a terminal. keep_replicas: keep draws
    of all temperatures. keep_energies: keep the draws' energies.

    Ctrl-C ends the run and returns the draws so far, with an ``InterruptedWarning``.
    Raises TypeError or ValueError before anything runs, naming the argument, its value and what is allowed;
    DivergenceError, with the run so far attached, where a position or energy stops being finite.
    """
    job = make_job(
        problem, sampler, n_steps=n_steps, seed=seed, n_chains=n_chains, burn_in=burn_in, thin=thin, init=init,
        backend=backend, threads=threads, keep_replicas=keep_replicas, keep_energies=keep_energies, layout=layout,
    )  # fmt: skip
    check_progress(progress)
    steps = job.kept_steps()
    draws, energies = job.room(steps.size)
    interrupted = False
    with Driver(job, progress) as driver:
        try:
            for first, last in driver.growing_chunks():
                driver.advance(first, last, draws, energies, offset=driver.n_draws)
                n_draws = driver.n_draws
                driver.raise_divergence(draws[:, :, :n_draws], energies[:, :, :n_draws], steps[:n_draws])
        except KeyboardInterrupt:
            interrupted = True
    n_draws = driver.n_draws
    if interrupted:
        warnings.warn(
            f"interrupted after {driver.done} of {n_steps} steps; the run holds {n_draws} of {steps.size} draws",
            InterruptedWarning,
            stacklevel=2,
        )
    return driver.result(draws[:, :, :n_draws], energies[:, :, :n_draws], steps[:n_draws], interrupted)


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
    threads: int | None = None,
    progress: bool | None = None,
    keep_replicas: bool = False,
    keep_energies: bool = False,
    layout: Layout = Layout(),
) -> Iterator[Run]:
    """As ``sample``, but yield a ``Run`` for each chunk of steps, so that memory does not grow with ``n_steps``.

    A chunk's draws are its own; its rates and counts are those since the start. Chunks of burn-in have no draws.
    Joined along the draws, they equal ``sample``'s bit for bit. Checks its arguments when called, not when iterated.
    """
    job = make_job(
        problem, sampler, n_steps=n_steps, seed=seed, n_chains=n_chains, burn_in=burn_in, thin=thin, init=init,
        backend=backend, threads=threads, keep_replicas=keep_replicas, keep_energies=keep_energies, layout=layout,
    )  # fmt: skip
    check_progress(progress)
    return stream_chunks(job, progress)


def check_progress(progress: Any) -> None:
    """Raise TypeError where ``progress`` is not None, True or False."""
    if progress is not None:
        check_flag("progress", progress)


def stream_chunks(job: Job, progress: bool | None) -> Iterator[Run]:
    """The chunks of a checked job."""
    with Driver(job, progress) as driver:
        for first, last in job.chunks():
            steps = job.plan(first, last)[1]
            draws, energies = job.room(steps.size)
            driver.advance(first, last, draws, energies, offset=0)
            driver.raise_divergence(draws, energies, steps)
            yield driver.result(draws, energies, steps)
