"""Descriptions of problem and sampler as JSON and arrays: all that determines a run's bits; and back to a sampler."""

import dataclasses
import inspect
import itertools
import json
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import dynamics, schedules, tempering
from ..._compiler.disk_cache import environment
from ..._compiler.function_digest import BITS, as_described_now, describe_function, stored_name
from ..._engine.job import JUDGED, Paths
from ...boundaries.rules import STORED_KINDS, Boundary
from ...dynamics import Dynamics
from ...errors import CheckpointError, Unavailable, check_count, check_flag, shown
from ...problem.definition import Problem, Target, as_problem
from ...samplers.sampler import Sampler
from ...schedules import Schedule, evaluate
from ...tempering import Tempering

if TYPE_CHECKING:
    from ..._engine.job import Job

__all__ = ["describe", "differences", "environment", "from_json", "rebuild_sampler", "to_json"]

Description = dict[str, Any]


def differences(saved: Any, now: Any, *, portable: bool = False) -> list[str]:
    """Differences of two descriptions in words: 'sampler.step_sizes[0]: 0.01 there, 0.02 here'.

    ``saved`` is what is 'there', ``now`` what is 'here'. portable: leave out code compiled by another version of
    Python, which cannot be compared, and versions of installed packages.
    """
    return list(compare("", saved, now, portable))


def compare(path: str, saved: Any, now: Any, portable: bool) -> Any:
    """The differences below ``path``, one by one."""
    if isinstance(saved, dict) and isinstance(now, dict) and saved.get("type") == now.get("type"):
        if "code" in saved and "code" in now:
            saved, now, code_differences = compare_code(path, saved, now, portable)
            yield from code_differences
        for key in [*saved, *(key for key in now if key not in saved)]:
            below = f"{path}.{key}" if path else key
            if key in saved and key in now:
                yield from compare(below, saved[key], now[key], portable)
            else:
                yield f"{below}: {brief(saved.get(key), key in saved)} there, {brief(now.get(key), key in now)} here"
    elif isinstance(saved, list) and isinstance(now, list) and len(saved) == len(now):
        for i, (a, b) in enumerate(zip(saved, now, strict=True)):
            yield from compare(f"{path}[{i}]", a, b, portable)
    elif isinstance(saved, np.ndarray) and isinstance(now, np.ndarray):
        yield from compare_arrays(path, saved, now)
    elif not same_value(saved, now):
        yield f"{path}: {brief(saved)} there, {brief(now)} here"


def compare_code(path: str, saved: Description, now: Description, portable: bool) -> tuple[Any, Any, list[str]]:
    """The parts of two functions that remain to be compared, and the differences of their code."""
    older = () if "references" in saved else ("references",)  # older descriptions have no references
    compared_here = ("python", "code", "packages", *older)
    rest = [{key: item for key, item in d.items() if key not in compared_here} for d in (saved, now)]
    lines = []
    if saved["python"] != now["python"]:
        if not portable:
            lines.append(f"{path}: compiled by Python {saved['python']} there, {now['python']} here")
    else:
        names = sorted(saved["code"].keys() | now["code"].keys())
        differing = [name for name in names if saved["code"].get(name) != now["code"].get(name)]
        if differing:
            lines.append(f"{path}: other code of {', '.join(differing)}")
    if not portable:
        lines += [f"{path}.packages.{line}" for line in differences(saved["packages"], now["packages"])]
    return *rest, lines  # type: ignore[return-value]


def compare_arrays(path: str, saved: Any, now: Any) -> Any:
    """The difference of two arrays: their kind, their shape or the first entry that differs."""
    if saved.dtype != now.dtype:
        yield f"{path}: an array of {saved.dtype} there, of {now.dtype} here"
    elif saved.shape != now.shape:
        yield f"{path}: shape {saved.shape} there, {now.shape} here"
    else:
        differing = saved != now
        if saved.dtype.kind == "f":
            differing &= ~(np.isnan(saved) & np.isnan(now))
        indices = np.argwhere(differing)
        if len(indices):
            first = tuple(indices[0])
            further = f", and {len(indices) - 1} further entries" if len(indices) > 1 else ""
            where = ", ".join(map(str, first))
            yield f"{path}[{where}]: {brief(saved[first].item())} there, {brief(now[first].item())} here{further}"


def same_value(a: Any, b: Any) -> bool:
    """Whether two plain values are equal; nan equals nan, True is not 1."""
    if isinstance(a, bool) != isinstance(b, bool) or isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return False
    return bool(a == b or (a != a and b != b))


def brief(value: Any, exists: bool = True) -> str:
    """A short text of a value."""
    if not exists:
        return "nothing"
    if isinstance(value, dict):
        return str(value.get("type", value.get("function", value.get("name", "something"))))
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape}"
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


# A sampler from its description. Only known constructors are called, with numbers and strings.

TEMPERINGS = tuple(
    kind
    for kind in vars(tempering).values()
    if isinstance(kind, type) and issubclass(kind, Tempering) and kind is not Tempering
)
PARTS: tuple[type[Any], ...] = (*(part for kind in TEMPERINGS for part in (kind, *kind.field_types)), Boundary)
KINDS: dict[str, type[Any]] = {kind.__name__: kind for kind in PARTS}
SCHEDULES: dict[str, Any] = {
    make.__name__: make
    for make in (
        schedules.constant, schedules.exponential_decay, schedules.polynomial_decay, schedules.cosine_cycles,
        schedules.custom,
    )
}  # fmt: skip
NOT_IN_FILES = ("check", "scales", "friction_parameter", "known")  # fields of dynamics that change no bit
SELDOM_IN_FILES = ("random_length", "friction_rows", "langevin_step")  # fields that the first files did not have
NUMBERS_OF_A_TEMPERING = ("kind", "reads_energies", "is_weighted")


@dataclasses.dataclass(frozen=True)
class UnavailableTempering(Tempering):
    """Stands for a tempering of the user's in a loaded run; ``description`` is that of ``describe_own_tempering``."""

    description: Any

    def __post_init__(self) -> None:
        for name in NUMBERS_OF_A_TEMPERING:
            object.__setattr__(self, name, self.description[name])

    @property
    def step(self) -> Any:
        """A function that raises UnavailableError."""
        return Unavailable(f"the step of tempering {self.description['name']!r}", self.description["step"])


def describe_own_tempering(value: Tempering) -> Description:
    """Class name, fields, numbers and step of a tempering that is not the toolkit's."""
    if isinstance(value, UnavailableTempering):
        return value.description  # type: ignore[no-any-return]
    fields = {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}  # type: ignore[arg-type]
    numbers = {name: getattr(value, name) for name in NUMBERS_OF_A_TEMPERING}
    own = {"name": type(value).__qualname__, "fields": fields, **numbers, "parameters": value.parameters().tolist()}
    return {"type": "own tempering", **own, "step": describe_function(value.step)}


def forms_of(constructor: Any) -> list[Dynamics]:
    """The dynamics that a constructor makes with its defaults and all values of its flags (bool arguments)."""
    parameters = inspect.signature(constructor).parameters.items()
    flags = [name for name, parameter in parameters if isinstance(parameter.default, bool)]
    choices = itertools.product([True, False], repeat=len(flags))
    return [constructor(**dict(zip(flags, choice, strict=True))) for choice in choices]


CONSTRUCTORS = [part for part in map(vars(dynamics).get, dynamics.__all__) if inspect.isfunction(part)]
KNOWN = tuple(form for constructor in CONSTRUCTORS for form in forms_of(constructor))


def rebuild_sampler(description: Any) -> Sampler:
    """The sampler of ``describe(...)['sampler']``; equal to the one described where its parts are the toolkit's.

    Parts are made by the toolkit's own constructors from numbers and strings alone, and are checked as ever. Dynamics
    and functions of the user's own, of which a description has only the name, raise UnavailableError when used.
    Raises ValueError where the description is none of a sampler.
    """
    try:
        return Sampler(
            name=text(description["name"]),
            step_sizes=values(description["step_sizes"]),
            temperatures=values(description["temperatures"]),
            dynamics=rebuild_dynamics(description["dynamics"], has_scale="scale" in description),
            schedule=rebuild_schedule(description["schedule"]),
            tempering=rebuild_part(description["tempering"]),
            boundary=rebuild_part(description["boundary"]),
            gradient_noise=description["gradient_noise"],
            energy_noise=description["energy_noise"],
            scale=description.get("scale"),
        )
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise ValueError(f"the description of the sampler is incomplete or malformed: {shown(error)}") from error


def text(value: Any) -> str:
    """``value``, checked to be a string."""
    if not isinstance(value, str):
        raise TypeError(f"a name must be a string, got {shown(value)}")
    return value


def values(given: Any) -> Any:
    """Step sizes or temperatures."""
    return given if isinstance(given, np.ndarray) else tuple(given)


def rebuild_dynamics(description: Any, *, has_scale: bool) -> Dynamics:
    """The toolkit's dynamics of that function and form, with the described numbers; else one that raises when used.

    has_scale: the sampler has a scale, so that dynamics of the user's own must have read it.
    """
    fields = {name: description[name] for name in Dynamics._fields if name not in (*SELDOM_IN_FILES, *NOT_IN_FILES)}
    fields["random_length"] = check_flag("random_length", description.get("random_length", False))
    fields |= {name: tuple(fields[name]) for name in ("parameters", "memory", "memory_start")}
    move = fields.pop("move")
    rows = description.get("friction_rows", friction_rows_of(move["function"]))
    fields["friction_rows"] = check_count("friction_rows", rows, at_least=0, below=len(fields["memory"]) + 1)
    langevin_step = description.get("langevin_step", had_langevin_step(fields["name"]))
    fields["langevin_step"] = check_flag("langevin_step", langevin_step)
    for known in KNOWN:
        same_move = stored_name(known.move) == move["function"]
        form = ("has_momentum", "memory", "needs_curvature", "draws_noise")
        sizes = [len(fields[name]) == len(getattr(known, name)) for name in ("parameters", "memory_start")]
        leapfrogs = (fields["leapfrogs"] > 0, fields["gradients"] - fields["leapfrogs"])
        same_leapfrogs = leapfrogs == (known.leapfrogs > 0, known.gradients - known.leapfrogs)
        if same_move and same_leapfrogs and all(sizes) and all(fields[name] == getattr(known, name) for name in form):
            taken = {name: getattr(known, name) for name in NOT_IN_FILES}
            return Dynamics(move=known.move, **taken, **fields)
    return Dynamics(move=Unavailable(f"the move of dynamics {fields['name']!r}", move), scales=has_scale, **fields)


def rebuild_schedule(description: Any) -> schedules.Schedule:
    """The schedule of that constructor and arguments; for a user's own, one that raises when evaluated."""
    arguments = dict(description)
    kind = arguments.pop("type")
    for name, value in arguments.items():
        if isinstance(value, dict):
            arguments[name] = Unavailable(f"{name} of the schedule", value)
    if kind == "own":
        return schedules.Schedule(**arguments)
    if kind not in SCHEDULES:
        raise ValueError(f"schedule must be one of {', '.join(SCHEDULES)}, got {shown(kind)}")
    return SCHEDULES[kind](**arguments)  # type: ignore[no-any-return]


def rebuild_part(description: Any) -> Any:
    """A tempering, a boundary or a part of one, from its kind and fields; numbers and strings unchanged."""
    if not isinstance(description, dict):
        return description
    fields = dict(description)
    kind = fields.pop("type")
    if kind == "own tempering":
        return UnavailableTempering(description)
    if kind not in KINDS:
        raise ValueError(f"a part must be one of {', '.join(KINDS)}, got {shown(kind)}")
    if kind == Boundary.__name__:
        fields["kind"] = {stored: own for own, stored in STORED_KINDS.items()}.get(fields["kind"], fields["kind"])
    return KINDS[kind](**{name: rebuild_part(value) for name, value in fields.items()})


def describe(problem: Any, sampler: Sampler) -> Description:
    """All that determines the bits of a run of ``sampler`` on ``problem``, but seed, steps and start.

    Nested dictionaries of numbers, strings, None, lists and arrays, with the keys 'problem' and 'sampler'. Functions
    are described by ``function_digest.describe_function``. A problem's truth is not part of it, nor how the process
    calls a Python function. Raises TypeError where ``problem`` is none.
    """
    return {"problem": describe_problem(as_problem(problem)), "sampler": describe_sampler(sampler)}


def describe_problem(problem: Problem) -> Description:
    """The target, and the domain where there is one."""
    domain = problem.domain
    shape = domain and {
        "name": domain.name,
        "dim": domain.dim,
        "look": describe_function(domain.locate),
        "real": domain.float_table,
        "whole": domain.int_table,
    }
    return {"target": describe_target(problem.target), "domain": shape}


def describe_target(target: Target) -> Description:
    """A target's numbers and its block function; or the Python function that it calls, without its handle."""
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
    """A sampler's parts, each with all its numbers; scale only if given, because older files do not have it."""
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
        **({} if sampler.scale is None else {"scale": [list(s) if isinstance(s, tuple) else s for s in sampler.scale]}),
    }


def describe_dynamics(moves: Dynamics) -> Description:
    """The fields of dynamics; those that older files do not have only where they differ from what is then taken."""
    fields = {field: plain(getattr(moves, field)) for field in Dynamics._fields if field not in NOT_IN_FILES}
    taken = {
        "random_length": False, "friction_rows": friction_rows_of(fields["move"]["function"]),
        "langevin_step": had_langevin_step(moves.name),
    }  # fmt: skip
    return {name: value for name, value in fields.items() if name not in taken or value != taken[name]}


def had_langevin_step(name: str) -> bool:
    """Whether dynamics of that name had the step size of ``mala`` before files said so."""
    return name == dynamics.mala().name


def friction_rows_of(move: str) -> int:
    """``friction_rows`` of the toolkit's dynamics with that move, by its name in files; 0 for any other."""
    return next((known.friction_rows for known in KNOWN if stored_name(known.move) == move), 0)


def values_of(values: Any) -> Any:
    """Values by replica as a list, values by chain and replica as an array."""
    return np.array(values) if isinstance(values[0], tuple) else list(values)


def describe_schedule(schedule: Schedule) -> Description:
    """A schedule's constructor and arguments; for a user's own, its function."""
    if schedule.made_by is None:
        own = {"name": schedule.name, "factors": plain(schedule.factors), "keeps_all": bool(schedule.keeps_all)}
        return {"type": "own", **own}
    kind, arguments = schedule.made_by
    return {"type": kind, **{name: plain(value) for name, value in arguments.items()}}


def plain(value: Any) -> Any:
    """A part, or a value in it, as dictionaries, lists, arrays, strings and Python numbers."""
    if isinstance(value, PARTS):
        fields = {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
        if isinstance(value, Boundary):
            fields["kind"] = STORED_KINDS.get(value.kind, value.kind)
        return {"type": type(value).__name__, **fields}
    if isinstance(value, Tempering):
        return describe_own_tempering(value)
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    return describe_function(value) if callable(value) else value


def to_json(description: Description) -> tuple[str, dict[str, Any]]:
    """``description`` as JSON, with its arrays by name; ``from_json`` is the inverse.

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
    """The inverse of ``to_json``. Raises ValueError where ``text`` is malformed or an array is missing."""

    def decode(item: dict[str, Any]) -> Any:
        if item.keys() == {"$array"}:
            if item["$array"] not in arrays:
                raise ValueError(f"array {shown(item['$array'])} of the description is missing")
            return arrays[item["$array"]]
        if item.keys() == {"$float"}:
            return float(item["$float"])
        return as_described_now(item) if item.keys() >= {"function", "code", "values"} else item

    def refuse(constant: str) -> Any:
        raise ValueError(f"JSON has no {constant}")

    try:
        return json.loads(text, object_hook=decode, parse_constant=refuse)
    except (RecursionError, TypeError) as error:
        raise ValueError(f"the description cannot be read: {error}") from None


# Comparison of a saved run with the present call.

CHAINS = "chains"  # the kind of a checkpoint of held chains
MOST = 5  # differences in a message
STRIDE = 2**20  # steps of a schedule that are compared at a time


def describe_call(job: "Job", kind: str) -> Description:
    """All that determines the results of a run, except its number of steps.

    Of held chains without the problem, which may be replaced, and without starts that were drawn on it.
    """
    call = {
        "toolkit": {"bits": BITS},
        "called": kind,
        "dtype": job.dtype,
        "seed": job.seed,
        "n_chains": len(job.init),
        "burn_in": job.burn_in,
        "thin": job.thin,
        "keep_replicas": job.keep_replicas,
        "keep_energies": job.keep_energies,
        "keep_statistics": job.keep_statistics,
        "trace_every": job.trace_every,
        "accumulators": {name: describe_function(a) for name, a in job.accumulators.items() if name != JUDGED},
        **describe(job.problem, job.asked),
        "init": job.init,
    }
    if kind == CHAINS:
        spread = None if job.spread is None else job.spread.numbers
        call |= {"problem": None, "init": spread if job.drew_init else job.init}
    return call


def first_of(lines: list[str]) -> str:
    """The first ``MOST`` differences in words, and how many more there are."""
    more = f"; and {len(lines) - MOST} more" if len(lines) > MOST else ""
    return f"{'; '.join(lines[:MOST])}{more}"


def check_extension(job: "Job", paths: Paths, done: int, total: int) -> None:
    """Raise CheckpointError where the first ``done`` steps of a run of ``total`` differ from those of the job."""
    if job.n_steps < done:
        raise CheckpointError(
            f"n_steps must be ≥ {done}, the steps that checkpoint {paths.state!r} has done, got {job.n_steps}"
        )
    if job.n_steps == total:
        return
    for first in range(0, done, STRIDE):
        steps = np.arange(first, min(first + STRIDE, done))
        then, now = evaluate(job.sampler.schedule, steps, total), evaluate(job.sampler.schedule, steps, job.n_steps)
        if not all(np.array_equal(a, b) for a, b in zip(then, now, strict=True)):
            raise CheckpointError(
                f"n_steps must be {total}, with which checkpoint {paths.state!r} was made, got {job.n_steps}: schedule "
                f"{job.sampler.schedule.name} depends on it, and the {done} steps done would have been others"
            )
