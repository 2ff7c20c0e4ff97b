"""Where a state has diverged is said in units of the data: a thousand times the largest, and at least 10⁶."""

import numpy as np
import pytest

from sysid import Series, identify, likelihoods, simulate, systems
from tests.sysid.right_hand_sides import growth

LIMIT = 4  # its place in the numbers of an energy
TIMES = np.linspace(0.0, 10.0, 21)
NOISE = np.exp(0.05 * np.random.default_rng(1).normal(size=(21, 1)))


def growing(start):
    """A population that grows from ``start``."""
    return systems.own(growth, states=("n",), parameters=("r",), usual=[0.5], start=[start], name="growth")


def measured(size):
    return Series(TIMES, size * np.exp(0.4 * TIMES)[:, None] * NOISE, ("n",))


@pytest.fixture(scope="module")
def colonies():
    """Bacteria counted in CFU, 1e7 to 6e8."""
    return identify(measured(1e7), growing(1e7), likelihood=likelihoods.trajectory(errors="lognormal", step=0.5))


def test_large_numbers_are_as_small_ones(colonies):
    """A change of the states' unit changes no rate and no noise of logarithms."""
    law = likelihoods.trajectory(errors="lognormal", step=0.5)
    ones = identify(measured(1.0), growing(1.0), likelihood=law)
    np.testing.assert_allclose(colonies.modes.parameters[0], ones.modes.parameters[0] * [1.0, 1e7, 1.0], rtol=1e-4)
    assert abs(colonies.modes.parameters[0, 0] - 0.4) < 3.0 * colonies.modes.sd[0, 0]


def test_forecasts_of_large_numbers_do_not_end(colonies):
    ahead = simulate(colonies.modes.parameters, [0.0, 15.0], problem=colonies, n_draws=1)
    assert ahead.reasons == {"done": 1}
    assert simulate(colonies.modes.parameters, [0.0, 15.0], problem=colonies, n_draws=1, limit=1e8).diverged == 1.0


@pytest.mark.parametrize(
    ("size", "start", "limit", "expected"),
    [(1.0, 1.0, None, 1e6), (15.0, 500.0, None, 1e6), (1.0, 6e7, None, 6e10), (1e7, 1.0, 5e9, 5e9)],
)
def test_the_limit(size, start, limit, expected):
    """10⁶ up to states of 10³, to the bit as ever; the usual start counts; a limit that is given stays."""
    energy, _ = likelihoods.trajectory(errors="lognormal", step=0.5, limit=limit).energy_and_start(
        measured(size), growing(start)
    )
    assert energy.numbers[LIMIT] == expected


def test_each_experiment_has_its_own():
    law = likelihoods.trajectory(errors="lognormal", step=0.5)
    joint, theta = law.energy_and_start([measured(1.0), measured(1e7)], growing(1.0))
    largest = measured(1e7).values.max()
    assert [part.energy.numbers[LIMIT] for part in joint.parts] == [1e6, 1e3 * largest]
    assert abs(theta[0] - 0.4) < 0.02
