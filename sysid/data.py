"""Data to identify a system from, and checks of them; the public face of the modules that hold them."""

from .data_sources import from_arrays, lynx_hare, simulate
from .reading import load
from .series import check_series
from .symptoms import check

__all__ = ["check", "check_series", "from_arrays", "load", "lynx_hare", "simulate"]
