"""Parts of a run as tasks of Dask: pure functions of their chains, submitted as others end."""

import concurrent.futures
import contextlib
import hashlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from numba import cloudpickle

from .._compiler.disk_cache import environment
from ..errors import ClusterError, ClusterWarning, optional, shown, warn_user
from .part import Part, compute_part

COMPARED = ("python", "manymodes", "sources")
IN_FLIGHT = 2  # tasks for each thread of the workers
PATIENCE = 30.0  # seconds


class Payload(NamedTuple):
    """A request as workers get it: with the versions that pickled it, and a digest of both, by which it is kept."""

    versions: dict[str, str]
    digest: str
    content: bytes


def versions() -> dict[str, str]:
    """What must be the same on workers: the minor version of Python, and the toolkit's."""
    found = environment()
    return {name: ".".join(found[name].split(".")[:2]) if name == "python" else found[name] for name in COMPARED}


def payload_of(request: Any) -> Payload:
    """``request`` for workers; functions and classes of a script or notebook are sent by value."""
    content, own = cloudpickle.dumps(request), versions()
    return Payload(own, hashlib.sha256(repr(own).encode() + content).hexdigest(), content)


_OPENED: dict[str, Any] = {}  # by digest; unpickled once in a process, so that what is compiled is kept
MOST_OPENED = 8


def opened(payload: Payload) -> Any:
    """The request. Raises ClusterError where this worker has other versions."""
    own, given = versions(), payload.versions
    differing = [f"{name} {own[name]} there, {given[name]} here" for name in own if own[name] != given[name]]
    if differing:
        raise ClusterError(
            f"workers must have the toolkit and Python of the client, for the same bits: {'; '.join(differing)}"
        )
    if payload.digest not in _OPENED:
        while len(_OPENED) >= MOST_OPENED:
            _OPENED.pop(next(iter(_OPENED)))
        _OPENED[payload.digest] = cloudpickle.loads(payload.content)
    return _OPENED[payload.digest]


def as_given(value: Any) -> Any:
    """``value``: a task whose result other tasks need, and which a scheduler computes again where it was lost."""
    return value


def part_on_worker(payload: Payload, first: int, last: int, threads: int, init: Any) -> Part:
    """A part of a run, on a worker. init: of these chains, where it is not in the request."""
    return compute_part(opened(payload), first, last, threads, init)


class Lost(NamedTuple):
    """What became of a task that was on workers which died, more often than Dask tries again."""

    reason: str


def check_client(client: Any) -> Any:
    """``client``, checked to be one of Dask that waits for results. Raises TypeError or ValueError where it is not."""
    distributed = optional("distributed", "cluster")
    if not isinstance(client, distributed.Client):
        raise TypeError(
            f"client must be None or a dask.distributed.Client, got {shown(client)} of type {type(client).__name__}"
        )
    if client.asynchronous:
        raise ValueError("client must have asynchronous=False, got a client with asynchronous=True")
    if client.status != "running":
        raise ValueError(f"client must be connected to its scheduler, got one whose status is {client.status!r}")
    return client


@contextlib.contextmanager
def names_loss(client: Any) -> Iterator[None]:
    """Raise ClusterError where the connection to the scheduler is lost."""
    closed = optional("distributed", "cluster").client.ClosedClientError
    try:
        yield
    except (concurrent.futures.CancelledError, OSError, AttributeError, closed) as error:
        if isinstance(error, AttributeError) and client.scheduler is not None:
            raise
        raise ClusterError(f"the connection to the scheduler was lost ({type(error).__name__}: {error})") from None


class TaskQueue:
    """Tasks under way on a cluster; a context manager that cancels those that are left.

    resources: what a worker must have, such as {"GPU": 1}; None: any worker.
    """

    def __init__(self, client: Any, request: Any, resources: dict[str, float] | None = None) -> None:
        self._distributed = optional("distributed", "cluster")
        self._client, self._resources = client, resources
        payload = payload_of(request)
        self._name = payload.digest[:16]
        self._payload = client.submit(as_given, payload, key=f"request-{self._name}", pure=True)
        self._has_warned = False
        self._items: dict[str, tuple[Any, Any]] = {}  # key → future, item
        self._count = 0

    def __enter__(self) -> "TaskQueue":
        return self

    def __exit__(self, *exception: object) -> None:
        with contextlib.suppress(Exception):  # a scheduler that is lost has nothing to cancel
            self._client.cancel([future for future, _ in self._items.values()], force=True)

    @property
    def n_threads(self) -> int:
        """Threads of all workers that there are now; 1 where none has come yet. Raises ClusterError."""
        with names_loss(self._client):
            return max(1, int(sum(self._client.nthreads().values())))

    @property
    def n_waiting(self) -> int:
        """Tasks that have not been returned by ``next``."""
        return len(self._items)

    @property
    def has_room(self) -> bool:
        """Whether another task should be submitted."""
        return self.n_waiting < IN_FLIGHT * self.n_threads

    def submit(self, function: Callable[..., Any], item: Any, *arguments: Any) -> None:
        """Submit function(payload, *arguments); ``next`` returns its result with ``item``."""
        self._count += 1
        key = f"{function.__name__}-{self._name}-{id(self):x}-{self._count}"
        future = self._client.submit(function, self._payload, *arguments, key=key, resources=self._resources)
        self._items[key] = future, item

    def next(self) -> tuple[Any, Any]:
        """The item and the result of a task that has ended, or ``Lost``. Raises what the task raised; ClusterError.

        Warns once where there has been no worker for ``PATIENCE`` seconds, and goes on waiting.
        """
        with names_loss(self._client):
            future = self._first_ended()
            _, item = self._items.pop(future.key)
            error = future.exception()
        if error is None:
            with names_loss(self._client):
                return item, future.result()
        if isinstance(error, self._distributed.scheduler.KilledWorker):
            return item, Lost(str(error))
        raise error

    def _first_ended(self) -> Any:
        """A future that is done."""
        while True:
            futures = [future for future, _ in self._items.values()]
            try:
                return next(iter(self._distributed.wait(futures, timeout=PATIENCE, return_when="FIRST_COMPLETED").done))
            except (TimeoutError, self._distributed.TimeoutError):
                if not self._client.nthreads() and not self._has_warned:
                    self._has_warned = True
                    warn_user("the cluster has no workers; waiting for some to come", ClusterWarning)
