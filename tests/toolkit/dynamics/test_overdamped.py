"""Langevin's law on N(0, 1): variance T / (1 − h/2) exactly, which wrong noise or a wrong time step would miss."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from targets import mixtures
from toolkit import Sampler, dynamics, sample, samplers, schedules

NORMAL = mixtures.gaussian_mixture([[0.0]], 1.0)
CHAINS = 60_000
SIGMAS = 4.5  # a right law fails with probability 7e-6 per case


def last_draws(sampler, n_steps, seed):
    """One draw per chain after ``n_steps`` from a start close to the stationary law."""
    start = np.random.default_rng(seed).standard_normal((CHAINS, 1))
    return sample(NORMAL, sampler, n_steps=n_steps, n_chains=CHAINS, thin=n_steps, init=start, seed=seed).draws.ravel()


def deviations(draws, variance):
    """Error of the sample variance in standard errors of a normal sample of the given variance."""
    return (draws.var() / variance - 1.0) / np.sqrt(2.0 / draws.size)


@pytest.mark.cases(6)
@pytest.mark.parametrize("temperature", [0.25, 1.0, 4.0])
@pytest.mark.parametrize("step_size", [0.02, 0.1, 0.5, 1.5])
def test_stationary_variance(step_size, temperature):
    n_steps = int(np.ceil(12.0 / step_size))  # the start's variance is forgotten as (1 − h)^(2n) < 4e-11
    draws = last_draws(samplers.sgld(step_size, temperature=temperature), n_steps, seed=11)
    law = temperature / (1.0 - 0.5 * step_size)
    assert abs(deviations(draws, law)) < SIGMAS
    for wrong in (0.5 * law, 2.0 * law, law / temperature**0.5 if temperature != 1 else 0.9 * law):
        assert abs(deviations(draws, wrong)) > SIGMAS
    if step_size >= 0.1:
        assert abs(deviations(draws, temperature)) > SIGMAS  # the law without its bias in h


@pytest.mark.parametrize("noise", [1.0, 5.0])
def test_gradient_noise_heats_by_its_closed_form(noise):
    h, temperature = 0.2, 1.0
    draws = last_draws(samplers.sgld(h, temperature=temperature, gradient_noise=noise), 60, seed=12)
    law = (temperature + 0.5 * h * noise**2) / (1.0 - 0.5 * h)
    assert abs(deviations(draws, law)) < SIGMAS
    assert abs(deviations(draws, temperature / (1.0 - 0.5 * h))) > SIGMAS


def test_autocovariance_decays_by_1_minus_h():
    h = 0.25
    run = sample(NORMAL, samplers.sgld(h), n_steps=220, burn_in=200, n_chains=CHAINS, seed=13)
    x = run.draws[:, :, 0]
    variance = 1.0 / (1.0 - 0.5 * h)
    for lag in (1, 2, 5):
        products = x[:, 0] * x[:, lag] / variance
        error = products.std() / np.sqrt(CHAINS)
        assert abs(products.mean() - (1.0 - h) ** lag) < SIGMAS * error
        assert abs(products.mean() - (1.0 - h) ** (lag + 1)) > SIGMAS * error


def test_coordinates_get_noise_of_their_own():
    target = mixtures.gaussian_mixture([[0.0, 0.0, 0.0]], 1.0)
    draws = sample(target, samplers.sgld(0.5), n_steps=30, thin=30, n_chains=20_000, seed=14).draws[:, 0]
    off_diagonal = np.corrcoef(draws.T)[np.triu_indices(3, 1)]
    assert (np.abs(off_diagonal) < SIGMAS / np.sqrt(20_000)).all()


def test_one_step_in_numbers():
    """The move against the formula, with the gradient of N(0, 1) and the noise recovered from a run at T and 4T."""
    cold, warm = (
        sample(NORMAL, samplers.sgld(0.1, temperature=t), n_steps=1, init=[2.0], seed=15).draws.item()
        for t in (1.0, 4.0)
    )
    drift = 2.0 - 0.1 * 2.0
    assert_allclose(warm - drift, 2.0 * (cold - drift), rtol=1e-12)


def test_decay_and_cycles_change_step_size_and_temperature():
    """Noise is off in the exploration phase: the path there is the gradient descent of the scheduled step sizes."""
    sampler = samplers.Sampler(
        "test", (0.5,), schedule=schedules.cosine_cycles(1, exploration=0.9), dynamics=dynamics.langevin()
    )
    run = sample(NORMAL, sampler, n_steps=10, init=[1.0], seed=16)
    assert run.steps.tolist() == [9]
    factors = sampler.schedule.factors(np.arange(9), 10).step_size
    x = np.prod(1.0 - 0.5 * factors)
    last = sampler.schedule.factors(np.arange(9, 10), 10).step_size[0] * 0.5
    noise = run.draws.item() - (1.0 - last) * x
    assert 0 < abs(noise) < 6.0 * np.sqrt(2.0 * last)


def test_a_move_of_other_arguments_is_refused_by_name():
    def old(position, momentum, gradient, curvature, noise, step_size, temperature, coupling, memory, parameters):
        pass

    own = Sampler("mine", (0.1,), dynamics=dynamics.Dynamics("mine", old))
    with pytest.raises(TypeError, match=r"'mine' must take the 4 arguments of signatures\.DYNAMICS.*it takes 10"):
        sample(mixtures.gaussian_mixture([[0.0]], 1.0), own, n_steps=1, seed=1)
