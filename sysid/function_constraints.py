"""Constraints g(θ) ≥ 0 by a user's function, such as stability, as a domain."""

import cmath
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numba import njit, types
from numba.core.errors import NumbaError

from toolkit._compiler import (
    DOMAIN,
    NAMES_IN_FILES,
    bound,
    cached_per_function,
    compile_part,
    in_float32,
    inlined,
    kept,
    set_recipe,
)
from toolkit.maths.elementary import exp, larger, smaller
from toolkit.problem import Domain, with_item

from .arrays import Array
from .constraints import Coordinates
from .systems.system import analytic, name_of_function
from .systems.user_systems import derivatives_differ

COMPLEX_STEP = 1e-30  # of a complex step: its square is nothing beside 1
MAX_PROJECTIONS = 30  # projections onto the tangent of a curved wall
N_CHECKED = 24  # positions at which derivatives by complex steps are compared with differences
TOLERANCE = 1e-12  # relative change of the mirror point at which the search ends

NAMES_IN_FILES["sysid.locate_of.<locals>.locate"] = "sysid.look_of.<locals>.look"  # files know it by an earlier name


def implicit_domain(
    functions: Sequence[Callable[..., Any]],
    names: tuple[str, ...],
    coordinates: Coordinates,
    walls: tuple[Array, Array],
) -> Domain:
    """The domain of positions where every function of θ, a tuple of q numbers, is ≥ 0, and normals · u ≤ offsets.

    walls: unit normals (n, q) and offsets (n,) of linear walls. A point outside is mirrored at the nearest point of the
    wall it is farthest beyond; that of a function's is found by repeated projection onto its tangent, the slope by a
    complex step: a function must be analytic; its integer powers are products. Raises TypeError where one does not
    compile, or gives no number; ValueError where one is seen not to be analytic.
    """
    q = len(names)
    functions = [bound(function) for function in functions]
    for function in functions:
        check_compiles(function, q)
        check_analytic(function, names, coordinates)
    normals, offsets = walls
    float_table = np.concatenate([coordinates.log.astype(float), coordinates.shift, coordinates.root.ravel()])
    float_table = np.concatenate([float_table, offsets, normals.ravel()])
    label = "constraints of " + ", ".join(name_of_function(f, "a function") for f in functions)
    locate = locate_by(functions[0], tuple(functions[1:]), q, len(offsets))
    compiled = compile_part(locate, DOMAIN, allocates=True, packed=True)
    # Near a corner the nearest point of one wall is not that of the domain.
    is_single = len(functions) + len(offsets) == 1
    return Domain(label, q, compiled, float_table, np.zeros(0, np.int32), locate if is_single else None)


@cached_per_function
def locate_by(first: Any, others: tuple[Any, ...], q: int, n_walls: int) -> Any:
    """The function ``Domain.locate``, uncompiled, of constraints and walls; the same for the same functions."""
    beyond: Any = None
    for function in (first, *others):
        beyond = beyond_of(function, q, n_walls if beyond is None else 0, beyond)
    locate = locate_of(beyond)
    set_recipe(locate, locate_by, first, others, q, n_walls)
    return locate


@functools.lru_cache(maxsize=64)
def compiled_forms(function: Callable[..., Any]) -> tuple[Any, Any]:
    """A constraint's function, compiled, and its form for complex steps."""
    return kept(njit(error_model="numpy")(function)), kept(analytic(function))


def check_compiles(function: Any, q: int) -> None:
    """Raise TypeError where a constraint does not compile for real and complex parameters, or gives no number."""
    for form, kind in zip(compiled_forms(function), (types.float64, types.complex128), strict=True):
        arguments = (types.UniTuple(kind, q),)
        try:
            form.compile(arguments)
        except (NumbaError, TypeError) as error:
            raise TypeError(
                f"constraints must be functions of a tuple of {q} numbers that Numba compiles, real and complex: "
                f"{error}"
            ) from error
        given = form.overloads[arguments].signature.return_type
        if not isinstance(given, types.Float | types.Complex):
            raise TypeError(
                f"constraints must give a number that is ≥ 0 inside and < 0 outside; "
                f"{name_of_function(function, 'one')} gives {given}"
            )


def check_analytic(function: Any, names: tuple[str, ...], coordinates: Coordinates) -> None:
    """Raise ValueError where a slope by a complex step is not that of differences: of abs(θ), or of real parts.

    At positions about 0 and farther off, where the function is smooth enough for differences to tell.
    """
    plain, differentiable = compiled_forms(function)
    positions = (
        np.random.default_rng(0).standard_normal((N_CHECKED, len(names)))
        * np.repeat([0.3, 1.0, 3.0], N_CHECKED // 3)[:, None]
    )
    for theta in coordinates.parameters(positions):
        sizes = np.maximum(np.abs(theta), 1e-3)
        with np.errstate(all="ignore"):
            value_at = float(plain(tuple(theta)))
            for k, name in enumerate(names):
                unit = np.arange(len(names)) == k
                near, far = (
                    (plain(tuple(theta + step * unit)) - plain(tuple(theta - step * unit))) / (2.0 * step)
                    for step in (6e-6 * sizes[k], 1.2e-5 * sizes[k])
                )
                exact = complex(differentiable(tuple(theta + 1j * COMPLEX_STEP * unit))).imag / COMPLEX_STEP
                if derivatives_differ(exact, near, far, theta, abs(value_at) / sizes[k]):
                    name_of = getattr(function, "__name__", "one")
                    raise ValueError(
                        f"constraints must be analytic functions, and the slope of {name_of} with respect to {name} at "
                        f"{theta.tolist()} is {exact:.6g} by a complex step and {near:.6g} by differences; in place of "
                        "abs(x) give two constraints, one for each sign"
                    )


def locate_of(beyond: Any) -> Any:
    """The domain's function ``locate``: which lanes are outside, and their mirror points, from ``beyond``."""

    def locate(position, mirror_point, outside, float_table, int_table):
        for lane in range(outside.size):
            if outside[lane] != 0.0:
                outside[lane] = 1.0 if beyond(position, mirror_point, lane, float_table) != 0.0 else 0.0

    return locate


def beyond_of(function: Any, q: int, n_walls: int, before: Any) -> Any:
    """How far a lane is beyond one function's wall, after those of ``before`` (None: after the linear walls).

    It writes the nearest point of the wall that the lane is farthest beyond to ``mirror_point``, and is 0 inside.
    """
    compiled, differentiable = njit(error_model="numpy")(function), analytic(function)
    floats, complexes = (0.0,) * q, (0j,) * q

    @inlined
    def value(u, float_table):
        """G at positions u."""
        theta = floats
        for k in range(q):
            v = float_table[q + k]
            for j in range(q):
                v += float_table[(2 + k) * q + j] * u[j]
            theta = with_item(theta, k, exp(smaller(v, 700.0)) if float_table[k] != 0.0 else v)
        return compiled(theta)

    @inlined
    def slope(u, along, float_table):
        """DG/du in one coordinate."""
        theta = complexes
        for k in range(q):
            v = float_table[q + k] + 0j
            for j in range(q):
                v += float_table[(2 + k) * q + j] * u[j]
            v += 1j * (COMPLEX_STEP * float_table[(2 + k) * q + along])
            theta = with_item(theta, k, cmath.exp(v) if float_table[k] != 0.0 else v)
        return differentiable(theta).imag / COMPLEX_STEP

    @inlined
    def nearest(x, float_table):
        """The wall's nearest point to positions x, and how far it is."""
        y, distance = x, 0.0
        for _ in range(MAX_PROJECTIONS):
            g, steepness, gap = value(y, float_table), 0.0, 0.0
            n = floats
            for k in range(q):
                n = with_item(n, k, slope(y, k, float_table))
                steepness += n[k] * n[k]
            for k in range(q):
                gap += (y[k] - x[k]) * n[k]
            multiplier = (gap - g) / steepness
            change = 0.0
            for k in range(q):
                new = x[k] + multiplier * n[k]
                change = larger(change, abs(new - y[k]) / (1.0 + abs(new)))
                y = with_item(y, k, new)
            distance = abs(multiplier) * math.sqrt(steepness)
            if not change > TOLERANCE:
                break
        return y, distance

    @in_float32({1e-300: 1e-37})
    @njit(error_model="numpy")
    def beyond(position, mirror_point, lane, float_table):
        table = (2 + q) * q
        farthest = 0.0
        if before is not None and before(position, mirror_point, lane, float_table) != 0.0:
            for k in range(q):
                difference = position[k, lane] - mirror_point[k, lane]
                farthest += difference * difference  # not difference**2, which calls another function on CUDA
            farthest = math.sqrt(farthest)
        for w in range(n_walls):
            excess = -float_table[table + w]
            for k in range(q):
                excess += float_table[table + n_walls + w * q + k] * position[k, lane]
            if excess > farthest:
                farthest = excess
                for k in range(q):
                    mirror_point[k, lane] = position[k, lane] - excess * float_table[table + n_walls + w * q + k]
        x = floats
        for k in range(q):
            x = with_item(x, k, position[k, lane])
        if not value(x, float_table) >= 0.0:
            y, distance = nearest(x, float_table)
            if not distance <= farthest:
                farthest = distance
                for k in range(q):
                    mirror_point[k, lane] = y[k]
            farthest = larger(farthest, 1e-300)
        return farthest

    return beyond
