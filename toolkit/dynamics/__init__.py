"""Dynamics: how a replica moves in one step. Each is a block function with its numbers, see ``interface.Dynamics``."""

from .baoab_splitting import baoab
from .gradient_descent import descent
from .interface import Dynamics
from .metropolis import hmc, mala
from .overdamped import langevin
from .preconditioned import preconditioned_langevin
from .thermostat import nose_hoover
from .underdamped import underdamped_langevin

__all__ = [
    "Dynamics",
    "baoab",
    "descent",
    "hmc",
    "langevin",
    "mala",
    "nose_hoover",
    "preconditioned_langevin",
    "underdamped_langevin",
]
