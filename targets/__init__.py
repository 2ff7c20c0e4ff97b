"""Target distributions and domains, each with its truth: moments, mode weights, cell masses, energies, exact draws.

``mixtures``, ``classics`` and ``posteriors`` are targets; ``shapes`` and ``domains`` are regions; ``constrained`` puts
a target into a region; ``from_sympy`` makes a target of an expression; ``with_truth`` gives any target of one or two
dimensions its truth; ``datasets`` has data for posteriors.
"""

from toolkit.errors import LIBRARIES

from . import classics, datasets, domains, mixtures, posteriors, shapes
from .catalogue_entries import catalogue
from .domains.constrained import constrained
from .symbolic import from_sympy
from .truth.own_targets import with_truth

LIBRARIES.add(__name__)

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
    "with_truth",
]


def __dir__() -> list[str]:
    """The public names, for tab completion."""
    return sorted(__all__)
