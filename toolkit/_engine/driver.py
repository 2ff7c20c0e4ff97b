"""Drive a run chunk by chunk: engine, threads, accumulators, progress, interruption and divergence."""

import contextlib
import functools
import itertools
import signal
import threading
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from types import FrameType
from typing import Any, Generic, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from .._compiler.disk_cache import environment
from .._compiler.notice import is_notebook, is_watched
from ..accumulators.interface import State
from ..dynamics.metropolis import total_leapfrogs
from ..errors import DivergenceError, InterruptedWarning, listed, warn_user
from ..problem.definition import Problem
from ..problem.properness import endless_fall
from ..tempering.continuous import MOMENTUM, THERMOSTAT
from .cpu import CpuEngine, wait_for_all
from .interface import Engine
from .job import FEWEST_STEPS, JUDGED, Integers, Job, names_on_device, needs_host_draws
from .run_record import AnyRun, Counts, RunRecord, Statistics, Stopping, Trace, count, fold, with_theta
from .state import Block, Outputs, copy_stored, forget_derived, put_back

Floats = NDArray[np.float64]

# Divergence.


def divergence_error(
    job: Job, blocks: list[Block], status: NDArray[np.int64], run: RunRecord, saved: str, holds: str
) -> DivergenceError:
    """The error for the first lane that diverged.

    status: (chain, replica), some not 0. run: with the draws so far. saved: a sentence on the checkpoint, or "". holds:
    the words for what ``run`` holds.
    """
    step = int(status[status > 0].min()) - 1
    place, replica = (int(i) for i in np.argwhere(status == step + 1)[0])
    block = next(block for block in blocks if block.first <= place < block.last)
    lane = replica * (block.last - block.first) + place - block.first
    state = block.state.position[:, lane].copy()
    energy, gradient = job.problem.target.evaluate(state[None])
    with np.errstate(over="ignore"):
        steepness = float(np.linalg.norm(gradient))
    step_size = float(job.sampler.per_chain("step_sizes", np.array([place]), np.array([replica]))[0])
    couples = job.sampler.tempers.couples
    if couples and not np.isfinite(block.state.continuous.rows[[MOMENTUM, THERMOSTAT], lane]).all():
        cause = (
            "The friction of its tempering variable overshot: make continuous tempering's step size smaller, its "
            "inertia larger, or the top temperature lower."
        )
    else:
        cause = likely_cause(job, state, energy[0], gradient)
    chain = int(job.keys.chains[place])
    message = (
        f"chain {chain}, replica {replica} diverged at step {step}: its last finite position is {listed(state)}, "
        f"with energy {energy[0]:.6g} and gradient of norm {steepness:.6g}, its step size "
        f"{step_size:g}. {cause} "
        f"{int((status > 0).sum())} of {status.size} replicas diverged; this error's `run` {holds}."
    )
    if job.on_divergence == "keep":
        message += " No chain is left to go on, which on_divergence='keep' would do."
    elif len(status) > 1 and not (status > 0).any(axis=1).all():
        message += " With on_divergence='keep' the other chains go on to the end."
    message += f" {saved}" if saved else ""
    return DivergenceError(message, chain=chain, replica=replica, step=step, state=state, run=run)


def likely_cause(job: Job, state: Floats, energy: float, gradient: Floats) -> str:
    """A sentence on the likely cause of a divergence at ``state`` in a run of ``job``."""
    far = np.abs(state).max() > 1e6 * (1.0 + np.abs(job.init).max())
    if not far and not np.isfinite(energy):
        return "The energy is not finite there: the target does not cover the place."
    if not far and not np.isfinite(gradient).all():
        return "The gradient is not finite there though the energy is: the target's gradient is at fault."
    overshoot = "Step size times gradient overshoots: make the step size smaller."
    return endless_fall(job.problem, job.init[:, 0]) or overshoot


# Accumulation.


class HostAccumulation:
    """Updates the accumulators that work on the host, with the chains divided among threads."""

    def __init__(self, job: Job, states: dict[str, State]) -> None:
        self._job, self._states = job, states
        on_device = names_on_device(job)
        self._accumulators = {name: a for name, a in job.accumulators.items() if name not in on_device}

    def add_draws(self, pool: Executor | None, outputs: Outputs, offset: int, kept: Integers) -> None:
        """Update with the draws of the steps ``kept``, at ``offset`` in ``outputs``, on the pool or this thread."""
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


# Interruption.


@contextmanager
def defer_interrupt(repeatedly: bool = False) -> Iterator[None]:
    """Defer KeyboardInterrupt to the end of the block.

    A second Ctrl-C raises at once, unless ``repeatedly``. Outside the main thread, or with another handler of SIGINT,
    nothing is deferred.
    """
    is_main_thread = threading.current_thread() is threading.main_thread()
    if not is_main_thread or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    pressed = False

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal pressed
        if pressed and not repeatedly:
            raise KeyboardInterrupt
        pressed = True

    signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if pressed:
        raise KeyboardInterrupt


DELAY = 2.0  # seconds after which a notebook shows a bar
LONGEST_CHUNK = 2**16  # steps, so that the schedule's arrays of a chunk fit into the cache


class Finished(NamedTuple):
    """Progress after the last complete chunk, replaced as a whole, so that an interrupted chunk does not change it."""

    steps: int
    draws: int
    traced: int
    elapsed: float
    counts: Counts | None


class Driver(Generic[AnyRun]):
    """Advances a job chunk by chunk; a context manager that releases its threads and progress bar."""

    def __init__(self, job: Job, progress: bool | None, run_class: type[AnyRun], *, keep_draws: bool = True) -> None:
        self.job = job
        self._run_class = run_class
        self._keep_draws = keep_draws
        self._accumulated = {name: a.start(job.problem, len(job.init)) for name, a in job.accumulators.items()}
        self._accumulation = HostAccumulation(job, self._accumulated)
        self._engine: Engine = make_engine(job, needs_host_draws(job, keep_draws), self._accumulated)
        self._finished = Finished(0, 0, 0, 0.0, self._count())
        self._slots: Integers = np.empty((2, 0), np.int64)
        self._leapfrogs = 0, 0  # steps whose leapfrogs have been counted, and that count
        self.is_whole = True  # blocks and accumulators are in the state after a complete chunk
        self._pool = self._make_pool()
        self._resumed_diverged = False
        self._begins_short = job.checkpoint is not None and job.layout.chunk_steps is None
        self._length = 0  # of the next chunk
        self._bar = progress_bar(job, progress)

    def _make_pool(self) -> ThreadPoolExecutor | None:
        """Threads for several blocks; and for Python targets, so that the main thread can receive Ctrl-C."""
        threads = self._engine.threads
        if threads == 1 and not self.job.calls_python:
            return None
        return ThreadPoolExecutor(threads, thread_name_prefix="toolkit")

    def __enter__(self) -> "Driver[AnyRun]":
        return self

    def __exit__(self, *exception: object) -> None:
        self._engine.close()
        if self._pool is not None:
            self._pool.shutdown()
        if self._bar is not None:
            self._bar.close()

    @property
    def blocks(self) -> list[Block]:
        """The blocks after the last complete chunk."""
        return self._engine.blocks

    @property
    def accumulated(self) -> dict[str, State]:
        """The accumulators' states after the last complete chunk."""
        self._engine.fetch_accumulated()
        return self._accumulated

    def _results(self) -> dict[str, Any]:
        """The accumulators' results after the last complete chunk, whose last steps may have kept no draw."""
        states = self.accumulated
        for name, accumulator in self.job.accumulators.items():
            if hasattr(accumulator, "advance_to"):
                accumulator.advance_to(states[name], self.done)
        return {
            name: accumulator.result(states[name])
            for name, accumulator in self.job.accumulators.items()
            if name != JUDGED
        }

    def judged_moments(self) -> Any:
        """The result of the accumulator ``JUDGED`` after the last complete chunk."""
        return self.job.accumulators[JUDGED].result(self.accumulated[JUDGED])

    def _count(self) -> Counts | None:
        """The blocks' counts; None for an engine whose counts can be read later."""
        return count(self.blocks, self.job.problem, self.job.sampler) if self._engine.counts_by_chunk else None

    @property
    def counts(self) -> Counts:
        """The counts after the last complete chunk."""
        counts = self._finished.counts
        return count(self.blocks, self.job.problem, self.job.sampler) if counts is None else counts

    @property
    def done(self) -> int:
        """Steps finished."""
        return self._finished.steps

    @property
    def n_draws(self) -> int:
        """Draws kept so far."""
        return self._finished.draws

    def holds(self, draws: str, *, the: bool = False) -> str:
        """The words for what the run so far holds; draws: those after the number of draws; the: an article before."""
        if self._keep_draws:
            return f"holds {'the ' if the else ''}{self.n_draws}{draws}"
        if set(self.job.accumulators) <= {JUDGED}:
            return "holds no draws (keep_draws=False)"
        return f"holds no draws (keep_draws=False); its accumulators hold {self.n_draws} draws of each chain"

    @property
    def n_traced(self) -> int:
        """Times of the trace recorded so far."""
        return self._finished.traced

    @property
    def elapsed(self) -> float:
        """Seconds of sampling so far."""
        return self._finished.elapsed

    def resume(self, steps: int, draws: int, traced: int, elapsed: float) -> None:
        """Continue after ``steps``; blocks and accumulators must have been restored to that step."""
        forget_derived(self.blocks)
        self._finished = Finished(steps, draws, traced, elapsed, self._count())
        self._resumed_diverged = bool(self.counts.status.any())
        if self._bar is not None:
            self._bar.initial = steps
            self._bar.update(steps - self._bar.n)

    def set_problem(self, problem: Problem) -> None:
        """Go on with the present state on another problem, checked by ``job.check_replacement``.

        Where this raises, nothing has changed. Without accumulators alone.
        """
        job = replace(self.job, problem=problem)
        before = self._engine
        self._engine, self.job = before.with_problem(job), job
        before.close()
        self._resumed_diverged = bool(self.counts.status.any())  # an engine on a device has not seen it
        if self._pool is None:
            self._pool = self._make_pool()

    def copy_state(self) -> dict[str, list[NDArray[Any]]]:
        """Copies of the state, for ``restore_state``."""
        return copy_stored(self.blocks, self.job.sampler.n_replicas)

    def restore_state(self, copies: dict[str, list[NDArray[Any]]]) -> None:
        """Set the state of the last complete chunk, after one that was broken off; on the CPU alone."""
        put_back(self.blocks, self.job.sampler.n_replicas, copies)
        self._engine.close()
        self._engine = CpuEngine(self.job, self.blocks)  # with a callback that has not failed
        self.is_whole = True

    def forget_draws(self) -> None:
        """Count no draw as kept so far: those there were have been given away, and none will be saved."""
        self._finished = self._finished._replace(draws=0)

    def show(self, words: str, end: int) -> None:
        """Show ``words`` beside the progress bar, which is full at step ``end``."""
        if self._bar is not None:
            self._bar.total = end
            self._bar.set_postfix_str(words)

    def growing_chunks(
        self, longest: int = LONGEST_CHUNK, end: int | None = None, *, in_time: bool = False
    ) -> Iterator[tuple[int, int]]:
        """First and last step (exclusive) of chunks up to ``end`` that double while they take less than 0.1 s.

        With a checkpoint they begin short, because the time of a step is unknown, and double up to the usual length
        while they take less than a second, as they always do with compiled targets that work lane by lane. in_time:
        they begin short too, and none doubles that takes 0.1 s or more. A second call goes on with the length that the
        first had come to; a chunk that ``end`` makes shorter shows none.
        """
        if self._length == 0:
            self._length = min(self.job.chunk_length, longest)
            if self._begins_short or (in_time and self.job.layout.chunk_steps is None):
                self._length = min(self._length, FEWEST_STEPS)
        end = self.job.n_steps if end is None else end
        is_slow = self.job.problem.target.lane_by_lane and not self.job.calls_python
        first = self.done
        while first < end:
            last = min(first + self._length, end)
            started = time.perf_counter()
            yield first, last
            if last - first == self._length < longest and self.job.layout.chunk_steps is None:
                is_long = self._length >= self.job.chunk_length and not is_slow
                limit = 0.1 if in_time or is_long else 1.0
                if time.perf_counter() - started < limit:
                    self._length = min(2 * self._length, longest)
            first = last

    def advance(self, first: int, last: int, outputs: Outputs, *, offset: int, trace_offset: int) -> None:
        """Run one chunk, writing its draws from ``offset`` on, and its trace from ``trace_offset`` on.

        Ctrl-C waits for the end of the chunk, unless the target is a Python function, which may be slow. A second one
        waits only for a device, whose chunk cannot be interrupted.
        """
        with (
            contextlib.nullcontext()
            if self.job.calls_python
            else defer_interrupt(repeatedly=not self._engine.counts_by_chunk)
        ):
            self._advance(first, last, outputs, offset=offset, trace_offset=trace_offset)

    def _advance(self, first: int, last: int, outputs: Outputs, *, offset: int, trace_offset: int) -> None:
        """``advance``, without deferring Ctrl-C."""
        started = time.perf_counter()
        self.is_whole = False
        factors, kept = self.job.plan(first, last)
        traced = self.job.traced(first, last)
        slots, trace_slots = self._empty_slots(last - first)
        slots[kept - first] = offset + np.arange(kept.size)
        trace_slots[traced - first] = trace_offset + np.arange(traced.size)
        self._engine.run(self._pool, first, factors, slots, trace_slots, outputs)
        with defer_interrupt():  # so that draws that the accumulators contain count as done
            self._accumulation.add_draws(self._pool, outputs, offset, kept)
            elapsed = self._finished.elapsed + time.perf_counter() - started
            self._finished = Finished(
                last, self.n_draws + kept.size, self.n_traced + traced.size, elapsed, self._count()
            )
            self.is_whole = True
        if self._bar is not None:
            self._bar.update(last - self._bar.n)

    def _empty_slots(self, n_steps: int) -> Integers:
        """Slots and trace slots of ``n_steps`` steps, all −1; the array is reused, because allocation is slow."""
        if self._slots.shape[1] < n_steps:
            self._slots = np.empty((2, n_steps), np.int64)
        slots = self._slots[:, :n_steps]
        slots.fill(-1)
        return slots

    def result(
        self,
        outputs: Outputs,
        steps: Integers,
        trace_steps: Integers,
        interrupted: bool = False,
        stopping: Stopping | None = None,
    ) -> AnyRun:
        """The run so far, with the given draws."""
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
            total_steps=finished.steps if job.is_open else job.n_steps,
            burn_in=job.burn_in,
            thin=job.thin,
            init=job.init,
            replica_draws=outputs.draws,
            steps=steps,
            energies=outputs.energies if job.keep_energies else None,
            replica_weights=outputs.weights if job.sampler.is_weighted else None,
            statistics=Statistics(*np.moveaxis(outputs.statistics, 3, 0)) if job.keep_statistics else None,
            counts=with_theta(self.counts, self.blocks),
            sampling_steps=sampling,
            trace=trace,
            gradient_evaluations=self._gradients(),
            elapsed=finished.elapsed,
            interrupted=interrupted,
            accumulated=self._results(),
            made_with=environment() | self._engine.made_with,
            stopping=stopping,
        )

    def _gradients(self) -> int:
        """Gradient evaluations so far, all chains and replicas, with the actual lengths of random trajectories."""
        dynamics, steps = self.job.sampler.dynamics, self.done
        if dynamics.random_length:
            first, leapfrogs = self._leapfrogs
            leapfrogs += total_leapfrogs(dynamics.leapfrogs, self.job.seed, first, steps)
            self._leapfrogs = steps, leapfrogs
        return self.job.gradients(steps, self._leapfrogs[1])

    def diverged_status(self) -> NDArray[np.int64] | None:
        """The status (chain, replica) where the run must end: a lane has diverged; with "keep", one of each chain."""
        if not self._engine.may_have_diverged and not self._resumed_diverged:
            return None
        has_diverged = (self.counts.status > 0).any(axis=1)
        if self.job.on_divergence == "keep" and self.job.is_part:
            return None
        ends = has_diverged.all() if self.job.on_divergence == "keep" else has_diverged.any()
        return self.counts.status if ends else None

    def raise_divergence(self, filled: tuple[Outputs, Integers, Integers], saved: "Saves", outputs: Outputs) -> None:
        """Raise DivergenceError where the run must end; what was saved last without a divergence is named in it.

        filled: the outputs, steps and traced steps of the run in the error. outputs: all, as they are saved.
        """
        status = self.diverged_status()
        if status is None:
            return
        words = saved.save_last_good(self, outputs)
        holds = "holds the draws so far" if self._keep_draws else self.holds("")
        raise divergence_error(self.job, self.blocks, status, self.result(*filled), words, holds)


class Saves(Protocol):
    """Saves a job's state while it runs: a checkpoint, or nothing."""

    def steps_done(self) -> int:
        """The steps of the earlier run, by which ``outputs`` must have room; 0 where there is none."""

    def restore(self, driver: Driver[Any], outputs: Outputs) -> None:
        """Restore ``driver`` and ``outputs`` to the state of the earlier run."""

    def after_chunk(self, driver: Driver[Any], outputs: Outputs) -> None:
        """Save if it is time to."""

    def save(self, driver: Driver[Any], outputs: Outputs) -> None:
        """Save now."""

    def save_last_good(self, driver: Driver[Any], outputs: Outputs) -> str:
        """Save the last state known without a divergence; a sentence on what is saved, "" for nothing."""


class SavesNothing:
    """A run without a checkpoint."""

    def steps_done(self) -> int:
        """Nothing was saved."""
        return 0

    def restore(self, driver: Driver[Any], outputs: Outputs) -> None:
        """Nothing was saved."""

    def after_chunk(self, driver: Driver[Any], outputs: Outputs) -> None:
        """Nothing is saved."""

    def save(self, driver: Driver[Any], outputs: Outputs) -> None:
        """Nothing is saved."""

    def save_last_good(self, driver: Driver[Any], outputs: Outputs) -> str:
        """Nothing is saved."""
        return ""


class Watch(Protocol):
    """Says when a run is looked at, and when it ends: by its number of steps, or by a condition."""

    in_time: bool  # chunks must be short in time

    def next_end(self, done: int) -> int:
        """The first step after ``done`` at which the run is looked at, or its last."""

    def room_for(self, end: int) -> str:
        """Why the outputs of a run up to step ``end`` do not fit into memory; "" where they do."""

    def is_over(self, driver: Driver[Any]) -> bool:
        """Whether the run ends after the last complete chunk, between looks."""

    def look(self, driver: Driver[Any], outputs: Outputs) -> bool:
        """Judge the run at the end of a chunk that is a look; whether it ends."""

    def stopping(self, driver: Driver[Any], outputs: Outputs, *, interrupted: bool, full: str = "") -> Stopping | None:
        """How the run ended. full: why there is no room for more."""


class RunsToEnd:
    """A run that ends by its number of steps."""

    in_time = False

    def __init__(self, job: Job) -> None:
        self._n_steps = job.n_steps

    def next_end(self, done: int) -> int:
        """The last step."""
        return self._n_steps

    def room_for(self, end: int) -> str:
        """There is room, as has been checked."""
        return ""

    def is_over(self, driver: Driver[Any]) -> bool:
        """Never between looks."""
        return False

    def look(self, driver: Driver[Any], outputs: Outputs) -> bool:
        """All steps are done."""
        return True

    def stopping(self, driver: Driver[Any], outputs: Outputs, *, interrupted: bool, full: str = "") -> Stopping | None:
        """Nothing was asked for."""
        return None


class Kept:
    """The outputs of a run up to a step ``end``, which may be made larger, and the steps of their draws and trace."""

    def __init__(self, job: Job, end: int, *, keep_draws: bool, has_draws: bool) -> None:
        self._job, self._keep_draws = job, keep_draws
        self.fits_all = keep_draws or not has_draws  # else the draws of a chunk have outputs of their own
        self.end = end
        self.steps, self.trace_steps = self._steps_before(end)
        self.outputs = job.empty_outputs(self.steps.size, self.trace_steps.size)

    def _steps_before(self, end: int) -> tuple[Integers, Integers]:
        """The steps before ``end`` of draws, if they are kept, and of the trace."""
        steps = self._job.kept_steps(end) if self._keep_draws else np.zeros(0, np.int64)
        return steps, self._job.traced(0, end)

    def enlarge(self, end: int, driver: Driver[Any]) -> None:
        """Make room for the steps before ``end``."""
        filled = self.filled(driver)[0]
        self.steps, self.trace_steps = self._steps_before(end)
        larger = self._job.empty_outputs(self.steps.size, self.trace_steps.size)
        draws, traced = filled.draws.shape[2], filled.trace.shape[2]
        rooms: tuple[NDArray[Any], ...] = larger.of_draws(draws, traced)
        for array, room in zip(filled, rooms, strict=True):
            room[...] = array
        self.outputs, self.end = larger, end

    def advance(self, driver: Driver[Any], first: int, last: int) -> None:
        """Run one chunk into the outputs, or, where draws are not kept, into outputs of its own."""
        outputs = self.outputs if self.fits_all else self._job.chunk_outputs(first, last, self.outputs)
        offset = driver.n_draws if self._keep_draws else 0
        driver.advance(first, last, outputs, offset=offset, trace_offset=driver.n_traced)

    def filled(self, driver: Driver[Any]) -> tuple[Outputs, Integers, Integers]:
        """The filled part of the outputs, and its steps."""
        draws, traced = min(driver.n_draws, self.steps.size), driver.n_traced
        return self.outputs.of_draws(draws, traced), self.steps[:draws], self.trace_steps[:traced]


def execute(
    job: Job,
    run_class: type[AnyRun],
    saved: Saves,
    *,
    progress: bool | None,
    keep_draws: bool = True,
    watch: Watch | None = None,
    warns: bool = True,
) -> AnyRun:
    """Run a checked job to its end, or to Ctrl-C, and return a ``run_class``.

    Raises and warns as documented in ``sample``; warns: whether Ctrl-C is warned of.
    """
    watch = RunsToEnd(job) if watch is None else watch
    interrupted, full = False, ""
    done = saved.steps_done()
    end = watch.next_end(max(0, done - 1))
    if done and watch.room_for(end):
        end = done
        full = watch.room_for(end)
        if full:
            raise ValueError(f"checkpoint must hold a run that fits into memory: {full}")
    kept = Kept(job, end, keep_draws=keep_draws, has_draws=needs_host_draws(job, keep_draws))
    with Driver(job, progress, run_class, keep_draws=keep_draws) as driver:
        saved.restore(driver, kept.outputs)
        driver.raise_divergence(kept.filled(driver), saved, kept.outputs)
        try:
            full = run_to_end(driver, kept, saved, watch)
            saved.save(driver, kept.outputs)
            stopping = watch.stopping(driver, kept.filled(driver)[0], interrupted=False, full=full)
        except KeyboardInterrupt:
            interrupted = True
        except Exception as error:
            if job.calls_python and not isinstance(error, DivergenceError):
                saved.save(driver, kept.outputs)
                attach_run(error, driver, driver.result(*kept.filled(driver)))
            raise
        if interrupted:  # the chunk in which Ctrl-C was pressed was completed, and may have diverged
            driver.raise_divergence(kept.filled(driver), saved, kept.outputs)
            saved.save(driver, kept.outputs)
            stopping = watch.stopping(driver, kept.filled(driver)[0], interrupted=True)
    if interrupted and warns:
        all_steps = "" if job.is_open else f" of {job.n_steps}"
        all_draws = f" of {kept.steps.size}" if isinstance(watch, RunsToEnd) else ""
        warn_user(
            f"interrupted after {driver.done}{all_steps} steps; the run {driver.holds(f'{all_draws} draws')}",
            InterruptedWarning,
        )
    return driver.result(*kept.filled(driver), interrupted, stopping)


def run_to_end(driver: Driver[Any], kept: Kept, saved: Saves, watch: Watch) -> str:
    """Run chunk by chunk until ``watch`` says that it ends. Why there is no room for more; "" where that is not why."""
    longest = LONGEST_CHUNK if kept.fits_all else driver.job.chunk_length
    if driver.done and watch.is_over(driver):
        return ""
    end = watch.next_end(max(0, driver.done - 1))
    while True:
        if end > kept.end:
            full = watch.room_for(end)
            if full:
                return full
            kept.enlarge(end, driver)
        for first, last in driver.growing_chunks(longest, end, in_time=watch.in_time):
            kept.advance(driver, first, last)
            driver.raise_divergence(kept.filled(driver), saved, kept.outputs)
            saved.after_chunk(driver, kept.outputs)
            if last < end and watch.is_over(driver):
                return ""
        if watch.look(driver, kept.filled(driver)[0]):
            return ""
        end = watch.next_end(end)


def attach_run(error: BaseException, driver: Driver[Any], run: Any) -> None:
    """Attach the run so far to an exception, with a note where a Python target raised it."""
    with contextlib.suppress(Exception):  # an exception without attributes, such as a frozen one, is raised unchanged
        error.run = run  # type: ignore[attr-defined]
        if isinstance(error, KeyboardInterrupt):
            return
        error.add_note(
            f"{driver.job.problem.name!r} raised this after step {driver.done}; this error's `run` "
            f"{driver.holds(' draws of each chain until then', the=True)}."
        )


def make_engine(job: Job, wants_draws: bool, states: dict[str, State]) -> Engine:
    """The engine of the job's backend; wants_draws: copy draws to the host; states: of accumulators, by name."""
    if job.backend == "cpu":
        return CpuEngine(job)
    from .cuda.engine import DeviceEngine

    return DeviceEngine(job, wants_draws, states)


def bar_of(progress: bool | None, **options: Any) -> Any:
    """A progress bar of tqdm on stderr, or None; with ``progress`` None on a terminal, and after 2 s in a notebook."""
    if progress is False or (progress is None and not is_watched()):
        return None
    from tqdm import tqdm

    delay = DELAY if progress is None and is_notebook() else 0.0  # most cells need none
    return tqdm(unit_scale=True, leave=False, delay=delay, **options)


def progress_bar(job: Job, progress: bool | None) -> Any:
    """``bar_of`` the steps of a job."""
    return bar_of(progress, total=None if job.is_open else job.n_steps, desc=job.sampler.name, unit="step")
