"""Samplers that theory says are the same: bit for bit where the arithmetic is, to rounding where its order differs."""

import math

import numpy as np
import pytest

from targets import constrained, mixtures, shapes
from tests.support.plain_chain import PROBLEM
from toolkit import Layout, Sampler, boundaries, dynamics, sample, samplers, schedules, tempering
from toolkit.tempering.contour_tempering import Partition

pytestmark = pytest.mark.filterwarnings("ignore::toolkit.ContourWarning")  # runs too short for θ
COSINE = mixtures.cosine25()
NORMAL = mixtures.gaussian_mixture([[0.0]], 1.0)
PARTITION = Partition(-4.0, 0.5, 20)


def run(sampler, problem=COSINE, **options):
    options = {"n_steps": 80, "n_chains": 5, "seed": 12, "init": [0.2, -0.1], "keep_replicas": True, **options}
    return sample(problem, sampler, **options)


def assert_equal_runs(first, second):
    np.testing.assert_array_equal(first.replica_draws, second.replica_draws)


PLAIN = samplers.sgld(2e-3, gradient_noise=0.5)
MOMENTA = {
    "sghmc": samplers.sghmc(2e-3, friction=0.3),
    "sgnht": samplers.sgnht(2e-3),
    "sgnht by coordinate": samplers.sgnht(2e-3, by_coordinate=True),
}
SINGLE = {
    "sgld": PLAIN,
    "psgld": samplers.psgld(0.05, floor=1.0, decay=0.9),
    **MOMENTA,
    "mala": samplers.mala(0.02),
    "hmc": samplers.hmc(0.15, n_leapfrogs=3),
}


def with_parts(sampler, **parts):
    """``sampler`` with other parts; several replicas where temperatures say so."""
    fields = {name: getattr(sampler, name) for name in sampler.__dataclass_fields__}
    return Sampler(**{**fields, **parts})


@pytest.mark.parametrize("name", SINGLE)
def test_independent_replicas_are_separate_runs(name):
    """The first of three is the one-replica run; the other two are others, with random numbers of their own."""
    single = SINGLE[name]
    three = run(with_parts(single, step_sizes=single.step_sizes * 3, temperatures=single.temperatures * 3))
    np.testing.assert_array_equal(three.replica_draws[:, :1], run(single).replica_draws)
    assert (three.replica_draws[:, 1] != three.replica_draws[:, 2]).any(axis=(1, 2)).all()
    assert three.draws.shape == (5, 240, 2)


@pytest.mark.parametrize("name", SINGLE)
def test_zeta_0_is_no_tempering(name):
    flat = run(with_parts(SINGLE[name], tempering=tempering.contour(zeta=0.0, partition=PARTITION)))
    assert_equal_runs(flat, run(SINGLE[name]))
    assert (flat.weights == 1.0).all()
    curved = run(with_parts(SINGLE[name], tempering=tempering.contour(zeta=0.5, partition=PARTITION)))
    assert (curved.draws != flat.draws).any()


EDGES = [boundaries.reject(), boundaries.penalise(5.0), boundaries.reflect()]


@pytest.mark.parametrize(
    ("name", "boundary"), [(n, b) for n in SINGLE for b in (EDGES[:2] if n in ("mala", "hmc") else EDGES)]
)
def test_a_huge_domain_is_no_boundary(name, boundary):
    far = 100.0 * np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
    huge = constrained(COSINE, shapes.polygon_of("huge", far))
    assert_equal_runs(run(with_parts(SINGLE[name], boundary=boundary), huge), run(SINGLE[name]))


@pytest.mark.parametrize("name", SINGLE)
def test_one_cycle_that_never_explores_with_floor_1_is_constant(name):
    one = schedules.cosine_cycles(1, exploration=0.0, floor=1.0)
    assert_equal_runs(run(with_parts(SINGLE[name], schedule=one)), run(SINGLE[name]))
    for other in (schedules.exponential_decay(1.0), schedules.polynomial_decay(0.0), schedules.custom()):
        assert_equal_runs(run(with_parts(SINGLE[name], schedule=other)), run(SINGLE[name]))
    half = run(with_parts(SINGLE[name], schedule=schedules.cosine_cycles(2)))
    assert (half.draws != run(SINGLE[name]).draws).any()


def test_friction_1_is_sgld():
    momentum = run(samplers.sghmc(2e-3, friction=1.0, gradient_noise=0.5))
    np.testing.assert_allclose(momentum.draws, run(PLAIN).draws, rtol=0, atol=1e-11)
    assert np.abs(run(samplers.sghmc(2e-3, friction=0.99, gradient_noise=0.5)).draws - run(PLAIN).draws).max() > 1e-3


def test_no_noise_estimate_is_none():
    plain = run(MOMENTA["sghmc"])
    assert_equal_runs(plain, run(samplers.sghmc(2e-3, friction=0.3, noise_estimate=0.0)))
    assert (plain.draws != run(samplers.sghmc(2e-3, friction=0.3, noise_estimate=1.0)).draws).any()


@pytest.mark.parametrize("name", ["sgld", "psgld", "mala", "hmc"])
def test_continuous_tempering_to_the_same_temperature_is_none(name):
    flat = run(with_parts(SINGLE[name], tempering=tempering.continuous_tempering(top_temperature=1.0)))
    assert_equal_runs(flat, run(SINGLE[name]))
    assert (flat.weights == 1.0).all()


@pytest.mark.parametrize("right", [True, False])
def test_momenta_of_continuous_tempering_to_the_same_temperature(right):
    """Momenta are drawn afresh at the start alone, so bits differ and the law is that of underdamped Langevin."""
    h, friction, chains = 0.5, 0.3, 40_000
    sampler = Sampler(
        "flat", (h,), dynamics=dynamics.underdamped_langevin(friction=friction),
        tempering=tempering.continuous_tempering(top_temperature=1.0, resample_every=10**6),
    )  # fmt: skip
    start = np.random.default_rng(1).standard_normal((chains, 1))
    end = sample(NORMAL, sampler, n_steps=60, thin=60, n_chains=chains, init=start, seed=2)
    law = 1.0 / (1.0 - h / (4.0 - 2.0 * friction)) if right else 1.0
    assert (end.weights == 1.0).all()
    assert (abs(end.draws.var() / law - 1.0) < 4.5 * np.sqrt(2.0 / chains)) == right  # fails with probability 7e-6


def test_mala_with_tiny_steps_is_sgld():
    """Where every move is accepted it is the same move, in another order of arithmetic; at large steps it is not."""
    tiny, large = 1e-5, 0.05
    adjusted = run(samplers.mala(tiny))
    assert (adjusted.acceptance == 1.0).all()
    np.testing.assert_allclose(adjusted.draws, run(samplers.sgld(tiny)).draws, rtol=0, atol=1e-12)
    rough = run(samplers.mala(large))
    assert rough.acceptance.max() < 1.0
    assert np.abs(rough.draws - run(samplers.sgld(large)).draws).max() > 0.1


@pytest.mark.parametrize("h", [1e-3, 0.02, 0.1])
def test_hmc_of_one_leapfrog_is_mala(h):
    adjusted, hamiltonian = run(samplers.mala(h)), run(samplers.hmc(math.sqrt(2.0 * h), n_leapfrogs=1))
    assert_equal_runs(adjusted, hamiltonian)
    np.testing.assert_array_equal(adjusted.acceptance, hamiltonian.acceptance)
    assert (adjusted.draws != run(samplers.hmc(math.sqrt(h), n_leapfrogs=1)).draws).any()


def test_one_particle_is_gradient_descent():
    descent = run(samplers.svgd(0.1, n_replicas=1, preconditioned=False), NORMAL, init=[2.0])
    np.testing.assert_allclose(descent.draws[0, :, 0], 2.0 * 0.9 ** np.arange(1, 81), rtol=1e-13)
    frozen = schedules.custom(temperature=np.zeros(80))  # no noise and so no sampler, but the same path
    np.testing.assert_array_equal(descent.draws, run(samplers.sgld(0.1, schedule=frozen), NORMAL, init=[2.0]).draws)


LADDER = {"step_sizes": (2e-3, 3e-3, 5e-3), "temperatures": (1.0, 2.0, 4.0)}
RULES = {
    "deo": tempering.replica_exchange(swap_every=2, window=2),
    "seo": tempering.replica_exchange(scheme="seo"),
    "adjacent, estimated": tempering.replica_exchange(
        scheme="adjacent", correction=tempering.estimated_correction(every=20, evaluations=3)
    ),
    "all_pairs, adapted": tempering.replica_exchange(
        scheme="all_pairs", correction=tempering.adapted_correction(0.3, start=0.5)
    ),
    "contour": tempering.contour(partition=PARTITION),
    "contour as printed": tempering.contour(partition=PARTITION, field="theta_zeta", interpolated=False),
    "contour after a pilot run": tempering.contour(),
    "abf": tempering.continuous_tempering(step_size=5e-4),
    "metadynamics": tempering.continuous_tempering(step_size=5e-4, bias="metadynamics"),
    "stein": tempering.stein(),
}
WAYS = {
    "langevin": dynamics.langevin(),
    "preconditioned": dynamics.preconditioned_langevin(floor=1.0),
    "underdamped": dynamics.underdamped_langevin(friction=0.3),
    "thermostat": dynamics.nose_hoover(),
    "thermostats": dynamics.nose_hoover(by_coordinate=True),
    "mala": dynamics.mala(),
    "hmc": dynamics.hmc(n_leapfrogs=2),
}
# Each tempering with one dynamics or two, so that all of both are there.
TOGETHER = [
    ("deo", "underdamped"), ("seo", "preconditioned"), ("adjacent, estimated", "thermostat"),
    ("all_pairs, adapted", "langevin"), ("contour", "thermostats"), ("contour as printed", "mala"),
    ("contour after a pilot run", "langevin"), ("abf", "thermostat"), ("metadynamics", "hmc"), ("stein", "descent"),
]  # fmt: skip


def everything(rule, way):
    tempered, exact = RULES[rule], way in ("mala", "hmc")
    exchanges = isinstance(tempered, tempering.ReplicaExchange)
    looks = rule != "stein" and not (exact and rule.startswith("contour"))
    return Sampler(
        f"{rule} × {way}", LADDER["step_sizes"], LADDER["temperatures"] if exchanges else (1.0,) * 3,
        dynamics=WAYS.get(way, dynamics.descent()), tempering=tempered,
        schedule=schedules.cosine_cycles(2, exploration=0.1, floor=0.2),
        boundary=boundaries.reject() if exact else boundaries.reflect(),
        gradient_noise=0.0 if exact else 0.2, energy_noise=0.1 if looks else 0.0,
    )  # fmt: skip


def everything_of(result):
    """All that a run gives back, by name."""
    arrays = {"draws": result.replica_draws, "weights": result.replica_weights, "energies": result.energies}
    arrays |= result.counts._asdict() | result.trace.fields
    arrays["theta over time"] = result.trace.theta
    return {name: array for name, array in arrays.items() if array is not None}


@pytest.mark.parametrize(("rule", "way"), TOGETHER)
def test_bits_do_not_depend_on_threads_layout_or_other_chains(rule, way):
    sampler = everything(rule, way)
    start = np.random.default_rng(3).uniform(-0.6, 0.6, (11, 3, 2))

    def result(chains, layout, threads):
        arguments = {"n_steps": 120, "burn_in": 30, "seed": 2**40 + 1, "trace_every": 7}
        return everything_of(
            sample(
                PROBLEM,
                sampler,
                n_chains=chains,
                init=start[:chains],
                layout=layout,
                threads=threads,
                keep_replicas=True,
                keep_energies=True,
                **arguments,
            )
        )

    reference = result(11, Layout(), 1)
    assert np.ptp(reference["draws"], axis=2).min() > 0
    for chains, layout, threads in (
        (11, Layout(), 2), (11, Layout(lanes=1), 2), (11, Layout(lanes=13, chunk_steps=1), 1),
        (11, Layout(chunk_steps=37), 2), (1, Layout(), 1), (4, Layout(lanes=7, chunk_steps=50), 2),
    ):  # fmt: skip
        if chains < 11 and rule == "contour after a pilot run":
            continue  # the pilot starts where the chains do
        other = result(chains, layout, threads)
        assert other.keys() == reference.keys()
        for name, values in other.items():
            np.testing.assert_array_equal(values, reference[name][:chains], err_msg=name)
