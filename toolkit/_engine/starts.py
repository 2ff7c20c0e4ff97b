"""Where chains start that were given no start: each at a point of its own, a pure function of seed, chain and replica.

Points are uniform in a box (``Boxes``) and drawn anew where they lie outside the domain, or where energy or gradient
is not finite. The random numbers are the package's own (``philox``), on the host, so that they depend on neither the
number of chains, blocks, threads nor the device.
"""

from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..maths.philox import HALF_WORD, INITIAL, LOW, MANTISSA_SHIFT, WORD, philox4x32
from ..problem.definition import Problem, Spread

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

NARROW_TRIES = 32  # in the box that the target states, before the whole domain is tried
TRIES = 100  # of a point whose energy is not finite; and of one outside, where a point inside is known to go to
BLIND_TRIES = 10_000  # of a point outside, where none inside is known: misses 0.2 % of the box once in 5·10⁸
HALVINGS = 60
NUMBERS = 2**15  # drawn at a time, which stay in a processor's cache


class Boxes(NamedTuple):
    """Lower and upper corners of what starts are uniform in: first the narrow box, then the wide one.

    inner: a point of a convex domain, towards which points outside are moved at last; None where none is known.
    """

    narrow: tuple[Floats, Floats]
    wide: tuple[Floats, Floats]
    inner: Floats | None


def boxes_of(problem: Problem, spread: Spread | None) -> Boxes:
    """The boxes of ``spread``, or for None those of the domain, the scale that the target states, or ±2.

    A bounded domain gives the wide box; where a coordinate has no end, the domain's is that of the target, or as long.
    The narrow box is the part of it within the target's.
    """
    dim, target = problem.target.dim, problem.target
    if spread is not None:
        ends = spread.ends(dim)
        return Boxes(ends, ends, None)
    lower, upper = (target.spread or Spread()).ends(dim)
    region = getattr(problem.truth, "region", None)
    if problem.domain is None or region is None:
        return Boxes((lower, upper), (lower, upper), None if problem.domain is None else held(problem, lower, upper))
    low, high = region.bounds
    length = upper - lower
    wide_low = np.where(np.isfinite(low), low, np.where(np.isfinite(high), np.minimum(lower, high - length), lower))
    wide_high = np.where(np.isfinite(high), high, np.where(np.isfinite(low), np.maximum(upper, low + length), upper))
    inner = getattr(region, "interior", None)
    if target.spread is None:
        return Boxes((wide_low, wide_high), (wide_low, wide_high), inner)
    least, most = np.maximum(lower, wide_low), np.minimum(upper, wide_high)
    meets = least < most
    return Boxes((np.where(meets, least, wide_low), np.where(meets, most, wide_high)), (wide_low, wide_high), inner)


def held(problem: Problem, lower: Floats, upper: Floats) -> Floats | None:
    """The middle of the box, or else the origin, where the domain holds it."""
    candidates = np.stack([0.5 * (lower + upper), np.zeros(lower.size)])
    inside = problem.contains(candidates)
    return candidates[int(np.argmax(inside))] if inside.any() else None


def drawn_starts(problem: Problem, spread: Spread | None, seed: int, n_chains: int, n_replicas: int) -> Floats:
    """Starts (chain, replica, dim) inside the domain and of finite energy and gradient.

    Raises ValueError, naming chain and replica, where none is found.
    """
    boxes, dim = boxes_of(problem, spread), problem.target.dim
    chain, replica = np.divmod(np.arange(n_chains * n_replicas), n_replicas)
    points = np.empty((chain.size, dim))
    waiting, refused = np.arange(chain.size), np.zeros(chain.size, np.int64)
    tries = BLIND_TRIES if problem.domain is not None and boxes.inner is None else TRIES
    tried = [*repeat(boxes.narrow, NARROW_TRIES), *repeat(boxes.wide, tries)]
    for attempt, (lower, upper) in enumerate(tried):
        share = uniforms(seed, chain[waiting], replica[waiting], attempt, dim)
        trial = (1.0 - share) * lower + share * upper
        good, inside = usable(problem, trial)
        points[waiting] = trial
        refused[waiting] += inside & ~good
        waiting = waiting[~good]
        if waiting.size == 0:
            return points.reshape(n_chains, n_replicas, dim)
        if refused[waiting].max() >= TRIES:
            break
    if boxes.inner is not None:
        points[waiting] = moved_inside(problem, points[waiting], boxes.inner)
        waiting = waiting[~usable(problem, points[waiting])[0]]
    if waiting.size:
        raise ValueError(no_start(problem, boxes, points, refused, int(waiting[0]), n_replicas))
    return points.reshape(n_chains, n_replicas, dim)


def usable(problem: Problem, points: Floats) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Whether each point (n, dim) is inside with a finite energy and gradient; and whether it is inside."""
    inside = problem.contains(points)
    good = inside.copy()
    if inside.any():
        energy, gradient = problem.target.evaluate(points if inside.all() else points[inside])
        good[inside] = np.isfinite(energy) & np.isfinite(gradient).all(axis=1)
    return good, inside


def moved_inside(problem: Problem, points: Floats, inner: Floats) -> Floats:
    """``points``, moved halfway to ``inner`` until they are inside."""
    moved = points.copy()
    for _ in range(HALVINGS):
        outside = ~problem.contains(moved)
        if not outside.any():
            break
        moved[outside] = 0.5 * (moved[outside] + inner)
    return moved


def no_start(problem: Problem, boxes: Boxes, points: Floats, refused: Integers, lane: int, n_replicas: int) -> str:
    """What to say where no start was found for ``lane``."""
    chain, replica = divmod(lane, n_replicas)
    lower, upper = boxes.wide
    ends = f"{lower[:6].tolist()} and {upper[:6].tolist()}{' …' if lower.size > 6 else ''}"
    if refused[lane] == 0:
        why = "none lies inside the domain"
    else:
        energy, gradient = (values[0] for values in problem.target.evaluate(points[lane : lane + 1]))
        why = (
            f"{refused[lane]} lie inside, and none has a finite energy and gradient; the last, "
            f"{points[lane, :6].tolist()}, has energy {energy:.6g} and gradient {gradient[:6].tolist()}"
        )
        if np.isnan(gradient).any():
            why += "; an entry that is always nan is one that the target does not fill"
    return (
        f"init must be given for {problem.name!r}: of the points drawn between {ends} for chain {chain}, replica "
        f"{replica}, {why}"
    )


def uniforms(seed: int, chain: Integers, replica: Integers, attempt: int, dim: int) -> Floats:
    """Uniforms on (0, 1), (lane, dim), as ``philox.uniform_pair`` gives them for step ``attempt`` and each pair."""
    pairs = (dim + 1) // 2
    index = np.arange(pairs, dtype=np.uint64) << HALF_WORD
    purpose, rows = np.uint64(INITIAL) << HALF_WORD, max(1, NUMBERS // pairs)
    found = np.empty((chain.size, 2 * pairs))
    for first in range(0, chain.size, rows):
        lanes = slice(first, first + rows)
        words = philox4x32.py_func(
            np.uint64(attempt), purpose, chain[lanes, None].astype(np.uint64),
            replica[lanes, None].astype(np.uint64) | index, np.uint64(seed) & LOW, np.uint64(seed) >> WORD,
        )  # fmt: skip
        for place in (0, 1):
            bits = (words[2 * place] << WORD) | words[2 * place + 1]
            found[lanes, place::2] = (bits >> MANTISSA_SHIFT) * 2.0**-52 + 2.0**-53
    return found[:, :dim]


def share_one_place(start: Any) -> bool:
    """Whether all chains of ``start`` (chain, replica, dim), more than one, begin alike."""
    return len(start) > 1 and bool((start == start[:1]).all())
