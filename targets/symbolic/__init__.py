"""Targets from SymPy expressions: lowering, printing and compiling of their energy and gradient as block functions.

``sysid`` uses ``source.compile_source`` for its own generated functions, and ``expressions.check_parts``.
"""

from .sympy_targets import from_sympy

__all__ = ["from_sympy"]
