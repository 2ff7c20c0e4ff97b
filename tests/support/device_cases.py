"""Short runs that a device must make as the CPU does, to the last bit: of every constructor, and of every feature."""

import functools
import inspect
import os
import signal
import tempfile
import warnings
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from targets import constrained, domains, mixtures, shapes
from targets.posteriors import linear
from toolkit import (
    DivergenceError,
    Layout,
    Sampler,
    Target,
    accumulators,
    boundaries,
    chains,
    dynamics,
    sample,
    samplers,
    schedules,
    stream,
    target,
    tempering,
)
from toolkit.tempering.contour_tempering import Partition
from toolkit.verification.bits import arrays_of, first_difference, joined

COSINE = mixtures.cosine25()
PARTITION = Partition(-4.0, 0.5, 12)
# What constructors are given, by the names of their arguments: a new one that takes these is a case by itself.
GIVEN = {
    "step_size": 0.02, "step_sizes": (0.01, 0.03), "temperatures": (1.0, 3.0), "partition": PARTITION, "n_cycles": 3,
    "n_leapfrogs": 3, "n_replicas": 3, "resample_every": 4,
}  # fmt: skip
CONSTRUCTORS = [name for name in samplers.__all__ if name != "Sampler"]
EXACT = ("hmc", "mala", "pt_hmc", "pt_mala")  # with a Metropolis test, which refuses reflection
PAIR = {"step_sizes": (0.01, 0.03), "temperatures": (1.0, 3.0)}
THREE = {"step_sizes": (0.01, 0.02, 0.04), "temperatures": (1.0, 2.0, 4.0)}
FEATURES = np.random.default_rng(5).standard_normal((30, 2))
EDGES = np.linspace(-2.5, 2.5, 6)
EVERYTHING = {"keep_replicas": True, "keep_energies": True, "trace_every": 3, "layout": Layout(chunk_steps=13)}


def made(name, **own):
    """The sampler of a constructor."""
    wanted = inspect.signature(getattr(samplers, name)).parameters
    return getattr(samplers, name)(**{key: value for key, value in {**GIVEN, **own}.items() if key in wanted})


@functools.cache
def flower():
    return constrained(COSINE, shapes.flower())


@functools.cache
def heart():
    return constrained(COSINE, shapes.heart())


@functools.cache
def box():
    return constrained(mixtures.gaussian_mixture([[0.0, 0.0]], 1.0), domains.box([-1.0, -0.5], [0.5, 1.0]))


@functools.cache
def wedge():
    """Sides, a linear wall and a ball, small beside the target."""
    region = domains.intersection(
        domains.box([-0.4, -0.35], [0.35, np.inf]), domains.half_spaces([[1.0, 2.0]], [1.1]),
        domains.ball([0.0, 0.0], 0.5),
    )  # fmt: skip
    return constrained(mixtures.gaussian_mixture([[0.0, 0.0]], 1.0), region)


@target(dim=2)
def banana(x):
    """A target as a user writes it."""
    bend = x[1] - x[0] * x[0]
    return 0.5 * x[0] * x[0] + 2.0 * bend * bend, (x[0] - 8.0 * x[0] * bend, 4.0 * bend)


def quartic_block(position, energy, gradient, parameters, scratch):
    """U = x⁴, which SGLD overshoots from afar."""
    for lane in range(position.shape[1]):
        x = position[0, lane]
        energy[lane] = x * x * x * x
        gradient[0, lane] = 4.0 * x * x * x


def rough_block(position, energy, gradient, parameters, scratch):
    """A target of many rows of scratch, more than a thread keeps to itself."""
    for lane in range(position.shape[1]):
        total = 0.0
        for row in range(scratch.shape[0]):
            scratch[row, lane] = position[row % 2, lane] * (1.0 + row)
        for row in range(scratch.shape[0]):
            total += scratch[row, lane]
        energy[lane] = 0.5 * (position[0, lane] * position[0, lane] + position[1, lane] * position[1, lane])
        energy[lane] += 1e-9 * total * total
        gradient[0, lane] = position[0, lane] + 1e-9 * total
        gradient[1, lane] = position[1, lane] - 1e-9 * total


@dataclass(frozen=True)
class Pressing:
    """Counts draws, and presses Ctrl-C at the second chunk's."""

    needs_energies: bool = False

    def start(self, problem, n_chains):
        return {"n": np.zeros(n_chains, np.int64)}

    def update(self, state, draws, weights, energies, steps):
        if (state["n"] > 0).all() and (state["n"] < 20).all():
            os.kill(os.getpid(), signal.SIGINT)
        state["n"] += draws.shape[1]

    def result(self, state):
        return Counted(state["n"].copy())


class Counted(tuple):
    """Draws of each chain."""

    def __new__(cls, n):
        return super().__new__(cls, (n,))

    def _asdict(self):
        return {"n": self[0]}


def start_of(problem, sampler, n_chains):
    """Places at which chains and replicas begin, all different."""
    dim = getattr(problem, "target", problem).dim
    return np.random.default_rng(7).uniform(-0.4, 0.4, (n_chains, sampler.n_replicas, dim))


@dataclass(frozen=True)
class Case:
    """A run; build: its problem, sampler and options beside ``EVERYTHING``. slow: too long for every time."""

    build: object
    slow: bool = False

    def arguments(self):
        problem, sampler, own = self.build()
        given = {"n_steps": 20, "burn_in": 5, "thin": 2, "n_chains": 3, "seed": 2**63 + 5, "progress": False}
        given |= EVERYTHING | own
        given.setdefault("init", start_of(problem, sampler, given["n_chains"]))
        return problem, sampler, given

    def arrays(self, backend, folder):
        """All that the run computes."""
        problem, sampler, given = self.arguments()
        return arrays_of(sample(problem, sampler, backend=backend, **given))


class Streamed(Case):
    """In chunks of its own."""

    def arrays(self, backend, folder):
        problem, sampler, given = self.arguments()
        return joined(list(stream(problem, sampler, backend=backend, **given | {"layout": Layout(chunk_steps=6)})))


class Crowded(Case):
    """With room for a single draw, so that every draw is a piece."""

    def arrays(self, backend, folder):
        from toolkit._engine.cuda import engine

        room, engine.HOST_BYTES = engine.HOST_BYTES, 1
        try:
            return super().arrays(backend, folder)
        finally:
            engine.HOST_BYTES = room


class Diverging(Case):
    """What its error tells, and the run that it holds."""

    def arrays(self, backend, folder):
        problem, sampler, given = self.arguments()
        try:
            sample(problem, sampler, backend=backend, **given)
        except DivergenceError as error:
            told = {"message": np.array(str(error)), "where": np.array([error.chain, error.replica, error.step])}
            return arrays_of(error.run) | told | {"state": error.state}
        raise AssertionError("it does not diverge")


class Interrupted(Case):
    """What is there after Ctrl-C."""

    def arrays(self, backend, folder):
        problem, sampler, given = self.arguments()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run = sample(problem, sampler, backend=backend, threads=1, **given)
        return arrays_of(run) | {"interrupted": np.array([run.interrupted, run.n_steps])}


class Continued(Case):
    """Begun by one backend and ended by the other, from a checkpoint; by the CPU alone, without one."""

    first = "cpu"

    def begin(self, folder):
        """The first half, by ``first``, before the other's."""
        problem, sampler, given = self.arguments()
        sample(problem, sampler, backend=self.first, checkpoint=self.file(folder), **given | {"n_steps": 9})

    def file(self, folder):
        return Path(folder) / f"{self.first}.ckpt"

    def end(self, backend, folder):
        """The second half."""
        problem, sampler, given = self.arguments()
        return arrays_of(sample(problem, sampler, backend=backend, checkpoint=self.file(folder), **given))

    def arrays(self, backend, folder):
        if backend == "cpu":
            return super().arrays(backend, folder)
        if self.first == "cuda":
            self.begin(folder)
            return {}  # the rest is for the CPU
        return self.end(backend, folder)


class ContinuedByTheCpu(Continued):
    first = "cuda"


class Held(Case):
    """A few steps at a time, and from the middle on on the problem ``other``."""

    def arrays(self, backend, folder):
        problem, sampler, given = self.arguments()
        names = ("init", "n_chains", "seed", "burn_in", "keep_replicas", "keep_energies")
        with chains(problem, sampler, backend=backend, **{name: given[name] for name in names}) as c:
            runs = [c.advance(7, thin=1)]
            c.advance(1)
            c.replace(given["other"])
            told = {"weights": c.weights, "energies": c.energies}
            runs += [c.advance(1, thin=1), c.advance(6, thin=1)]
            return joined(runs) | told | {"positions": c.positions, "last weights": c.weights}


def sgld(**own):
    return lambda: (COSINE, samplers.sgld(0.02), own)


def walled(name, problem):
    """A constructor with a wall; a Metropolis test has moves rejected there."""
    boundary = boundaries.reject() if name in EXACT else boundaries.reflect()
    return lambda: (problem(), made(name, boundary=boundary), {})


def derivative():
    """Identification from velocities."""
    from sysid import data, identify, likelihoods, systems

    series = data.simulate(systems.lorenz(), np.arange(0.0, 2.0, 0.05), seed=1)
    problem = identify(series, systems.lorenz(), likelihood=likelihoods.derivative(noise=50.0)).scaled()
    return problem, samplers.sgld(0.05), {"init": problem.starts(3, seed=1)}


def identified_by_batches(batches):
    """Identification from velocities, a few data at a time."""

    def make():
        from sysid import data, identify, likelihoods, systems

        series = data.simulate(systems.lorenz(), np.arange(0.0, 2.0, 0.05), seed=1)
        likelihood = likelihoods.derivative(noise=50.0, batch_size=7, batches=batches)
        problem = identify(series, systems.lorenz(), likelihood=likelihood)
        exchange = samplers.resgld((1e-3, 2e-3), temperatures=(1.0, 3.0), correction=0.5)
        return problem, exchange, {"init": np.broadcast_to(problem.starts(3, seed=1)[:, None], (3, 2, problem.dim))}

    return make


def trajectory():
    """Identification from states."""
    from sysid import data, identify, likelihoods, systems

    series = data.simulate(systems.lotka_volterra(), np.arange(0.0, 3.0, 0.5), errors="lognormal", noise=0.1, seed=2)
    likelihood = likelihoods.trajectory(errors="lognormal", noise=0.1)
    problem = identify(series, systems.lotka_volterra(), likelihood=likelihood).scaled()
    return problem, samplers.sgld(1e-4), {"init": problem.starts(3, seed=1), "n_steps": 12}


def minibatches_about_anchors():
    """Of some data, and then of more."""
    few, all_of_them = (
        linear.linear_regression(
            features=FEATURES[:n], response=FEATURES[:n] @ [1.0, -1.0] + 0.3, noise=1.0, prior=2.0, batch_size=4,
            refresh_every=50,
        )
        for n in (20, 30)
    )  # fmt: skip
    return few, samplers.sgld(0.005), {"other": all_of_them}


def minibatches():
    problem = linear.linear_regression(
        features=FEATURES, response=FEATURES @ [1.0, -1.0] + 0.3, noise=1.0, prior=2.0, batch_size=4
    )
    return problem, samplers.sgld(0.005), {}


def gathering():
    return COSINE, samplers.csgld(0.02, partition=PARTITION), {
        "accumulators": {
            "moments": accumulators.moments(), "histogram": accumulators.histogram(EDGES, EDGES),
            "energies": accumulators.energy_histogram(np.linspace(-5.0, 5.0, 9)), "best": accumulators.best_point(),
        },
    }  # fmt: skip


def gathering_alone():
    problem, sampler, own = gathering()
    return problem, sampler, own | {"keep_draws": False}


def under_contour():
    sampler = Sampler("m", (0.1,), (1.0,), dynamics.mala(), tempering=tempering.contour(partition=PARTITION))
    return COSINE, sampler, {}


def exchanging(**own):
    return lambda: (COSINE, Sampler("e", *THREE.values(), tempering=tempering.replica_exchange(**own)), {})


EVERY_TIME = ("sgld", "hmc", "resgld", "csgld", "tact_hmc")  # one for each machinery
CASES = {
    name: Case(lambda name=name: (flower() if name[:2] == "r2" else COSINE, made(name), {}), name not in EVERY_TIME)
    for name in CONSTRUCTORS
}
CASES |= {
    f"{name} in {where.__name__}": Case(walled(name, where), slow=True)
    for name in CONSTRUCTORS if name != "svgd"
    for where in (flower, heart, box)
}  # fmt: skip
CASES |= {
    "in pieces": Crowded(sgld(thin=1)),
    "streamed": Streamed(lambda: (flower(), made("r2sgld"), {})),
    "one chain": Case(sgld(n_chains=1)),
    "seventy chains": Case(sgld(n_chains=70, n_steps=6, burn_in=0)),
    "of little": Case(sgld(keep_replicas=False, keep_energies=False, trace_every=None, thin=1, burn_in=0)),
    "of chains": Case(lambda: (COSINE, samplers.sgld([0.01, 0.02, 0.03], temperature=[0.5, 1.0, 2.0]), {})),
    "of rungs and chains": Case(
        lambda: (flower(), samplers.r2sgld([[0.01, 0.02]] * 3, temperatures=[[1.0, t] for t in (2.0, 3.0, 4.0)]), {})
    ),
    "scaled": Case(
        lambda: (COSINE, replace(samplers.r2sghmc(**PAIR, boundary=boundaries.ignore()), scale=(0.5, 1.3)), {})
    ),
    "scaled hmc": Case(lambda: (COSINE, replace(samplers.hmc(0.2, n_leapfrogs=3), scale=(0.5, 1.3)), {}), slow=True),
    "hmc with a matrix as scale": Case(
        lambda: (COSINE, replace(samplers.pt_hmc(**PAIR, n_leapfrogs=3), scale=((0.5, 0.0), (-0.7, 1.3))), {})
    ),
    "with gradient noise": Case(lambda: (COSINE, samplers.sgld(0.02, gradient_noise=0.3), {})),
    "with energy noise": Case(lambda: (COSINE, samplers.resgld(**PAIR, energy_noise=0.5), {})),
    "with energy noise under contour": Case(lambda: (COSINE, made("csgld", energy_noise=0.2), {}), slow=True),
    "decaying": Case(lambda: (COSINE, samplers.sgld(0.05, schedule=schedules.exponential_decay(0.9, every=3)), {})),
    "own schedule": Case(
        lambda: (COSINE, samplers.sgld(0.02, schedule=schedules.custom(1.0 / np.arange(1.0, 41.0),
                 keep=np.arange(40) % 5 < 3)), {})
    ),
    "user's target": Case(lambda: (banana, samplers.sgld(0.02), {})),
    "far scratch": Case(lambda: (Target("rough", 2, rough_block, scratch_rows=70), samplers.sgld(0.02), {})),
    "bounces run out": Case(lambda: (flower(), samplers.sgld(0.3, boundary=boundaries.reflect(max_bounces=1)), {})),
    "penalty": Case(lambda: (flower(), samplers.sgld(0.02, boundary=boundaries.penalise(3.0)), {})),
    "penalty as printed": Case(
        lambda: (flower(), samplers.sgld(0.02, boundary=boundaries.penalise_as_printed(3.0)), {}), slow=True
    ),
    "penalty where walls meet": Case(
        lambda: (wedge(), samplers.mala(0.5, boundary=boundaries.penalise(3.0)), {}), slow=True
    ),
    "adapted correction": Case(
        lambda: (COSINE, samplers.resgld(**PAIR, correction=tempering.adapted_correction(0.4)), {})
    ),
    "estimated correction": Case(
        lambda: (COSINE, samplers.resgld(**PAIR, energy_noise=0.5,
                 correction=tempering.estimated_correction(every=5)), {}),
        slow=True,
    ),
    "seo": Case(exchanging(scheme="seo"), slow=True),
    "all pairs": Case(exchanging(scheme="all_pairs"), slow=True),
    "one swap per window": Case(exchanging(window=4, one_swap_per_window=True), slow=True),
    "frozen contour": Case(lambda: (COSINE, made("icsgld", freezes=True), {})),
    "mala under contour": Case(under_contour, slow=True),
    "metadynamics": Case(lambda: (COSINE, made("tact_hmc", bias="metadynamics"), {})),
    "pilot": Case(lambda: (COSINE, samplers.csgld(0.02), {}), slow=True),
    "minibatches": Case(minibatches, slow=True),
    "derivative": Case(derivative, slow=True),
    "trajectory": Case(trajectory, slow=True),
    "data drawn": Case(identified_by_batches("independent"), slow=True),
    "windows of data": Case(identified_by_batches("windows"), slow=True),
    "accumulators": Case(gathering, slow=True),
    "accumulators alone": Case(gathering_alone, slow=True),
    "diverging": Diverging(lambda: (
        Target("quartic", 1, quartic_block), samplers.sgld(0.02),
        {"init": [[0.1], [5.0], [0.2]], "burn_in": 0, "thin": 1},
    )),
    "interrupted": Interrupted(sgld(n_steps=60, accumulators={"pressing": Pressing()})),
    "held": Held(
        lambda: (flower(), made("r2sgld"), {"other": constrained(mixtures.gaussian_grid25(), shapes.flower())})
    ),
    "held under contour": Held(
        lambda: (COSINE, made("icsgld", energy_noise=0.2), {"other": mixtures.gaussian_mixture([[0.0, 0.0]], 1.0)}),
        slow=True,
    ),
    "held minibatches about an anchor": Held(minibatches_about_anchors),
    "continued on the device": Continued(lambda: (flower(), made("r2sgld"), {})),
    "continued by the cpu": ContinuedByTheCpu(lambda: (flower(), made("r2sgld"), {})),
}  # fmt: skip


@contextmanager
def planted(fault):
    """A fault of the backend: what a chain carries is put elsewhere, or what goes home is another's."""
    from toolkit._engine.cuda import engine, kernel, transfers

    where, name = {
        "column": (kernel, "float_columns"),
        "replicas": (engine, "by_chain"),
        "turn": (transfers.Export, "store"),
    }[fault]
    right = getattr(where, name)

    def shifted_column(shape):
        columns = right(shape)
        return columns | {"position": columns["position"]._replace(first=columns["position"].first + 1)}

    def turned_replicas(state, name, n_chains, n_replicas):
        values = right(state, name, n_chains, n_replicas)
        return values[..., ::-1] if name == "position" else values

    def other_turn(self, turn, n, target):
        return right(self, 1 - turn, n, target)

    wrong = {"column": shifted_column, "replicas": turned_replicas, "turn": other_turn}[fault]
    stamp = kernel.kernel_stamp
    setattr(where, name, wrong)
    kernel.kernel_stamp = lambda *given: None  # or the right kernel would come from the disk, or this one go there
    kernel.compiled.cache_clear()
    try:
        yield
    finally:
        setattr(where, name, right)
        kernel.kernel_stamp = stamp
        kernel.compiled.cache_clear()


FAULTS = ("column", "replicas", "turn")


def arrays(name, backend, folder=None):
    """What the case ``name`` computes; ``name`` may be a planted fault's."""
    if folder is None:
        with tempfile.TemporaryDirectory() as own:
            return arrays(name, backend, own)
    if name in FAULTS:
        faulty = CASES["r2sgld"]
        if backend == "cpu":
            return faulty.arrays(backend, folder)
        with planted(name):
            return faulty.arrays(backend, folder)
    return CASES[name].arrays(backend, folder)


def what_differs(expected, got):
    """The first number in which what two backends computed differs; what their errors say must be the same."""
    words = [given.pop("message", None) for given in (expected, got)]
    assert str(words[0]) == str(words[1])
    return first_difference(expected, got, np.arange(100))
