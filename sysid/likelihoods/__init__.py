"""How data speak of parameters: by their velocities, by integrals over windows, or by whole trajectories."""

from typing import Any

from .interface import Likelihood
from .trajectories import trajectory
from .velocity import derivative
from .weak_form import weak

__all__ = ["derivative", "trajectory", "weak"]

BY_NAME: dict[str, Any] = {"derivative": derivative, "weak": weak, "trajectory": trajectory}


def of(likelihood: Any) -> Likelihood:
    """A likelihood from its name, with its defaults, or itself. Raises TypeError or ValueError for what is none."""
    known = ", ".join(map(repr, BY_NAME))
    if isinstance(likelihood, str):
        if likelihood not in BY_NAME:
            raise ValueError(f"likelihood must be one of {known}, got {likelihood!r}")
        return BY_NAME[likelihood]()  # type: ignore[no-any-return]
    if not callable(getattr(likelihood, "prepare", None)):
        raise TypeError(f"likelihood must be one of {known} or made by sysid.likelihoods, got {likelihood!r:.200}")
    return likelihood  # type: ignore[no-any-return]
