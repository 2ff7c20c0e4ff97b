"""What the machine code of a function is made of, on x86-64."""

import re

from numba import njit


def packed_instructions(function, signature):
    """Float64 arithmetic on whole vector registers in the machine code, and the mathematical library it calls."""
    compiled = njit(signature, nogil=True, error_model="numpy", _nrt=False)(function)
    (assembly,) = compiled.inspect_asm().values()
    register = "[yz]mm" if re.search(r"%[yz]mm", assembly) else "xmm"
    operation = r"(?:fn?m(?:add|sub)\d+|add|sub|mul|div|sqrt|max|min|cmp\w*)"
    library = set(re.findall(r"\b(exp|log|sin|cos|sincos|pow|fma)\b(?=[,@\s])", assembly))
    return re.findall(rf"\bv?({operation})pd\b[^\n]*%{register}", assembly), library
