"""A region of space as the engine sees it: one compiled function that looks all lanes up, and its tables."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .binding import bound
from .compiling import compile_part
from .signatures import DOMAIN


class Domain(NamedTuple):
    """A region of R^dim for the engine: a function behind ``signatures.DOMAIN``, compiled, and its tables."""

    name: str
    dim: int
    look: Any
    real: NDArray[np.float64]
    whole: NDArray[np.int32]

    def compiled(self) -> "Domain":
        """The domain with its function compiled for the engine."""
        return self._replace(look=compile_part(bound(self.look), DOMAIN, handed=True))


def is_inside(domain: Domain, points: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether each of ``points`` (n, dim) is finite and inside the domain or on its boundary, as the engine sees it."""
    position = np.array(points.T, order="C")
    outside = np.ones(position.shape[1])
    domain.look(position, np.empty_like(position), outside, domain.real, domain.whole)
    return np.asarray(np.isfinite(position).all(axis=0) & (outside == 0.0))
