"""Identification of dynamical systems: data, candidate terms, noise and constraints become a problem to sample."""

from . import data, integrate, libraries, likelihoods, priors, sparsity, systems
from .attractors import histograms, largest_lyapunov
from .compare import compare_pysindy
from .ensembles import Ensemble, simulate
from .estimates import Estimates, marginal_modes
from .identification import Identification
from .identify import identify
from .libraries import Library
from .model import Model, model_of
from .series import Series
from .system import System

__all__ = [
    "Ensemble",
    "Estimates",
    "Identification",
    "Library",
    "Model",
    "Series",
    "System",
    "compare_pysindy",
    "data",
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
