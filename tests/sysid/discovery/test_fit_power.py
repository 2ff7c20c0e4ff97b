"""What the probabilities of terms depend on is said: independent errors, the library; and a forecast tests it."""

import functools
import warnings

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from sysid import Series, data, discover, libraries, systems
from sysid.data.residuals import ResidualPart
from sysid.discovery.fit_power import power_of


def series_of(slopes, start, times, noise, seed, phi=0.0):
    path = solve_ivp(slopes, times[[0, -1]], start, "LSODA", times, rtol=1e-9, atol=1e-11).y.T
    errors = np.random.default_rng(seed).standard_normal(path.shape)
    for k in range(1, len(times)):
        errors[k] = phi * errors[k - 1] + np.sqrt(1.0 - phi**2) * errors[k]
    return Series(times, path + noise * path.std(axis=0) * errors, ("x", "y")[: path.shape[1]])


def prey(_, x):
    return [x[0] - 0.1 * x[0] * x[1], -1.5 * x[1] + 0.075 * x[0] * x[1]]


@functools.cache
def found():
    return discover(series_of(prey, [10.0, 5.0], np.linspace(0.0, 20.0, 201), 0.05, 0), progress=False, sweeps=200)


def test_independent_errors_are_not_doubted():
    check = found().residual_check
    assert check.doubts() == []
    assert (np.abs(check.correlation) < 4.5 / np.sqrt(201)).all()
    assert str(found()).startswith("Given this library (power of the test of residuals ")
    assert 0.0 <= found().power.probability < 0.5
    assert found().power.departure < found().power.noticed


def test_correlated_errors_are_told_and_head_the_probabilities():
    given = series_of(prey, [10.0, 5.0], np.linspace(0.0, 20.0, 201), 0.05, 0, phi=0.8)
    with pytest.warns(UserWarning, match="discover: the residuals contradict independent errors: x .*, y ") as told:
        one = discover(given, progress=False, sweeps=200)
    assert told[0].filename == __file__
    assert str(one).startswith("Given independent errors and this library, which the residuals contradict: x ")
    assert (one.residual_check.correlation > 0.6).all()


def test_outliers_are_named_before_and_after_the_fit():
    given = series_of(prey, [10.0, 5.0], np.linspace(0.0, 20.0, 201), 0.05, 0)
    given.values[130, 0] *= 5.0
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        discover(given, progress=False, sweeps=50)
    named = f"{given.values[130, 0]:.6g} of 'x' at 13 "
    assert sum(named in str(warning.message) for warning in caught) == 2


def test_a_library_without_the_truth_is_told_or_its_power_is_printed():
    """Michaelis and Menten's consumption in cubic terms, at two sizes of the noise."""
    times = np.linspace(0.0, 10.0, 100)

    def enzyme(_, x):
        return [0.6 - 1.5 * x[0] / (0.3 + x[0])]

    with pytest.warns(UserWarning, match="the residuals contradict independent errors"):
        precise = discover(series_of(enzyme, [2.0], times, 0.004, 0), degree=3, progress=False, sweeps=200)
    assert precise.power.probability > 0.8
    rough = discover(series_of(enzyme, [2.0], times, 0.1, 0), degree=3, progress=False, sweeps=200)
    assert rough.power.probability < 0.5
    assert str(rough).startswith("Given this library (power of the test of residuals")
    assert f"Power of their test: {rough.power.probability:.0%}, were the smoothed data the truth" in str(rough)


def test_power_is_that_of_a_known_departure():
    """A sine of which neighbours correlate by s²/2 of the noise: the first sum alone has the power Φ(√n s²/2 − 4)."""
    n, times = 400, np.arange(400.0)
    none = np.zeros((n, 1, 0))

    def power(size):
        lack = size * np.sin(2.0 * np.pi * times / 16.0)[:, None]
        part = ResidualPart("data", times, lack, lack, none, none)  # about a path of 0
        return power_of([part], [Series(times, lack, ("x",))], np.ones(1))

    weak, strong = power(0.05), power(1.0)
    assert weak.probability < 0.1
    assert strong.probability > 0.97
    np.testing.assert_allclose(strong.departure, 1.0 / np.sqrt(2.0), rtol=0.02)
    np.testing.assert_allclose(weak.noticed, strong.noticed, rtol=0.45)
    assert 0.3 < strong.noticed < 0.65


def test_a_departure_that_the_fit_follows_is_none():
    """Along a coefficient's direction the equations follow the smoothed data."""
    n, times = 400, np.arange(400.0)
    lack = np.sin(2.0 * np.pi * times / 16.0)[:, None]
    shared = lack[:, :, None] / np.sqrt(np.sum(lack**2))
    part = ResidualPart("data", times, lack, lack, shared, np.zeros((n, 1, 0)))
    power = power_of([part], [Series(times, lack, ("x",))], np.ones(1))
    assert power.departure < 0.01
    assert power.probability < 0.1


def test_exact_data_and_velocities_are_not_tested():
    exact = data.simulate(systems.lotka_volterra(), np.linspace(0.0, 10.0, 101), seed=0)
    one = discover(exact, progress=False, sweeps=100)
    assert one.residual_check is None
    assert one.power is None
    assert str(one).startswith(one.equations())
    by_velocities = discover(exact, likelihood="derivative", progress=False, sweeps=100)
    assert str(by_velocities).startswith("Given this library, which nothing here tests")


def test_a_forecast_of_held_out_rows():
    check = found().forecast_check(0.25, progress=False)
    assert check.values.shape == (50, 2)
    np.testing.assert_array_equal(check.values, found().data[0].values[-50:])
    assert (check.coverage > 0.75).all()
    assert (check.error < 2.0 * found().noise).all()
    assert "inside 90% intervals" in str(check)
    for bad in (0.0, 1.0, 0.99):
        with pytest.raises(ValueError, match="fraction must"):
            found().forecast_check(bad, progress=False)


def test_a_forecast_tells_what_a_wrong_library_foretells():
    """A linear oscillator fitted with a library without the restoring force's cubic part, over growing swings."""
    times = np.linspace(0.0, 12.0, 241)
    given = series_of(lambda _, x: [x[1], 0.15 * x[1] - x[0] - 0.5 * x[0] ** 3], [0.3, 0.0], times, 0.02, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one = discover(given, libraries.polynomial(("x", "y"), 1), progress=False, sweeps=100)
        check = one.forecast_check(0.3, progress=False)
    assert (check.coverage < 0.6).all()


def test_a_lone_row_after_a_gap_is_left_out_and_said():
    """The fit has no path there, so that the power is that of the rest."""
    times = np.append(np.arange(0.0, 20.0, 0.1), 60.0)
    values = np.stack([np.sin(times), np.cos(times)], axis=1) + 0.05 * np.random.default_rng(0).normal(size=(201, 2))
    series = Series(times, values, ("x", "y"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = discover(series, degree=1)
    assert any("1 rows between gaps are too few" in str(warning.message) for warning in caught)
    assert "1 rows between gaps are too few" in str(found)
    assert len(found.sparse.support) == 2
    whole = discover(Series(times[:-1], values[:-1], ("x", "y")), degree=1)
    assert found.power == whole.power
