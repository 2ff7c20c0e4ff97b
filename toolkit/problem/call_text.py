"""Calls as text: an object that a constructor made shows the call, which a user can paste, and not its numbers."""

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import numpy as np

MOST_NUMBERS = 24  # of an array or a list; of more, its shape
MOST_CHARACTERS = 100  # of any other argument

P = ParamSpec("P")
T = TypeVar("T")


def argument_text(value: Any) -> str:
    """A short text of an argument: an expression that makes it again, or its type in angle brackets."""
    try:
        return expression_of(value)
    except (
        Exception
    ):  # the value's own methods, or a list that contains itself: a constructor must not fail by its text
        return f"<{type(value).__name__}>"


def expression_of(value: Any) -> str:
    """The text of an argument. Raises what the value's own methods raise."""
    if isinstance(value, np.longdouble | np.clongdouble):  # NumPy has no Python number for them: tolist changes nothing
        return expression_of(complex(value) if isinstance(value, np.clongdouble) else float(value))
    if isinstance(value, np.ndarray | np.generic):
        if value.size > MOST_NUMBERS:
            return f"<array of shape {value.shape}>"
        return expression_of(value.tolist())
    if isinstance(value, list | tuple):
        if np.size(np.asarray(value, dtype=object)) > MOST_NUMBERS:
            return f"<{type(value).__name__} of {len(value)}>"
        inside = ", ".join(map(expression_of, value))
        return f"[{inside}]" if isinstance(value, list) else f"({inside},)" if len(value) == 1 else f"({inside})"
    if isinstance(value, float) and not np.isfinite(value):
        return f'float("{value}")'
    if callable(value) and hasattr(value, "__name__"):
        return str(value.__name__)
    text = " ".join(repr(value).split())
    return text if len(text) <= MOST_CHARACTERS or getattr(value, "__module__", None) else f"<{type(value).__name__}>"


def call_text(name: str, signature: inspect.Signature, arguments: dict[str, Any]) -> str:
    """The call of what has this signature with these arguments, without those that are its defaults."""
    parts: list[str] = []
    by_position = True
    for key, parameter in signature.parameters.items():
        if parameter.kind is parameter.VAR_POSITIONAL:
            parts += map(argument_text, arguments.get(key, ()))
            continue
        if key not in arguments or is_default(arguments[key], parameter.default):
            by_position = False
            continue
        by_position = by_position and parameter.kind is not parameter.KEYWORD_ONLY
        text = argument_text(arguments[key])
        parts.append(text if by_position else f"{key}={text}")
    return f"{name}({', '.join(parts)})"


def is_default(value: Any, default: Any) -> bool:
    """Whether an argument is its default, as far as the two say so."""
    if value is default:
        return True
    try:
        return type(value) is type(default) and bool(value == default)
    except Exception:  # arrays, and classes of one's own
        return False


def recorded(room: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """A decorator of constructors of frozen dataclasses: ``repr`` of what they make is the call (``shows_call``).

    room: what stands before the constructor's name, "" for none.
    """

    def decorate(constructor: Callable[P, T]) -> Callable[P, T]:
        name = f"{room}.{constructor.__name__}" if room else constructor.__name__
        signature = inspect.signature(constructor)

        @functools.wraps(constructor)
        def recording(*given: P.args, **named: P.kwargs) -> T:
            made = constructor(*given, **named)
            object.__setattr__(made, "_call", call_text(name, signature, signature.bind(*given, **named).arguments))
            return made

        return recording

    return decorate


def shows_call(words: Callable[[Any], str]) -> Callable[[Any], str]:
    """A ``__repr__``: the call of the ``recorded`` constructor; ``words`` of an object that was made in another way."""

    @functools.wraps(words)
    def shown(self: Any) -> str:
        call = vars(self).get("_call")
        return words(self) if call is None else str(call)

    return shown
