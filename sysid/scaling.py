"""Coordinates in which the parameters of a problem have about unit covariance, so that one step size suits all."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolkit.checks import check_array

from .conditioning import laplace
from .constraints import Coordinates
from .identification import Identification
from .identify import assembled


def scaled_coordinates(problem: Identification, mode: Any, root: Any) -> Coordinates:
    """Coordinates about ``mode`` with the square root ``root``, as ``Identification.scaled`` has them.

    Raises ValueError where one is given alone, or does not fit.
    """
    if (mode is None) != (root is None):
        raise ValueError("mode and root must be given both or neither")
    q = problem.dim
    plain = Coordinates(problem.coordinates.log, np.zeros(q), np.eye(q))
    if mode is not None:
        return Coordinates(plain.log, plain.positions(checked_mode(mode, plain.log)), checked_root(root, q))
    if problem.posterior is not None and not plain.log.any():
        return Coordinates(
            plain.log, problem.posterior.mean, np.asarray(np.linalg.cholesky(problem.posterior.covariance))
        )
    unscaled = assembled(replace(problem, coordinates=plain))
    return Coordinates(plain.log, *laplace(unscaled.target, plain.positions(problem.usual_start())))


def checked_mode(mode: Any, log: NDArray[np.bool_]) -> NDArray[np.float64]:
    """``mode`` as parameters (q,), > 0 where ``log``."""
    values = check_array("mode", mode)
    if values.shape != log.shape or (values[log] <= 0.0).any():
        raise ValueError(f"mode must have shape {log.shape}, and > 0 where logarithms are sampled, got {mode!r:.200}")
    return values


def checked_root(root: Any, q: int) -> NDArray[np.float64]:
    """``root`` as an invertible matrix (q, q)."""
    factor = check_array("root", root)
    if factor.shape != (q, q) or np.linalg.matrix_rank(factor) < q:
        raise ValueError(f"root must be an invertible matrix ({q}, {q}), got {root!r:.200}")
    return factor
