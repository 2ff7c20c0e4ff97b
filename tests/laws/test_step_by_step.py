"""Samplers in plain Python, step by step: momenta and thermostats, swaps between all pairs, contour with its θ.

Written out from the docstrings, with the published random numbers.
"""

import math

import numpy as np
import pytest

from targets import mixtures
from tests.support.plain_chain import CHAIN, PROBLEM, SEED, cosine25, factors, random
from toolkit import Sampler, boundaries, dynamics, sample, schedules, tempering
from toolkit.tempering.contour_tempering import Partition, step_decay

pytestmark = pytest.mark.filterwarnings("ignore::toolkit.ContourWarning")  # runs too short for θ

START = 7  # the purpose of the first momenta


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
    result = sample(
        PROBLEM, sampler, n_steps=60, burn_in=11, n_chains=CHAIN + 1, seed=SEED, keep_replicas=True, init=[0.0, 0.0]
    )
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
    problem, start = mixtures.cosine25(), [0.0, 0.0]
    result = sample(problem, sampler, n_steps=n_steps, n_chains=CHAIN + 1, seed=SEED, init=start, trace_every=1)
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
