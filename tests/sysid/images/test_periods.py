"""Periods of parameters that are angles or delays, of energies that are known in closed form."""

import numpy as np
import pytest

from sysid.modes.images.periods import Kinds, period_words, periods_of, without_repeats
from sysid.modes.images.twins import with_twins
from sysid.modes.search import Mode, mode_from, weighed

NAMES = ("a", "phi", "w")
TIMES = np.linspace(0.0, 9.0, 50)
NONE, EVERY = np.zeros(3, np.bool_), np.ones(3, np.bool_)
FLAT, PROPER = Kinds(NONE, EVERY, EVERY, NONE), Kinds(NONE, EVERY, NONE, NONE)
TRUTH = np.array([1.5, 0.8, 1.3])


def energy_of(model, *, prior_sd=np.inf):
    """Energy with normal errors about ``model``, and a normal prior of phi."""
    data = model(TRUTH[None])[0] + 0.1 * np.random.default_rng(0).standard_normal(TIMES.size)

    def energies(points):
        return 0.5 * (((model(points) - data) / 0.1) ** 2).sum(axis=1) + 0.5 * (points[:, 1] / prior_sd) ** 2

    def evaluate(points):
        steps = 1e-6 * np.eye(3)
        return energies(points), np.stack([(energies(points + e) - energies(points - e)) / 2e-6 for e in steps], axis=1)

    return evaluate


def by_phase(points):
    a, phi, w = points.T[:, :, None]
    return a * np.sin(w * TIMES + phi)


def by_delay(points):
    a, tau, w = points.T[:, :, None]
    return a * np.sin(w * (TIMES - tau))


def squared(points):
    a, phi, w = points.T[:, :, None]
    return a * np.sin(w * TIMES + phi) ** 2


def in_turns(points):
    a, phi, w = points.T[:, :, None]
    return a * np.sin(w * TIMES + 2.0 * np.pi * phi / 7.3)


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (by_phase, "phi and phi + 6.283; phi → phi + 3.142, a → −a; phi → −phi + 3.142, w → −w: under"),
        (by_delay, "which is 6.283/w; phi → phi + 2."),
        (squared, "at phi and phi + 3.142: under"),
        (lambda points: points[:, :1] * np.exp(-points[:, 1:2] * TIMES) + points[:, 2:], ""),
    ],
)
def test_periods_are_said_with_their_size_and_a_decay_has_none(model, said):
    evaluate = energy_of(model)
    mode = mode_from(evaluate, TRUTH, None)
    words = period_words(periods_of(evaluate, (mode,), FLAT), mode, NAMES)
    assert said in words
    assert bool(words) == bool(said)


def test_repeated_modes_are_one_and_their_distance_tells_an_unusual_period():
    evaluate = energy_of(in_turns)
    modes = weighed([mode_from(evaluate, TRUTH + turns * 7.3 * np.eye(3)[1], None) for turns in (0, 2, 3)])
    periods = periods_of(evaluate, modes, FLAT)
    assert "phi and phi + 7.3" in period_words(periods, modes[0], NAMES)
    (kept,) = without_repeats(modes, periods)
    assert kept.weight == 1.0
    assert kept.position is modes[0].position


def test_constraints_of_one_period_leave_the_other_sign_alone():
    evaluate = energy_of(by_phase)
    mode = mode_from(evaluate, TRUTH, None)

    def asked(low, high):
        found = periods_of(evaluate, (mode,), FLAT, contains=lambda at: (at[:, 1] > low) & (at[:, 1] < high))
        return period_words(found, mode, NAMES)

    assert "at phi → phi + 3.142, a → −a" in asked(-0.7, 5.5)
    assert "under a flat prior" not in asked(-0.7, 5.5)
    assert "phi → phi − 3.142, a → −a" in asked(-2.6, 3.6)
    assert asked(-1.5, 1.5) == ""


def test_a_wide_prior_weighs_the_modes_of_all_periods():
    evaluate = energy_of(by_phase, prior_sd=3.0)
    first = mode_from(evaluate, TRUTH, None)
    found = with_twins(evaluate, (first,), PROPER, most=4_000)
    phi = first.position[1]
    places = phi + np.pi * np.arange(-4, 5)
    weights = np.exp(-0.5 * (places / 3.0) ** 2)
    # The signs of a and of w make the same place twice: w → −w mirrors phi to π − phi.
    one_sign: list[Mode] = sorted((m for m in found if m.position[2] > 0.0), key=lambda mode: mode.position[1])
    expected = places[weights / weights.sum() > 3e-3]
    np.testing.assert_allclose([mode.position[1] for mode in one_sign], expected, atol=0.01)
    shares = np.array([mode.weight for mode in one_sign])
    right = np.exp(-0.5 * (expected / 3.0) ** 2)
    np.testing.assert_allclose(shares / shares.sum(), right / right.sum(), rtol=0.02)
