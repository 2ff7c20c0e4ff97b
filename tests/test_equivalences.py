"""Samplers that theory says are the same: bit for bit where the arithmetic is, to rounding where its order differs.

The second half is plain Python: momenta and thermostats, swaps between all pairs, and contour with its θ, written out
step by step from the docstrings with the published random numbers.
"""

import math

import numpy as np
import pytest
from test_engine import CHAIN, PROBLEM, SEED, cosine25, factors, random

from targets import constrained, mixtures, shapes
from toolkit import Layout, Sampler, boundaries, dynamics, sample, samplers, schedules, tempering
from toolkit.contour import Partition, step_decay

pytestmark = pytest.mark.filterwarnings("ignore::toolkit.ContourWarning")  # runs too short for θ

COSINE = mixtures.cosine25()
NORMAL = mixtures.gaussian_mixture([[0.0]], 1.0)
PARTITION = Partition(-4.0, 0.5, 20)
START, REFRESH_LATE = 7, 10**6


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
        tempering=tempering.continuous_tempering(top_temperature=1.0, resample_every=REFRESH_LATE),
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


def normals(replica, step, purpose):
    return random(replica, step, purpose)[1]


def bounce(place, momentum):
    """Reflections of a place and its momentum in the square |x|, |y| ≤ 0.7, across its nearest points; their number."""
    count = 0
    while max(abs(v) for v in place) > 0.7:
        foot = [min(max(v, -0.7), 0.7) for v in place]
        normal = [v - f for v, f in zip(place, foot, strict=True)]
        along = sum(p * n for p, n in zip(momentum, normal, strict=True)) / sum(n * n for n in normal)
        momentum = [p - 2.0 * along * n for p, n in zip(momentum, normal, strict=True)]
        place = [2.0 * f - v for f, v in zip(foot, place, strict=True)]
        count += 1
    return place, momentum, count


def underdamped_in_plain_python(sampler, n_steps, burn_in):
    """(draws (step, replica, dim), swaps (pair), reflections (replica)) of underdamped Langevin with all pairs."""
    friction, variance = sampler.dynamics.parameters
    replicas, noise = len(sampler.temperatures), sampler.energy_noise
    table = factors(np.arange(n_steps), n_steps)
    places = [[0.0, 0.0] for _ in range(replicas)]
    swaps, reflections, path, momenta = [0] * (replicas * (replicas - 1) // 2), [0] * replicas, [], []
    for step in range(n_steps):
        temperatures = [t * table.temperature[step] for t in sampler.temperatures]
        if step == 0:
            momenta = [[math.sqrt(t) * z for z in normals(r, 0, START)] for r, t in enumerate(temperatures)]
        energy, gradient = (list(values) for values in zip(*(cosine25(*x) for x in places), strict=True))
        for r in range(replicas):
            shaken = zip(gradient[r], normals(r, step, 2), strict=True)
            gradient[r] = [g + sampler.gradient_noise * z for g, z in shaken]
        pair = 0
        for a in range(replicas - 1):
            for b in range(a + 1, replicas):
                if step > 0:
                    slope = 1.0 / temperatures[a] - 1.0 / temperatures[b]
                    first, second = normals(pair, step, 3)
                    difference = energy[a] - energy[b] + noise * (first - second)
                    if math.exp(slope * (difference - slope * noise**2)) >= random(pair, step, 4)[0][0]:
                        heat = math.sqrt(temperatures[b] / temperatures[a])
                        half = [0.5 * math.sqrt(size * table.step_size[step]) for size in sampler.step_sizes]
                        from_a, from_b = (list(zip(momenta[r], gradient[r], strict=True)) for r in (a, b))
                        momenta[b] = [(p - half[a] * g) * heat + half[b] * g for p, g in from_a]
                        momenta[a] = [(p - half[b] * g) / heat + half[a] * g for p, g in from_b]
                        for values in (places, gradient, energy):
                            values[a], values[b] = values[b], values[a]
                        swaps[pair] += step >= burn_in
                pair += 1
        for r in range(replicas):
            h = sampler.step_sizes[r] * table.step_size[step]
            kick = math.sqrt(2.0 * friction * temperatures[r] - h * variance)
            terms = zip(momenta[r], gradient[r], normals(r, step, 1), strict=True)
            momenta[r] = [(1.0 - friction) * p - math.sqrt(h) * g + kick * z for p, g, z in terms]
            moved = [x + math.sqrt(h) * p for x, p in zip(places[r], momenta[r], strict=True)]
            places[r], momenta[r], count = bounce(moved, momenta[r])
            reflections[r] += count
        path.append([list(x) for x in places])
    return np.array(path), swaps, reflections


def test_underdamped_all_pairs_reflected_step_by_step():
    sampler = Sampler(
        "momenta",
        step_sizes=(2e-3, 4e-3, 6e-3),
        temperatures=(1.0, 1.5, 2.5),
        dynamics=dynamics.underdamped_langevin(friction=0.3, noise_estimate=2.0),
        schedule=schedules.Schedule("mine", factors),
        tempering=tempering.replica_exchange(scheme="all_pairs"),
        boundary=boundaries.reflect(),
        gradient_noise=0.3,
        energy_noise=0.4,
    )
    result = sample(PROBLEM, sampler, n_steps=60, burn_in=11, n_chains=CHAIN + 1, seed=SEED, keep_replicas=True)
    path, swaps, reflections = underdamped_in_plain_python(sampler, 60, 11)
    np.testing.assert_allclose(result.replica_draws[CHAIN].transpose(1, 0, 2), path[result.steps], rtol=0, atol=1e-9)
    assert result.swaps[CHAIN].tolist() == swaps
    assert min(swaps) > 0
    assert result.reflections[CHAIN].tolist() == reflections
    assert max(reflections) > 5


class Flattened:
    """θ of one chain, all of it changed at each step, as contour's docstring has it."""

    def __init__(self, contour):
        self.partition, self.zeta, self.decay = contour.partition, contour.zeta, contour.decay
        partition = contour.partition
        self.theta, self.visits = [0.0] * partition.n_bins, [0] * partition.n_bins

    def nearest(self, j):
        seen = [i for i, n in enumerate(self.visits) if n > 0]
        return min(seen, key=lambda i: (abs(i - j), i)) if seen else None

    def look(self, energy, temperature):
        """(bin, whether inside, θ of the bin, log Ψ, multiplier)."""
        place = (energy - self.partition.u_min) / self.partition.width
        j, last = int(min(max(math.floor(place), 0), self.partition.n_bins - 1)), self.partition.n_bins
        known = self.nearest(j)
        top = 1.0 if known is None else self.theta[known]
        slopes = self.visits[j] > 0 and j > 0 and self.visits[j - 1] > 0 and place < last
        rise = math.log(top / self.theta[j - 1]) if slopes else 0.0
        log_psi = math.log(top) - (j + 1.0 - place) * rise
        return j, 0.0 <= place < last, top, log_psi, 1.0 + self.zeta * temperature * rise / self.partition.width

    def learn(self, seen, step):
        """θ ← θ + ω/P Σ c (e_J − θ), from what ``look`` saw of each replica."""
        omega = self.decay.gain / ((step + 1) ** self.decay.exponent + self.decay.offset)
        omega = min(self.decay.cap, omega) / len(seen)
        shares = [
            omega * math.exp(self.zeta * log_psi) * top ** (1.0 - self.zeta) if inside else 0.0
            for _, inside, top, log_psi, _ in seen
        ]
        for j in (j for j, inside, *_ in seen if inside):
            if self.visits[j] == 0:
                known = self.nearest(j)
                self.theta[j] = 1.0 if known is None else self.theta[known]
                self.theta = [t / sum(self.theta) for t in self.theta]
            self.visits[j] += 1
        self.theta = [(1.0 - sum(shares)) * t for t in self.theta]
        for (j, *_), share in zip(seen, shares, strict=True):
            self.theta[j] += share


def thermostat_step(z, momentum, h, temperature, inertia):
    """z ← z + h ((1 − z/2) |p|²/D − T)/(2γ)."""
    return z + 0.5 * h * ((1.0 - 0.5 * z) * sum(p * p for p in momentum) / len(momentum) - temperature) / inertia


def contour_in_plain_python(sampler, n_steps):
    """(draws, weights, thermostats, each by step and replica; the chain's ``Flattened``)."""
    friction, inertia = sampler.dynamics.parameters
    replicas, h, temperature = sampler.n_replicas, sampler.step_sizes[0], sampler.temperatures[0]
    flat = Flattened(sampler.tempering)
    places, thermostats = [[0.0, 0.0] for _ in range(replicas)], [friction] * replicas
    momenta = [[math.sqrt(temperature) * z for z in normals(r, 0, START)] for r in range(replicas)]
    path, weights, heats = [], [], []
    for step in range(n_steps + 1):
        energy, gradient = zip(*(cosine25(*x) for x in places), strict=True)
        noisy = [u + sampler.energy_noise * normals(r, step, 3)[0] for r, u in enumerate(energy)]
        seen = [flat.look(u, temperature) for u in noisy]
        if step > 0:
            weights.append([math.exp(flat.zeta * s[3]) for s in seen])
        if step == n_steps:
            break
        flat.learn(seen, step)
        for r in range(replicas):
            shaken = zip(gradient[r], normals(r, step, 2), strict=True)
            slope = [seen[r][4] * (g + sampler.gradient_noise * z) for g, z in shaken]
            thermostats[r] = thermostat_step(thermostats[r], momenta[r], h, temperature, inertia)
            kick = math.sqrt(2.0 * friction * temperature)
            terms = zip(momenta[r], slope, normals(r, step, 1), strict=True)
            momenta[r] = [(1.0 - thermostats[r]) * p - math.sqrt(h) * g + kick * z for p, g, z in terms]
            places[r] = [x + math.sqrt(h) * p for x, p in zip(places[r], momenta[r], strict=True)]
            thermostats[r] = thermostat_step(thermostats[r], momenta[r], h, temperature, inertia)
        path.append([list(x) for x in places])
        heats.append(list(thermostats))
    return np.array(path), np.array(weights), np.array(heats), flat


def test_thermostats_under_interacting_contour_step_by_step():
    sampler = Sampler(
        "thermostats",
        step_sizes=(4e-3,) * 3,
        temperatures=(1.5,) * 3,
        dynamics=dynamics.nose_hoover(friction=0.1),
        tempering=tempering.contour(
            zeta=0.6, partition=Partition(-3.5, 0.4, 16), decay=step_decay(gain=5.0, exponent=0.7, offset=20.0, cap=0.2)
        ),
        gradient_noise=0.3,
        energy_noise=0.2,
    )
    n_steps = 60
    result = sample(COSINE, sampler, n_steps=n_steps, n_chains=CHAIN + 1, seed=SEED, init=[0.0, 0.0], trace_every=1)
    path, weights, heats, flat = contour_in_plain_python(sampler, n_steps)
    np.testing.assert_allclose(result.replica_draws[CHAIN].transpose(1, 0, 2), path, rtol=0, atol=1e-9)
    np.testing.assert_allclose(result.replica_weights[CHAIN].T, weights, rtol=1e-9)
    np.testing.assert_allclose(result.trace.fields["thermostat"][CHAIN].T, heats, rtol=0, atol=1e-9)
    np.testing.assert_allclose(result.theta[CHAIN], flat.theta, rtol=0, atol=1e-12)
    assert result.counts.visits[CHAIN].tolist() == flat.visits
    assert sum(n > 3 for n in flat.visits) > 5
    assert 0 < result.counts.outside[CHAIN, :2].sum() < 3 * n_steps
    multipliers = result.trace.fields["multiplier"][CHAIN]
    assert np.ptp(multipliers) > 0.5
