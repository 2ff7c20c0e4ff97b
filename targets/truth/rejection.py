"""Exact draws by rejection, with an error where the acceptance is below 1e-5."""

from collections.abc import Callable
from typing import Any

import numpy as np

from toolkit.errors import check_count, check_room

from ..arrays import Array

MIN_ACCEPTANCE = 1e-5


def accepted(n: int, dim: int, propose: Callable[[int], Array], *, name: str) -> Array:
    """``n`` points (n, dim) out of those that ``propose`` (number tried → points accepted) gives, in order.

    Raises ValueError for a negative n, or where fewer than 1 in 10⁵ proposals are accepted.
    """
    n = check_draws(n, dim)
    kept: list[Array] = [np.empty((0, dim))]
    found, tried = 0, 0
    while found < n:
        batch = max(1024, min(2 * n, 1 << 20))
        kept.append(propose(batch))
        found, tried = found + len(kept[-1]), tried + batch
        if tried >= 1_000_000 and found < MIN_ACCEPTANCE * tried:
            raise ValueError(f"{name}: rejection accepts {found} of {tried} proposals, which is too few to go on")
    return np.concatenate(kept)[:n]


def check_draws(n: Any, dim: int) -> int:
    """``n`` as a number of points in ``dim`` dimensions. Raises where it is none or too large."""
    number = check_count("n", n, at_least=0)
    check_room("n", number, 16.0 * number * dim)
    return number


def generator(seed: Any) -> np.random.Generator:
    """NumPy's default generator for a ``seed`` ≥ 0. Raises TypeError or ValueError for anything else."""
    return np.random.default_rng(check_count("seed", seed, at_least=0, below=2**64))
