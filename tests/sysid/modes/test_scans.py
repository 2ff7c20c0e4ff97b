"""Frequencies of the data as starts of searches: of a drive, and of an oscillation."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from sysid import Series, identify, priors, systems
from sysid.modes.scans import Record, frequencies_of, values_of

TIMES = np.linspace(0.0, 30.0, 241)


def driven_right_hand_side(t, x, p):
    return (x[1], -2.5 * x[0] - 0.4 * x[1] + p[0] * np.cos(p[1] * t))


DRIVEN = systems.own(
    driven_right_hand_side, states=("x", "v"), parameters=("F", "w"), usual=(1.0, 1.0), start=(0.0, 0.0)
)


def driven_data(amplitude, frequency, seed, *, noise=0.04):
    solution = solve_ivp(
        lambda t, y: driven_right_hand_side(t, y, (amplitude, frequency)), (0.0, 30.0), [0.0, 0.0], t_eval=TIMES,
        rtol=1e-9, atol=1e-11,
    ).y.T  # fmt: skip
    return Series(TIMES, solution + noise * np.random.default_rng(seed).standard_normal(solution.shape), ("x", "v"))


def test_the_periodogram_has_the_frequencies_of_the_data_strongest_first():
    values = 2.0 * np.sin(3.7 * TIMES) + np.cos(9.2 * TIMES) + 0.1 * TIMES
    found = frequencies_of([Record(TIMES, values)])
    assert abs(found[0] - 3.7) < 0.03
    assert np.abs(found[:4] - 9.2).min() < 0.03
    uneven = np.sort(np.random.default_rng(0).uniform(0.0, 30.0, 200))
    assert abs(frequencies_of([Record(uneven, np.sin(3.7 * uneven))])[0] - 3.7) < 0.03
    assert np.isin([3.7, 3.7**2, 3.7 / (2 * np.pi), 2 * np.pi / 3.7], values_of(np.array([3.7]))).all()


@pytest.mark.parametrize(("amplitude", "frequency"), [(1.2, 2.7), (-1.5, 3.3)])
@pytest.mark.filterwarnings("ignore:identify. the energy is unchanged")
def test_a_drive_of_unknown_frequency_is_found(amplitude, frequency):
    problem = identify(driven_data(amplitude, frequency, 4), DRIVEN, likelihood="trajectory", progress=False)
    modes = problem.modes
    assert len(modes.weights) == 1
    assert abs(modes.parameters[0, 0] - amplitude) < 4.5 * modes.sd[0, 0]
    assert abs(abs(modes.parameters[0, 1]) - frequency) < 4.5 * modes.sd[0, 1]
    assert modes.parameters[0, 4:] == pytest.approx(0.04, rel=0.2)
    # Chains begin there, and scaled positions are about it, though the likelihood's own start is elsewhere.
    assert problem.parameters(problem.starts(1, seed=0))[0] == pytest.approx(modes.parameters[0], rel=1e-6)
    assert problem.scaled().parameters(np.zeros(6))[:2] == pytest.approx(modes.parameters[0, :2], rel=1e-3)


def test_a_mode_whose_weight_is_zero_in_floats_is_left_out():
    """The start's mode is thousands of nats above the other one."""
    prior = {"w": priors.gaussian(2.6, 0.5), "F": priors.gaussian(0.0, 3.0)}
    problem = identify(driven_data(1.2, 2.7, 0), DRIVEN, likelihood="trajectory", prior=prior, progress=False)
    assert problem.modes.weights.tolist() == [1.0]
    assert problem.modes.parameters[0, 1] == pytest.approx(2.7, abs=0.01)
    assert problem.starts(3, seed=0).shape == (3, 6)
    assert np.allclose(problem.scaled().parameters(np.zeros(6)), problem.modes.parameters[0], rtol=1e-3)
