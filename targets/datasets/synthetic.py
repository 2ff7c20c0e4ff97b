"""Synthetic tables of the shapes of the UCI data sets, made from a seed, with correlated columns.

They are no copies: only shape, number of levels and class counts agree with the files.
"""

import numpy as np

from ..arrays import Array, Integers
from .files import MUSHROOM_CODES, MUSHROOM_ROWS

Labels = Integers

SEED = 2026


def numbers(rows: int, levels: tuple[int, ...], n_positive: int, *, strength: float, seed: int) -> tuple[Array, Labels]:
    """Attributes (rows, attributes) and labels with ``n_positive`` ones.

    levels: of each attribute, 0 for a continuous one, skewed to the right; else codes 1 … level. The latent normals
    share three factors, which makes correlations of 0.2 or so; the label is 1 where a linear score of the latents plus
    a logistic noise is largest, the score's standard deviation being ``strength``.
    """
    rng = np.random.default_rng([SEED, seed])
    latent = correlated(rng, rows, len(levels))
    table = np.empty_like(latent)
    for c, level in enumerate(levels):
        if level == 0:
            table[:, c] = np.round(np.exp(2.0 + 0.8 * latent[:, c]), 2)
        else:
            table[:, c] = 1.0 + levels_by_rank(latent[:, c], rng.dirichlet(np.full(level, 3.0)))
    return table, make_labels(rng, latent, n_positive, strength)


def mushroom() -> tuple[list[str], Labels]:
    """Rows of 22 codes, each code at least once, and labels; 2480 marks '?' of stalk-root, as the file has."""
    rng = np.random.default_rng([SEED, 4])
    latent = correlated(rng, MUSHROOM_ROWS, len(MUSHROOM_CODES))
    columns = []
    for c, (name, codes) in enumerate(MUSHROOM_CODES.items()):
        shares = 0.9 * rng.dirichlet(np.full(len(codes), 1.0)) + 0.1 / len(codes)
        if name == "stalk-root":  # '?' is its first code
            shares[1:] *= (1.0 - 2480 / MUSHROOM_ROWS) / shares[1:].sum()
            shares[0] = 2480 / MUSHROOM_ROWS
        columns.append(np.array(list(codes))[levels_by_rank(latent[:, c], shares)])
    return ["".join(row) for row in np.array(columns).T], make_labels(rng, latent, 3916, 8.0)


def correlated(rng: np.random.Generator, rows: int, columns: int) -> Array:
    """Standard normals (rows, columns) that share three factors."""
    loadings = rng.normal(0.0, 0.35, (3, columns))
    unique_sd = np.sqrt(np.maximum(1.0 - (loadings**2).sum(axis=0), 0.2))
    return np.asarray(rng.standard_normal((rows, 3)) @ loadings + unique_sd * rng.standard_normal((rows, columns)))


def levels_by_rank(values: Array, shares: Array) -> Labels:
    """Levels 0, 1, … of ``values`` by rank, with these shares of the rows."""
    ranks = np.argsort(np.argsort(values))
    ends = np.round(np.cumsum(shares) * len(values))
    return np.asarray(np.searchsorted(ends[:-1], ranks, side="right"), np.int64)


def make_labels(rng: np.random.Generator, latent: Array, n_positive: int, strength: float) -> Labels:
    """1 for the ``n_positive`` rows of the largest score plus logistic noise, else 0."""
    direction = rng.standard_normal(latent.shape[1])
    score = latent @ direction
    noisy = strength * (score - score.mean()) / score.std() + rng.logistic(size=len(latent))
    labels = np.zeros(len(latent), np.int64)
    labels[np.argsort(noisy)[-n_positive:]] = 1
    return labels
