"""Every kernel of the catalogue, as runs that compile it: parts are found by name, so that new ones come along."""

import inspect
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import sympy

from sysid import Series, identify, likelihoods, priors, systems
from sysid.likelihoods.velocity import METHODS
from sysid.solvers.implicit import STEP_METHODS
from sysid.solvers.integrate import solve
from targets import catalogue, constrained, datasets, domains, from_sympy, mixtures, posteriors, shapes
from targets.posteriors import user_likelihood
from tests.support.walks import flat_block
from toolkit import Problem, Sampler, Target, boundaries, dynamics, samplers, target, tempering
from toolkit._engine.job import Job, make_job
from toolkit._engine.run_options import RunOptions

PARTITION = tempering.Partition(-4.0, 0.5, 32)
GIVEN = {
    "step_size": 1e-3, "step_sizes": (1e-3, 2e-3), "temperatures": (1.0, 3.0), "partition": PARTITION,
    "scale": 0.5, "spike": 0.1, "slab": 20.0,
}  # fmt: skip
INSIDE = {"ignore": boundaries.ignore, "reflect": boundaries.reflect, "reject": boundaries.reject,
          "penalise": lambda: boundaries.penalise(10.0)}  # fmt: skip
FLOWER = constrained(mixtures.cosine25(), shapes.flower())


# Functions of CUDA's own in a kernel: the complex step differentiates a system's or a constraint's by those of complex
# numbers, of which there are none of ours.
OWN_FUNCTIONS = {
    "damped_pendulum, trajectory": ("cos", "cosh", "sin", "sinh"),
    **{
        f"constraints by {name}": ("cos", "exp", "sin")
        for kinds in ("function", "functions", "functions and text")
        for name in (kinds, f"{kinds}, logarithms")
    },
}


class Case(NamedTuple):
    """A run of the catalogue: of which group, its name there, and what ``sample`` would be given."""

    group: str
    name: str
    problem: Any
    sampler: Sampler
    options: dict[str, Any] = {}  # noqa: RUF012

    def job(self) -> Job:
        """The run, checked, of two chains."""
        problem, sampler = self.problem, self.sampler
        rng = np.random.default_rng(1)
        truth = problem.truth
        shape = (2, sampler.n_replicas)
        if self.options.get("init") is not None:
            init = np.broadcast_to(self.options["init"], (*shape, len(self.options["init"])))
        elif truth is not None:
            init = truth.independent_draws(2 * sampler.n_replicas, seed=1).reshape(*shape, -1)
        else:
            init = rng.uniform(-0.1, 0.1, (*shape, getattr(problem, "target", problem).dim))
        given: dict[str, Any] = {
            "n_steps": 1000, "seed": 0, "n_chains": 2, "burn_in": 10, "threads": 1, **self.options, "init": init,
        }  # fmt: skip
        return make_job(problem, sampler, RunOptions(**given))


def made(constructor: Callable[..., Any], **options: Any) -> Any:
    """What ``constructor`` makes of its defaults, and of ``GIVEN`` where it knows such an argument."""
    known = inspect.signature(constructor).parameters
    given = {name: value for name, value in GIVEN.items() if name in known}
    return constructor(**given | {name: value for name, value in options.items() if name in known})


def of_samplers() -> Iterator[Case]:
    """Every constructor, on cosine25 without an edge and, where it takes one, in the flower."""
    for name in samplers.__all__:
        constructor = getattr(samplers, name)
        if constructor is Sampler:
            continue
        yield Case("sampler", name, mixtures.cosine25(), made(constructor, boundary=boundaries.ignore()))
        for kind in ("reflect", "reject"):
            try:
                sampler = made(constructor, boundary=INSIDE[kind]())
            except ValueError:  # of MALA and HMC, which are not reflected
                continue
            if sampler.boundary.kind == kind:
                yield Case("sampler", f"{name}, flower", FLOWER, sampler)
                break


def of_targets() -> Iterator[Case]:
    """Every target of the catalogue, by SGLD."""
    for one in catalogue():
        yield Case("target", f"{one.name}, {one.dim}-D", one, samplers.sgld(1e-3))


def of_products() -> Iterator[Case]:
    """Every dynamics with every tempering that ``Sampler`` takes."""
    temperings = {name: getattr(tempering, name) for name in tempering.__all__ if name.islower()}
    for name in dynamics.__all__:
        if not name.islower():
            continue
        for kind in [None, *temperings]:
            try:
                chosen = None if kind is None else made(temperings[kind])
                ladder = (1.0, 3.0) if kind == "replica_exchange" else (1.0,) * (4 if kind == "stein" else 1)
                sampler = Sampler(
                    step_sizes=(1e-3,) * len(ladder), temperatures=ladder, dynamics=made(getattr(dynamics, name)),
                    tempering=chosen,
                )  # fmt: skip
            except (TypeError, ValueError):
                continue
            yield Case("product", f"{name} × {kind}", mixtures.cosine25(), sampler)


def of_features() -> Iterator[Case]:
    """What a run may ask for besides."""
    cosine, plain = mixtures.cosine25(), samplers.sgld(1e-3)
    noisy = {"gradient_noise": 0.1, "energy_noise": 0.1}
    yield Case("feature", "gradient noise", cosine, samplers.sgld(1e-3, gradient_noise=0.1))
    yield Case("feature", "energies kept", cosine, plain, {"keep_energies": True})
    yield Case("feature", "replicas kept", FLOWER, samplers.r2sgld(), {"keep_replicas": True})
    for name in ("sgnht", "csgld", "r2sgld", "tact_hmc"):
        problem = FLOWER if name == "r2sgld" else cosine
        yield Case("feature", f"trace, {name}", problem, made(getattr(samplers, name)), {"trace_every": 5})
    for name in ("resgld", "icsgld", "tact_hmc"):
        yield Case("feature", f"noise, {name}", cosine, made(getattr(samplers, name), **noisy))
    ladder: dict[str, Any] = {"step_sizes": (1e-3,) * 5, "temperatures": (1.0, 2.0, 3.0, 4.0, 5.0)}
    for scheme in ("deo", "seo", "adjacent", "all_pairs"):
        yield Case("feature", f"5 replicas, {scheme}", cosine, samplers.resgld(**ladder, scheme=scheme))


def of_domains() -> Iterator[Case]:
    """Every domain, by reflected SGLD on a flat energy."""
    for region in domains.catalogue():
        problem = Problem(Target("flat", region.dim, flat_block), region.domain)
        sampler = samplers.sgld(1e-3, boundary=boundaries.reflect())
        init = region.interior if isinstance(region, domains.Convex) else region.uniform_draws(1, seed=1)[0]
        yield Case("domain", f"{region.name}, {region.dim}-D", problem, sampler, {"init": init})


def of_boundaries() -> Iterator[Case]:
    """Every boundary in the flower, without and with momenta."""
    for kind, boundary in INSIDE.items():
        for name in ("sgld", "sghmc"):
            yield Case("boundary", f"{kind}, {name}", FLOWER, made(getattr(samplers, name), boundary=boundary()))


def of_minibatches() -> Iterator[Case]:
    """Targets that draw minibatches, without and with a control variate."""
    heart = datasets.heart()

    def datum(x, row):
        apart = row[0] - x[0] - x[1] * row[1]
        return 0.5 * apart * apart, (-apart, -apart * row[1])

    for refresh in (None, 10):
        batch = {"batch_size": 8, "refresh_every": refresh}
        made_of = {
            "regression": posteriors.linear_regression(heart.features, heart.labels, noise=0.5, prior=1.0, **batch),
            "logistic": posteriors.logistic_regression(heart.features, heart.labels, **batch),
            "per datum": user_likelihood.posterior(datum, heart.features[:, :2], 2, prior=1.0, **batch),
        }
        for name, one in made_of.items():
            options = {"init": np.full(one.dim, 0.1)}
            label = f"{name}, anchored" if refresh else name
            yield Case("minibatch", label, one, samplers.sgld(1e-4), options)
            if refresh:
                continue
            yield Case("minibatch", f"{label}, psgld", one, samplers.psgld(1e-4), options)
            exchange = samplers.resgld((1e-4, 2e-4), temperatures=(1.0, 3.0), correction=0.1)
            yield Case("minibatch", f"{label}, resgld", one, exchange, options)
    yield Case("minibatch", "all data, per datum", user_likelihood.posterior(datum, heart.features[:, :2], 2,
    prior=1.0),
               samplers.sgld(1e-4), {"init": np.full(2, 0.1)})  # fmt: skip


def of_functions() -> Iterator[Case]:
    """Targets that a user writes."""
    import math

    @target(dim=1)
    def normal(x):
        return 0.5 * x[0] * x[0], (x[0],)

    @target(dim=2)
    def by_scalars(x, y):
        return 0.5 * (x * x + y * y) + 0.1 * math.cos(3.0 * x), (x - 0.3 * math.sin(3.0 * x), y)

    @target(dim=2, parameters=[1.0, 2.0])
    def by_parameters(x, p):
        u = math.exp(-p[1] * x[0] * x[0])
        return p[0] * u + 0.5 * x[1] * x[1], (-2.0 * p[0] * p[1] * x[0] * u, x[1])

    x, y, p = sympy.symbols("x y p")
    formula = sympy.log(sympy.exp(-((x - 1) ** 2)) + sympy.exp(-p * (x + y) ** 2)) * -1 + y**4 + x**4
    given = from_sympy(formula, (x, y), {p: 2.0})
    for one in (normal, by_scalars, by_parameters, given):
        yield Case("function", one.name, one, samplers.sgld(1e-3))


def growth_series() -> Series:
    """Predators and prey, solved."""
    system = systems.lotka_volterra()
    times = np.linspace(0.0, 10.0, 41)
    solution = solve(system, times, rtol=1e-9, atol=1e-9)
    return Series(times, solution.states, system.states, velocities=None)


def stable(theta):
    """A constraint by a function, which Lorenz's own parameters obey."""
    return theta[1] * theta[2] + theta[2] * theta[2] - theta[0]


def bounded(theta):
    """Another."""
    return 40.0 - theta[0]


def of_identification() -> Iterator[Case]:
    """Every system, likelihood, prior and kind of constraint."""
    plain, walls = samplers.sgld(1e-6), samplers.r2sgld((1e-6, 2e-6), temperatures=(1.0, 2.0))

    def case(name: str, problem: Any, sampler: Sampler = plain) -> Case:
        usual = np.array([0.5] * problem.dim)
        start = problem.prepared.start
        found = usual if start is None else problem.positions(start)
        return Case("identification", name, problem, sampler, {"init": found})

    spline = likelihoods.derivative(velocities="spline")
    coarse = likelihoods.trajectory(step=0.05)
    for name, system in systems.catalogue().items():
        times = np.linspace(0.0, 4.0, 401)
        states = solve(system, times, rtol=1e-9, atol=1e-9).states
        states = states + 1e-3 * states.std(axis=0) * np.random.default_rng(1).normal(size=states.shape)
        data = Series(times, states, system.states)
        for likelihood in likelihoods.BY_NAME:
            chosen = {"derivative": spline, "trajectory": coarse}.get(likelihood, likelihood)
            try:
                problem = identify(data, system, likelihood=chosen)
            except (ValueError, ZeroDivisionError):  # of systems not linear in their parameters, or guessed at 0
                continue
            yield case(f"{name}, {likelihood}", problem)
    data = growth_series()
    for method in METHODS:
        if method != "exact":
            chosen = likelihoods.derivative(velocities=method, window=5 if method == "savitzky_golay" else None)
            yield case(f"velocities by {method}", identify(data, systems.lotka_volterra(), likelihood=chosen))
    for batches in ("independent", "windows"):
        chosen = likelihoods.derivative(velocities="spline", batch_size=8, batches=batches)
        yield case(f"minibatch, {batches}", identify(data, systems.lotka_volterra(), likelihood=chosen))
    for errors in ("gaussian", "lognormal"):
        for method in STEP_METHODS:
            for segments in (1, 2):
                chosen = likelihoods.trajectory(errors=errors, method=method, segments=segments, step=0.05)
                label = f"trajectory, {errors}, {method}, {segments} segments"
                yield case(label, identify(data, systems.lotka_volterra(), likelihood=chosen))
    for kind in ("flat", "gaussian", "lognormal", "laplace", "spike_and_slab", "horseshoe"):
        prior = made(getattr(priors, kind))
        yield case(f"prior, {kind}", identify(data, systems.lotka_volterra(), likelihood=spline, prior=prior))
    lorenz = systems.lorenz()
    times = np.linspace(0.0, 2.0, 201)
    series = Series(times, solve(lorenz, times, rtol=1e-9, atol=1e-9).states, lorenz.states)
    for name, constraints in {
        "text": ["sigma > 1 + beta"], "box": ["sigma < 40", "beta > 0.1"], "function": stable,
        "functions": [stable, bounded], "functions and text": [stable, bounded, "sigma > 1 + beta"],
    }.items():  # fmt: skip
        for log in (None, ["rho"]):
            problem = identify(series, lorenz, likelihood=spline, constraints=constraints, log=log)
            yield case(f"constraints by {name}" + (", logarithms" if log else ""), problem, walls)


GROUPS = (
    of_samplers, of_targets, of_products, of_features, of_domains, of_boundaries, of_minibatches, of_functions,
    of_identification,
)  # fmt: skip


def every() -> Iterator[Case]:
    """All of them."""
    for group in GROUPS:
        yield from group()
