"""Contour's laws: reweighted moments against the exact law of its steps, θ against quadrature, replicas, freezing."""

import math
import re
import warnings
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from numba import types
from numpy.polynomial.legendre import leggauss
from scipy.special import erf

from targets import mixtures
from toolkit import ContourWarning, Sampler, sample, samplers, tempering
from toolkit._compiler import compile_part
from toolkit.tempering.contour_tempering import FIELDS, Partition, step_decay

NORMAL = mixtures.gaussian_mixture([[0.0]], 1.0)
PLANE = mixtures.gaussian_mixture([[0.0, 0.0]], 1.0)
LOWEST = 0.5 * math.log(2.0 * math.pi)  # energy of N(0, 1) at its mode
SIGMAS = 4.5  # a right law fails with probability 7e-6 per comparison


def error(values, law):
    """Deviation of the mean over independent chains, in standard errors."""
    return (values.mean(axis=0) - law) / (values.std(axis=0, ddof=1) / math.sqrt(len(values)))


def weighted_mean(run, values):
    """Each chain's own weighted mean of ``values`` (chain, draw)."""
    return (run.weights * values).sum(axis=1) / run.weights.sum(axis=1)


def bin_masses(cells, temperature=1.0):
    """Probabilities of the bins under N(0, T), given that the energy is inside the partition."""
    mass = np.diff(erf(np.sqrt(np.maximum(cells.edges - LOWEST, 0.0) / temperature)))
    return mass / mass.sum()


def estimated_masses(run):
    """The bins' probabilities that θ (chain, bin) stands for."""
    rule = run.sampler.tempering
    power = run.theta ** (rule.zeta if rule.field == "theta" else 1.0)
    return power / power.sum(axis=1, keepdims=True)


def exact_second_moment(h, cells, zeta, interpolated=True):
    """Reweighted E x² in the stationary law of the Euler–Maruyama step with θ at the bins' probabilities.

    The step's density is integrated by Gauss and Legendre between the places where the multiplier jumps, to 1e-8.
    """
    at = np.sqrt(2.0 * np.maximum(cells.edges - LOWEST, 0.0))
    ends = np.unique(np.concatenate([[0.0, 7.5], at[at < 7.5]]))
    pieces = [(a, b, leggauss(6 + int(5.0 * (b - a) / math.sqrt(2.0 * h)))) for a, b in pairwise(ends)]
    x = np.concatenate([0.5 * (a + b) + 0.5 * (b - a) * nodes for a, b, (nodes, _) in pieces])
    measure = np.concatenate([0.5 * (b - a) * weights for a, b, (_, weights) in pieces])
    place = (0.5 * x * x + LOWEST - cells.u_min) / cells.width
    j = np.clip(np.floor(place), 0, cells.n_bins - 1).astype(int)
    theta = bin_masses(cells)
    top, below = np.log(theta[j]), theta[np.maximum(j - 1, 0)]
    slopes = (j > 0) & (place < cells.n_bins) & (below > 0.0)
    rise = top - np.log(np.where(slopes, below, theta[j]))
    weight = np.exp(zeta * (top - rise * (j + 1 - place) if interpolated else top))
    mean = x * (1.0 - h * (1.0 + zeta * rise / cells.width))
    both_signs = sum(np.exp(-((x - sign * mean[:, None]) ** 2) / (4.0 * h)) for sign in (1.0, -1.0))
    system = (measure[:, None] * both_signs / math.sqrt(4.0 * math.pi * h)).T - np.eye(x.size)
    system[-1] = measure
    density = measure * np.linalg.solve(system, np.eye(x.size)[-1])
    return (density * weight * x * x).sum() / (density * weight).sum()


def normal_run(rule, h=0.02, n_steps=40_000, n_chains=128, seed=1, temperature=1.0, **options):
    sampler = Sampler("contour", (h,), (temperature,), tempering=rule, **options)
    start = np.random.default_rng(seed).standard_normal((n_chains, 1)) * math.sqrt(temperature)
    return sample(
        NORMAL, sampler, n_steps=n_steps, n_chains=n_chains, burn_in=n_steps // 4, thin=5, seed=seed, init=start
    )


def test_the_exact_law_is_exact_without_tempering():
    law = exact_second_moment(0.02, Partition(LOWEST, 0.5, 24), 0.0)
    assert law == pytest.approx(1.0 / (1.0 - 0.01), abs=1e-8)


@pytest.mark.cases(8)
@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("zeta", [0.5, 0.75, 1.0])
@pytest.mark.parametrize(("width", "below"), [(0.5, 0.0), (0.5, 3.6), (1.0, 0.0), (1.0, 3.6)])
def test_reweighted_moments_of_the_normal(width, below, zeta, field):
    """Within 3 % of 1 by the exact law of the discrete steps; the run agrees with it and not with the printed one."""
    cells = Partition(LOWEST - below * width, width, round(12.0 / width + below))
    run = normal_run(tempering.contour(zeta=zeta, partition=cells, field=field))
    values = weighted_mean(run, run.draws[:, :, 0] ** 2)
    law, printed = (exact_second_moment(0.02, cells, zeta, interpolated) for interpolated in (True, False))
    assert 0.97 < law < 1.03
    assert abs(error(values, law)) < SIGMAS
    assert abs(error(values, printed)) > SIGMAS


@pytest.mark.parametrize(("width", "stated"), [(0.25, 0.952), (0.5, 0.874), (1.0, 0.807)])
def test_printed_weights_are_biased_by_the_bins(width, stated):
    cells = Partition(LOWEST, width, round(12.0 / width))
    run = normal_run(tempering.contour(zeta=0.75, partition=cells, field="theta_zeta", interpolated=False))
    values = weighted_mean(run, run.draws[:, :, 0] ** 2)
    law = exact_second_moment(0.02, cells, 0.75, interpolated=False)
    assert law == pytest.approx(stated, abs=1e-3)
    assert abs(error(values, law)) < SIGMAS
    assert abs(error(values, exact_second_moment(0.02, cells, 0.75))) > SIGMAS


def commonly_coded(u_min, width, n_bins, zeta, h, steps, seed, moments):
    """θ uniform at first, never-visited bins used like any other, weights θ(J)^ζ; E x² of each chain."""
    np.random.seed(seed)
    theta = np.empty(n_bins)
    for chain in range(moments.size):
        theta[:] = 1.0 / n_bins
        x, total, second = np.random.normal(), 0.0, 0.0
        for k in range(steps):
            j = min(max(int((0.5 * x * x + LOWEST - u_min) / width), 0), n_bins - 1)
            slope = (math.log(theta[j]) - math.log(theta[j - 1])) / width if j > 0 else 0.0
            weight = theta[j] ** zeta
            omega = weight / (k**0.6 + 100.0)
            theta *= 1.0 - omega
            theta[j] += omega
            if k >= steps // 4:
                total += weight
                second += weight * x * x
            x += -h * (1.0 + zeta * slope) * x + math.sqrt(2.0 * h) * np.random.normal()
        moments[chain] = second / total


REAL, WHOLE = types.float64, types.int64
COMMON = types.void(REAL, REAL, WHOLE, REAL, REAL, WHOLE, WHOLE, types.float64[::1])


@pytest.mark.parametrize("width", [0.5, 1.0])
def test_the_common_code_is_wrong(width):
    """Where the partition begins 1 below the lowest energy the variance of N(0, 1) comes out as 0.02; ours does not."""
    cells, moments = Partition(LOWEST - 1.0, width, round(13.0 / width)), np.zeros(6)
    common = compile_part(commonly_coded, COMMON, allocates=True)
    common(cells.u_min, width, cells.n_bins, 0.75, 0.01, 50_000, 1, moments)
    assert 0.01 < moments.min() < moments.max() < 0.12
    run = normal_run(tempering.contour(zeta=0.75, partition=cells, field="theta_zeta"), h=0.01)
    assert abs(error(weighted_mean(run, run.draws[:, :, 0] ** 2), exact_second_moment(0.01, cells, 0.75))) < SIGMAS


@pytest.mark.cases(4)
@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize(("zeta", "temperature"), [(0.5, 1.0), (0.75, 1.0), (1.0, 1.0), (0.75, 2.0)])
def test_theta_is_the_energys_law(zeta, temperature, field):
    """Bins' probabilities, each to 4 % for the step and 4.5 standard errors; not of another T, nor a bin further."""
    cells = Partition(LOWEST, 0.5, 12)
    rule = tempering.contour(zeta=zeta, partition=cells, field=field)
    run = normal_run(rule, h=0.01, n_steps=160_000, n_chains=64, temperature=temperature)
    found, law = estimated_masses(run), bin_masses(cells, temperature)
    spread = found.std(axis=0, ddof=1) / math.sqrt(len(found))

    def agrees(masses):
        return (np.abs(found.mean(axis=0) - masses) < SIGMAS * spread + 0.04 * masses).all()

    assert agrees(law)
    assert not agrees(bin_masses(cells, 1.2 * temperature))
    assert not agrees(np.roll(law, 1))
    if zeta < 1.0:
        power = 1.0 / zeta if field == "theta" else zeta  # θ itself read with the other field's exponent
        other = law**power / (law**power).sum()
        assert not agrees(other)


def mixture_masses(cells):
    """Probabilities of the bins under the mixture below, given that the energy is inside the partition."""
    x = np.linspace(-18.0, 16.0, 1_000_001)
    density = 0.4 * np.exp(-0.5 * (x + 6.0) ** 2) + 0.6 * np.exp(-0.5 * (x - 4.0) ** 2)
    energy = LOWEST - np.log(density)
    inside = (energy >= cells.u_min) & (energy < cells.u_max)
    j = np.floor((energy[inside] - cells.u_min) / cells.width).astype(int)
    mass = np.bincount(j, density[inside], cells.n_bins)
    return mass / mass.sum()


TWO = mixtures.gaussian_mixture([[-6.0], [4.0]], 1.0, [0.4, 0.6])


def crossings(run):
    """How often the kept draws of each replica change sides of −1, (chain,)."""
    left = run.replica_draws[..., 0] < -1.0
    return (left[:, :, 1:] != left[:, :, :-1]).sum(axis=(1, 2))


def test_two_modes_far_apart():
    """0.4 N(−6, 1) + 0.6 N(4, 1): SGLD stays where it starts; contour crosses, and its weights give 0.4 to the left."""
    cells = Partition(1.4, 0.5, 26)
    start = np.where(np.arange(32) % 2 == 0, -6.0, 4.0)[:, None]
    arguments = {"n_steps": 200_000, "burn_in": 50_000, "thin": 10, "n_chains": 32, "seed": 2, "init": start}
    run = sample(TWO, samplers.icsgld(0.1, n_replicas=4, partition=cells), **arguments)
    left = run.draws[:, :, 0] < -1.0
    assert abs(error(weighted_mean(run, left), 0.4)) < SIGMAS
    assert abs(error(weighted_mean(run, run.draws[:, :, 0] ** 2), 25.0)) < SIGMAS
    assert abs(error(left.mean(axis=1), 0.4)) > SIGMAS  # of the draws without their weights
    assert abs(error(weighted_mean(run, left), 0.5)) > SIGMAS  # of where they start
    found, law = estimated_masses(run).mean(axis=0), mixture_masses(cells)
    assert np.abs(found - law).sum() < 0.08
    assert np.abs(found - np.roll(law, 1)).sum() > 0.3
    plain = sample(TWO, Sampler("plain", (0.1,) * 4, (1.0,) * 4), **arguments)
    assert crossings(run).min() > 20
    assert crossings(plain).mean() < 1.0


def test_cosine25():
    """|x|² and the mean energy against quadrature, where SGLD is still far from the outer modes."""
    target, axis = mixtures.cosine25(), np.linspace(-8.0, 8.0, 1601)
    points = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    energy = target.evaluate(points)[0]
    density = np.exp(-energy) / np.exp(-energy).sum()
    mean_energy, second = density @ energy, density @ (points**2).sum(axis=1)
    assert second == pytest.approx(4.7005, abs=1e-4)
    arguments = {"n_steps": 160_000, "burn_in": 60_000, "thin": 10, "n_chains": 16, "seed": 2, "keep_energies": True}
    rule = tempering.contour(partition=Partition(-4.0, 0.5, 20))
    run, plain = (
        sample(target, Sampler("eight", (1e-3,) * 8, (1.0,) * 8, tempering=t), **arguments) for t in (rule, None)
    )
    energies = np.swapaxes(run.energies, 1, 2).reshape(16, -1)
    found = weighted_mean(run, energies)
    heated = 0.04  # what steps of 1e-3 add to the energy: h U″ / 4 for either coordinate, and U″ is 79 in a mode
    slack = 0.02 / (found.std(ddof=1) / 4.0)
    assert abs(error(found, mean_energy + heated)) < SIGMAS + slack
    assert abs(error(found, mean_energy + 0.25)) > SIGMAS + slack
    assert energies.mean() > mean_energy + 0.5
    squares = (run.draws**2).sum(axis=2)
    assert abs(error(weighted_mean(run, squares), second)) < SIGMAS
    assert abs(error(squares.mean(axis=1), second)) > SIGMAS
    moves = [np.abs(np.diff(np.rint(r.replica_draws), axis=2)).max(axis=3).sum() for r in (run, plain)]
    assert moves[0] > 3.0 * moves[1]


NARROW = {"mala": (samplers.mala(0.5), 0.02), "hmc": (samplers.hmc(1.2, n_leapfrogs=3), 0.01)}


@pytest.mark.filterwarnings("ignore::toolkit.ContourWarning")
@pytest.mark.parametrize("freezes", [False, True])
@pytest.mark.parametrize("name", NARROW)
def test_moves_are_accepted_where_a_step_goes_through_fifty_bins(name, freezes):
    """On N(0, I) in 2-D; by multipliers of 390 to 850 no move of any chain was ever accepted again."""
    plain, width = NARROW[name]
    cells = Partition(math.log(2.0 * math.pi), width, round(8.0 / width))
    sampler = replace(plain, tempering=tempering.contour(partition=cells, freezes=freezes))
    start = np.random.default_rng(3).standard_normal((8, 2))
    run = sample(PLANE, sampler, n_steps=40_000, burn_in=20_000, n_chains=8, seed=3, init=start)
    assert run.acceptance.min() > 0.05
    late = (np.diff(run.draws[:, -10_000:], axis=1) != 0.0).any(axis=2).sum(axis=1)
    assert late.min() > 20


def test_a_multiplier_that_is_dropped_leaves_the_law_of_frozen_bins():
    """MALA on N(0, 1) at h = 0.3, θ at rest: weighted E x² is 1 and weighted E x⁴ is 3; without weights neither is.

    By the criterion of the multiplier, 1 of 100 draws or more lies where it is dropped.
    """
    cells = Partition(LOWEST, 0.02, 250)
    sampler = replace(samplers.mala(0.3), tempering=tempering.contour(partition=cells, freezes=True))
    start = np.random.default_rng(4).standard_normal((256, 1))
    with pytest.warns(ContourWarning):
        run = sample(NORMAL, sampler, n_steps=60_000, burn_in=4_000, thin=4, n_chains=256, seed=4, init=start)
    x = run.draws[:, :, 0]
    place = np.clip((0.5 * x * x + LOWEST - cells.u_min) / cells.width, 1.0, cells.n_bins - 1.0).astype(int)
    theta = np.maximum(run.theta, 1e-300)
    excess = 0.75 / cells.width * np.diff(np.log(theta), axis=1)[np.arange(256)[:, None], place - 1]
    assert (0.3 * excess**2 * x**2 > 16.0).mean() > 0.01
    for power, law in ((2, 1.0), (4, 3.0)):
        total = (run.weights * (x**power - law)).sum(axis=1) / run.weights.sum(axis=1)
        assert abs(error(total, 0.0)) < SIGMAS
        assert abs(error((x**power).mean(axis=1), law)) > SIGMAS


def test_bins_narrower_than_a_step_are_named_before_the_run_and_after_it():
    cells = Partition(math.log(2.0 * math.pi), 0.02, 400)
    sampler = replace(samplers.mala(0.5), tempering=tempering.contour(partition=cells))
    options = {"n_chains": 8, "seed": 3, "init": np.random.default_rng(3).standard_normal((8, 2))}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run = sample(PLANE, sampler, n_steps=20_000, burn_in=10_000, **options)
        still = replace(sampler, step_sizes=(60.0,))  # far too long a step, of which hardly any is accepted
        sample(PLANE, still, n_steps=2_000, burn_in=1_000, **options)
    said = [str(each.message) for each in caught]
    assert re.match(r"a step changes the energy by 0\.\d+, which is \d\d bins", said[0])
    assert caught[0].filename == __file__
    assert any("proposals that would then be rejected follow the gradient as it is" in each for each in said)
    assert any(each.startswith("8 of 8 chains accept less than 2% of their moves") for each in said)
    assert run.gradient_evaluations == 8 * 20_000 * 2 + 32 * 64
    wide = replace(sampler, tempering=tempering.contour(partition=Partition(cells.u_min, 0.4, 20)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sample(PLANE, wide, n_steps=20_000, burn_in=10_000, **options)


def theta_spread(n_replicas, n_steps, n_chains, seed, field="theta_zeta"):
    """Each chain's squared distance of θ from the mean over chains."""
    rule = tempering.contour(
        zeta=0.75, partition=Partition(LOWEST, 1.0, 8), field=field, decay=step_decay(offset=0.0, cap=0.1)
    )
    sampler = Sampler("contour", (0.1,) * n_replicas, (1.0,) * n_replicas, tempering=rule)
    start = np.random.default_rng(seed).standard_normal((n_chains, n_replicas, 1))
    run = sample(NORMAL, sampler, n_steps=n_steps, n_chains=n_chains, burn_in=n_steps - 1, seed=seed, init=start)
    return ((run.theta - run.theta.mean(axis=0)) ** 2).sum(axis=1)


def log_ratio(one, many):
    """Logarithm of the ratio of two variances, and its standard error."""
    relative = [values.std(ddof=1) / values.mean() / math.sqrt(len(values)) for values in (one, many)]
    return math.log(one.mean() / many.mean()), math.hypot(*relative)


@pytest.mark.filterwarnings("ignore::toolkit.ContourWarning")
@pytest.mark.parametrize("n_chains", [400, pytest.param(3000, marks=pytest.mark.slow)])
def test_replicas_beat_a_longer_chain(n_chains):
    """10 replicas against one with ten times the steps: θ's variance is less by P ω_{Pn}/ω_n = 10^0.4."""
    many = theta_spread(10, 10_000, n_chains, seed=1)
    one = theta_spread(1, 100_000, n_chains, seed=2)
    found, spread = log_ratio(one, many)
    assert found > SIGMAS * spread
    assert abs(found - 0.4 * math.log(10.0)) < SIGMAS * spread


def noisy_law(cells, zeta, noise, field):
    """E x², the bins' θ-probabilities and those of the noisy energy alone, for small steps, from averaging the noise.

    Draws follow exp(−U − ζ E log Ψ(U + noise)), and are weighed with E Ψ(U + noise)^ζ; θ solves what it then learns.
    """
    x = 0.01 * (np.arange(700) + 0.5)
    nodes = np.linspace(-6.0, 6.0, 121)
    chance = np.exp(-0.5 * nodes**2)
    chance /= chance.sum()
    place = (0.5 * x[:, None] ** 2 + LOWEST + noise * nodes - cells.u_min) / cells.width
    j = np.clip(np.floor(place), 0, cells.n_bins - 1).astype(int)
    inside = (place >= 0.0) & (place < cells.n_bins)
    plain = np.exp(-0.5 * x * x)[:, None] * chance
    alone = np.bincount(j[inside], plain[inside], cells.n_bins)
    masses = alone = alone / alone.sum()
    for _ in range(200):
        power = np.log(masses) / zeta if field == "theta" else np.log(masses)
        power -= np.logaddexp.reduce(power)
        rise = np.where((j > 0) & (place < cells.n_bins), power[j] - power[np.maximum(j - 1, 0)], 0.0)
        log_psi = power[j] - rise * (j + 1.0 - np.minimum(place, j + 1.0))
        drawn = np.exp(-0.5 * x * x - zeta * (log_psi @ chance))
        joint = drawn[:, None] * chance * np.exp(zeta * log_psi)
        if field == "theta":
            taught = joint * np.exp((1.0 - zeta) * power[j])
            theta = np.bincount(j[inside], taught[inside], cells.n_bins)
            new = (theta / theta.sum()) ** zeta
        else:
            new = np.bincount(j[inside], joint[inside], cells.n_bins)
        new = new / new.sum()
        masses = np.exp(0.5 * np.log(masses) + 0.5 * np.log(new))
        masses /= masses.sum()
    weight = joint.sum(axis=1)
    return (weight * x * x).sum() / weight.sum(), masses, alone


@pytest.mark.cases(2)
@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize(("noise", "bound"), [(0.25, 0.04), (0.5, 0.12)])
def test_noisy_energies(noise, bound, field):
    """Noise of half a bin's width biases E x² by 2 to 3 %, of a whole one by 7 to 11 %, as averaging it says."""
    cells = Partition(LOWEST - 0.25, 0.5, 16)
    run = normal_run(tempering.contour(partition=cells, field=field), energy_noise=noise, n_steps=80_000, n_chains=64)
    moment, masses, alone = noisy_law(cells, 0.75, noise, field)
    values, found = weighted_mean(run, run.draws[:, :, 0] ** 2), estimated_masses(run).mean(axis=0)
    assert 1.0 < moment < 1.0 + bound
    assert abs(error(values, moment)) < SIGMAS
    own, of_noise, of_none = (np.abs(found - law).sum() for law in (masses, alone, bin_masses(cells)))
    assert own < 0.03 < of_none
    assert of_noise < 0.12
    if noise == 0.5:
        assert abs(error(values, 1.0)) > SIGMAS
        assert of_noise > 2.0 * own


def test_noise_that_opens_bins_below_all_energies_is_told_of():
    """There θ climbs steeply from one bin to the next, steps overshoot, and the run says so: E x² is 0.7."""
    rule = tempering.contour(partition=Partition(LOWEST - 2.0, 0.5, 20), field="theta_zeta")
    with pytest.warns(ContourWarning, match="the gradient is multiplied by up to 1[0-9] in bins"):
        run = normal_run(rule, energy_noise=0.25)
    assert 0.6 < weighted_mean(run, run.draws[:, :, 0] ** 2).mean() < 0.85


NORMAL = mixtures.gaussian_mixture([[0.0]], 1.0)
BINS = tempering.Partition(0.9189, 0.5, 24)


def thetas(freezes):
    sampler = samplers.icsgld(0.05, n_replicas=3, partition=BINS, freezes=freezes)
    run = sample(NORMAL, sampler, n_steps=3000, burn_in=2000, n_chains=4, seed=1, trace_every=500)
    return run.trace.theta, run.theta


def test_theta_rests_after_burn_in():
    history, last = thetas(True)
    assert (history[:, 3:] == history[:, 3:4]).all()
    assert (history[:, 3] == last).all()
    assert (history[:, 2] != history[:, 3]).any()


def test_theta_learns_on_where_it_does_not_freeze():
    history, _ = thetas(False)
    assert (history[:, 3] != history[:, 4]).any(axis=1).all()
    np.testing.assert_array_equal(history[:, :4], thetas(True)[0][:, :4])


def test_any_frozen_theta_has_the_law():
    """θ frozen after some 300 steps is far from settled, and E x² is right all the same, within 4.5 σ and the bias."""
    sampler = samplers.csgld(0.02, partition=BINS, freezes=True)
    run = sample(NORMAL, sampler, n_steps=30_000, burn_in=300, thin=10, n_chains=200, seed=2, init=[0.0])
    x, w = run.draws[..., 0], run.weights
    values = (w * x**2).sum(axis=1) / w.sum(axis=1)
    error = values.std(ddof=1) / np.sqrt(values.size)
    assert run.theta.std(axis=0).max() > 0.1  # the chains' θ differ widely
    assert abs(values.mean() - 1.0) < 0.01 + 4.5 * error
    assert abs((x**2).mean() - 1.0) > 0.05 + 4.5 * error  # the same without weights


def test_nothing_to_learn_from_is_refused():
    with pytest.raises(ValueError, match="burn_in must be ≥ 1 for a contour that freezes"):
        sample(NORMAL, samplers.csgld(0.02, partition=BINS, freezes=True), n_steps=10, seed=1)


@pytest.mark.parametrize("interpolated", [True, False])
def test_theta_stays_a_probability_at_any_zeta(interpolated):
    """At ζ = 20, as ICSGLD's bandit has, c = Ψ^ζ θ^{1−ζ} has no bound, and ω c above 1 would make θ infinite."""
    decay = step_decay(gain=1e9, exponent=0.0, cap=0.03)
    contour = tempering.contour(zeta=20.0, partition=Partition(0.9, 0.25, 16), decay=decay, interpolated=interpolated)
    sampler = replace(samplers.icsgld(0.05, n_replicas=4), tempering=contour)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ContourWarning)
        run = sample(
            mixtures.gaussian_mixture([[0.0]], 1.0), sampler, n_steps=4000, n_chains=16, seed=0, init=np.full(1, 0.1)
        )
    np.testing.assert_allclose(run.theta.sum(axis=1), 1.0, rtol=1e-12)
    assert np.isfinite(run.weights).all()
    assert (run.weights <= 1.0).all()
