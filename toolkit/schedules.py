"""Schedules: the step size and the temperature as multiples of their base values, as functions of the step.

Exponentials and cosines are the toolkit's own, whose bits do not depend on the machine or on where a chunk begins.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from ._compiler.decorators import compile_part
from ._compiler.pickling import portable, remade, restored
from ._compiler.signatures import FLOATS, INTEGERS
from .errors import check_array, check_count, check_number, plain_array
from .maths.elementary import larger, power, select, sincos_turns
from .problem.call_text import call_text

__all__ = ["Factors", "Schedule", "constant", "cosine_cycles", "custom", "exponential_decay", "polynomial_decay"]

# A schedule, as the constructors of ``schedules`` make it, and its values at some steps, checked before they are used.
#
# It is evaluated on the host for a chunk of steps at a time and handed to the engine as arrays, so a new schedule, or
# new numbers in one, never recompiles anything. Steps count from 0.

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

    def __repr__(self) -> str:
        """The call that makes it again, or the name of one's own."""
        if self.made_by is None:
            return f"<Schedule {self.name!r}>"
        kind, arguments = self.made_by
        return call_text(f"schedules.{kind}", signature(globals()[kind]), arguments)

    def __reduce__(self) -> Any:
        if self.made_by is None:
            return remade, (Schedule, self.name, portable(self.factors, binds=False), self.keeps_all)
        kind, arguments = self.made_by
        return make_again, (kind, {name: portable(value, binds=False) for name, value in arguments.items()})


def make_again(kind: str, arguments: dict[str, Any]) -> Schedule:
    """The schedule of the constructor named ``kind``, as ``made_by`` has it."""
    schedule: Schedule = globals()[kind](**{name: restored(value) for name, value in arguments.items()})
    return schedule


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


def depends_on_length(schedule: Schedule) -> bool:
    """Whether a step's factors may depend on ``total_steps``: so with cosines, arrays, and functions of one's own."""
    kind, arguments = schedule.made_by or ("", {})
    has_arrays = any(isinstance(value, np.ndarray) for value in arguments.values())
    return kind not in ("constant", "exponential_decay", "polynomial_decay", "custom") or has_arrays


Own = NDArray[Any] | Sequence[Any] | Callable[[Steps], Any] | None


def constant() -> Schedule:
    """Step size and temperature stay at their base values."""

    def factors(steps: Steps, total_steps: int) -> Factors:
        return Factors(np.ones(steps.size), np.ones(steps.size), np.ones(steps.size, np.bool_))

    return Schedule("constant()", factors, keeps_all=True, made_by=("constant", {}))


def exponential_decay(rate: float, *, start: int = 0, every: int = 1) -> Schedule:
    """Step size times ``rate``ⁿ, n = number of whole periods of ``every`` steps since step ``start``; 1 before.

    rate: in (0, 1]; start ≥ 0; every ≥ 1. Raises ValueError otherwise.
    Source: r2SGLD (2024), A.1 (0.9999 per epoch from epoch 10,000).
    """
    check_number("rate", rate, above=0.0, at_most=1.0)
    check_count("start", start, at_least=0)
    check_count("every", every, at_least=1)

    def factors(steps: Steps, total_steps: int) -> Factors:
        periods = (np.maximum(0, steps - start) // every).astype(np.float64)
        scale = np.empty(steps.size)
        compile_part(fill_powers, types.void(types.float64, FLOATS, FLOATS))(float(rate), periods, scale)
        return Factors(scale, np.ones(steps.size), np.ones(steps.size, np.bool_))

    made_by = ("exponential_decay", {"rate": float(rate), "start": int(start), "every": int(every)})
    return Schedule(f"exponential_decay({rate}, start={start}, every={every})", factors, True, made_by)


def polynomial_decay(exponent: float, *, offset: float = 0.0, start: int = 0) -> Schedule:
    """Step size times (b + k)^−γ, k = 1, 2, … from step ``start`` on; 1 before.

    exponent: γ ≥ 0; in (½, 1] the step sizes sum to infinity and their squares do not. offset: b ≥ 0; with b = 0
    nothing jumps at ``start`` ≥ 0. Raises ValueError otherwise.
    Source: cyclical SG-MCMC (2020), section 2 (there α_k = a (b + k)^−γ; a is the base step size).
    """
    check_number("exponent", exponent, at_least=0.0)
    check_number("offset", offset, at_least=0.0)
    check_count("start", start, at_least=0)

    def factors(steps: Steps, total_steps: int) -> Factors:
        places = np.where(steps < start, 1.0, float(offset) + (steps - start + 1.0))
        scale = np.empty(steps.size)
        compile_part(fill_decays, types.void(FLOATS, types.float64, FLOATS))(places, -float(exponent), scale)
        return Factors(scale, np.ones(steps.size), np.ones(steps.size, np.bool_))

    made_by = ("polynomial_decay", {"exponent": float(exponent), "offset": float(offset), "start": int(start)})
    return Schedule(f"polynomial_decay({exponent}, offset={offset}, start={start})", factors, True, made_by)


def cosine_cycles(n_cycles: int, *, exploration: float = 0.0, floor: float = 0.0) -> Schedule:
    """Cyclical step size max(½ (cos πr + 1), floor), r = position in the cycle in [0, 1), as a multiple of the base.

    n_cycles: over the whole run, burn-in included, each ⌈steps / n_cycles⌉ long.
    exploration: share β in [0, 1) of each cycle, from its start, with temperature 0 and nothing kept.
    floor: smallest multiple, in [0, 1]; 0 in the paper. Raises ValueError outside these ranges.
    Source: cyclical SG-MCMC (2020), eq. 1 and algorithm 1.
    """
    check_count("n_cycles", n_cycles, at_least=1)
    check_number("exploration", exploration, at_least=0.0, below=1.0)
    check_number("floor", floor, at_least=0.0, at_most=1.0)

    def factors(steps: Steps, total_steps: int) -> Factors:
        if n_cycles > total_steps:
            raise ValueError(f"n_cycles must be ≤ n_steps = {total_steps}, got {n_cycles}")
        found = Factors(np.empty(steps.size), np.empty(steps.size), np.empty(steps.size, np.bool_))
        given = np.array(steps, np.int64), -(-total_steps // n_cycles), numbers["exploration"], numbers["floor"]
        compile_part(fill_cycles, FILL_CYCLES)(*given, *found)
        return found

    numbers = {"n_cycles": int(n_cycles), "exploration": float(exploration), "floor": float(floor)}
    name = f"cosine_cycles({n_cycles}, exploration={exploration}, floor={floor})"
    return Schedule(name, factors, made_by=("cosine_cycles", numbers))


def custom(step_size: Own = None, *, temperature: Own = None, keep: Own = None) -> Schedule:
    """The user's own multiples of the base step size and temperature, and whether a draw may be kept.

    Each an array (n_steps,) with one value for every step of the run, or a function of the steps, int64 (steps,) →
    (steps,), whose value at a step must depend on that step alone; None: 1, and every step kept. Numbers ≥ 0; ``keep``
    booleans.
    Raises TypeError or ValueError for a bad array here, for a short one or a bad function where the run begins.
    """
    given = {"step_size": step_size, "temperature": temperature, "keep": keep}
    own = {name: check_own(name, value) for name, value in given.items()}

    def factors(steps: Steps, total_steps: int) -> Factors:
        values: list[Any] = []
        for name, source in own.items():
            if source is None:
                values.append(np.ones(steps.size, np.bool_ if name == "keep" else np.float64))
            elif callable(source):
                values.append(source(steps))
            elif source.size < total_steps:
                raise ValueError(f"{name} must have a value for each of n_steps = {total_steps}, got {source.size}")
            else:
                values.append(source[steps])
        return Factors(*values)

    label = ", ".join(label_of(name, value) for name, value in own.items() if value is not None)
    return Schedule(f"custom({label})", factors, keeps_all=keep is None, made_by=("custom", own))


def label_of(name: str, value: Any) -> str:
    """An argument as a schedule's name tells it: with a function's own name, where it has one."""
    called = getattr(value, "__name__", "")
    return f"{name}={called}" if called.isidentifier() else name


def check_own(name: str, value: Any) -> Any:
    """None, a function, or a checked copy of an array (steps,). Raises TypeError or ValueError otherwise."""
    if value is None or callable(value):
        return value
    array = np.array(plain_array(name, value, "booleans")) if name == "keep" else check_array(name, value)
    if array.ndim != 1 or (name == "keep" and array.dtype != np.bool_):
        kind = "booleans" if name == "keep" else "numbers"
        raise ValueError(f"{name} must be {kind} of shape (n_steps,), got shape {array.shape} of {array.dtype}")
    if (array < 0.0).any():
        raise ValueError(f"{name} must be ≥ 0, got {array.min()}")
    return array


def fill_powers(base: Any, exponents: Any, out: Any) -> None:
    """Powers of ``base``, elementwise into ``out``."""
    for i in range(exponents.size):
        out[i] = power(base, exponents[i])


def fill_decays(bases: Any, exponent: Any, out: Any) -> None:
    """Powers to one ``exponent``, elementwise into ``out``."""
    for i in range(bases.size):
        out[i] = power(bases[i], exponent)


FILL_CYCLES = types.void(INTEGERS, types.int64, types.float64, types.float64, FLOATS, FLOATS, types.boolean[::1])


def fill_cycles(
    steps: Any, length: Any, exploration: Any, floor: Any, step_size: Any, temperature: Any, keep: Any
) -> None:
    """The factors of ``cosine_cycles`` at ``steps``, in cycles of ``length`` steps."""
    place = 0
    for i in range(steps.size):
        if i == 0 or steps[i] != steps[i - 1] + 1:
            place = steps[i] % length
        elif place + 1 < length:
            place += 1
        else:
            place = 0
        step_size[i] = float(place)
    for i in range(steps.size):
        position = step_size[i] / float(length)
        samples = position >= exploration
        step_size[i] = larger(0.5 * (sincos_turns(0.5 * position)[1] + 1.0), floor)
        temperature[i] = select(samples, 1.0, 0.0)
        keep[i] = samples
