"""Energy quantiles against laws of their own: closed forms, roots on a line, products, Hessians and columns."""

import functools
import math
import time
from collections.abc import Sequence

import numpy as np
from scipy import optimize, special

from targets import classics, mixtures
from targets.truth.window import WindowTruth
from toolkit import Target

UPPER = (0.999, 0.9999, 0.99999, 1.0 - 1e-6, 1.0 - 1e-9)
LOWEST = 1e-9
Tails = tuple[float, float]


def at(target: Target, x: np.ndarray) -> np.ndarray:
    """Energies (n,) at places x (n,) on a line, or points (n, 2)."""
    return target.evaluate(np.ascontiguousarray(x.reshape(len(x), target.dim)))[0]


def stretches(cuts: Sequence[float], order: int = 200) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights between cuts, that go as a cosine there, so that what ends like a root is smooth."""
    nodes, weights = np.polynomial.legendre.leggauss(order)
    angle = 0.5 * np.pi * (nodes + 1.0)
    low, length = np.array(cuts[:-1])[:, None], np.diff(cuts)[:, None]
    x = low + 0.5 * length * (1.0 - np.cos(angle))
    return x.ravel(), (0.25 * np.pi * weights * length * np.sin(angle)).ravel()


@functools.cache
def extremes(one: Target, reach: float) -> tuple[float, ...]:
    """Where the energy of a target of one dimension turns."""
    x = np.linspace(-reach, reach, 4002)
    rises = one.evaluate(x[:, None])[1][:, 0] > 0.0
    return tuple(
        optimize.brentq(lambda z: one.evaluate(np.array([[z]]))[1][0, 0], x[i], x[i + 1], xtol=1e-15)
        for i in np.flatnonzero(rises[1:] != rises[:-1])
    )


def roots(target: Target, level: float, reach: float) -> list[float]:
    """Where U = level on a line."""
    x = np.union1d(np.linspace(-reach, reach, 2001), extremes(target, reach))
    over = at(target, x) > level
    return [
        optimize.brentq(lambda z: at(target, np.array([z]))[0] - level, x[i], x[i + 1], xtol=1e-15)
        for i in np.flatnonzero(over[1:] != over[:-1])
    ]


def on_a_line(target: Target, level: float, reach: float) -> Tails:
    """∫ exp(−U) where U ≤ level, and where U > level, of a target of one dimension."""
    x, weights = stretches(np.union1d(roots(target, level, reach), np.linspace(-reach, reach, 33)), 40)
    energy = at(target, x)
    mass, below = weights * np.exp(-energy), energy <= level
    return math.fsum(mass[below]), math.fsum(mass[~below])


def of_a_product(one: Target, level: float, reach: float) -> Tails:
    """The same of two independent coordinates: over one, of the law of the other."""
    turns = extremes(one, reach)
    cuts = [root for turn in turns for root in roots(one, level - at(one, np.array([turn]))[0], reach)]
    x, weights = stretches(np.unique([-reach, reach, *turns, *cuts]), 60)
    energy = at(one, x)
    mass = weights * np.exp(-energy)
    parts = np.array([on_a_line(one, level - u, reach) for u in energy])
    return math.fsum(mass * parts[:, 0]), math.fsum(mass * parts[:, 1])


def by_columns(
    target: Target, level: float, window: Sequence[float], columns: int = 12_000, cells: int = 1200
) -> Tails:
    """The same in the plane: columns at equal steps, on each a rule of order 3 on cells that the level cuts in two."""
    nodes, weights = np.polynomial.legendre.leggauss(3)
    nodes, weights = 0.5 * (nodes + 1.0), 0.5 * weights
    y = np.linspace(window[2], window[3], cells + 1)
    width, height = (window[1] - window[0]) / columns, y[1] - y[0]
    total = np.zeros(2)
    for x in np.array_split(window[0] + width * (np.arange(columns) + 0.5), max(1, columns // 400)):
        edges = (
            at(target, np.stack(np.meshgrid(x, y, indexing="ij"), axis=-1).reshape(-1, 2)).reshape(len(x), -1) - level
        )
        i, j = np.nonzero((edges[:, 1:] > 0.0) == (edges[:, :-1] > 0.0))
        places = y[j, None] + height * nodes
        energy = at(target, np.column_stack([np.repeat(x[i], 3), places.ravel()]))
        mass = np.tile(weights, len(i)) * height * np.exp(-energy)
        is_over = np.repeat(edges[i, j] > 0.0, 3)
        total += mass[~is_over].sum(), mass[is_over].sum()
        i, j = np.nonzero((edges[:, 1:] > 0.0) != (edges[:, :-1] > 0.0))
        low, high, at_low = y[j], y[j + 1], edges[i, j]
        for _ in range(46):
            middle = 0.5 * (low + high)
            same = (at(target, np.column_stack([x[i], middle])) - level > 0.0) == (at_low > 0.0)
            low, high = np.where(same, middle, low), np.where(same, high, middle)
        for start, end, is_over in ((y[j], low, at_low > 0.0), (low, y[j + 1], at_low <= 0.0)):
            places = start[:, None] + (end - start)[:, None] * nodes
            energy = at(target, np.column_stack([np.repeat(x[i], 3), places.ravel()])).reshape(-1, 3)
            mass = (end - start) * (np.exp(-energy) @ weights)
            total += mass[~is_over].sum(), mass[is_over].sum()
    return float(width * total[0]), float(width * total[1])


def about_the_lowest(target: Target, level: float) -> float:
    """∫ exp(−U) where U ≤ level, just above the lowest energies in the plane: ellipses by their Hessians."""
    truth = target.truth
    x = truth.centres if isinstance(truth, WindowTruth) else truth.modes.centres  # there weights are dear
    steps = 1e-5 * np.vstack([np.eye(2), -np.eye(2)])
    for _ in range(30):
        slopes = target.evaluate((x[:, None] + steps).reshape(-1, 2))[1].reshape(-1, 4, 2)
        hessians = (slopes[:, :2] - slopes[:, 2:]) / 2e-5
        hessians = 0.5 * (hessians + hessians.transpose(0, 2, 1))
        x = x - np.linalg.solve(hessians, target.evaluate(x)[1][..., None])[..., 0]
    rises = np.maximum(level - at(target, x), 0.0)
    return math.exp(-level) * 2.0 * np.pi * math.fsum(np.expm1(rises) / np.sqrt(np.linalg.det(hessians)))


def say(name: str, p: float, level: float, tails: Tails, seconds: float, *, how: str) -> float:
    """Print by how much of the smaller tail the probability is off."""
    wanted = min(p, 1.0 - p)
    off = tails[0 if p <= 0.5 else 1] / wanted - 1.0
    print(
        f"{name}, p = {p:.10g}: u = {level:.6f}, its tail is {off:+.1e} of itself off ({how}; {seconds:.1f} s)",
        flush=True,
    )
    return off


LINES = {
    "unequal_pair": (mixtures.unequal_pair, 40.0),
    "three_on_a_line": (mixtures.three_on_a_line, 40.0),
    "double_well": (classics.double_well, 4.0),
}
COLUMNS = {
    "five_spots": (mixtures.five_spots, (-12.0, 12.0, -12.0, 12.0)),
    "six_petals": (mixtures.six_petals, (-14.0, 14.0, -14.0, 14.0)),
    "cosine25": (mixtures.cosine25, (-7.5, 7.5, -7.5, 7.5)),
    "cosine9": (mixtures.cosine9, (-6.5, 6.5, -6.5, 6.5)),
    "egg_box": (classics.egg_box, (-9.0, 9.0, -9.0, 9.0)),
    "muller_brown": (classics.muller_brown, (-4.0, 3.0, -3.0, 4.0)),
    "himmelblau": (classics.himmelblau, (-7.0, 7.0, -7.0, 7.0)),
    "pinched": (classics.pinched, (-2.6, 2.6, -5.0, 5.0)),
}


def main() -> None:
    """Print what is off of every target in one or two dimensions, in the upper tail and at 1e-9."""

    def known(target: Target, p: float) -> tuple[float, float]:
        begin = time.perf_counter()
        return float(target.truth.energy_quantiles([p])[0]), time.perf_counter() - begin

    for name, (make, reach) in LINES.items():
        target = make()
        whole = math.fsum(on_a_line(target, 1.0, reach))
        for p in (1e-3, 0.5, *UPPER):
            level, seconds = known(target, p)
            below, above = on_a_line(target, level, reach)
            say(name, p, level, (below / whole, above / whole), seconds, how="roots")
    comb = mixtures.gaussian_mixture(np.arange(-4.0, 5.0, 2.0)[:, None], 0.03)
    for name, target, one, reach in (
        ("gaussian_grid25", mixtures.gaussian_grid25(), comb, 8.0),
        ("double_well, dim = 2", classics.double_well(dim=2), classics.double_well(), 3.5),
    ):
        whole = math.fsum(on_a_line(one, 1.0, reach)) ** 2
        for p in (0.5, *UPPER):
            level, seconds = known(target, p)
            below, above = of_a_product(one, level, reach)
            say(name, p, level, (below / whole, above / whole), seconds, how="product")
        level, seconds = known(target, LOWEST)
        say(name, LOWEST, level, (about_the_lowest(target, level) / whole, 1.0), seconds, how="Hessians")
    for name, (make, window) in COLUMNS.items():
        target = make()
        whole = math.exp(target.truth.log_normaliser)
        for p in (0.5, 0.9999, 1.0 - 1e-6):
            level, seconds = known(target, p)
            below, above = by_columns(target, level, window)
            say(name, p, level, (below / whole, above / whole), seconds, how="columns, right to 1e-4")
        level, seconds = known(target, LOWEST)
        say(name, LOWEST, level, (about_the_lowest(target, level) / whole, 1.0), seconds, how="Hessians")
    for dim in (2, 8):
        for p in (LOWEST, *UPPER):
            level, seconds = known(classics.banana(dim=dim), p)
            law = special.gammainc(0.5 * dim, level), special.gammaincc(0.5 * dim, level)
            say(f"banana, dim = {dim}", p, level, law, seconds, how="χ²")


if __name__ == "__main__":
    main()
