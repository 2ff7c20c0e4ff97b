"""Convex domains in any dimension: box, half-spaces, ball, simplex, ordered coordinates, and what they have in common.

Each is a ``convex.Convex``: inside test, distance, nearest point, normal, volume and uniform draws, and a domain of
the engine. Shapes in the plane are in ``shapes``.
"""

import math
from typing import Any

import numpy as np

from toolkit.errors import check_array, check_count, check_scale, shown
from toolkit.maths.philox import MAX_DIM
from toolkit.problem import recorded

from .. import shapes
from ..arrays import Array
from .assembly import Walls, check_end, check_ends, convex_region, exponential
from .convex import Convex


@recorded("domains")
def box(lower: Any, upper: Any) -> Convex:
    """{x: lower ≤ x ≤ upper}, each (dim,); −inf and inf for sides that are not there. Volume Π (upper − lower).

    Law: reflection in it is exact for any step, of position and momentum. Raises ValueError where the shapes differ,
    lower ≥ upper, a number is nan, or no side is finite.
    """
    lower, upper = check_ends("lower", lower, -np.inf), check_ends("upper", upper, np.inf)
    if lower.shape != upper.shape:
        raise ValueError(f"lower and upper must have one shape, got {lower.shape} and {upper.shape}")
    bad = np.flatnonzero(lower >= upper)
    if bad.size:
        raise ValueError(f"lower must be < upper, got {lower[bad[0]]:g} and {upper[bad[0]]:g} in coordinate {bad[0]}")
    if not np.isfinite([lower, upper]).any():
        raise ValueError("box must have a finite side, got none: use the target without a domain")
    return convex_region("box", len(lower), Walls(lower, upper))


@recorded("domains")
def half_spaces(normals: Any, offsets: Any) -> Convex:
    """{x: a · x ≤ b} for each row a of ``normals`` (walls, dim), of any length but 0, and b of ``offsets`` (walls,).

    Raises ValueError for other shapes, a zero normal, and where what is left is empty or has no interior.
    """
    rows, values = check_array("normals", normals), check_array("offsets", offsets)
    if rows.ndim != 2 or 0 in rows.shape or rows.shape[1] >= MAX_DIM:
        raise ValueError(f"normals must have shape (walls, dim), got {rows.shape}")
    if values.shape != rows.shape[:1]:
        raise ValueError(f"offsets must have shape {rows.shape[:1]}, one per wall, got {values.shape}")
    largest = np.abs(rows).max(axis=1, keepdims=True)
    if (largest == 0.0).any():
        raise ValueError(f"normals must not be 0, got one at [{int(np.argmin(largest))}]")
    rows = rows / largest
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    with np.errstate(over="ignore"):
        values = values / largest[:, 0] / length[:, 0]
    far = np.flatnonzero(~np.isfinite(values))
    if far.size:
        raise ValueError(f"offsets / |normals| must be finite, got {values[far[0]]} at [{far[0]}]")
    return check_interior(convex_region("half_spaces", rows.shape[1], Walls(normals=rows / length, offsets=values)))


@recorded("domains")
def ball(centre: Any, radius: float) -> Convex:
    """{x: |x − centre| ≤ radius}, centre (dim,). Volume π^(dim/2) radius^dim / Γ(dim/2 + 1).

    Raises ValueError for another shape, or radius ≤ 0.
    """
    point = check_array("centre", centre)
    if point.ndim != 1 or not 0 < point.size < MAX_DIM:
        raise ValueError(f"centre must have shape (dim,) with dim ≥ 1, got {point.shape}")
    dim, radius = point.size, check_scale("radius", radius)

    def draw(n: int, rng: np.random.Generator) -> Array:
        direction = rng.standard_normal((n, dim))
        direction /= np.linalg.norm(direction, axis=1, keepdims=True)
        return np.asarray(point + radius * rng.random((n, 1)) ** (1.0 / dim) * direction)

    volume = exponential(0.5 * dim * math.log(math.pi) + dim * math.log(radius) - math.lgamma(0.5 * dim + 1.0))
    return convex_region("ball", dim, Walls(centres=point[None], radii=np.array([radius])), closed=(volume, draw))


@recorded("domains")
def simplex(dim: int) -> Convex:
    """{x: x ≥ 0, Σ x ≤ 1}: probabilities of dim + 1 outcomes, the last left out. Volume 1 / dim!."""
    dim = check_count("dim", dim, at_least=1, below=MAX_DIM)

    def draw(n: int, rng: np.random.Generator) -> Array:
        exponentials = rng.standard_exponential((n, dim + 1))
        return np.asarray(exponentials[:, :dim] / exponentials.sum(axis=1, keepdims=True))

    normals, offsets = np.full((1, dim), dim**-0.5), np.array([dim**-0.5])
    closed = 1 / math.factorial(dim), draw
    return convex_region("simplex", dim, Walls(np.zeros(dim), normals=normals, offsets=offsets), closed=closed)


@recorded("domains")
def ordered(dim: int, *, lower: float = -math.inf, upper: float = math.inf) -> Convex:
    """{x: lower ≤ x₁ ≤ x₂ ≤ … ≤ upper}: of states alike but for their numbering, each once.

    Volume (upper − lower)^dim / dim!.
    Law: reflection in it sorts the coordinates (and folds them at the ends), exactly, for any step.
    Raises ValueError for dim < 2, or lower ≥ upper.
    """
    dim = check_count("dim", dim, at_least=2, below=MAX_DIM)
    ends = check_end("lower", lower, -math.inf), check_end("upper", upper, math.inf)
    if ends[0] >= ends[1]:
        raise ValueError(f"lower must be < upper, got {ends[0]:g} and {ends[1]:g}")
    low, high = np.full(dim, -np.inf), np.full(dim, np.inf)
    low[0], high[-1] = ends
    closed = None
    if np.isfinite(ends).all():
        volume = exponential(dim * math.log(ends[1] - ends[0]) - math.lgamma(dim + 1.0))
        closed = volume, lambda n, rng: np.sort(ends[0] + (ends[1] - ends[0]) * rng.random((n, dim)), axis=1)
    normals = (np.eye(dim) - np.eye(dim, k=1))[:-1] / math.sqrt(2.0)
    return convex_region("ordered", dim, Walls(low, high, normals, np.zeros(dim - 1)), closed=closed)


@recorded("domains")
def intersection(*regions: Convex) -> Convex:
    """What the given convex regions have in common; shapes in the plane have ``shapes.intersection``.

    Raises TypeError for anything else, ValueError for regions of different dimensions, and where what they have in
    common is empty or has no interior.
    """
    if not regions:
        raise ValueError("intersection must have at least one region, got none")
    for place, region in enumerate(regions):
        if not isinstance(region, Convex):
            raise TypeError(f"regions[{place}] must be a convex region of targets.domains, got {shown(region)}")
        if region.dim != regions[0].dim:
            raise ValueError(f"regions must have one dimension, got {regions[0].dim} and {region.dim}")
    sources = [r for region in regions for r in (region, region.part_of) if r is not None and r.closed is not None]
    walls = Walls(
        lower=np.max([region.lower for region in regions], axis=0),
        upper=np.min([region.upper for region in regions], axis=0),
        normals=np.concatenate([region.normals for region in regions]),
        offsets=np.concatenate([region.offsets for region in regions]),
        centres=np.concatenate([region.centres for region in regions]),
        radii=np.concatenate([region.radii for region in regions]),
    )
    part_of = min(sources, key=lambda r: r.closed[0] if r.closed else math.inf, default=None)
    name = " ∩ ".join(region.name for region in regions)
    return check_interior(convex_region(name, regions[0].dim, walls, part_of=part_of))


def check_interior(region: Convex) -> Convex:
    """``region``, where it has an interior. Raises ValueError otherwise."""
    _ = region.interior
    return region


def catalogue() -> tuple[shapes.Shape | Convex, ...]:
    """One of every domain: shapes in the plane, then convex regions of 1 to 64 dimensions."""
    return (
        shapes.flower(), shapes.heart(), shapes.polygon(), shapes.cross(), shapes.star(), shapes.annulus(),
        shapes.ell(),
        box([-1.0], [2.0]),
        box([-1.0, -2.0], [1.0, 0.5]), box([0.0, -np.inf], [np.inf, 1.0]), box([-1.0] * 64, [1.0] * 64),
        half_spaces([[1.0, 2.0], [-1.0, 0.5], [0.0, -1.0], [0.3, -1.0]], [2.0, 1.0, 1.0, 0.9]),
        ball([0.5, -0.5], 1.5), ball([0.0] * 3, 1.0), simplex(2), simplex(4), ordered(3, lower=-1.0, upper=1.0),
        ordered(5),
        intersection(ball([0.0, 0.0], 1.0), ball([1.0, 0.0], 1.0), half_spaces([[1.0, 1.0]], [1.0])),
        intersection(box([-1.0] * 3, [0.5] * 3), ball([0.0] * 3, 1.0)),
    )  # fmt: skip
