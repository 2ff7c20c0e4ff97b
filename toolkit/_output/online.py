"""Chains that are held and advanced a few steps at a time; the lower part of ``chains``."""

import contextlib
import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from types import TracebackType
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from .._engine.cpu import present_energies
from .._engine.driver import LONGEST_CHUNK, Driver, SavesNothing, attach_run
from .._engine.job import Job, check_checkpoint, check_replacement
from .._engine.recording import STATISTICS
from .._engine.run_record import with_theta
from .._engine.state import Outputs, views
from ..errors import (
    CheckpointError,
    CheckpointWarning,
    DivergenceError,
    check_count,
    check_flag,
    check_room,
    shown,
    warn_user,
)
from ..maths.philox import MAX_STEPS
from ..problem.definition import Problem
from ..samplers.sampler import Sampler
from ..tempering.continuous import COUNTED
from ..tempering.contour_groups import weights_in
from .run import Run
from .storage.checkpoint import Checkpoint
from .storage.description import CHAINS

Floats = NDArray[np.float64]
NO_DRAWS = MAX_STEPS  # a thin by which no draw is ever due
MANY = 1000  # draws, for which it is first seen whether there is room


class Chains:
    """The chains of one sampler on one problem, which may be replaced; made by ``toolkit.chains``.

    A context manager: at its end threads are released and, with a checkpoint, the chains are saved. Not for two threads
    at once: what is called while another call is under way raises RuntimeError, and so does a call after the end.
    """

    def __init__(self, job: Job) -> None:
        job = replace(job, thin=NO_DRAWS)
        self._lock, self._is_closed = threading.Lock(), False
        with contextlib.ExitStack() as stack:
            self._checkpoint = stack.enter_context(Checkpoint(job, CHAINS))
            self._driver: Driver[Run] = stack.enter_context(Driver(self._checkpoint.complete(job), False, Run))
            self._checkpoint.restore(self._driver, job.empty_outputs(0, 0))
            self._resources = stack.pop_all()

    def __enter__(self) -> "Chains":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self.close()
        except CheckpointError as failed:
            if error is None:
                raise
            warn_user(str(failed), CheckpointWarning)

    def __repr__(self) -> str:
        """What they are, and how far."""
        job, closed = self._driver.job, ", closed" if self._is_closed else ""
        chains = f"{len(job.init)} chains of {job.sampler.name} on {job.problem.name}"
        return f"<{chains} after {self._driver.done} steps{closed}>"

    @contextlib.contextmanager
    def _use(self) -> Iterator[Driver[Run]]:
        """The driver, for one call at a time. Raises RuntimeError where it cannot be used."""
        if not self._lock.acquire(blocking=False):
            raise RuntimeError("these chains are in use by another call: two at a time must not advance or read them")
        try:
            if self._is_closed:
                raise RuntimeError("these chains are closed: make others, which go on from a checkpoint")
            if not self._driver.is_whole:
                raise RuntimeError(
                    f"these chains were broken off within a chunk of steps after step {self._driver.done} and cannot "
                    "go on: make others, which go on from a checkpoint"
                )
            yield self._driver
        finally:
            self._lock.release()

    @property
    def problem(self) -> Problem:
        """The problem of the moment."""
        return self._driver.job.problem

    @property
    def sampler(self) -> Sampler:
        """The sampler, with the partition that a pilot has found where its contour had none."""
        return self._driver.job.sampler

    @property
    def steps(self) -> int:
        """Steps done, of each chain."""
        return self._driver.done

    @property
    def positions(self) -> Floats:
        """A copy of all positions, (chain, replica, dim); of a replica that has diverged the last finite one."""
        with self._use() as driver:
            return positions_of(driver)

    @property
    def energies(self) -> Floats:
        """The energy of each position, (chain, replica): of all data, without noise and penalty."""
        with self._use() as driver:
            positions = positions_of(driver)
            energy, _ = driver.job.problem.target.evaluate(positions.reshape(-1, positions.shape[2]))
            return energy.reshape(positions.shape[:2])

    @property
    def weights(self) -> Floats:
        """Importance weights of the positions, (chain, replica), up to a factor, as a draw taken now would have them.

        1 where the sampler needs none; nan of a replica that has diverged.
        """
        with self._use() as driver:
            return weights_of(driver)

    @property
    def theta(self) -> Floats | None:
        """A copy of contour's θ, (chain, bin); None for other samplers."""
        with self._use() as driver:
            if not driver.job.sampler.tempers.weighs_by_chain:
                return None
            return with_theta(driver.counts, driver.blocks).theta

    @property
    def diverged(self) -> NDArray[np.bool_]:
        """Whether a replica of the chain has diverged, (chain,)."""
        with self._use() as driver:
            return np.asarray((driver.counts.status > 0).any(axis=1))

    @overload
    def advance(self, n_steps: int, *, thin: None = None) -> None: ...

    @overload
    def advance(self, n_steps: int, *, thin: int) -> Run: ...

    def advance(self, n_steps: int, *, thin: int | None = None) -> Run | None:
        """Advance all chains by ``n_steps``; with ``thin``, return a ``Run`` of these steps' draws.

        thin: every thin-th step after burn-in is kept, counted from its end and not from this call, where the schedule
        allows: so calls with the same thin give, joined, the draws of ``sample``. As in a chunk of ``stream``, rates
        and counts of the run are those since the start.
        Ctrl-C raises KeyboardInterrupt after the chunk of steps under way, and the chains can go on. So they can after
        an exception of a target in Python: they stand where the last whole chunk ended. Both, and DivergenceError, have
        the draws so far as their attribute ``run``. Raises ValueError beyond the ``n_steps`` of ``chains``.
        """
        n_steps = check_count("n_steps", n_steps, at_least=1)
        given = NO_DRAWS if thin is None else check_count("thin", thin, at_least=1, below=MAX_STEPS)
        with self._use() as driver:
            job, first = driver.job, driver.done
            if n_steps > job.n_steps - first:
                raise ValueError(
                    f"n_steps must be ≤ {job.n_steps - first}, the steps that are left of {job.n_steps}, got {n_steps}"
                )
            if thin is not None:
                driver.job = replace(job, thin=given)
            try:
                run = advance_driver(driver, first + n_steps)
            finally:
                driver.job = job
                driver.forget_draws()
        return run

    def replace(self, problem: Any, *, checks_energies: bool = True) -> None:
        """Go on with the same chains on another problem, of the same dimension, with a domain if the present one has.

        Kept: positions, momenta, thermostats, preconditioners, θ, corrections, walkers, counts and the step. Anew: what
        the target keeps in its scratch, by an evaluation at the positions; so the anchor of a target that draws
        minibatches is where the chains are. Raises TypeError or ValueError, and leaves all as it was, where a position
        is outside the new domain or has no finite energy or gradient there. checks_energies=False leaves out the
        latter, which takes all data: a replica whose energy is not finite then diverges at its next step.
        """
        check_flag("checks_energies", checks_energies)
        with self._use() as driver:
            is_alive = driver.counts.status == 0
            positions = positions_of(driver)
            driver.set_problem(
                check_replacement(driver.job, problem, positions, is_alive, checks_energies=checks_energies)
            )

    def save(self, path: str | os.PathLike[str] | None = None) -> None:
        """Save the chains with their problem, to go on by ``toolkit.chains(…, checkpoint=path)``.

        path: None for the checkpoint's. What these chains, or chains made by the same call, have saved there before is
        kept as the previous state; files of anything else raise CheckpointError. ValueError before the first step, and
        where chains have diverged and on_divergence is 'stop'.
        """
        with self._use() as driver:
            self._save(driver, path)

    def _save(self, driver: Driver[Run], path: Any) -> None:
        """``save``, of chains in use."""
        paths, own = check_checkpoint(path, "path"), self._checkpoint.paths
        if paths is None and own is None:
            raise ValueError("path must be given where there is no checkpoint, got None")
        if driver.done == 0:
            raise ValueError(
                f"path must be given after the first step, before which nothing is saved, got {shown(path)}"
            )
        if driver.diverged_status() is not None:
            raise ValueError(
                f"path must be given before a chain diverges, after which the chains cannot go on, got {shown(path)}"
            )
        nothing = driver.job.empty_outputs(0, 0)
        if paths is None or paths == own:
            self._checkpoint.save(driver, nothing)
            return
        with Checkpoint(replace(driver.job, checkpoint=paths), CHAINS) as other:
            other.restore_nothing(driver, nothing)
            other.save(driver, nothing)

    def close(self) -> None:
        """Save the chains if there is a checkpoint and they can go on, and release threads and files."""
        if self._is_closed:
            return
        if not self._lock.acquire(blocking=False):
            raise RuntimeError("these chains are in use by another call: they must not be closed before its end")
        try:
            self._is_closed, driver = True, self._driver
            with self._resources:
                can_go_on = driver.is_whole and driver.done > 0 and driver.diverged_status() is None
                if self._checkpoint.paths is not None and can_go_on:
                    self._save(driver, None)
        finally:
            self._lock.release()


def positions_of(driver: Driver[Run]) -> Floats:
    """A copy of all positions, (chain, replica, dim)."""
    pieces = views(driver.blocks, "position", driver.job.sampler.n_replicas)
    return np.ascontiguousarray(np.concatenate(list(pieces)).swapaxes(1, 2))


def kept_steps(job: Job, first: int, last: int) -> NDArray[np.int64]:
    """The steps from ``first`` to ``last`` (exclusive) whose draw is kept. Raises ValueError where too many are."""
    if job.thin == NO_DRAWS:
        return np.zeros(0, np.int64)
    most = (last - first) // job.thin + 1
    if most > MANY:
        numbers = job.init.shape[2] + job.records_energies + job.sampler.is_weighted + 0.5 * len(STATISTICS)
        n_bytes = 8.0 * most * (1 + len(job.init) * job.n_kept * numbers)
        check_room("n_steps", last - first, n_bytes, hint="; give a larger thin")
    starts = range(first, last, LONGEST_CHUNK)
    return np.concatenate([job.plan(start, min(start + LONGEST_CHUNK, last))[1] for start in starts])


def advance_driver(driver: Driver[Run], end: int) -> Run | None:
    """Advance to step ``end``; where draws are kept, a run of those from the present step on.

    Raises as ``Chains.advance``.
    """
    job, none = driver.job, np.zeros(0, np.int64)
    steps = kept_steps(job, driver.done, end)
    outputs = job.empty_outputs(steps.size, 0)

    def filled() -> tuple[Outputs, NDArray[np.int64], NDArray[np.int64]]:
        return outputs.of_draws(driver.n_draws, 0), steps[: driver.n_draws], none

    def raise_divergence() -> None:
        if driver.diverged_status() is not None:
            driver.raise_divergence(filled(), SavesNothing(), outputs)

    raise_divergence()
    copies = None
    try:
        for first, last in driver.growing_chunks(end=end, in_time=True):
            copies = driver.copy_state() if job.calls_python else None
            driver.advance(first, last, outputs, offset=driver.n_draws, trace_offset=0)
            raise_divergence()
    except BaseException as error:
        if not driver.is_whole and copies is not None:
            driver.restore_state(copies)
        if driver.is_whole and not isinstance(error, DivergenceError):
            attach_run(error, driver, driver.result(*filled(), True))
        raise
    return None if job.thin == NO_DRAWS else driver.result(*filled())


def weights_of(driver: Driver[Run]) -> Floats:
    """Importance weights of the present state, (chain, replica)."""
    job, n_replicas = driver.job, driver.job.sampler.n_replicas
    tempering: Any = job.sampler.tempers
    blocks = driver.blocks
    is_alive = driver.counts.status == 0
    if tempering.couples:
        found = np.concatenate([view[:, COUNTED] for view in views(blocks, "continuous.rows", n_replicas)])
    elif tempering.weighs_by_chain:
        energies = present_energies(job, blocks, driver.done)
        found = np.concatenate(
            [weights_in(each, block.state.contour, tempering) for each, block in zip(energies, blocks, strict=True)]
        )
    else:
        found = np.ones(is_alive.shape)
    return np.where(is_alive, found, np.nan)
