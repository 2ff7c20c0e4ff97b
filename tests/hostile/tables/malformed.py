"""Malformed input: targets of a user's own at each of the four doors, targets, posteriors, data, shapes and domains.

Each row says what is wrong, and has a function that must be refused; ``test_malformed.py`` calls them.
"""

import math
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from targets import catalogue, classics, constrained, datasets, domains, from_sympy, mixtures, posteriors, shapes
from toolkit import Target, check_gradient, from_callable, sample, samplers, target

Malformed = tuple[str, Callable[[], object]]
GOOD_ROW = "0 " * 13 + "1\n"


def heart_file(text: str) -> Callable[[], object]:
    """Load ``text`` as the Heart data, from a file that is gone afterwards."""

    def load() -> object:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "heart.dat"
            path.write_text(text, encoding="utf-8")
            return datasets.heart(path)

    return load


FEATURES, LABELS = np.ones((4, 2)), np.array([0, 1, 0, 1])
TARGETS: list[Malformed] = [
    ("mixture: weights that sum to 1.1", lambda: mixtures.gaussian_mixture([[0.0], [1.0]], 1.0, [0.5, 0.6])),
    ("mixture: covariance not positive definite", lambda: mixtures.gaussian_mixture([[0.0, 0.0]], [[1, 2], [2, 1]])),
    ("mixture: means without components", lambda: mixtures.gaussian_mixture([0.0, 1.0], 1.0)),
    ("ring: no radius", lambda: classics.ring(radius=0.0)),
    ("funnel: a word for the dimension", lambda: classics.funnel(dim="ten")),
    ("double well: one well only", lambda: classics.double_well(barrier=1.0, tilt=2.0)),
    ("correlated Gaussian: correlation 1", lambda: classics.correlated_gaussian(correlation=1.0)),
    ("Student-t: no degrees of freedom", lambda: classics.student_mixture([[0.0]], 1.0, 0.0)),
    ("truth: decreasing edges", lambda: mixtures.cosine25().truth.cell_masses([1.0, 0.0], [0.0, 1.0])),
    ("truth: probability 1.5", lambda: mixtures.cosine25().truth.energy_quantiles([0.5, 1.5])),
    ("constrained: no target", lambda: constrained("cosine25", shapes.flower())),
    ("truth: no seed", lambda: catalogue()[0].truth.independent_draws(10, seed=None)),
]
POSTERIORS: list[Malformed] = [
    ("logistic regression: labels 1 and 2", lambda: posteriors.logistic_regression(FEATURES, LABELS + 1)),
    ("logistic regression: too few labels", lambda: posteriors.logistic_regression(FEATURES, LABELS[:3])),
    ("linear regression: no noise", lambda: posteriors.linear_regression(FEATURES, LABELS, noise=0.0, prior=1.0)),
    (
        "linear regression: anchor without minibatches",
        lambda: posteriors.linear_regression(FEATURES, LABELS, noise=1.0, prior=1.0, refresh_every=5),
    ),
    ("posterior: datum is no function", lambda: posteriors.posterior("normal", FEATURES, 2)),
    ("posterior: datum returns an energy only", lambda: posteriors.posterior(lambda x, row: x[0], FEATURES, 2)),
    ("data: a stand-in of no data set", lambda: datasets.stand_in("iris")),
    ("data: a word for whether to standardise", lambda: datasets.heart(standardise="no")),
    ("data: no such file", lambda: datasets.german("nowhere/german.data-numeric")),
    ("data: a word in line 2", heart_file(GOOD_ROW + GOOD_ROW.replace("0 0", "0 zero", 1))),
    ("data: a missing mark", heart_file(GOOD_ROW + "?" + GOOD_ROW[1:])),
    ("data: 13 columns", heart_file(GOOD_ROW + GOOD_ROW[2:])),
    ("data: class 3", heart_file(GOOD_ROW[:-2] + "3\n")),
    ("data: two rows", heart_file(2 * GOOD_ROW)),
    ("data: nothing in it", heart_file("")),
]

SGLD = samplers.sgld(0.1)


def normal(points):
    """A right function of arrays."""
    return 0.5 * (points**2).sum(axis=1), points


def bowl(x):
    """A right function of one point."""
    return 0.5 * (x[0] ** 2 + x[1] ** 2), (x[0], x[1])


def asserts(x):
    """A function of one point that asserts."""
    assert x[0] > 0.0
    return x[0], (1.0, 0.0)


def half_filled(position, energy, gradient, parameters, scratch):
    """A block function that leaves a row of the gradient as it is."""
    for lane in range(position.shape[1]):
        energy[lane] = 0.5 * position[0, lane] ** 2
        gradient[0, lane] = position[0, lane]


def run(made):
    """One step."""
    return sample(made, SGLD, n_steps=1, seed=0, init=np.zeros(made.dim))


def sympy_energy(make):
    """``from_sympy`` of what ``make`` gives, and SymPy only then."""

    def thunk():
        import sympy

        x, y = sympy.symbols("x y")
        return from_sympy(*make(sympy, x, y))

    return thunk


def arrays(function):
    """One step on a function of arrays."""
    return lambda: run(from_callable(function, dim=2, name="mine"))


DOORS: list[Malformed] = [
    ("@target without dim", lambda: target(bowl)),
    ("@target on a number", lambda: target(dim=2)(3.0)),
    ("@target, three arguments for two dimensions", lambda: target(lambda x, y, z: (x, (1.0, 1.0)), dim=2)),
    ("@target, parameters forgotten", lambda: target(lambda x, numbers: (x[0], x), dim=3)),
    ("@target, energy only", lambda: target(lambda x: x[0] ** 2, dim=2)),
    ("@target, nothing returned on some path", lambda: target(lambda x: (x[0], x) if x[0] > 0.0 else None, dim=2)),
    ("@target, gradient too short", lambda: target(lambda x: (x[0], (1.0,)), dim=2)),
    ("@target, gradient an array", lambda: target(lambda x: (x[0], np.array([x[0], x[1]])), dim=2)),
    ("@target, complex energy", lambda: target(lambda x: (1j * x[0], x), dim=1)),
    ("@target, a tuple taken for an array", lambda: target(lambda x: (0.5 * x * x, x), dim=2)),
    ("@target, assert", lambda: target(asserts, dim=2)),
    ("@target, math of a tuple", lambda: target(lambda x: (math.exp(x), x), dim=2)),
    ("block function, row not filled", lambda: run(Target("mine", 2, half_filled))),
    ("block function, not callable", lambda: Target("mine", 2, "half_filled")),
    ("from_sympy, text", sympy_energy(lambda sp, x, y: ("x**2", x))),
    ("from_sympy, no number for y", sympy_energy(lambda sp, x, y: (y * x**2, x))),
    ("from_sympy, idle coordinate", sympy_energy(lambda sp, x, y: (x**2, (x, y)))),
    ("from_sympy, complex", sympy_energy(lambda sp, x, y: (sp.sqrt(-1 - x**2), x))),
    ("from_sympy, integral left to do", sympy_energy(lambda sp, x, y: (sp.Integral(sp.exp(x * y), (y, 0, 1)), x))),
    ("from_sympy, function not known", sympy_energy(lambda sp, x, y: (sp.gamma(x), x))),
    ("from_sympy, number beyond floats", sympy_energy(lambda sp, x, y: (sp.exp(1000) * x**2, x))),
    ("from_sympy, parameter nan", sympy_energy(lambda sp, x, y: (y * x**2, x, {y: math.nan}))),
    ("from_callable, not callable", lambda: from_callable(3, dim=2)),
    ("from_callable, one array", arrays(lambda p: p)),
    ("from_callable, scalar energy", arrays(lambda p: (p.sum(), p))),
    ("from_callable, gradient transposed", arrays(lambda p: (p[:, 0], p.T))),
    ("from_callable, complex gradient", arrays(lambda p: (p[:, 0], p + 0j))),
    ("from_callable, ragged gradient", arrays(lambda p: (p[:, 0], [[1.0], [1.0, 2.0]]))),
    ("from_callable, nan gradient at the start", arrays(lambda p: (p[:, 0], p * math.nan))),
    (
        "from_callable, divergence by nan",
        lambda: sample(
            from_callable(lambda p: (np.where(np.abs(p[:, 0]) < 0.5, 0.0, math.nan), 0.0 * p), dim=2, name="mine"),
            SGLD,
            n_steps=1000,
            seed=0,
            init=[0.0, 0.0],
        ),
    ),
    (
        "check_gradient, wrong sign",
        lambda: check_gradient(from_callable(lambda p: (normal(p)[0], -p), dim=2, name="mine")),
    ),
    (
        "check_gradient, coordinates exchanged",
        lambda: check_gradient(
            from_callable(
                lambda p: (mixtures.cosine25().evaluate(p)[0], mixtures.cosine25().evaluate(p)[1][:, ::-1]),
                dim=2,
                name="mine",
            )
        ),
    ),
    (
        "check_gradient, coordinate missing",
        lambda: check_gradient(from_callable(lambda p: (normal(p)[0], p * [1.0, 0.0]), dim=2, name="mine")),
    ),
    (
        "check_gradient, noise",
        lambda: check_gradient(
            from_callable(
                lambda p: (normal(p)[0] + 1e-3 * np.random.default_rng().normal(size=len(p)), p), dim=2, name="mine"
            )
        ),
    ),
]

SQUARE = [[0, 0], [4, 0], [4, 4], [0, 4], [0, 0]]


def geojson(*rings: Any) -> dict[str, Any]:
    """GeoJSON of one polygon."""
    return {"type": "Polygon", "coordinates": list(rings)}


REGIONS: list[Malformed] = [
    ("polygon: two vertices", lambda: shapes.polygon_of("p", [[0, 0], [1, 1]])),
    ("polygon: a figure of eight", lambda: shapes.polygon_of("p", [[0, 0], [2, 2], [2, 0], [0, 3]])),
    ("polygon: a vertex twice", lambda: shapes.polygon_of("p", [[0, 0], [1, 0], [1, 0], [1, 1]])),
    ("polygon: vertices in a line", lambda: shapes.polygon_of("p", [[0, 0], [0.1, 0.3], [0.2, 0.6]])),
    ("polygon: nan", lambda: shapes.polygon_of("p", [[0, 0], [1, np.nan], [1, 1]])),
    ("polygon: a hole outside", lambda: shapes.polygon_of("p", SQUARE[:4], [[[5, 5], [6, 5], [5, 6]]])),
    ("polygon: holes None", lambda: shapes.polygon_of("p", SQUARE[:4], None)),
    ("curve: open", lambda: shapes.curve("c", lambda t: (t, t**2))),
    (
        "curve: crosses itself",
        lambda: shapes.curve("c", lambda t: (np.sin(4 * np.pi * t), np.sin(2 * np.pi * t + 0.1))),
    ),
    ("flower: offset of 1", lambda: shapes.flower(offset=1.0)),
    ("annulus: inside out", lambda: shapes.annulus(radius=1.0, inner=2.0)),
    ("GeoJSON: open ring", lambda: shapes.from_geojson(geojson(SQUARE[:4]))),
    ("GeoJSON: words", lambda: shapes.from_geojson(geojson([["a", 0], [1, 0], [0, 1], ["a", 0]]))),
    ("GeoJSON: two features", lambda: shapes.from_geojson({"type": "FeatureCollection", "features": [1, 2]})),
    ("GeoJSON: a line", lambda: shapes.from_geojson({"type": "LineString", "coordinates": SQUARE})),
    ("GeoJSON: no JSON", lambda: shapes.from_geojson("{nothing")),
    ("GeoJSON: no file", lambda: shapes.from_geojson("nowhere.json")),
    ("SVG: open path", lambda: shapes.from_svg("M 0 0 H 4 V 4")),
    ("SVG: nonsense", lambda: shapes.from_svg("M 0 zero Z")),
    ("Shapely: no geometry", lambda: shapes.from_shapely("POLYGON")),
    ("shapes apart", lambda: shapes.intersection(shapes.cross(), shapes.from_svg("M 9 9 h 1 v 1 Z", name="far"))),
    ("box: upside down", lambda: domains.box([0.0, 1.0], [1.0, 1.0])),
    ("box: nan", lambda: domains.box([np.nan], [1.0])),
    ("box: no finite side", lambda: domains.box([-np.inf], [np.inf])),
    ("box: words", lambda: domains.box(["0"], ["1"])),
    ("half-spaces: empty", lambda: domains.half_spaces([[1, 1], [-1, -1]], [0, -1])),
    ("half-spaces: flat", lambda: domains.half_spaces([[1, 1], [-1, -1]], [1, -1])),
    ("half-spaces: a zero normal", lambda: domains.half_spaces([[1, 0], [0, 0]], [1, 1])),
    ("ball: radius 0", lambda: domains.ball([0.0], 0.0)),
    ("simplex: 2.0 dimensions", lambda: domains.simplex(2.0)),
    ("ordered: lower None", lambda: domains.ordered(3, lower=None)),
    ("balls apart", lambda: domains.intersection(domains.ball([0.0, 0.0], 1.0), domains.ball([3.0, 0.0], 1.0))),
    ("regions of two dimensions", lambda: domains.intersection(domains.simplex(2), domains.simplex(3))),
    ("a shape among regions", lambda: domains.intersection(domains.simplex(2), shapes.flower())),
    ("draws without an end", lambda: domains.ordered(2).uniform_draws(1, seed=0)),
    ("points of words", lambda: domains.simplex(2).contains("here")),
    ("points in 1-D", lambda: domains.simplex(2).distance([[0.0]])),
    ("a target of another dimension", lambda: constrained(mixtures.cosine25(), domains.simplex(3))),
    ("no region", lambda: constrained(mixtures.cosine25(), "flower")),
]
