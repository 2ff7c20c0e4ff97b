"""Every part pickles, and another process gets the same draws of it: for pools, clusters and caches of results."""

import copy
import functools
import hashlib
import json
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

import sysid
from sysid import systems
from targets import catalogue, classics, constrained, domains, from_sympy, mixtures, posteriors, shapes
from tests.support.device_cases import CONSTRUCTORS, PARTITION, made
from toolkit import (
    DivergenceError,
    GradientError,
    Layout,
    Spread,
    Target,
    accumulators,
    boundaries,
    check_gradient,
    check_step_size,
    dynamics,
    from_callable,
    load,
    sample,
    samplers,
    schedules,
    tempering,
)
from toolkit import target as target_of
from toolkit.problem.definition import as_problem

ROOT = Path(__file__).resolve().parents[2]
COSINE = mixtures.cosine25()
SGLD = samplers.sgld(0.01)
KL = accumulators.kl([0.5, 0.5], [-10.0, 0.0, 10.0], at=[20, 40])


def bowl(stiffness):
    """A target of a closure."""

    @target_of(dim=2)
    def of_closure(x):
        return 0.5 * stiffness * (x[0] ** 2 + x[1] ** 2), (stiffness * x[0], stiffness * x[1])

    return of_closure


def block(stiffness):
    """A target of a block function in a closure."""

    def energy_gradient(position, energy, gradient, parameters, scratch):
        for lane in range(energy.size):
            energy[lane] = 0.5 * stiffness * position[0, lane] ** 2
            gradient[0, lane] = stiffness * position[0, lane]

    return Target("own block", 1, energy_gradient)


def symbolic():
    """A target of an expression."""
    sympy = pytest.importorskip("sympy")
    x, y = sympy.symbols("x y")
    return from_sympy(x**2 + sympy.exp(y) + y**2, (x, y))


def mean_posterior(**options):
    """A posterior of a likelihood and a prior of one's own."""
    rows = np.linspace(-1.0, 1.0, 12)[:, None]
    return posteriors.posterior(
        lambda x, row: (0.5 * (row[0] - x[0]) ** 2, (x[0] - row[0],)), rows, 1,
        prior=lambda x: (0.5 * x[0] ** 2, (x[0],)), **options,
    )  # fmt: skip


def identification(likelihood, **options):
    """An identification of a few made data."""
    system = systems.lotka_volterra()
    data = sysid.data.simulate(system, np.linspace(0.0, 6.0, 40), noise=0.02, seed=3)
    return sysid.identify(data, system, likelihood=likelihood, progress=False, **options)


def own_system():
    """A system of a function in a closure."""
    rate = 0.7
    return systems.own(lambda t, x, p: (-rate * x[0] + p[0],), states=["x"], parameters=["a"], usual=[0.5], start=[1.0])


REGIONS = {region.name: region for region in domains.catalogue()}
PROBLEMS = {
    **{made.name: lambda made=made: made for made in catalogue()},
    **{f"in {name}": lambda name=name: constrained(gaussian(REGIONS[name].dim), REGIONS[name]) for name in REGIONS},
    "coin flip": lambda: classics.coin_flip(),
    "egg crate": lambda: classics.egg_crate(),
    "Gaussian shells": lambda: classics.gaussian_shells(),
    "dual moon": lambda: classics.dual_moon(),
    "cosine25 in flower": lambda: constrained(COSINE, shapes.flower()),
    "closure": lambda: bowl(2.0),
    "closure with parameters": lambda: target_of(
        lambda x, p: (p[0] * x[0] ** 2, (2.0 * p[0] * x[0],)), dim=1, parameters=[0.7]
    ),
    "block function": lambda: block(3.0),
    "callable": lambda: from_callable(lambda p: (0.5 * (p**2).sum(axis=1), p), dim=2, name="mine"),
    "expression": symbolic,
    "own posterior": mean_posterior,
    "own posterior, minibatches": lambda: mean_posterior(batch_size=3),
    "velocities": lambda: identification("derivative"),
    "weak form": lambda: identification("weak"),
    "trajectories": lambda: identification("trajectory"),
    "velocities, constrained": lambda: identification("derivative", constraints=lambda p: p[0] - 0.01),
}
SAMPLERS = {
    **{name: lambda name=name: made(name) for name in CONSTRUCTORS},
    "custom schedule": lambda: samplers.sgld(
        0.01, schedule=schedules.custom(lambda steps: 1.0 + steps % 2, keep=lambda steps: steps % 2 == 0)
    ),
    "own schedule": lambda: samplers.sgld(0.01, schedule=schedules.Schedule("mine", halves)),
    "own dynamics": lambda: samplers.Sampler(
        "mine", (0.01,), (1.0,), dynamics=dynamics.langevin()._replace(name="mine", check=lambda *given: None)
    ),
    "reflected": lambda: samplers.r2sgld((0.001, 0.002), temperatures=(1.0, 2.0)),
    "continuous tempering": lambda: samplers.tact_hmc(0.02),
}
RESULTS = {
    "run": lambda: sample(
        COSINE, samplers.icsgld(0.01, n_replicas=3, partition=PARTITION), n_steps=60, seed=1, keep_replicas=True,
        trace_every=5, progress=False,
        accumulators={"moments": accumulators.moments(), "kl": KL, "pooled": accumulators.pooled(KL)},
    ),
    "loaded run": lambda: loaded(RESULTS["run"]()),
    "identification": lambda: identification("derivative"),
    "system": own_system,
    "library": lambda: sysid.libraries.polynomial(["x", "y"], 2),
    "catalogue of systems": lambda: systems.catalogue(),
    "series": lambda: sysid.data.lynx_hare(),
    "layout": lambda: Layout(lanes=4, fused=True),
    "spread": lambda: Spread(1.0),
    "accumulator": lambda: KL,
    "pooled accumulator": lambda: accumulators.pooled(KL),
    "boundary": lambda: boundaries.penalise(3.0),
    "tempering": lambda: tempering.replica_exchange(),
    "shape": lambda: shapes.flower(),
    "report of step sizes": lambda: check_step_size(sample(COSINE, SGLD, n_steps=60, seed=1, progress=False)),
    "truth": lambda: COSINE.truth,
}  # fmt: skip


def halves(steps, total_steps):
    """Half the step size throughout."""
    return schedules.Factors(np.full(steps.size, 0.5), np.ones(steps.size), np.ones(steps.size, np.bool_))


def loaded(run):
    """The run, saved and loaded without its problem."""
    with tempfile.TemporaryDirectory() as folder:
        run.save(Path(folder) / "run.npz")
        return load(Path(folder) / "run.npz")


def gaussian(dim):
    """A normal target about a point that most regions have."""
    return mixtures.gaussian_mixture([[0.1] * dim], 0.05)


def problem_for(sampler):
    """cosine25; in the flower where the sampler reflects."""
    return constrained(COSINE, shapes.flower()) if sampler.boundary.kind == "reflect" else COSINE


def digest(arrays):
    """A hash of arrays."""
    return hashlib.sha256(b"".join(np.ascontiguousarray(a).tobytes() for a in arrays)).hexdigest()


def start_of(problem, sampler):
    """A start of two chains: what an identification knows, or points about 0.1; None in a domain, and of particles."""
    if isinstance(problem, sysid.Identification):
        return np.tile(problem.usual_start(), (2, 1))
    problem = as_problem(problem)
    if problem.domain is not None or isinstance(sampler.tempering, tempering.Stein):
        return None
    return np.linspace(0.1, 0.2, 2)[:, None] * np.ones(problem.target.dim)


def draws_of(problem, sampler):
    """A hash of a short run's draws."""
    run = sample(
        problem, sampler, n_steps=40, n_chains=2, seed=5, init=start_of(problem, sampler), progress=False, threads=1
    )
    return digest([run.replica_draws, run.weights])


def given(problem, sampler):
    """The pickle that ``pickle_worker`` takes."""
    return pickle.dumps((problem, sampler, start_of(problem, sampler)))


def arrays_in(value, seen=None):
    """Every array that an object of a round trip holds, in order."""
    seen = set() if seen is None else seen
    if id(value) in seen:
        return []
    seen.add(id(value))
    if isinstance(value, np.ndarray):
        return [value]
    if isinstance(value, dict):
        return [array for item in value.values() for array in arrays_in(item, seen)]
    if isinstance(value, tuple | list):
        return [array for item in value for array in arrays_in(item, seen)]
    return arrays_in(vars(value), seen) if hasattr(value, "__dict__") and not callable(value) else []


def elsewhere(pickles):
    """What ``pickle_worker`` says of each pickle, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.pickle_worker"],
        input=pickle.dumps(pickles), stdout=subprocess.PIPE, check=True, cwd=ROOT,
    )  # fmt: skip
    return json.loads(done.stdout)


IGNORED = pytest.mark.filterwarnings("ignore::toolkit.ContourWarning")  # of short runs


@pytest.fixture(scope="module")
def pairs():
    """Of problems and of samplers, by their names: the problem, the sampler, and what one other process says."""
    made = {f"problem: {name}": (make(), samplers.sgld(1e-10)) for name, make in PROBLEMS.items()}
    for name, make in SAMPLERS.items():
        sampler = make()
        made[f"sampler: {name}"] = problem_for(sampler), sampler
    said = elsewhere({name: given(*pair) for name, pair in made.items()})
    return {name: (*pair, said[name]) for name, pair in made.items()}


@IGNORED
@pytest.mark.parametrize("kind", ["problem", "sampler"])
def test_another_process_gets_equal_draws(kind, pairs):
    chosen = {name: pair for name, pair in pairs.items() if name.startswith(kind)}
    assert len(chosen) == len(PROBLEMS if kind == "problem" else SAMPLERS)
    expected = {name: draws_of(problem, sampler) for name, (problem, sampler, _) in chosen.items()}
    assert {name: said for name, (*_, said) in chosen.items()} == expected


@IGNORED
@pytest.mark.parametrize("what", RESULTS)
def test_what_is_made_keeps_its_numbers(what):
    made = RESULTS[what]()
    again = pickle.loads(pickle.dumps(made))
    assert type(again) is type(made)
    assert digest(arrays_in(again)) == digest(arrays_in(made))


@pytest.mark.parametrize("what", ["closure", "block function", "own posterior", "velocities"])
def test_equal_pickles_compile_once(what):
    made = PROBLEMS[what]()
    first, second = (as_problem(pickle.loads(pickle.dumps(made))).target for _ in range(2))
    assert first.energy_gradient is second.energy_gradient is as_problem(made).target.energy_gradient
    assert first.compiled() is second.compiled()


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy])
def test_copies_share_their_functions(duplicate):
    made = bowl(2.0)
    assert duplicate(made).energy_gradient is made.energy_gradient
    called = from_callable(lambda p: (p.sum(axis=1), np.ones_like(p)), dim=1, name="mine")
    assert duplicate(called).evaluate(np.ones((1, 1)))[0] == 1.0
    sampler = SAMPLERS["custom schedule"]()
    assert duplicate(sampler) == sampler


def test_a_recipe_is_not_copied_with_a_functions_attributes():
    @functools.wraps(bowl(2.0).energy_gradient)
    def other(position, energy, gradient, parameters, scratch):
        for lane in range(energy.size):
            energy[lane] = 7.0 * position[0, lane] ** 2
            gradient[0, lane] = 14.0 * position[0, lane]

    again = pickle.loads(pickle.dumps(Target("other", 1, other)))
    assert [part.item() for part in again.evaluate(np.ones((1, 1)))] == [7.0, 14.0]


def test_functions_that_python_calls_are_each_their_own():
    """Not bound, as compiled ones are: a copy of a module would lack what it looks up by other names."""
    calls = []

    def counted(points):
        calls.append(len(points))
        return (points**2).sum(axis=1) + len(calls), 2.0 * vars(np)["asarray"](points)

    content = pickle.dumps(from_callable(counted, dim=1, name="mine"))
    for _ in range(2):
        loaded = pickle.loads(content)
        assert [loaded.evaluate(np.ones((1, 1)))[0].item() for _ in range(2)] == [2.0, 3.0]


def test_errors_come_out_of_a_pool_with_all_that_they_say():
    with pytest.raises(DivergenceError) as caught:
        sample(bowl(2.0), samplers.sgld(1e9), n_steps=300, seed=1, init=[1.0, 1.0], progress=False)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), str(again), again.step) == (DivergenceError, str(caught.value), caught.value.step)
    np.testing.assert_array_equal(again.run.draws, caught.value.run.draws)
    with pytest.raises(GradientError) as wrong:
        check_gradient(from_callable(lambda p: ((p**2).sum(axis=1), -p), dim=1, name="mine"))
    assert pickle.loads(pickle.dumps(wrong.value)).coordinate == wrong.value.coordinate
