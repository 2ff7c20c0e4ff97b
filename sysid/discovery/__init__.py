"""Equations from data alone: which of many candidate terms are there, with their coefficients; and PySINDy's methods.

``discover`` puts the weak likelihood and the sparse posterior together; ``compare_pysindy`` sets it beside PySINDy.
"""

from .compare import compare_pysindy
from .sparse_equations import Discovery, discover

__all__ = ["Discovery", "compare_pysindy", "discover"]
