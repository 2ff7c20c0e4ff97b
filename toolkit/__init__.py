"""Sample low-dimensional posteriors with many modes, walls or noisy gradients: many chains at once, in Numba."""

from ._compiler.notice import give_notice

give_notice()  # before anything is compiled

from . import accumulators, boundaries, diagnostics, dynamics, ladders, samplers, schedules, tempering, weighting
from ._distributed.collection import PooledRun
from ._distributed.rounds import sample_in_rounds
from ._distributed.stored_run import StoredRun, open_run
from ._distributed.sweeps.grid import Grid, grid
from ._distributed.sweeps.sweep import sweep
from ._engine.state import Layout
from ._output.online import Chains
from ._output.run import Run, load
from .diagnostics import cycles, stopping, thermostats
from .errors import (
    CheckpointError,
    CheckpointWarning,
    ClusterError,
    ClusterWarning,
    ContourWarning,
    CudaError,
    CudaWarning,
    DivergenceError,
    InterruptedWarning,
    LoadError,
    UnavailableError,
)
from .problem.definition import Problem, Spread, Target
from .problem.gradient_check import GradientError, check_gradient
from .problem.point_function import target
from .problem.python_callable import from_callable
from .samplers.sampler import Sampler
from .sampling import chains, sample, stream
from .tuning import Tuned, tune
from .verification.report import Report, verify
from .verification.step_size import StepSizeReport, check_step_size

__all__ = [
    "Chains",
    "CheckpointError",
    "CheckpointWarning",
    "ClusterError",
    "ClusterWarning",
    "ContourWarning",
    "CudaError",
    "CudaWarning",
    "DivergenceError",
    "GradientError",
    "Grid",
    "InterruptedWarning",
    "Layout",
    "LoadError",
    "PooledRun",
    "Problem",
    "Report",
    "Run",
    "Sampler",
    "Spread",
    "StepSizeReport",
    "StoredRun",
    "Target",
    "Tuned",
    "UnavailableError",
    "accumulators",
    "boundaries",
    "chains",
    "check_gradient",
    "check_step_size",
    "cycles",
    "diagnostics",
    "dynamics",
    "from_callable",
    "grid",
    "ladders",
    "load",
    "open_run",
    "sample",
    "sample_in_rounds",
    "samplers",
    "schedules",
    "stopping",
    "stream",
    "sweep",
    "target",
    "tempering",
    "thermostats",
    "tune",
    "verify",
    "weighting",
]
__version__ = "0.1.0"


def __dir__() -> list[str]:
    """What tab completion shows: what is public."""
    return sorted(__all__)
