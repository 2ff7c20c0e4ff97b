"""What ``tuned`` samples: problems whose samplers nobody has set, each with its law, which the run is not told."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from figures.papers.r2sgld.identification import data_of
from sysid import data, identify, likelihoods, priors, systems
from targets import catalogue, classics, constrained, datasets, domains, mixtures, posteriors, shapes
from toolkit import Sampler, sample, samplers
from toolkit.diagnostics import ess
from toolkit.problem.definition import Problem, as_problem

from .problems import in_flower, regression

Array = NDArray[np.float64]

CATALOGUE, WALLS, NOISY, SYSTEMS, UNSCALED = (
    "catalogue", "walls", "noisy gradients", "identification", "catalogue, starts within ±2",
)  # fmt: skip
BATCH, REFRESH = 32, 50
REFERENCE_SEED, REFERENCE_STEPS, REFERENCE_CHAINS = 90_001, 2_000, 64


class Law(NamedTuple):
    """What is known of a problem.

    error: standard error of the mean, where it is of a long run. weights: of the modes, (1,) where there is one, or
    none is known.
    """

    mean: Array
    sd: Array
    error: Array
    weights: Array
    memberships: Callable[[Array], Array] | None


class Task(NamedTuple):
    """A problem of the table. sampler: given to ``tune``; None: chosen. group: the row of the failures it counts in."""

    name: str
    group: str
    make: Callable[[], Any]
    sampler: Callable[[], Sampler] | None = None
    reference: Callable[[Any], Law] | None = None

    @property
    def label(self) -> str:
        """The name with what tells the same problem of two groups apart."""
        return self.name if self.group != UNSCALED else f"{self.name}, ±2"


def law_of(problem: Any) -> Law:
    """The law by the problem's truth."""
    truth: Any = as_problem(problem).truth
    weights = np.asarray(truth.modes.weights, np.float64)
    mean, sd = np.asarray(truth.mean, np.float64), np.sqrt(np.diag(truth.covariance))
    return Law(mean, sd, np.zeros(mean.size), weights, truth.memberships if weights.size > 1 else None)


def law_by_run(problem: Any) -> Law:
    """The law by a long run of HMC with settings of the README."""
    run = sample(
        as_problem(problem), samplers.hmc(0.4, n_leapfrogs=5), n_steps=REFERENCE_STEPS, burn_in=REFERENCE_STEPS // 10,
        n_chains=REFERENCE_CHAINS, seed=REFERENCE_SEED, threads=1,
    )  # fmt: skip
    points = run.draws.reshape(-1, run.draws.shape[2])
    sd = points.std(axis=0)
    return Law(points.mean(axis=0), sd, sd / np.sqrt(ess(run.draws, method="mean")), np.ones(1), None)


def blind(problem: Any, *, scaled: bool = True) -> Problem:
    """The problem without its truth, by which ``run.warnings`` would find lost modes.

    scaled: with what the target says of where its mass is, from which starts are drawn.
    """
    whole = as_problem(problem)
    target = replace(whole.target, truth=None, spread=whole.target.spread if scaled else None)
    return Problem(target, whole.domain)


def logistic(**batches: int) -> Any:
    """Logistic regression of the stand-in for the Heart data."""
    heart = datasets.stand_in("heart")
    return posteriors.logistic_regression(heart.features, heart.labels, **batches)


def quarter_ring() -> Any:
    """The ring in a quarter of a disc, as in the README."""
    region = domains.intersection(domains.box([0.0, 0.0], [np.inf, np.inf]), domains.ball([0.0, 0.0], 2.0))
    return constrained(classics.ring(radius=1.5, width=0.3), region)


def lorenz_by_velocities() -> Any:
    """Three coefficients of Lorenz' system from exact velocities."""
    return identify(data_of("lorenz"), systems.lorenz(), likelihood=likelihoods.derivative(noise="mean")).scaled()


def lotka_volterra_weak() -> Any:
    """Four coefficients of the Lotka–Volterra system from noisy states, in the weak form."""
    system = systems.catalogue()["lotka_volterra"]
    series = data.simulate(system, np.linspace(0.0, 10.0, 1001), noise=0.01, seed=1)
    return identify(series, system, likelihood="weak").scaled()


def lynx_and_hare() -> Any:
    """The Hudson Bay Company's pelts, by trajectories: parameters, start and noise, as in the README."""
    pelts = data.lynx_hare()
    hares = systems.own(
        lambda t, x, p: (p[0] * x[0] - p[1] * x[0] * x[1], p[2] * x[0] * x[1] - p[3] * x[1]),
        states=pelts.states, parameters=("alpha", "beta", "delta", "gamma"), usual=[0.5, 0.02, 0.02, 0.8],
        start=[30.0, 4.0],
    )  # fmt: skip
    prior = {"alpha": priors.gaussian(1.0, 0.5), "gamma": priors.gaussian(1.0, 0.5)}
    prior |= {"beta": priors.gaussian(0.05, 0.05), "delta": priors.gaussian(0.05, 0.05)}
    prior |= {f"{state}(0)": priors.lognormal(np.log(10.0), 1.0) for state in pelts.states}
    prior |= {f"sd({state})": priors.lognormal(-1.0, 1.0) for state in pelts.states}
    likelihood = likelihoods.trajectory(errors="lognormal")
    return identify(
        pelts, hares, likelihood=likelihood, prior=prior, log=("alpha", "beta", "delta", "gamma")
    ).scaled()  # fmt: skip


def noisy_sgnht() -> Sampler:
    """SGNHT whose gradients carry noise of standard deviation 1."""
    return samplers.sgnht(gradient_noise=1.0)


@cache
def catalogued() -> dict[str, Any]:
    """The catalogue by name."""
    return {target.name: target for target in catalogue()}


def tasks() -> Iterator[Task]:
    """All problems of the table; last those of the catalogue that state a scale, without it."""
    for name in catalogued():
        yield Task(name, CATALOGUE, lambda name=name: catalogued()[name])
    yield Task("cosine25 in flower", WALLS, in_flower)
    yield Task("cosine25 in heart", WALLS, lambda: constrained(mixtures.cosine25(), shapes.heart()))
    yield Task("ring in a quarter disc", WALLS, quarter_ring)
    yield Task("coin_flip", WALLS, classics.coin_flip)
    yield Task("egg_crate", WALLS, classics.egg_crate)
    yield Task("gaussian_shells", WALLS, classics.gaussian_shells)
    yield Task("dual_moon", WALLS, classics.dual_moon)
    yield Task("linear regression by 32", NOISY, lambda: regression(batch_size=BATCH))
    yield Task(
        "linear regression by 32, control variates", NOISY, lambda: regression(batch_size=BATCH, refresh_every=REFRESH)
    )
    yield Task("logistic regression by 32", NOISY, lambda: logistic(batch_size=BATCH))
    yield Task(
        "logistic regression by 32, control variates", NOISY, lambda: logistic(batch_size=BATCH, refresh_every=REFRESH)
    )
    yield Task("cosine25, noise 1", NOISY, mixtures.cosine25, noisy_sgnht)
    yield Task("correlated Gaussian, noise 1", NOISY, classics.correlated_gaussian, noisy_sgnht)
    yield Task("ring, noise 1", NOISY, classics.ring, noisy_sgnht)
    yield Task("Lorenz, velocities", SYSTEMS, lorenz_by_velocities)
    yield Task("Lotka–Volterra, weak form", SYSTEMS, lotka_volterra_weak)
    yield Task("lynx and hare, trajectories", SYSTEMS, lynx_and_hare, reference=law_by_run)
    for name, target in catalogued().items():
        if target.spread is not None:
            yield Task(name, UNSCALED, lambda name=name: catalogued()[name])
