"""Nothing that an argument says is dropped: masked entries, imaginary parts, units, comments, numbers of no use."""

import re

import numpy as np
import pytest

from sysid import data, libraries, priors
from sysid.constraints import Coordinates, region_of
from sysid.data.series import Series
from sysid.systems.system import System
from targets import constrained, domains, mixtures
from targets.classics import curved
from targets.posteriors import logistic
from toolkit import Target, diagnostics, sample, samplers, weighting
from toolkit.errors import check_array, check_integers, check_measured, check_real_array

ROWS, TIMES = np.arange(4.0)[:, None], np.arange(4.0)
HIDDEN = np.ma.array([[0.0], [1.0], [99.0], [2.0]], mask=[[0], [0], [1], [0]])
DRAWS = np.ma.array(np.arange(40.0).reshape(2, 20, 1), mask=np.arange(40).reshape(2, 20, 1) == 7)
NORMAL = mixtures.gaussian_mixture([[0.0]], 1.0)
EDGES = np.linspace(0.0, 40.0, 5)

MASKED = {
    "times": (lambda: Series(np.ma.array(TIMES, mask=TIMES == 1), ROWS, ("x",)), "times"),
    "velocities": (lambda: data.from_arrays(TIMES, ROWS, "x", velocities=HIDDEN), "velocities"),
    "a masked number in a list": (lambda: data.from_arrays([0, 1], [[0.0], [np.ma.masked]], "x"), "values"),
    "ess": (lambda: diagnostics.ess(DRAWS), "draws"),
    "resample": (lambda: weighting.resample(DRAWS, np.ones((2, 20)), seed=0), "draws"),
    "weights": (lambda: weighting.resample(DRAWS.data, np.ma.masked_all((2, 20)), seed=0), "weights"),
    "init": (lambda: sample(NORMAL, samplers.sgld(0.1), n_steps=1, seed=0, init=HIDDEN[2]), "init"),
    "mixture": (lambda: mixtures.gaussian_mixture(HIDDEN, 1.0), "means"),
    "box": (lambda: domains.box(np.ma.array([-1.0, -2.0], mask=[0, 1]), [1.0, 1.0]), "lower"),
    "logistic": (lambda: logistic.logistic_regression(HIDDEN, [0, 1, 0, 1]), "features"),
    "kl": (lambda: diagnostics.kl_divergence(HIDDEN.ravel(), np.full(4, 0.25)), "counts"),
    "histogram": (lambda: diagnostics.energy_histogram(DRAWS[..., 0], EDGES), "energies"),
    "wasserstein": (lambda: diagnostics.wasserstein(DRAWS, DRAWS.data), "draws"),
    "library": (lambda: libraries.polynomial(["x"], 1).evaluate(HIDDEN), "states"),
    "parameters": (lambda: Target("t", 1, lambda x, u, g, p, s: None, np.ma.masked_all(2)), "parameters"),
}


@pytest.mark.parametrize("case", MASKED)
def test_masked_entries_are_refused_by_name(case):
    call, name = MASKED[case]
    with pytest.raises(ValueError, match=rf"{name} must have no masked entries, got one at \["):
        call()


def test_a_mask_that_hides_nothing_is_no_mask():
    whole = np.ma.array([1.0, 2.0], mask=[0, 0])
    assert check_array("x", whole).tolist() == [1.0, 2.0]
    assert check_integers("x", np.ma.array([1, 2])).tolist() == [1, 2]
    with pytest.raises(ValueError, match=r"x must have no masked entries, got one at \[1, 0\]"):
        check_real_array("x", [[1.0], np.ma.array([2.0], mask=[1])])
    with pytest.raises(ValueError, match="x must have no masked entries, got one:"):
        check_real_array("x", np.ma.masked)


def test_missing_values_of_a_series_are_nan_whichever_way_they_are_given():
    for found in (Series(TIMES, HIDDEN, ("x",)), data.from_arrays(TIMES, HIDDEN, "x")):
        np.testing.assert_array_equal(found.values.ravel(), [0.0, 1.0, np.nan, 2.0])
    assert np.isnan(check_measured("x", np.ma.array([1, 2], mask=[0, 1]))).tolist() == [False, True]


def test_quantities_with_units_are_refused():
    class Quantity(np.ndarray):
        """As Astropy's: an array with a unit."""

        unit = "m"

        def to_value(self):
            """Its numbers."""

    metres = np.ones(2).view(Quantity)
    for given in (metres, [metres, metres]):
        with pytest.raises(TypeError, match="x must be numbers without a unit"):
            check_real_array("x", given)


@pytest.mark.parametrize(
    "given",
    [(99,), (-1,), (True,), (1, 0.0, -1.0), (1, np.nan), (1, 0.0, 0.0), (4,), (1, 0.0, 1.0, (0.5,), (1.0,)), (0, 3.0),
        (4, 0.0, 1.0, (0.5, 0.5), (1.0,)), (4, 0.0, 1.0, (0.5, -0.5), (1.0, 2.0)), (2, 1e4), (1, "0"),
        (4, 0.0, 1.0, (0.5, 0.5), (2.0, 1.0)), (4, 0.0, 1.0, (0.5, 0.5), (1.0, 2.0), 2), (1, 0.0, 1.0, (), (), 1)],
    ids=str,
)  # fmt: skip
def test_a_prior_is_a_law(given):
    with pytest.raises((TypeError, ValueError), match=r"must be|must increase"):
        priors.Prior(*given)


def test_parts_of_a_system_and_of_a_library_are_checked():
    given = ("d", ("x",), ("k",), lambda t, x, p: (-p[0] * x[0],), [1.0], [1.0])
    for wrong in ({"lyapunov": "x"}, {"lyapunov": np.nan}, {"invariant": 5}, {"source": 1}, {"time_unit": None}):
        with pytest.raises((TypeError, ValueError), match=f"{next(iter(wrong))} must be"):
            System(*given, **wrong)
    with pytest.raises(TypeError, match="states must be an array of real numbers"):
        libraries.polynomial(["x"], 1).evaluate([[1j]])
    with pytest.raises(TypeError, match="gives the complex number"):
        libraries.functions(["x"], {"f": lambda x: 1j * x[0]})
    root = libraries.functions(["x"], {"root": lambda x: complex(x[0]) ** 0.5})
    with pytest.raises(ValueError, match="'root' must give real numbers"):
        root.evaluate([[-1.0]])
    for wrong in ({"powers": (1, 1)}, {"powers": (-1,)}, {"own": 3}, {"text": 1}):
        with pytest.raises((TypeError, ValueError), match="must"):
            libraries.Library(("x",), (libraries.Term(**({"name": "a", "text": "x[0]"} | wrong)),))


@pytest.mark.parametrize(
    "problem",
    [NORMAL, curved.funnel(dim=2), constrained(NORMAL, domains.box([-1.0], [1.0])),
        mixtures.gaussian_mixture([[-2.0], [2.0]], 1.0)],
    ids=["normal", "funnel", "in a box", "pair"],
)  # fmt: skip
def test_a_point_that_is_none_belongs_to_no_mode(problem):
    truth = problem.truth
    dim = getattr(problem, "target", problem).dim
    with pytest.raises(ValueError, match="points must be finite, got nan"):
        truth.memberships(np.full((1, dim), np.nan))


@pytest.mark.parametrize(
    ("text", "said"),
    [("sigma > parameter_1", "got 'parameter_1'"), ("sigma > parameter__1", "got 'parameter__1'"),
        ("sigma > \uff50arameter_1", "got '\uff50arameter_1'"), ("sigma > 1 # + beta", "must not hold '#'"),
        ("sigma < 1e999", "must be finite, got inf")],
)  # fmt: skip
def test_a_constraint_means_what_it_says_or_is_refused(text, said):
    names, none = ("sigma", "rho", "beta"), np.zeros(3, np.bool_)
    with pytest.raises(ValueError, match=re.escape(said)):
        region_of(text, names, Coordinates(none, np.zeros(3), np.eye(3)), none)


def test_a_parameter_may_have_any_name():
    names, none = ("parameter_1", "parameter_0", "a#b"), np.zeros(3, np.bool_)
    region = region_of(["parameter_1 > 2", "a#b < 3"], names, Coordinates(none, np.zeros(3), np.eye(3)), none)
    assert region.lower.tolist() == [2.0, -np.inf, -np.inf]
    assert region.upper.tolist() == [np.inf, np.inf, 3.0]
