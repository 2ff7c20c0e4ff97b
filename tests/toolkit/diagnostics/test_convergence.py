"""Autocorrelation, ESS and R̂: ArviZ's numbers to rounding, AR(1) chains, independent draws, weighted chains."""

import numpy as np
import pytest
from scipy import stats
from scipy.signal import lfilter

from tests.support.laws import deviation
from toolkit import diagnostics as d
from toolkit.diagnostics import convergence
from toolkit.diagnostics.convergence import ranks

SIGMAS = 4.5  # a right law fails with probability 7e-6 per comparison


def ar1(rng, phi, shape):
    """Stationary AR(1) chains (…, draw) with coefficient ``phi`` and variance 1."""
    noise = rng.standard_normal(shape) * np.sqrt(1.0 - phi**2)
    noise[..., 0] /= np.sqrt(1.0 - phi**2)
    return lfilter([1.0], [1.0, -phi], noise, axis=-1)


METHODS = ("bulk", "tail", "mean")
SHAPES = [(1, 4), (1, 5), (2, 4), (2, 6), (1, 7), (2, 9), (3, 10), (4, 101), (4, 1000), (1, 777), (2, 5001)]


@pytest.mark.parametrize("phi", [0.0, 0.5, 0.999, -0.5, -0.9])
@pytest.mark.parametrize("rounded", [False, True])
def test_ess_and_r_hat_are_arviz_s(phi, rounded):
    diagnostics = pytest.importorskip("arviz.stats.diagnostics")
    rng = np.random.default_rng(3)
    for shape in SHAPES:
        chains = ar1(rng, phi, shape)
        if rounded:  # ties
            chains = np.round(4.0 * chains)
        if (chains == chains[0, 0]).all():
            continue  # where ArviZ gives the number of draws
        with np.errstate(divide="ignore", invalid="ignore"):  # of chains that do not move
            theirs = [diagnostics.ess(chains, method=method) for method in METHODS]
            r_hat = diagnostics.rhat(chains) if len(chains) > 1 else None
        ours = [d.ess(chains[..., None], method=method)[0] for method in METHODS]
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, err_msg=str(shape))
        if r_hat is not None:
            np.testing.assert_allclose(d.r_hat(chains[..., None])[0], r_hat, rtol=1e-10, err_msg=str(shape))


@pytest.mark.parametrize("phi", [0.9, 0.5, 0.0, -0.3])
@pytest.mark.parametrize("method", ["bulk", "mean"])
def test_ess_of_ar1_chains(phi, method):
    """Mean over 150 repeats within 2 % (the sum's end, positive on average) and errors of n (1 − φ) / (1 + φ)."""
    chains = ar1(np.random.default_rng(5), phi, (150, 2, 10_000))
    values = np.array([d.ess(c[..., None], method=method)[0] for c in chains])
    law = 20_000 * (1.0 - phi) / (1.0 + phi)
    error = SIGMAS * values.std(ddof=1) / np.sqrt(150)
    assert abs(values.mean() - law) < error + 0.02 * law
    assert abs(values.mean() - 1.1 * law) > error + 0.02 * law
    assert values.std() < 0.12 * law


@pytest.mark.parametrize("n_replicas", [3, 5, 30])
@pytest.mark.parametrize("weighted", [False, True])
def test_ess_of_replicas_whose_draws_lie_next_to_each_other(n_replicas, weighted):
    """As in ``run.draws`` of ``icsgld``: correlation rises again after each draw of all replicas."""
    rng, phi, n = np.random.default_rng(8), 0.9, 2_000
    values = []
    for _ in range(40):
        replicas = ar1(rng, phi, (2, n_replicas, n))
        draws = np.swapaxes(replicas, 1, 2).reshape(2, -1, 1)
        weights = rng.uniform(0.99, 1.01, draws.shape[:2]) if weighted else None
        values.append(d.ess(draws, weights=weights, method="mean")[0])
    law = 2 * n_replicas * n * (1.0 - phi) / (1.0 + phi)
    assert abs(np.mean(values) / law - 1.0) < 0.03 + SIGMAS * np.std(values) / law / np.sqrt(40)


def test_correlation_rises_by_more_than_chance_in_chains_of_replicas_alone(monkeypatch):
    found = []
    monkeypatch.setattr(convergence, "rise", lambda *args, rise=convergence.rise: found.append(rise(*args)) or 0)
    rng = np.random.default_rng(9)
    for n in (8, 64, 400, 4000):
        for phi in (-0.8, 0.0, 0.5, 0.9, 0.99):
            for _ in range(50):
                d.ess(ar1(rng, phi, (4, n))[..., None], method="mean")
    assert len(found) == 1000
    assert np.count_nonzero(found) <= 3


def test_antithetic_chains_end_at_the_cap():
    chains = ar1(np.random.default_rng(6), -0.9, (2, 5000))
    assert d.ess(chains[..., None])[0] == pytest.approx(10_000 * 4.0)


def test_ess_of_the_tail_is_that_of_the_indicator():
    """Of x < the 5 % quantile of an AR(1): autocorrelations (Φ₂(q, q; φ^k) − p²) / (p (1 − p)); both tails alike."""
    phi, p = 0.8, 0.05
    q = stats.norm.ppf(p)
    joint = [stats.multivariate_normal([0, 0], [[1, phi**k], [phi**k, 1]]).cdf([q, q]) for k in range(1, 40)]
    law = 20_000 / (1.0 + 2.0 * np.sum((np.array(joint) - p**2) / (p * (1.0 - p))))
    chains = ar1(np.random.default_rng(7), phi, (100, 2, 10_000))
    values = np.array([d.ess(c[..., None], method="tail")[0] for c in chains])
    assert 0.85 * law < values.mean() < 1.02 * law  # of two the smaller, each ± 10 %
    bulk = 20_000 * (1.0 - phi) / (1.0 + phi)
    assert not 0.85 * bulk < values.mean() < 1.02 * bulk


@pytest.mark.parametrize("method", ["bulk", "tail", "mean"])
def test_equal_weights_change_nothing_and_a_chain_s_factor_neither(method):
    rng = np.random.default_rng(8)
    draws = ar1(rng, 0.7, (3, 2, 501)).transpose(1, 2, 0)
    plain = d.ess(draws, method=method)
    np.testing.assert_array_equal(
        plain, d.ess(draws, weights=np.array([[1e-9], [7.0]]) * np.ones((2, 501)), method=method)
    )
    weights = np.ones((2, 501))
    weights[0, 0] *= 1.0 + 1e-9  # all the way through what weights go through
    np.testing.assert_allclose(d.ess(draws, weights=weights, method=method), plain, rtol=1e-5)
    np.testing.assert_allclose(d.r_hat(draws, weights=weights), d.r_hat(draws), rtol=1e-7)
    uneven = rng.random((2, 501))
    scaled = uneven * np.array([[1e-100], [1e100]])
    np.testing.assert_allclose(
        d.ess(draws, weights=scaled, method=method), d.ess(draws, weights=uneven, method=method), rtol=1e-9
    )


@pytest.mark.parametrize("phi", [0.0, 0.9])
def test_weighted_ess_is_the_variance_of_the_weighted_mean(phi):
    """An AR(1) from N(0, 1), weighted to N(0.4, 0.8²): var f / ESS is what the estimate does over 1,500 repeats."""
    chains = ar1(np.random.default_rng(9), phi, (1500, 2, 2000))
    weights = np.exp(-0.5 * ((chains - 0.4) / 0.8) ** 2 + 0.5 * chains**2)
    estimates = ((weights * chains).sum(axis=2) / weights.sum(axis=2)).mean(axis=1)
    variance = estimates.var(ddof=1)
    claims = np.array(
        [
            0.64 / d.ess(c[..., None], weights=w, method="mean")[0]
            for c, w in zip(chains[:300], weights[:300], strict=True)
        ]
    )
    allowed = SIGMAS * np.sqrt(2.0 / 1500 + claims.var() / claims.mean() ** 2 / 300) + 0.03
    assert abs(claims.mean() / variance - 1.0) < allowed
    if phi:  # neither half of it will do
        kish = np.mean([0.64 / d.weighted_ess(w).sum() for w in weights[:300]])
        chain = np.mean([0.64 / d.ess(c[..., None], method="mean")[0] for c in chains[:300]])
        for wrong in (kish, chain):
            assert abs(wrong / variance - 1.0) > allowed


def test_weighted_ess_is_by_what_is_summed_and_not_by_the_coordinate():
    """x = s a, s random signs and a an AR(1), is white; weighted by 1 + 0.8 s it sums s a + 0.8 a, which is not.

    Variance of the estimate, with n draws: (1 + 0.64 · 19) / n.
    """
    rng, n = np.random.default_rng(19), 2 * 4000
    slow = ar1(rng, 0.9, (200, 2, 4000))
    signs = rng.choice([-1.0, 1.0], slow.shape)
    claims = [
        1.0 / d.ess((s * a)[..., None], weights=1.0 + 0.8 * s, method="mean")[0]
        for s, a in zip(signs, slow, strict=True)
    ]
    law = (1.0 + 0.64 * 19.0) / n
    assert abs(np.mean(claims) - law) < SIGMAS * np.std(claims) / np.sqrt(200) + 0.05 * law
    white = (1.0 + 0.64) / n
    assert abs(np.mean(claims) - white) > SIGMAS * np.std(claims) / np.sqrt(200) + 0.05 * law


def test_weighted_bulk_and_tail_follow_the_weights():
    """Weights 0 or 1 leave a chain of fewer draws: ESS for it is near that of these draws alone."""
    rng = np.random.default_rng(10)
    draws, kept = rng.standard_normal((2, 20_000, 1)), rng.binomial(1, 0.3, (2, 20_000))
    for method in ("bulk", "tail", "mean"):
        assert d.ess(draws, weights=kept, method=method)[0] == pytest.approx(kept.sum(), rel=0.15)


def test_ranks_are_scipy_s():
    values = np.array([3.0, 1.0, 3.0, 2.0, 9.0, 1.0])
    np.testing.assert_array_equal(ranks(values, None), stats.rankdata(values))
    np.testing.assert_allclose(ranks(values, np.ones(6)), stats.rankdata(values), rtol=1e-14)
    doubled = ranks(np.repeat(values, 2), None)[::2]  # a weight of two is a value that is there twice
    np.testing.assert_allclose(ranks(values, np.full(6, 2.0)), doubled, rtol=1e-14)


def test_coordinates_that_do_not_move_have_no_number():
    draws = np.ones((2, 100, 2))
    draws[..., 1] = np.random.default_rng(1).standard_normal((2, 100))
    for method in ("bulk", "tail", "mean"):
        assert np.isnan(d.ess(draws, method=method)).tolist() == [True, False]
    assert np.isnan(d.r_hat(draws)).tolist() == [True, False]
    assert np.isnan(d.ess_by_cutoff(draws)).tolist() == [[True, False]] * 2
    assert np.isnan(d.autocorrelation(draws)[:, 3]).tolist() == [[True, False]] * 2
    assert np.isnan(d.ess(draws[:, :3])).all()
    assert np.isnan(d.r_hat(draws[:, :3])).all()
    one = np.zeros((2, 100))
    one[:, 7] = 1.0  # all weight on one draw
    assert np.isnan(d.ess(draws, weights=one)).all()
    assert np.isnan(d.r_hat(draws, weights=one)).all()


def test_chains_stuck_apart():
    """Each chain at a place of its own: as many draws as chains, about, and no spread within."""
    draws = np.repeat(np.arange(4.0)[:, None, None], 1000, axis=1)
    assert d.ess(draws)[0] < 20
    assert d.r_hat(draws)[0] == np.inf


def test_r_hat_of_independent_draws_is_an_f_ratio():
    """n (R̂² − 1) + 1 over 3,000 repeats has the law of the larger of two F(7, 8 · 49); Kolmogorov's test."""
    draws = np.random.default_rng(11).standard_normal((4, 100, 3000))
    ratio = 50 * (d.r_hat(draws) ** 2 - 1.0) + 1.0
    law = stats.f(7, 8 * 49)
    assert stats.kstest(ratio, lambda x: law.cdf(x) ** 2).pvalue > 1e-5
    assert stats.kstest(ratio, law.cdf).pvalue < 1e-9
    unsplit = stats.f(3, 4 * 99)
    assert stats.kstest(ratio, lambda x: unsplit.cdf(x) ** 2).pvalue < 1e-9


def test_r_hat_of_shifted_and_widened_chains():
    """Four chains, one apart by s: by bulk; one wider: by folding, which the ranks alone would not see."""
    rng = np.random.default_rng(12)
    draws = rng.standard_normal((4, 4000, 2))
    draws[0, :, 0] += 1.0
    draws[0, :, 1] *= 3.0
    assert (d.r_hat(draws) > 1.05).all()
    assert (d.r_hat(rng.standard_normal((4, 4000, 2))) < 1.005).all()
    drifting = np.linspace(0.0, 1.0, 4000)[None, :, None] + 0.1 * rng.standard_normal((1, 4000, 1))
    assert d.r_hat(drifting)[0] > 1.5  # one chain, against itself


def test_weighted_r_hat_compares_weighted_chains():
    """Chains from N(0, 1) and N(0.5, 1) agree once weighted to one law, and not before."""
    rng = np.random.default_rng(13)
    shift = np.array([0.0, 0.0, 1.0, 1.0])[:, None]
    x = rng.standard_normal((4, 20_000)) + shift
    weights = np.exp(-0.5 * (x - 0.5) ** 2 + 0.5 * (x - shift) ** 2)
    assert d.r_hat(x[..., None])[0] > 1.1
    assert d.r_hat(x[..., None], weights=weights)[0] < 1.005


@pytest.mark.parametrize("phi", [0.0, 0.8, -0.6])
def test_autocorrelation_of_ar1_chains(phi):
    """φ^lag, less the bias of own means, about (1 + φ) / (1 − φ) / n and more where φ > 0; over 400 chains."""
    n = 2000
    found = d.autocorrelation(ar1(np.random.default_rng(14), phi, (400, n))[..., None], n_lags=12)[..., 0]
    assert found.shape == (400, 13)
    assert (found[:, 0] == 1.0).all()
    for lag in (1, 2, 5, 12):
        slack = 3.0 * (1.0 + abs(phi)) / (1.0 - abs(phi)) / n
        error = SIGMAS * found[:, lag].std(ddof=1) / 20.0
        assert abs(found[:, lag].mean() - phi**lag) < error + slack
        assert abs(found[:, lag].mean() - (phi**lag + 0.1)) > error + slack


def test_autocorrelation_is_its_sum_and_that_of_independent_draws():
    draws = np.random.default_rng(15).standard_normal((2000, 50, 1))
    found = d.autocorrelation(draws)
    x = draws[7, :, 0] - draws[7].mean()
    np.testing.assert_allclose(
        found[7, :, 0], [(x[: 50 - k] * x[k:]).sum() / (x**2).sum() for k in range(50)], atol=1e-13
    )
    np.testing.assert_allclose(found[:, 1:].sum(axis=1), -0.5, atol=1e-10)
    assert deviation(found[:, 1, 0], -1.0 / 50) < SIGMAS
    assert deviation(found[:, 1, 0], 0.0) > SIGMAS
    assert found[:, 1, 0].std() == pytest.approx(1.0 / np.sqrt(50), rel=0.1)


@pytest.mark.parametrize("phi", [0.9, 0.5])
def test_ess_by_cutoff_with_the_law_s_moments(phi):
    """n (1 − φ) / (1 + φ − 2 φ^k) for the sum up to lag k − 1; the full sum's number is rejected."""
    n = 20_000
    chains = ar1(np.random.default_rng(16), phi, (200, n))
    values = d.ess_by_cutoff(chains[..., None], mean=[0.0], variance=[1.0])[:, 0]
    k = int(np.ceil(np.log(0.05) / np.log(phi)))
    law = n * (1.0 - phi) / (1.0 + phi - 2.0 * phi**k)
    assert abs(values.mean() - law) < SIGMAS * values.std() / np.sqrt(200) + 0.015 * law  # k itself is random by one
    full = n * (1.0 - phi) / (1.0 + phi)
    assert abs(values.mean() - full) > SIGMAS * values.std() / np.sqrt(200) + 0.015 * law


def test_ess_by_cutoff_in_numbers():
    x = np.random.default_rng(17).standard_normal(60).cumsum()
    mean, variance, n = 0.3, 20.0, 60
    total = 0.0
    for s in range(1, n):
        rho = ((x[s:] - mean) * (x[: n - s] - mean)).sum() / (variance * (n - s))
        if rho < 0.05:
            break
        total += (1.0 - s / n) * rho
    value = d.ess_by_cutoff(x[None, :, None], mean=[mean], variance=[variance])[0, 0]
    assert value == pytest.approx(min(n, n / (1.0 + 2.0 * total)), rel=1e-12)
    stuck = 3.0 + 0.1 * np.random.default_rng(18).standard_normal((1, 500, 1))
    assert d.ess_by_cutoff(stuck)[0, 0] > 300  # by its own moments it looks well
    assert d.ess_by_cutoff(stuck, mean=[0.0], variance=[9.0])[0, 0] < 2


@pytest.mark.parametrize("size", [2.0**600, 2.0**-600])
def test_squares_of_huge_and_tiny_draws_do_not_matter(size):
    draws = ar1(np.random.default_rng(20), 0.5, (2, 301))[..., None]
    weights = np.random.default_rng(21).random((2, 301))
    for function in (d.autocorrelation, d.ess_by_cutoff, lambda x: d.ess(x, method="mean"),
                     lambda x: d.ess(x, method="mean", weights=weights)):  # fmt: skip
        np.testing.assert_array_equal(function(size * draws), function(draws))


def test_draws_without_weight_do_not_move_a_coordinate():
    draws, weights = np.ones((1, 40, 1)), np.ones((1, 40))
    draws[0, ::7], weights[0, ::7] = 2.0, 0.0
    for method in METHODS:
        assert np.isnan(d.ess(draws, weights=weights, method=method)).all()
    assert np.isnan(d.r_hat(draws, weights=weights)).all()
    draws[0, 3] = 0.0  # the share below the 95 % quantile is that of all that have weight
    assert d.ess(draws, weights=weights, method="tail")[0] > 30
    middle = np.zeros((1, 41))
    middle[0, 20] = 1.0  # the draw that belongs to no half
    moving = np.random.default_rng(22).standard_normal((1, 41, 1))
    assert np.isnan([d.ess(moving, weights=middle)[0], d.r_hat(moving, weights=middle)[0]]).all()


def test_one_draw_and_a_constant_with_rounding():
    assert np.isnan(d.r_hat(np.zeros((2, 1, 1)))).all()
    assert np.isnan(d.ess_by_cutoff(np.full((1, 1000, 1), 0.1))).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: d.ess(np.zeros((5, 2))), r"draws must have shape \(chain, draw, dim\), got \(5, 2\)"),
        (lambda: d.ess(np.zeros((0, 5, 2))), r"draws must have shape \(chain, draw, dim\)"),
        (lambda: d.ess([[["a"]]]), "draws must be an array of real numbers"),
        (lambda: d.ess([[[np.nan]]]), "draws must be finite"),
        (lambda: d.ess(np.zeros((1, 9, 1)), method="quick"), "method must be one of 'bulk', 'tail', 'mean'"),
        (
            lambda: d.ess(np.zeros((1, 9, 1)), weights=np.ones((1, 8))),
            "weights must have the chains and draws of draws",
        ),
        (lambda: d.ess(np.zeros((1, 2, 1)), weights=[[1, -1]]), "weights must be ≥ 0"),
        (lambda: d.r_hat(np.zeros(5)), r"draws must have shape \(chain, draw, dim\)"),
        (lambda: d.r_hat(np.zeros((1, 2, 1)), weights=[[0, 0]]), "weights must not all be 0"),
        (lambda: d.autocorrelation(np.zeros((1, 5, 1)), n_lags=5), "n_lags must be ≥ 0 and < 5"),
        (lambda: d.ess_by_cutoff(np.zeros((1, 5, 1)), cutoff=1.0), "cutoff must be finite and > 0 and < 1"),
        (lambda: d.ess_by_cutoff(np.zeros((1, 5, 1)), mean=[0, 0]), r"mean must have shape \(1,\), got \(2,\)"),
        (lambda: d.ess_by_cutoff(np.zeros((1, 5, 1)), variance=[0]), "variance must be > 0, got 0"),
    ],
)
def test_bad_arguments_are_refused(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()
