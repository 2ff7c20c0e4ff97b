"""A region of space as the engine sees it: one compiled function that looks all lanes up, and its tables."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .binding import bound
from .compiling import compile_part
from .signatures import DOMAIN


class Domain(NamedTuple):
    """A region of R^dim for the engine: a function behind ``signatures.DOMAIN``, compiled, and its tables.

    nearest: an uncompiled function behind the same signature, whose foot is the domain's point nearest to the lane;
    None where that is not known.
    """

    name: str
    dim: int
    look: Any
    real: NDArray[np.float64]
    whole: NDArray[np.int32]
    nearest: Callable[..., None] | None = None

    def compiled(self) -> "Domain":
        """The domain with its function compiled for the engine."""
        return self._replace(look=compile_part(bound(self.look), DOMAIN, handed=True))

    def look_for(self, boundary: str) -> Callable[..., None]:
        """The uncompiled function that a boundary of this kind needs; the one for points to mirror in serves most."""
        look: Callable[..., None] = self.look.py_func
        return look if boundary != "penalise" or self.nearest is None else self.nearest


def is_inside(domain: Domain, points: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether each of ``points`` (n, dim) is finite and inside the domain or on its boundary, as the engine sees it."""
    position = np.array(points.T, order="C")
    outside = np.ones(position.shape[1])
    domain.look(position, np.empty_like(position), outside, domain.real, domain.whole)
    return np.asarray(np.isfinite(position).all(axis=0) & (outside == 0.0))
