"""Numbers of samplers found by short runs: ``tune``, and the ``Tuned`` that it makes."""

from .procedure import tune
from .result import Cost, Tuned
from .study import Round

__all__ = ["Cost", "Round", "Tuned", "tune"]
