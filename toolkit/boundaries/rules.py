"""Boundary rules: what happens at the edge of a problem's domain; and their block functions.

The domain finds the point to mirror at, or its nearest point (``signatures.DOMAIN``); the rules are the same for every
domain.
"""

from dataclasses import dataclass
from inspect import signature
from typing import Any, NamedTuple

import numpy as np

from .._compiler.argument_pack import call_part
from .._compiler.decorators import kernel
from ..errors import check_choice, check_count, check_number, shown
from ..maths.elementary import fma, select
from ..problem.call_text import call_text

__all__ = ["Boundary", "ignore", "penalise", "penalise_as_printed", "reflect", "reject"]

KINDS = ("reflect", "reject", "penalise", "penalise_as_printed", "ignore")
PENALTIES = ("penalise", "penalise_as_printed")
# Kinds whose names in descriptions and files differ: when the first files were written, the penalty as printed was the
# only one.
STORED_KINDS = {"penalise": "penalise_by_distance", "penalise_as_printed": "penalise"}


@dataclass(frozen=True)
class Boundary:
    """``kind`` is one of ``KINDS``, each made by the function of its name; the numbers are 0 where the kind has none.

    coefficient: of the penalty. max_bounces: of a reflection. Raises TypeError or ValueError where they do not fit.
    """

    kind: str
    coefficient: float = 0.0
    max_bounces: int = 0

    def __repr__(self) -> str:
        """The call that makes it."""
        numbers = {"coefficient": self.coefficient, "max_bounces": self.max_bounces}
        return call_text(
            f"boundaries.{self.kind}", signature(globals()[self.kind]), {k: v for k, v in numbers.items() if v}
        )

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, KINDS)
        if self.kind in PENALTIES:
            check_number("coefficient", self.coefficient, above=0.0)
        elif check_number("coefficient", self.coefficient) != 0.0:
            raise ValueError(f"coefficient must be 0 for {shown(self.kind)}, got {shown(self.coefficient)}")
        if self.kind == "reflect":
            check_count("max_bounces", self.max_bounces, at_least=1)
        elif check_count("max_bounces", self.max_bounces, at_least=0) != 0:
            raise ValueError(f"max_bounces must be 0 for {shown(self.kind)}, got {shown(self.max_bounces)}")


def reflect(*, max_bounces: int = 256) -> Boundary:
    """Reflect a proposal outside the domain across the tangent at its nearest boundary point, until it is inside.

    Parameters
    ----------
    max_bounces
        Number of reflections of one proposal, at least 1. After that many the replica returns to its last inside point,
        and the run counts it in ``reflection_fallbacks``.

    Returns
    -------
    Boundary
        The rule, for ``Sampler(boundary=...)``.

    Raises
    ------
    TypeError, ValueError
        Where ``max_bounces`` is no integer of at least 1.

    Notes
    -----
    With b the nearest boundary point, this is x ← 2b − x. At a smooth point of the edge x − b is normal to it. At a
    polygon's corner it is the mirror image in the corner, the product of two reflections where the corner is square. In
    a convex domain of walls b is the nearest point of the wall that x is farthest beyond, one wall after the other.
    Momentum p turns with it: p ← p − 2 (p·n) n, n along x − b.

    The law is exact at a straight edge, and for any step, of position and momentum, in boxes and ordered coordinates.
    At an edge of curvature κ it is biased inwards: the mirror image at the nearest point, and not where the path meets
    the edge, contracts volume. With a flat energy in a ball of radius R in d dimensions, and friction η (1 for SGLD),
    E|x|² is too small by a share of about 0.9 (d − 1) x / (1 + √(x/η)), x = hT/(ηR²). Measured at η = 0.1, T = R = 1:

    =====  =========  =========
    d      h = 1e-3   h = 4e-3
    =====  =========  =========
    2      0.9 %      2.3 %
    3      1.6 %      4.4 %
    6      3.5 %      10.6 %
    10     6.3 %      17.5 %
    20     12.4 %     29.8 %
    =====  =========  =========

    In 6 dimensions E|x|⁶ is 8 % (h = 1e-3) and 22 % (h = 4e-3) too small, and SGLD has 1.8 % of E|x|² at h = 4e-3. A
    run warns where the share of E|x|² is above the standard error that 1,000 independent draws have: 1.8 % in 2
    dimensions, 0.8 % in 6, 0.3 % in 20. Smaller steps, or more friction, make it less.

    In a polygon a momentum that meets a corner head on is turned along one line where walls would turn it twice: in a
    square of half-width 1 without energy, SGHMC of friction 0.1 has E x₁² = 0.3360 in place of 1/3 at h = 0.04, T = 3;
    in the same box it has 1/3. Without friction, |p|² keeps to 10⁻¹³ over 10⁵ bounces, but a curved edge takes angular
    momentum bit by bit.

    References
    ----------
    r2SGLD (2024), section 2.3, operation R(·).
    """
    return Boundary("reflect", max_bounces=max_bounces)


def reject() -> Boundary:
    """Take a move back that ends outside the domain: the replica stays where it was, and its momentum turns round.

    Law: exact for ``dynamics.mala`` and ``dynamics.hmc``, whose proposals are drawn for all of space. For the others it
    is biased in a layer of width √(hT) at the edge: it is how the released code of CSGLD
    and ICSGLD keeps its box.
    """
    return Boundary("reject")


def penalise(coefficient: float) -> Boundary:
    """Add ½ λ |x − n(x)|² to the energy, and λ (x − n(x)) to its gradient; n(x): the domain's point nearest to x.

    A soft wall: draws do leave the domain, about √(T/λ) deep, and the target is changed outside only. The energy with
    its penalty is that of every part: moves, Metropolis tests, swaps, contour's bins, ``run.energies`` and traces.
    Law: density ∝ exp(−(U(x) + ½ λ |x − n(x)|²) / T) on all of space, to the bias of the dynamics, and exact with
    ``dynamics.mala`` and ``dynamics.hmc``. ``problem.truth`` is of the law cut off at the edge, which it approaches as
    λ → ∞, the share of draws outside falling as 1/√λ; SGLD needs step sizes well below 2/λ.
    n(x) is that of the whole domain, at corners too, to rounding in polygons and between flat walls; with balls to some
    1e-14 of |x|, and where a ball all but touches another wall the distance is right to some 1e-5 of it. For one wall
    that is a function (``sysid``) it is a point where the distance to x is stationary; where such a wall meets others
    n(x) is unknown, and ``sample`` raises ValueError. coefficient: λ > 0, else ValueError.
    """
    return Boundary("penalise", coefficient=coefficient)


def penalise_as_printed(coefficient: float) -> Boundary:
    """Add λ x to the gradient, and ½ λ |x|² to the energy, while x is outside the domain: the papers' penalty.

    It has no law: the energy jumps at the edge, of which the gradient knows nothing. So dynamics without a Metropolis
    test sample one density, those with one another, and swaps mix the two by how often they are made: on N(0, 1) in
    [−1, 0.5] with λ = 3, 0.24 of SGLD's draws are outside, 0.145 of MALA's, and between them of replica exchange.
    It is there to repeat the papers' figures; use ``penalise``. It pulls to the origin, which the domain must hold, or
    ``sample`` raises ValueError. coefficient: λ > 0, else ValueError. Source: r2SGLD (2024), section 4.2 (P-SGLD); the
    paper gives no λ.
    """
    return Boundary("penalise_as_printed", coefficient=coefficient)


def ignore() -> Boundary:
    """Nothing happens at the edge: the run samples the target as if it had no domain."""
    return Boundary("ignore")


@kernel
def add_penalty(position, mirror_point, energy, gradient, outside, coefficient, from_origin):
    """Add the penalty where ``outside`` is not 0: by the distance from ``mirror_point``, or from the origin."""
    for d in range(position.shape[0]):
        for lane in range(position.shape[1]):
            centre = select(from_origin, 0.0, mirror_point[d, lane])
            offset = select(outside[lane] != 0.0, position[d, lane] - centre, 0.0)
            pull = coefficient * offset
            gradient[d, lane] += pull
            energy[lane] = fma(0.5 * pull, offset, energy[lane])


class Moved(NamedTuple):
    """Lanes after a move, their positions before it, and what a boundary writes."""

    position: Any  # (dim, lane)
    previous: Any  # (dim, lane)
    momentum: Any  # (dim or 0, lane)
    mirror_point: Any  # (dim, lane): at which a lane is mirrored
    outside: Any  # (lane,): not 0 where a lane is outside
    bounces: Any  # (lane,): counts
    fallbacks: Any  # (lane,): counts


@kernel
def reflect_lanes(locate, at_locate, moved, max_bounces):
    """Reflect every lane until it is inside; count reflections in ``bounces``, resets in ``fallbacks``."""
    position, previous, momentum, mirror_point = moved.position, moved.previous, moved.momentum, moved.mirror_point
    outside, bounces, fallbacks = moved.outside, moved.bounces, moved.fallbacks
    dim, lanes = position.shape
    for lane in range(lanes):
        outside[lane] = 1.0
    for bounce in range(max_bounces + 1):
        call_part(locate, at_locate)
        n_outside = 0
        for lane in range(lanes):
            n_outside += int(outside[lane] != 0.0)
        if n_outside == 0:
            return
        for lane in range(lanes):
            if outside[lane] != 0.0:
                if bounce < max_bounces:
                    mirror(position, momentum, mirror_point, lane)
                    bounces[lane] += 1
                else:
                    fallbacks[lane] += 1
                    for d in range(dim):
                        position[d, lane] = previous[d, lane]


@kernel
def mirror(position, momentum, mirror_point, lane):
    """Reflect one lane's position across the tangent at ``mirror_point``, and its momentum if there is one."""
    dim = position.shape[0]
    if momentum.shape[0]:
        squared, along = 0.0, 0.0
        for d in range(dim):
            normal = position[d, lane] - mirror_point[d, lane]
            squared = fma(normal, normal, squared)
            along = fma(momentum[d, lane], normal, along)
        if squared > 0.0:
            for d in range(dim):
                normal = position[d, lane] - mirror_point[d, lane]
                momentum[d, lane] = fma(-2.0 * along / squared, normal, momentum[d, lane])
    for d in range(dim):
        position[d, lane] = fma(2.0, mirror_point[d, lane], -position[d, lane])


@kernel
def reject_lanes(locate, at_locate, moved):
    """Reset every lane that is outside to ``previous`` and reverse its momentum; count in ``bounces``."""
    position, previous, momentum, outside, bounces = (
        moved.position, moved.previous, moved.momentum, moved.outside, moved.bounces
    )  # fmt: skip
    dim, lanes = position.shape
    for lane in range(lanes):
        outside[lane] = 1.0
    call_part(locate, at_locate)
    for lane in range(lanes):
        bounces[lane] += np.int64(outside[lane] != 0.0)
    for d in range(dim):
        for lane in range(lanes):
            position[d, lane] = select(outside[lane] != 0.0, previous[d, lane], position[d, lane])
    for d in range(momentum.shape[0]):
        for lane in range(lanes):
            momentum[d, lane] = select(outside[lane] != 0.0, -momentum[d, lane], momentum[d, lane])
