"""Modes found from many places: against mixtures with known modes, and the alias of an oscillation's frequency."""

import warnings

import numpy as np
import pytest

from sysid import Series, identify, priors, systems
from sysid.likelihoods import trajectory
from sysid.modes.search import local_minima, search_modes
from sysid.modes.table import doubts_of_modes
from targets import mixtures
from toolkit import sample, samplers

CENTRES = np.array([[0.0, 0.0], [6.0, 1.0], [-5.0, 8.0]])
WEIGHTS = np.array([0.5, 0.3, 0.2])


def oscillation(t, x, p):
    return (x[1], -p[0] * p[0] * x[0])


OSCILLATOR = systems.own(oscillation, states=("x", "v"), parameters=("omega",), usual=(3.0,), start=(1.0, 0.0))


def aliased(seed=0, *, omega=2.9, **asked):
    """Twelve samples 1 apart of cos ωt: ω and 2π − ω fit alike."""
    times = np.arange(12.0)
    values = np.cos(omega * times) + 0.3 * np.random.default_rng(seed).standard_normal(12)
    data = Series(times, values[:, None], states=("x",))
    likelihood = trajectory(noise=0.3, start=(1.0, 0.0))
    return identify(data, OSCILLATOR, likelihood=likelihood, prior={"omega": priors.gaussian(3.0, 1.5)}, **asked)


def exact_shares(problem):
    """Probabilities of ω from 0 to π and from π to 2π, by quadrature."""
    grid = np.linspace(0.0, 9.0, 36_001)
    energy = np.concatenate([problem.target.evaluate(part[:, None])[0] for part in np.array_split(grid, 600)])
    density = np.exp(energy.min() - energy)
    return np.array([density[grid < np.pi].sum(), density[(grid > np.pi) & (grid < 2.0 * np.pi)].sum()]) / density.sum()


def test_modes_of_a_mixture_are_found_with_their_weights():
    target = mixtures.gaussian_mixture(CENTRES, 0.25, WEIGHTS)
    places = np.random.default_rng(3).uniform(-10.0, 10.0, (256, 2))
    found = search_modes(target.evaluate, np.array([0.3, 0.3]), places, n_searches=8)
    assert np.abs(found[0].position).max() < 1e-3  # that of the first start comes first
    order = [int(np.argmin([np.linalg.norm(mode.position - centre) for mode in found])) for centre in CENTRES]
    assert sorted(order) == [0, 1, 2]
    assert len(found) == 3
    for k, centre, weight in zip(order, CENTRES, WEIGHTS, strict=True):
        assert np.allclose(found[k].position, centre, atol=1e-3)
        assert np.allclose(found[k].sd, 0.5, rtol=1e-3)
        assert found[k].weight == pytest.approx(weight, abs=1e-3)
    alone = search_modes(target.evaluate, np.array([0.3, 0.3]), places, n_searches=0)
    assert len(alone) == 1
    assert alone[0].weight == 1.0


@pytest.mark.parametrize(("product", "noise", "wide"), [(1.6, 0.02, 5.0), (2.0, 1e-3, 1.0), (6.0, 0.01, 2.0)])
def test_the_ends_of_searches_along_a_curved_ridge_are_one_mode(product, noise, wide):
    """ab is known to ``noise``; a ~ N(0, 1), b ~ N(0, wide²). The modes: a² = (ab)/wide but for O(noise²), half each.

    Searches that stop on the way along the ridge are more than three of their thin standard deviations apart.
    """

    def evaluate(points):
        a, b = points.T
        off = (a * b - product) / noise**2
        energies = 0.5 * noise**2 * off**2 + 0.5 * a**2 + 0.5 * (b / wide) ** 2
        return energies, np.stack([off * b + a, off * a + b / wide**2], axis=1)

    places = np.random.default_rng(4).normal(size=(256, 2)) * [1.0, wide]
    found = search_modes(evaluate, np.array([0.7, 1.1]), places, n_searches=8)
    top = np.sqrt(product / wide) * np.array([1.0, wide])
    assert len(found) == 2
    for mode in found:
        np.testing.assert_allclose(np.abs(mode.position), top, rtol=1e-2)
        assert mode.weight == pytest.approx(0.5, abs=1e-3)


def test_a_narrow_mode_weighs_less_than_a_wide_one_of_the_same_height():
    """0.7 N(0, 1) + 0.3 N(20, 0.1²): the narrow one is 4.3 times as high."""

    def evaluate(points):
        x = points[:, 0]
        parts = np.stack([0.7 * np.exp(-0.5 * x**2), 3.0 * np.exp(-0.5 * ((x - 20.0) / 0.1) ** 2)]) + 1e-300
        slopes = (parts[0] * x + parts[1] * (x - 20.0) / 0.01) / parts.sum(axis=0)
        return -np.log(parts.sum(axis=0)), slopes[:, None]

    places = np.linspace(-5.0, 21.0, 256)[:, None]
    wide, narrow = search_modes(evaluate, np.array([0.5]), places, n_searches=8)
    assert narrow.position[0] == pytest.approx(20.0, abs=1e-3)
    assert (wide.weight, narrow.weight) == pytest.approx((0.7, 0.3), abs=1e-3)


def test_no_mode_is_told_of_that_is_forbidden_or_flat():
    target = mixtures.gaussian_mixture(CENTRES[:2], 1.0)
    places = np.random.default_rng(4).uniform(-3.0, 9.0, (256, 2))
    only_right = search_modes(
        target.evaluate, np.array([5.0, 1.0]), places, n_searches=8, contains=lambda points: points[:, 0] > 3.0
    )
    assert len(only_right) == 1
    assert np.allclose(only_right[0].position, CENTRES[1], atol=1e-3)

    def valley(points):
        return 0.5 * points[:, 0] ** 2, points * np.array([1.0, 0.0])

    assert search_modes(valley, np.ones(2), places, n_searches=4) == ()


def test_a_search_out_of_time_keeps_what_it_has():
    target = mixtures.gaussian_mixture(CENTRES, 1.0)
    places = np.random.default_rng(3).uniform(-10.0, 10.0, (256, 2))
    evaluated = []

    def count(energies):
        evaluated.append(len(energies))
        if sum(evaluated) > 285:
            raise TimeoutError

    found = search_modes(target.evaluate, np.array([0.3, 0.3]), places, n_searches=8, count=count)
    assert 1 <= len(found) < 3


def test_searches_begin_at_the_lowest_of_neighbours():
    grid = np.linspace(0.0, 6.0 * np.pi, 301)[:, None]
    energies = np.sin(grid[:, 0]) - 0.01 * grid[:, 0]
    starts = local_minima(grid, energies)
    assert np.allclose(starts[:3, 0], [5.5 * np.pi, 3.5 * np.pi, 1.5 * np.pi], atol=0.05)


@pytest.mark.parametrize("seed", [0, 1])
def test_both_aliases_of_a_frequency_are_found_and_shared_by_their_weights(seed):
    problem = aliased(seed)
    exact = exact_shares(problem)
    modes = problem.modes
    assert modes.parameters[:, 0].sum() == pytest.approx(2.0 * np.pi, abs=0.02)
    found = modes.weights[np.argsort(modes.parameters[:, 0])]
    assert np.abs(found - exact).max() < 0.01
    for one, scale in ((problem, modes.sd[0, 0]), (problem.scaled(), 1.0)):
        run = sample(one, samplers.hmc(0.4 * scale, n_leapfrogs=5), n_chains=64, n_steps=200, burn_in=20, seed=0)
        omega = one.parameters(run)[..., 0]
        assert np.abs([np.mean(omega < np.pi) - exact[0], np.mean(omega > np.pi) - exact[1]]).max() < 0.03
        with pytest.warns(UserWarning, match="chains do not go from one of the 2 modes to another"):
            one.estimates(run)
        starts = one.parameters(one.starts(64, seed=1))
        assert abs(np.mean(starts < np.pi) - exact[0]) < 0.03


def test_a_chain_in_one_mode_alone_is_told_of():
    problem = aliased().scaled()
    run = sample(problem, samplers.hmc(0.4, n_leapfrogs=5), n_chains=4, n_steps=100, init=np.zeros(1), seed=0)
    with pytest.warns(UserWarning, match=r"no draw is at the mode omega = 3\.\d+, which has 0\.49"):
        problem.estimates(run)


def test_chains_that_move_between_modes_leave_no_doubt():
    modes = aliased().found
    moving = np.random.default_rng(0).integers(0, 2, (4, 500, 1))
    positions = np.array([mode.position for mode in modes])[moving[..., 0]]
    assert doubts_of_modes(modes, positions, ["one", "two"]) == []
    staying = np.repeat(positions[:, :1], 500, axis=1) + 0.0 * positions
    staying[0], staying[1] = modes[0].position, modes[1].position
    assert "do not go from one" in doubts_of_modes(modes, staying, ["one", "two"])[0]


def test_one_mode_keeps_the_starts_as_they_were():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        problem, without = (aliased(n_searches=n) for n in (1, 0))
    assert len(problem.modes.weights) in (1, 2)
    with pytest.raises(ValueError, match="modes are known where identify"):
        _ = without.modes
    assert np.array_equal(without.target.spread.center, without.coordinates.positions(without.usual_start()))


def test_the_table_of_modes_reads_as_one():
    text = str(aliased().modes)
    assert text.splitlines()[0] == "| weight | energy | omega |"
    assert len(text.splitlines()) == 4
    assert "±" in text
