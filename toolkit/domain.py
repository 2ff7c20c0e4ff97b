"""A region of space as the engine sees it: one compiled function that looks all lanes up, and its tables."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Domain(NamedTuple):
    """A region of R^dim for the engine: a function behind ``signatures.DOMAIN`` and its tables."""

    name: str
    dim: int
    look: Any
    real: NDArray[np.float64]
    whole: NDArray[np.int32]


def is_inside(domain: Domain, points: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether each of ``points`` (n, dim) is finite and inside the domain or on its boundary, as the engine sees it."""
    position = np.array(points.T, order="C")
    outside = np.ones(position.shape[1])
    domain.look(position, np.empty_like(position), outside, domain.real, domain.whole)
    return np.asarray(np.isfinite(position).all(axis=0) & (outside == 0.0))
