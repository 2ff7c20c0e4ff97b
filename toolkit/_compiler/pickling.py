"""Pickle what holds functions: by name where that finds the function again, else by what made it, or else by value.

By value is the bytecode: it can be loaded by the same minor version of Python only.
"""

import functools
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any, NamedTuple

from numba import cloudpickle
from numba.core.dispatcher import Dispatcher

from .binding import bound, is_copy
from .lowering import is_found_by_name


class Recipe(NamedTuple):
    """How a function was made, as its attribute ``recipe``: maker(*arguments, **options), equal for equal ones."""

    maker: Callable[..., Any]
    arguments: tuple[Any, ...]
    options: Mapping[str, Any] = {}


class Portable:
    """Stands for a function in a pickle; it is unpickled as the function. Copies keep the function itself."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def __reduce__(self) -> Any:
        recipe = getattr(self.function, "recipe", None)
        if not isinstance(recipe, Recipe):
            return from_bytes, (cloudpickle.dumps(self.function),)
        maker = functools.partial(recipe.maker, **recipe.options) if recipe.options else recipe.maker
        return maker, tuple(map(portable, recipe.arguments))


def from_bytes(content: bytes) -> Any:
    """The function that was pickled by value, bound."""
    return bound(cloudpickle.loads(content))


def portable(value: Any) -> Any:
    """``value``, or what stands for it in a pickle where it is a function that its name does not find."""
    if type(value) is tuple:
        return tuple(map(portable, value))
    if not isinstance(value, FunctionType | Dispatcher):
        return value
    by_name = not is_copy(value) and not hasattr(value, "recipe") and is_found_by_name(value)
    return value if by_name else Portable(value)


class HoldsFunctions:
    """Base of dataclasses whose fields may be functions, so that they can be pickled."""

    def __getstate__(self) -> dict[str, Any]:
        return {name: portable(value) for name, value in vars(self).items()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, restored(value))


def restored(value: Any) -> Any:
    """The inverse of ``portable``, where nothing was pickled."""
    if type(value) is tuple:
        return tuple(map(restored, value))
    return value.function if isinstance(value, Portable) else value


def reduced(values: tuple[Any, ...]) -> Any:
    """``__reduce__`` of a named tuple whose fields may be functions."""
    return remade, (type(values), *map(portable, values))


def remade(kind: type[Any], *values: Any) -> Any:
    """The named tuple of ``reduced``."""
    return kind(*map(restored, values))
