"""A group of a run's replicas: what it does in a round, here or on a worker, and the state that it hands on."""

import dataclasses
import threading
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._compiler.block_rows import NOISY_ENERGY
from .._engine.driver import LONGEST_CHUNK, Driver
from .._engine.job import Job, make_job
from .._engine.run_options import RunOptions
from .._engine.run_record import Counts, RunRecord
from .._engine.state import STATUS, STORED, Outputs, by_chain, stored_names, views
from ..problem.starts import Keys
from ..samplers.sampler import Sampler
from ..tempering.contour_groups import GroupTheta, SharedTheta, group_theta, set_theta
from .tasks import Payload, opened

Array = NDArray[Any]
State = dict[str, Array]  # by the names of ``engine.state.STORED``, chains first

PER_DRAW = ("draws", "energies", "weights", "statistics")  # of the outputs
OF_THE_SHARED = ("contour.table", "contour.scale")  # what a round begins by setting, where there are several groups


class GroupsRequest(NamedTuple):
    """A run in rounds, as every group is made from it.

    sampler: of all replicas, with its contour's partition. init: (chain, replica, dim). options: checked; a
    group has its own starts and threads.
    """

    problem: Any
    sampler: Sampler
    init: Array
    n_groups: int
    options: RunOptions

    @property
    def group_size(self) -> int:
        """Replicas of a chain in each group."""
        return self.sampler.n_replicas // self.n_groups


class RoundReport(NamedTuple):
    """What a group tells after a round.

    last_energies: (chain, replica) of the group, those (noisy) of the last positions. counts: since the start.
    """

    learned: GroupTheta
    last_energies: Array
    counts: Counts


class RoundResult(NamedTuple):
    """A group's round: its report, the outputs of its steps, and the state after it, or None where it is not sent."""

    report: RoundReport
    outputs: Outputs
    state: State | None


def sampler_of_replicas(sampler: Sampler, replicas: slice) -> Sampler:
    """``sampler`` with some of its replicas alone."""
    own: dict[str, Any] = {name: values[..., replicas] for name, values in sampler.arrays.items()}
    return dataclasses.replace(sampler, **own)


def job_of_group(request: GroupsRequest, number: int, threads: int) -> Job:
    """The checked arguments of the group ``number``, whose random numbers are those of its replicas in the whole."""
    replicas = slice(number * request.group_size, (number + 1) * request.group_size)
    keys = Keys(np.arange(len(request.init)), replicas.start)
    options = dataclasses.replace(
        request.options, n_chains=len(request.init), init=request.init[:, replicas], threads=threads
    )
    return make_job(request.problem, sampler_of_replicas(request.sampler, replicas), options, keys=keys)


class ReplicaGroup:
    """The engine of one group; ``close`` releases its threads."""

    def __init__(self, request: GroupsRequest, number: int, threads: int) -> None:
        self.job = job_of_group(request, number, threads)
        self.shares = request.n_groups > 1
        self.first_replica = number * request.group_size
        self._driver = Driver(self.job, False, RunRecord)
        self._fresh = self.state()

    def close(self) -> None:
        """Release the threads."""
        self._driver.__exit__()

    def state(self) -> State:
        """A copy of all that later steps depend on; without θ where that is shared."""
        blocks, n_replicas = self._driver.blocks, self.job.sampler.n_replicas
        return {
            name: np.concatenate(list(views(blocks, name, n_replicas)))
            for name in stored_names(blocks, n_replicas)
            if not (self.shares and name in OF_THE_SHARED)
        }

    def restore(self, state: State | None, step: int) -> None:
        """Go back to ``state``, that after ``step`` steps; None: to the start."""
        given = self._fresh if state is None else state
        for block in self._driver.blocks:
            block.state.status[:] = 0
            for name in (*STORED, STATUS):
                if name in given:
                    view = by_chain(block.state, name, block.last - block.first, self.job.sampler.n_replicas)
                    view[...] = given[name][block.first : block.last]
        self._driver.resume(step, self.job.counts_before(step)[0], 0, 0.0)

    def advance(self, first: int, last: int, shared: SharedTheta | None, outputs: Outputs, offset: int) -> RoundReport:
        """The steps first … last − 1, with θ as it is shared, or None to go on with one's own.

        The draws are written to ``outputs`` from ``offset`` on.
        """
        driver, n_replicas = self._driver, self.job.sampler.n_replicas
        blocks = driver.blocks
        if shared is not None:
            for block in blocks:
                own = slice(block.first, block.last)
                set_theta(block.state.contour, SharedTheta(shared.theta[own], shared.visits[own]))
        begun = driver.n_draws
        for begin in range(first, last, LONGEST_CHUNK):
            end = min(begin + LONGEST_CHUNK, last)
            driver.advance(begin, end, outputs, offset=offset + driver.n_draws - begun, trace_offset=0)
        if self.job.keep_statistics and self.first_replica:  # the number of the replica, which the engine counts from 0
            outputs.statistics[:, :, offset : offset + driver.n_draws - begun, 0] += self.first_replica
        energies = []
        for block in blocks:
            n_chains = block.last - block.first
            row = block.state.rows[NOISY_ENERGY, : n_chains * n_replicas]
            energies.append(row.reshape(n_replicas, n_chains).T)
        return RoundReport(
            group_theta([block.state.contour for block in blocks]), np.concatenate(energies), driver.counts
        )


# On a worker.

_IDLE: dict[tuple[str, int, int], list[ReplicaGroup]] = {}  # engines that no task uses, whose state is set anew
_LOCK = threading.Lock()
MOST_IDLE = 16


def round_on_worker(
    payload: Payload, number: int, before: Any, first: int, last: int, shared: SharedTheta | None, threads: int
) -> RoundResult:
    """A round of the group ``number``, a pure function of its arguments. before: None, a state, or the last round."""
    state: State | None = before.state if isinstance(before, RoundResult) else before
    key = (payload.digest, number, threads)
    with _LOCK:
        idle = _IDLE.get(key)
        group = idle.pop() if idle else None
    if group is None:
        group = ReplicaGroup(opened(payload), number, threads)
    group.restore(state, first)
    outputs = group.job.empty_outputs(group.job.plan(first, last)[1].size, 0)
    report = group.advance(first, last, shared, outputs, 0)
    result = RoundResult(report, outputs, group.state())
    with _LOCK:
        while sum(map(len, _IDLE.values())) >= MOST_IDLE:
            for each in _IDLE.pop(next(iter(_IDLE))):
                each.close()
        _IDLE.setdefault(key, []).append(group)
    return result


def without_state(result: RoundResult) -> RoundResult:
    """What is sent after a round whose state stays on the worker."""
    return result._replace(state=None)


def with_state(result: RoundResult) -> RoundResult:
    """What is sent after a round whose state is brought to the client too."""
    return result
