"""Stein's particles in the engine: step by step against NumPy, at rest in closed form, and how narrow they are."""

import numpy as np
import pytest

from targets import mixtures
from tests.support.simple_targets import standard_normal
from toolkit import DivergenceError, Sampler, Target, dynamics, sample, samplers, tempering

MIXTURE = mixtures.gaussian_mixture([[-2.0, 0.0], [2.0, 1.0], [0.0, -2.0]], 0.5, [0.5, 0.3, 0.2])


def particles(shape, seed, scale=1.0):
    """A start (chain, replica, dim)."""
    return scale * np.random.default_rng(seed).standard_normal(shape)


def mixture_gradient(x):
    """∇U of ``MIXTURE`` at x (n, 2), from its density."""
    truth = MIXTURE.truth
    away = x[:, None] - truth.means
    share = truth.weights * np.exp(-0.5 * (away**2).sum(axis=2) / truth.covariances[0, 0, 0])
    return (share[:, :, None] * away).sum(axis=1) / share.sum(axis=1)[:, None] / truth.covariances[0, 0, 0]


def svgd_in_numpy(
    x, n_steps, step_size, *, temperature=1.0, bandwidth=None, decay=0.9, floor=1e-6, rmsprop=True, fresh=True
):
    """Liu & Wang (2016), algorithm 1, on one chain's particles (n, dim); fresh=False keeps the first bandwidth."""
    x, square = x.copy(), np.zeros_like(x)
    for step in range(n_steps):
        apart = x[:, None] - x[None]
        squares = (apart**2).sum(axis=2)
        if bandwidth is None and (fresh or step == 0):
            b = np.median(squares[np.triu_indices(len(x), 1)]) / np.log(len(x) + 1)
        b = bandwidth or b
        kernel = np.exp(-squares / b)
        push = (kernel[:, :, None] * apart).sum(axis=1) * 2.0 * temperature / b
        descent = (kernel @ mixture_gradient(x) - push) / len(x)
        square = decay * square + (1.0 - decay) * descent**2
        x -= step_size * (descent / (floor + np.sqrt(square)) if rmsprop else descent)
    return x


@pytest.mark.parametrize("rmsprop", [True, False])
@pytest.mark.parametrize(("temperature", "bandwidth"), [(1.0, None), (2.5, None), (0.5, 3.0)])
def test_fifty_particles_step_by_step(temperature, bandwidth, rmsprop):
    """From a start narrow enough not to come to rest, where RMSProp's steps make 1e-15 grow to 0.01 in a hundred."""
    step_size = 0.003 if rmsprop else 0.2
    sampler = samplers.svgd(
        step_size, n_replicas=50, bandwidth=bandwidth, preconditioned=rmsprop, temperature=temperature
    )
    start = particles((3, 50, 2), seed=1, scale=0.5)
    run = sample(MIXTURE, sampler, n_steps=100, burn_in=99, n_chains=3, init=start, seed=0)
    options = {"temperature": temperature, "bandwidth": bandwidth, "rmsprop": rmsprop}
    for chain in range(3):
        found = run.replica_draws[chain, :, 0]
        law = svgd_in_numpy(start[chain], 100, step_size, **options)
        np.testing.assert_allclose(found, law, rtol=0, atol=1e-9)
        wrong = [{"temperature": 1.01 * temperature}, {"rmsprop": not rmsprop}]
        wrong += [{"fresh": False}] if bandwidth is None else [{"bandwidth": 1.01 * bandwidth}]
        wrong += [{"decay": 0.89}] if rmsprop else []
        for change in wrong:
            assert abs(svgd_in_numpy(start[chain], 100, step_size, **options | change) - found).max() > 1e-5
        assert abs(svgd_in_numpy(start[chain], 99, step_size, **options) - found).max() > 1e-5
    assert run.draws.shape == (3, 50, 2)
    np.testing.assert_array_equal(run.draws, run.replica_draws[:, :, 0])


@pytest.mark.parametrize("numbers", [{"decay": 0.5}, {"floor": 0.3}, {"decay": 0.0, "floor": 2.0}])
def test_the_numbers_of_the_descent(numbers):
    way = Sampler("svgd", (0.05,) * 8, (1.0,) * 8, dynamics=dynamics.descent(**numbers), tempering=tempering.stein())
    start = particles((1, 8, 2), seed=8, scale=0.5)
    found = sample(MIXTURE, way, n_steps=20, burn_in=19, init=start, seed=0).replica_draws[0, :, 0]
    np.testing.assert_allclose(found, svgd_in_numpy(start[0], 20, 0.05, **numbers), rtol=0, atol=1e-9)
    for wrong in ({}, {**numbers, "decay": 0.51}, {**numbers, "floor": 0.31}):
        assert abs(svgd_in_numpy(start[0], 20, 0.05, **wrong) - found).max() > 1e-5


@pytest.mark.parametrize("temperature", [0.25, 1.0, 4.0])
@pytest.mark.parametrize("bandwidth", [None, 0.8, 6.0])
def test_two_particles_rest_where_they_must(bandwidth, temperature):
    """At ±a with a² = (b/4) log(1 + 4T/b), which with the median's b is ½ log(3) T = 0.549 T."""
    law = 0.5 * np.log(3.0) * temperature
    if bandwidth is not None:
        law = 0.25 * bandwidth * np.log(1.0 + 4.0 * temperature / bandwidth)
    sampler = samplers.svgd(0.1, n_replicas=2, bandwidth=bandwidth, preconditioned=False, temperature=temperature)
    run = sample(
        standard_normal(1), sampler, n_steps=2000, burn_in=1999, n_chains=5, init=particles((5, 2, 1), 2), seed=0
    )
    first, second = run.replica_draws[:, :, 0, 0].T
    np.testing.assert_allclose(first, -second, rtol=1e-6)
    np.testing.assert_allclose(first**2, law, rtol=1e-6)
    for wrong in (temperature, law / temperature if temperature != 1.0 else 0.99 * law):
        assert (abs(first**2 / wrong - 1.0) > 1e-3).all()


def test_one_particle_descends_to_the_mode_and_is_gradient_descent():
    start = particles((4, 1, 2), 3)
    plain = samplers.svgd(0.1, n_replicas=1, preconditioned=False)
    run = sample(standard_normal(2), plain, n_steps=300, n_chains=4, init=start, seed=0)
    np.testing.assert_allclose(run.draws[:, :50], start * 0.9 ** np.arange(1, 51)[:, None], rtol=1e-12)
    assert abs(run.draws[:, -1]).max() < 1e-12
    two = samplers.svgd(0.1, n_replicas=2, preconditioned=False)
    together = sample(standard_normal(2), two, n_steps=300, n_chains=4, init=particles((4, 2, 2), 3), seed=0)
    assert abs(together.draws[:, -2:]).max(axis=(1, 2)).min() > 0.3  # where there are two they part


def test_particles_share_gradients_within_their_chain_only():
    """What a chain does is that of it alone; a particle moved elsewhere is felt by all of its chain and no other."""
    sampler = samplers.svgd(0.05, n_replicas=6)
    start = particles((5, 6, 2), 4)
    arguments = {"n_steps": 30, "seed": 0}
    together = sample(MIXTURE, sampler, n_chains=5, init=start, **arguments).replica_draws
    alone = sample(MIXTURE, sampler, n_chains=1, init=start[:1], **arguments).replica_draws
    np.testing.assert_array_equal(together[:1], alone)
    moved = start.copy()
    moved[2, 0] += 0.1
    other = sample(MIXTURE, sampler, n_chains=5, init=moved, **arguments).replica_draws
    np.testing.assert_array_equal((other != together).any(axis=(1, 2, 3)), [False, False, True, False, False])
    assert (other[2] != together[2]).any(axis=(1, 2)).all()


def test_init_at_one_place_is_refused():
    sampler = samplers.svgd(n_replicas=3)
    one_chain_together = particles((2, 3, 2), 5)
    one_chain_together[1] = one_chain_together[1, :1]
    for bad, chain in (([1.0, 2.0], 0), (particles((2, 2), 5), 0), (one_chain_together, 1)):
        with pytest.raises(ValueError, match=f"init must give the particles .* got all 3 of chain {chain}"):
            sample(MIXTURE, sampler, n_steps=5, n_chains=2, init=bad, seed=0)
    sample(MIXTURE, samplers.svgd(n_replicas=1), n_steps=5, seed=0)  # one particle needs no other place


def test_nothing_is_random_but_the_gradient_noise():
    start = particles((3, 8, 2), 6)

    def run(noise, seed, n_chains=3):
        sampler = samplers.svgd(0.02, n_replicas=8, gradient_noise=noise)
        return sample(MIXTURE, sampler, n_steps=50, n_chains=n_chains, init=start[:n_chains], seed=seed).replica_draws

    np.testing.assert_array_equal(run(0.0, 1), run(0.0, 2))
    np.testing.assert_array_equal(run(1.0, 1), run(1.0, 1))
    np.testing.assert_array_equal(run(1.0, 1)[:2], run(1.0, 1, 2))
    assert (run(1.0, 1) != run(1.0, 2)).all()
    assert (run(1.0, 1) != run(0.0, 1)).all()


@pytest.mark.parametrize(("dim", "variance"), [(1, 0.96), (2, 0.92), (10, 0.43)])
def test_a_hundred_particles_are_as_narrow_as_the_docstring_says(dim, variance):
    """On N(0, I), where independent draws would have variance 1; the same times T at temperature T."""
    for temperature in (1.0, 4.0):
        sampler = samplers.svgd(0.5, n_replicas=100, preconditioned=False, temperature=temperature)
        start = particles((1, 100, dim), 7, np.sqrt(temperature))
        run = sample(standard_normal(dim), sampler, n_steps=1500, burn_in=1499, init=start, seed=0)
        found = run.draws[0].var(axis=0).mean() / temperature
        assert abs(found - variance) < 0.03
    assert abs(run.draws.mean()) < 0.01
    assert abs(found - 1.0) > 0.03


def test_a_particle_that_diverges_is_the_one_named():
    """A hole in the gradient beyond −2.5: the particle that falls in is held, and the others go on as finite ones."""

    def holed(position, energy, gradient, parameters, scratch):
        for lane in range(position.shape[1]):
            x = position[0, lane]
            energy[lane] = 0.5 * x * x
            gradient[0, lane] = (x if x > -2.0 else 50.0) if x > -2.5 else np.nan

    init = np.linspace(-1.0, 1.0, 9)[None, :, None].copy()
    init[0, 7] = -2.49
    with pytest.raises(
        DivergenceError, match=r"chain 0, replica 7 diverged at step 1.*the target's gradient is at fault"
    ):
        sample(Target("holed", 1, holed), samplers.svgd(0.01, n_replicas=9), n_steps=50, init=init, seed=1)
