"""Sample low-dimensional posteriors with many modes, walls or noisy gradients: many chains at once, in Numba."""

from . import (
    accumulators,
    boundaries,
    cycles,
    diagnostics,
    dynamics,
    ladders,
    samplers,
    schedules,
    tempering,
    thermostats,
    weighting,
)
from .blocks import Layout
from .callables import from_callable
from .errors import (
    CheckpointError,
    CheckpointWarning,
    ContourWarning,
    CudaError,
    CudaWarning,
    DivergenceError,
    InterruptedWarning,
    LoadError,
)
from .gradient_check import GradientError, check_gradient
from .pointwise import target
from .problem import Problem, Spread, Target
from .run import Run, load
from .sampler import Sampler
from .sampling import sample, stream
from .step_size_check import StepSizeReport, check_step_size
from .unavailable import UnavailableError
from .verifying import Report, verify

__all__ = [
    "CheckpointError",
    "CheckpointWarning",
    "ContourWarning",
    "CudaError",
    "CudaWarning",
    "DivergenceError",
    "GradientError",
    "InterruptedWarning",
    "Layout",
    "LoadError",
    "Problem",
    "Report",
    "Run",
    "Sampler",
    "Spread",
    "StepSizeReport",
    "Target",
    "UnavailableError",
    "accumulators",
    "boundaries",
    "check_gradient",
    "check_step_size",
    "cycles",
    "diagnostics",
    "dynamics",
    "from_callable",
    "ladders",
    "load",
    "sample",
    "samplers",
    "schedules",
    "stream",
    "target",
    "tempering",
    "thermostats",
    "verify",
    "weighting",
]
__version__ = "0.1.0"
