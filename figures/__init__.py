"""Plots of runs, and one script per figure and table of the papers: `python -m figures list | run | report`.

``density`` … ``trajectory`` draw a run or arrays into axes; a script measures with a ``Study``, draws, and compares the
paper's numbers with ``Claim``; ``produce`` runs a script and writes its files.
"""

from toolkit.errors import check_not_shadowed

check_not_shadowed("targets", by=__name__)  # before they are imported
check_not_shadowed("sysid", by=__name__)

from .plots import style as style
from .plots.densities import density
from .plots.fits import fit
from .plots.kl_curves import kl_curve
from .plots.overview import overview
from .plots.phase_portraits import phase_portrait
from .plots.posteriors import posterior
from .plots.style import STYLE, paper_style
from .plots.swap_paths import swaps
from .plots.term_intervals import terms
from .plots.theta_spectra import theta_spectrum
from .plots.trace_plots import traces
from .plots.trajectories import trajectory
from .plots.tuning_rounds import tuning
from .scripts.claims import Claim
from .scripts.output import QUICK, save
from .scripts.runner import produce, run_script, script
from .scripts.study import Data, Study

__all__ = [
    "QUICK",
    "STYLE",
    "Claim",
    "Data",
    "Study",
    "density",
    "fit",
    "kl_curve",
    "overview",
    "paper_style",
    "phase_portrait",
    "posterior",
    "produce",
    "run_script",
    "save",
    "script",
    "swaps",
    "terms",
    "theta_spectrum",
    "traces",
    "trajectory",
    "tuning",
]


def __dir__() -> list[str]:
    """The public names, for tab completion."""
    return sorted(__all__)
