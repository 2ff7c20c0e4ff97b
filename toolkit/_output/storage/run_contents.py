"""The contents of a saved run, a JSON text and named arrays; and the run rebuilt from them."""

import hashlib
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._compiler.function_digest import name_without_modules, stored_name
from ..._engine.run_record import AnyRun, Counts, Judged, RunRecord, Statistics, Stopping, Trace, Tuning
from ...accumulators.cells import HistogramSoFar
from ...accumulators.chain_tree import POOLED_RESULTS
from ...accumulators.energies import BestPoint, EnergiesSoFar
from ...accumulators.grid_kl import KlSoFar
from ...accumulators.running_moments import BatchMeansSoFar, MomentsSoFar
from ...errors import LoadError, Unavailable, shown
from ...problem.definition import Domain, Problem, Target
from .description import describe, from_json, rebuild_sampler, text, to_json

FORMAT = 1
BLOCKS = "chains"
NUMBERS = ("n_steps", "total_steps", "burn_in", "thin", "sampling_steps", "gradient_evaluations")
RESULTS = {
    stored_name(kind): kind
    for kind in (MomentsSoFar, BatchMeansSoFar, HistogramSoFar, KlSoFar, EnergiesSoFar, BestPoint, *POOLED_RESULTS)
}
ARRAYS = ("init", "replica_draws", "steps", "energies", "replica_weights")
ENTRIES = {
    "format",
    "created_at",
    "description",
    "seed",
    "elapsed",
    "interrupted",
    "made_with",
    "statistics",
    "counts",
    "trace",
    "accumulated",
    "stopping",
    "tuning",
    "names",
    *NUMBERS,
    *ARRAYS,
}


class Contents(NamedTuple):
    """A run as text and arrays: ``header`` is JSON that names the arrays by path, see ``description.to_json``."""

    header: str
    arrays: dict[str, NDArray[Any]]

    @property
    def checksum(self) -> str:
        """SHA-256 of the header and of every array's name, type, shape and bytes."""
        digest = hashlib.sha256(self.header.encode())
        add_arrays(digest, self.arrays)
        return digest.hexdigest()

    def checksum_of_blocks(self, length: int, blocks: bytes) -> str:
        """A checksum of a run that is written ``length`` chains at a time. blocks: each ``block_digest``, in order."""
        digest = hashlib.sha256(self.header.encode())
        add_arrays(digest, {name: array for name, array in self.arrays.items() if not is_by_chain(name)})
        digest.update(blocks)
        return f"{BLOCKS} {length} {digest.hexdigest()}"

    def fits(self, checksum: str) -> bool:
        """Whether ``checksum``, of either kind, is that of these contents."""
        if not checksum.startswith(BLOCKS):
            return checksum == self.checksum
        length, n_chains = number(int(checksum.split()[1])), len(self.arrays["init"])
        firsts = range(0, n_chains, length)
        blocks = b"".join(block_digest(self.arrays, slice(first, first + length)) for first in firsts)
        return checksum == self.checksum_of_blocks(length, blocks)


def add_arrays(digest: Any, arrays: dict[str, NDArray[Any]]) -> None:
    """Add every array's name, type, shape and bytes to a hash."""
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"\0{name}\0{array.dtype.str}\0{array.shape}\0".encode())
        for part in pieces(array):
            digest.update(part)


def is_by_chain(name: str) -> bool:
    """Whether the array of this name has chains first."""
    return (name in ARRAYS and name != "steps") or name.startswith(
        ("statistics.", "counts.", "trace.fields", "trace.theta")
    )


def block_digest(arrays: dict[str, NDArray[Any]], chains: slice) -> bytes:
    """SHA-256 of the chains ``chains`` of all arrays that have them."""
    digest = hashlib.sha256()
    add_arrays(digest, {name: array[chains] for name, array in arrays.items() if is_by_chain(name) and array.size})
    return digest.digest()


def pieces(array: NDArray[Any]) -> Any:
    """The bytes of an array in order, in pieces, without copying a non-contiguous array as a whole."""
    if array.flags.c_contiguous or array.ndim < 2:
        yield np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    else:
        for part in array:
            yield from pieces(part)


def contents_of(run: RunRecord) -> Contents:
    """The contents of ``run``."""
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
        **({} if run.stopping is None else {"stopping": nested_stopping(run.stopping)}),
        **({} if run.tuning is None else {"tuning": nested_tuning(run.tuning)}),
        **({} if run.problem.target.names is None else {"names": list(run.problem.target.names)}),
    }
    return Contents(*to_json(nested))


def nested_stopping(stopping: Stopping) -> Any:
    """How ``until`` ended a run, as dictionaries and lists."""
    conditions = [
        {"condition": str(c.condition), "value": float(c.value), "target": float(c.target), "met": bool(c.met)}
        for c in stopping.conditions
    ]
    return {"conditions": conditions, "reason": str(stopping.reason), "satisfied": bool(stopping.satisfied)}


def stopping_of(nested: Any) -> Stopping | None:
    """The inverse of ``nested_stopping``; None for None, as older files have it. Raises where it is malformed."""
    if nested is None:
        return None
    conditions = [
        Judged(text(c["condition"]), real(c["value"]), real(c["target"]), flag(c["met"])) for c in nested["conditions"]
    ]
    return Stopping(tuple(conditions), text(nested["reason"]), flag(nested["satisfied"]))


def nested_tuning(tuning: Tuning) -> Any:
    """How the sampler was found, as a dictionary."""
    seed = {} if tuning.seed is None else {"seed": int(tuning.seed)}
    return {"report": tuning.report, "gradients": tuning.gradients, "warnings": list(tuning.warnings), **seed}


def tuning_of(nested: Any) -> Tuning | None:
    """The inverse of ``nested_tuning``; None for None, as older files have it. Raises where it is malformed."""
    if nested is None:
        return None
    seed = nested.get("seed")
    return Tuning(
        text(nested["report"]), number(nested["gradients"]), tuple(map(text, nested["warnings"])),
        None if seed is None else number(seed),
    )  # fmt: skip


def real(value: Any) -> float:
    """``value``, checked to be a float."""
    if type(value) is not float:
        raise TypeError(f"a value must be a number, got {shown(value)}")
    return value


def flag(value: Any) -> bool:
    """``value``, checked to be True or False."""
    if type(value) is not bool:
        raise TypeError(f"a flag must be true or false, got {shown(value)}")
    return value


def nested_of(value: Any) -> Any:
    """An accumulator's result as dictionaries, lists and arrays; a NamedTuple with its type."""
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {
            "type": stored_name(type(value)),
            "fields": {name: nested_of(item) for name, item in value._asdict().items()},
        }
    if isinstance(value, SimpleNamespace):
        return {"type": "", "fields": {name: nested_of(item) for name, item in vars(value).items()}}
    if isinstance(value, tuple | list):
        return [nested_of(item) for item in value]
    if isinstance(value, np.generic):
        return np.asarray(value)
    return value


def result_of(nested: Any) -> Any:
    """The inverse of ``nested_of``: one of ``RESULTS``, or else a plain namespace of the same fields."""
    if isinstance(nested, list):
        return [result_of(item) for item in nested]
    if not isinstance(nested, dict):
        return nested
    fields = {name: result_of(item) for name, item in nested["fields"].items()}
    kind: Any = RESULTS.get(name_without_modules(nested["type"]))
    if kind is not None and kind._fields == tuple(fields):
        return kind(**fields)
    return SimpleNamespace(**fields)


def run_of(contents: Contents, problem: Problem | None, run_class: type[AnyRun]) -> AnyRun:
    """The run with these contents, on ``problem`` or on a placeholder for it.

    Raises ValueError, KeyError, TypeError or AttributeError where they are malformed.
    """
    nested = from_json(contents.header, contents.arrays)
    if nested["format"] != FORMAT:
        raise LoadError(f"format must be {FORMAT}, got {shown(nested['format'])}: it was written by another version")
    unknown = nested.keys() - ENTRIES
    if unknown:
        raise LoadError(f"the header has an unknown entry {shown(min(unknown))}")
    trace, statistics, accumulated = nested["trace"], nested["statistics"], nested["accumulated"]
    counts = Counts(**nested["counts"])
    check_arrays([nested["init"], nested["replica_draws"], nested["steps"], *counts])
    fields: dict[str, Any] = {name: number(nested[name]) for name in NUMBERS} | {name: nested[name] for name in ARRAYS}
    run = run_class(
        problem=placeholder_problem(nested["description"]["problem"], nested.get("names"))
        if problem is None
        else problem,
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
        stopping=stopping_of(nested.get("stopping")),
        tuning=tuning_of(nested.get("tuning")),
    )
    check_counted(run)
    check_consistent(run)
    return run


def check_counted(run: RunRecord) -> None:
    """Raise ValueError where a run's numbers of steps contradict each other."""
    if not run.thin >= 1 or not run.burn_in <= run.total_steps or not run.n_steps <= run.total_steps:
        raise ValueError(
            f"{run.n_steps} steps of {run.total_steps}, burn_in={run.burn_in} and thin={run.thin} are of no run"
        )
    if run.sampling_steps > run.n_steps or run.seed >= 2**64 or not 0.0 <= run.elapsed < np.inf:
        raise ValueError(
            f"{run.sampling_steps} of {run.n_steps} steps, seed={run.seed} and elapsed={run.elapsed} are of no run"
        )
    steps = run.steps
    if steps.ndim != 1 or steps.dtype.kind not in "iu" or (steps < 0).any() or (np.diff(steps) <= 0).any():
        raise ValueError(f"the steps of the draws must be integers ≥ 0 that increase, got {shown(steps)}")
    if steps.size and steps[-1] >= run.n_steps:
        raise ValueError(f"the steps of the draws must be below the {run.n_steps} steps done, got {steps[-1]}")


def check_consistent(run: RunRecord) -> None:
    """Raise ValueError where an array's kind or shape does not fit the run's draws, sampler and problem."""
    shape, dim, replicas = run.replica_draws.shape, run.problem.target.dim, run.sampler.n_replicas
    if len(shape) != 4 or shape[3] != dim or shape[2] != run.steps.size:
        raise ValueError(f"draws of shape {shape} are not those of {run.steps.size} steps on {run.problem.name!r}")
    chains, kept, counts = shape[0], shape[1], run.counts
    if chains < 1 or kept not in (run.sampler.n_target_replicas, replicas):
        raise ValueError(f"draws of shape {shape} are not those of chains of {replicas} replicas")
    if run.sampler.n_chains not in (None, chains):
        raise ValueError(f"draws of shape {shape} are not those of {run.sampler.n_chains} chains")
    draw = (chains, kept, shape[2])
    pairs = (chains, replicas - 1) if run.sampler.tempers.swaps else (chains, 0)
    has_tables, bins = run.sampler.tempers.weighs_by_chain, run.sampler.tempers.energy_bins
    shape_of_table = (chains, bins or counts.theta.shape[-1]) if has_tables else (0, 0)
    tables = (shape_of_table, (0, 0))  # empty in a chunk of a stream
    expected: list[tuple[str, Any, str, tuple[tuple[int, ...], ...]]] = [
        ("replica_draws", run.replica_draws, "f", (shape,)),
        ("init", run.init, "f", ((chains, replicas, dim),)),
        ("energies", run.energies, "f", (draw,)),
        ("replica_weights", run.replica_weights, "f", (draw,)),
    ]
    for name in Statistics._fields if run.statistics else ():
        expected.append((f"statistics.{name}", getattr(run.statistics, name), "iu", (draw,)))
    for name in ("status", "bounces", "fallbacks", "accepted_moves"):
        expected.append((f"counts.{name}", getattr(counts, name), "iu", ((chains, replicas),)))
    for name, kinds in (("attempted", "iu"), ("accepted", "iu"), ("correction", "f")):
        expected.append((f"counts.{name}", getattr(counts, name), kinds, (pairs,)))
    expected.append(("counts.round_trips", counts.round_trips, "iu", ((chains,) if pairs[1] else (0,), (chains,))))
    expected.append(("counts.outside", counts.outside, "iu", ((chains, 3) if has_tables else (0, 0),)))
    for name, kinds in (("theta", "f"), ("earlier_theta", "f"), ("visits", "iu")):
        expected.append((f"counts.{name}", getattr(counts, name), kinds, tables))
    if run.trace is not None:
        check_arrays([run.trace.steps, *run.trace.fields.values()])
        times = run.trace.steps.size
        expected.append(("trace.steps", run.trace.steps, "iu", ((times,),)))
        for name, values in run.trace.fields.items():
            expected.append((f"trace.{name}", values, "f", ((chains, replicas, times),)))
        expected.append(("trace.theta", run.trace.theta, "f", ((chains, times, tables[0][1]),)))
    for name, values, kinds, shapes in expected:
        if values is not None:
            check_arrays([values])
            if values.dtype.kind not in kinds or values.shape not in shapes:
                raise ValueError(
                    f"{name} of shape {values.shape} and type {values.dtype} does not fit draws of shape {shape}: it "
                    f"must have shape {' or '.join(map(str, dict.fromkeys(shapes)))}"
                )
    for name in Counts._fields:
        values = getattr(counts, name)
        if values.dtype.kind in "iu" and (values < 0).any():
            raise ValueError(f"counts.{name} must be ≥ 0, got {values.min()}")
    if (counts.accepted > counts.attempted).any():
        raise ValueError("counts.accepted must be at most counts.attempted")
    if run.replica_weights is not None and not (run.replica_weights >= 0.0).all():
        raise ValueError("replica_weights must be ≥ 0")


def check_arrays(values: list[Any]) -> None:
    """Raise TypeError where one of ``values`` is not an array of numbers."""
    for value in values:
        if not isinstance(value, np.ndarray) or value.dtype.kind not in "biuf":
            raise TypeError(f"an array of numbers is missing, got {shown(value)}")


def number(value: Any) -> int:
    """``value``, checked to be an integer ≥ 0."""
    if type(value) is not int or value < 0:
        raise TypeError(f"a count must be a whole number, got {shown(value)}")
    return value


def placeholder_problem(description: Any, names: Any = None) -> Problem:
    """A problem with the name, dimension and numbers of the one described; evaluating it raises UnavailableError.

    names: of its coordinates, where it has some.
    """
    target, domain = description["target"], description["domain"]
    check_arrays([target["parameters"], *([domain["real"], domain["whole"]] if domain else [])])
    block = Unavailable(f"target {target['name']!r}", target["energy_gradient"])
    look = domain and Unavailable(f"domain {domain['name']!r}", domain["look"])
    shape = domain and Domain(domain["name"], number(domain["dim"]), look, domain["real"], domain["whole"], look)
    return Problem(
        Target(
            target["name"], target["dim"], block, target["parameters"], target["scratch_rows"],
            stochastic=bool(target["stochastic"]), names=names,
        ),
        shape,
    )  # fmt: skip
