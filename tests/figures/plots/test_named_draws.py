"""Pictures of a run of an identification are of its parameters, by name, whatever positions were sampled."""

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest

import figures
import sysid
from sysid import data, identify, likelihoods, priors, systems
from targets import mixtures
from toolkit import sample, samplers

mpl.use("Agg")
LORENZ = systems.lorenz()
SERIES = data.simulate(LORENZ, np.linspace(0.0, 5.0, 501), seed=0)


@pytest.fixture
def axes():
    yield plt.subplots()[1]
    plt.close("all")


@pytest.fixture(scope="module", params=["plain", "scaled", "logarithms"])
def problem_and_run(request):
    prior = priors.lognormal(2.0, 1.0) if request.param == "logarithms" else None
    problem = identify(SERIES, LORENZ, prior=prior, likelihood=likelihoods.derivative(noise=1.0))
    problem = problem if request.param == "plain" else problem.scaled()
    sampler = samplers.sgld(1e-6 if request.param == "plain" else 0.1)
    return problem, sample(problem, sampler, n_steps=60, burn_in=10, seed=0, n_chains=4)


@pytest.mark.parametrize(("number", "name"), enumerate(LORENZ.parameters))
def test_posteriors_are_of_parameters(axes, problem_and_run, number, name):
    problem, run = problem_and_run
    drawn = figures.posterior(run, axes, coordinate=name).pooled.get_xydata()
    again = figures.posterior(problem.parameters(run), axes, coordinate=number).pooled.get_xydata()
    np.testing.assert_array_equal(drawn, again)
    np.testing.assert_array_equal(drawn, figures.posterior(run, axes, coordinate=number).pooled.get_xydata())
    assert axes.get_xlabel() == name
    if problem.coordinates.is_scaled:
        positions = figures.posterior(run.draws, axes, coordinate=number).pooled.get_xydata()
        assert not np.array_equal(drawn, positions)  # the wrong law


def test_a_density_is_of_parameters(axes):
    """Prey grows and dies out with predators: two free parameters, sampled in scaled positions."""
    prey = systems.lotka_volterra()
    model = sysid.model_of(
        sysid.libraries.polynomial(prey.states, 2),
        free=["dprey:prey", "dprey:prey predator"],
        fixed={"dpredator:predator": -0.4, "dpredator:prey predator": 0.1},
    )
    series = data.simulate(prey, np.linspace(0.0, 20.0, 201), noise=0.05, seed=0)
    problem = identify(series, model, likelihood=likelihoods.derivative(noise=1.0)).scaled()
    run = sample(problem, samplers.sgld(0.1), n_steps=60, burn_in=10, seed=0, n_chains=4)
    parameters = problem.parameters(run)
    low, high = parameters.min(axis=(0, 1)) - 1e-3, parameters.max(axis=(0, 1)) + 1e-3
    edges = {"x_edges": np.linspace(low[0], high[0], 9), "y_edges": np.linspace(low[1], high[1], 9)}
    masses = figures.density(run, axes, **edges).get_array()
    np.testing.assert_array_equal(masses, figures.density(parameters, axes, **edges).get_array())
    assert masses.sum() > 0.0
    assert (axes.get_xlabel(), axes.get_ylabel()) == problem.names


def test_a_label_of_ones_own_stays(axes, problem_and_run):
    axes.set_xlabel("rate")
    figures.posterior(problem_and_run[1], axes, coordinate="beta")
    assert axes.get_xlabel() == "rate"


def test_traces_take_names(axes, problem_and_run):
    problem, run = problem_and_run
    lines = figures.traces(run, axes, field="rho")
    np.testing.assert_array_equal([line.get_ydata() for line in lines], problem.parameters(run)[..., 1])
    np.testing.assert_array_equal(
        [line.get_ydata() for line in figures.traces(run, axes, field="x[1]")], run.draws[..., 1]
    )


def test_names_that_are_none_are_refused(axes, problem_and_run):
    with pytest.raises(ValueError, match="coordinate must be one of 'sigma', 'rho', 'beta', got 'tau'"):
        figures.posterior(problem_and_run[1], axes, coordinate="tau")
    with pytest.raises(ValueError, match="coordinate must be a number, as the draws have no names, got 'sigma'"):
        figures.posterior(problem_and_run[1].draws, axes, coordinate="sigma")
    plain = sample(mixtures.cosine25(), samplers.sgld(0.1), n_steps=5, seed=0)
    figures.posterior(plain, axes)
    assert axes.get_xlabel() == ""
