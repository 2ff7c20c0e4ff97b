"""Shapes in the plane: those of the papers, and other usual ones."""

import numpy as np

from toolkit.errors import check_count, check_number, check_scale
from toolkit.problem import recorded

from ..arrays import Array
from .planar import MAX_VERTICES, VERTICES, Shape, curve, polygon_of


@recorded("shapes")
def flower(*, petals: int = 5, offset: float = 3.0, radius: float = 2.0, n_vertices: int = VERTICES) -> Shape:
    """r(t) = radius (sin 2πpt + offset) / 3.5 at angle 2πt, with p = petals.

    offset > 1, so that the curve does not pass through the origin. Area π (radius/3.5)² (offset² + ½).
    Source: r2SGLD (2024), section 4.2, with the scale of its released code, which the text omits.

    >>> from targets import shapes
    >>> round(shapes.flower(petals=5).area, 2)
    9.75
    >>> shapes.flower().contains([[0.0, 0.0], [2.0, 2.0]])
    array([ True, False])
    """
    petals = check_count("petals", petals, at_least=1, below=MAX_VERTICES)
    offset = check_number("offset", offset, above=1.0, below=1e50)
    scale = check_scale("radius", radius) / 3.5

    def function(t: Array) -> tuple[Array, Array]:
        r = scale * (np.sin(2.0 * np.pi * petals * t) + offset)
        return r * np.cos(2.0 * np.pi * t), r * np.sin(2.0 * np.pi * t)

    return curve("flower", function, n_vertices=n_vertices, area=np.pi * scale**2 * (offset**2 + 0.5))


@recorded("shapes")
def heart(*, radius: float = 2.0, n_vertices: int = VERTICES) -> Shape:
    """x = radius/10 · 16 sin³ 2πt, y = radius/10 · (13 cos 2πt − 5 cos 4πt − 2 cos 6πt − cos 8πt).

    Area 1.8 π radius². Source: r2SGLD (2024), A.3, with the cube of its released code, which the text omits.
    """
    scale = check_scale("radius", radius) / 10.0

    def function(t: Array) -> tuple[Array, Array]:
        angle = 2.0 * np.pi * t
        y = 13.0 * np.cos(angle) - 5.0 * np.cos(2 * angle) - 2.0 * np.cos(3 * angle) - np.cos(4 * angle)
        return scale * 16.0 * np.sin(angle) ** 3, scale * y

    return curve("heart", function, n_vertices=n_vertices, area=180.0 * np.pi * scale**2)


@recorded("shapes")
def polygon(*, sides: int = 8, radius: float = 2.0) -> Shape:
    """The regular polygon with circumradius ``radius`` and its first vertex at (0, radius).

    Area ½ sides radius² sin(2π / sides). Source: r2SGLD (2024), A.3 (an octagon).
    """
    sides = check_count("sides", sides, at_least=3, below=MAX_VERTICES)
    radius = check_scale("radius", radius)
    angle = 2.0 * np.pi * np.arange(sides) / sides
    shape = polygon_of("polygon", radius * np.stack([np.sin(angle), np.cos(angle)], axis=1))
    return Shape("polygon", shape.rings, 0.5 * sides * radius**2 * np.sin(2.0 * np.pi / sides))


@recorded("shapes")
def cross(*, radius: float = 2.0) -> Shape:
    """A cross of 12 vertices: arms of half-length radius · sin 72° and half-width radius · sin 18°.

    Area 4 radius² sin 18° (2 sin 72° − sin 18°). Source: r2SGLD (2024), A.3.
    """
    radius = check_scale("radius", radius)
    long, short = radius * np.sin(np.radians(72.0)), radius * np.sin(np.radians(18.0))
    arm = np.array([[long, -short], [long, short], [short, short]])
    turns = [np.array([[np.cos(a), np.sin(a)], [-np.sin(a), np.cos(a)]]).round() for a in np.pi / 2 * np.arange(4)]
    shape = polygon_of("cross", np.concatenate([arm @ turn for turn in turns]))
    return Shape("cross", shape.rings, 4.0 * short * (2.0 * long - short))


@recorded("shapes")
def star(*, points: int = 5, radius: float = 2.0, depth: float = 0.6) -> Shape:
    """A star of ``points`` tips at ``radius``, the first at (0, radius), with notches at radius (1 − depth) between.

    depth in (0, 1); at 5 points and (√5 − 1)/2 it is a pentagram. Area points · radius² (1 − depth) sin(π / points).
    The released code of r2SGLD (2024) has a star, whose size the paper does not give. Raises ValueError out of range.
    """
    points = check_count("points", points, at_least=3, below=MAX_VERTICES)
    radius = check_scale("radius", radius)
    notch = radius * (1.0 - check_number("depth", depth, above=0.0, below=1.0))
    angle = np.pi * np.arange(2 * points) / points
    radii = np.where(np.arange(2 * points) % 2 == 0, radius, notch)
    shape = polygon_of("star", radii[:, None] * np.stack([np.sin(angle), np.cos(angle)], axis=1))
    return Shape("star", shape.rings, points * radius * notch * np.sin(np.pi / points))


@recorded("shapes")
def annulus(*, radius: float = 2.0, inner: float = 1.0, n_vertices: int = VERTICES) -> Shape:
    """{x: inner ≤ |x| ≤ radius}, both circles as polygons of ``n_vertices``. Area π (radius² − inner²).

    Raises ValueError unless 0 < inner < radius.
    """
    radius = check_scale("radius", radius)
    inner = check_number("inner", check_scale("inner", inner), below=radius)
    angle = 2.0 * np.pi * np.arange(check_count("n_vertices", n_vertices, at_least=3, below=MAX_VERTICES)) / n_vertices
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    shape = polygon_of("annulus", radius * circle, holes=[inner * circle])
    return Shape("annulus", shape.rings, np.pi * (radius**2 - inner**2))


@recorded("shapes")
def ell(*, radius: float = 2.0) -> Shape:
    """An L: the square of half-side ``radius`` about 0 without its upper right quarter. Area 3 radius²."""
    radius = check_scale("radius", radius)
    corners = np.array([[-1, -1], [1, -1], [1, 0], [0, 0], [0, 1], [-1, 1]])
    return Shape("ell", polygon_of("ell", radius * corners).rings, 3.0 * radius**2)
