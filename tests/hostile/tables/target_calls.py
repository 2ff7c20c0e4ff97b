"""Good calls of everything public in ``targets``, with the methods of their truths and regions."""

import math

import numpy as np
import sympy
from hypothesis import strategies as st
from shapely import Polygon

import targets
from targets import classics, constrained, datasets, domains, mixtures, posteriors, shapes
from targets.domains.convex import Convex
from targets.shapes.planar import Shape
from tests.hostile.calls import FREE, OPEN_SHARE, POSITIVE, RNG
from tests.hostile.tables.call import Call
from tests.hostile.values import (
    array,
    choice,
    count,
    flag,
    function,
    instance,
    is_real,
    is_whole,
    kind,
    number,
    or_none,
)
from toolkit import Target

NORMAL = mixtures.gaussian_mixture([[0.0]], 1.0)
PLANAR = mixtures.gaussian_mixture([[0.0, 0.0]], 0.3)
SQUARE = [[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]]
CLOSED = [*SQUARE, SQUARE[0]]
PARAMETER = sympy.Symbol("k")
X = sympy.Symbol("x")
FEATURES, LABELS = RNG.standard_normal((12, 2)), np.arange(12) % 2
NETWORK = posteriors.network(FEATURES, LABELS, hidden=(2,))


def datum(x, row):
    """½ (row − x)²."""
    gap = x[0] - row[0]
    return 0.5 * gap * gap, (gap,)


def circle(t):
    """The unit circle."""
    return np.cos(2.0 * np.pi * t), np.sin(2.0 * np.pi * t)


def both(first, second):
    """What two shapes have in common."""
    return shapes.intersection(first, second)


def both_convex(first, second):
    """What two convex regions have in common."""
    return domains.intersection(first, second)


DIM = count(2, 2**17, idle=False)
BATCHES = {"prior": number(1e-100, 1e100), "batch_size": or_none(count(1, 2**17))}
FILES = kind(
    lambda v: v is None, st.sampled_from(["", ".", "\0", "nowhere/x.dat", "/dev/null", "x" * 5000, "/", b"heart.dat"])
)
FILE_NAMES = {"path": "expected"}
VERTICES = count(3, idle=False)
IS_MEANS = array([[0.0, 0.0], [1.0, 1.0]], lambda a: a.ndim == 2 and len(a) == 2 and a.shape[1] > 0)
IS_WEIGHTS = array([0.4, 0.6], lambda a: a.shape == (2,) and (a > 0).all() and abs(a.sum() - 1.0) < 1e-9)
IS_RING = array(SQUARE, lambda a: False)


def is_covariance(value):
    """Whether it is what ``variance`` takes for two components in the plane."""
    try:
        given = np.asarray(value)
        matrices = given[:, None, None] * np.eye(2) if given.shape == (2,) else given.reshape(-1, 2, 2)
        return given.dtype.kind in "iuf" and all(
            np.linalg.eigvalsh(m).min() > 0 and np.allclose(m, m.T) for m in matrices
        )
    except Exception:
        return False


SHAPE, CONVEX = instance(Shape), instance(Convex)
GEOMETRIES = st.sampled_from(["Polygon", "MultiPolygon", "Feature", "FeatureCollection", "Point"])
SOURCES = st.one_of(
    st.recursive(
        st.one_of(st.none(), st.floats(), st.text(max_size=3)),
        lambda inner: st.fixed_dictionaries({"type": GEOMETRIES, "coordinates": inner, "geometry": inner,
            "features": inner}),
        max_leaves=3,
    ),
    st.sampled_from(["{", "[]", "{}", "nowhere.json", "", ".", "\0", "/dev/null"]), st.builds(lambda: "[" * 100_000),
)  # fmt: skip
GEOJSON = {"type": "Polygon", "coordinates": [CLOSED]}
CALLS = [
    Call("targets.catalogue_entries.catalogue", lambda: None),
    Call("targets.domains.constrained.constrained", constrained, {"target": PLANAR, "region": shapes.cross()},
         {"target": instance(Target), "region": instance(Shape, Convex)}),
    Call("targets.truth.own_targets.with_truth", lambda target, window, centres: targets.with_truth(target,
        window=window, centres=centres), {"target": NORMAL, "window": None, "centres": None}, {
        "target": instance(Target), "window": or_none(array(np.array([-9.0, 9.0]), lambda a: a.shape == (2,))),
        "centres": or_none(
            array(np.array([[0.0]]), lambda a: a.size > 0 and a.shape in ((), (a.size,), (a.size, 1)))
        )}),
    Call("targets.symbolic.from_sympy", targets.from_sympy, {"energy": PARAMETER * X**2, "symbols": (X,),
        "parameters": {PARAMETER: 0.5}}, {
        "energy": kind(lambda v: False, st.sampled_from(["x**2", X**2, sympy.oo * X, sympy.Matrix([X]), X > 0,
            sympy.I * X, PARAMETER])),
        "symbols": kind(lambda v: False, st.sampled_from([(X, X), ("x",), (X, PARAMETER), (X, sympy.Symbol("y")), "x",
            X + 1])),
        "parameters": kind(lambda v: False, st.dictionaries(st.sampled_from([PARAMETER, X, "k"]),
            st.sampled_from([math.nan, 1j, "1", None]), min_size=1)),
    }, {"symbols": "energy parameters", "parameters": "energy"}),
    # mixtures
    *[Call(f"targets.{m}.{f.__name__}", f) for m, f in [
        ("mixtures", mixtures.unequal_pair), ("mixtures", mixtures.three_on_a_line), ("mixtures", mixtures.five_spots),
        ("mixtures", mixtures.six_petals), ("cosines", mixtures.cosine9), ("cosines", mixtures.cosine25),
        ("combs", mixtures.gaussian_grid25), ("datasets", datasets.breast_cancer), ("datasets", datasets.digits),
        ("domains", domains.catalogue)]],
    Call("targets.mixtures.gaussian_mixture", mixtures.gaussian_mixture,
         {"means": [[0.0, 0.0], [1.0, 1.0]], "variance": 1.0, "weights": [0.4, 0.6]},
         {"means": IS_MEANS, "variance": kind(lambda v: POSITIVE.takes(v), array(np.eye(2),
             lambda a: False).wrong.filter(lambda v: not is_covariance(v))),
          "weights": or_none(IS_WEIGHTS)}, {"means": "weights"}),
    Call("targets.classics.student.student_mixture", classics.student_mixture,
         {"means": [[0.0, 0.0], [1.0, 1.0]], "scale": 1.0, "degrees": 3.0, "weights": [0.4, 0.6]},
         {"means": IS_MEANS, "scale": POSITIVE, "degrees": number(0.1, ends="["), "weights": or_none(IS_WEIGHTS)},
             {"means": "weights"}),
    # classics
    Call("targets.classics.curved.ring", classics.ring, {}, {"width": POSITIVE}),
    Call("targets.classics.curved.banana", classics.banana, {}, {"curvature": FREE, "scale": POSITIVE, "dim": DIM}),
    Call("targets.classics.curved.funnel", classics.funnel, {}, {"scale": number(0.0, 20.0, ends="]"), "dim": DIM}),
    Call("targets.classics.wells.egg_box",
         classics.egg_box, {}, {"barrier": POSITIVE, "spread": number(0.0, 2.0, ends="]")}),
    Call("targets.classics.wells.muller_brown", classics.muller_brown, {}, {"scale": POSITIVE}),
    Call("targets.classics.wells.himmelblau", classics.himmelblau, {}, {"scale": POSITIVE}),
    Call("targets.classics.wells.double_well", classics.double_well, {}, {"barrier": POSITIVE, "tilt": FREE},
        {"barrier": "tilt"}),
    Call("targets.classics.curved.pinched",
         classics.pinched, {}, dict.fromkeys(["left", "right", "neck", "reach", "barrier"],
        POSITIVE)),
    Call("targets.classics.boxed.coin_flip", classics.coin_flip, {"n": 20, "heads": 7},
         {"n": count(8, 2**24), "heads": count(1, 20)}, {"n": "heads", "heads": "n"}),
    Call("targets.classics.boxed.egg_crate", classics.egg_crate),
    Call("targets.classics.boxed.gaussian_shells", classics.gaussian_shells, {}, {
        "distance": number(2.5, 3.5, ends="[]"), "radius": number(1.0, 2.0, ends="[]"), "width": POSITIVE,
    }, {"distance": "radius width", "radius": "distance width", "width": "distance radius"}),
    Call("targets.classics.boxed.dual_moon", classics.dual_moon),
    Call("targets.classics.gaussians.correlated_gaussian",
         classics.correlated_gaussian, {}, {"correlation": number(-1.0, 1.0),
        "dim": DIM}, {"dim": "correlation"}),
    Call("targets.classics.gaussians.badly_scaled_gaussian",
         classics.badly_scaled_gaussian, {}, {"condition": number(1.0,
        ends="["), "dim": DIM}),
    # posteriors
    Call("targets.posteriors.linear.linear_regression", posteriors.linear_regression,
         {"features": FEATURES, "response": LABELS, "noise": 1.0, "prior": 1.0}, {
             **BATCHES, "features": array(FEATURES, lambda a: a.ndim == 2 and len(a) == 12 and a.size > 0),
             "response": array(LABELS, lambda a: a.shape == (12,)), "noise": number(1e-100, 1e100),
         }, {"features": "response", "refresh_every": "batch_size"}),
    Call("targets.posteriors.logistic.logistic_regression", posteriors.logistic_regression, {"features": FEATURES,
        "labels": LABELS}, {
        **BATCHES, "features": array(FEATURES, lambda a: a.ndim == 2 and len(a) == 12 and a.size > 0),
        "labels": array(LABELS, lambda a: a.shape == (12,) and (set(np.unique(a)) <= {0,
            1} or set(np.unique(a)) <= {-1, 1})),
    }, {"features": "labels", "refresh_every": "batch_size"}),
    Call("targets.posteriors.neural_network.network", posteriors.network, {
        "features": FEATURES, "labels": LABELS, "hidden": (2,)}, {
        **BATCHES, "features": array(FEATURES, lambda a: a.ndim == 2 and len(a) == 12 and a.size > 0),
        "labels": array(LABELS, lambda a: a.shape == (12,) and set(np.unique(a)) <= {0, 1}),
        "hidden": kind(lambda v: isinstance(v, list | tuple | np.ndarray) and all(is_whole(u) and u > 0 for u in v),
                       st.sampled_from([3, None, (0,), (1.5,), ("2",), {3: 4}])),
        "likelihood": choice("categorical", "bernoulli", "normal"), "activation": choice("relu", "tanh"),
        "n_classes": or_none(count(2, 2**10)), "noise": number(1e-100, 1e100),
        "prior": or_none(number(1e-100, 1e100)), "precision": choice("float64", "float32"),
        "normalised": flag(),
    }, {"features": "labels", "n_classes": "labels hidden", "batch_size": "hidden"}),
    Call("targets.posteriors.neural_network.predict", posteriors.predict, {
        "target": NETWORK, "positions": [0.0] * NETWORK.dim, "features": FEATURES}, {
        "target": instance(Target),
        "positions": array([0.0] * NETWORK.dim, lambda a: a.ndim > 0 and a.shape[-1] == NETWORK.dim),
        "features": array(FEATURES, lambda a: a.ndim == 2 and a.shape[1] == np.shape(FEATURES)[1]),
    }),
    Call("targets.posteriors.user_likelihood.posterior",
         posteriors.posterior, {"datum": datum, "data": [1.0, 2.0], "dim": 1}, {
        "datum": kind(lambda v: False, st.sampled_from([lambda x: 0.0, lambda x, row: (0.0, (0, 0)), lambda x,
            row: None, lambda x, row: 1 / 0])),
        "data": array([1.0, 2.0], lambda a: a.ndim in (1, 2) and a.size > 0), "dim": count(1, 2**10)._replace(odd=None),
        "prior": kind(lambda v: v is None or number(1e-100, 1e100).takes(v)), "batch_size": BATCHES["batch_size"],
    }, {"refresh_every": "batch_size", "dim": "datum"}),
    # data
    *[Call(f"targets.datasets.{f.__name__}", f, {}, {"path": FILES, "standardise": flag()}, FILE_NAMES) for f in
      (datasets.australian, datasets.german, datasets.heart)],
    Call("targets.datasets.mushroom", datasets.mushroom, {}, {"path": FILES}, FILE_NAMES),
    Call("targets.datasets.stand_in", datasets.stand_in, {"name": "heart"},
         {"name": choice("australian", "german", "heart", "mushroom")}),
    # shapes
    Call("targets.shapes.planar.Shape", Shape, {"name": "square", "rings": (np.array(SQUARE),)}, {
        "rings": kind(lambda v: False, st.just([]), st.just((np.zeros((2, 2)),)), st.just(SQUARE)),
            "curve_area": or_none(POSITIVE),
    }, {"rings": "outer"}),
    Call("targets.shapes.planar.curve", shapes.curve, {"name": "circle", "function": circle, "n_vertices": 64},
         {"function": function(), "n_vertices": VERTICES,
             "area": kind(lambda v: v is None or (is_real(v) and 3.1 < v < 3.17))}, {"area": "n_vertices"}),
    Call("targets.shapes.planar.polygon_of", shapes.polygon_of, {"name": "square", "outer": SQUARE}, {"outer": IS_RING,
        "holes": kind(
        lambda v: isinstance(v, list | tuple | np.ndarray) and len(v) == 0, st.lists(st.sampled_from([SQUARE, [[9, 9],
            [8, 9], [8, 8]], None]), min_size=1))},
        {"outer": "square", "holes": "square"}),
    Call("targets.shapes.flower", shapes.flower, {}, {"petals": count(1), "offset": number(1.0),
        "n_vertices": VERTICES}, {"petals": "n_vertices", "offset": "n_vertices"}),
    Call("targets.shapes.heart", shapes.heart, {}, {"n_vertices": VERTICES}),
    Call("targets.shapes.polygon", shapes.polygon, {}, {"sides": VERTICES}),
    Call("targets.shapes.cross", shapes.cross),
    Call("targets.shapes.ell", shapes.ell),
    Call("targets.shapes.star", shapes.star, {}, {"points": VERTICES, "depth": OPEN_SHARE}),
    Call("targets.shapes.annulus", shapes.annulus, {}, {"radius": number(1.0), "inner": number(0.0, 2.0),
        "n_vertices": VERTICES}, {"radius": "inner"}),
    Call("targets.shapes.imported.from_shapely", shapes.from_shapely, {"geometry": Polygon(SQUARE)}, {"geometry": kind(
        lambda v: False, st.sampled_from([Polygon(), Polygon([(0, 0), (1, 1), (1, 0), (0, 1)]),
            Polygon(SQUARE).boundary, Polygon(SQUARE).centroid]))}),
    Call("targets.shapes.imported.from_geojson",
         shapes.from_geojson, {"source": GEOJSON}, {"source": kind(lambda v: False,
        SOURCES)},
         {"source": "geometry coordinates features"}),
    Call("targets.shapes.imported.from_svg", shapes.from_svg, {"source": "M 0 0 L 1 0 L 1 1 Z"},
         {"source": kind(lambda v: False, st.sampled_from(["M", "M 0 0", "M 0 0 L 1 1", "M a b Z", "nowhere.svg", "",
             "\0", "/dev/null", "M 0 0 L 1e999 0 L 1 1 Z"])),
          "n_vertices": count(2, idle=False)}, {"source": "path"}),
    Call("targets.shapes.imported.intersection", both, {"first": shapes.ell(), "second": shapes.cross()},
         {"first": SHAPE, "second": SHAPE}, {"first": "shapes", "second": "shapes"}),
    # domains
    Call("targets.domains.box", domains.box, {"lower": [0.0, 0.0], "upper": [1.0, 1.0]}, {
        "lower": array([0.0, 0.0], lambda a: a.shape == (2,) and (a < 1.0).all()), "upper": array([1.0, 1.0],
            lambda a: a.shape == (2,) and (a > 0.0).all())}),
    Call("targets.domains.half_spaces", domains.half_spaces, {"normals": [[1.0, 2.0], [-1.0, 0.5]], "offsets": [1.0,
        1.0]}, {
        "normals": array([[1.0, 2.0], [-1.0, 0.5]], lambda a: a.ndim == 2 and len(a) == 2 and a.any(axis=1).all()),
            "offsets": array([1.0, 1.0], lambda a: a.shape == (2,))},
        {"normals": "offsets"}),
    Call("targets.domains.ball", domains.ball, {"centre": [0.0, 0.0], "radius": 1.0}, {"centre": array([0.0, 0.0],
        lambda a: a.ndim == 1 and a.size > 0)}),
    Call("targets.domains.simplex", domains.simplex, {"dim": 3}),
    Call("targets.domains.ordered", domains.ordered, {"dim": 3}, {"dim": DIM,
        "lower": kind(lambda v: v == -math.inf if isinstance(v, float) and math.isinf(v) else is_real(v)),
            "upper": kind(lambda v: v == math.inf if isinstance(v, float) and math.isinf(v) else is_real(v))}),
    Call("targets.domains.convex_regions.intersection", both_convex, {"first": domains.box([0.0], [1.0]),
        "second": domains.box([0.5], [2.0])},
         {"first": CONVEX, "second": CONVEX}, {"first": "regions", "second": "regions"}),
]  # fmt: skip


def of_region(region):
    """Calls of the methods of a region."""
    points = np.zeros((2, region.dim)) + 0.1
    any_points = array(points, lambda a: a.ndim == 2 and a.shape[1] == region.dim, finite=False)
    finite = array(points, lambda a: a.ndim == 2 and a.shape[1] == region.dim)
    name = f"{type(region).__module__}.{type(region).__name__}"
    yield Call(f"{name}.contains of {region.name}", region.contains, {"points": points}, {"points": any_points})
    for method in (region.distance, region.nearest, region.normal):
        yield Call(f"{name}.{method.__name__} of {region.name}", method, {"points": points}, {"points": finite})
    yield Call(
        f"{name}.uniform_draws of {region.name}", region.uniform_draws, {"n": 3, "seed": 0}, {"n": count(0, idle=False)}
    )


def of_truth(name, truth, dim):
    """Calls of the methods of a truth."""
    points, edges = np.zeros((2, dim)) + 0.1, np.linspace(-1.0, 2.0, 4)
    is_edges = array(edges, lambda a: a.ndim == 1 and a.size > 1 and (np.diff(a) > 0).all())
    of = f"{type(truth).__module__}.{type(truth).__name__}"
    yield Call(
        f"{of}.memberships of {name}",
        truth.memberships,
        {"points": points},
        {"points": array(points, lambda a: a.ndim == 2 and a.shape[1] == dim, finite=False)},
    )
    yield Call(
        f"{of}.energy_quantiles of {name}",
        truth.energy_quantiles,
        {"probabilities": [0.1, 0.5]},
        {"probabilities": array([0.1, 0.5], lambda a: ((a >= 0) & (a <= 1)).all())},
    )
    y_edges = edges if dim > 1 else None
    yield Call(
        f"{of}.cell_masses of {name}",
        truth.cell_masses,
        {"x_edges": edges, "y_edges": y_edges},
        {"x_edges": is_edges, "y_edges": is_edges if dim > 1 else kind(lambda v: v is None)},
    )
    yield Call(
        f"{of}.independent_draws of {name}", truth.independent_draws, {"n": 3, "seed": 0}, {"n": count(0, idle=False)}
    )


REGIONS = [shapes.cross(), shapes.annulus(n_vertices=64), domains.box([-1.0], [2.0]), domains.ball([0.0] * 3, 1.0),
    domains.simplex(2),
           domains.intersection(domains.ball([0.0, 0.0], 1.0), domains.half_spaces([[1.0, 1.0]], [1.0]))]  # fmt: skip
KNOWN = [
    NORMAL, mixtures.five_spots(), mixtures.cosine9(), mixtures.gaussian_grid25(), classics.ring(), classics.banana(),
        classics.funnel(dim=3),
    classics.egg_box(), classics.double_well(dim=3), classics.pinched(), classics.correlated_gaussian(),
    classics.student_mixture([[-4.0, 0.0], [4.0, 0.0]], 1.0, 3.0),
        posteriors.logistic_regression(*datasets.heart()[1:3]),
]  # fmt: skip
WITHIN = [
    constrained(NORMAL, domains.box([-1.0], [1.0])), constrained(PLANAR, shapes.cross()),
    constrained(mixtures.gaussian_mixture([[0.0] * 3], 1.0), domains.ball([0.0] * 3, 1.0)),
    classics.coin_flip(), classics.egg_crate(), classics.gaussian_shells(), classics.dual_moon(),
]  # fmt: skip
CALLS += [call for region in REGIONS for call in of_region(region)]
CALLS += [call for t in KNOWN for call in of_truth(t.name, t.truth, t.dim)]
CALLS += [call for p in WITHIN for call in of_truth(p.name, p.truth, p.target.dim)]
