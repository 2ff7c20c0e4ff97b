"""Caches that a function holds itself, so that what was made of it is freed together with it.

A cache in a module keeps every function it has met, with its machine code: some 2 MB for each target of a user's.
"""

import functools
import weakref
from collections.abc import Callable
from typing import Any

from .numba_private import Signature

ATTRIBUTE = "__made_of_it__"


class Results(dict[Any, Any]):
    """What was made of one function, by maker and arguments; not pickled or copied with the function."""

    def __init__(self, owner: Any = None) -> None:
        super().__init__()
        self.owner = owner if owner is None else weakref.ref(owner)

    def __reduce__(self) -> Any:
        return Results, ()


def results_of(function: Any) -> Results:
    """The results that ``function`` holds; new ones where its attributes were copied from another function."""
    results: Results | None = vars(function).get(ATTRIBUTE)
    if results is None or results.owner is None or results.owner() is not function:
        results = Results(function)
        setattr(function, ATTRIBUTE, results)
    return results


def is_made(cached: Any, function: Any, *arguments: Any, **options: Any) -> bool:
    """Whether a cache of ``cached_per_function`` has the result of these arguments."""
    return key_of(cached.__wrapped__, arguments, options) in results_of(function)


class SignatureKey:
    """Stands for a signature in a key: Numba has each type once, and hashes what it is made of anew each time."""

    __slots__ = ("_types", "signature")

    def __init__(self, signature: Signature) -> None:
        self.signature = signature  # keeps the types, or another one could get the place of one in memory
        self._types = (id(signature.return_type), *map(id, signature.args))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SignatureKey) and self._types == other._types

    def __hash__(self) -> int:
        return hash(self._types)


def key_of(make: Callable[..., Any], arguments: tuple[Any, ...], options: dict[str, Any]) -> tuple[Any, ...]:
    """The key of a result."""
    parts = tuple(SignatureKey(one) if isinstance(one, Signature) else one for one in arguments)
    return make, parts, tuple(sorted(options.items()))


def cached_per_function(make: Callable[..., Any]) -> Callable[..., Any]:
    """A cache of ``make(function, …)`` for as long as ``function`` lives; further arguments must be hashable."""

    @functools.wraps(make)
    def cached(function: Any, *arguments: Any, **options: Any) -> Any:
        results = results_of(function)
        key = key_of(make, arguments, options)
        if (made := results.get(key, results)) is results:
            made = results[key] = make(function, *arguments, **options)
        return made

    return cached
