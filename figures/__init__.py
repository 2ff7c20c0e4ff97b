"""The plotting layer, and one script per figure and table of the papers: `python -m figures list | run | report`."""

from .claims import Claim
from .density import density
from .kl_curve import kl_curve
from .output import QUICK, save
from .script import produce, run_script, script
from .study import Data, Study
from .style import STYLE
from .trajectory import trajectory

__all__ = [
    "QUICK",
    "STYLE",
    "Claim",
    "Data",
    "Study",
    "density",
    "kl_curve",
    "produce",
    "run_script",
    "save",
    "script",
    "trajectory",
]
