"""The ladder of replica exchange in the engine: walkers, turns, momenta, and the normalising constants it gives."""

from itertools import product

import numpy as np
import pytest
from scipy.linalg import solve_discrete_lyapunov

from targets import mixtures
from tests.support.simple_targets import FLAT
from toolkit import Sampler, dynamics, sample, tempering
from toolkit.diagnostics.exchange import log_normaliser_ratio
from toolkit.tempering import exchange

SIGMAS = 4.5  # a right law fails with probability 7e-6 per comparison
TEMPERATURES = (1.0, 1.6, 2.6, 4.0, 7.0)
SCHEMES = exchange.SCHEMES
NORMAL = mixtures.gaussian_mixture([[0.0]], 1.0)


def run_flat(ladder, n_steps, n_chains, seed, **rule):
    """A run whose walker r begins at position r, with draws and trace of every step."""
    sampler = Sampler("flat", (1e-12,) * len(ladder), ladder, tempering=tempering.replica_exchange(**rule))
    start = np.tile(np.arange(len(ladder), dtype=float)[:, None], (n_chains, 1, 1))
    return sample(
        FLAT, sampler, n_steps=n_steps, n_chains=n_chains, init=start, seed=seed, keep_replicas=True, trace_every=1
    )


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("n_replicas", [2, 3, 5])
def test_walkers_are_those_of_the_states_and_round_trips_theirs(n_replicas, scheme):
    """Energies all 0 swap with chance exp(−δ² F), so that F makes them independent of everything."""
    ladder = TEMPERATURES[:n_replicas]
    run = run_flat(ladder, 300, 20, seed=33, scheme=scheme, correction=6.0)
    walker = run.trace.fields["walker"]
    np.testing.assert_array_equal(walker, np.round(run.replica_draws[..., 0]))
    every_one = np.broadcast_to(np.arange(n_replicas)[:, None], walker.shape)
    np.testing.assert_array_equal(np.sort(walker, axis=1), every_one)
    late = np.roll(walker, 1, axis=2)
    assert (late != np.round(run.replica_draws[..., 0])).any()
    if n_replicas > 2:
        assert (np.argsort(walker, axis=1) != walker).any()  # which rung a walker is on is another matter
    trips = np.zeros(20, int)
    for chain, name in product(range(20), range(n_replicas)):
        rungs = np.argmax(walker[chain] == name, axis=0)
        ends = rungs[(rungs == 0) | (rungs == n_replicas - 1)]
        turns = ends[np.append(True, np.diff(ends) != 0)] if ends.size else ends
        trips[chain] += max(0, (turns == 0).sum() - 1)
    np.testing.assert_array_equal(run.round_trips, trips)
    assert trips.sum() > 50
    slopes = np.array([1.0 / ladder[a] - 1.0 / ladder[b] for a, b in run.sampler.tempering.pairs(n_replicas)])
    chance = np.exp(-6.0 * slopes**2)
    tried, swapped = run.counts.attempted.sum(axis=0), run.swaps.sum(axis=0)
    assert (abs(swapped - tried * chance) < SIGMAS * np.sqrt(tried * chance * (1.0 - chance))).all()


def certain_walkers(n_replicas, n_steps, scheme, swap_every, window):
    """Walkers (replica, step) where every attempt swaps."""
    walker, path = list(range(n_replicas)), []
    for step in range(n_steps):
        attempt, rest = divmod(step, swap_every)
        if step > 0 and rest == 0:
            for a, b in exchange.replica_exchange(scheme=scheme).pairs(n_replicas):
                if scheme != "deo" or n_replicas == 2 or a % 2 == attempt // window % 2:
                    walker[a], walker[b] = walker[b], walker[a]
        path.append(list(walker))
    return np.array(path).T


@pytest.mark.parametrize("n_replicas", [2, 3, 6])
@pytest.mark.parametrize(
    ("scheme", "swap_every", "window"),
    [("deo", 1, 1), ("deo", 3, 1), ("deo", 1, 4), ("deo", 2, 3), ("adjacent", 1, 1), ("all_pairs", 2, 1)],
)
def test_pairs_take_turns_as_described(n_replicas, scheme, swap_every, window):
    """Where energies are equal and F = 0 every attempt swaps, and the walkers' paths are known."""
    ladder = tuple(1.5 ** np.arange(n_replicas))
    run = run_flat(ladder, 40, 3, seed=34, scheme=scheme, swap_every=swap_every, window=window)
    path = certain_walkers(n_replicas, 40, scheme, swap_every, window)
    np.testing.assert_array_equal(run.trace.fields["walker"], np.broadcast_to(path, (3, *path.shape)))
    wrong = [certain_walkers(n_replicas, 40, scheme, swap_every + 1, window)]
    if scheme == "deo" and n_replicas > 2:
        wrong.append(certain_walkers(n_replicas, 40, scheme, swap_every, window + 1))
    assert all((path != other).any() for other in wrong)


def test_seo_tosses_a_fair_coin_for_all_pairs_at_once():
    walker = run_flat(tuple(1.5 ** np.arange(6)), 2000, 10, seed=35, scheme="seo").trace.fields["walker"]
    moved = (np.diff(walker, axis=2) != 0).transpose(0, 2, 1)  # (chain, step, rung)
    even, odd = moved.all(axis=2), (moved == [False, True, True, True, True, False]).all(axis=2)
    assert (even ^ odd).all()
    spread = SIGMAS / np.sqrt(even.size)
    coin = 2.0 * even - 1.0
    assert abs(coin.mean()) < spread
    for lag in (1, 2):
        assert abs((coin[:, lag:] * coin[:, :-lag]).mean()) < spread
    assert abs((coin[:-1] * coin[1:]).mean()) < spread  # between chains
    turns = (-1.0) ** np.arange(1999)  # what taking turns would give
    assert abs((turns[1:] * turns[:-1]).mean()) > spread


def underdamped_law(step_size, friction):
    """Covariance of (x, p) of SGHMC on N(0, 1) at temperature 1, by the discrete Lyapunov equation."""
    root = np.sqrt(step_size)
    keep = np.array([[1.0 - step_size, root * (1.0 - friction)], [-root, 1.0 - friction]])
    kick = np.sqrt(2.0 * friction) * np.array([root, 1.0])
    return solve_discrete_lyapunov(keep, np.outer(kick, kick))


def ladder_in_numpy(ladder, start, step_size, friction, n_steps, rescales):
    """Last (x, p) of two replicas (replica, chain) of SGHMC that try a swap every second step."""
    rng, root = np.random.default_rng(36), np.sqrt(step_size)
    heat = np.sqrt(np.array(ladder))[:, None]
    x, p = start.copy(), heat * rng.standard_normal(start.shape)
    slope = 1.0 / ladder[0] - 1.0 / ladder[1]
    for step in range(n_steps):
        if step % 2 == 0:
            swaps = rng.random(x.shape[1]) < np.exp(np.minimum(0.0, 0.5 * slope * (x[0] ** 2 - x[1] ** 2)))
            x = np.where(swaps, x[::-1], x)
            p = np.where(swaps, p[::-1] * (heat / heat[::-1] if rescales else 1.0), p)
        p = (1.0 - friction) * p - root * x + np.sqrt(2.0 * friction) * heat * rng.standard_normal(x.shape)
        x = x + root * p
    return x, p


def test_underdamped_replicas_keep_position_and_momentum():
    """Variances of every rung as without swaps; momenta that changed hands as they are would be seen in most."""
    ladder, h, friction, n_chains, n_steps = (1.0, 4.0), 0.01, 0.1, 20_000, 200
    law = underdamped_law(h, friction)
    np.testing.assert_allclose(law[0, 0], 1.0 / (1.0 - h / (4.0 - 2.0 * friction)), rtol=1e-12)
    start = np.random.default_rng(37).standard_normal((2, n_chains)) * np.sqrt(np.array(ladder) * law[0, 0])[:, None]
    sampler = Sampler(
        "r2sghmc", (h, h), ladder, dynamics=dynamics.underdamped_langevin(friction=friction),
        tempering=tempering.replica_exchange(swap_every=2),
    )  # fmt: skip
    run = sample(
        NORMAL, sampler, n_steps=n_steps, burn_in=n_steps - 2, n_chains=n_chains, init=start.T[..., None], seed=38,
        keep_replicas=True, threads=1,
    )  # fmt: skip
    assert run.swap_rates.mean() > 0.4
    before, x = run.replica_draws[..., 0].transpose(2, 1, 0)
    engine = x, (x - before) / np.sqrt(h)  # no swap comes before a step of odd number

    def misfits(found):
        scaled = np.array(found).var(axis=2) / np.array(ladder) / np.diag(law)[:, None]
        return abs(scaled - 1.0) / np.sqrt(2.0 / n_chains)

    assert (misfits(engine) < SIGMAS).all()
    assert (misfits(ladder_in_numpy(ladder, start, h, friction, n_steps, True)) < SIGMAS).all()
    wrong = misfits(ladder_in_numpy(ladder, start, h, friction, n_steps, False))
    assert wrong[0, 0] > SIGMAS
    assert (wrong[1] > SIGMAS).all()


def test_log_normaliser_of_a_mixture():
    """Stepping stones from the draws of Metropolis-adjusted rungs, which are exact, against quadrature."""
    target = mixtures.gaussian_mixture([[-4.0], [4.0]], 0.5, [0.3, 0.7])
    ladder = (1.0, 2.5, 6.0, 15.0)
    sampler = Sampler(
        "ladder", tuple(0.4 * t for t in ladder), ladder, dynamics=dynamics.mala(),
        tempering=tempering.replica_exchange(),
    )  # fmt: skip
    run = sample(
        target, sampler, n_steps=12_000, burn_in=2000, thin=5, n_chains=64, seed=39, keep_replicas=True,
        keep_energies=True, threads=1,
    )  # fmt: skip

    def log_normaliser(temperature):
        spread = 20.0 * np.sqrt(temperature)
        grid = np.linspace(-spread, spread, 20_001)
        return np.log(np.exp(-target.evaluate(grid[:, None])[0] / temperature).sum() * (grid[1] - grid[0]))

    law = log_normaliser(ladder[0]) - log_normaliser(ladder[-1])
    found = log_normaliser_ratio(run.energies, ladder)
    assert found.standard_error < 0.02
    assert abs(found.pooled - law) < SIGMAS * found.standard_error
    one_mode = -0.5 * np.log(ladder[-1]) - 0.5 * (1.0 - 1.0 / 15.0) * np.log(2.0 * np.pi * 0.5)
    colder = log_normaliser_ratio(run.energies[:, [0, 0, 1, 2]], ladder)
    for wrong in (one_mode, -law, law + 0.1):
        assert abs(found.pooled - wrong) > SIGMAS * found.standard_error
    assert abs(colder.pooled - law) > SIGMAS * colder.standard_error  # from the draws of the colder of each two
