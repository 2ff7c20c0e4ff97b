"""TACT-HMC with the engine: thermostats' laws, a flat ξ, draws that match under gradient noise; and its ablations."""

import math
from functools import cache

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from targets import mixtures
from tests.support.laws import SIGMAS, deviation
from toolkit import dynamics, sample, samplers, tempering

SHARES, CENTRES = np.array([0.3, 0.5, 0.2]), np.array([-8.0, 0.0, 8.0])
TARGET = mixtures.gaussian_mixture(CENTRES[:, None], 1.0, SHARES)
STEP, FRICTION, NOISE, ENERGY_NOISE, XI_INERTIA = 0.002, 0.02, 10.0, 3.0, 4.0
QUANTILES = (0.02, 0.1, 0.25, 0.35, 0.5, 0.65, 0.75, 0.9, 0.98)


def coupling(bias="abf", *, thermostat=True):
    return tempering.continuous_tempering(
        top_temperature=10.0, friction=FRICTION, inertia=XI_INERTIA, bias=bias, thermostat=thermostat
    )


@cache
def tact(*, thermostats=True, tempers=True, bias="abf", temperature=1.0, n_steps=30_000, n_chains=256):
    """A run of chains that all begin in the mode at −8, with its trace at the draws' steps and a third as burn-in."""
    move = dynamics.nose_hoover if thermostats else dynamics.underdamped_langevin
    sampler = samplers.Sampler(
        "tact", (STEP,), (temperature,), dynamics=move(friction=FRICTION),
        tempering=coupling(bias, thermostat=thermostats) if tempers else None, gradient_noise=NOISE,
        energy_noise=ENERGY_NOISE if tempers else 0.0,
    )  # fmt: skip
    options = {"n_chains": n_chains, "init": CENTRES[:1], "seed": 61, "thin": 10, "trace_every": 10}
    return sample(TARGET, sampler, n_steps=n_steps, burn_in=n_steps // 3, **options)


def traced(run, name):
    """A field of the trace at the draws' steps, (chain, draw)."""
    return run.trace.fields[name][:, 0, -run.draws.shape[1] :]


def cumulative(q, shares):
    return shares @ norm.cdf(q - CENTRES)


def width_error(run, law, slack=0.015):
    """Weighted mean of (x − nearest centre)² less ``law`` and ``slack``, in standard errors of a ratio over chains."""
    squares = ((run.draws[:, :, :1] - CENTRES) ** 2).min(axis=2)
    excess, total = (run.weights * (squares - law)).sum(axis=1), run.weights.sum()
    return max(abs(excess.sum()) - slack * total, 0.0) / math.sqrt((excess**2).sum())


WIDTH = 1.0 - 1.5 * (16.0 * norm.pdf(4.0) - 64.0 * norm.sf(4.0))  # of the mixture: 1, but for what is nearer another


def quantile_errors(run, weights, *, shares=SHARES):
    """Weighted shares of draws below the quantiles of the mixture, in standard errors of a ratio over chains."""
    errors = []
    for p in QUANTILES:
        q = brentq(lambda x, p=p: cumulative(x, shares) - p, -15.0, 15.0)
        excess = (weights * ((run.draws[:, :, 0] <= q) - p)).sum(axis=1)
        errors.append(excess.sum() / math.sqrt((excess**2).sum()))
    return np.abs(errors)


def test_draws_match_the_target_under_gradient_noise():
    """All modes in their shares, from a start in one of them; weights left out, or other shares, are rejected."""
    run = tact()
    assert quantile_errors(run, run.weights).max() < SIGMAS
    assert quantile_errors(run, np.ones_like(run.weights)).max() > SIGMAS
    assert quantile_errors(run, run.weights, shares=np.full(3, 1 / 3)).max() > SIGMAS
    assert width_error(run, WIDTH) < SIGMAS
    for wrong in (1.1, 0.9):
        assert width_error(run, wrong * WIDTH) > SIGMAS


@pytest.mark.parametrize("ablation", [{"thermostats": False}, {"tempers": False}])
def test_neither_ablation_passes(ablation):
    """Without thermostats the noise heats it; without tempering chains stay where they began."""
    run = tact(**ablation)
    assert quantile_errors(run, run.weights).max() > 2.0 * SIGMAS


@pytest.mark.slow
@pytest.mark.parametrize("bias", ["abf", "metadynamics"])
def test_draws_match_the_target_in_long_runs(bias):
    run = tact(bias=bias, n_steps=120_000)
    assert quantile_errors(run, run.weights).max() < SIGMAS
    assert width_error(run, WIDTH) < SIGMAS
    assert width_error(run, WIDTH * (1.0 - 0.5 * (FRICTION + 0.5 * STEP * NOISE**2))) > SIGMAS  # by the printed rule


def check_law(z, mean, slack, wrong_means, variance, wrong_variances):
    """z (chain, time) has mean and variance as theorem 1 has them, the variance to 5 %."""
    means, squares = z.mean(axis=1), ((z - z.mean()) ** 2).mean(axis=1)
    assert deviation(means, mean, slack) < SIGMAS
    assert deviation(squares, variance, 0.05 * variance) < SIGMAS
    for wrong in wrong_means:
        assert deviation(means, wrong, slack) > SIGMAS
    for wrong in wrong_variances:
        assert deviation(squares, wrong, 0.05 * variance) > SIGMAS


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_both_thermostats_have_the_law_of_theorem_1(temperature):
    """N(c + h s²/(2T), hT/γ) for position and ξ, each with its own noise s, up to 5 % of the mean.

    To that both means are less by the variance (``mean_thermostat`` in test_underdamped.py).
    """
    run = tact(temperature=temperature)
    for name, s, inertia in (("thermostat", NOISE, 1.0), ("xi_thermostat", ENERGY_NOISE, XI_INERTIA)):
        added, variance = 0.5 * STEP * s**2 / temperature, STEP * temperature / inertia
        mean, wrong = FRICTION + added, [FRICTION, FRICTION + 2.0 * added]
        spreads = [0.5 * variance, 2.0 * variance]
        if temperature != 1.0:
            wrong, spreads = [*wrong, FRICTION + added * temperature], [*spreads, STEP / inertia]  # T left out
        if name == "thermostat":
            wrong.append(1.0 - math.sqrt(1.0 - 2.0 * mean))
        mean -= variance
        slack = 0.05 * mean
        check_law(traced(run, name), mean, slack, wrong, variance, spreads)


def shares_of_xi(run):
    """Share of time of every chain in each tenth of |ξ|, (chain, 10)."""
    xi = np.abs(traced(run, "xi"))
    return np.stack([(np.floor(10.0 * xi).clip(0, 9) == j).mean(axis=1) for j in range(10)], axis=1)


@pytest.mark.parametrize(("bias", "slack"), [("abf", 0.002), ("metadynamics", 0.015)])
def test_a_bias_flattens_xi(bias, slack):
    run = tact() if bias == "abf" else tact(bias=bias, n_steps=120_000, n_chains=64)  # whose potential settles slowly
    shares = shares_of_xi(run)
    assert max(deviation(shares[:, j], 0.1, slack) for j in range(10)) < SIGMAS
    assert deviation(run.weights.mean(axis=1), 0.1, slack) < SIGMAS
    free = shares_of_xi(tact(bias="none"))
    assert min(deviation(free[:, j], 0.1, 0.015) for j in (0, 1, 2, 3, 4, 7, 8, 9)) > SIGMAS


def test_draws_count_where_the_coupling_is_1():
    run = tact()
    inside = np.abs(traced(run, "xi")) <= coupling().plateau
    np.testing.assert_array_equal(run.weights, inside)
    assert 0.05 < run.weights.mean() < 0.2
    assert (np.abs(traced(run, "xi")) <= 1.0).all()
    sampler = samplers.tact_hmc(0.01)
    run = sample(TARGET, sampler, n_steps=2000, n_chains=20, init=CENTRES[:1], seed=62, trace_every=1)
    xi, scale = run.trace.fields["xi"][:, 0], run.trace.fields["multiplier"][:, 0]
    np.testing.assert_allclose(scale[:, 1:], sampler.tempering.coupling(xi[:, :-1])[0], rtol=1e-13)
    assert scale.min() < 0.5


@pytest.mark.parametrize(("thermostat", "tempers"), [(True, True), (False, True), (True, False), (False, False)])
def test_the_constructor_is_its_composition_bit_for_bit(thermostat, tempers):
    move = dynamics.nose_hoover(friction=0.03, inertia=2.0)
    if not thermostat:
        move = dynamics.underdamped_langevin(friction=0.03)
    tempered = tempering.continuous_tempering(
        top_temperature=5.0, friction=0.03, inertia=2.0, bias="metadynamics", thermostat=thermostat, resample_every=20
    )
    noise = {"gradient_noise": 3.0, "energy_noise": 1.0 if tempers else 0.0}
    composed = samplers.Sampler(
        "mine", (0.01,), (1.5,), dynamics=move, tempering=tempered if tempers else None, **noise
    )
    named = samplers.tact_hmc(
        0.01, top_temperature=5.0, friction=0.03, inertia=2.0, bias="metadynamics", resample_every=20,
        thermostat=thermostat, tempers=tempers, temperature=1.5, **noise,
    )  # fmt: skip
    one, other = (sample(TARGET, s, n_steps=500, n_chains=5, init=[1.0], seed=63) for s in (composed, named))
    np.testing.assert_array_equal(one.draws, other.draws)
    np.testing.assert_array_equal(one.weights, other.weights)
    assert one.weights.min() == (0.0 if tempers else 1.0)
