"""A schedule, as the constructors of ``schedules`` make it, and its values at some steps, checked before they are used.

It is evaluated on the host for a chunk of steps at a time and handed to the engine as arrays, so a new schedule, or
new numbers in one, never recompiles anything. Steps count from 0.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .checks import check_array

Steps = NDArray[np.int64]


class Factors(NamedTuple):
    """Multiples of the base step size and temperature, and whether a draw may be kept, each of shape (steps,)."""

    step_size: NDArray[np.float64]
    temperature: NDArray[np.float64]
    keep: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Schedule:
    """A name for messages, the function (steps, total_steps) → ``Factors``, and whether it keeps every step.

    made_by: the constructor in ``schedules`` that makes the same schedule again, and its arguments; None for one of
    one's own. Schedules of one constructor and equal arguments are equal.
    """

    name: str
    factors: Callable[[Steps, int], Factors]
    keeps_all: bool = False
    made_by: tuple[str, dict[str, Any]] | None = None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Schedule):
            return NotImplemented
        if self.made_by is None or other.made_by is None:
            return self.factors is other.factors and self.keeps_all == other.keeps_all
        (kind, own), (other_kind, others) = self.made_by, other.made_by
        return kind == other_kind and own.keys() == others.keys() and all(same(own[name], others[name]) for name in own)

    def __hash__(self) -> int:
        return hash(self.factors if self.made_by is None else self.made_by[0])


def same(a: Any, b: Any) -> bool:
    """Whether two arguments of a constructor are the same: numbers, functions or arrays."""
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return bool(np.array_equal(a, b))
    return type(a) is type(b) and bool(a == b)


def evaluate(schedule: Schedule, steps: Steps, total_steps: int) -> Factors:
    """The schedule's factors at ``steps``. Raises TypeError or ValueError where they are not what they must be."""
    factors = schedule.factors(steps, total_steps)
    if not isinstance(factors, Factors):
        raise TypeError(f"schedule {schedule.name!r} must return Factors, got {type(factors).__name__}")
    checked = []
    for field, values in zip(("step_size", "temperature"), factors[:2], strict=True):
        array = check_array(f"{field} of schedule {schedule.name!r}", values, copies=False)
        if array.shape != steps.shape or array.min(initial=0.0) < 0.0:
            raise ValueError(
                f"{field} of schedule {schedule.name!r} must be ≥ 0 and of shape {steps.shape}, got shape {array.shape}"
                + (f" and minimum {array.min()}" if array.size else "")
            )
        checked.append(array)
    keep = np.asarray(factors.keep)
    if keep.shape != steps.shape or keep.dtype != np.bool_:
        raise ValueError(
            f"keep of schedule {schedule.name!r} must be booleans of shape {steps.shape}, got shape {keep.shape} of "
            f"{keep.dtype}"
        )
    return Factors(checked[0], checked[1], keep)
