"""Checks of what a user gives: each raises with the argument's name, the value it had and the values allowed."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def check_count(name: str, value: Any, *, at_least: int, below: int | None = None) -> int:
    """``value`` as an int. Raises TypeError where it is not an integer, ValueError where out of range."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name} must be an integer, got {value!r} of type {type(value).__name__}")
    if value < at_least or (below is not None and value >= below):
        limit = "" if below is None else f" and < {below}"
        raise ValueError(f"{name} must be ≥ {at_least}{limit}, got {value}")
    return int(value)


def check_number(
    name: str,
    value: Any,
    *,
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
    at_most: float | None = None,
) -> float:
    """``value`` as a finite float. Raises TypeError where it is not a number, ValueError where out of range."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        raise TypeError(f"{name} must be a number, got {value!r} of type {type(value).__name__}")
    number = float(value)
    allowed = ["finite"]
    valid = math.isfinite(number)
    if above is not None:
        allowed.append(f"> {above:g}")
        valid = valid and number > above
    if at_least is not None:
        allowed.append(f"≥ {at_least:g}")
        valid = valid and number >= at_least
    if below is not None:
        allowed.append(f"< {below:g}")
        valid = valid and number < below
    if at_most is not None:
        allowed.append(f"≤ {at_most:g}")
        valid = valid and number <= at_most
    if not valid:
        raise ValueError(f"{name} must be {' and '.join(allowed)}, got {value!r}")
    return number


def check_choice(name: str, value: Any, allowed: Sequence[str]) -> str:
    """``value`` where it is one of the ``allowed`` words. Raises ValueError otherwise."""
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}")
    return value


def check_numbers(name: str, values: Any, **limits: float) -> tuple[float, ...]:
    """``values`` as a tuple of finite floats, each within ``limits``; the message names the entry at fault."""
    if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray):
        raise TypeError(f"{name} must be a sequence of numbers, got {values!r} of type {type(values).__name__}")
    return tuple(check_number(f"{name}[{i}]", value, **limits) for i, value in enumerate(values))


def check_array(name: str, values: Any) -> NDArray[np.float64]:
    """``values`` as a float64 array. Raises TypeError where they are no numbers, ValueError where not finite."""
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be an array of numbers, got {values!r}: {error}") from None
    bad = np.argwhere(~np.isfinite(array))
    if bad.size:
        place = ", ".join(map(str, bad[0]))
        raise ValueError(f"{name} must be finite, got {array[tuple(bad[0])]} at [{place}]")
    return array
