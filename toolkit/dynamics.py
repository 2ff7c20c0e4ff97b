"""Dynamics: how a replica moves in one step. Each is a block function with its numbers, see ``moving.Dynamics``."""

from .metropolis import hmc, mala
from .moving import Dynamics
from .overdamped import descent, langevin
from .preconditioned import preconditioned_langevin
from .underdamped import nose_hoover, underdamped_langevin

__all__ = [
    "Dynamics",
    "descent",
    "hmc",
    "langevin",
    "mala",
    "nose_hoover",
    "preconditioned_langevin",
    "underdamped_langevin",
]
