"""Priors of single parameters as kernels: one row of numbers per parameter says which and with what numbers."""

import math

from toolkit.compiling import kernel
from toolkit.maths import exp_share, fma, log, select

# The table has a row per parameter: which of these laws, its location, 1/scale², and where its mixture begins and how
# many parts it has. After the rows come the mixtures' parts: log of weight / scale, and 1/scale².
N_KINDS = 5
FLAT, GAUSSIAN, LOG_NORMAL, LAPLACE, MIXTURE = range(N_KINDS)
KIND, LOCATION, PRECISION, FIRST, PARTS, WIDTH = range(6)


@kernel
def add_priors(theta, energy, slope, table):
    """Add every prior's −log density, up to a constant, and its derivative to those of the likelihood."""
    for k in range(theta.shape[0]):
        kind, location = table[WIDTH * k + KIND], table[WIDTH * k + LOCATION]
        precision = table[WIDTH * k + PRECISION]
        if kind == GAUSSIAN:
            add_gaussian(theta[k], energy, slope[k], location, precision)
        elif kind == LOG_NORMAL:
            add_log_normal(theta[k], energy, slope[k], location, precision)
        elif kind == LAPLACE:
            add_laplace(theta[k], energy, slope[k], location, precision)
        elif kind == MIXTURE:
            first, parts = int(table[WIDTH * k + FIRST]), int(table[WIDTH * k + PARTS])
            add_mixture(theta[k], energy, slope[k], table[first : first + 2 * parts])


@kernel
def add_gaussian(x, energy, slope, mean, precision):
    """½ (x − mean)² / sd²."""
    for lane in range(x.size):
        slope[lane] = fma(precision, x[lane] - mean, slope[lane])
        energy[lane] = fma(0.5 * precision * (x[lane] - mean), x[lane] - mean, energy[lane])


@kernel
def add_log_normal(x, energy, slope, mu, precision):
    """½ (log x − μ)² / σ² + log x for x > 0; else an energy of inf."""
    for lane in range(x.size):
        inside = x[lane] > 0.0
        value = select(inside, x[lane], 1.0)
        logarithm = log(value)
        pull = fma(precision, logarithm - mu, 1.0) / value
        slope[lane] = select(inside, slope[lane] + pull, 0.0)
        gain = fma(0.5 * precision * (logarithm - mu), logarithm - mu, logarithm)
        energy[lane] = select(inside, energy[lane] + gain, math.inf)


@kernel
def add_laplace(x, energy, slope, mean, precision):
    """|x − mean| / scale; at the kink the mean of both slopes."""
    rate = math.sqrt(precision)
    for lane in range(x.size):
        gap = x[lane] - mean
        slope[lane] += select(gap > 0.0, rate, select(gap < 0.0, -rate, 0.0))
        energy[lane] = fma(rate, abs(gap), energy[lane])


@kernel
def add_mixture(x, energy, slope, parts):
    """−log Σ_j w_j N(x; 0, s_j²), of (log(w_j / s_j), 1/s_j²) in ``parts``."""
    n = parts.size // 2
    for lane in range(x.size):
        square = x[lane] * x[lane]
        peak = -math.inf
        for j in range(n):
            exponent = fma(-0.5 * parts[2 * j + 1], square, parts[2 * j])
            peak = select(exponent > peak, exponent, peak)
        total, pull = 0.0, 0.0
        for j in range(n):
            share = exp_share(fma(-0.5 * parts[2 * j + 1], square, parts[2 * j]) - peak)
            total += share
            pull = fma(share, parts[2 * j + 1], pull)
        energy[lane] -= peak + log(total)
        slope[lane] = fma(pull / total, x[lane], slope[lane])
