"""Sample low-dimensional posteriors with many modes, walls or noisy gradients: many chains at once, in Numba."""

from ._compiler.notice import give_notice

give_notice()  # before anything is compiled

from typing import TYPE_CHECKING

from . import accumulators, boundaries, diagnostics, dynamics, samplers, schedules, tempering, weighting
from ._engine.state import Layout
from ._output.run import Run, load
from .diagnostics import stopping
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
    on_demand,
)
from .problem.definition import Problem, Spread, Target
from .problem.point_function import target
from .samplers.sampler import Sampler
from .sampling import chains, sample, stream

if TYPE_CHECKING:
    from . import ladders
    from ._distributed.collection import PooledRun
    from ._distributed.rounds import sample_in_rounds
    from ._distributed.stored_run import StoredRun, open_run
    from ._distributed.sweeps.grid import Grid, grid
    from ._distributed.sweeps.sweep import sweep
    from ._output.online import Chains
    from .diagnostics import cycles, thermostats
    from .problem.gradient_check import GradientError, check_gradient
    from .problem.python_callable import from_callable
    from .tuning import Tuned, tune
    from .verification.report import Report, verify
    from .verification.step_size import StepSizeReport, check_step_size
else:  # wings, which a run of a given sampler does not need
    __getattr__ = on_demand(__name__, {
        "Chains": "_output.online",
        "GradientError": "problem.gradient_check",
        "Grid": "_distributed.sweeps.grid",
        "PooledRun": "_distributed.collection",
        "Report": "verification.report",
        "StepSizeReport": "verification.step_size",
        "StoredRun": "_distributed.stored_run",
        "Tuned": "tuning",
        "check_gradient": "problem.gradient_check",
        "check_step_size": "verification.step_size",
        "cycles": "diagnostics.cycles",
        "from_callable": "problem.python_callable",
        "grid": "_distributed.sweeps.grid",
        "ladders": "ladders",
        "open_run": "_distributed.stored_run",
        "sample_in_rounds": "_distributed.rounds",
        "sweep": "_distributed.sweeps.sweep",
        "thermostats": "diagnostics.thermostats",
        "tune": "tuning",
        "verify": "verification.report",
    })  # fmt: skip

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
