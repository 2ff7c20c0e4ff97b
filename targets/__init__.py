"""Targets and domains, each with its truth."""

from . import mixtures, shapes
from .constraining import constrained

__all__ = ["constrained", "mixtures", "shapes"]
