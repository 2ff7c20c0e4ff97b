"""The named points of the product: one constructor for every algorithm and baseline of the papers.

Each says which dynamics, schedule, tempering and boundary it is; ``Sampler(...)`` makes every other combination. What a
part's number means, and may be, is said where that part is; what ``schedule``, ``boundary`` and the noises are, by
``Sampler``. A ``step_size`` or ``temperature`` is a number > 0, or an array (chain,) with one per chain, so that a
sweep is one run. All raise TypeError or ValueError naming the argument where one is out of range.
"""

from .continuous import tact_hmc
from .contour import csgld, icsghmc, icsgld
from .exchange import r2sghmc, r2sgld, resgld
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
    "r2sghmc",
    "r2sgld",
    "resgld",
    "sghmc",
    "sgld",
    "sgnht",
    "svgd",
    "tact_hmc",
]
