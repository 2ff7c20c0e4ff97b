"""Modes on the other side of a symmetry that priors break, held to closed forms."""

import numpy as np
import pytest

from sysid import Series, identify, likelihoods, priors, systems
from sysid.modes.images.periods import Kinds
from sysid.modes.images.twins import with_twins
from sysid.modes.search import mode_from, weighed
from tests.sysid.right_hand_sides import decay_by_square

TIMES = np.linspace(0.0, 10.0, 31)
NOISE = 0.03
PRIORS = np.array([[0.0, 0.6], [-0.7, 0.6], [np.log(2.0), 0.8]])  # of log k1, log k2 and log A(0)


def intermediate(k1, k2, amount):
    """B of A → B → C."""
    return k1 * amount / (k2 - k1) * (np.exp(-k1 * TIMES) - np.exp(-k2 * TIMES))


def energy_of(data):
    """Energy of log k1, log k2, log A(0), with gradients by central differences."""

    def energies(points):
        curves = np.array([intermediate(*np.exp(point)) for point in points])
        misfit = 0.5 * (((curves - data) / NOISE) ** 2).sum(axis=1)
        return misfit + 0.5 * (((points - PRIORS[:, 0]) / PRIORS[:, 1]) ** 2).sum(axis=1)

    def evaluate(points):
        steps = 1e-6 * np.eye(3)
        return energies(points), np.stack([(energies(points + e) - energies(points - e)) / 2e-6 for e in steps], axis=1)

    return evaluate


@pytest.mark.parametrize("seed", range(3))
def test_swapped_rates_have_the_weight_of_a_quadrature(seed):
    """The twin has k1 and k2 swapped and A(0) × k1/k2, where the same curve has other priors."""
    data = intermediate(0.9, 0.35, 2.0) + NOISE * np.random.default_rng(seed).standard_normal(31)
    evaluate, every = energy_of(data), np.ones(3, np.bool_)
    first = mode_from(evaluate, np.log([0.9, 0.35, 2.0]), None)
    found = with_twins(evaluate, (first,), Kinds(every, every, ~every, ~every), most=300)
    assert len(found) == 2
    k1, k2, amount = np.exp(first.position)
    np.testing.assert_allclose(np.exp(found[1].position), [k2, k1, amount * k1 / k2], rtol=0.05)
    masses = []  # by a grid of four standard deviations about each mode
    for mode in found:
        sides = np.linspace(-4.0, 4.0, 21)
        normals = np.stack(np.meshgrid(sides, sides, sides), axis=-1).reshape(-1, 3)
        heights = np.exp(first.energy - evaluate(mode.position + normals @ mode.root.T)[0])
        masses.append(heights.sum() * np.prod(np.diag(mode.root)))
    np.testing.assert_allclose(found[1].weight, masses[1] / sum(masses), rtol=0.15)


def wells(points):
    """exp(−U) = Σ of normals at ±1 and, far below, at 3, of one parameter; as energy and gradient."""
    heights = np.array([0.0, 1.2, 40.0])
    gaps = (points - np.array([1.0, -1.0, 3.0])) / 0.05
    logs = -0.5 * gaps**2 - heights
    top = logs.max(axis=1, keepdims=True)
    shares = np.exp(logs - top)
    energies = -(top[:, 0] + np.log(shares.sum(axis=1)))
    slopes = (shares * gaps / 0.05).sum(axis=1) / shares.sum(axis=1)
    return energies, slopes[:, None]


def test_the_other_sign_has_its_weight_and_evaluations_are_limited():
    kinds = Kinds(*(np.array([of]) for of in (False, True, False, False)))
    first = mode_from(wells, np.array([1.01]), None)
    found = with_twins(wells, (first,), kinds, most=50)
    assert [round(float(mode.position[0]), 6) for mode in found] == [1.0, -1.0]
    np.testing.assert_allclose(found[1].weight, 1.0 / (1.0 + np.exp(1.2)), rtol=1e-6)
    assert with_twins(wells, (first,), kinds, most=0) == (first,)
    assert with_twins(wells, (first,), kinds, most=50, contains=lambda at: at[:, 0] > 0.0) == (first,)

    def late(energies):
        raise TimeoutError

    assert with_twins(wells, (first,), kinds, most=50, count=late) == (first,)


def test_exact_mirror_images_are_left_to_what_is_said_of_symmetries():
    def even(points):
        return 0.5 * ((points[:, 0] ** 2 - 1.0) / 0.1) ** 2, 2.0 * points * (points**2 - 1.0) / 0.01

    kinds = Kinds(*(np.array([of]) for of in (False, True, False, False)))
    first = weighed([mode_from(even, np.array([1.01]), None)])
    assert with_twins(even, first, kinds, most=100) == first


def test_identify_shares_chains_among_the_signs_of_a_square_by_their_priors():
    """c² has one likelihood for ±c, so that the weights are those of the prior there."""
    times = np.linspace(0.0, 8.0, 41)
    values = 2.0 * np.exp(-0.5 * times) + 0.03 * np.random.default_rng(4).standard_normal(41)
    system = systems.own(decay_by_square, states=["x"], parameters=["c"], usual=[1.0], start=[2.0])
    problem = identify(
        Series(times, values[:, None], ["x"]), system, likelihood=likelihoods.trajectory(start=[2.0], noise=0.03),
        prior={"c": priors.gaussian(0.15, 0.45)}, progress=False,
    )  # fmt: skip
    modes = problem.modes
    assert np.sign(modes.parameters[:, 0]).tolist() == [1.0, -1.0]
    odds = np.exp(-2.0 * 0.15 * modes.parameters[0, 0] / 0.45**2)
    np.testing.assert_allclose(modes.weights[1], odds / (1.0 + odds), rtol=0.02)
