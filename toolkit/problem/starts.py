"""Random starts of chains without ``init``: each point is a pure function of seed, chain and replica.

Points are uniform in a box (``Boxes``) and drawn again where they are outside the domain, or where energy or gradient
is not finite. The random numbers are the package's own (``philox``), on the host, so they do not depend on the number
of chains, blocks or threads, nor on the device.
"""

from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..maths.philox import HALF_WORD, INITIAL, LOW, MANTISSA_SHIFT, WORD, philox4x32_of_arrays
from .definition import Problem, Spread

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

NARROW_TRIES = 32  # in the target's box, before the whole domain is tried
TRIES = 100  # with non-finite energy; and outside the domain, if a point inside is known
BLIND_TRIES = 10_000  # outside the domain, if no point inside is known: a region of 0.2 % is missed once in 5·10⁸
HALVINGS = 60
NUMBERS = 2**15  # drawn at a time, so that they fit into the cache


class Boxes(NamedTuple):
    """Lower and upper corners (boxes, dim) of the boxes in which starts are uniform; the narrow ones are tried first.

    spread: of which they are. inner: a point inside a convex domain, towards
    which points outside are finally moved; None where none is known.
    """

    narrow: tuple[Floats, Floats]
    wide: tuple[Floats, Floats]
    spread: Spread
    inner: Floats | None


def boxes_of(problem: Problem, spread: Spread | None) -> Boxes:
    """The boxes of ``spread``; for None, from the domain and the target's ``spread``, or ±2.

    The wide box is the domain's bounding box; infinite ends are replaced by the target's, or by ends at its length. The
    narrow box is the part of the wide box within the target's.
    """
    dim, target = problem.target.dim, problem.target
    if spread is not None:
        ends = corners_of(spread, dim)
        return Boxes(ends, ends, spread, None)
    stated = target.spread or Spread()
    lower, upper = corners_of(stated, dim)
    region = getattr(problem.truth, "region", None)
    if problem.domain is None or region is None:
        inner = None if problem.domain is None else find_inside(problem, lower, upper)
        return Boxes((lower, upper), (lower, upper), stated, inner)
    low, high = region.bounds
    length = upper - lower
    wide_low = np.where(np.isfinite(low), low, np.where(np.isfinite(high), np.minimum(lower, high - length), lower))
    wide_high = np.where(np.isfinite(high), high, np.where(np.isfinite(low), np.maximum(upper, low + length), upper))
    inner = getattr(region, "interior", None)
    if target.spread is None:
        return Boxes((wide_low, wide_high), (wide_low, wide_high), stated, inner)
    least, most = np.maximum(lower, wide_low), np.minimum(upper, wide_high)
    meet = least < most
    narrow = (np.where(meet, least, wide_low), np.where(meet, most, wide_high))
    return Boxes(narrow, (wide_low, wide_high), stated, inner)


def corners_of(spread: Spread, dim: int) -> tuple[Floats, Floats]:
    """Lower and upper corners (boxes, dim)."""
    lower, upper = spread.ends(dim)
    return np.atleast_2d(lower), np.atleast_2d(upper)


def find_inside(problem: Problem, lower: Floats, upper: Floats) -> Floats | None:
    """The middle of a box, or else the origin, if it is inside the domain; else None."""
    candidates = np.concatenate([0.5 * (lower + upper), np.zeros((1, lower.shape[1]))])
    inside = problem.contains(candidates)
    return candidates[int(np.argmax(inside))] if inside.any() else None


class Keys(NamedTuple):
    """The numbers of a run's chains and replicas, by which their random numbers are drawn.

    chains: (chain,), 0, 1, … in a run by itself; those of the whole run where this one has a part of its chains.
    first_replica: 0, but where this run has a part of the replicas.
    """

    chains: Integers
    first_replica: int = 0


def draw_starts(
    problem: Problem, spread: Spread | None, seed: int, keys: Keys, n_replicas: int, *, shared: bool = False
) -> Floats:
    """Starts (chain, replica, dim) inside the domain and of finite energy and gradient.

    shared: replicas share several boxes like chains; else all of a chain are in one, so that chains which never leave
    it disagree, whatever their replicas swap. Raises ValueError, naming chain and replica, where none is found.
    """
    boxes, dim, n_chains = boxes_of(problem, spread), problem.target.dim, len(keys.chains)
    chain, replica = np.repeat(keys.chains, n_replicas), np.tile(np.arange(n_replicas), n_chains) + keys.first_replica
    points = np.empty((chain.size, dim))
    pending, n_refused = np.arange(chain.size), np.zeros(chain.size, np.int64)
    tries = BLIND_TRIES if problem.domain is not None and boxes.inner is None else TRIES
    boxes_tried = [*repeat(boxes.narrow, NARROW_TRIES), *repeat(boxes.wide, tries)]
    box = boxes.spread.box_of(chain, replica * shared)
    for attempt, (lower, upper) in enumerate(boxes_tried):
        share = uniforms(seed, chain[pending], replica[pending], attempt, dim)
        proposal = (1.0 - share) * lower[box[pending]] + share * upper[box[pending]]
        good, inside = check_usable(problem, proposal)
        points[pending] = proposal
        n_refused[pending] += inside & ~good
        pending = pending[~good]
        if pending.size == 0:
            return points.reshape(n_chains, n_replicas, dim)
        if n_refused[pending].max() >= TRIES:
            break
    if boxes.inner is not None:
        points[pending] = move_inside(problem, points[pending], boxes.inner)
        pending = pending[~check_usable(problem, points[pending])[0]]
    if pending.size:
        lane = int(pending[0])
        message = no_start_message(problem, boxes, points, n_refused, lane, (chain[lane], replica[lane], box[lane]))
        raise ValueError(message)
    return points.reshape(n_chains, n_replicas, dim)


def check_usable(problem: Problem, points: Floats) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Two masks of the points (n, dim): inside with finite energy and gradient; and inside."""
    inside = problem.contains(points)
    good = inside.copy()
    if inside.any():
        energy, gradient = problem.target.evaluate(points if inside.all() else points[inside])
        good[inside] = np.isfinite(energy) & np.isfinite(gradient).all(axis=1)
    return good, inside


def move_inside(problem: Problem, points: Floats, inner: Floats) -> Floats:
    """``points``, repeatedly moved halfway towards ``inner`` until they are inside."""
    moved = points.copy()
    for _ in range(HALVINGS):
        outside = ~problem.contains(moved)
        if not outside.any():
            break
        moved[outside] = 0.5 * (moved[outside] + inner)
    return moved


def no_start_message(
    problem: Problem, boxes: Boxes, points: Floats, refused: Integers, lane: int, numbers: tuple[int, int, int]
) -> str:
    """The error message if no start was found for ``lane``; numbers: of its chain, replica and box."""
    chain, replica, box = numbers
    lower, upper = (corners[box] for corners in boxes.wide)
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
    """Uniforms on (0, 1), (lane, dim): those of ``philox.uniform_pair`` for step ``attempt`` and each pair."""
    pairs = (dim + 1) // 2
    index = np.arange(pairs, dtype=np.uint64) << HALF_WORD
    purpose, rows = np.uint64(INITIAL) << HALF_WORD, max(1, NUMBERS // pairs)
    values = np.empty((chain.size, 2 * pairs))
    for first in range(0, chain.size, rows):
        lanes = slice(first, first + rows)
        words = philox4x32_of_arrays(
            np.uint64(attempt), purpose, chain[lanes, None].astype(np.uint64),
            replica[lanes, None].astype(np.uint64) | index, np.uint64(seed) & LOW, np.uint64(seed) >> WORD,
        )  # fmt: skip
        for parity in (0, 1):
            bits = (words[2 * parity] << WORD) | words[2 * parity + 1]
            values[lanes, parity::2] = (bits >> MANTISSA_SHIFT) * 2.0**-52 + 2.0**-53
    return values[:, :dim]


def all_start_alike(start: Any) -> bool:
    """Whether there are several chains in ``start`` (chain, replica, dim), all with the same starts."""
    return len(start) > 1 and bool((start == start[:1]).all())
