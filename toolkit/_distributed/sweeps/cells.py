"""Cells of a sweep, (problem, setting, seed): computed here, as chains of one engine call where parts are equal."""

import dataclasses
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._engine.driver import Driver, RunsToEnd
from ..._engine.job import Job, make_job
from ..._engine.partition_pilot import with_partition
from ..._engine.run_options import RunOptions
from ..._engine.run_record import Counts, RunRecord, Statistics
from ..._output.run import Run
from ...errors import DivergenceError, is_a, shown
from ...problem.definition import Problem, Spread
from ...problem.starts import Keys
from ...samplers.sampler import Sampler
from ..part import BY_CHAIN, run_chains
from ..tasks import Payload, opened
from .grid import COUNTS, OVER_SEEDS, STANDARD_ERROR, STATISTICS, Grid, parts_key, reserved_names
from .statistics import statistics_of

Array = NDArray[np.float64]
Shapes = dict[str, tuple[int, ...]]

DRAWS_BYTES = 64 << 20  # of the draws of the settings that run together


class SweepRequest(NamedTuple):
    """A sweep of which cells are computed. options: n_steps, n_chains, burn_in, thin, init."""

    problems: tuple[Problem, ...]
    grid: Grid
    options: dict[str, Any]
    measure: Callable[[Run], Mapping[str, Any]] | None


class Cell(NamedTuple):
    """One run of a sweep: the numbers of its problem and setting, and its seed."""

    problem: int
    setting: int
    seed: int


class CellResult(NamedTuple):
    """A cell's numbers: ``STATISTICS`` by coordinate, ``COUNTS``, then what is measured, flat.

    shapes: of what is measured, by name; None without ``measure``, and where a chain diverged, whose run is not
    measured.
    """

    values: Array
    shapes: Shapes | None


class Stopped(Exception):  # noqa: N818  (no error)
    """The sweep was stopped; cells under way are given up."""


class StopsWhenAsked(RunsToEnd):
    """A run that ends by its number of steps, or after the present chunk where ``stop`` is set."""

    def __init__(self, job: Job, stop: threading.Event) -> None:
        super().__init__(job)
        self._stop = stop

    def is_over(self, driver: Driver[Any]) -> bool:
        """Raises Stopped where the sweep was stopped."""
        if self._stop.is_set():
            raise Stopped
        return False


def cells_on_worker(payload: Payload, cells: list[Cell]) -> list[CellResult]:
    """Cells of a sweep, on a worker of Dask."""
    return compute_cells(opened(payload), cells, threading.Event())


def compute_cells(request: SweepRequest, cells: list[Cell], stop: threading.Event) -> list[CellResult]:
    """The results of cells in order, neighbours of equal parts together. Raises Stopped once ``stop`` is set."""
    results: list[CellResult] = []
    while len(results) < len(cells):
        if stop.is_set():
            raise Stopped
        results += compute_together(request, cells[len(results) :], stop)
    return results


def compute_together(request: SweepRequest, cells: list[Cell], stop: threading.Event) -> list[CellResult]:
    """The results of the first cell, and of those that follow it and can run as further chains of one call."""
    first, sampler = cells[0], request.grid.sampler(cells[0].setting)
    problem, length = request.problems[first.problem], 1
    if can_share(problem, sampler):
        most, key = cells_together(request, problem, sampler), parts_key(sampler)
        while (
            length < min(most, len(cells))
            and (cells[length].problem, cells[length].seed) == (first.problem, first.seed)
            and parts_key(request.grid.sampler(cells[length].setting)) == key
        ):
            length += 1
    together = cells[:length]
    try:
        return results_of(request, together, list(runs_of(request, together, stop)))
    except DivergenceError:  # of the pilot that finds contour's partition
        return [diverged_result(problem.target.dim)]
    except Stopped:
        raise
    except Exception as error:
        if not any("in the sweep's run" in note for note in getattr(error, "__notes__", ())):
            more = f", or of one of the {length - 1} settings that run with it" if length > 1 else ""
            error.add_note(f"in the sweep's run of {words_of(request, first)}{more}")
        raise


def words_of(request: SweepRequest, cell: Cell) -> str:
    """Setting, problem and seed in words."""
    setting = request.grid.words(cell.setting) or "its only setting"
    return f"{setting} on {request.problems[cell.problem].name!r}, seed={cell.seed}"


def can_share(problem: Problem, sampler: Sampler) -> bool:
    """Whether settings that differ in step sizes and temperatures alone can be chains of one call, bit for bit.

    A contour's partition is found, and with a Metropolis test checked, by a pilot with the setting's own step size.
    A Python function would be called at other numbers of points.
    """
    has_partition = sampler.tempers.energy_partition is not None
    needs_pilot = sampler.tempers.weighs_by_chain and (not has_partition or sampler.dynamics.leapfrogs > 0)
    return problem.target.callback is None and not needs_pilot


def cells_together(request: SweepRequest, problem: Problem, sampler: Sampler) -> int:
    """How many settings run as chains of one call: as many as the memory for their draws has room for."""
    options, replicas = request.options, sampler.n_target_replicas
    draws = (options["n_steps"] - options["burn_in"]) // options["thin"]
    numbers = draws * replicas * (problem.target.dim + sampler.is_weighted)
    lanes = sampler.n_replicas * (8 * problem.target.dim + problem.target.scratch_rows + 32)
    return max(1, int(DRAWS_BYTES // (8 * options["n_chains"] * (numbers + lanes))))


def runs_of(request: SweepRequest, cells: list[Cell], stop: threading.Event) -> Iterator[Run]:
    """The run of each cell, all of one problem and seed; samplers of several differ in step sizes and temperatures."""
    samplers = [request.grid.sampler(cell.setting) for cell in cells]
    job = job_of(request, cells[0], samplers)
    if job.sampler.tempers.weighs_by_chain:
        completed, gradients = with_partition(job, warns=False)
        job = dataclasses.replace(job, sampler=completed, pilot_gradients=gradients)
        samplers = [job.sampler] if len(samplers) == 1 else samplers
    whole, _ = run_chains(job, True, StopsWhenAsked(job, stop))
    for i, sampler in enumerate(samplers):
        yield run_of(whole, sampler, i, len(samplers))


def job_of(request: SweepRequest, cell: Cell, samplers: list[Sampler]) -> Job:
    """The checked arguments of the samplers' runs with the cell's problem and seed, as chains of one run.

    Random numbers of chain c of every sampler are those of chain c of a run by itself.
    """
    options, count = request.options, len(samplers)
    n_chains, init, joint = options["n_chains"], options["init"], samplers[0]
    if count > 1:
        by_chain: dict[str, Any] = {
            name: np.repeat([sampler.arrays[name] for sampler in samplers], n_chains, axis=0)
            for name in ("step_sizes", "temperatures")
        }
        joint = dataclasses.replace(joint, **by_chain)
        if init is not None and not isinstance(init, Spread) and np.ndim(init) > 1:
            init = np.tile(init, (count, *(1 for _ in np.shape(init)[1:])))
    run_options = RunOptions(
        n_steps=options["n_steps"], seed=cell.seed, n_chains=count * n_chains, burn_in=options["burn_in"],
        thin=options["thin"], init=init, threads=1, on_divergence="keep", keep_statistics=request.measure is not None,
    )  # fmt: skip
    keys = Keys(np.tile(np.arange(n_chains), count))
    return make_job(request.problems[cell.problem], joint, run_options, keys=keys)


def run_of(whole: Run, sampler: Sampler, place: int, count: int) -> Run:
    """The run of setting ``place`` of ``count`` that are the chains of ``whole``."""
    n_chains = whole.n_chains // count
    own = slice(place * n_chains, (place + 1) * n_chains)

    def part(values: Any) -> Any:
        return None if values is None else values[own]

    arrays = {name: part(getattr(whole, name)) for name in BY_CHAIN}
    statistics = None if whole.statistics is None else Statistics(*map(part, whole.statistics))
    return dataclasses.replace(
        whole, sampler=sampler, counts=Counts(*map(part, whole.counts)), statistics=statistics,
        gradient_evaluations=whole.gradient_evaluations // count, elapsed=whole.elapsed / count, **arrays,
    )  # fmt: skip


# A run's numbers.


def width_of(dim: int) -> int:
    """How many numbers a cell has without ``measure``."""
    return len(STATISTICS) * dim + len(COUNTS)


def diverged_result(dim: int, *, share: float = 1.0, gradients: float = np.nan) -> CellResult:
    """The result of a cell of which a chain, or the pilot, diverged."""
    values = np.full(width_of(dim), np.nan)
    values[-2:] = share, gradients
    return CellResult(values, None)


def results_of(request: SweepRequest, cells: list[Cell], runs: list[Run]) -> list[CellResult]:
    """The numbers of the cells' runs, of equal shapes; nan, but for the last two, where a chain has diverged."""
    whole = [run for run in runs if not run.diverged.any()]
    statistics = iter(statistics_of(whole) if whole else ())
    results = []
    for cell, run in zip(cells, runs, strict=True):
        if run.diverged.any():
            share, gradients = float(run.diverged.mean()), float(run.gradient_evaluations)
            results.append(diverged_result(run.replica_draws.shape[3], share=share, gradients=gradients))
            continue
        base = [next(statistics).ravel(), counts_of(run)]
        measured = measured_of(request, cell, run)
        values = np.concatenate([*base, *(values.ravel() for values in measured.values())])
        shapes = None if request.measure is None else {name: values.shape for name, values in measured.items()}
        results.append(CellResult(values, shapes))
    return results


def counts_of(run: RunRecord) -> Array:
    """``COUNTS`` of a run: shares of all chains' moves of target replicas, and of all pairs' swaps; nan without."""
    targets, counts = run.sampler.n_target_replicas, run.counts
    acceptance = run.acceptance[:, :targets].mean() if run.sampler.dynamics.leapfrogs else np.nan
    attempted, swap_rate = int(counts.attempted.sum()), np.nan
    if run.sampler.tempers.swaps and attempted:
        swap_rate = int(counts.accepted.sum()) / attempted
    return np.array([acceptance, swap_rate, run.diverged.mean(), run.gradient_evaluations])


def measured_of(request: SweepRequest, cell: Cell, run: Run) -> dict[str, Array]:
    """What ``measure`` returns for a cell's run, checked; what it raises has a note that names the cell."""
    if request.measure is None:
        return {}
    try:
        return checked_measures(request.measure(run))
    except Exception as error:
        error.add_note(f"raised by measure in the sweep's run of {words_of(request, cell)}")
        raise


def checked_measures(given: Any) -> dict[str, Array]:
    """What ``measure`` returned, as arrays of floats by name. Raises TypeError or ValueError."""
    if not is_a(given, Mapping):
        raise TypeError(f"measure must return a mapping name → number or array, got {shown(given)}")
    found = {}
    for name, value in given.items():
        if not is_a(name, str) or name in reserved_names() or name.endswith((OVER_SEEDS, STANDARD_ERROR)):
            raise ValueError(
                f"measure must name its numbers by texts other than {', '.join(reserved_names())}, got {shown(name)}"
            )
        array = np.asarray(value)
        if array.dtype.kind not in "biuf":
            raise TypeError(f"measure must return real numbers, got {shown(value)} for {name!r}")
        found[name] = array.astype(np.float64)
    return found
