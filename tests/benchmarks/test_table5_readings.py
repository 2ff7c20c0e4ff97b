"""Readings of cSG-MCMC's table 5: sizes against other code, energies by NumPy, and what counts as reproduced."""

import numpy as np
import pytest

from benchmarks.evidence import table5_readings as readings
from targets import datasets
from toolkit.diagnostics import ess_by_cutoff

RNG = np.random.default_rng(4)


def walk(factor, n=6_000, chains=8, dim=3):
    """AR(1) of variance 1, from its law."""
    draws = RNG.standard_normal((chains, n, dim))
    for i in range(1, n):
        draws[:, i] = factor * draws[:, i - 1] + np.sqrt(1.0 - factor**2) * draws[:, i]
    return draws


def test_sizes_end_where_they_say():
    draws, mean, variance = walk(0.8), np.zeros(3), np.ones(3)
    sizes = readings.sizes_by_end(*readings.correlations(draws, mean, variance))
    np.testing.assert_allclose(sizes[0], ess_by_cutoff(draws, mean=mean, variance=variance), rtol=1e-9)
    for k in (0, 1, 3):
        assert sizes[k].mean() == pytest.approx(6_000 * 0.2 / 1.8, rel=0.1)
    x = draws[0, :, 0]
    every_lag = 1.0 + (x.sum() ** 2 - (x**2).sum()) / len(x)  # of variance 1
    assert sizes[2, 0, 0] == pytest.approx(len(x) / max(every_lag, 1.0), rel=1e-9)


def test_what_has_diverged_has_no_size():
    draws = walk(0.5, n=100, chains=2)
    draws[0] = np.nan
    found = readings.over_coordinates(
        readings.sizes_by_end(*readings.correlations(draws, np.zeros(3), np.ones(3)))[:, :1]
    )
    assert (found == 0.0).all()


def test_energies_are_those_of_the_docstring():
    """Of the mean energy, N times its step and temperature are those of the sum."""
    setting = readings.Setting("−1 to 1", 1.0, "mean", None)
    problem, temperature, *_ = readings.problem_of(datasets.heart, setting)
    features, labels = readings.features_of(datasets.heart, "−1 to 1"), datasets.heart().labels
    assert features[:, 1:].min(axis=0) == pytest.approx(-1.0)
    assert features[:, 1:].max(axis=0) == pytest.approx(1.0)
    x = RNG.standard_normal(14)
    margin = features @ x * (2.0 * labels - 1.0)
    assert problem.evaluate(x[None])[0][0] / temperature == pytest.approx(
        np.logaddexp(0.0, -margin).mean() + 0.5 * x @ x
    )
    assert temperature == 270.0


def test_scores_are_the_worst_factor_and_the_orders():
    printed = readings.Result((), readings.PRINTED.astype(float))
    assert (printed.worst, printed.near, printed.in_order) == (pytest.approx(1.0), 12, 3)
    changed = readings.PRINTED.astype(float)
    changed[0, 0] *= 10.0
    one = readings.Result((), changed)
    assert (one.worst, one.near, one.in_order) == (pytest.approx(10.0), 11, 2)
    assert readings.Result((), 0.0 * changed).near == 0


def test_every_product_is_read_once():
    settings = list(readings.settings())
    assert len(settings) == len(set(settings)) == 30 + 3
    found = {
        (i, method, schedule): np.ones((2, 4, 3))
        for i in range(3)
        for method in readings.METHODS
        for schedule in readings.samplers_of(method, np.array([0.1]), 1.0, 1_000)
    }
    choices = [one.choices for setting in settings for one in readings.readings(setting, found)]
    assert len(choices) == len(set(choices)) == 4_320 + 3 * 144
    assert {one[3] for one in choices} == {"1", "0.3", "0.1", "0.03"}


def test_cold_chains_are_judged_by_the_variance_of_temperature_1():
    """A chain at T has T of the variance, and all correlations are as much smaller: n / (1 + 2 T Σρ)."""
    setting = readings.Setting("standardised", 10.0**0.5, "sum", None)
    usual, cold = (readings.problem_of(datasets.heart, setting._replace(temperature=t)) for t in (1.0, 0.25))
    assert (usual[1], cold[1]) == (1.0, 0.25)
    for a, b in zip(usual[2:], cold[2:], strict=True):
        np.testing.assert_array_equal(a, b)
    draws = 0.5 * walk(0.9)
    sizes = readings.sizes_by_end(*readings.correlations(draws, np.zeros(3), np.ones(3)))
    assert sizes[3].mean() == pytest.approx(6_000 / (0.25 * 19.0 + 0.75), rel=0.1)
