"""Mathematics in compiled code, lane by lane: elementary and special functions, random numbers, medians, powers."""

from .elementary import fma

__all__ = ["fma"]
