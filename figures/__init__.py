"""The plotting layer, and one script per figure and table of the papers: `python -m figures list | run | report`."""

from .claims import Claim
from .density import density
from .kl_curve import kl_curve
from .output import QUICK, save
from .phase_portrait import phase_portrait
from .posterior import posterior
from .script import produce, run_script, script
from .study import Data, Study
from .style import STYLE, paper_style
from .swaps import swaps
from .theta_spectrum import theta_spectrum
from .traces import traces
from .trajectory import trajectory

__all__ = [
    "QUICK",
    "STYLE",
    "Claim",
    "Data",
    "Study",
    "density",
    "kl_curve",
    "paper_style",
    "phase_portrait",
    "posterior",
    "produce",
    "run_script",
    "save",
    "script",
    "swaps",
    "theta_spectrum",
    "traces",
    "trajectory",
]
