"""Dynamical systems: ``System``, textbook systems by name, and systems from a user's function or SymPy expressions."""

from .textbook import catalogue, damped_pendulum, fitzhugh_nagumo, lorenz, lotka_volterra, rossler, sir, van_der_pol
from .user_systems import from_sympy, own

__all__ = [
    "catalogue",
    "damped_pendulum",
    "fitzhugh_nagumo",
    "from_sympy",
    "lorenz",
    "lotka_volterra",
    "own",
    "rossler",
    "sir",
    "van_der_pol",
]
