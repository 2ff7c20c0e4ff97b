"""Walks: a reflected random walk on a flat energy is uniform on every shape, and a clamped one is not; χ² p-values.

The last points of 100,000 walks of 50 steps of length 0.02 from uniform starts, against 200,000 fresh uniform points:
on squares of equal area, and on cells along the edge. A right law gives a p-value below 10⁻⁵ once in 10⁵ times.
"""

import functools

import numpy as np
from scipy.stats import chi2_contingency

from targets import shapes
from tests.support.simple_targets import flat_block
from toolkit import Problem, Target, boundaries, sample, samplers
from toolkit.problem.definition import Domain

SHAPES = {"flower": shapes.flower(), "heart": shapes.heart(), "polygon": shapes.polygon(), "cross": shapes.cross()}
CHAINS = 100_000
BIN = 0.25


FLAT = Target("flat", 2, flat_block)


def walk(problem, shape, seed, step_size=2e-4, n_steps=50):
    """Last points of many short reflected walks from uniform starts."""
    sampler = samplers.sgld(step_size, boundary=boundaries.reflect())
    start = shape.uniform_draws(CHAINS, seed=seed)
    return sample(problem, sampler, n_steps=n_steps, thin=n_steps, n_chains=CHAINS, init=start, seed=seed)


def pvalue(cells, other_cells):
    """That two samples of cell numbers have one law; cells with few counts are pooled."""
    size = int(max(cells.max(), other_cells.max())) + 1
    table = np.stack([np.bincount(cells, minlength=size), np.bincount(other_cells, minlength=size)])
    rare = table.sum(axis=0) < 40
    table = np.column_stack([table[:, ~rare], table[:, rare].sum(axis=1)])
    return chi2_contingency(table[:, table.sum(axis=0) > 0]).pvalue


def square_cells(points, shape):
    """Which cell of a grid of squares of equal area each point is in."""
    i, j = np.floor((points - shape.bounds[0]) / BIN).astype(int).T
    return i * 1000 + j


def edge_cells(points, shape):
    """Cells along the edge: 4 thin bands of distance times 16 directions from the centre; the interior is one more."""
    distance = shape.distance(points)
    assert (distance >= 0).all()
    band = np.minimum((distance / 0.02).astype(int), 4)
    sector = ((np.arctan2(points[:, 1], points[:, 0]) / np.pi + 1.0) * 8.0).astype(int) % 16
    return np.where(band < 4, band * 16 + sector, 64)


def clamping(domain):
    """The same domain, except that a reflection ends at the nearest boundary point instead of behind it."""
    locate = domain.locate

    def clamp(position, mirror_point, outside, float_table, int_table):
        locate(position, mirror_point, outside, float_table, int_table)
        for lane in range(position.shape[1]):
            if outside[lane] != 0.0:
                for d in range(position.shape[0]):
                    mirror_point[d, lane] = (0.5 + 1e-6) * mirror_point[d, lane] + (0.5 - 1e-6) * position[d, lane]

    return Domain("clamped", domain.dim, clamp, domain.float_table, domain.int_table).compiled()


@functools.cache
def uniform_cells(name):
    """Cells of fresh uniform points: squares, and those along the edge."""
    uniform = SHAPES[name].uniform_draws(2 * CHAINS, seed=99)
    return square_cells(uniform, SHAPES[name]), edge_cells(uniform, SHAPES[name])


def pvalues(name, *, clamped):
    """χ² p-values on squares and on cells along the edge, and the number of reflections."""
    shape = SHAPES[name]
    run = walk(Problem(FLAT, clamping(shape.domain) if clamped else shape.domain), shape, seed=31)
    points, (squares, along_the_edge) = run.draws[:, 0], uniform_cells(name)
    return (
        pvalue(square_cells(points, shape), squares),
        pvalue(edge_cells(points, shape), along_the_edge),
        int(run.reflections.sum()),
    )
