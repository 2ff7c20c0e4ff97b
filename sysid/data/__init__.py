"""Data to identify a system from, and checks of them; the public face of the modules that hold them."""

from .checks import check
from .files import load
from .series import check_series
from .sources import from_arrays, lynx_hare, simulate

__all__ = ["check", "check_series", "from_arrays", "load", "lynx_hare", "simulate"]
