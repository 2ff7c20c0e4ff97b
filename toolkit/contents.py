"""What a saved run is made of, one JSON text with named arrays beside it, and the run of them again."""

import hashlib
import sys
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .counting import Counts
from .describing import describe, from_json, rebuild_sampler, to_json
from .domain import Domain
from .errors import LoadError
from .problem import Problem, Target
from .result import Run, Statistics, Trace
from .unavailable import Unavailable

FORMAT = 1
NUMBERS = ("n_steps", "total_steps", "burn_in", "thin", "sampling_steps", "gradient_evaluations")
ARRAYS = ("init", "replica_draws", "steps", "energies", "replica_weights")


class Contents(NamedTuple):
    """A run as text and arrays: ``header`` is JSON that names the arrays by path, see ``describing.to_json``."""

    header: str
    arrays: dict[str, NDArray[Any]]

    @property
    def checksum(self) -> str:
        """SHA-256 of the header and of every array's name, type, shape and bytes."""
        digest = hashlib.sha256(self.header.encode())
        for name in sorted(self.arrays):
            array = self.arrays[name]
            digest.update(f"\0{name}\0{array.dtype.str}\0{array.shape}\0".encode())
            for part in pieces(array):
                digest.update(part)
        return digest.hexdigest()


def pieces(array: NDArray[Any]) -> Any:
    """The bytes of an array in order, without a copy of all of it where it is not contiguous."""
    if array.flags.c_contiguous or array.ndim < 2:
        yield np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    else:
        for part in array:
            yield from pieces(part)


def contents_of(run: Run) -> Contents:
    """All of ``run``."""
    trace = run.trace and {
        "steps": run.trace.steps,
        "names": list(run.trace.fields),
        "fields": list(run.trace.fields.values()),
        "theta": run.trace.theta,
    }
    nested = {
        "format": FORMAT,
        "created_at": datetime.now(UTC).isoformat(),
        "description": describe(run.problem, run.sampler),
        "seed": int(run.seed),
        **{name: int(getattr(run, name)) for name in NUMBERS},
        "elapsed": float(run.elapsed),
        "interrupted": bool(run.interrupted),
        "made_with": dict(run.made_with),
        **{name: getattr(run, name) for name in ARRAYS},
        "statistics": run.statistics and run.statistics._asdict(),
        "counts": run.counts._asdict(),
        "trace": trace,
        "accumulated": {"names": list(run.accumulated), "results": [nested_of(r) for r in run.accumulated.values()]},
    }
    return Contents(*to_json(nested))


def nested_of(value: Any) -> Any:
    """An accumulator's result as dictionaries, lists and arrays; a NamedTuple says which it is."""
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        kind = f"{type(value).__module__}.{type(value).__qualname__}"
        return {"type": kind, "fields": {name: nested_of(item) for name, item in value._asdict().items()}}
    if isinstance(value, SimpleNamespace):
        return {"type": "", "fields": {name: nested_of(item) for name, item in vars(value).items()}}
    if isinstance(value, tuple | list):
        return [nested_of(item) for item in value]
    if isinstance(value, np.generic):
        return np.asarray(value)
    return value


def result_of(nested: Any) -> Any:
    """An accumulator's result again: a NamedTuple of this package, or else a plain namespace of the same fields."""
    if isinstance(nested, list):
        return [result_of(item) for item in nested]
    if not isinstance(nested, dict):
        return nested
    fields = {name: result_of(item) for name, item in nested["fields"].items()}
    module, _, name = nested["type"].rpartition(".")
    package = __name__.partition(".")[0]
    kind = getattr(sys.modules.get(module), name, None) if module.partition(".")[0] == package else None
    if isinstance(kind, type) and issubclass(kind, tuple) and getattr(kind, "_fields", None) == tuple(fields):
        return kind(**fields)
    return SimpleNamespace(**fields)


def run_of(contents: Contents, problem: Problem | None) -> Run:
    """The run of which these are the contents, on ``problem`` or on what stands in for it.

    Raises ValueError, KeyError, TypeError or AttributeError where they are malformed.
    """
    nested = from_json(contents.header, contents.arrays)
    if nested["format"] != FORMAT:
        raise LoadError(f"format must be {FORMAT}, got {nested['format']!r}: it was written by another version")
    trace, statistics, accumulated = nested["trace"], nested["statistics"], nested["accumulated"]
    counts = Counts(**nested["counts"])
    check_arrays([nested["init"], nested["replica_draws"], nested["steps"], *counts])
    fields: dict[str, Any] = {name: number(nested[name]) for name in NUMBERS} | {name: nested[name] for name in ARRAYS}
    run = Run(
        problem=stand_in(nested["description"]["problem"]) if problem is None else problem,
        sampler=rebuild_sampler(nested["description"]["sampler"]),
        seed=number(nested["seed"]),
        **fields,
        elapsed=float(nested["elapsed"]),
        interrupted=bool(nested["interrupted"]),
        made_with={str(name): str(value) for name, value in nested["made_with"].items()},
        statistics=statistics and Statistics(**statistics),
        counts=counts,
        trace=trace
        and Trace(trace["steps"], dict(zip(trace["names"], trace["fields"], strict=True)), theta=trace["theta"]),
        accumulated=dict(zip(accumulated["names"], map(result_of, accumulated["results"]), strict=True)),
    )
    shape = run.replica_draws.shape
    if len(shape) != 4 or shape[3] != run.problem.target.dim or shape[2] != run.steps.size:
        raise ValueError(f"draws of shape {shape} are not those of {run.steps.size} steps on {run.problem.name!r}")
    return run


def check_arrays(values: list[Any]) -> None:
    """Raise TypeError where one of ``values`` is no array of numbers."""
    for value in values:
        if not isinstance(value, np.ndarray) or value.dtype.kind not in "biuf":
            raise TypeError(f"an array of numbers is missing, got {value!r}")


def number(value: Any) -> int:
    """``value``, which must be a whole number ≥ 0."""
    if type(value) is not int or value < 0:
        raise TypeError(f"a count must be a whole number, got {value!r}")
    return value


def stand_in(description: Any) -> Problem:
    """A problem with the name, dimension and numbers of the one described; evaluating it raises UnavailableError."""
    target, domain = description["target"], description["domain"]
    block = Unavailable(f"target {target['name']!r}", target["energy_gradient"])
    look = domain and Unavailable(f"domain {domain['name']!r}", domain["look"])
    shape = domain and Domain(domain["name"], number(domain["dim"]), look, domain["real"], domain["whole"], look)
    return Problem(
        Target(
            target["name"], target["dim"], block, target["parameters"], target["scratch_rows"],
            stochastic=bool(target["stochastic"]),
        ),
        shape,
    )  # fmt: skip
