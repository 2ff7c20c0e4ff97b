"""What ``toolkit.thermostats`` says of a run, from its trace, and the laws it compares with, in numbers by hand."""

import dataclasses

import numpy as np
import pytest

from targets import mixtures
from toolkit import Sampler, dynamics, sample, samplers, tempering
from toolkit.diagnostics import thermostats as t

NORMAL = mixtures.gaussian_mixture([[0.0]], 1.0)
COUPLED = tempering.continuous_tempering(friction=0.03, inertia=5.0, step_size=0.02)


@pytest.fixture(scope="module")
def run():
    """Three chains at temperatures of their own, with a trace that burn-in shares."""
    sampler = samplers.tact_hmc(0.02, temperature=[0.5, 1.0, 2.0])
    return sample(NORMAL, sampler, n_steps=600, burn_in=200, n_chains=3, seed=1, trace_every=2, init=[0.0])


def test_laws_of_thermostats():
    """N(c + h s²/(2T), hT/(γD)) with h = 0.01, T = 2, s = 3, γ = 0.5, D = 4 or 1; and ξ's own numbers."""
    numbers = {"friction": 0.1, "inertia": 0.5, "temperature": 2.0, "gradient_noise": 3.0}
    shared = t.thermostat_law(samplers.sgnht(0.01, **numbers), 4)
    assert shared == pytest.approx((0.1 + 0.01 * 9.0 / 4.0, np.sqrt(0.01 * 2.0 / (0.5 * 4))))
    single = t.thermostat_law(samplers.sgnht(0.01, by_coordinate=True, **numbers), 4)
    assert single == pytest.approx((shared.mean, np.sqrt(0.01 * 2.0 / 0.5)))
    noisy = {"temperatures": (2.0,), "energy_noise": 3.0, "dynamics": dynamics.nose_hoover()}
    own = t.coupling_thermostat_law(Sampler("x", (0.5,), tempering=COUPLED, **noisy))
    assert own == pytest.approx((0.03 + 0.02 * 9.0 / 4.0, np.sqrt(0.02 * 2.0 / 5.0)))
    inherits = dataclasses.replace(COUPLED, step_size=None)
    same = t.coupling_thermostat_law(Sampler("x", (0.5,), tempering=inherits, **noisy))
    assert same == pytest.approx((0.03 + 0.5 * 9.0 / 4.0, np.sqrt(0.5 * 2.0 / 5.0)))


def test_effective_temperatures_are_each_chain_s_own(run):
    found = t.effective_temperature(run)
    assert found.shape == (3, 1, 300)
    np.testing.assert_allclose(found[:, 0] * run.trace.fields["multiplier"][:, 0], [[0.5] * 300, [1] * 300, [2] * 300])
    assert np.ptp(found, axis=2).min() > 0.0


@pytest.mark.parametrize("n_bins", [1, 7, 20])
def test_the_histogram_of_xi_is_of_the_trace_after_burn_in(run, n_bins):
    shares, edges = t.coupling_histogram(run, n_bins)
    assert shares.shape == (3, 1, n_bins)
    np.testing.assert_allclose(edges, np.linspace(-1.0, 1.0, n_bins + 1))
    xi = run.trace.fields["xi"][:, 0]
    after = [np.histogram(chain[run.trace.steps >= 200], edges)[0] / 200 for chain in xi]
    np.testing.assert_array_equal(shares[:, 0], after)
    with_burn_in = [np.histogram(chain, edges)[0] / 300 for chain in xi]
    assert n_bins == 1 or not np.allclose(shares[:, 0], with_burn_in)
    assert t.coupling_histogram(run)[0].shape == (3, 1, 20)


def test_running_averages():
    np.testing.assert_allclose(t.running_average([[1.0, 2.0, 6.0], [0.0, 4.0, -1.0]]), [[1, 1.5, 3], [0, 2, 1]])


BARE = samplers.sgld(0.1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda run: t.thermostat_law(BARE, 2), "sampler must have Nosé–Hoover dynamics for a thermostat, got 'lang"),
        (lambda run: t.thermostat_law(samplers.sgnht(0.1), 0), "dim must be ≥ 1, got 0"),
        (lambda run: t.coupling_thermostat_law(BARE), "sampler must have continuous tempering, got tempering=None"),
        (lambda run: t.effective_temperature(dataclasses.replace(run, trace=None)), "run must have a trace, got None"),
        (lambda run: t.effective_temperature(dataclasses.replace(run, sampler=BARE)), "must have continuous tempering"),
        (lambda run: t.coupling_histogram(run, 0), "n_bins must be ≥ 1, got 0"),
        (
            lambda run: t.coupling_histogram(dataclasses.replace(run, burn_in=600)),
            "run must have a trace after its burn-in of 600 steps",
        ),
        (lambda run: t.running_average(2.0), "values must have an axis, got the number 2.0"),
    ],
)
def test_bad_arguments_are_refused(run, call, message):
    with pytest.raises(ValueError, match=message):
        call(run)


def test_a_law_in_any_dimension_takes_no_memory():
    sampler = samplers.sgnht(0.01, gradient_noise=2.0)
    many, few = t.thermostat_law(sampler, 10**15), t.thermostat_law(sampler, 10)
    assert many.mean == few.mean
    assert many.deviation == pytest.approx(1e-7 * few.deviation)
