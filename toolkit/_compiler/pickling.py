"""Pickle what holds functions: by name where that finds the function again, else by what made it, or else by value.

By value is the bytecode: it can be loaded by the same minor version of Python only.
"""

import functools
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any, NamedTuple

from numba import cloudpickle

from .binding import bound, is_copy
from .lowering import is_found_by_name
from .numba_private import Dispatcher
from .per_function import results_of


class Recipe(NamedTuple):
    """How a function was made: maker(*arguments, **options), which is equal for equal ones."""

    maker: Callable[..., Any]
    arguments: tuple[Any, ...]
    options: Mapping[str, Any] = {}


def set_recipe(function: Any, maker: Callable[..., Any], *arguments: Any, **options: Any) -> None:
    """Note how ``function`` was made. What copies its attributes, as ``functools.wraps`` does, copies no recipe."""
    results_of(function)[Recipe] = Recipe(maker, arguments, options)


def recipe_of(function: Any) -> Recipe | None:
    """How ``function`` was made, where that is noted."""
    recipe: Recipe | None = results_of(function).get(Recipe)
    return recipe


class Portable:
    """Stands for a function in a pickle; it is unpickled as the function. Copies keep the function itself.

    binds: whether it is bound when it is unpickled: functions that are compiled are, and those that Python calls not.
    """

    def __init__(self, function: Any, *, binds: bool) -> None:
        self.function, self.binds = function, binds

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def __reduce__(self) -> Any:
        recipe = recipe_of(self.function)
        if recipe is None:
            return from_bytes, (cloudpickle.dumps(self.function), self.binds)
        maker = functools.partial(recipe.maker, **recipe.options) if recipe.options else recipe.maker
        return maker, tuple(map(portable, recipe.arguments))


def from_bytes(content: bytes, binds: bool) -> Any:
    """The function that was pickled by value."""
    function = cloudpickle.loads(content)
    return bound(function) if binds else function


def portable(value: Any, *, binds: bool = True) -> Any:
    """``value``, or what stands for it in a pickle where it is a function that its name does not find."""
    if type(value) is tuple:
        return tuple(portable(item, binds=binds) for item in value)
    if not isinstance(value, FunctionType | Dispatcher):
        return value
    by_name = not is_copy(value) and recipe_of(value) is None and is_found_by_name(value)
    return value if by_name else Portable(value, binds=binds)


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
