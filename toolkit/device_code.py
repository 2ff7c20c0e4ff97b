"""What the compiler wrote for a device, read: operations that may be fused, calls, functions that are CUDA's own."""

import re
from typing import NamedTuple

CONTRACTIBLE = re.compile(r"\b(?:add|sub|mul)\.f(?:32|64)\b")  # without ".rn", which an assembler may fuse
CALLED = re.compile(r"\bcall(?:\.uni)?\s+(?:\([^)]*\),\s*)?([^\s,;]+)")
LOCAL = re.compile(r"\b(?:ld|st)\.local\b")
OWN = re.compile(r"\bcall\b[^@\n]*@\"?__nv_(\w+)")
DEFINED = re.compile(r"^define [^\n]*(.*?)^}", re.M | re.S)
POWER = "int_power_impl"  # Numba's products for integer exponents, a CPU's too; only those above 65,536 are left to pow
# Those of CUDA's functions that have one right result: the one that a CPU has.
EXACT = frozenset(
    name + suffix
    for name in ("sqrt", "fabs", "floor", "ceil", "trunc", "rint", "fma", "copysign", "fmod", "isnan", "isinf",
                 "finite", "isfinited", "signbit", "abs", "llabs")
    for suffix in ("", "f", "d")
)  # fmt: skip


class Code(NamedTuple):
    """A kernel as text for one kind of device, and which of CUDA's own functions it calls."""

    ptx: str
    functions: tuple[str, ...]


def contracts(ptx: str) -> bool:
    """Whether an assembler may fuse operations of ``ptx`` as it likes."""
    return CONTRACTIBLE.search(ptx) is not None


def functions_called(ir: str) -> tuple[str, ...]:
    """CUDA's own functions that ``ir`` calls, without those that are exact, whose bits may not be a CPU's."""
    bodies = (found.group(1) for found in DEFINED.finditer(ir) if POWER not in found.group().partition("\n")[0])
    return tuple(sorted({name for body in bodies for name in OWN.findall(body)} - EXACT))
