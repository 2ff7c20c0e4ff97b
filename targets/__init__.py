"""Targets and domains, each with its truth."""

from . import classics, datasets, domains, mixtures, posteriors, shapes
from .catalogue_entries import catalogue
from .domains.constrained import constrained
from .symbolic import from_sympy

__all__ = [
    "catalogue",
    "classics",
    "constrained",
    "datasets",
    "domains",
    "from_sympy",
    "mixtures",
    "posteriors",
    "shapes",
]


def __dir__() -> list[str]:
    """What tab completion shows: what is public."""
    return sorted(__all__)
