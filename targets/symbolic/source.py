"""A SymPy expression and its gradient, written out as a block function on ``toolkit``'s vector maths.

In three passes: ``targets.symbolic.lowering`` rewrites to sums, products, integer powers and calls of what the kernels
have; ``sympy.cse`` names what occurs twice; ``targets.symbolic.printing`` writes the statements. Compiled anew in each
process, as SymPy's own work takes as long: together 0.4 s for ``cosine25``, 1.5 s for 25 Gaussians.
"""

import functools
import hashlib
import linecache
import math
from collections.abc import Callable
from types import FunctionType
from typing import Any

from toolkit.maths import elementary, special
from toolkit.problem import lane_access

from .lowering import Lowering, pairwise_choices
from .printing import write_block


def compile_source(kind: str, name: str, source: str, namespace: dict[str, Any]) -> Any:
    """The function ``name`` that ``source`` defines in ``namespace``, with a file name from a hash of the source."""
    file = f"<{kind} {hashlib.sha256(source.encode()).hexdigest()[:16]}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    exec(
        compile(source, file, "exec"), namespace
    )  # our own text, of numbers, operators and the functions of ``namespace``
    return namespace[name]


NAMESPACE = {
    **{
        name: getattr(elementary, name)
        for name in ("exp", "exp_share", "log", "sincos", "sincos_turns", "power", "select", "fma")
    },
    **{name: getattr(special, name) for name in ("sin", "cos", "atan", "atan2", "asin", "acos")},
    **{name: getattr(special, name) for name in ("log1p", "expm1", "sinh", "cosh", "tanh")},
    **{name: getattr(special, name) for name in ("asinh", "acosh", "atanh")},
    "math": math,
}


@functools.cache
def block_of(energy: Any, dim: int) -> Callable[..., None]:
    """The block function of ``energy``, an expression of the real symbols x0, x1, … and p0, p1, …."""
    return function_of(source_of(energy, dim), dim)


@functools.cache
def function_of(source: str, dim: int) -> Callable[..., None]:
    """The function that ``source`` defines; tracebacks and ``inspect`` find its lines."""
    load, store = lane_access(dim)
    space = {**NAMESPACE, "load": load, "store": store, "__name__": "generated"}
    function = compile_source("from_sympy", "energy_and_gradient", source, space)
    assert isinstance(function, FunctionType)
    return function


def source_of(energy: Any, dim: int) -> str:
    """Source of the block function, the same bytes each time."""
    import sympy
    from sympy.core.parameters import distribute

    coordinates = [sympy.Symbol(f"x{d}", real=True) for d in range(dim)]
    lowering = Lowering(coordinates)
    stable = lowering.stabilise(pairwise_choices(energy))
    lowering.lower(stable)  # before its derivatives are asked for, so that a function not known is named as such
    slopes = [sympy.diff(stable, x).replace(sympy.DiracDelta, lambda *_: sympy.S.Zero) for x in coordinates]
    with distribute(False):
        peaks = [(peak, lowering.lower(largest)) for peak, largest in lowering.peaks]
        outputs = [lowering.lower(e) for e in (stable, *slopes)]
        inner = [value for _, value in peaks] + [argument for _, _, argument in lowering.pairs]
        shared, reduced = sympy.cse([*inner, *outputs], symbols=sympy.numbered_symbols("t", real=True), list=False)
    expressions = dict(shared)
    expressions |= {peak: reduced[i] for i, (peak, _) in enumerate(peaks)}
    arguments = reduced[len(peaks) : len(inner)]
    pairs = [(names, call, a) for (names, call, _), a in zip(lowering.pairs, arguments, strict=True)]
    used = sorted((s for s in energy.free_symbols if s not in coordinates), key=lambda s: int(s.name[1:]))
    return write_block(f"U = {energy}", coordinates, used, lowering.fixed, expressions, pairs, reduced[len(inner) :])
