"""Every sampler of the paper's experiment against the closed form of it, and how long its slowest part takes."""

import numpy as np
import pytest

from figures.papers.r2sgld.identification import named_parameters, problem_of, reflected_origin, sampler_of
from sysid import identify, likelihoods, systems
from sysid.data import simulate
from toolkit import boundaries, sample, samplers
from toolkit.diagnostics import ess

STEP = 0.05
SAMPLERS = {
    "SGLD": samplers.sgld(STEP),
    "R-SGLD": samplers.sgld(STEP, boundary=boundaries.reflect()),
    "cycSGLD": samplers.cyclical_sgld(STEP, n_cycles=10, exploration=0.0, floor=0.1),
    "R-cycSGLD": samplers.cyclical_sgld(STEP, n_cycles=10, exploration=0.0, floor=0.1, boundary=boundaries.reflect()),
    "reSGLD": samplers.resgld((STEP, STEP), temperatures=(1.0, 10.0), correction=0.0),
    "r2SGLD": samplers.r2sgld((STEP, STEP), temperatures=(1.0, 10.0), correction=0.0),
    "SGHMC": samplers.sghmc(STEP, friction=0.5),
    "HMC": samplers.hmc(0.5, n_leapfrogs=3),
}


@pytest.mark.cases(8)
@pytest.mark.parametrize("system", ["lorenz", "lotka_volterra"])
@pytest.mark.parametrize("method", SAMPLERS)
def test_means_and_deviations_are_those_of_the_closed_form(system, method):
    """In scaled positions, to 4.5 Monte Carlo standard errors and the bias h/4 of a deviation at step size h.

    So few that the walls, five deviations away and more, do not show. A posterior 1.1 times as wide is rejected.
    """
    problem = problem_of(system, reflected=method.startswith(("R-", "r2")), batch_size=None).scaled()
    run = sample(
        problem, SAMPLERS[method], n_steps=6000, burn_in=500, thin=5, n_chains=128, seed=11,
        init=problem.starts(128, seed=1),
    )  # fmt: skip
    theta = problem.parameters(run)
    worth = ess(theta)
    gap = (theta.mean(axis=(0, 1)) - problem.posterior.mean) / problem.posterior.sd
    assert (np.abs(gap) < 4.5 / np.sqrt(worth)).all()
    widths = theta.std(axis=(0, 1)) / problem.posterior.sd
    slack = 4.5 / np.sqrt(2.0 * worth) + STEP / 4
    assert (np.abs(widths - 1.0) < slack).all()
    assert (np.abs(widths / 1.1 - 1.0) > slack).all()


@pytest.mark.parametrize("batches", ["independent", "windows"])
def test_minibatches_leave_the_posterior_where_it_is(batches):
    """At the paper's step size the noise of batches adds less than 1 % to the deviations."""
    data = simulate(systems.lorenz(), np.arange(1001) * 0.1, seed=0)
    energy = likelihoods.derivative(noise="mean", batch_size=100, batches=batches)
    problem = identify(data, systems.lorenz(), likelihood=energy).scaled()
    run = sample(problem, samplers.sgld(0.02), n_steps=2500, burn_in=500, thin=5, n_chains=128, seed=3, threads=2)
    theta = problem.parameters(run)
    worth = ess(theta)
    gap = (theta.mean(axis=(0, 1)) - problem.posterior.mean) / problem.posterior.sd
    assert (np.abs(gap) < 4.5 / np.sqrt(worth)).all()
    widths = theta.std(axis=(0, 1)) / problem.posterior.sd
    assert (np.abs(widths - 1.0) < 4.5 / np.sqrt(2.0 * worth) + 0.015).all()


def test_sigma_relaxes_as_slowly_as_its_eigenvalue_says():
    """SGLD from 0 with all data: E σ_k = σ (1 − Π (1 − h_k λ)); at the paper's settings 8.4 of 10 at the end."""
    problem = problem_of("lorenz", reflected=False, batch_size=None)
    precision = problem.prepared.quadratic[1]
    assert np.abs(precision[0, 1:]).max() < 1e-9 * precision[0, 0]  # σ is by itself
    run = sample(problem, sampler_of("lorenz", "SGLD"), n_steps=60_000, burn_in=59_999, n_chains=256, seed=5,
                 init=np.zeros(problem.dim))  # fmt: skip
    sigma = problem.parameters(run)[:, -1, 0]
    steps = 5e-6 * 0.9999 ** np.maximum(np.arange(60_000) - 10_000, 0)
    law = 10.0 * (1.0 - np.prod(1.0 - steps * precision[0, 0]))
    error = sigma.std(ddof=1) / 16.0
    assert abs(sigma.mean() - law) < 4.5 * error
    assert abs(sigma.mean() - 10.0) > 20.0 * error
    assert law == pytest.approx(8.4, abs=0.1)


def test_all_coefficients_free_hold_the_named_ones():
    """The named parameters of the model with all coefficients free, and zero mirrored into its domain."""
    problem = problem_of("lorenz", reflected=True, free="all")
    assert problem.dim == 15
    named = named_parameters(problem, problem.positions(problem.posterior.mean))
    np.testing.assert_allclose(named, [10.0, 28.0, 8 / 3], rtol=1e-4)
    assert problem.contains(reflected_origin(problem)[None])[0]
    assert not problem.contains(np.zeros((1, 15)))[0]
