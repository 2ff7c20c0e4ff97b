"""How data speak of parameters: by their velocities, by integrals against test functions, or by whole trajectories."""

from typing import Any

from .derivative import derivative
from .prepared import Likelihood

__all__ = ["derivative", "of"]

BY_NAME = {"derivative": derivative}


def of(likelihood: Any) -> Likelihood:
    """A likelihood from its name, with its defaults, or itself. Raises ValueError for what is none."""
    if isinstance(likelihood, str):
        if likelihood not in BY_NAME:
            raise ValueError(f"likelihood must be one of {', '.join(map(repr, BY_NAME))}, got {likelihood!r}")
        return BY_NAME[likelihood]()
    if not callable(getattr(likelihood, "prepare", None)):
        raise TypeError(
            f"likelihood must be one of {', '.join(map(repr, BY_NAME))} or made by sysid.likelihoods, "
            f"got {likelihood!r:.200}"
        )
    return likelihood  # type: ignore[no-any-return]
