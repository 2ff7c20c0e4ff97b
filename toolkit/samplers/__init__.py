"""The named points of the product: one constructor for every algorithm and baseline of the papers.

Each says which dynamics, schedule, tempering and boundary it is; ``Sampler(...)`` makes every other combination. What a
part's number means, and may be, is said where that part is; what ``schedule``, ``boundary`` and the noises are, by
``Sampler``. A ``step_size`` or ``temperature`` is a number > 0, or an array (chain,) with one per chain, so that a
sweep is one run. All raise TypeError or ValueError naming the argument where one is out of range.

Every argument has a default, and each docstring says where that of the step size comes from: a paper's experiment on a
synthetic target, or else a step that is stable and has a small bias where the curvature of U (the largest eigenvalue of
its Hessian) is between 1 and 10. It is a first guess: ``toolkit.tune`` finds the step size for a problem at hand.
"""

from .continuous import tact_hmc
from .contour import csgld, icsghmc, icsgld
from .exchange import pt_baoab, pt_hmc, pt_mala, r2sghmc, r2sgld, resgld
from .langevin import cyclical_sghmc, cyclical_sgld, psgld, sghmc, sgld, sgnht
from .metropolis import hmc, mala
from .sampler import Sampler
from .stein import svgd

__all__ = [
    "Sampler",
    "csgld",
    "cyclical_sghmc",
    "cyclical_sgld",
    "hmc",
    "icsghmc",
    "icsgld",
    "mala",
    "psgld",
    "pt_baoab",
    "pt_hmc",
    "pt_mala",
    "r2sghmc",
    "r2sgld",
    "resgld",
    "sghmc",
    "sgld",
    "sgnht",
    "svgd",
    "tact_hmc",
]
