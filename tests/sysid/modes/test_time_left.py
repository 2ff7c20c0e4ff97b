"""Checks that stop when the time of a search is up, and modes that constraints allow."""

import warnings

import numpy as np
import pytest

from sysid import Series, identify, systems
from sysid.likelihoods import trajectory
from sysid.modes.steps.step_check import SolutionEnergy
from sysid.modes.steps.step_refinement import SteppedPosterior, checked_steps
from sysid.modes.time_left import TimeLeft
from tests.sysid.right_hand_sides import decay, decay_by_product

TIMES = np.linspace(0.0, 8.0, 41)
DECAY = 2.0 * np.exp(-0.5 * TIMES) + 0.03 * np.random.default_rng(0).standard_normal(41)
DATA = Series(TIMES, DECAY[:, None], ("x",))
PRODUCT = systems.own(decay_by_product, states=("x",), parameters=("a", "b"), usual=(1.0, 0.4), start=(1.5,))
RATE = systems.own(decay, states=("x",), parameters=("k",), usual=(1.0,), start=(1.5,))


class Clock:
    """Counts, and raises once so many checks were allowed."""

    def __init__(self, allowed):
        self.allowed = allowed

    def count(self, energies):
        self.allowed -= 1
        if self.allowed < 0:
            raise TimeoutError


def test_checks_after_the_time_is_up_are_left_out_and_named_once():
    time_left = TimeLeft(Clock(2).count)
    assert time_left.run("symmetries", lambda: "found", "") == "found"
    assert time_left.words(5.0) == []
    assert time_left.run("tails", lambda: "found", "nothing") == "nothing"
    assert time_left.run("tails", lambda: "found", "nothing") == "nothing"
    assert time_left.words(5.0)[0].startswith("time_limit = 5 s was up before these had ended: tails. What")


def said(constraints):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        problem = identify(DATA, PRODUCT, likelihood="trajectory", constraints=constraints, progress=False)
    assert not problem.found
    return " ".join(str(warning.message) for warning in caught)


@pytest.mark.parametrize("constraints", ["a < 1e6", ["a > 0", "b > 0"]])
def test_a_lack_of_modes_is_said_with_constraints_too(constraints):
    assert "no mode was found: the search from the start" in said(constraints)


def test_a_mode_outside_the_constraints_is_none_and_the_wall_is_no_fault():
    problem = identify(DATA, RATE, likelihood="trajectory", constraints="k < 0.4", progress=False)
    assert not problem.found
    assert problem.parameters(problem.starts(1, seed=0))[0, 0] < 0.4


def test_steps_that_are_not_compared_in_time_keep_the_modes():
    """The search for modes ends in time; what follows it does not."""
    problem = identify(DATA, RATE, likelihood=trajectory(step=0.1), progress=False)
    energy: SolutionEnergy = problem.prepared.values
    clock, start = Clock(0), problem.usual_start()
    posterior = SteppedPosterior(
        energy, lambda one: one.evaluate, lambda u: u, lambda u: u, lambda evaluate, one: problem.found, start,
        np.zeros((0, 3)), np.zeros((0, 3)), np.full((2, 3), np.nan), np.array([True, False, False]),
        lambda: clock.count(None),
    )  # fmt: skip
    checked = checked_steps(posterior, may_refine=True)
    assert checked.is_late
    assert checked.modes == problem.found
    assert checked.energy is energy
