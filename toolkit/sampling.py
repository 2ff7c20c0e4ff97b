"""``sample`` and ``stream``: check everything, lay the chains out, run in chunks, hand back what is there."""

import sys
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .blocks import Block, Engine, Layout, available_threads, by_chain, chunk_length, make_blocks
from .checks import check_array, check_choice, check_count
from .errors import DivergenceError, InterruptedWarning
from .philox import MAX_CHAINS, MAX_STEPS
from .problem import Problem, as_problem
from .result import Run
from .samplers import Sampler
from .schedules import Factors

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Job:
    """The checked arguments of one run."""

    problem: Problem
    sampler: Sampler
    n_steps: int
    seed: int
    burn_in: int
    thin: int
    init: Floats  # (chain, replica, dim)
    threads: int
    layout: Layout
    keep_replicas: bool
    keep_energies: bool

    @property
    def kept_replicas(self) -> int:
        """Replicas whose draws are kept: the coldest, or all."""
        return self.sampler.n_replicas if self.keep_replicas else 1

    def chunks(self) -> Iterator[tuple[int, int]]:
        """First and last step (exclusive) of each chunk."""
        length = chunk_length(self.layout, len(self.init), self.sampler.n_replicas)
        for first in range(0, self.n_steps, length):
            yield first, min(first + length, self.n_steps)

    def plan(self, first: int, last: int) -> tuple[Factors, NDArray[np.int64]]:
        """The schedule's factors of a chunk's steps, and those of its steps whose draw is kept."""
        steps = np.arange(first, last)
        factors = self.sampler.schedule.factors(steps, self.n_steps)
        kept = factors.keep & (steps >= self.burn_in) & ((steps - self.burn_in + 1) % self.thin == 0)
        return factors, steps[kept]


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
    of all temperatures. keep_energies: keep the draws' energies, at one more evaluation per chunk.

    Ctrl-C ends the run and returns the draws so far, with an ``InterruptedWarning``.
    Raises TypeError or ValueError before anything runs, naming the argument, its value and what is allowed;
    DivergenceError, with the run so far attached, where a position or energy stops being finite.
    """
    job = make_job(
        problem, sampler, n_steps, seed, n_chains, burn_in, thin, init, backend, threads, keep_replicas, keep_energies,
        layout,
    )  # fmt: skip
    steps = np.concatenate([job.plan(*chunk)[1] for chunk in job.chunks()])
    shape = (len(job.init), job.kept_replicas, steps.size, job.init.shape[2])
    draws = np.empty(shape)
    energies = np.empty(shape[:3] if keep_energies else (*shape[:2], 0))
    with Progress(job, progress) as bar:
        driver = Driver(job)
        n_draws = 0
        interrupted = False
        try:
            for first, last in job.chunks():
                n_kept = driver.advance(first, last, draws, energies, n_draws)
                n_draws += n_kept
                driver.raise_divergence(draws[:, :, :n_draws], energies[:, :, :n_draws], steps[:n_draws])
                bar.update(last)
        except KeyboardInterrupt:
            interrupted = True
        finally:
            driver.close()
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
        problem, sampler, n_steps, seed, n_chains, burn_in, thin, init, backend, threads, keep_replicas, keep_energies,
        layout,
    )  # fmt: skip
    return stream_chunks(job, progress)


def stream_chunks(job: Job, progress: bool | None) -> Iterator[Run]:
    """The chunks of a checked job."""
    with Progress(job, progress) as bar:
        driver = Driver(job)
        try:
            for first, last in job.chunks():
                steps = job.plan(first, last)[1]
                shape = (len(job.init), job.kept_replicas, steps.size, job.init.shape[2])
                draws = np.empty(shape)
                energies = np.empty(shape[:3] if job.keep_energies else (*shape[:2], 0))
                driver.advance(first, last, draws, energies, 0)
                driver.raise_divergence(draws, energies, steps)
                bar.update(last)
                yield driver.result(draws, energies, steps, interrupted=False)
        finally:
            driver.close()


class Driver:
    """The engine, blocks and threads of one run under way."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.done = 0
        self._elapsed = 0.0
        self._blocks: list[Block] = make_blocks(job.problem, job.sampler, job.init, job.layout, job.threads)
        self._engine = Engine(
            job.problem, job.sampler, seed=job.seed, burn_in=job.burn_in, keeps_energies=job.keep_energies
        )
        self._pool = ThreadPoolExecutor(min(job.threads, len(self._blocks)), thread_name_prefix="toolkit")

    def advance(self, first: int, last: int, draws: Floats, energies: Floats, offset: int) -> int:
        """Run one chunk, writing its draws from ``offset`` on; their number."""
        started = time.perf_counter()
        factors, kept = self.job.plan(first, last)
        slots = np.full(last - first, -1, np.int64)
        slots[kept - first] = offset + np.arange(kept.size)
        self._engine.run(self._pool, self._blocks, first, factors, slots, draws, energies)
        self.done = last
        self._elapsed += time.perf_counter() - started
        return kept.size

    def close(self) -> None:
        """Give the threads back."""
        self._pool.shutdown()

    def result(self, draws: Floats, energies: Floats, steps: NDArray[np.int64], interrupted: bool) -> Run:
        """The run as it stands, with the given draws."""
        job, n_replicas = self.job, self.job.sampler.n_replicas
        tempering = job.sampler.tempering
        accepted = np.concatenate([block.state.accepted.T for block in self._blocks])
        attempts = np.zeros(n_replicas - 1)
        if tempering is not None:
            every = tempering.swap_every
            first_attempt = max(1, -(-job.burn_in // every))
            numbers = np.arange(n_replicas - 1) % 2 if n_replicas > 2 else np.zeros(1)
            turns = min(2, n_replicas - 1)
            last_attempt = (self.done - 1) // every
            # Attempts first … last whose number has the pair's parity.
            attempts = np.maximum(0, (last_attempt - numbers) // turns - (first_attempt - 1 - numbers) // turns)
        with np.errstate(invalid="ignore", divide="ignore"):
            swap_rates = accepted / attempts
        return Run(
            problem=job.problem,
            sampler=job.sampler,
            seed=job.seed,
            n_steps=self.done,
            burn_in=job.burn_in,
            thin=job.thin,
            replica_draws=draws,
            steps=steps,
            energies=energies if job.keep_energies else None,
            swaps=accepted,
            swap_rates=swap_rates,
            reflections=by_chain(self._blocks, "bounces", n_replicas),
            reflection_fallbacks=by_chain(self._blocks, "fallbacks", n_replicas),
            gradient_evaluations=self.done * len(job.init) * n_replicas,
            elapsed=self._elapsed,
            interrupted=interrupted,
        )

    def raise_divergence(self, draws: Floats, energies: Floats, steps: NDArray[np.int64]) -> None:
        """Raise DivergenceError for the first lane that diverged, if any did."""
        status = by_chain(self._blocks, "status", self.job.sampler.n_replicas)
        if not status.any():
            return
        step = int(status[status > 0].min()) - 1
        chain, replica = (int(i) for i in np.argwhere(status == step + 1)[0])
        block = next(block for block in self._blocks if block.first <= chain < block.last)
        lane = replica * (block.last - block.first) + chain - block.first
        state = block.state.position[:, lane].copy()
        energy, gradient = self.job.problem.target.evaluate(state[None])
        message = (
            f"chain {chain}, replica {replica} diverged at step {step}: its last finite position is {state.tolist()}, "
            f"with energy {energy[0]:.6g} and gradient of norm {np.linalg.norm(gradient):.6g}, its step size "
            f"{self.job.sampler.step_sizes[replica]:g}. {self.likely_cause(state, energy[0], gradient)} "
            f"{int((status > 0).sum())} of {status.size} replicas diverged; this error's `run` holds the draws so far."
        )
        run = self.result(draws, energies, steps, interrupted=False)
        raise DivergenceError(message, chain=chain, replica=replica, step=step, state=state, run=run)

    def likely_cause(self, state: Floats, energy: float, gradient: Floats) -> str:
        """A sentence on why a lane diverged from ``state``."""
        far = np.abs(state).max() > 1e6 * (1.0 + np.abs(self.job.init).max())
        if not far and not np.isfinite(energy):
            return "The energy is not finite there: the target does not cover the place."
        if not far and not np.isfinite(gradient).all():
            return "The gradient is not finite there though the energy is: the target's gradient is at fault."
        return "Step size times gradient overshoots: make the step size smaller."


class Progress:
    """A progress bar over steps, where wanted."""

    def __init__(self, job: Job, progress: bool | None) -> None:
        self._bar: Any = None
        if progress or (progress is None and sys.stderr is not None and sys.stderr.isatty()):
            from tqdm import tqdm

            self._bar = tqdm(total=job.n_steps, desc=job.sampler.name, unit="step", unit_scale=True, leave=False)

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *exception: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def update(self, done: int) -> None:
        """Show that ``done`` steps are finished."""
        if self._bar is not None:
            self._bar.update(done - self._bar.n)


def make_job(
    problem: Any, sampler: Any, n_steps: Any, seed: Any, n_chains: Any, burn_in: Any, thin: Any, init: Any,
    backend: Any, threads: Any, keep_replicas: bool, keep_energies: bool, layout: Any,
) -> Job:  # fmt: skip
    """Check all arguments of a run."""
    problem = as_problem(problem)
    if not isinstance(sampler, Sampler):
        raise TypeError(f"sampler must be a Sampler, got {sampler!r} of type {type(sampler).__name__}")
    if sampler.boundary.kind != "ignore" and problem.domain is None:
        raise ValueError(
            f"boundary {sampler.boundary.kind!r} needs a problem with a domain, and {problem.name!r} has none; "
            "give constrained(target, shape), or boundary=boundaries.ignore()"
        )
    check_choice("backend", backend, ["cpu"])
    n_steps = check_count("n_steps", n_steps, at_least=1, below=MAX_STEPS)
    n_chains = check_count("n_chains", n_chains, at_least=1, below=MAX_CHAINS)
    burn_in = check_count("burn_in", burn_in, at_least=0, below=n_steps)
    thin = check_count("thin", thin, at_least=1, below=n_steps - burn_in + 1)
    seed = check_count("seed", seed, at_least=0, below=2**64)
    threads = available_threads() if threads is None else check_count("threads", threads, at_least=1)
    if not isinstance(layout, Layout):
        raise TypeError(f"layout must be a Layout, got {layout!r} of type {type(layout).__name__}")
    check_count("layout.lanes", layout.lanes, at_least=1)
    if layout.chunk_steps is not None:
        check_count("layout.chunk_steps", layout.chunk_steps, at_least=1)
    start = check_start(problem, sampler, n_chains, init)
    return Job(
        problem, sampler, n_steps, seed, burn_in, thin, start, threads, layout, bool(keep_replicas), bool(keep_energies)
    )


def check_start(problem: Problem, sampler: Sampler, n_chains: int, init: Any) -> Floats:
    """``init`` as (chain, replica, dim), inside the domain and of finite energy."""
    shape = (n_chains, sampler.n_replicas, problem.target.dim)
    given = np.zeros(shape[2]) if init is None else check_array("init", init)
    if given.shape not in (shape[2:], (shape[0], shape[2]), shape):
        raise ValueError(
            f"init must have shape (dim,) = {shape[2:]}, (n_chains, dim) = {(shape[0], shape[2])} or "
            f"(n_chains, n_replicas, dim) = {shape}, got {given.shape}"
        )
    if given.ndim == 2:
        given = given[:, None]
    start = np.array(np.broadcast_to(given, shape))
    points = start.reshape(-1, shape[2])
    inside = problem.contains(points)
    if not inside.all():
        chain, replica = divmod(int(np.argmin(inside)), shape[1])
        source = "init" if init is not None else "init defaults to the origin, which"
        raise ValueError(
            f"{source} must lie inside the domain {problem.name!r}, got {start[chain, replica].tolist()} for chain "
            f"{chain}, replica {replica}"
        )
    energy = problem.target.evaluate(points)[0]
    if not np.isfinite(energy).all():
        chain, replica = divmod(int(np.argmin(np.isfinite(energy))), shape[1])
        raise ValueError(
            f"init must have a finite energy, got energy {energy[chain * shape[1] + replica]} at "
            f"{start[chain, replica].tolist()} for chain {chain}, replica {replica}"
        )
    return start
