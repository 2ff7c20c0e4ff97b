"""Likelihoods of time series: of velocities, of integrals over windows (weak form), or of whole trajectories.

``identify`` takes one by name or made here. Each has a method ``prepare``, which makes a ``Prepared`` from data and a
model: a kernel with its numbers.
"""

from typing import Any

from toolkit.errors import is_a, shown

from .interface import Likelihood
from .trajectories import trajectory
from .velocity import derivative
from .weak_form import weak

__all__ = ["derivative", "trajectory", "weak"]

BY_NAME: dict[str, Any] = {"derivative": derivative, "weak": weak, "trajectory": trajectory}


def of(likelihood: Any) -> Likelihood:
    """The likelihood of that name, with its defaults; or one as it is. Raises TypeError or ValueError otherwise."""
    known = ", ".join(map(repr, BY_NAME))
    if is_a(likelihood, str):
        if likelihood not in BY_NAME:
            raise ValueError(f"likelihood must be one of {known}, got {shown(likelihood)}")
        return BY_NAME[likelihood]()  # type: ignore[no-any-return]
    if not callable(getattr(likelihood, "prepare", None)):
        raise TypeError(f"likelihood must be one of {known} or made by sysid.likelihoods, got {shown(likelihood)}")
    return likelihood  # type: ignore[no-any-return]
