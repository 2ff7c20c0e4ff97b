"""The posterior of a user's own functions: the same as the built-in families, and lawful in its minibatches."""

import math

import numpy as np
import pytest
from scipy import stats

from targets.posteriors.linear import linear_regression
from targets.posteriors.logistic import logistic_regression
from targets.posteriors.user_likelihood import posterior, posterior_block
from tests.support.laws import estimates, has_moments
from toolkit import Layout, sample, samplers
from toolkit._compiler.binding import bound

N, DRAWN = 40, 6
RNG = np.random.default_rng(4)
DATA = np.column_stack([np.ones(N), RNG.standard_normal(N), RNG.standard_normal(N)])  # two features and a response
POINTS = RNG.standard_normal((5, 2))


def squares(x, row):
    """½ (y − f·x)²."""
    residual = row[2] - x[0] * row[0] - x[1] * row[1]
    return 0.5 * residual * residual, (-residual * row[0], -residual * row[1])


def squares_by_array(x, row):
    gradient = np.empty(2)
    residual = row[2]
    for d in range(2):
        residual -= x[d] * row[d]
    for d in range(2):
        gradient[d] = -residual * row[d]
    return 0.5 * residual * residual, gradient


def logistic(x, row):
    margin = row[2] * (x[0] * row[0] + x[1] * row[1])
    pull = -row[2] / (1.0 + math.exp(margin))
    return math.log(1.0 + math.exp(-margin)), (pull * row[0], pull * row[1])


def quartic(x):
    """Σ x⁴/4, a prior of the user's own."""
    return 0.25 * (x[0] ** 4 + x[1] ** 4), (x[0] ** 3, x[1] ** 3)


def normal_by_array(x):
    """That of deviation 2."""
    return 0.125 * (x[0] ** 2 + x[1] ** 2), np.array([0.25 * x[0], 0.25 * x[1]])


@pytest.mark.cases(2)
@pytest.mark.slow_cases("batch0-squares_by_array-normal_by_array")
@pytest.mark.parametrize(("datum", "prior"), [(squares, 2.0), (squares_by_array, normal_by_array)])
@pytest.mark.parametrize("batch", [(None, None), (DRAWN, None), (DRAWN, 4)])
def test_it_is_linear_regression_for_its_likelihood(datum, prior, batch):
    """The same data of a minibatch, too: both draw by the same counters."""
    size, refresh = batch
    own = posterior(datum, DATA, 2, prior=prior, batch_size=size, refresh_every=refresh)
    built_in = linear_regression(DATA[:, :2], DATA[:, 2], noise=1.0, prior=2.0, batch_size=size, refresh_every=refresh)
    constant = 0.5 * (N + 2) * np.log(2.0 * np.pi) + 2.0 * np.log(2.0)
    np.testing.assert_allclose(own.evaluate(POINTS)[0] + constant, built_in.evaluate(POINTS)[0], rtol=1e-13)
    np.testing.assert_allclose(own.evaluate(POINTS)[1], built_in.evaluate(POINTS)[1], rtol=1e-11, atol=1e-11)
    if size is not None:
        scratches = [estimates(target, POINTS, lanes=9)[2] for target in (own, built_in)]
        values = [
            estimates(target, POINTS + 0.2, lanes=9, step=3, scratch=scratch)
            for target, scratch in zip((own, built_in), scratches, strict=True)
        ]
        np.testing.assert_allclose(values[0][0] + constant, values[1][0], rtol=1e-12)
        np.testing.assert_allclose(values[0][1], values[1][1], rtol=1e-9, atol=1e-9)


def test_it_is_logistic_regression_for_its_likelihood():
    signs = np.where(RNG.random(N) < 0.5, 1.0, -1.0)
    own = posterior(logistic, np.column_stack([DATA[:, :2], signs]), 2, prior=3.0)
    built_in = logistic_regression(DATA[:, :2], signs, prior=3.0)
    np.testing.assert_allclose(own.evaluate(POINTS)[0], built_in.evaluate(POINTS)[0], rtol=1e-13)
    np.testing.assert_allclose(own.evaluate(POINTS)[1], built_in.evaluate(POINTS)[1], rtol=1e-11, atol=1e-12)


@pytest.mark.slow_cases("quartic")
@pytest.mark.parametrize("prior", [None, 1.5, quartic])
def test_priors(prior):
    flat = posterior(squares, DATA, 2)
    extra = {
        None: (0.0, 0.0),
        1.5: ((POINTS**2).sum(axis=1) / 4.5, POINTS / 2.25),
        quartic: ((POINTS**4).sum(axis=1) / 4.0, POINTS**3),
    }[prior]
    energy, gradient = posterior(squares, DATA, 2, prior=prior).evaluate(POINTS)
    np.testing.assert_allclose(energy, flat.evaluate(POINTS)[0] + extra[0], rtol=1e-13)
    np.testing.assert_allclose(gradient, flat.evaluate(POINTS)[1] + extra[1], rtol=1e-12)


@pytest.mark.cases(1)
@pytest.mark.parametrize("drawn", [1, DRAWN, N])
@pytest.mark.parametrize("anchored", [False, True])
def test_minibatches_have_their_mean_and_covariance(drawn, anchored):
    """Unbiased, N²/n times the covariance over the data, of changes where anchored; the prior is in full."""
    x, anchor = POINTS[0], POINTS[1]
    target = posterior(squares, DATA, 2, prior=quartic, batch_size=drawn, refresh_every=9 if anchored else None)
    scratch = estimates(target, anchor[None])[2] if anchored else None
    energy, gradient, _ = estimates(target, x[None], step=4, scratch=scratch)
    parts = [[value, *slope] for value, slope in (squares(x, row) for row in DATA)]
    if anchored:
        parts = np.subtract(parts, [[value, *slope] for value, slope in (squares(anchor, row) for row in DATA)])
    exact = target.evaluate(x[None])
    mean = np.concatenate([exact[0], exact[1][0]])
    covariance = N**2 / drawn * np.cov(np.transpose(parts), bias=True)
    values = np.vstack([energy, gradient[:, 0]])
    assert has_moments(values, mean, covariance)
    assert not has_moments(values, mean, 0.9 * covariance)
    assert not has_moments(values, mean + 0.05 * np.sqrt(np.diag(covariance)), covariance)
    assert energy.std() > 0.0


def test_at_the_anchor_a_minibatch_is_exact():
    target = posterior(squares, DATA, 2, prior=quartic, batch_size=2, refresh_every=5)
    scratch = estimates(target, POINTS, lanes=20)[2]
    energy, gradient, _ = estimates(target, POINTS, lanes=20, step=1, scratch=scratch)
    exact = target.evaluate(POINTS)
    np.testing.assert_array_equal(energy, np.repeat(exact[0][:, None], 20, axis=1))
    np.testing.assert_array_equal(gradient[:, :, 7].T, exact[1])


@pytest.mark.parametrize("refresh_every", [None, 3])
def test_bits_do_not_depend_on_the_layout(refresh_every):
    target = posterior(squares, DATA, 2, prior=1.0, batch_size=3, refresh_every=refresh_every)
    options = {"n_steps": 30, "seed": 8, "keep_energies": True}
    whole = sample(target, samplers.sgld(1e-3), n_chains=20, threads=1, **options)
    assert len(np.unique(whole.energies[:, 0, 0])) == 20
    for chains, layout in ((20, Layout(chunk_steps=7, lanes=6)), (3, Layout(lanes=1))):
        run = sample(target, samplers.sgld(1e-3), n_chains=chains, threads=1, layout=layout, **options)
        np.testing.assert_array_equal(run.draws, whole.draws[:chains])


def test_hmc_samples_the_posterior():
    """The first coefficient's normal law, by KS over 4000 chains."""
    target = posterior(squares, DATA, 2, prior=2.0)
    run = sample(target, samplers.hmc(0.03), n_steps=60, n_chains=4000, thin=60, seed=2)
    truth = linear_regression(DATA[:, :2], DATA[:, 2], noise=1.0, prior=2.0).truth
    law = stats.norm(truth.mean[0], np.sqrt(truth.covariance[0, 0]))
    assert stats.kstest(run.draws[:, -1, 0], law.cdf).pvalue > 1e-4
    assert stats.kstest(run.draws[:, -1, 0] + 0.05, law.cdf).pvalue < 1e-12


def test_the_same_functions_compile_once():
    first, second = posterior(squares, DATA, 2), posterior(squares, DATA[:3], 2, batch_size=2)
    assert first.energy_gradient is second.energy_gradient
    assert posterior_block(bound(squares), None, 2, 3, False) is first.energy_gradient


BAD = {
    "no function": ({"datum": 3.0}, TypeError, r"datum must be a function \(x, row\) → .* got 3\.0"),
    "arguments": ({"datum": lambda x: (0.0, (0.0, 0.0))}, TypeError, r"datum must be a function \(x, row\)"),
    "not compiled": ({"datum": lambda x, row: (str(row).nothing, x)}, TypeError, "that Numba can compile: "),
    "one value": ({"datum": lambda x, row: x[0]}, TypeError, "it returns float64"),
    "energy": ({"datum": lambda x, row: (1j, x)}, TypeError, "an energy that is a real number; it returns complex128"),
    "short": ({"datum": lambda x, row: (x[0], (x[0],))}, TypeError,
              r"gradient that is a tuple of 2 floats \(0\.0, not 0\) or an array of them; it returns UniTuple"),
    "mixed": ({"datum": lambda x, row: (x[0], (x[0], 0))}, TypeError, r"a tuple of 2 floats \(0\.0, not 0\)"),
    "data": ({"data": np.zeros((0, 3))}, ValueError, r"data must have shape \(data, columns\).*got \(0, 3\)"),
    "nan": ({"data": [[0.0, np.nan, 1.0]]}, ValueError, r"data must be finite, got nan at \[0, 1\]"),
    "dim": ({"dim": 0}, ValueError, "dim must be ≥ 1 and < 1024, got 0"),
    "prior": ({"prior": -1.0}, ValueError, r"prior must be finite and > 0, got -1.0"),
    "prior function": ({"prior": lambda x: x[0]}, TypeError, r"prior must be a function \(x\).* it returns float64"),
    "prior word": ({"prior": "flat"}, TypeError, "prior must be a number, got 'flat'"),
    "batch": ({"batch_size": 0}, ValueError, "batch_size must be ≥ 1"),
    "refresh": ({"refresh_every": 3}, ValueError, "refresh_every needs a batch_size"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_posteriors_are_refused(name):
    change, kind, message = BAD[name]
    with pytest.raises(kind, match=message):
        posterior(**{"datum": squares, "data": DATA, "dim": 2, **change})
