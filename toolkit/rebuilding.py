"""A sampler from its description: known constructors get numbers, and nothing else runs."""

from typing import Any

import numpy as np

from . import schedules
from .boundaries import STORED_KINDS, Boundary
from .checks import check_flag
from .contour import StepDecay
from .digests import stored_name
from .dynamics import (
    Dynamics,
    descent,
    hmc,
    langevin,
    mala,
    nose_hoover,
    preconditioned_langevin,
    underdamped_langevin,
)
from .exchange import AdaptedCorrection, EstimatedCorrection
from .sampler import Sampler
from .tempering import ContinuousTempering, Contour, Partition, ReplicaExchange, Stein
from .unavailable import Unavailable

KINDS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        ReplicaExchange, EstimatedCorrection, AdaptedCorrection, Contour, Partition, StepDecay, ContinuousTempering,
        Stein, Boundary,
    )
}  # fmt: skip
SCHEDULES: dict[str, Any] = {
    make.__name__: make
    for make in (
        schedules.constant, schedules.exponential_decay, schedules.polynomial_decay, schedules.cosine_cycles,
        schedules.custom,
    )
}  # fmt: skip
KNOWN = (
    langevin(), preconditioned_langevin(), preconditioned_langevin(drift_correction=False), underdamped_langevin(),
    nose_hoover(), nose_hoover(by_coordinate=True), mala(), hmc(), descent(), descent(preconditioned=False),
)  # fmt: skip


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
            dynamics=rebuild_dynamics(description["dynamics"]),
            schedule=rebuild_schedule(description["schedule"]),
            tempering=rebuild_part(description["tempering"]),
            boundary=rebuild_part(description["boundary"]),
            gradient_noise=description["gradient_noise"],
            energy_noise=description["energy_noise"],
        )
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise ValueError(f"the description of the sampler is incomplete or malformed: {error!r}") from error


def text(value: Any) -> str:
    """``value``, which must be a string."""
    if not isinstance(value, str):
        raise TypeError(f"a name must be a string, got {value!r}")
    return value


def values(given: Any) -> Any:
    """Step sizes or temperatures."""
    return given if isinstance(given, np.ndarray) else tuple(given)


def rebuild_dynamics(description: Any) -> Dynamics:
    """The toolkit's dynamics of that function and form, with the numbers described; else one that cannot move."""
    fields = {name: description[name] for name in Dynamics._fields if name != "random_length"}
    fields["random_length"] = check_flag("random_length", description.get("random_length", False))
    fields |= {name: tuple(fields[name]) for name in ("parameters", "memory", "memory_start")}
    move = fields.pop("move")
    for known in KNOWN:
        found = stored_name(known.move) == move["function"]
        form = ("has_momentum", "memory", "needs_curvature", "draws_noise")
        sizes = [len(fields[name]) == len(getattr(known, name)) for name in ("parameters", "memory_start")]
        leaps = (fields["leapfrogs"] > 0, fields["gradients"] - fields["leapfrogs"])
        same = leaps == (known.leapfrogs > 0, known.gradients - known.leapfrogs)
        if found and same and all(sizes) and all(fields[name] == getattr(known, name) for name in form):
            return Dynamics(move=known.move, **fields)
    return Dynamics(move=Unavailable(f"the move of dynamics {fields['name']!r}", move), **fields)


def rebuild_schedule(description: Any) -> schedules.Schedule:
    """The schedule of that constructor and arguments; of one's own, one that cannot be evaluated."""
    arguments = dict(description)
    kind = arguments.pop("type")
    for name, value in arguments.items():
        if isinstance(value, dict):
            arguments[name] = Unavailable(f"{name} of the schedule", value)
    if kind == "own":
        return schedules.Schedule(**arguments)
    if kind not in SCHEDULES:
        raise ValueError(f"schedule must be one of {', '.join(SCHEDULES)}, got {kind!r}")
    return SCHEDULES[kind](**arguments)  # type: ignore[no-any-return]


def rebuild_part(description: Any) -> Any:
    """A tempering, boundary or part of one, by its kind and fields; numbers and strings as they are."""
    if not isinstance(description, dict):
        return description
    fields = dict(description)
    kind = fields.pop("type")
    if kind not in KINDS:
        raise ValueError(f"a part must be one of {', '.join(KINDS)}, got {kind!r}")
    if kind == Boundary.__name__:
        fields["kind"] = {stored: own for own, stored in STORED_KINDS.items()}.get(fields["kind"], fields["kind"])
    return KINDS[kind](**{name: rebuild_part(value) for name, value in fields.items()})
