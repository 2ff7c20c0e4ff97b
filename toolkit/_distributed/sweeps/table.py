"""The table of a sweep: an xarray Dataset of what its cells hold, with error bars over the seeds."""

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._compiler.disk_cache import environment
from ...errors import optional
from ...problem.definition import Problem
from ...samplers.sampler import Sampler
from .cells import Cell, CellResult, Shapes, SweepRequest, width_of
from .grid import COUNTS, OVER_SEEDS, STANDARD_ERROR, STATISTICS, label_of, name_of

if TYPE_CHECKING:
    import xarray

Array = NDArray[np.float64]
VERSIONS = ("python", "manymodes", "numpy", "numba")


class Axes(NamedTuple):
    """Names of the problems, None for a single one without a name, and the seeds."""

    names: list[str] | None
    seeds: list[int]


class Variables:
    """Arrays of all cells, (problem, setting, seed, …), nan where nothing is known yet."""

    def __init__(self, request: SweepRequest, axes: Axes, shapes: Shapes | None) -> None:
        self._request, self._axes = request, axes
        self._dims = [problem.target.dim for problem in request.problems]
        self._cells = (len(request.problems), request.grid.n_settings, len(axes.seeds))
        own = {name: (max(self._dims),) for name in STATISTICS} | dict.fromkeys(COUNTS, ())
        self.shapes: Shapes = own | (shapes or {})
        self.arrays = {name: np.full((*self._cells, *shape), np.nan) for name, shape in self.shapes.items()}

    def fill(self, place: tuple[int, int, int], result: CellResult) -> None:
        """Write a cell's numbers. place: of its problem, setting and seed."""
        dim, values = self._dims[place[0]], result.values
        statistics = values[: len(STATISTICS) * dim].reshape(-1, dim)
        for name, row in zip(STATISTICS, statistics, strict=True):
            self.arrays[name][place][:dim] = row
        for name, value in zip(COUNTS, values[statistics.size : width_of(dim)], strict=True):
            self.arrays[name][place] = value
        offset = width_of(dim)
        for name, shape in (result.shapes or {}).items():
            size = int(np.prod(shape))
            self.arrays[name][place] = values[offset : offset + size].reshape(shape)
            offset += size

    def with_errors(self) -> dict[str, Array]:
        """All arrays that some cell can have, with the deviation from the truth where it is known.

        Which these are does not depend on the cells that are done, so a table of an interrupted sweep has them all.
        """
        samplers = [self._request.grid.sampler(i) for i in range(self._request.grid.n_settings)]
        found = dict(self.arrays)
        if not any(sampler.dynamics.leapfrogs for sampler in samplers):
            del found["acceptance"]
        if not any(sampler.tempers.swaps for sampler in samplers):
            del found["swap_rate"]
        errors, is_known = np.full(found["mean"].shape, np.nan), False
        for p, problem in enumerate(self._request.problems):
            moments = moments_at_hand(problem)
            if moments is not None:
                law = np.array([samples_target(problem, sampler) for sampler in samplers])
                mean, sd = moments
                is_known = is_known or (bool(law.any()) and bool(np.isfinite(mean / sd).any()))
                own = errors[p, law]
                own[..., : mean.size] = (found["mean"][p, law][..., : mean.size] - mean) / sd
                errors[p, law] = own
        return {**found, "error": errors} if is_known else found


def moments_at_hand(problem: Problem) -> tuple[Array, Array] | None:
    """Mean and standard deviations (dim,) of the problem's truth, where it knows them without a quadrature."""
    if "moments" not in getattr(problem.truth, "at_hand", ()):
        return None
    truth: Any = problem.truth
    with np.errstate(invalid="ignore"):
        sd = np.sqrt(np.diagonal(truth.covariance))
    return np.asarray(truth.mean), np.where(np.isfinite(sd) & (sd > 0.0), sd, np.nan)


def samples_target(problem: Problem, sampler: Sampler) -> bool:
    """Whether the sampler's law is the problem's: temperature 1, and walls that keep what is inside."""
    keeps = problem.domain is None or sampler.boundary.kind in ("reflect", "reject")
    return keeps and bool((sampler.arrays["temperatures"][: sampler.n_target_replicas] == 1.0).all())


def over_seeds(values: Array) -> tuple[Array, Array]:
    """Mean and its standard error over axis 2, of the cells that are not nan; the error of one is nan."""
    known = ~np.isnan(values)
    count = known.sum(axis=2)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(known, values, 0.0).sum(axis=2) / np.where(count > 0, count, np.nan)
        deviations = np.where(known, values - np.expand_dims(mean, 2), 0.0)
        variance = (deviations**2).sum(axis=2) / np.where(count > 1, count - 1, np.nan)
        return mean, np.sqrt(variance / count)


def table_of(
    request: SweepRequest, axes: Axes, places: list[tuple[int, int, int]], results: list[CellResult | None]
) -> "xarray.Dataset":
    """The Dataset of a sweep. results: of the cell at each of ``places``; None where it is not known."""
    known = [result for result in results if result is not None]
    shapes = next((result.shapes for result in known if result.shapes is not None), None)
    variables = Variables(request, axes, shapes)
    for place, result in zip(places, results, strict=True):
        if result is not None:
            variables.fill(place, result)
    return dataset_of(request, axes, variables)


def dataset_of(request: SweepRequest, axes: Axes, variables: Variables) -> "xarray.Dataset":
    """The arrays with names of dimensions, coordinates and attributes."""
    xarray, grid = optional("xarray", "io"), request.grid
    first = [] if axes.names is None else ["problem"]
    settings, shape = list(grid.axes), grid.shape
    data: dict[str, Any] = {}

    def add(name: str, values: Array, seed: list[str], last: list[str]) -> None:
        problems = values.shape[:1] if first else ()
        tail = values.shape[2:]
        data[name] = ([*first, *settings, *seed, *last], values.reshape((*problems, *shape, *tail)))

    for name, values in variables.with_errors().items():
        by_coordinate = name in (*STATISTICS, "error")
        last = ["coordinate"] if by_coordinate else [f"{name}_dim_{i}" for i in range(values.ndim - 3)]
        add(name, values, ["seed"], last)
        if len(axes.seeds) > 1:
            mean, error = over_seeds(values)
            add(f"{name}{OVER_SEEDS}", mean, [], last)
            add(name + STANDARD_ERROR, error, [], last)
    seeds = np.array(axes.seeds, np.int64 if max(axes.seeds) < 2**63 else np.uint64)
    coordinates = {**grid.labels, "seed": seeds, "coordinate": coordinate_labels(request)}
    if axes.names is not None:
        coordinates["problem"] = np.array(axes.names)
    return xarray.Dataset(data, coordinates, attributes_of(request, axes))


def coordinate_labels(request: SweepRequest) -> NDArray[Any]:
    """The coordinates' names where all problems have the same for their positions; else their numbers."""
    named = [problem._named() for problem in request.problems]
    names = {None if each is None or each.values is not None else each.names for each in named}
    shared = names.pop() if len(names) == 1 else None
    return np.arange(max(problem.target.dim for problem in request.problems)) if shared is None else np.array(shared)


def attributes_of(request: SweepRequest, axes: Axes) -> dict[str, Any]:
    """What was swept, as numbers and texts that any format holds; no times, so that equal sweeps are equal."""
    options, found = request.options, environment()
    init = options["init"]
    return {
        "constructor": name_of(request.grid.constructor),
        "fixed": json.dumps({name: label_of(value) for name, value in request.grid.fixed.items()}, ensure_ascii=False),
        "problems": json.dumps([problem.name for problem in request.problems], ensure_ascii=False),
        **{name: options[name] for name in ("n_steps", "n_chains", "burn_in", "thin")},
        "init": "None" if init is None else repr(init) if not isinstance(init, np.ndarray) else str(init.tolist()),
        "versions": json.dumps({name: found[name] for name in VERSIONS}),
    }


def cells_of(request: SweepRequest, axes: Axes) -> list[Cell]:
    """All cells, problem by problem, setting by setting, seed by seed."""
    return [
        Cell(problem, setting, seed)
        for problem in range(len(request.problems))
        for setting in range(request.grid.n_settings)
        for seed in axes.seeds
    ]
