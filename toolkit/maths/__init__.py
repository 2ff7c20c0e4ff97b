"""Mathematics in compiled code, lane by lane: elementary and special functions, random numbers, medians, powers.

The functions exported here are those that a block function of a user may call.
"""

from .elementary import exp, fma, larger, log, power, select, sincos, sincos_turns, smaller

__all__ = ["exp", "fma", "larger", "log", "power", "select", "sincos", "sincos_turns", "smaller"]
