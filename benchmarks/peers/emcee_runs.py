"""emcee's ensemble: stretch moves without gradients, its log density in NumPy for half of the walkers at once."""

import math
from collections.abc import Callable
from typing import Any

import emcee
import numpy as np


def cosine25(x: Any) -> Any:
    """log density at points (walker, 2)."""
    squared = (x * x).sum(1)
    return 2.0 * np.cos(2.0 * math.pi * x).sum(1) - 0.2 * squared - np.where(squared > 20.0, squared - 20.0, 0.0)


def gaussian_grid25(x: Any) -> Any:
    """log density at points (walker, 2), up to a constant, as the product of two mixtures."""
    nearest = 2.0 * np.clip(np.round(0.5 * x), -2.0, 2.0)
    away = x - nearest
    shift = np.arange(-4.0, 5.0, 2.0) - nearest[..., None]
    total = np.exp(shift * (shift - 2.0 * away[..., None]) / -0.06).sum(-1)
    return (np.log(total) - away * away / 0.06).sum(1)


def stretch(target: str, n_chains: int, n_steps: int) -> Callable[[], Any]:
    """``n_chains`` walkers, as many as there are chains elsewhere."""
    log_density = {"cosine25": cosine25, "gaussian_grid25": gaussian_grid25}[target]
    sampler = emcee.EnsembleSampler(n_chains, 2, log_density, vectorize=True)
    start = np.random.default_rng(1).uniform(-4.0, 4.0, (n_chains, 2))
    return lambda: sampler.run_mcmc(start, n_steps, store=False) and None


CASES = {"stretch": stretch}
