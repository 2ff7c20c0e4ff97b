"""Identification of dynamical systems: data, candidate terms, noise and constraints become a problem to sample.

``identify`` makes the problem from a ``Series`` (``data``; with ``Inputs`` where something drives it), a ``System``,
``Library`` or ``Model`` (``systems``, ``libraries``), a likelihood (``likelihoods``) and ``priors``. ``simulate``
solves the system for posterior draws; ``sparsity`` finds which terms are present, ``discover`` all of it in one call;
``compare_pysindy`` runs PySINDy's methods on the same data.
"""

from toolkit.errors import LIBRARIES, check_not_shadowed

check_not_shadowed("targets", by=__name__)  # before it is imported
LIBRARIES.add(__name__)

from . import data, libraries, likelihoods, priors, sparsity, systems
from .data.series import Series
from .discovery import Discovery, compare_pysindy, discover
from .estimates import Estimates, marginal_modes
from .forecasts import Ensemble, histograms, largest_lyapunov, simulate
from .identification import Identification, identify
from .libraries import Library
from .model import Model, model_of
from .solvers import integrate
from .systems.inputs import Inputs
from .systems.system import System

__all__ = [
    "Discovery",
    "Ensemble",
    "Estimates",
    "Identification",
    "Inputs",
    "Library",
    "Model",
    "Series",
    "System",
    "compare_pysindy",
    "data",
    "discover",
    "histograms",
    "identify",
    "integrate",
    "largest_lyapunov",
    "libraries",
    "likelihoods",
    "marginal_modes",
    "model_of",
    "priors",
    "simulate",
    "sparsity",
    "systems",
]


def __dir__() -> list[str]:
    """The public names, for tab completion."""
    return sorted(__all__)
