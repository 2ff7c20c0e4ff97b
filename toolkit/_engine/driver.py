"""A run under way: its blocks, its threads, what they have counted, and how far they are."""

import contextlib
import functools
import itertools
import signal
import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from types import FrameType
from typing import Any, Generic, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from .._compiler.disk_cache import environment
from ..accumulators.interface import State
from ..dynamics.metropolis import total_leapfrogs
from ..errors import DivergenceError, InterruptedWarning
from ..tempering.continuous import MOMENTUM, THERMOSTAT, ContinuousTempering
from .cpu import CpuEngine, wait_for_all
from .job import FEWEST_STEPS, Integers, Job, brings_draws, names_on_device
from .record import AnyRun, Counts, RunRecord, Statistics, Trace, count, fold, with_theta
from .state import Block, Outputs

# The error of a run that diverged: which lane did first, where it was, and what is likely to be the cause.

Floats = NDArray[np.float64]


def divergence(job: Job, blocks: list[Block], status: NDArray[np.int64], run: RunRecord) -> DivergenceError:
    """The error for the first lane that diverged. status: (chain, replica), some not 0; run: what there is so far."""
    step = int(status[status > 0].min()) - 1
    chain, replica = (int(i) for i in np.argwhere(status == step + 1)[0])
    block = next(block for block in blocks if block.first <= chain < block.last)
    lane = replica * (block.last - block.first) + chain - block.first
    state = block.state.position[:, lane].copy()
    energy, gradient = job.problem.target.evaluate(state[None])
    with np.errstate(over="ignore"):
        steepness = float(np.linalg.norm(gradient))
    step_size = float(job.sampler.per_chain("step_sizes", np.array([chain]), np.array([replica]))[0])
    couples = isinstance(job.sampler.tempering, ContinuousTempering)
    if couples and not np.isfinite(block.state.continuous.rows[[MOMENTUM, THERMOSTAT], lane]).all():
        cause = (
            "The friction of its tempering variable overshot: make continuous tempering's step size smaller, its "
            "inertia larger, or the top temperature lower."
        )
    else:
        cause = likely_cause(job.init, state, energy[0], gradient)
    message = (
        f"chain {chain}, replica {replica} diverged at step {step}: its last finite position is {state.tolist()}, "
        f"with energy {energy[0]:.6g} and gradient of norm {steepness:.6g}, its step size "
        f"{step_size:g}. {cause} "
        f"{int((status > 0).sum())} of {status.size} replicas diverged; this error's `run` holds the draws so far."
    )
    return DivergenceError(message, chain=chain, replica=replica, step=step, state=state, run=run)


def likely_cause(init: Floats, state: Floats, energy: float, gradient: Floats) -> str:
    """A sentence on why a lane of a run that began at ``init`` diverged from ``state``."""
    far = np.abs(state).max() > 1e6 * (1.0 + np.abs(init).max())
    if not far and not np.isfinite(energy):
        return "The energy is not finite there: the target does not cover the place."
    if not far and not np.isfinite(gradient).all():
        return "The gradient is not finite there though the energy is: the target's gradient is at fault."
    return "Step size times gradient overshoots: make the step size smaller."


# Accumulators that take in a chunk's draws on the host, chains shared out among threads.


class HostAccumulation:
    """What a job's accumulators take in here, and not where a device writes it."""

    def __init__(self, job: Job, states: dict[str, State]) -> None:
        self._job, self._states = job, states
        elsewhere = names_on_device(job)
        self._accumulators = {name: a for name, a in job.accumulators.items() if name not in elsewhere}

    def add_draws(self, pool: Executor | None, outputs: Outputs, offset: int, kept: Integers) -> None:
        """Hand over the draws of the steps ``kept``, from ``offset`` on, by the pool's threads or by this one."""
        if not self._accumulators or kept.size == 0:
            return
        chunk, targets = slice(offset, offset + kept.size), self._job.sampler.n_target_replicas
        draws = fold(outputs.draws[:, :targets, chunk])
        weights, energies = (
            fold(values[:, :targets, chunk]) if values.shape[2] else None
            for values in (outputs.weights, outputs.energies)
        )
        threads = min(self._job.threads, len(draws))
        ends = [len(draws) * i // threads for i in range(threads + 1)]
        with wait_for_all(deque(), None) as tasks:
            for name, accumulator in self._accumulators.items():
                for first, last in itertools.pairwise(ends):
                    work = functools.partial(
                        accumulator.update,
                        {field: values[first:last] for field, values in self._states[name].items()},
                        draws[first:last],
                        None if weights is None else weights[first:last],
                        None if energies is None else energies[first:last],
                        kept,
                    )
                    if pool is None:
                        work()
                    else:
                        tasks.append(pool.submit(work))


# Ctrl-C at a place of our choosing.


@contextmanager
def defer_interrupt(firmly: bool = False) -> Iterator[None]:
    """Let what is inside come to its end where Ctrl-C is pressed, and only then raise KeyboardInterrupt.

    A second Ctrl-C raises at once, unless it is held ``firmly``. Elsewhere than in the main thread, or under another
    handler of SIGINT, nothing is held.
    """
    is_ours = threading.current_thread() is threading.main_thread()
    if not is_ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    pressed = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal pressed
        if pressed and not firmly:
            raise KeyboardInterrupt
        pressed = True

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if pressed:
        raise KeyboardInterrupt


LONGEST_CHUNK = 2**16  # steps: the schedule's arrays of a chunk stay in a processor's cache


class Finished(NamedTuple):
    """What stands after the last whole chunk, changed all at once: one that is broken off leaves no trace in it."""

    steps: int
    draws: int
    traced: int
    elapsed: float
    counts: Counts | None


class Driver(Generic[AnyRun]):
    """Advances a job chunk by chunk; a context manager that gives its threads and progress bar back."""

    def __init__(self, job: Job, progress: bool | None, run_class: type[AnyRun], *, keep_draws: bool = True) -> None:
        self.job = job
        self._run_class = run_class
        self._accumulated = {name: a.start(job.problem, len(job.init)) for name, a in job.accumulators.items()}
        self._accumulation = HostAccumulation(job, self._accumulated)
        self._engine = make_engine(job, brings_draws(job, keep_draws), self._accumulated)
        self._finished = Finished(0, 0, 0, 0.0, self._count())
        self._slots: Integers = np.empty((2, 0), np.int64)
        self._leapfrogs = 0, 0  # steps whose trajectories have been added up, and their leapfrogs
        self.is_whole = True  # blocks and accumulators stand where the last whole chunk has left them
        # A Python function runs off the main thread, which is then free to hear Ctrl-C.
        threads = self._engine.threads
        is_threaded = threads > 1 or job.calls_python
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="toolkit") if is_threaded else None
        self._bar = progress_bar(job, progress)

    def __enter__(self) -> "Driver[AnyRun]":
        return self

    def __exit__(self, *exception: object) -> None:
        if self._pool is not None:
            self._pool.shutdown()
        if self._bar is not None:
            self._bar.close()

    @property
    def blocks(self) -> list[Block]:
        """The blocks, as they stand after the last whole chunk."""
        blocks: list[Block] = self._engine.blocks
        return blocks

    @property
    def accumulated(self) -> dict[str, State]:
        """The accumulators' states, as they stand after the last whole chunk."""
        self._engine.fetch_accumulated()
        return self._accumulated

    def _results(self) -> dict[str, Any]:
        """What has come of the accumulators by the last whole chunk, whose last steps may have kept no draw."""
        states = self.accumulated
        for name, accumulator in self.job.accumulators.items():
            if hasattr(accumulator, "advance_to"):
                accumulator.advance_to(states[name], self.done)
        return {name: accumulator.result(states[name]) for name, accumulator in self.job.accumulators.items()}

    def _count(self) -> Counts | None:
        """What the blocks have counted; None where it can be counted when it is asked for."""
        return count(self.blocks, self.job.sampler) if self._engine.counts_by_chunk else None

    @property
    def _counts(self) -> Counts:
        """What had been counted after the last whole chunk."""
        counts = self._finished.counts
        return count(self.blocks, self.job.sampler) if counts is None else counts

    @property
    def done(self) -> int:
        """Steps finished."""
        return self._finished.steps

    @property
    def n_draws(self) -> int:
        """Draws kept so far."""
        return self._finished.draws

    @property
    def n_traced(self) -> int:
        """Moments of the trace recorded so far."""
        return self._finished.traced

    @property
    def elapsed(self) -> float:
        """Seconds of sampling so far."""
        return self._finished.elapsed

    def resume(self, steps: int, draws: int, traced: int, elapsed: float) -> None:
        """Go on after ``steps``, with blocks and accumulators that have been brought there."""
        self._finished = Finished(steps, draws, traced, elapsed, self._count())
        if self._bar is not None:
            self._bar.initial = steps
            self._bar.update(steps - self._bar.n)

    def growing_chunks(self, longest: int = LONGEST_CHUNK) -> Iterator[tuple[int, int]]:
        """First and last step (exclusive) of chunks that double while they take less than a tenth of a second.

        Those of a run that is saved begin short, as nothing is known of the time a step takes, and double up to the
        usual length while they take less than a second.
        """
        length = min(self.job.chunk_length, longest)
        if self.job.checkpoint is not None and self.job.layout.chunk_steps is None:
            length = min(length, FEWEST_STEPS)
        first = self.done
        while first < self.job.n_steps:
            last = min(first + length, self.job.n_steps)
            started = time.perf_counter()
            yield first, last
            limit = 0.1 if length >= self.job.chunk_length else 1.0
            if self.job.layout.chunk_steps is None and time.perf_counter() - started < limit:
                length = min(2 * length, longest)
            first = last

    def advance(self, first: int, last: int, outputs: Outputs, *, offset: int, trace_offset: int) -> None:
        """Run one chunk, writing its draws from ``offset`` on, and its trace from ``trace_offset`` on.

        Ctrl-C waits for its end, but where the target is a Python function, which may take its time; a second one waits
        for a device alone, whose chunk cannot be broken off.
        """
        with (
            contextlib.nullcontext()
            if self.job.calls_python
            else defer_interrupt(firmly=not self._engine.counts_by_chunk)
        ):
            self._advance(first, last, outputs, offset=offset, trace_offset=trace_offset)

    def _advance(self, first: int, last: int, outputs: Outputs, *, offset: int, trace_offset: int) -> None:
        """``advance``, without a thought of Ctrl-C."""
        started = time.perf_counter()
        self.is_whole = False
        factors, kept = self.job.plan(first, last)
        traced = self.job.traced(first, last)
        slots, trace_slots = self._unfilled(last - first)
        slots[kept - first] = offset + np.arange(kept.size)
        trace_slots[traced - first] = trace_offset + np.arange(traced.size)
        self._engine.run(self._pool, first, factors, slots, trace_slots, outputs)
        with defer_interrupt():  # what the accumulators have taken in is counted as done
            self._accumulation.add_draws(self._pool, outputs, offset, kept)
            elapsed = self._finished.elapsed + time.perf_counter() - started
            self._finished = Finished(
                last, self.n_draws + kept.size, self.n_traced + traced.size, elapsed, self._count()
            )
            self.is_whole = True
        if self._bar is not None:
            self._bar.update(last - self._bar.n)

    def _unfilled(self, n_steps: int) -> Integers:
        """Slots and trace slots of so many steps, all −1, in room that is kept: new pages cost more than a step."""
        if self._slots.shape[1] < n_steps:
            self._slots = np.empty((2, n_steps), np.int64)
        slots = self._slots[:, :n_steps]
        slots.fill(-1)
        return slots

    def result(self, outputs: Outputs, steps: Integers, trace_steps: Integers, interrupted: bool = False) -> AnyRun:
        """The run as it stands, with the given draws."""
        job, finished = self.job, self._finished
        sampling = max(0, finished.steps - job.burn_in)
        trace = None
        if job.trace_every is not None:
            fields = {name: outputs.trace[..., i] for i, name in enumerate(job.trace_fields)}
            trace = Trace(trace_steps, fields, outputs.theta if outputs.theta.shape[2] else None)
        return self._run_class(
            problem=job.problem,
            sampler=job.sampler,
            seed=job.seed,
            n_steps=finished.steps,
            total_steps=job.n_steps,
            burn_in=job.burn_in,
            thin=job.thin,
            init=job.init,
            replica_draws=outputs.draws,
            steps=steps,
            energies=outputs.energies if job.keep_energies else None,
            replica_weights=outputs.weights if job.sampler.is_weighted else None,
            statistics=Statistics(*np.moveaxis(outputs.statistics, 3, 0)) if job.keep_statistics else None,
            counts=with_theta(self._counts, self.blocks),
            sampling_steps=sampling,
            trace=trace,
            gradient_evaluations=self._gradients(),
            elapsed=finished.elapsed,
            interrupted=interrupted,
            accumulated=self._results(),
            made_with=environment() | self._engine.made_with,
        )

    def _gradients(self) -> int:
        """Gradient evaluations so far, all chains and replicas; random lengths are counted as they were."""
        job, dynamics, steps = self.job, self.job.sampler.dynamics, self.done
        per_chain = steps * job.sampler.gradients_per_step
        if dynamics.random_length:
            first, leapfrogs = self._leapfrogs
            leapfrogs += total_leapfrogs(dynamics.leapfrogs, job.seed, first, steps)
            self._leapfrogs = steps, leapfrogs
            per_chain += (leapfrogs - steps * dynamics.leapfrogs) * job.sampler.n_replicas
        return job.pilot_gradients + per_chain * len(job.init)

    def raise_divergence(self, outputs: Outputs, steps: Integers, trace_steps: Integers) -> None:
        """Raise DivergenceError for the first lane that diverged, if any did."""
        if not self._engine.may_have_diverged:
            return
        status = self._counts.status
        if not status.any():
            return
        run = self.result(outputs, steps, trace_steps)
        raise divergence(self.job, self.blocks, status, run)


class Saves(Protocol):
    """What keeps a job's state while it runs: a checkpoint, or nothing."""

    def restore(self, driver: Driver[Any], outputs: Outputs) -> None:
        """Put ``driver`` and ``outputs`` where the earlier run had come to."""

    def after_chunk(self, driver: Driver[Any], outputs: Outputs) -> None:
        """Save where it is time to."""

    def save(self, driver: Driver[Any], outputs: Outputs) -> None:
        """Save now."""


class SavesNothing:
    """A run without a checkpoint."""

    def restore(self, driver: Driver[Any], outputs: Outputs) -> None:
        """Nothing was saved."""

    def after_chunk(self, driver: Driver[Any], outputs: Outputs) -> None:
        """Nothing is saved."""

    def save(self, driver: Driver[Any], outputs: Outputs) -> None:
        """Nothing is saved."""


def execute(
    job: Job,
    run_class: type[AnyRun],
    saved: Saves,
    *,
    progress: bool | None,
    keep_draws: bool = True,
    stacklevel: int = 1,
) -> AnyRun:
    """Run a checked job to its end, or to Ctrl-C, and give what there is then as a ``run_class``.

    Raises and warns as ``sample`` explains it; stacklevel: of the InterruptedWarning, 1 for the caller.
    """
    has_draws = brings_draws(job, keep_draws)
    steps = job.kept_steps() if keep_draws else next(job.kept_pieces())[:0].copy()  # a view would hold all of them
    trace_steps = job.traced(0, job.n_steps)
    has_room = keep_draws or not has_draws
    interrupted = False
    outputs = job.room(steps.size, trace_steps.size)
    with Driver(job, progress, run_class, keep_draws=keep_draws) as driver:
        saved.restore(driver, outputs)
        try:
            for first, last in driver.growing_chunks(LONGEST_CHUNK if has_room else job.chunk_length):
                room = outputs if has_room else job.room_of_chunk(first, last, outputs)
                offset = driver.n_draws if keep_draws else 0
                driver.advance(first, last, room, offset=offset, trace_offset=driver.n_traced)
                driver.raise_divergence(*so_far(driver, outputs, steps, trace_steps))
                saved.after_chunk(driver, outputs)
            saved.save(driver, outputs)
        except KeyboardInterrupt:
            interrupted = True
        except Exception as error:
            if job.calls_python and not isinstance(error, DivergenceError):
                saved.save(driver, outputs)
                attach_run(error, driver, driver.result(*so_far(driver, outputs, steps, trace_steps)))
            raise
        if interrupted:  # the chunk in which Ctrl-C was pressed came to its end, which may be a divergence
            driver.raise_divergence(*so_far(driver, outputs, steps, trace_steps))
            saved.save(driver, outputs)
    if interrupted:
        warnings.warn(
            f"interrupted after {driver.done} of {job.n_steps} steps; "
            f"the run holds {driver.n_draws} of {steps.size} draws",
            InterruptedWarning,
            stacklevel=stacklevel + 1,
        )
    return driver.result(*so_far(driver, outputs, steps, trace_steps), interrupted)


def attach_run(error: Exception, driver: Driver[Any], run: Any) -> None:
    """Give what a Python target raised the run so far, and say so."""
    with contextlib.suppress(Exception):  # an error that takes no attributes, such as a frozen one, is raised as it is
        error.run = run  # type: ignore[attr-defined]
        error.add_note(
            f"{driver.job.problem.name!r} raised this after step {driver.done}; this error's `run` holds the "
            f"{driver.n_draws} draws of each chain until then."
        )


def so_far(
    driver: Driver[Any], outputs: Outputs, steps: Integers, trace_steps: Integers
) -> tuple[Outputs, Integers, Integers]:
    """What of the outputs has been filled, and the steps it belongs to."""
    draws, traced = min(driver.n_draws, steps.size), driver.n_traced
    return outputs.of_draws(draws, traced), steps[:draws], trace_steps[:traced]


def make_engine(job: Job, wants_draws: bool, states: dict[str, State]) -> Any:
    """The engine of the job's backend; wants_draws: whether draws leave it; states: of accumulators, by name."""
    if job.backend == "cpu":
        return CpuEngine(job)
    from .cuda.engine import DeviceEngine

    return DeviceEngine(job, wants_draws, states)


def progress_bar(job: Job, progress: bool | None) -> Any:
    """A bar over steps on stderr where wanted, else None; ``progress`` None wants it on a terminal only."""
    if progress is False or (progress is None and (sys.stderr is None or not sys.stderr.isatty())):
        return None
    from tqdm import tqdm

    return tqdm(total=job.n_steps, desc=job.sampler.name, unit="step", unit_scale=True, leave=False)
