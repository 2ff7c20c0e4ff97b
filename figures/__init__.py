"""The plotting layer, and one script per figure of the papers. `python -m figures` runs all scripts."""

from .density import density
from .kl_curve import kl_curve
from .output import QUICK, run_script, save
from .style import STYLE
from .trajectory import trajectory

__all__ = ["QUICK", "STYLE", "density", "kl_curve", "run_script", "save", "trajectory"]
