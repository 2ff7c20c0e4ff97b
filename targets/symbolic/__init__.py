"""Targets from SymPy expressions; the public face of the modules that write them out as block functions."""

from .sympy_targets import from_sympy

__all__ = ["from_sympy"]
