"""Sample low-dimensional posteriors with many modes, walls or noisy gradients: many chains at once, in Numba."""

from . import boundaries, cycles, diagnostics, dynamics, ladders, samplers, schedules, tempering, thermostats, weighting
from .blocks import Layout
from .errors import ContourWarning, DivergenceError, InterruptedWarning
from .problem import Problem, Target
from .result import Run
from .sampler import Sampler
from .sampling import sample, stream

__all__ = [
    "ContourWarning",
    "DivergenceError",
    "InterruptedWarning",
    "Layout",
    "Problem",
    "Run",
    "Sampler",
    "Target",
    "boundaries",
    "cycles",
    "diagnostics",
    "dynamics",
    "ladders",
    "sample",
    "samplers",
    "schedules",
    "stream",
    "tempering",
    "thermostats",
    "weighting",
]
__version__ = "0.1.0"
