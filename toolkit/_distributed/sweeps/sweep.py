"""``sweep``: every setting of a grid on every problem with every seed, on threads or on Dask, as one table."""

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..._compiler.disk_cache import available_threads
from ..._engine.driver import bar_of, defer_interrupt
from ..._engine.job import check_footprint
from ..._output.run import Run
from ..._output.storage.description import describe_problem
from ...errors import (
    ClusterError,
    InterruptedWarning,
    check_array,
    check_count,
    check_instance,
    check_progress,
    check_room,
    entries,
    is_a,
    optional,
    shown,
    warn_user,
)
from ...problem.definition import Spread, as_problem
from ..sizes import GROWTH, TaskSizes
from ..tasks import Lost, TaskQueue, check_client
from .cells import Cell, CellResult, SweepRequest, cells_on_worker, compute_cells, job_of, words_of
from .grid import Grid, settings_of_groups
from .journal import CellKeys, NothingSaved, SweepJournal, digest_of, setting_digests
from .table import Axes, cells_of, table_of

if TYPE_CHECKING:
    import xarray

FIRST_CELLS, MOST_CELLS = 8, 1000  # of a task; ``measure`` may take longer than sampling


def sweep(
    problem: Any,
    grid: Grid,
    *,
    n_steps: int,
    seeds: Sequence[int],
    n_chains: int = 1,
    burn_in: int = 0,
    thin: int = 1,
    init: Any = None,
    measure: Callable[[Run], Mapping[str, Any]] | None = None,
    threads: int | None = None,
    client: Any = None,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
) -> "xarray.Dataset":
    """Run every setting of ``grid`` on every problem with every seed; the results as an ``xarray.Dataset``.

    problem: a Problem or a Target, or a mapping name → problem, which makes a dimension ``problem``. grid: of
    ``toolkit.grid``; each axis makes a dimension. seeds: distinct integers, 0 to 2⁶⁴ − 1; the dimension ``seed``.
    n_steps, n_chains, burn_in, thin, init: of every run, as in ``sample``.

    Each cell has the numbers of ``sample(problem, sampler, n_steps=, n_chains=, seed=, …, on_divergence="keep")``, bit
    for bit, whatever the order, the threads or the cluster. Settings that differ in step sizes and temperatures alone
    run as chains of one call, with the same random numbers: their differences are less noisy than they are themselves.

    Variables, by problem, axes and seed: mean, sd, mcse (of the mean), ess (bulk) and r_hat of each ``coordinate``;
    acceptance of a Metropolis test and swap_rate of replica exchange, where a setting has it; diverged, the share of
    chains; gradient_evaluations, of all chains. error: (mean − the truth's mean) / the truth's sd, where the problem
    knows its moments and the setting samples it. Of a run with a diverged chain all else is nan. With two seeds or more
    each has a mean over the seeds that are not nan, ``mean_over_seeds``, …, and its standard error,
    ``mean_standard_error``, …. Coordinates that a problem does not have are nan. Labels of
    ``coordinate``: the names (of a Target) where all problems have the same and they are of positions, else numbers.
    measure: function run → mapping name → number or array, whose values become variables; names and shapes must be the
    same for all runs. It may be called by several threads at a time, and is not for runs with a diverged chain.

    threads: of this process; None: all processors. client: a ``dask.distributed.Client``, whose workers then compute,
    a thread a task (docs/cluster.md; extra ``cluster``). checkpoint: a file to which runs are written as they end.
    Called again, after a kill too, the sweep computes what is not there; with more values, problems or seeds likewise,
    for runs are known by what they are. progress: a bar of runs on stderr; None: only on a terminal.

    Ctrl-C ends the sweep and returns the table so far, nan elsewhere, with an ``InterruptedWarning``.
    Raises TypeError or ValueError before anything runs, naming the argument, its value and what is allowed;
    CheckpointError where a checkpoint is of another sweep, naming the difference, in use, or damaged; ImportError
    without xarray (extra ``io``); ClusterError where a cluster cannot run it or was lost. What ``measure`` or a
    target's Python function raises has a note that names the setting and the seed.
    """
    optional("xarray", "io")
    request, axes = checked(problem, grid, n_steps, seeds, n_chains, burn_in, thin, init, measure)
    n_threads = available_threads() if threads is None else check_count("threads", threads, at_least=1)
    if client is not None:
        check_client(client)
    check_progress(progress)
    started = time.perf_counter()
    saved = NothingSaved()
    if checkpoint is not None:
        saved = SweepJournal(checkpoint, request, axes.names or [""])
    with saved:
        collected = Collected(request, axes, saved, progress)
        try:
            if collected.todo:
                collected.fill_with(OnThreads(request, n_threads) if client is None else OnCluster(request, client))
        except KeyboardInterrupt:
            warn_user(
                f"interrupted after {collected.n_done:,} of {collected.n_cells:,} runs; the table is nan elsewhere",
                InterruptedWarning,
            )
        finally:
            collected.close()
    table = collected.table()
    table.attrs["elapsed"] = time.perf_counter() - started
    return table


def checked(
    problem: Any, grid: Any, n_steps: Any, seeds: Any, n_chains: Any, burn_in: Any, thin: Any, init: Any, measure: Any
) -> tuple[SweepRequest, Axes]:
    """All arguments, checked for every problem with every kind of setting."""
    names, problems = None, [problem]
    if is_a(problem, Mapping):
        names, problems = [*problem], [*problem.values()]
        if not names or not all(is_a(name, str) and name for name in names):
            raise TypeError(f"problem must be a Problem, a Target or a mapping name → problem, got {shown(problem)}")
    problems = [as_problem(each) for each in problems]
    check_instance("grid", grid, Grid)
    given = [check_count(f"seeds[{i}]", s, at_least=0, below=2**64) for i, s in enumerate(entries("seeds", seeds))]
    if not given or len(set(given)) < len(given):
        raise ValueError(f"seeds must be one or more distinct integers, got {shown(seeds)}")
    if measure is not None and not callable(measure):
        raise TypeError(f"measure must be None or a function of a run, got {shown(measure)}")
    n_steps = check_count("n_steps", n_steps, at_least=1, below=2**48)
    options = {
        "n_steps": n_steps, "n_chains": check_count("n_chains", n_chains, at_least=1, below=2**32),
        "burn_in": check_count("burn_in", burn_in, at_least=0, below=n_steps),
        "thin": check_count("thin", thin, at_least=1), "init": init,
    }  # fmt: skip
    if init is not None and not isinstance(init, Spread):
        options["init"] = check_array("init", init)
    request = SweepRequest(tuple(problems), grid, options, measure)
    check_cells(request, given)
    width = sum(5 * each.target.dim + 8 for each in problems)
    check_room("grid", f"{shown(grid)} with {len(given)} seeds", 64.0 * grid.n_settings * len(given) * width)
    return request, Axes(names, given)


def check_cells(request: SweepRequest, seeds: list[int]) -> None:
    """Raise TypeError or ValueError where a run would be refused, one of each group of settings of equal parts."""
    samplers = [request.grid.sampler(index) for index in range(request.grid.n_settings)]
    firsts: dict[int, int] = {}
    for index, (group, _) in enumerate(settings_of_groups(samplers)):
        firsts.setdefault(group, index)
    for p in range(len(request.problems)):
        for index in firsts.values():
            cell = Cell(p, index, seeds[0])
            try:
                job = job_of(request, cell, [samplers[index]])
                next(job.kept_pieces())  # raises where there are none
                check_footprint(job, keep_draws=True, keep_trace=True)
            except (TypeError, ValueError) as error:
                error.add_note(f"in the sweep's run of {words_of(request, cell)}")
                raise


class Collected:
    """The cells of a sweep, of which those in the file are there, and those ``todo`` come by ``fill_with``."""

    def __init__(self, request: SweepRequest, axes: Axes, saved: NothingSaved, progress: bool | None) -> None:
        self._request, self._axes, self._saved = request, axes, saved
        self._cells = cells_of(request, axes)
        described = [digest_of(describe_problem(problem)) for problem in request.problems]
        keys = CellKeys(described, setting_digests(request.grid))
        self._keys = [keys.of(cell) for cell in self._cells]
        self._results: dict[bytes, CellResult] = {}
        self._shapes: Any = None
        wanted = dict(zip(self._keys, self._cells, strict=True))  # equal samplers are computed once
        for key, cell in wanted.items():
            if key in saved.found:
                self._keep(key, cell, saved.found[key])
        self.n_cells = len(wanted)
        groups = [group for group, _ in settings_of_groups([request.grid.sampler(i) for i in range(len(request.grid))])]
        left = [(cell, key) for key, cell in wanted.items() if key not in self._results]
        left.sort(key=lambda item: (item[0].problem, axes.seeds.index(item[0].seed), groups[item[0].setting], item[0]))
        self.todo: list[tuple[Cell, bytes]] = left
        name = request.grid.sampler(0).name
        self._bar = bar_of(progress, total=self.n_cells, initial=self.n_done, desc=name, unit="run")

    @property
    def n_done(self) -> int:
        """Runs whose results are there."""
        return len(self._results)

    def close(self) -> None:
        """Close the progress bar."""
        if self._bar is not None:
            self._bar.close()

    def _keep(self, key: bytes, cell: Cell, result: CellResult) -> None:
        """Keep a result. Raises ValueError where ``measure`` gave other names or shapes than before."""
        if result.shapes is not None:
            if self._shapes is None:
                self._shapes = result.shapes
            if self._shapes != result.shapes:
                raise ValueError(
                    f"measure must return the same names and shapes for all runs, got {result.shapes} for "
                    f"{words_of(self._request, cell)} after {self._shapes}"
                )
        self._results[key] = result

    def fill_with(self, runner: "Runner") -> None:
        """Compute what is left, and keep and save it as it comes."""
        sizes, place, count, most = TaskSizes(), 0, len(self.todo), FIRST_CELLS
        ends = np.cumsum([self._work(cell) for cell, _ in self.todo])
        with runner:
            while place < count or runner.n_waiting:
                while place < count and runner.has_room:
                    done = ends[place - 1] if place else 0.0
                    last = np.searchsorted(ends, done + sizes.next(ends[-1] - done, runner.n_threads), side="right")
                    last = max(place + 1, min(int(last), place + most, place + MOST_CELLS))
                    runner.submit(self.todo[place:last])
                    place = last
                items, results, seconds = runner.next()
                with defer_interrupt():
                    self._add(items, results)
                sizes.add(sum(self._work(cell) for cell, _ in items), seconds)
                most = max(most, GROWTH * len(items))

    def _work(self, cell: Cell) -> float:
        """Gradient evaluations of a cell."""
        options, sampler = self._request.options, self._request.grid.sampler(cell.setting)
        return float(options["n_steps"] * options["n_chains"] * max(1, sampler.gradients_per_step))

    def _add(self, items: list[tuple[Cell, bytes]], results: list[CellResult]) -> None:
        """Keep the results of a task, and save them."""
        for (cell, key), result in zip(items, results, strict=True):
            self._keep(key, cell, result)
        self._saved.add([key for _, key in items], results)
        if self._bar is not None:
            self._bar.update(len(items))

    def table(self) -> "xarray.Dataset":
        """The Dataset of what is there."""
        shape = (len(self._request.problems), len(self._request.grid), len(self._axes.seeds))
        places = [tuple(map(int, place)) for place in np.ndindex(shape)]
        results = [self._results.get(key) for key in self._keys]
        return table_of(self._request, self._axes, places, results)  # type: ignore[arg-type]


Items = list[tuple[Cell, bytes]]


class Runner(Protocol):
    """What computes tasks of cells; a context manager that gives up those that are left."""

    @property
    def n_threads(self) -> int:
        """Tasks that run at a time."""

    @property
    def n_waiting(self) -> int:
        """Tasks that have not been returned by ``next``."""

    @property
    def has_room(self) -> bool:
        """Whether another task should be submitted."""

    def submit(self, items: Items) -> None:
        """Submit the cells of a task."""

    def next(self) -> tuple[Items, list[CellResult], float]:
        """Cells, results and seconds of a task that has ended."""

    def __enter__(self) -> "Runner": ...

    def __exit__(self, *exception: object) -> None: ...


def timed_cells(request: SweepRequest, cells: list[Cell], stop: threading.Event) -> tuple[list[CellResult], float]:
    """The results of cells, and the seconds they took."""
    started = time.perf_counter()
    return compute_cells(request, cells, stop), time.perf_counter() - started


class OnThreads:
    """Tasks on threads of this process."""

    def __init__(self, request: SweepRequest, n_threads: int) -> None:
        self._request, self.n_threads = request, n_threads
        self._stop = threading.Event()
        self._waiting: dict[Future[Any], Items] = {}

    def __enter__(self) -> "OnThreads":
        self._pool = ThreadPoolExecutor(self.n_threads, thread_name_prefix="sweep")
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop.set()
        self._pool.shutdown(cancel_futures=True)

    @property
    def n_waiting(self) -> int:
        """Tasks that have not been returned by ``next``."""
        return len(self._waiting)

    @property
    def has_room(self) -> bool:
        """Whether another task should be submitted."""
        return len(self._waiting) <= self.n_threads

    def submit(self, items: Items) -> None:
        """Submit the cells of a task."""
        future = self._pool.submit(timed_cells, self._request, [cell for cell, _ in items], self._stop)
        self._waiting[future] = items

    def next(self) -> tuple[Items, list[CellResult], float]:
        """Cells, results and seconds of a task that has ended."""
        done, _ = wait(self._waiting, return_when=FIRST_COMPLETED)
        future = next(iter(done))
        items = self._waiting.pop(future)
        return items, *future.result()


class OnCluster:
    """Tasks on the workers of a Dask cluster; the problems and the grid are sent once."""

    def __init__(self, request: SweepRequest, client: Any) -> None:
        self._request = request
        self._queue = TaskQueue(client, request)

    def __enter__(self) -> "OnCluster":
        self._queue.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self._queue.__exit__(*exception)

    @property
    def n_threads(self) -> int:
        """Threads of all workers."""
        return self._queue.n_threads

    @property
    def n_waiting(self) -> int:
        """Tasks that have not been returned by ``next``."""
        return self._queue.n_waiting

    @property
    def has_room(self) -> bool:
        """Whether another task should be submitted."""
        return self._queue.has_room

    def submit(self, items: Items) -> None:
        """Submit the cells of a task."""
        self._queue.submit(timed_cells_on_worker, items, [cell for cell, _ in items])

    def next(self) -> tuple[Items, list[CellResult], float]:
        """Cells, results and seconds of a task that has ended; those of a task that was lost are divided."""
        while True:
            items, found = self._queue.next()
            if not isinstance(found, Lost):
                return items, *found
            if len(items) == 1:
                raise ClusterError(
                    f"the run of {words_of(self._request, items[0][0])} was lost with its workers again and again, "
                    f"alone on each: too little memory? {found.reason}"
                )
            middle = len(items) // 2
            self.submit(items[:middle])
            self.submit(items[middle:])


def timed_cells_on_worker(payload: Any, cells: list[Cell]) -> tuple[list[CellResult], float]:
    """``timed_cells`` on a worker."""
    started = time.perf_counter()
    return cells_on_worker(payload, cells), time.perf_counter() - started
