"""Columns are taken by the names of their states, in whatever order data have them, by everything that takes data."""

from dataclasses import replace

import numpy as np
import pytest

from sysid import Series, data, identify, libraries, likelihoods, simulate, sparsity, systems
from sysid.data.series import in_order

LV = systems.lotka_volterra()
TIMES = np.linspace(0.0, 8.0, 161)
STRAIGHT = replace(data.simulate(LV, TIMES, noise=(0.01, 0.03), seed=1), units=("hare", "lynx"))
TURNED = Series(
    TIMES, STRAIGHT.values[:, ::-1], STRAIGHT.states[::-1], STRAIGHT.velocities[:, ::-1], STRAIGHT.noise[::-1],
    units=("lynx", "hare"),
)  # fmt: skip
LACKING = Series(TIMES, STRAIGHT.values[:, :1], STRAIGHT.states[:1], STRAIGHT.velocities[:, :1])
OTHER = Series(TIMES, STRAIGHT.values, ("prey", "wolf"), STRAIGHT.velocities)
LIBRARY = libraries.polynomial(LV.states, 2)
LIKELIHOODS = {
    "derivative": likelihoods.derivative(),
    "weak": likelihoods.weak(),
    "trajectory": likelihoods.trajectory(noise="known", step=0.05),
}


def test_values_velocities_noise_and_units_move_together():
    moved = in_order("data", TURNED, LV.states)
    for name in ("values", "velocities", "noise", "units", "states"):
        np.testing.assert_array_equal(getattr(moved, name), getattr(STRAIGHT, name))
    assert in_order("data", STRAIGHT, LV.states) is STRAIGHT


@pytest.mark.parametrize(
    ("name", "model"), [*((name, LV) for name in LIKELIHOODS), ("derivative", LIBRARY), ("weak", LIBRARY)]
)
def test_likelihoods_take_columns_by_name(name, model):
    straight, turned = (LIKELIHOODS[name].prepare(series, model) for series in (STRAIGHT, TURNED))
    assert straight.names == turned.names
    np.testing.assert_array_equal(straight.numbers, turned.numbers)
    mixed_up = replace(TURNED, states=LV.states)  # the wrong law: columns by their place
    assert not np.array_equal(LIKELIHOODS["derivative"].prepare(mixed_up, LIBRARY).numbers,
                              LIKELIHOODS["derivative"].prepare(STRAIGHT, LIBRARY).numbers)  # fmt: skip


@pytest.mark.parametrize("name", list(LIKELIHOODS))
def test_all_refuse_a_state_that_is_none_of_the_model_in_the_same_words(name):
    with pytest.raises(ValueError, match=r"^data must have states of the model, prey, predator, got 'wolf'$"):
        LIKELIHOODS[name].prepare(OTHER, LV)


@pytest.mark.parametrize("name", ["derivative", "weak"])
def test_all_but_trajectories_need_every_state(name):
    with pytest.raises(ValueError, match=r"^data must have all states .* prey, predator, got prey without 'predator'$"):
        LIKELIHOODS[name].prepare(LACKING, LV)
    with pytest.raises(ValueError, match=r"^data\[1\] must have all states"):
        LIKELIHOODS[name].prepare([STRAIGHT, LACKING], LV)


def test_what_follows_takes_them_by_name_too():
    np.testing.assert_array_equal(sparsity.natural_scales(TURNED, LV), sparsity.natural_scales(STRAIGHT, LV))
    assert data.check(TURNED, LV) == data.check(STRAIGHT, LV) == []
    with pytest.raises(ValueError, match=r"^series must have all states of the model"):
        data.check(LACKING, LV)
    straight, turned = (identify(series, LV, likelihood="derivative") for series in (STRAIGHT, TURNED))
    paths = [simulate(LV.usual, TIMES, problem=one).states for one in (straight, turned)]
    np.testing.assert_array_equal(*paths)
    np.testing.assert_array_equal(paths[1][0, 0], STRAIGHT.values[0])
