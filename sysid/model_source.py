"""A model's right-hand side, written out as Python that Numba compiles."""

from typing import TYPE_CHECKING, Any

import numpy as np

from targets.writing import written

if TYPE_CHECKING:
    from .libraries import Term
    from .model import Model

SIGNS = {1.0: "", -1.0: "-"}  # factors that are written as a sign


def right_hand_side(model: "Model") -> Any:
    """The function (t, x, p) of a model, written out without terms that cannot occur."""
    space: dict[str, Any] = {"sin": np.sin, "cos": np.cos, "__name__": "generated"}
    used = np.flatnonzero(model.constant.any(axis=1) | model.directions.any(axis=(0, 2)))
    lines = ["def rhs(t, x, p):"]
    for k in used:
        term: Term = model.library.terms[k]
        if term.own is not None:
            space[f"own{k}"] = compiled(term.own)
        lines.append(f"    v{k} = {term.text.replace('own(', f'own{k}(')}")
    sums = []
    for e in range(len(model.states)):
        parts = []
        for k in used:
            factors = [
                SIGNS.get(c, f"{c!r}*") + f"p[{j}]" for j, c in enumerate(model.directions[:, k, e].tolist()) if c
            ]
            factors += [repr(model.constant[k, e].item())] if model.constant[k, e] else []
            if factors:
                parts.append(f"({' + '.join(factors)})*v{k}")
        sums.append(" + ".join(parts) or "0.0*x[0]")
    source = "\n".join([*lines, f"    return ({', '.join(sums)},)", ""])
    return written("model", "rhs", source, space)


def compiled(function: Any) -> Any:
    """A user's own term as Numba calls it."""
    from numba import njit
    from numba.core.dispatcher import Dispatcher

    return function if isinstance(function, Dispatcher) else njit(error_model="numpy")(function)
