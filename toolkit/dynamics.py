"""Dynamics: how a replica moves in one step. Each is a block function with its numbers, see ``moving.Dynamics``."""

from .gradient_descent import descent
from .metropolis import hmc, mala
from .moving import Dynamics
from .overdamped import langevin
from .preconditioned import preconditioned_langevin
from .thermostat import nose_hoover
from .underdamped import underdamped_langevin

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
