"""A good call of a function, with the kind of each argument.

An argument takes its kind from the call's own list, else from ``calls.COMMON`` by its name; its good value from the
call, else from the function's default.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.hostile.values import Kind


@dataclass
class Call:
    """A public function with good arguments, and the kinds of those that differ from ``COMMON``."""

    name: str
    function: Callable[..., Any]
    good: Any = field(default_factory=dict)  # arguments by name, or a function that makes them
    kinds: dict[str, Kind] = field(default_factory=dict)
    also: dict[str, str] = field(default_factory=dict)  # argument → other names a message may give it
    tried: bool = True  # whether the good call is made first; False where it takes long
    look: Callable[[Any], Any] = lambda result: result  # what makes the call do its work, of an iterator say

    def arguments(self) -> dict[str, Kind]:
        """Every argument's kind. Raises KeyError where one has none."""
        return {name: self.kind_of(name) for name in inspect.signature(self.function).parameters}

    def kind_of(self, name: str) -> Kind:
        """An argument's kind. Raises KeyError where it has none."""
        if name in self.kinds:
            return self.kinds[name]
        from tests.hostile.calls import COMMON  # with all packages, which a table of examples does not need

        if name not in COMMON:
            raise KeyError(f"argument {name!r} of {self.name} has no kind: give it one in tests/hostile/calls.py")
        return COMMON[name]

    def __call__(self, changes: dict[str, Any]) -> Any:
        """Call it with the good arguments but for ``changes``."""
        good = self.good() if callable(self.good) else self.good
        return self.look(self.function(**{**good, **changes}))
