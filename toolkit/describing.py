"""Problem and sampler in words and numbers: all that determines a run's bits, as JSON and arrays, and back."""

import dataclasses
import json
from typing import Any

import numpy as np

from .boundaries import STORED_KINDS, Boundary
from .contour import StepDecay
from .description_differences import differences
from .digests import as_described_now, describe_function
from .dynamics import Dynamics
from .exchange import AdaptedCorrection, EstimatedCorrection
from .problem import Problem, Target, as_problem
from .rebuilding import rebuild_sampler
from .sampler import Sampler
from .schedule import Schedule
from .stamps import environment
from .tempering import ContinuousTempering, Contour, Partition, ReplicaExchange, Stein

__all__ = ["describe", "differences", "environment", "from_json", "rebuild_sampler", "to_json"]

Description = dict[str, Any]
PARTS = (
    ReplicaExchange, EstimatedCorrection, AdaptedCorrection, Contour, Partition, StepDecay, ContinuousTempering, Stein,
    Boundary,
)  # fmt: skip


def describe(problem: Any, sampler: Sampler) -> Description:
    """All that determines the bits of a run of ``sampler`` on ``problem``, but seed, steps and start.

    Nested dictionaries of numbers, strings, None, lists and arrays, with the keys 'problem' and 'sampler'. Functions
    are described by ``digests.describe_function``. A problem's truth is not part of it, nor how the process calls a
    Python function. Raises TypeError where ``problem`` is none.
    """
    return {"problem": describe_problem(as_problem(problem)), "sampler": describe_sampler(sampler)}


def describe_problem(problem: Problem) -> Description:
    """The target, and the domain where there is one."""
    domain = problem.domain
    shape = domain and {
        "name": domain.name,
        "dim": domain.dim,
        "look": describe_function(domain.look),
        "real": domain.real,
        "whole": domain.whole,
    }
    return {"target": describe_target(problem.target), "domain": shape}


def describe_target(target: Target) -> Description:
    """A target's numbers and its block function; or the Python function behind it, whose handle is no number of it."""
    calls_python = target.callback is not None
    return {
        "name": target.name,
        "dim": int(target.dim),
        "scratch_rows": int(target.scratch_rows),
        "stochastic": bool(target.stochastic),
        "parameters": np.zeros(0) if calls_python else target.parameters,
        "energy_gradient": describe_function(target.callback.function if calls_python else target.energy_gradient),
    }


def describe_sampler(sampler: Sampler) -> Description:
    """A sampler's parts, each with all its numbers."""
    dynamics: Dynamics = sampler.dynamics
    return {
        "name": sampler.name,
        "step_sizes": values_of(sampler.step_sizes),
        "temperatures": values_of(sampler.temperatures),
        "dynamics": describe_dynamics(dynamics),
        "schedule": describe_schedule(sampler.schedule),
        "tempering": plain(sampler.tempering),
        "boundary": plain(sampler.boundary),
        "gradient_noise": plain(sampler.gradient_noise),
        "energy_noise": plain(sampler.energy_noise),
    }


def describe_dynamics(dynamics: Dynamics) -> Description:
    """The fields of dynamics; random_length only where it is so, as files from before it was a field have none."""
    fields = {field: plain(getattr(dynamics, field)) for field in Dynamics._fields}
    return fields if dynamics.random_length else {k: v for k, v in fields.items() if k != "random_length"}


def values_of(values: Any) -> Any:
    """Values by replica as a list, those by chain and replica as an array."""
    return np.array(values) if isinstance(values[0], tuple) else list(values)


def describe_schedule(schedule: Schedule) -> Description:
    """A schedule's constructor and arguments; of one of the user's own, its function."""
    if schedule.made_by is None:
        own = {"name": schedule.name, "factors": plain(schedule.factors), "keeps_all": bool(schedule.keeps_all)}
        return {"type": "own", **own}
    kind, arguments = schedule.made_by
    return {"type": kind, **{name: plain(value) for name, value in arguments.items()}}


def plain(value: Any) -> Any:
    """A part or a number of one as dictionaries, lists, arrays, strings and Python's numbers."""
    if isinstance(value, PARTS):
        fields = {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
        if isinstance(value, Boundary):
            fields["kind"] = STORED_KINDS.get(value.kind, value.kind)
        return {"type": type(value).__name__, **fields}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    return describe_function(value) if callable(value) else value


def to_json(description: Description) -> tuple[str, dict[str, Any]]:
    """``description`` as JSON, and its arrays by the names that stand for them there; ``from_json`` undoes it.

    Floats keep every bit; inf and nan, which JSON does not have, are written as objects.
    """
    arrays: dict[str, Any] = {}

    def encoded(value: Any, path: str) -> Any:
        if isinstance(value, np.ndarray):
            arrays[path] = value
            return {"$array": path}
        if isinstance(value, dict):
            return {key: encoded(item, f"{path}.{key}" if path else key) for key, item in value.items()}
        if isinstance(value, list):
            return [encoded(item, f"{path}[{i}]") for i, item in enumerate(value)]
        if isinstance(value, float) and not np.isfinite(value):
            return {"$float": repr(value)}
        return value

    return json.dumps(encoded(description, ""), allow_nan=False, ensure_ascii=False), arrays


def from_json(text: str, arrays: dict[str, Any]) -> Any:
    """What ``to_json`` was given. Raises ValueError where ``text`` is no such JSON or an array is not there."""

    def decode(found: dict[str, Any]) -> Any:
        if found.keys() == {"$array"}:
            if found["$array"] not in arrays:
                raise ValueError(f"array {found['$array']!r} of the description is missing")
            return arrays[found["$array"]]
        if found.keys() == {"$float"}:
            return float(found["$float"])
        return as_described_now(found) if found.keys() >= {"function", "code", "values"} else found

    def refuse(constant: str) -> Any:
        raise ValueError(f"JSON has no {constant}")

    try:
        return json.loads(text, object_hook=decode, parse_constant=refuse)
    except (RecursionError, TypeError) as error:
        raise ValueError(f"the description cannot be read: {error}") from None
