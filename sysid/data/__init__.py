"""Time series to identify a system from: ``Series``, simulated data, arrays and files, and checks of them.

Solvers lie below this room; likelihoods and ``identify`` use ``Series`` and ``check_series``.
"""

from .checks import check
from .files import load
from .series import check_series
from .sources import from_arrays, from_dataframe, lynx_hare, simulate

__all__ = ["check", "check_series", "from_arrays", "from_dataframe", "load", "lynx_hare", "simulate"]
