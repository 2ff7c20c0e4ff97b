"""SymPy expressions of users, checked part by part: no class but SymPy's own may say what is printed as code."""

import sys
from typing import Any

from toolkit.errors import shown

MAX_TERMS = 10_000  # of a Sum or Product that is written out


def is_own(kind: type) -> bool:
    """Whether ``kind`` is a class that SymPy itself defines, and not one that only says so."""
    module, name = kind.__dict__.get("__module__"), kind.__name__
    if type(module) is not str or module.partition(".")[0] != "sympy":
        return False
    return vars(sys.modules.get(module, object)).get(name) is kind


def check_parts(label: str, expression: Any, symbols: Any = ()) -> None:
    """Raise ValueError where a part of ``expression`` is of a class that is not SymPy's own.

    symbols: parts that may be of any class, such as a user's own kind of Symbol; they are replaced before anything is
    printed. Functions without a meaning (``Function("f")``) may have any name but that of one with a meaning.
    """
    import sympy
    from sympy.core.function import AppliedUndef

    stack, seen, allowed = [expression], set(), {id(symbol) for symbol in symbols}
    while stack:
        part = stack.pop()
        if id(part) in seen or id(part) in allowed:
            continue
        seen.add(id(part))
        kind = type(part)
        if isinstance(part, AppliedUndef):
            if hasattr(sympy, kind.__name__):
                raise ValueError(f"{label} must not have functions of one's own named {shown(kind.__name__)}")
        elif not is_own(kind):
            raise ValueError(f"{label} must be made of SymPy's own classes, got one of {shown(kind.__name__)}")
        if isinstance(part, sympy.Sum | sympy.Product):
            check_length(label, part)
        stack += [other for other in part.args if isinstance(other, sympy.Basic)]


def check_length(label: str, series: Any) -> None:
    """Raise ValueError where a Sum or Product with integer limits has above ``MAX_TERMS`` terms."""
    terms = 1
    for limit in series.limits:
        if len(limit) == 3 and limit[1].is_Integer and limit[2].is_Integer:
            terms *= max(int(limit[2]) - int(limit[1]) + 1, 0)
    if terms > MAX_TERMS:
        raise ValueError(f"{label} must have sums and products of at most {MAX_TERMS} terms, got {shown(terms)}")
