"""Supports: probabilities of terms equal to enumeration, draws of the posterior they belong to, scales of the data."""

import itertools
import math
from typing import NamedTuple

import numpy as np
import pytest
from scipy import stats
from scipy.special import beta, logsumexp

from sysid import priors
from sysid.data.series import Series
from sysid.libraries import functions, polynomial
from sysid.model import as_model, model_of
from sysid.sparsity import (
    Chain,
    GibbsState,
    Mixtures,
    NormalLikelihood,
    compiled_exchange,
    compiled_update,
    grouped_by,
    inclusion_probabilities,
    mixtures_of,
    natural_scales,
    precision_root,
    sparse_posterior,
    sparse_prior,
    term_degrees,
)


class Known(NamedTuple):
    names: tuple
    quadratic: tuple


def correlated(q=5, seed=0):
    """A quadratic whose last two coefficients all but stand in for each other."""
    rng = np.random.default_rng(seed)
    n_rows = max(40, 3 * q)
    design = rng.standard_normal((n_rows, q))
    design[:, -1] = design[:, -2] + 0.25 * rng.standard_normal(n_rows)
    truth = np.array([1.0, 0.0, 0.5, *np.zeros(q - 3)])
    truth[-1] = 0.4
    precision = design.T @ design
    mean = truth + np.linalg.cholesky(np.linalg.inv(precision)) @ rng.standard_normal(q)
    return Known(tuple(f"{k}" for k in range(q)) if q > 8 else tuple("abcdefgh"[:q]), (mean, precision, 0.0))


def enumerated(known, laws, groups=None):
    """Inclusion probabilities, means and second moments by the sum over all parts.

    groups: numbers of coefficients that share a rate, which is uniform in [0, 1]; of laws with one spike and one slab.
    """
    mean, precision, _ = known.quadratic
    noise = np.linalg.inv(precision)
    logs, presence, first, second = [], [], [], []
    for which in itertools.product(*[range(len(law.weights)) for law in laws]):
        variances = np.array([law.scales[k] ** 2 for law, k in zip(laws, which, strict=True)])
        prior = sum(math.log(law.weights[k]) for law, k in zip(laws, which, strict=True))
        if groups is not None:
            counts = [[k for k, g in zip(which, groups, strict=True) if g == one] for one in set(groups)]
            prior = sum(math.log(beta(1 + sum(c), 1 + len(c) - sum(c))) for c in counts)  # ∫ r^k (1 − r)^(n − k) dr
        marginal = stats.multivariate_normal(np.zeros(len(mean)), noise + np.diag(variances)).logpdf(mean)
        cov = np.linalg.inv(precision + np.diag(1.0 / variances))
        logs.append(prior + marginal)
        presence.append([k >= law.spikes for law, k in zip(laws, which, strict=True)])
        first.append(cov @ precision @ mean)
        second.append(np.diag(cov) + first[-1] ** 2)
    shares = np.exp(np.array(logs) - logsumexp(logs))
    return tuple(shares @ np.array(x, float) for x in (presence, first, second))


LAWS = (priors.spike_and_slab(0.05, 2.0, inclusion=0.4),) * 5


@pytest.fixture(params=[64, 0], ids=["in loops", "by LAPACK"])
def each_way(request, monkeypatch):
    """Of few coefficients and of many."""
    monkeypatch.setattr("sysid.sparsity.MAX_LOOPED", request.param)


@pytest.mark.usefixtures("each_way")
def test_inclusion_probabilities_are_those_of_enumeration():
    """Within 4.5 standard errors of 4 chains' means, each of 1000 sweeps, some 250 of them independent; and 0.01."""
    known = correlated()
    expected = enumerated(known, LAWS)[0]
    found = inclusion_probabilities(known, LAWS[0], sweeps=1250)
    assert list(found) == list(known.names)
    error = np.sqrt(expected * (1.0 - expected) / 1000)
    assert (np.abs(np.array(list(found.values())) - expected) < 4.5 * error + 0.01).all()
    assert ((expected > 0.1) & (expected < 0.9)).sum() >= 2  # where a wrong odds would show
    wrong = enumerated(known, (priors.spike_and_slab(0.05, 2.0, inclusion=0.6),) * 5)[0]
    assert (np.abs(wrong - expected) > 4.5 * error + 0.01).any()


@pytest.mark.slow_cases("by LAPACK")  # whose coefficients the test above draws
@pytest.mark.usefixtures("each_way")
def test_inclusion_with_unknown_rates_is_that_of_enumeration():
    """As above; the mixtures' own rate is of no account, but the groups are."""
    known, groups = correlated(), (1, 1, 4, 1, 1)
    expected = enumerated(known, LAWS, groups)[0]
    laws = priors.spike_and_slab(0.05, 2.0, inclusion=0.9)
    found = np.array(list(inclusion_probabilities(known, laws, groups=groups, sweeps=5000).values()))
    error = 4.5 * np.sqrt(expected * (1.0 - expected) / 2000) + 0.01
    assert (np.abs(found - expected) < error).all()
    for wrong in (enumerated(known, LAWS)[0], enumerated(known, LAWS, (1, 2, 3, 4, 5))[0]):
        assert (np.abs(wrong - expected) > error).any()


def test_unknown_rates_leave_alone_what_is_always_present():
    """A normal in the same group: of one other coefficient, whose rate is uniform, so that its odds are even."""
    known, normal = correlated(q=3, seed=2), priors.gaussian(0.0, 0.5)
    given = {"a": normal, "b": priors.spike_and_slab(0.05, 2.0, inclusion=0.9), "c": normal}
    even = given | {"b": priors.spike_and_slab(0.05, 2.0)}
    found, expected = sparse_posterior(known, given, groups=[7, 7, 7], sweeps=1250), sparse_posterior(known, even)
    assert found.inclusion[0] == 1.0
    assert 0.05 < expected.inclusion[1] < 0.95
    assert abs(found.inclusion[1] - expected.inclusion[1]) < 0.05


def test_parts_that_mean_the_same_keep_their_shares():
    laws = (priors.Prior(LAWS[0].kind, weights=(0.1, 0.3, 0.6), scales=(0.03, 0.3, 3.0), spikes=2),) * 2
    mixtures = mixtures_of(laws, ("a", "b"), np.ones(2))
    assert np.allclose(np.exp(grouped_by([0, 0], mixtures).log_shares), [[0.25, 0.75, 1.0]] * 2)


def test_degrees_of_terms_are_the_groups():
    """Of all terms in each of two equations; of functions −1."""
    library = polynomial(("x", "y"), 2) + functions(("x", "y"), {"root": lambda x: abs(x[0]) ** 0.5})
    assert term_degrees(library).tolist() == [0, 1, 1, 2, 2, 2, -1] * 2
    with pytest.raises(ValueError, match=r"groups must have shape \(5,\), got \(4,\)"):
        sparse_posterior(correlated(), LAWS[0], groups=[0] * 4)
    with pytest.raises(TypeError, match="groups must be integers"):
        sparse_posterior(correlated(), LAWS[0], groups=[0.5] * 5)


@pytest.mark.usefixtures("each_way")
def test_draws_have_the_posterior_s_moments():
    known = correlated(seed=3)
    _, first, second = enumerated(known, LAWS)
    sparse = sparse_posterior(known, LAWS[0], sweeps=1500, seed=1)
    sd = np.sqrt(second - first**2)
    assert (np.abs(sparse.draws.mean(axis=0) - first) < 4.5 * sd / np.sqrt(1000)).all()
    assert np.allclose(sparse.draws.std(axis=0), sd, rtol=0.15)


@pytest.mark.usefixtures("each_way")
def test_mixtures_of_many_parts_and_normals_may_stand_together():
    known = correlated(q=4, seed=2)
    shrink = priors.Prior(LAWS[0].kind, weights=(0.3, 0.3, 0.4), scales=(0.03, 0.3, 3.0), spikes=2)
    laws = (shrink, shrink, priors.Prior(LAWS[0].kind, weights=(1.0,), scales=(0.5,)), shrink)
    expected, first, _ = enumerated(known, laws)
    given = dict(zip(known.names, (shrink, shrink, priors.gaussian(0.0, 0.5), shrink), strict=True))
    sparse = sparse_posterior(known, given, sweeps=1250)
    assert np.allclose(sparse.inclusion, expected, atol=0.05)
    assert sparse.inclusion[2] == 1.0
    assert np.allclose(sparse.draws.mean(axis=0), first, atol=0.1)


@pytest.mark.usefixtures("each_way")
def test_without_spikes_it_is_the_gaussian_posterior():
    mean, precision, _ = correlated().quadratic
    sparse = sparse_posterior(correlated(), priors.gaussian(0.7, 0.3), sweeps=1250)
    cov = np.linalg.inv(precision + np.eye(5) / 0.09)
    exact = cov @ (precision @ mean + 0.7 / 0.09)
    n = len(sparse.draws)  # independent
    assert (np.abs(sparse.draws.mean(axis=0) - exact) < 4.5 * np.sqrt(np.diag(cov) / n)).all()
    assert np.allclose(np.cov(sparse.draws.T), cov, rtol=0.1, atol=0.1 * np.diag(cov).min())
    flat = sparse_posterior(correlated(), None, sweeps=400)
    assert (np.abs(flat.draws.mean(axis=0) - mean) < 5.0 * np.sqrt(np.diag(np.linalg.inv(precision)) / 1280)).all()


def test_results_name_the_median_model_and_intervals():
    sparse = sparse_posterior(correlated(), LAWS[0], sweeps=200)
    assert sparse.support == tuple(n for n, p in zip(sparse.names, sparse.inclusion, strict=True) if p >= 0.5)
    low, high = sparse.intervals(0.5)
    inside = (low <= sparse.draws) & (sparse.draws <= high)
    assert np.allclose(inside.mean(axis=0), 0.5, atol=2.0 / len(sparse.draws))
    assert np.array_equal(sparse.median, np.median(sparse.draws, axis=0))


def test_the_seed_decides_every_draw():
    runs = [sparse_posterior(correlated(), LAWS[0], sweeps=50, seed=seed).draws for seed in (1, 1, 2)]
    assert np.array_equal(runs[0], runs[1])
    assert not np.array_equal(runs[0], runs[2])
    assert sparse_posterior(correlated(), LAWS[0], sweeps=10, seed=2**64 - 1).draws.shape[1] == 5
    with pytest.raises(ValueError, match="seed must be ≥ 0 and < 18446744073709551616"):
        sparse_posterior(correlated(), LAWS[0], sweeps=10, seed=2**64)


def test_natural_scales_are_those_of_the_velocities():
    times = np.linspace(0.0, 20.0, 2001)
    values = np.column_stack([np.cos(2.0 * times), 3.0 * np.sin(2.0 * times)])
    model = as_model(polynomial(("x", "y"), 1))
    scales = natural_scales(Series(times, values, ("x", "y")), model)
    root = math.sqrt(0.5)
    speeds, sizes = (2.0 * root, 6.0 * root), (1.0, root, 3.0 * root)
    assert np.allclose(scales, [v / s for v in speeds for s in sizes], rtol=0.02)


def test_sparse_priors_follow_scales_and_precision():
    known = correlated()
    laws = sparse_prior(known, np.full(5, 2.0), inclusion=0.3, slab=4.0)
    finer = sparse_prior(known, np.full(5, 2.0), spike=0.02)
    for k, name in enumerate(known.names):
        assert finer[name].scales[0] == min(0.02 / math.sqrt(known.quadratic[1][k, k]), 0.006) < laws[name].scales[0]
        assert laws[name].scales[1] == 8.0
        assert laws[name].scales[0] == min(0.1 / math.sqrt(known.quadratic[1][k, k]), 0.008)
        assert laws[name].weights == (0.7, 0.3)


def test_bad_input_is_refused():
    known = correlated()
    with pytest.raises(ValueError, match=r"prior\['a'\] must be flat, Gaussian or a mixture"):
        sparse_posterior(known, priors.laplace())
    with pytest.raises(ValueError, match="prepared must be a quadratic likelihood"):
        sparse_posterior(known._replace(quadratic=None), LAWS[0])
    with pytest.raises(ValueError, match="sweeps must be ≥ 10"):
        sparse_posterior(known, LAWS[0], sweeps=1)
    with pytest.raises(ValueError, match=r"scales must have shape \(5,\)"):
        sparse_prior(known, np.ones(3))
    with pytest.raises(ValueError, match=r"scales must be finite and > 0, got 0 of 'b'$"):
        sparse_prior(known, [1.0, 0.0, 1.0, 1.0, 1.0])


def test_terms_that_are_0_throughout_have_no_scale_and_are_refused_by_name():
    times = np.linspace(0.0, 5.0, 501)
    series = Series(times, np.column_stack([np.cos(times), np.zeros(501)]), ("x", "y"), velocities=None)
    model = model_of(polynomial(("x", "y"), 1), free=["dx:x", "dx:y"])
    scales = natural_scales(series, model)
    assert np.isfinite(scales).tolist() == [True, False]
    known = Known(("dx:x", "dx:y"), (np.zeros(2), np.eye(2), 0.0))
    with pytest.raises(ValueError, match=r"got inf of 'dx:y': its terms are 0 throughout the data, leave them out of"):
        sparse_prior(known, scales)


def test_rounding_of_updates_is_kept_small():
    """Of 90 coefficients, mean and covariance after sweeps of updates are those computed anew."""
    mean, precision, _ = correlated(q=90, seed=4).quadratic
    mixtures = mixtures_of(LAWS[:1] * 90, tuple(f"c{k}" for k in range(90)), np.ones(90))
    chain = Chain(NormalLikelihood(precision, precision @ mean), precision_root(precision), mixtures, wide=False)
    assert not chain.is_looped
    rng, parts = np.random.default_rng(0), set()
    for _ in range(40):
        chain.sweep(rng, split=False)
        parts.add(tuple(chain.state.component))
        updated = chain.state.cov.copy(), chain.state.mean.copy()
        error = chain.state.error[0]
        chain.update()
        for kept, anew in zip(updated, (chain.state.cov, chain.state.mean), strict=True):
            np.testing.assert_allclose(kept, anew, atol=1e-8 * np.abs(anew).max())
        chain.state.cov[:], chain.state.mean[:], chain.state.error[0] = *updated, error
    assert len(parts) > 30


def test_exchanges_alone_keep_the_odds_of_two_supports():
    """Of two terms one is there; the share of exchanges' states with the first is its odds, within 4.5 errors."""
    settle, exchange = compiled_update(), compiled_exchange()
    precision, mean = np.array([[9.0, 8.0], [8.0, 9.0]]), np.array([0.5, 0.3])
    variances = np.array([[0.01, 4.0], [0.02, 1.0]])
    log_weights = np.log([[0.6, 0.4], [0.5, 0.5]])
    odds = []
    for which in ((1, 0), (0, 1)):
        rows = (np.arange(2), which)
        law = stats.multivariate_normal(np.zeros(2), np.linalg.inv(precision) + np.diag(variances[rows]))
        odds.append(law.logpdf(mean) + log_weights[rows].sum())
    expected = 1.0 / (1.0 + math.exp(odds[1] - odds[0]))
    assert 0.2 < expected < 0.8
    state = GibbsState(
        component=np.array([1, 0]), present=np.array([True, False]), presence=np.ones(2), mean=np.empty(2),
        cov=np.empty((2, 2)), root=np.empty((2, 2)), scale=np.empty(2), error=np.zeros(1),
    )  # fmt: skip
    mixtures = Mixtures(log_weights, variances, np.array([[False, True]] * 2), np.array([2, 2]))
    likelihood = NormalLikelihood(precision, precision @ mean)
    settle(likelihood, variances, state)
    first, n = 0, 20_000
    for uniform in np.random.default_rng(0).random(n):
        if exchange(mixtures, state, 0, 1, uniform):
            settle(likelihood, variances, state)
        first += state.component[0]
        assert state.present.tolist() == state.component.astype(bool).tolist()
    assert abs(first / n - expected) < 4.5 / math.sqrt(n)
