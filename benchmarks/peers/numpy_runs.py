"""Packages that take a log density in NumPy, without gradients: emcee, dynesty, and those of parallel tempering.

emcee's ensemble of stretch moves has half of its walkers evaluated at once. The others sample in a box of the plane.
Each with its defaults as far as it has any: dynesty's dynamic nested sampling till it ends by itself; ptemcee,
reddemcee and eryn with ``RUNGS`` temperatures up to infinity, 32 walkers each and adapted ladders. A tenth of their
sweeps is burn-in. An evaluation is one of the likelihood. ptemcee 1.0.0 and eryn 1.2.6 use names that NumPy 2 has no
more (``float``, ``in1d``), which are put back for them.
"""

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

RUNGS, WALKERS = 8, 32

for name, value in (("float", float), ("int", int), ("bool", bool), ("in1d", getattr(np, "isin", None))):
    if not hasattr(np, name):
        setattr(np, name, value)


def cosine25(x: Any) -> Any:
    """log density at points (…, 2)."""
    squared = (x * x).sum(-1)
    return 2.0 * np.cos(2.0 * math.pi * x).sum(-1) - 0.2 * squared - np.where(squared > 20.0, squared - 20.0, 0.0)


def gaussian_grid25(x: Any) -> Any:
    """log density at points (walker, 2), up to a constant, as the product of two mixtures."""
    nearest = 2.0 * np.clip(np.round(0.5 * x), -2.0, 2.0)
    away = x - nearest
    shift = np.arange(-4.0, 5.0, 2.0) - nearest[..., None]
    total = np.exp(shift * (shift - 2.0 * away[..., None]) / -0.06).sum(-1)
    return (np.log(total) - away * away / 0.06).sum(1)


def egg_crate(x: Any) -> Any:
    """The classic egg box."""
    return (2.0 + np.cos(0.5 * x[..., 0]) * np.cos(0.5 * x[..., 1])) ** 5


def gaussian_shells(x: Any) -> Any:
    """Two shells of radius 2 and width 0.1 about (±3.5, 0)."""
    depths = [-50.0 * (np.hypot(x[..., 0] - centre, x[..., 1]) - 2.0) ** 2 for centre in (-3.5, 3.5)]
    return np.logaddexp(*depths)


def dual_moon(x: Any) -> Any:
    """Two moons on a circle of radius 2."""
    gap = (np.hypot(x[..., 0], x[..., 1]) - 2.0) / 0.4
    return -0.5 * gap**2 + np.logaddexp(-0.5 * ((x[..., 0] - 2.0) / 0.6) ** 2, -0.5 * ((x[..., 0] + 2.0) / 0.6) ** 2)


BOXES: dict[str, tuple[Callable[[Any], Any], float, float]] = {
    "cosine25": (cosine25, -6.0, 6.0),
    "egg_crate": (egg_crate, 0.0, 10.0 * math.pi),
    "gaussian_shells": (gaussian_shells, -6.0, 6.0),
    "dual_moon": (dual_moon, -4.0, 4.0),
}


def energies(name: str, points: Any) -> Callable[[], Any]:
    """Energies at ``points``, to be compared with ours."""
    return lambda: (-BOXES[name][0](np.asarray(points))).tolist()


class Walk:
    """The likelihood and the uniform prior of a box, with a count of evaluations."""

    def __init__(self, name: str) -> None:
        self._function, self.low, self.high = BOXES[name]
        self.evaluations = 0

    def likelihood(self, x: Any) -> Any:
        """At points (…, 2)."""
        points = np.asarray(x)
        self.evaluations += points.size // 2
        return self._function(points)

    def prior(self, x: Any) -> Any:
        """Zero inside, of one point."""
        points = np.asarray(x)
        return 0.0 if ((points >= self.low) & (points <= self.high)).all() else -np.inf

    def starts(self, seed: int) -> Any:
        """Of all rungs and walkers, uniform in the box."""
        return np.random.default_rng(seed).uniform(self.low, self.high, (RUNGS, WALKERS, 2))


def by_dynesty(walk: Walk, evaluations: int, seed: int) -> Any:
    """Draws and weights, and log Z."""
    import dynesty

    sampler = dynesty.DynamicNestedSampler(
        lambda x: float(walk.likelihood(x)), lambda u: walk.low + (walk.high - walk.low) * u, 2,
        rstate=np.random.default_rng(seed),
    )  # fmt: skip
    sampler.run_nested(print_progress=False)
    return sampler.results.samples, sampler.results.importance_weights()


def sweeps(evaluations: int) -> int:
    """As many evaluations take so many of these of all walkers."""
    return max(20, evaluations // (RUNGS * WALKERS))


def equal(chain: Any) -> Any:
    """(sweep, walker, 2) as draws of equal weight, without the first tenth."""
    draws = np.asarray(chain)[len(chain) // 10 :].reshape(-1, 2)
    return draws, np.full(len(draws), 1.0 / len(draws))


def by_ptemcee(walk: Walk, evaluations: int, seed: int) -> Any:
    """Parallel tempering of stretch moves."""
    import ptemcee

    sampler = ptemcee.Sampler(
        WALKERS, 2, walk.likelihood, walk.prior, ntemps=RUNGS, Tmax=np.inf, random=np.random.RandomState(seed)
    )  # fmt: skip
    sampler.run_mcmc(walk.starts(seed), sweeps(evaluations), adapt=True)
    return equal(sampler.chain[0].swapaxes(0, 1))


def by_reddemcee(walk: Walk, evaluations: int, seed: int) -> Any:
    """Parallel tempering of stretch moves, ladder by equal swap rates."""
    import reddemcee

    np.random.seed(seed)
    sampler = reddemcee.PTSampler(WALKERS, 2, walk.likelihood, walk.prior, ntemps=RUNGS)
    sampler.run_mcmc(walk.starts(seed), sweeps(evaluations), 1, progress=False)
    return equal(sampler.get_chain()[0])


def by_eryn(walk: Walk, evaluations: int, seed: int) -> Any:
    """Parallel tempering of stretch moves."""
    from eryn.ensemble import EnsembleSampler
    from eryn.prior import ProbDistContainer, uniform_dist

    np.random.seed(seed)
    priors = {"model_0": ProbDistContainer({d: uniform_dist(walk.low, walk.high) for d in range(2)})}
    sampler = EnsembleSampler(
        WALKERS, [2], walk.likelihood, priors, vectorize=True, tempering_kwargs={"ntemps": RUNGS, "Tmax": np.inf}
    )  # fmt: skip
    sampler.run_mcmc({"model_0": walk.starts(seed)[:, :, None]}, sweeps(evaluations))
    return equal(sampler.get_chain()["model_0"][:, 0, :, 0, :].reshape(-1, WALKERS, 2))


METHODS = {"dynesty": by_dynesty, "ptemcee": by_ptemcee, "reddemcee": by_reddemcee, "eryn": by_eryn}


def tempered(name: str, method: str, edges: Any, evaluations: int) -> Callable[[], Any]:
    """A run a call, each with a seed of its own: counts in cells and beyond, evaluations, processor seconds.

    Counts sum to Kish's sample size.
    """
    grid = [np.asarray(one) for one in edges]
    seeds = iter(range(1_000))

    def call() -> Any:
        walk, seed = Walk(name), next(seeds)
        started = time.process_time()
        draws, weights = METHODS[method](walk, evaluations if seed else evaluations // 20, seed)
        seconds = time.process_time() - started
        shares = weights / weights.sum()
        size = 1.0 / float((shares**2).sum())
        counts = np.histogramdd(draws, bins=grid, weights=shares)[0].ravel()
        sums = [*(size * counts).tolist(), float(size * max(0.0, 1.0 - counts.sum()))]
        return {"sums": sums, "gradients": walk.evaluations, "seconds": seconds}

    return call


def stretch(target: str, n_chains: int, n_steps: int) -> Callable[[], Any]:
    """``n_chains`` walkers, as many as there are chains elsewhere."""
    import emcee

    log_density = {"cosine25": cosine25, "gaussian_grid25": gaussian_grid25}[target]
    sampler = emcee.EnsembleSampler(n_chains, 2, log_density, vectorize=True)
    start = np.random.default_rng(1).uniform(-4.0, 4.0, (n_chains, 2))
    return lambda: sampler.run_mcmc(start, n_steps, store=False) and None


CASES = {"tempered": tempered, "energies": energies, "stretch": stretch}
