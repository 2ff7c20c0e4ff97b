"""The tempering variable alone: against the paper's algorithm in plain Python, and its laws on a harmonic energy."""

import math

import numpy as np
import pytest
from numba import njit, types

from toolkit._compiler import signatures
from toolkit._compiler.decorators import compile_part, kept
from toolkit._engine.state import ContinuousState
from toolkit.tempering import continuous
from toolkit.tempering.continuous import continuous_tempering

LANES = 16
SIGMAS = 4.5  # a right law fails with probability 7e-6 per comparison


def step_once(rows, bias, visits, kicks, noisy_energy, temperature, step_size, scale, normals, parameters, step):
    continuous.find_kicks(kicks, step_size, temperature, parameters)
    state = ContinuousState(rows, bias, visits)
    continuous.temper_continuously(state, kicks, noisy_energy, temperature, scale, normals, parameters, step)


def compiled_step():
    matrix, floats = signatures.MATRIX, signatures.FLOATS
    return compile_part(step_once, types.void(*(matrix,) * 4, *(floats,) * 4, matrix, floats, types.int64))


class Paper:
    """Algorithm 1 for one replica, in the paper's variables r = √η p, with the readings the docstring names."""

    def __init__(self, tempering, r):
        self.tempering, self.r, self.xi, self.z = tempering, r, 0.0, tempering.friction
        self.table, self.visits, self.deposits = [0.0] * tempering.n_bins, [0] * tempering.n_bins, 0
        self.bounces, self.scale = 0, 1.0

    def slope(self):
        t = self.tempering
        excess, a = max(abs(self.xi) - t.plateau, 0.0), (t.top_temperature - 1) / (1 - t.plateau) ** 3
        self.scale = 1 / (1 + a * excess**3)
        return -math.copysign(3 * a * excess**2 / (1 + a * excess**3) ** 2, self.xi)

    def potential(self, position):
        """The table's heights, linear between the centres of bins, flat beyond."""
        n = self.tempering.n_bins
        return float(np.interp(abs(position), (np.arange(n) + 0.5) / n, self.table))

    def step(self, k, energy, temperature, eta, noise, fresh):
        t, slope = self.tempering, self.slope()
        if temperature == 0.0 or not math.isfinite(energy):
            return
        eta = t.step_size or eta
        if k % t.resample_every == 0 and slope == 0.0:
            self.r = math.sqrt(eta * temperature) * fresh
        if t.thermostat:
            share = 1.0 - 0.5 * slope**2 * self.z  # not in print: see Nosé–Hoover dynamics
            self.z += slope**2 * (share * self.r**2 - eta * temperature) / t.inertia
        side, j = math.copysign(1.0, self.xi), min(int(abs(self.xi) * t.n_bins), t.n_bins - 1)
        push = 0.0
        if t.bias == "abf":
            push = side * self.table[j]
        elif t.bias == "metadynamics":
            eps = 1e-7
            push = -(self.potential(self.xi + eps) - self.potential(self.xi - eps)) / (2 * eps)
        injected = math.sqrt(2 * t.friction * eta * temperature) * noise
        self.r += -slope * (eta * energy - injected) - slope**2 * self.z * self.r + eta * push
        self.visits[j] += 1
        if t.bias == "abf":
            k_bin = self.visits[j]
            self.table[j] = (1 - 1 / k_bin) * self.table[j] + side * slope * energy / k_bin
        elif t.bias == "metadynamics":
            self.deposits += 1
            height = temperature * min(t.height, t.n_bins / self.deposits)
            for i in range(t.n_bins):  # a centre gets the height times the value there of its own hat function
                hat = np.zeros(t.n_bins)
                hat[i] = 1.0
                centres = (np.arange(t.n_bins) + 0.5) / t.n_bins
                self.table[i] += height * float(np.interp(abs(self.xi), centres, hat))
        self.xi += self.r
        if abs(self.xi) > 1.0:
            self.xi, self.r, self.bounces = self.xi - self.r, -self.r, self.bounces + 1


@pytest.mark.cases(2)
@pytest.mark.parametrize("bias", continuous.BIASES)
@pytest.mark.parametrize(("thermostat", "own_step_size"), [(True, None), (False, 0.01)])
def test_the_kernel_is_the_papers_algorithm(bias, thermostat, own_step_size):
    tempering = continuous_tempering(
        bias=bias, thermostat=thermostat, step_size=own_step_size, n_bins=10, resample_every=7, height=0.05,
        top_temperature=4.0, inertia=2.0,
    )  # fmt: skip
    step, parameters, rng = compiled_step(), tempering.parameters(), np.random.default_rng(1)
    base_temperature = rng.uniform(0.3, 3.0, LANES)
    step_size = rng.uniform(0.005, 0.02, LANES)
    eta = step_size if own_step_size is None else np.full(LANES, own_step_size)
    normals = rng.standard_normal(LANES)
    rows, table, visits = tempering.start(base_temperature, normals)
    scale = np.zeros(LANES)
    papers = [Paper(tempering, math.sqrt(eta[i] * base_temperature[i]) * normals[i]) for i in range(LANES)]
    signs = set()
    for k in range(300):
        temperature = base_temperature * (k % 60 >= 10)
        energy = rng.normal(3.0, 2.0, LANES)
        energy[rng.random(LANES) < 0.02] = np.nan
        normals = rng.standard_normal((2, LANES))
        noise, fresh = normals
        before, places = rows.copy(), rows[continuous.XI].copy()
        step(
            rows, table, visits, np.zeros((2, LANES)), energy, temperature, step_size, scale, normals, parameters,
            k,
        )  # fmt: skip
        for i, paper in enumerate(papers):
            paper.step(k, energy[i], temperature[i], eta[i], noise[i], fresh[i])
        if k % 60 < 10:
            for row in (continuous.XI, continuous.MOMENTUM, continuous.THERMOSTAT):
                np.testing.assert_array_equal(rows[row], before[row])
        np.testing.assert_array_equal(rows[continuous.COUNTED], np.abs(rows[continuous.XI]) <= tempering.plateau)
        np.testing.assert_allclose(scale, tempering.coupling(places)[0], rtol=1e-14)
        if k % 7 == 0:
            renewed = (np.abs(places) <= tempering.plateau) & (temperature > 0.0) & np.isfinite(energy)
            np.testing.assert_array_equal(rows[continuous.RENEWED], renewed)
        signs |= set(np.sign(rows[continuous.XI]))
        near = {"rtol": 1e-6, "atol": 1e-8} if bias == "metadynamics" else {"rtol": 1e-10, "atol": 1e-11}
        np.testing.assert_allclose(rows[continuous.XI], [p.xi for p in papers], **near)
        np.testing.assert_allclose(rows[continuous.MOMENTUM] * np.sqrt(eta), [p.r for p in papers], **near)
        np.testing.assert_allclose(rows[continuous.THERMOSTAT], [p.z for p in papers], **near)
        for i, paper in enumerate(papers):  # or rounding errors would grow, as the dynamics is chaotic
            paper.xi, paper.z = rows[continuous.XI, i], rows[continuous.THERMOSTAT, i]
            paper.r = rows[continuous.MOMENTUM, i] * math.sqrt(eta[i])
    np.testing.assert_array_equal(visits, np.transpose([p.visits for p in papers]))
    np.testing.assert_allclose(table, np.transpose([p.table for p in papers]), **near)
    assert sum(p.bounces for p in papers) > 20
    assert signs >= {-1.0, 1.0}
    assert (table.any(), rows[continuous.DEPOSITS].any()) == (bias != "none", bias == "metadynamics")


@pytest.mark.parametrize(("top", "plateau"), [(6.0, 0.1), (1.5, 0.5), (15.0, 0.2), (1.0, 0.3)])
def test_the_coupling_and_its_slope(top, plateau):
    """λ' by central differences, λ at its ends, and the largest |λ'|; the slope of 1/λ would not pass."""
    tempering = continuous_tempering(top_temperature=top, plateau=plateau, friction=0.01)
    xi = np.linspace(-1.0, 1.0, 4001)
    rows, table, visits = tempering.start(np.ones(xi.size), np.zeros(xi.size))
    rows[continuous.XI] = xi
    scale, one = np.zeros(xi.size), np.ones(xi.size)
    compiled_step()(
        rows,
        table,
        visits,
        np.zeros((2, xi.size)),
        one,
        one,
        one,
        scale,
        np.ones((2, xi.size)),
        tempering.parameters(),
        1,
    )
    slope = rows[continuous.SLOPE]
    eps = 1e-6
    difference = (tempering.coupling(xi + eps)[0] - tempering.coupling(xi - eps)[0]) / (2 * eps)
    np.testing.assert_allclose(slope, difference, atol=1e-8)
    np.testing.assert_allclose(slope, tempering.coupling(xi)[1], rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(scale, tempering.coupling(xi)[0], rtol=1e-14)
    assert scale[0] == pytest.approx(1 / top)
    assert np.abs(slope).max() == pytest.approx(tempering.steepest, rel=1e-5, abs=1e-300)
    np.testing.assert_array_equal(slope[np.abs(xi) <= plateau], 0.0)
    if top > 1.0:
        assert np.abs(slope / scale**2 - difference).max() > 0.1


@kept
@njit(error_model="numpy")
def drive(rows, bias, visits, parameters, temperature, h, energy_noise, dim, steps, burn_in, seed, counts, sums):
    """Langevin particles in the energy |x|²/2 of ``dim`` dimensions, one per lane, under continuous tempering.

    counts (lane, 10): visits of tenths of |ξ|. sums (lane, 4): z, z², |x|² where the weight is 1, and how often.
    """
    np.random.seed(seed)
    lanes = temperature.size
    x, p = np.zeros((dim, lanes)), np.zeros((dim, lanes))
    energy, scale, normals = np.zeros(lanes), np.zeros(lanes), np.zeros((2, lanes))
    kicks = np.zeros((2, lanes))
    continuous.find_kicks(kicks, np.full(lanes, h), temperature, parameters)
    for k in range(steps):
        for lane in range(lanes):
            energy[lane] = energy_noise * np.random.normal()
            normals[0, lane] = np.random.normal()
            normals[1, lane] = np.random.normal()
            for d in range(dim):
                energy[lane] += 0.5 * x[d, lane] ** 2
        state = ContinuousState(rows, bias, visits)
        continuous.temper_continuously(state, kicks, energy, temperature, scale, normals, parameters, k)
        for lane in range(lanes):
            squared = 0.0
            for d in range(dim):
                kick = math.sqrt(2.0 * 0.05 * temperature[lane]) * np.random.normal()
                p[d, lane] += kick - 0.05 * p[d, lane] - math.sqrt(h) * scale[lane] * x[d, lane]
                x[d, lane] += math.sqrt(h) * p[d, lane]
                squared += x[d, lane] ** 2
            if k >= burn_in:
                counts[lane, min(int(10 * abs(rows[0, lane])), 9)] += 1
                z, weight = rows[2, lane], rows[4, lane]
                sums[lane, 0] += z
                sums[lane, 1] += z * z
                sums[lane, 2] += weight * squared
                sums[lane, 3] += weight


def harmonic(temperature, energy_noise, seed, h, **options):
    """Shares of tenths of |ξ| (lane, 10), means of z and z² with sums of w |x|² and w (lane, 4), and the table."""
    options = {"friction": 0.02, "inertia": 4.0, **options}
    tempering = continuous_tempering(**options)
    temperatures, steps, burn_in = np.full(64, temperature), 60_000, 20_000
    rows, table, visits = tempering.start(temperatures, np.random.default_rng(seed).standard_normal(64))
    counts, sums = np.zeros((64, 10)), np.zeros((64, 4))
    parameters = tempering.parameters()
    drive(rows, table, visits, parameters, temperatures, h, energy_noise, 4, steps, burn_in, seed, counts, sums)
    assert np.isfinite(rows).all()
    sums[:, :2] /= steps - burn_in
    return counts / (steps - burn_in), sums, table


def errors(values, law, slack=0.0):
    """How far the mean over lanes is from the law, less a relative ``slack`` for the step size, in standard errors."""
    beyond = np.maximum(np.abs(values.mean(axis=0) - law) - slack * np.abs(law), 0.0)
    return beyond / (values.std(axis=0, ddof=1) / math.sqrt(len(values)))


@pytest.mark.cases(1)
@pytest.mark.slow_cases("0.5")
@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_the_biasing_force_flattens_and_the_thermostat_has_its_law(temperature):
    """In 4 dimensions ⟨U⟩ = 2 T / λ, so the exact mean force is 2 T λ' / λ; energies have noise of variance 9."""
    h, noise, friction, inertia = 0.002, 3.0, 0.02, 4.0
    shares, sums, table = harmonic(temperature, noise, 3, h)
    assert errors(shares, 0.1, slack=0.02).max() < SIGMAS
    # Without a bias ξ is distributed as λ(ξ)⁻², which the same check rejects, and finds.
    free, _, _ = harmonic(temperature, 0.0, 4, h, bias="none")
    assert errors(free, 0.1, slack=0.02).min() > SIGMAS
    tempering = continuous_tempering()
    fine = (np.arange(2000) + 0.5) / 2000
    scale, slope = tempering.coupling(fine)
    density = (scale**-2 / (scale**-2).sum()).reshape(10, -1).sum(axis=1)
    assert errors(free, density, slack=0.05).max() < SIGMAS

    law = (2.0 * temperature * slope / scale).reshape(20, -1).mean(axis=1)[2:]
    assert errors(table[2:].T, law, slack=0.05).max() < SIGMAS
    assert errors(table[2:].T, 0.5 * law, slack=0.05).min() > SIGMAS
    np.testing.assert_array_equal(table[:2], 0.0)  # on the plateau there is no force, but ±0

    z, square = sums[:, 0], sums[:, 1]
    added, variance = 0.5 * h * noise**2 / temperature, h * temperature / inertia
    slack = 0.1 * added / (friction + added)
    assert errors(z, friction + added - variance, slack) < SIGMAS  # a kick's z has met the p² it is to damp
    spread = square - 2.0 * z * z.mean() + z.mean() ** 2
    assert errors(spread, variance, slack=0.05) < SIGMAS
    for wrong_mean in (friction, friction + 2.0 * added):  # the noise unseen, and its whole variance
        assert errors(z, wrong_mean, slack) > SIGMAS
    for wrong_variance in (h * temperature, h / inertia):  # without the inertia, and without the temperature
        assert errors(spread, wrong_variance, slack=0.05) > SIGMAS

    squared, weight = sums[:, 2], sums[:, 3]
    excess = squared - 4.0 * temperature * weight
    assert errors(excess / weight.mean(), 0.0) < SIGMAS
    assert errors((squared - 1.1 * 4.0 * temperature * weight) / weight.mean(), 0.0) > SIGMAS


def test_metadynamics_finds_the_free_energy():
    """Its potential becomes −2 T log λ up to a constant; the force of the released code, its height, never does."""
    shares, _, table = harmonic(1.0, 3.0, 5, 0.004, bias="metadynamics", height=5e-3)
    scale, _ = continuous_tempering().coupling((np.arange(20) + 0.5) / 20)
    law = -2.0 * np.log(scale)
    found = table - table.mean(axis=0)
    assert np.abs(found.mean(axis=1) - (law - law.mean())).max() < 0.2  # of a range of 3.4
    assert np.abs(found.mean(axis=1) + (law - law.mean())).max() > 1.0
    assert np.abs(10.0 * shares.mean(axis=0) - 1.0).max() < 0.1


def test_no_tempering_at_a_top_temperature_of_1():
    tempering = continuous_tempering(top_temperature=1.0, resample_every=1)
    ones = np.ones(8)
    rows, table, visits = tempering.start(ones, ones)
    scale = np.zeros(8)
    for k in range(100):
        normals = np.stack([ones, (-1.0) ** k * ones])
        arguments = (ones, ones, 0.01 * ones, scale, normals, tempering.parameters(), k)
        compiled_step()(rows, table, visits, np.zeros((2, 8)), *arguments)
        assert (scale == 1.0).all()
        assert (rows[[continuous.COUNTED, continuous.RENEWED]] == 1.0).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"top_temperature": 0.5}, "top_temperature must be finite and ≥ 1, got 0.5"),
        ({"plateau": 1.0}, "plateau must be finite and > 0 and < 1, got 1.0"),
        ({"step_size": 0.0}, "step_size must be finite and > 0, got 0.0"),
        ({"friction": -1.0}, "friction must be finite and ≥ 0, got -1.0"),
        ({"friction": 0.4}, r"friction must be < 0.39.*max λ'².*got 0.4"),
        ({"inertia": 0.0}, "inertia must be finite and > 0, got 0.0"),
        ({"bias": "abs"}, "bias must be one of 'none', 'abf', 'metadynamics', got 'abs'"),
        ({"n_bins": 1}, "n_bins must be ≥ 2"),
        ({"height": 0.0}, "height must be finite and > 0, got 0.0"),
        ({"thermostat": 1}, "thermostat must be True or False, got 1"),
        ({"resample_every": 0}, "resample_every must be ≥ 1, got 0"),
    ],
)
def test_bad_numbers_are_named(arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        continuous_tempering(**arguments)
