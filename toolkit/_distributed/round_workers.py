"""Who does the rounds of a run's groups: threads of this process, or workers of a cluster, with the same bits."""

import concurrent.futures
import contextlib
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, Protocol

import numpy as np

from .._engine.state import Outputs
from ..errors import ClusterError, optional
from ..tempering.contour_groups import SharedTheta
from .replica_group import (
    PER_DRAW,
    GroupsRequest,
    ReplicaGroup,
    RoundReport,
    RoundResult,
    State,
    round_on_worker,
    with_state,
    without_state,
)
from .tasks import as_given, names_loss, payload_of

HOME_EVERY = 32  # rounds after which states are brought to the client, so that a lost one is made again from there
LARGE = "1 GB"  # of a task's arguments, beyond which Dask is to warn: states and θ are large where chains are many


class Workers(Protocol):
    """Does rounds of all groups.

    keeps_states: those after the last complete round can be had while another is under way.
    """

    keeps_states: bool

    def want_states(self) -> None:
        """Tell that the states after the next round will be asked for."""

    def begin(self, steps: int, states: list[State] | None) -> None:
        """Set all groups to their states after ``steps`` steps; None: to their starts."""

    def advance(
        self, first: int, last: int, shared: SharedTheta | None, outputs: list[Outputs], offset: int
    ) -> tuple[RoundReport, ...]:
        """One round of all groups; their draws go to ``outputs`` (group,) from ``offset`` on."""

    def states(self) -> list[State]:
        """The states of all groups after the last round."""


class LocalWorkers:
    """Groups on threads of this process; a context manager that ends them."""

    keeps_states = False

    def __init__(self, request: GroupsRequest, threads: int) -> None:
        self._groups: list[ReplicaGroup] = []
        self._pool: ThreadPoolExecutor | None = None
        with contextlib.ExitStack() as stack:
            stack.callback(self.__exit__)
            together = min(threads, request.n_groups)
            for number in range(request.n_groups):
                self._groups.append(ReplicaGroup(request, number, max(1, threads // together)))
            if together > 1:
                self._pool = ThreadPoolExecutor(together, thread_name_prefix="toolkit-group")
            stack.pop_all()

    def __enter__(self) -> "LocalWorkers":
        return self

    def __exit__(self, *exception: object) -> None:
        if self._pool is not None:
            self._pool.shutdown()
        for group in self._groups:
            group.close()

    def want_states(self) -> None:
        """They are here."""

    def begin(self, steps: int, states: list[State] | None) -> None:
        """Set all groups to their states after ``steps`` steps; None: to their starts."""
        for number, group in enumerate(self._groups):
            group.restore(None if states is None else states[number], steps)

    def advance(
        self, first: int, last: int, shared: SharedTheta | None, outputs: list[Outputs], offset: int
    ) -> tuple[RoundReport, ...]:
        """One round of all groups; their draws go to ``outputs`` (group,) from ``offset`` on."""
        pairs = list(zip(self._groups, outputs, strict=True))
        if self._pool is None:
            return tuple(group.advance(first, last, shared, own, offset) for group, own in pairs)
        tasks = [self._pool.submit(group.advance, first, last, shared, own, offset) for group, own in pairs]
        try:
            return tuple(task.result() for task in tasks)
        finally:
            concurrent.futures.wait(tasks)

    def states(self) -> list[State]:
        """The states of all groups after the last round."""
        return [group.state() for group in self._groups]


class MovedGroup(NamedTuple):
    """Bytes of arrays that went through the client: what each θ is made of and θ itself, states, and draws."""

    reports: int = 0
    shared: int = 0
    states: int = 0
    draws: int = 0


def n_bytes(value: Any) -> int:
    """Bytes of all arrays in tuples, lists and dictionaries."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    items = value.values() if isinstance(value, dict) else value if isinstance(value, tuple | list) else ()
    return sum(map(n_bytes, items))


class ClusterWorkers:
    """Groups as tasks of a cluster; a context manager that cancels what is left of them.

    A round of a group is one pure task, whose result with the new state stays on its worker and is what the next round
    begins with; a second task takes report and draws from it, which the client gets. A state that is lost with its
    worker is computed anew by Dask from the one before, and so on back to the last that was brought here, which
    happens every ``HOME_EVERY`` rounds: the tasks that lead to a state stay few.
    """

    keeps_states = True

    def __init__(self, client: Any, request: GroupsRequest, threads: int) -> None:
        self._distributed = optional("distributed", "cluster")
        self._dask = optional("dask", "cluster")
        self._client, self._threads = client, threads
        payload = payload_of(request)
        self._name = f"{payload.digest[:16]}-{uuid.uuid4().hex[:12]}"
        self._payload = client.submit(as_given, payload, key=f"request-{self._name}", pure=False)
        self._before: list[Any] = [None] * request.n_groups  # futures of rounds, or states, or None at the start
        self._since_home = 0
        self._wants_home = False
        self._home: list[State] | None = None  # where they are those after the last round
        self._steps = 0
        self.moved = MovedGroup()

    def __enter__(self) -> "ClusterWorkers":
        return self

    def __exit__(self, *exception: object) -> None:
        futures = [before for before in self._before if isinstance(before, self._distributed.Future)]
        with contextlib.suppress(Exception):  # a scheduler that is lost has nothing to cancel
            self._client.cancel([*futures, self._payload], force=True)

    def want_states(self) -> None:
        """Bring the states after the next round here, as they will be asked for."""
        self._wants_home = True

    def begin(self, steps: int, states: list[State] | None) -> None:
        """Set all groups to their states after ``steps`` steps; None: to their starts."""
        self._home, self._steps = states, steps
        if states is not None:
            self._before = list(states)

    def advance(
        self, first: int, last: int, shared: SharedTheta | None, outputs: list[Outputs], offset: int
    ) -> tuple[RoundReport, ...]:
        """One round of all groups; their draws go to ``outputs`` (group,) from ``offset`` on."""
        comes_home = self._wants_home or self._since_home + 1 >= HOME_EVERY
        futures = [
            self._submit(round_on_worker, f"{number}-{first}", self._payload, number, before, first, last, shared,
                         self._threads)
            for number, before in enumerate(self._before)
        ]  # fmt: skip
        results = self._fetched(with_state if comes_home else without_state, futures, f"{first}")
        self._before, self._since_home, self._wants_home = list(futures), self._since_home + 1, False
        self._home, self._steps = None, last
        if comes_home:
            self._take_home(results)
        for own, result in zip(outputs, results, strict=True):
            for name in PER_DRAW:
                part = getattr(result.outputs, name)
                getattr(own, name)[:, :, offset : offset + part.shape[2]] = part
        reports = tuple(result.report for result in results)
        self._count(reports=n_bytes(reports), draws=n_bytes([result.outputs for result in results]))
        self._count(shared=len(results) * n_bytes(shared))
        return reports

    def states(self) -> list[State]:
        """The states of all groups after the last round, which are brought here where they are not yet."""
        if self._home is None:
            self._take_home(self._fetched(with_state, self._before, f"after-{self._steps}"))
        assert self._home is not None
        return self._home

    def _take_home(self, results: list[RoundResult]) -> None:
        """Go on from the states of these results, without the tasks that led to them."""
        self._home = [result.state for result in results if result.state is not None]
        self._before, self._since_home = list(self._home), 0
        self._count(states=2 * n_bytes(self._home))  # here, and to the workers again

    def _count(self, **more: int) -> None:
        """Add bytes that have moved."""
        self.moved = self.moved._replace(**{name: getattr(self.moved, name) + n for name, n in more.items()})

    def _submit(self, function: Callable[..., Any], name: str, *arguments: Any) -> Any:
        """The future of a task."""
        with (
            names_loss(self._client),
            self._dask.config.set({"distributed.admin.large-graph-warning-threshold": LARGE}),
        ):
            return self._client.submit(function, *arguments, key=f"{function.__name__}-{self._name}-{name}", pure=False)

    def _fetched(self, take: Callable[..., Any], futures: list[Any], name: str) -> list[RoundResult]:
        """What ``take`` makes of the rounds' results. Raises what a task raised; ClusterError where all was lost."""
        taken = [self._submit(take, f"{number}-{name}", future) for number, future in enumerate(futures)]
        try:
            with names_loss(self._client):
                results: list[RoundResult] = self._client.gather(taken)
            return results
        except self._distributed.scheduler.KilledWorker as error:
            raise ClusterError(
                f"a round was lost with its workers again and again: too little memory? {error}"
            ) from None
