"""The trajectory likelihood against closed forms, SciPy's integrator and densities, and differences of its energy."""

import numpy as np
import pytest
import scipy.stats
from numba import njit
from scipy.integrate import solve_ivp

from sysid.data.series import Series
from sysid.libraries import fourier, functions, polynomial
from sysid.likelihoods.start_search import StartSearch, is_finite
from sysid.likelihoods.trajectories import trajectory
from sysid.likelihoods.trajectory_kernel import equations_of
from sysid.model import model_of
from sysid.solvers.adjoint import pullback_of_model, pullback_of_system
from sysid.solvers.runge_kutta import ORDERS
from sysid.systems.system import System
from toolkit._compiler import kept

RNG = np.random.default_rng(6)


def prey_and_predators(t, x, p):
    return (p[0] * x[0] - p[1] * x[0] * x[1], -p[2] * x[1] + p[3] * x[0] * x[1])


def forced(t, x, p):
    return (p[0] * x[0] - p[1] * x[0] * x[1] + np.sin(t), -p[2] * x[1] + p[3] * x[0] * x[1])


def lorenz(t, x, p):
    return (p[0] * (x[1] - x[0]), x[0] * (p[1] - x[2]) - x[1], x[0] * x[1] - p[2] * x[2])


def decay(t, x, p):
    return (-p[0] * x[0] + p[1] * x[0] * x[0],)


TERMS = {
    "prey": {"prey": "a", "prey predator": {"b": -1.0}},
    "predator": {"predator": {"c": -1.0}, "prey predator": "d"},
}
LORENZ_TERMS = {
    "x": {"x": {"s": -1.0}, "y": "s"},
    "y": {"x": "r", "xz": -1.0, "y": -1.0},
    "z": {"xy": 1.0, "z": {"b": -1.0}},
}
TRUE, FIRST = np.array([0.55, 0.028, 0.8, 0.024]), np.array([34.0, 6.0])
LINEAR = System("linear", ("prey", "predator"), ("a", "b", "c", "d"), prey_and_predators, TRUE, FIRST, terms=TERMS)
UNKNOWN = System("general", ("prey", "predator"), ("a", "b", "c", "d"), forced, TRUE, FIRST)
DECAY = System("decay", ("x",), ("k", "growth"), decay, [0.5, 0.0], [2.0])
LORENZ = System("Lorenz", ("x", "y", "z"), ("s", "r", "b"), lorenz, [10, 28, 8 / 3], [-8, 7, 27], terms=LORENZ_TERMS)


def solution(rhs, times, first, parameters):
    answer = solve_ivp(
        lambda t, x: rhs(t, x, parameters), (times[0], times[-1]), first, "DOP853", times, rtol=1e-13, atol=1e-13
    )
    return answer.y.T


TIMES = np.array([0.0, 1.0, 1.5, 2.0, 3.5, 4.0, 5.0, 7.0, 8.0, 8.25, 9.0, 10.0])
STATES = solution(prey_and_predators, TIMES, FIRST, TRUE)
VALUES = STATES * np.exp(0.1 * RNG.standard_normal(STATES.shape))
VALUES[3, 0] = VALUES[6] = VALUES[0, 1] = np.nan
DATA = Series(TIMES, VALUES, ("prey", "predator"), noise=[0.1, 0.2])
THETA = np.array([0.53, 0.027, 0.83, 0.025, 33.0, 6.5, 0.13, 0.21])


def log_density(states, sd, errors):
    """Of DATA, by scipy.stats."""
    there = ~np.isnan(VALUES)
    if errors == "gaussian":
        every = scipy.stats.norm(states, sd).logpdf(VALUES)
    else:
        every = scipy.stats.lognorm(np.broadcast_to(sd, states.shape), scale=states).logpdf(VALUES)
    return every[there].sum()


def slopes_by_differences(evaluate, theta, length):
    """Sixth-order central differences of an energy, one parameter after another."""
    out = []
    for k, value in enumerate(theta):
        h = length * max(abs(value), 0.1)
        offsets = np.zeros((6, theta.size))
        offsets[:, k] = h * np.array([-3, -2, -1, 1, 2, 3])
        energies = evaluate(theta + offsets)[0]
        out.append(energies @ np.array([-1, 9, -45, 45, -9, 1]) / (60.0 * h))
    return np.array(out)


@pytest.mark.cases(1)
@pytest.mark.slow_cases("rk5-gaussian")
@pytest.mark.parametrize("errors", ["gaussian", "lognormal"])
@pytest.mark.parametrize("method", ["rk4", "rk5"])
def test_energy_is_the_log_density_under_the_solution_to_the_order_of_the_method(errors, method):
    sd = THETA[6:] * (10.0 if errors == "gaussian" else 1.0)
    exact = -log_density(solution(prey_and_predators, TIMES, THETA[4:6], THETA[:4]), sd, errors)
    off = []
    for step in (1 / 16, 1 / 32, 1 / 64):
        shot, _ = trajectory(errors=errors, method=method, step=step).energy_and_start(DATA, LINEAR)
        off.append(shot.evaluate(np.append(THETA[:6], sd))[0][0] - exact)
    assert abs(off[-1]) < 1e-5
    # Over a factor of four in the step; errors of several signs add up, so the order is never quite reached.
    assert abs(0.5 * np.log2(abs(off[0] / off[2])) - ORDERS[method]) < 0.45
    wrong = -log_density(solution(prey_and_predators, TIMES, THETA[4:6], THETA[:4]), sd, "lognormal")
    assert errors == "lognormal" or abs(wrong - exact) > 1.0


LAWS = [
    {"errors": "gaussian"},
    {"errors": "lognormal"},
    {"errors": "lognormal", "segments": 3, "gap": 0.05},
    {"errors": "gaussian", "segments": 4, "gap": 0.1, "method": "rk5"},
    {"errors": "gaussian", "noise": "known", "start": (33.0, 6.5)},
    {"errors": "lognormal", "noise": 0.3, "segments": 2, "start": (33.0, 6.5)},
]


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("law", "system"), [*((law, LINEAR) for law in LAWS), (LAWS[0], UNKNOWN)], ids=lambda given: str(given)
)
def test_gradient_is_that_of_the_energy(law, system):
    shot, start = trajectory(step=0.25, **law).energy_and_start(DATA, system)
    assert shot.names[:4] == ("a", "b", "c", "d")
    theta = start * np.exp(0.05 * np.random.default_rng(1).standard_normal(start.size))
    (energy,), (slope,) = shot.evaluate(theta)
    wanted = slopes_by_differences(shot.evaluate, theta, 3e-4)
    # Rounding of the energy over the step: 1e-15 |U| / 3e-4 / |θ| ~ 1e-9 |slope scale|; truncation 1e-18.
    scale = np.abs(wanted) + 1e-5 * abs(energy) / np.maximum(np.abs(theta), 0.1)
    assert np.abs((slope - wanted) / scale).max() < 1e-8 * 1e2 ** (np.abs(theta).min() < 0.1)


def test_derivatives_written_out_are_those_of_complex_steps():
    library = polynomial(("x", "y"), 3).subset(["1", "x", "y", "xy", "xxy"]) + fourier(("x", "y"), 1, frequency=0.7)
    library = library + functions(("x", "y"), {"own": lambda x: np.exp(-x[0] * x[0]) * x[1] + x[0] / (2.0 + x[1])})
    model = model_of(
        library,
        free=["dx:xxy", "dy:xy", "dx:sin(0.7 x)", "dy:cos(0.7 y)", "dx:cos(0.7 x)", "dy:own"],
        fixed={"dx:y": 1.0, "dy:1": 0.3, "dx:own": -0.4},
        tied={"q": {"dx:x": -1.0, "dy:y": 2.0}},
    )
    written, complex_steps = pullback_of_model(model), pullback_of_system(model.system)

    @kept
    @njit
    def both(t, x, p, w):
        return written(t, x, p, w), complex_steps(t, x, p, w)

    x, p, w = (tuple(RNG.standard_normal(n).tolist()) for n in (2, len(model.parameters), 2))
    for left, right in zip(*both(0.3, x, p, w), strict=True):
        assert np.abs(np.subtract(left, right)).max() < 1e-14 * np.abs(left).max() * 10
        assert np.abs(left).min() > 0.0


def test_what_is_linear_in_its_parameters_is_known_to_be():
    library = polynomial(("x",), 2)
    assert equations_of(library).model.parameters == ("dx:1", "dx:x", "dx:xx")
    assert equations_of(LINEAR).model.parameters == LINEAR.parameters
    assert equations_of(UNKNOWN).model is None


def decaying(errors, n=7, seed=2):
    """A series of x' = −kx, and the stability polynomial's solution of it at rate k from a start."""
    times = np.linspace(0.0, 3.0, n)

    def exact(k, start):
        z = -k * 0.25
        return start * (1 + z + z**2 / 2 + z**3 / 6 + z**4 / 24) ** (4.0 * times)

    noise = 0.1 * np.random.default_rng(seed).standard_normal(n)
    values = exact(0.6, 2.0) * np.exp(noise) if errors == "lognormal" else exact(0.6, 2.0) + noise
    return Series(times, values[:, None], ("x",)), exact


@pytest.mark.cases(1)
@pytest.mark.parametrize("errors", ["gaussian", "lognormal"])
def test_energy_of_a_linear_system_in_closed_form(errors):
    data, exact = decaying(errors)
    shot, _ = trajectory(errors=errors, step=0.25).energy_and_start(data, DECAY)
    assert shot.names == ("k", "growth", "x(0)", "sd(x)")
    for theta in ([0.6, 0.0, 2.0, 0.1], [0.9, 0.0, 1.5, 0.3]):
        x, y = exact(theta[0], theta[2]), data.values[:, 0]
        density = scipy.stats.norm(x, theta[3]) if errors == "gaussian" else scipy.stats.lognorm(theta[3], scale=x)
        assert abs(shot.evaluate(np.array(theta))[0][0] + density.logpdf(y).sum()) < 1e-11


def marginal(shot, k, n_starts, logarithmic):
    """−log of the density of the data at rate k: over all starts, by the energy's own quadratic form in them."""

    def evaluate(v):
        starts = np.exp(v) if logarithmic else v
        energy, slope = shot.evaluate(np.column_stack([np.full(len(v), k), np.zeros(len(v)), starts]))
        slope = slope[:, 2:] * (starts if logarithmic else 1.0)
        # The later starts have a density of their own; that of their logarithms is a Jacobian less.
        later = np.where(np.arange(n_starts) > 0, float(logarithmic), 0.0)
        return energy - (v * later).sum(axis=1), slope - later

    centre = np.zeros(n_starts)
    points = np.concatenate([centre[None], np.eye(n_starts)])
    _, slope = evaluate(points)
    hessian = slope[1:] - slope[0]
    mode = -np.linalg.solve(hessian, slope[0])
    (lowest,), (flat,) = evaluate(mode[None])
    assert np.abs(flat).max() < 1e-6 * np.abs(slope).max()
    return lowest + 0.5 * np.linalg.slogdet(hessian / (2.0 * np.pi))[1]


@pytest.mark.parametrize("errors", ["gaussian", "lognormal"])
def test_segments_with_small_kicks_are_one_solution_but_for_the_square_of_the_kicks(errors):
    data, _ = decaying(errors)
    logarithmic = errors == "lognormal"
    single, _ = trajectory(errors=errors, noise=0.1, step=0.25).energy_and_start(data, DECAY)
    wanted = [marginal(single, k, 1, logarithmic) for k in (0.5, 0.7)]
    away = []
    for gap in (2e-2, 1e-2, 5e-3):
        shot, _ = trajectory(errors=errors, noise=0.1, step=0.25, segments=3, gap=gap).energy_and_start(data, DECAY)
        assert shot.names == ("k", "growth", "x(0)", "x(1)", "x(2)")
        away.append([marginal(shot, k, 3, logarithmic) - w for k, w in zip((0.5, 0.7), wanted, strict=True)])
    assert np.abs(away[-1]).max() < 0.1
    assert np.abs(np.log2(np.divide(away[:-1], away[1:])) - 2.0).max() < 0.15


def test_a_solution_that_blows_up_has_infinite_energy_and_no_slope_and_leaves_other_lanes_alone():
    times = np.linspace(0.0, 5.0, 11)
    data = Series(times, 1.0 / (1.0 - 0.1 * times)[:, None], ("x",))
    shot, _ = trajectory(step=0.05).energy_and_start(data, DECAY)
    good = np.array([0.0, 0.1, 1.0, 0.2])
    bad = [[0.5, 1.0, 0.2], [3.0, 1e5, 0.1], [1e300, 1e300, 1.0], [-1e300, 5.0, 1.0], [0.1, 1.0, 0.0], [0.1, 1e7, 0.1]]
    bad = [[0.0, *numbers] for numbers in bad]
    energy, slope = shot.evaluate(np.array([good, *bad, good]))
    assert np.isinf(energy[1:-1]).all()
    assert (energy[1:-1] > 0.0).all()
    assert (slope[1:-1] == 0.0).all()
    alone = shot.evaluate(good)
    for k in (0, -1):
        assert energy[k] == alone[0][0]
        assert (slope[k] == alone[1][0]).all()


def test_a_solution_beyond_the_limit_has_infinite_energy_though_it_is_finite():
    times = np.linspace(0.0, 4.0, 5)
    data = Series(times, 1.5 * np.exp(0.5 * times)[:, None], ("x",))
    theta = np.array([-0.5, 0.0, 1.5, 0.2])
    shots = {limit: trajectory(step=0.05, limit=limit).energy_and_start(data, DECAY)[0] for limit in (11.2, 12.0)}
    assert np.isfinite(shots[12.0].evaluate(theta)[0])
    assert np.isinf(shots[11.2].evaluate(np.array([-0.51, 0.0, 1.5, 0.2]))[0])


def test_no_point_gives_nan():
    shot, start = trajectory(errors="lognormal", segments=2).energy_and_start(DATA, LINEAR)
    rng = np.random.default_rng(4)
    points = start * rng.choice([0.0, 1.0, -1.0, 1e-310, 1e-20, 1e20, 1e305, 3.0], size=(4000, start.size))
    energy, slope = shot.evaluate(np.concatenate([points, start[None]]))
    assert not np.isnan(energy).any()
    assert np.isfinite(slope).all()
    assert (slope[np.isinf(energy)] == 0.0).all()
    assert np.isfinite(energy[-1])


@pytest.mark.parametrize("lanes", [1, 3, 8, 64])
def test_bits_do_not_depend_on_the_number_of_lanes(lanes):
    shot, start = trajectory(errors="lognormal", step=0.25).energy_and_start(DATA, LINEAR)
    points = start * np.exp(0.02 * np.random.default_rng(2).standard_normal((64, start.size)))
    energy, slope = shot.evaluate(points)
    for k in range(0, 64 - lanes + 1, lanes):
        part = shot.evaluate(points[k : k + lanes])
        assert (part[0] == energy[k : k + lanes]).all()
        assert (part[1] == slope[k : k + lanes]).all()


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_the_start_is_near_the_lowest_energy(law):
    shot, start = trajectory(step=0.25, **law).energy_and_start(DATA, LINEAR)
    near = start * np.exp(0.01 * np.random.default_rng(1).standard_normal((8, start.size)))
    sizes = [np.linalg.norm(slope * theta) for slope, theta in zip(shot.evaluate(near)[1], near, strict=True)]
    assert np.linalg.norm(shot.evaluate(start)[1][0] * start) < 0.02 * min(sizes)


HARD = {
    "exact": STATES,
    "constant": np.ones_like(STATES),
    "zero": np.zeros_like(STATES),
    "no solution": 10.0 * np.random.default_rng(0).standard_normal(STATES.shape),
    "one value": np.where(np.arange(len(TIMES))[:, None] < [len(TIMES), 1], STATES, np.nan),
    "two rows": STATES[:2],
}


@pytest.mark.parametrize("case", HARD)
def test_a_start_of_finite_energy_is_found_for_hard_data(case):
    data = Series(TIMES[: len(HARD[case])], HARD[case], ("prey", "predator"))
    shot, start = trajectory(step=0.25).energy_and_start(data, LINEAR)
    assert np.isfinite(shot.evaluate(start)[0]).all()
    if case == "exact":
        assert np.abs(start[:6] / (*TRUE, *FIRST) - 1.0).max() < 1e-3


def test_many_data_are_smoothed_by_fewer_knots_and_found():
    times = np.linspace(0.0, 40.0, 2001)
    states = solution(prey_and_predators, times, FIRST, TRUE)
    noisy = states + 2.0 * np.random.default_rng(1).standard_normal(states.shape)
    _, start = trajectory().energy_and_start(Series(times, noisy, ("prey", "predator")), LINEAR)
    assert np.abs(start / (*TRUE, *FIRST, 2.0, 2.0) - 1.0).max() < 0.1


def test_the_step_is_found_so_that_half_of_it_changes_little():
    law = trajectory(errors="lognormal")
    shot, start = law.energy_and_start(DATA, LINEAR)
    step = shot.numbers[6 + 10 + 1]
    finer, _ = trajectory(errors="lognormal", step=step / 4).energy_and_start(DATA, LINEAR)
    assert abs(shot.evaluate(start)[0][0] - finer.evaluate(start)[0][0]) < 1e-3
    coarse, _ = trajectory(errors="lognormal", step=1.0).energy_and_start(DATA, LINEAR)
    assert abs(coarse.evaluate(start)[0][0] - finer.evaluate(start)[0][0]) > 1e-3


@pytest.mark.cases(0)
def test_a_chaotic_system_is_found_from_noisy_data_by_segments_and_not_without():
    times = np.linspace(0.0, 5.0, 251)
    states = solution(lorenz, times, [-8, 7, 27], [10, 28, 8 / 3])
    sd = 0.05 * np.sqrt((states**2).mean(axis=0))
    data = Series(times, states + sd * np.random.default_rng(3).standard_normal(states.shape), ("x", "y", "z"))
    _, start = trajectory(segments=8).energy_and_start(data, LORENZ)
    assert len(start) == 3 + 24 + 3
    assert np.abs(start[:3] / (10, 28, 8 / 3) - 1.0).max() < 0.02
    assert np.abs(start[-3:] / sd - 1.0).max() < 0.25  # an sd of 251 data is right to 4.5 %


def test_a_fixed_start_is_the_first_row_and_no_datum():
    values = np.array(VALUES)
    values[0] = 33.0, 6.5
    data = Series(TIMES, values, ("prey", "predator"))
    fixed, _ = trajectory(start="fixed", step=0.25).energy_and_start(data, LINEAR)
    given, _ = trajectory(start=(33.0, 6.5), step=0.25).energy_and_start(data, LINEAR)
    assert fixed.names == given.names == ("a", "b", "c", "d", "sd(prey)", "sd(predator)")
    theta = np.array([*TRUE, 2.0, 3.0])
    first = np.log(np.sqrt(2.0 * np.pi) * theta[4:]).sum()
    assert abs(given.evaluate(theta)[0] - fixed.evaluate(theta)[0] - first) < 1e-10


def test_a_state_that_is_not_measured_is_shot_all_the_same():
    data = Series(TIMES, STATES[:, :1] + 0.1 * RNG.standard_normal((len(TIMES), 1)), ("prey",))
    shot, start = trajectory().energy_and_start(data, LINEAR)
    assert shot.names == ("a", "b", "c", "d", "prey(0)", "predator(0)", "sd(prey)")
    assert shot.positive == (False,) * 6 + (True,)
    assert np.abs(start[:1] / TRUE[:1] - 1.0).max() < 0.3


WRONG = {
    "errors": ("errors must be one of", {"errors": "cauchy"}),
    "noise": ("noise must be one of 'free', 'known'", {"noise": "loud"}),
    "negative": (r"noise\[1\] must be finite and > 0, got -1", {"noise": [1.0, -1.0]}),
    "start": ("start must be finite", {"start": [np.nan, 1.0]}),
    "step": ("step must be finite and > 0", {"step": 0.0}),
    "segments": ("segments must be ≥ 1", {"segments": 0}),
    "gap": ("gap must be finite and > 0", {"gap": 0.0}),
    "method": ("method must be one of", {"method": "euler"}),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_arguments_are_named(case):
    message, arguments = WRONG[case]
    with pytest.raises((TypeError, ValueError), match=message):
        trajectory(**arguments)


def test_data_that_do_not_fit_are_named():
    negative = Series([0.0, 1.0, 2.0], [[1.0, 1.0], [2.0, -3.0], [1.0, 1.0]], ("prey", "predator"))
    with pytest.raises(ValueError, match="data must be > 0 for log-normal errors, got -3 of 'predator' at row 1"):
        trajectory(errors="lognormal").prepare(negative, LINEAR)
    with pytest.raises(ValueError, match="segments must be fewer than the 12 times"):
        trajectory(segments=12).prepare(DATA, LINEAR)
    with pytest.raises(ValueError, match="data must have states of the model, x, got 'prey'"):
        trajectory().prepare(DATA, DECAY)
    with pytest.raises(ValueError, match="noise='known' needs data with noise > 0, got None"):
        trajectory(noise="known").prepare(negative, LINEAR)
    with pytest.raises(ValueError, match="data must have all states in the first row"):
        trajectory(start="fixed").prepare(DATA, LINEAR)
    with pytest.raises(ValueError, match="start must have 2 states, got 3"):
        trajectory(start=(1.0, 2.0, 3.0)).prepare(DATA, LINEAR)
    with pytest.raises(ValueError, match="step must leave at most 1000000 steps"):
        trajectory(step=1e-7).prepare(DATA, LINEAR)
    with pytest.raises(TypeError, match="model must be a System, Library or Model"):
        trajectory().prepare(DATA, "lorenz")
    with pytest.raises(TypeError, match="data must be a Series"):
        trajectory().prepare(VALUES, LINEAR)


def test_what_is_prepared_is_what_was_shot():
    prepared = trajectory(errors="lognormal", step=0.25).prepare(DATA, LINEAR)
    assert prepared.names == ("a", "b", "c", "d", "prey(0)", "predator(0)", "sd(prey)", "sd(predator)")
    assert prepared.positive == (False,) * 4 + (True,) * 4
    assert prepared.start.shape == (8,)


def relaxing(t, x, p):
    return ((p[1] - x[0]) / p[0],)


def saturating(t, x, p):
    """A rate that is 0 where p₀ is, by which it divides."""
    return ((p[1] - x[0]) / (1.0 + 1.0 / p[0]),)


@pytest.mark.parametrize(
    ("function", "first"), [pytest.param(relaxing, 2.0, marks=pytest.mark.slow), (saturating, 0.6)]
)
def test_a_system_that_divides_by_a_parameter_is_started_though_none_can_be_0(function, first):
    """Where all else fails a start at 0 is tried. At a complex 0 Numba's division raises: it has no energy then."""
    system = System("dividing", ("x",), ("tau", "level"), function, [2.0, 1.0], [5.0])
    times = np.linspace(0.0, 6.0, 13)
    rate = 0.5 if function is relaxing else 0.375
    data = Series(times, 1.0 + 4.0 * np.exp(-rate * times)[:, None], ("x",))
    shot, start = trajectory(noise=0.1, step=0.25).energy_and_start(data, system)
    np.testing.assert_allclose(start, [first, 1.0, 5.0], rtol=1e-4)
    assert is_finite(shot, start)
    at_0 = np.array([0.0, 1.0, 5.0])
    assert not is_finite(shot, at_0)
    energy, gradient = shot.evaluate(at_0)
    assert np.isinf(energy).all()
    assert (gradient == 0.0).all()


class Divides:
    """In place of a shot: Numba's division by a complex 0, and energies that are finite from 2 on."""

    def evaluate(self, theta):
        if theta[0] == 0.0:
            raise ZeroDivisionError("complex division by zero")
        return np.array([np.inf if theta[0] < 2.0 else 1.0]), np.zeros((1, theta.size))


def test_the_first_start_of_finite_energy_is_taken_and_one_that_divides_by_0_is_not_finite():
    at = [is_finite(Divides(), np.array([value])) for value in (0.0, 1.0, 3.0)]
    assert at == [False, False, True]
    search = StartSearch.__new__(StartSearch)
    search.known = np.array([np.nan])
    search.system, search.parameters = System("one", ("x",), ("tau",), decay, [3.0], [1.0]), np.array([1.0])
    np.testing.assert_array_equal(search._first_finite(Divides(), np.zeros(1), np.array([7.0])), [3.0, 7.0])
    search.system = System("one", ("x",), ("tau",), decay, [1.5], [1.0])
    np.testing.assert_array_equal(search._first_finite(Divides(), np.zeros(1), np.array([7.0])), [0.0, 7.0])
