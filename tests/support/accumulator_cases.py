"""Problems, edges and one accumulator of each kind; and what one gathers of given draws, in cuts."""

import itertools

import numpy as np

from targets import mixtures
from toolkit import Target, accumulators
from toolkit.problem.definition import Problem

EDGES = np.linspace(-2.0, 2.5, 16)
UNEVEN = np.array([-3.0, -1.1, -1.0, 0.25, 0.3, 2.0])
COSINE = mixtures.cosine25()


def every(masses, at):
    return {
        "moments": accumulators.moments(),
        "plane": accumulators.histogram(EDGES, UNEVEN),
        "line": accumulators.histogram(UNEVEN, coordinates=(1, 0)),
        "kl": accumulators.kl(masses, EDGES, EDGES, at=at),
        "energies": accumulators.energy_histogram(np.linspace(-4.0, 8.0, 25)),
        "best": accumulators.best_point(),
        "batches": accumulators.batch_means(8),
    }


def problem(dim):
    return Problem(Target("any", dim, lambda position, energy, gradient, parameters, scratch: None))


def gathered(accumulator, draws, weights=None, energies=None, steps=None, cuts=()):
    """The result after the draws have come in pieces."""
    return accumulator.result(filled(accumulator, draws, weights, energies, steps, cuts))


def filled(accumulator, draws, weights=None, energies=None, steps=None, cuts=()):
    """The state after the draws have come in pieces."""
    steps = np.arange(draws.shape[1]) if steps is None else steps
    replicas = draws.shape[1] // steps.size
    state = accumulator.start(problem(draws.shape[2]), len(draws))
    ends = [0, *cuts, steps.size]
    for first, last in itertools.pairwise(ends):
        part = slice(first * replicas, last * replicas)
        pieces = [None if a is None else a[:, part] for a in (weights, energies)]
        accumulator.update(state, draws[:, part], *pieces, steps[first:last])
    return state


def assert_same(a, b):
    for name, x, y in zip(a._fields, a, b, strict=True):
        np.testing.assert_array_equal(x, y, err_msg=name)


def autoregression(phi, n, chains, seed):
    """An AR(1) of variance 1 from its start on, (chain, draw, 1)."""
    noise = np.random.default_rng(seed).standard_normal((chains, n))
    x = np.empty((chains, n))
    x[:, 0] = noise[:, 0]
    for t in range(1, n):
        x[:, t] = phi * x[:, t - 1] + np.sqrt(1.0 - phi**2) * noise[:, t]
    return x[..., None]


def mean_variance(phi, n):
    """Variance of the mean of n draws of that AR(1)."""
    return ((1.0 + phi) / (1.0 - phi) - 2.0 * phi * (1.0 - phi**n) / (n * (1.0 - phi) ** 2)) / n
