"""Runs to be interrupted: every named sampler; all schedules, domains, targets and records with state of their own."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from targets import constrained, mixtures, shapes
from targets.posteriors import linear
from toolkit import (
    Layout,
    Sampler,
    accumulators,
    boundaries,
    dynamics,
    from_callable,
    sample,
    samplers,
    schedules,
    tempering,
)
from toolkit._output.storage.checkpoint import Checkpoint
from toolkit.tempering.contour_tempering import Partition

COSINE = mixtures.cosine25()
FLOWER = constrained(COSINE, shapes.flower())
PARTITION = Partition(-4.0, 0.5, 20)
PAIR = {"step_sizes": (0.01, 0.02), "temperatures": (1.0, 3.0)}
THREE = {"step_sizes": (0.01, 0.02, 0.04), "temperatures": (1.0, 2.0, 4.0)}
RANDOM = np.random.default_rng(5)
FEATURES = RANDOM.standard_normal((30, 2))
REGRESSION = {"features": FEATURES, "response": FEATURES @ [1.0, -1.0] + 0.3, "noise": 1.0, "prior": 2.0}
ANCHORED = linear.linear_regression(**REGRESSION, batch_size=4, refresh_every=50)
DRAWN = linear.linear_regression(**REGRESSION, batch_size=4)
N_STEPS = 400
EDGES = np.linspace(-2.5, 2.5, 6)
SGLD = samplers.sgld(0.02)
RUN = {"n_steps": 100, "seed": 3, "n_chains": 2, "layout": Layout(chunk_steps=10)}


def bowl(points):
    """A quadratic in plain NumPy."""
    return 0.5 * (points**2).sum(axis=1), points


@dataclass(frozen=True)
class Sums:
    """Sum of the draws and of their weights and energies, draw by draw, and the last step."""

    power: int = 1
    needs_energies: bool = True

    def start(self, problem, n_chains):
        return {
            "sum": np.zeros((n_chains, problem.target.dim)),
            "more": np.zeros((n_chains, 2), np.float32),
            "last": np.full(n_chains, -1, np.int32),
        }

    def update(self, state, draws, weights, energies, steps):
        for i in range(draws.shape[1]):
            state["sum"] += draws[:, i] ** self.power
            state["more"][:, 0] += energies[:, i]
            state["more"][:, 1] += 1.0 if weights is None else weights[:, i]
        state["last"][:] = steps[-1]

    def result(self, state):
        return tuple(array.copy() for array in state.values())


START = {"init": RANDOM.uniform(-0.5, 0.5, (5, 4, 2))}
CASES = {
    "sgld": (COSINE, samplers.sgld(0.02, gradient_noise=0.3), {}),
    "psgld": (COSINE, samplers.psgld(0.01), {}),
    "sghmc": (COSINE, samplers.sghmc(0.02), {"trace_every": 7}),
    "sgnht": (COSINE, samplers.sgnht(0.02, by_coordinate=True), {"trace_every": 1}),
    "cyclical_sgld": (COSINE, samplers.cyclical_sgld(0.05, n_cycles=3), {}),
    "cyclical_sghmc": (COSINE, samplers.cyclical_sghmc(0.05, n_cycles=3), {}),
    "csgld": (COSINE, samplers.csgld(0.02, partition=PARTITION), {"trace_every": 9, "keep_energies": True}),
    "icsgld": (COSINE, samplers.icsgld(0.02, partition=PARTITION, n_replicas=3, freezes=True), {"keep_replicas": True}),
    "icsghmc": (COSINE, samplers.icsghmc(0.02, partition=PARTITION, n_replicas=3, energy_noise=0.2), {}),
    "resgld": (COSINE, samplers.resgld(**PAIR, energy_noise=0.5), {"keep_replicas": True, "trace_every": 11}),
    "r2sgld": (FLOWER, samplers.r2sgld(**PAIR, gradient_noise=0.2), {"keep_replicas": True, "keep_energies": True}),
    "r2sghmc": (FLOWER, samplers.r2sghmc(**PAIR), {"keep_replicas": True}),
    "tact_hmc": (COSINE, samplers.tact_hmc(0.02, energy_noise=0.1), {"trace_every": 5, "keep_energies": True}),
    "svgd": (COSINE, samplers.svgd(0.05, n_replicas=4), START),
    "mala": (COSINE, samplers.mala(0.3), {}),
    "hmc": (FLOWER, samplers.hmc(0.2, n_leapfrogs=3, boundary=boundaries.reject()), {"keep_energies": True}),
    "contour without a partition": (COSINE, samplers.csgld(0.02), {}),
    "mala under contour": (
        COSINE, Sampler("m", (0.1,), (1.0,), dynamics.mala(), tempering=tempering.contour(partition=PARTITION)), {},
    ),
    "metadynamics": (COSINE, samplers.tact_hmc(0.02, bias="metadynamics"), {}),
    "estimated correction": (
        COSINE, samplers.resgld(**THREE, energy_noise=0.5, correction=tempering.estimated_correction(every=10)), {},
    ),
    "adapted correction": (COSINE, samplers.resgld(**PAIR, correction=tempering.adapted_correction(0.4)), {}),
    "one swap per window": (
        COSINE,
        Sampler("w", *THREE.values(), tempering=tempering.replica_exchange(window=20, one_swap_per_window=True)),
        {"keep_replicas": True},
    ),
    "all pairs": (
        COSINE, Sampler("a", *THREE.values(), tempering=tempering.replica_exchange(scheme="all_pairs")),
        {"keep_replicas": True},
    ),
    "bounces run out": (
        FLOWER, samplers.sgld(0.3, boundary=boundaries.reflect(max_bounces=1)), {"keep_energies": True},
    ),
    "penalty": (FLOWER, samplers.sghmc(0.02, boundary=boundaries.penalise(3.0)), {}),
    "decay": (COSINE, samplers.psgld(0.05, schedule=schedules.exponential_decay(0.99, every=3)), {}),
    "own schedule": (
        COSINE,
        samplers.sgld(0.02, schedule=schedules.custom(1.0 / np.arange(1.0, 501.0), keep=np.arange(500) % 5 < 3)), {},
    ),
    "minibatches": (DRAWN, samplers.sgld(0.005), {}),
    "minibatches about an anchor": (ANCHORED, samplers.sgld(0.005), {}),
    "a Python function": (from_callable(bowl, dim=2), samplers.sghmc(0.02), {"trace_every": 3}),
    "accumulators": (
        COSINE, samplers.csgld(0.02, partition=PARTITION), {"accumulators": {"one": Sums(), "two": Sums(2)}},
    ),
    "accumulators alone": (
        FLOWER, samplers.r2sgld(**PAIR), {"accumulators": {"sums": Sums()}, "keep_draws": False, "trace_every": 13},
    ),
    "accumulators of the toolkit": (
        COSINE, samplers.csgld(0.02, partition=PARTITION),
        {
            "accumulators": {
                "moments": accumulators.moments(),
                "histogram": accumulators.histogram(EDGES, EDGES),
                "kl": accumulators.kl(COSINE.truth, EDGES, EDGES, at=[90, 200, 399]),
                "energies": accumulators.energy_histogram(np.linspace(-5.0, 5.0, 9)),
                "best": accumulators.best_point(),
                "means": accumulators.batch_means(8),
            },
            "keep_draws": False,
        },
    ),
    "one chain": (COSINE, samplers.sgld(0.02), {"n_chains": 1}),
    "scaled": (COSINE, replace(samplers.r2sghmc(**PAIR, boundary=boundaries.ignore()), scale=(0.5, 1.5)), {}),
}  # fmt: skip
LAYOUTS = [
    (1, Layout(lanes=3, chunk_steps=37)),
    (2, Layout(lanes=100, chunk_steps=23)),
    (2, Layout(lanes=8, chunk_steps=5)),
]


class StoppedError(Exception):
    """What breaks a run off here."""


def run_case(name, layout=0, **options):
    """The case's run, laid out in one of three ways."""
    problem, sampler, own = CASES[name]
    threads, laid_out = LAYOUTS[layout]
    arguments = {"n_steps": N_STEPS, "burn_in": 60, "thin": 2, "seed": 2**63 + 11, "n_chains": 5, **own, **options}
    return sample(problem, sampler, threads=threads, layout=laid_out, **arguments)


def stopped(monkeypatch, step, call, *given, **named):
    """Make a call whose run breaks off after the first chunk that ends at ``step`` or later, once it has been saved."""
    with monkeypatch.context() as patch:
        stop_after(patch, step)
        with pytest.raises(StoppedError):
            call(*given, checkpoint_every=1e-9, **named)


def stop_after(monkeypatch, step):
    """Have runs break off there."""
    save = Checkpoint.after_chunk

    def after_chunk(self, driver, outputs):
        save(self, driver, outputs)
        if driver.job.checkpoint is not None and driver.done >= step:  # a pilot has none
            raise StoppedError(driver.done)

    monkeypatch.setattr(Checkpoint, "after_chunk", after_chunk)


def assert_same(run, other):
    """All that two runs hold is equal, bit for bit; nan equals nan."""
    for field in ("seed", "n_steps", "total_steps", "sampling_steps", "gradient_evaluations", "interrupted", "sampler"):
        assert getattr(run, field) == getattr(other, field), field
    for field in ("init", "replica_draws", "steps", "energies", "replica_weights", "statistics"):
        same(field, getattr(run, field), getattr(other, field))
    for field, value in run.counts._asdict().items():
        same(field, value, getattr(other.counts, field))
    assert (run.trace is None) == (other.trace is None)
    if run.trace is not None:
        assert run.trace.fields.keys() == other.trace.fields.keys()
        same("trace", [run.trace.steps, *run.trace.fields.values()], [other.trace.steps, *other.trace.fields.values()])
        same("θ", run.trace.theta, other.trace.theta)
    assert run.accumulated.keys() == other.accumulated.keys()
    for name, result in run.accumulated.items():
        same(name, result, other.accumulated[name])


def same(what, value, other):
    """Equal arrays, or equal tuples of them, or None twice."""
    if isinstance(value, tuple | list):
        for a, b in zip(value, other, strict=True):
            same(what, a, b)
    elif value is None:
        assert other is None, what
    else:
        assert value.dtype == other.dtype, what
        np.testing.assert_array_equal(value, other, err_msg=what)
