"""What the tests of laws share: how far a sample is from a law, and Gaussians with any precision matrix."""

import numpy as np

from toolkit import Layout, sample
from toolkit._compiler.block_rows import CHAIN, MODE, SEED_LOW, STEP
from toolkit.problem.definition import Target

SIGMAS = 4.5  # a right law fails with probability 7e-6 per comparison


def deviation(values, law, slack=0.0):
    """How far the mean over independent ``values`` is from ``law``, less an absolute ``slack``, in standard errors."""
    values = np.asarray(values)
    error = values.std(ddof=1) / np.sqrt(len(values))
    return max(abs(values.mean() - law) - slack, 0.0) / error


def standard_errors(values, law):
    """The mean over the first axis of ``values``, independent ones, less ``law``, in standard errors."""
    return (values.mean(axis=0) - law) / (values.std(axis=0, ddof=1) / np.sqrt(len(values)))


def variance_deviation(draws, law):
    """How far the second moment of independent normal draws (n,) is from ``law``, in that law's standard errors."""
    return abs((draws**2).mean() / law - 1.0) / np.sqrt(2.0 / draws.size)


def gaussian_block(position, energy, gradient, parameters, scratch):
    """½ xᵀPx; parameters: P, row by row."""
    dim, lanes = position.shape
    for lane in range(lanes):
        energy[lane] = 0.0
    for i in range(dim):
        for lane in range(lanes):
            gradient[i, lane] = 0.0
        for j in range(dim):
            for lane in range(lanes):
                gradient[i, lane] += parameters[i * dim + j] * position[j, lane]
        for lane in range(lanes):
            energy[lane] += 0.5 * position[i, lane] * gradient[i, lane]


def gaussian(precision):
    """N(0, P⁻¹) for a precision matrix P (dim, dim), or for that of one dimension as a number."""
    precision = np.atleast_2d(precision)
    return Target("gaussian", len(precision), gaussian_block, precision)


def counting_block(position, energy, gradient, parameters, scratch):
    """N(0, I), which counts how often it is evaluated; it is for one block of lanes."""
    parameters[0] += 1.0
    for lane in range(position.shape[1]):
        energy[lane] = 0.0
    for d in range(position.shape[0]):
        for lane in range(position.shape[1]):
            gradient[d, lane] = position[d, lane]
            energy[lane] += 0.5 * position[d, lane] ** 2


def evaluations_per_step(sampler):
    """How often a step really evaluates its target, and how often the run says it does; for one replica and chain."""
    counts = []
    for n_steps in (100, 200):
        target = Target("counting", 1, counting_block, np.zeros(1))
        layout = Layout(chunk_steps=n_steps)  # each chunk has one evaluation more
        run = sample(target, sampler, n_steps=n_steps, init=[0.5], seed=1, threads=1, layout=layout)
        counts.append((target.parameters[0], run.gradient_evaluations))
    return tuple((np.subtract(counts[1], counts[0]) / 100).tolist())


def estimates(target, points, lanes=40_000, seed=3, step=0, mode=1.0, scratch=None):
    """(energies, gradients, scratch) at each of the points (point, dim) in ``lanes`` lanes, each a chain of its own."""
    position = np.repeat(points.T, lanes, axis=1)
    energy, gradient = np.empty(position.shape[1]), np.empty_like(position)
    scratch = np.zeros((target.scratch_rows, energy.size)) if scratch is None else scratch
    scratch[MODE], scratch[STEP], scratch[CHAIN], scratch[SEED_LOW] = mode, step, np.arange(energy.size), seed
    target.compiled()(position, energy, gradient, target.parameters, scratch)
    return energy.reshape(len(points), lanes), gradient.reshape(target.dim, len(points), lanes), scratch


def has_moments(values, mean, covariance):
    """Whether independent columns of ``values`` (dim, n) have this mean and covariance, to 4.5 standard errors."""
    n, away = values.shape[1], values - mean[:, None]
    squares = away[:, None] * away[None]
    right_mean = np.abs(away.mean(axis=1)) < SIGMAS * values.std(axis=1) / np.sqrt(n)
    right_spread = np.abs(squares.mean(axis=2) - covariance) < SIGMAS * squares.std(axis=2) / np.sqrt(n)
    return right_mean.all() and right_spread.all()
