"""Linear regression: its truth, its minibatches against closed forms, and what samplers make of them."""

import numpy as np
import pytest
from scipy import stats

from targets.posteriors.linear import linear_regression
from targets.posteriors.quadratic import quadratic_numbers, use_quadratic
from tests.support.laws import SIGMAS, estimates, has_moments
from toolkit import Layout, Sampler, dynamics, sample, samplers, tempering
from toolkit._compiler.block_rows import COUNTER_ROWS
from toolkit._compiler.decorators import compile_part
from toolkit._compiler.signatures import TARGET
from toolkit.tempering.contour_tempering import Partition

N, DIM, DRAWN, NOISE, PRIOR = 60, 3, 8, 0.7, 2.0
RNG = np.random.default_rng(5)
FEATURES = np.column_stack([np.ones(N), RNG.standard_normal(N), RNG.uniform(-2, 1, N)])
RESPONSE = FEATURES @ [0.5, -1.0, 0.8] + NOISE * RNG.standard_normal(N)
POINTS = RNG.standard_normal((7, DIM))


def regression(batch_size=None, refresh_every=None, columns=DIM):
    return linear_regression(
        FEATURES[:, :columns], RESPONSE, noise=NOISE, prior=PRIOR, batch_size=batch_size, refresh_every=refresh_every
    )


FULL = regression()
TRUTH = FULL.truth
PRECISION = np.linalg.inv(TRUTH.covariance)


def parts(x):
    """Each datum's energy (data,) and gradient (data, dim) at ``x``, and the prior's, without the constants."""
    residual = RESPONSE - FEATURES @ x
    return 0.5 * (residual / NOISE) ** 2, -FEATURES * residual[:, None] / NOISE**2, 0.5 * x @ x / PRIOR**2, x / PRIOR**2


def log_joint(x):
    """log p(y, β) by SciPy."""
    likelihood = stats.norm.logpdf(RESPONSE, FEATURES @ x, NOISE).sum()
    return likelihood + stats.norm.logpdf(x, 0.0, PRIOR).sum()


def test_the_energy_is_the_joint_density():
    energy = FULL.evaluate(POINTS)[0]
    np.testing.assert_allclose(energy, [-log_joint(x) for x in POINTS], rtol=1e-12)


@pytest.mark.parametrize("target", [FULL, regression(DRAWN), regression(DRAWN, 5)], ids=["all", "batch", "anchor"])
def test_gradients_agree_with_differences(target):
    """Without the engine's word a target that can draw minibatches uses all data, too."""
    gradient = target.evaluate(POINTS)[1]
    for d in range(DIM):
        step = 1e-5 * np.eye(DIM)[d]
        slope = (target.evaluate(POINTS + step)[0] - target.evaluate(POINTS - step)[0]) / 2e-5
        np.testing.assert_allclose(gradient[:, d], slope, rtol=1e-7)
    np.testing.assert_array_equal(target.evaluate(POINTS)[0], FULL.evaluate(POINTS)[0])


def test_one_lane_has_the_bits_of_many():
    """Its coordinates are done at once in place of lanes; zeros of the precision are passed over by both."""
    rng = np.random.default_rng(3)
    root = rng.standard_normal((11, 11))
    precision = root @ root.T
    precision[2, :] = precision[:, 2] = 0.0
    numbers = quadratic_numbers(rng.standard_normal(11), precision, 0.3)
    theta = rng.standard_normal((11, 9))
    theta[2, 0] = np.inf
    use = compile_part(use_quadratic.py_func, TARGET)

    def energy_and_slope(points):
        energy, slope = np.empty(points.shape[1]), np.empty(points.shape)
        use(np.ascontiguousarray(points), energy, slope, numbers, np.empty((0, points.shape[1])))
        return np.vstack([energy, slope])

    many = energy_and_slope(theta)
    alone = np.hstack([energy_and_slope(theta[:, [lane]]) for lane in range(9)])
    np.testing.assert_array_equal(alone, many)
    assert np.isfinite(many[1:, 1:]).all()
    assert not np.array_equal(many[:, 1], many[:, 2])


def test_the_evidence_and_the_posterior():
    covariance = NOISE**2 * np.eye(N) + PRIOR**2 * FEATURES @ FEATURES.T
    evidence = stats.multivariate_normal.logpdf(RESPONSE, np.zeros(N), covariance)
    assert TRUTH.log_normaliser == pytest.approx(evidence, rel=1e-12)
    posterior = stats.multivariate_normal(TRUTH.mean, TRUTH.covariance)
    np.testing.assert_allclose(
        -FULL.evaluate(POINTS)[0] - TRUTH.log_normaliser, posterior.logpdf(POINTS), rtol=0, atol=1e-9
    )
    draws = TRUTH.independent_draws(50_000, seed=1)
    squared = ((draws - TRUTH.mean) @ np.linalg.cholesky(PRECISION)) ** 2
    assert stats.kstest(squared.sum(axis=1), stats.chi2(DIM).cdf).pvalue > 1e-5
    assert stats.kstest(1.05 * squared.sum(axis=1), stats.chi2(DIM).cdf).pvalue < 1e-5
    np.testing.assert_array_equal(draws[:10], TRUTH.independent_draws(50_000, seed=1)[:10])


def test_cell_masses_in_two_dimensions():
    plane = regression(columns=2).truth
    x, y = (
        plane.mean[i] + np.sqrt(plane.covariance[i, i]) * np.array([-9.0, c, 9.0]) for i, c in ((0, 0.5), (1, -1.0))
    )
    masses = plane.cell_masses(x, y)
    lower = stats.multivariate_normal(plane.mean, plane.covariance).cdf([x[1], y[1]])
    assert masses[0, 0] == pytest.approx(lower, abs=1e-5)
    assert masses.sum() == pytest.approx(1.0, abs=1e-6)
    marginal = stats.multivariate_normal(TRUTH.mean[:2], TRUTH.covariance[:2, :2]).cdf(TRUTH.mean[:2])
    below = [[mean - 12.0, mean] for mean in TRUTH.mean[:2]]
    assert TRUTH.cell_masses(*below).item() == pytest.approx(marginal, abs=1e-6)


@pytest.mark.parametrize("drawn", [1, 2, 7, DRAWN])
@pytest.mark.parametrize("anchored", [False, True])
def test_estimates_have_their_mean_and_covariance(drawn, anchored):
    """Energy and gradient together: unbiased, N²/n times the covariance over the data, of changes where anchored."""
    x, anchor = POINTS[0], POINTS[0] + 0.3 * POINTS[1]
    target = regression(drawn, 10 if anchored else None)
    scratch = None
    if anchored:
        scratch = estimates(target, anchor[None])[2]
    energy, gradient, _ = estimates(target, x[None], step=3, scratch=scratch)
    values = np.vstack([energy, gradient[:, 0]])
    own_energy, own_gradient, prior_energy, prior_gradient = parts(x)
    samples = np.column_stack([own_energy, own_gradient])
    if anchored:
        samples = samples - np.column_stack(parts(anchor)[:2])
    exact_energy, exact_gradient = FULL.evaluate(x[None])
    mean = np.concatenate([exact_energy, exact_gradient[0]])
    covariance = N**2 / drawn * np.cov(samples.T, bias=True)
    assert has_moments(values, mean, covariance)
    assert not has_moments(
        values, mean, covariance * (N - drawn) / (N - 1.0 - 1e-9) * 0.9
    )  # draws without replacement, about
    assert not has_moments(values, mean + 0.05 * np.sqrt(np.diag(covariance)), covariance)
    np.testing.assert_allclose(own_gradient.sum(axis=0) + prior_gradient, exact_gradient[0])
    assert prior_energy > 0


def test_the_anchor_takes_the_variance_away():
    """At a distance δ from the anchor the gradient's covariance is N²/n Cov(F Fᵀδ)/σ⁴: it falls as δ²."""
    x, away = TRUTH.mean, 0.05 * POINTS[2]
    plain = estimates(regression(DRAWN), x[None])[1][:, 0].var(axis=1)
    target = regression(DRAWN, 10)
    scatter = []
    for far in (1.0, 2.0):
        scratch = estimates(target, (x - far * away)[None])[2]
        scatter.append(estimates(target, x[None], step=7, scratch=scratch)[1][:, 0].var(axis=1))
    factor = (FEATURES * (FEATURES @ away)[:, None]).var(axis=0) / (FEATURES * (RESPONSE - FEATURES @ x)[:, None]).var(
        axis=0
    )
    error = SIGMAS * np.sqrt(2.0 * 3.0 / 40_000)  # tails heavier than normal by at most this
    np.testing.assert_allclose(scatter[0] / plain, factor, rtol=2.0 * error)
    np.testing.assert_allclose(scatter[1] / scatter[0], 4.0, rtol=2.0 * error)
    assert factor.max() < 0.1


def test_the_anchor_moves_when_it_is_due_and_an_evaluation_repeats():
    target = regression(DRAWN, 4)
    first = estimates(target, POINTS, lanes=3)[2]
    rows = slice(COUNTER_ROWS + 2, COUNTER_ROWS + 2 + DIM)
    np.testing.assert_array_equal(first[rows], np.repeat(POINTS.T, 3, axis=1))
    exact = FULL.evaluate(POINTS)
    energy, gradient, _ = estimates(target, POINTS, lanes=3, scratch=first.copy())
    np.testing.assert_allclose(energy[:, 0], exact[0], rtol=1e-13)  # at the anchor the batch adds nothing
    np.testing.assert_allclose(gradient[:, :, 0].T, exact[1], rtol=1e-10)
    moved = POINTS + 0.1
    for step, mode, refreshes in ((3, 1.0, False), (4, 2.0, False), (4, 1.0, True), (8, 1.0, True)):
        scratch = first.copy()
        once = estimates(target, moved, lanes=3, step=step, mode=mode, scratch=scratch)
        again = estimates(target, moved, lanes=3, step=step, mode=mode, scratch=scratch)
        np.testing.assert_array_equal(once[0], again[0])
        np.testing.assert_array_equal(once[1], again[1])
        assert (scratch[rows] == np.repeat(moved.T, 3, axis=1)).all() == refreshes


def test_replicas_steps_and_chains_draw_batches_of_their_own():
    target = regression(DRAWN)
    energies = [
        estimates(target, POINTS[:1], lanes=4, seed=seed, step=step)[0][0] for seed, step in ((1, 0), (1, 1), (2, 0))
    ]
    assert len(np.unique(energies)) == 12
    run = sample(target, samplers.icsgld(1e-12, partition=Partition(0.0, 1e3, 2)), n_steps=1, n_chains=2, seed=1,
                 keep_energies=True)  # fmt: skip
    assert len(np.unique(run.energies)) == 10


def heated(h, drawn):
    """Stationary covariance of SGLD with minibatches, exact: the noise of a gradient is quadratic in x − μ."""
    identity, hessian = np.eye(DIM), PRECISION
    residual = RESPONSE - FEATURES @ TRUTH.mean
    outer = FEATURES[:, :, None] * FEATURES[:, None]
    mean_gradient = -(FEATURES * residual[:, None]).mean(axis=0) / NOISE**2
    mean_outer = outer.mean(axis=0) / NOISE**2
    spread = TRUTH.covariance
    for _ in range(5000):
        squares = residual**2 + np.einsum("id,de,ie->i", FEATURES, spread, FEATURES)
        noise = np.einsum("i,ide->de", squares, outer) / N / NOISE**4
        noise = noise - np.outer(mean_gradient, mean_gradient) - mean_outer @ spread @ mean_outer
        step = identity - h * hessian
        spread = step @ spread @ step + 2.0 * h * identity + h * h * N**2 / drawn * noise
    return spread


def last_draws(target, sampler, n_steps=300, chains=20_000, seed=4):
    start = TRUTH.independent_draws(chains, seed=seed)
    run = sample(target, sampler, n_steps=n_steps, thin=n_steps, n_chains=chains, init=start, seed=seed)
    return run.draws[:, -1].T


def test_sgld_is_heated_by_its_closed_form():
    """Exact in mean and covariance; without minibatches it is (Λ (I − hΛ/2))⁻¹."""
    h = 3e-3
    cold = np.linalg.inv(PRECISION @ (np.eye(DIM) - 0.5 * h * PRECISION))
    assert has_moments(last_draws(FULL, samplers.sgld(h)), TRUTH.mean, cold)
    hot = heated(h, DRAWN)
    assert np.trace(hot) > 1.5 * np.trace(cold)
    draws = last_draws(regression(DRAWN), samplers.sgld(h))
    assert has_moments(draws, TRUTH.mean, hot)
    assert not has_moments(draws, TRUTH.mean, cold)
    assert not has_moments(draws, TRUTH.mean, heated(h, 2 * DRAWN))
    anchored = last_draws(regression(DRAWN, 5), samplers.sgld(h))
    excess = (np.trace(np.cov(anchored)) - np.trace(cold)) / (np.trace(hot) - np.trace(cold))
    assert excess < 0.15  # what the anchor leaves of the heat


def mean_square(run):
    """Weighted mean of (x − μ)ᵀ Λ (x − μ) / dim, which is 1 for the posterior."""
    squares = ((run.draws - TRUTH.mean) @ np.linalg.cholesky(PRECISION)) ** 2
    return (run.weights[:, :, None] * squares).sum() / run.weights.sum() / DIM


def test_a_thermostat_takes_up_what_the_anchor_leaves():
    """Two thousand chains of 15 draws, a standard error of 0.6 %; friction that does not adapt leaves heat."""
    h, friction = 3e-4, 0.02
    adapts, stays = samplers.sgnht(h, friction=friction), samplers.sghmc(h, friction=friction)
    for sampler, refresh_every in ((adapts, 5), (stays, None)):
        run = sample(
            regression(DRAWN, refresh_every), sampler, n_steps=3000, burn_in=1500, n_chains=2000, thin=100, seed=1,
            init=TRUTH.independent_draws(2000, seed=1),
        )  # fmt: skip
        assert (abs(mean_square(run) - 1.0) < 0.06) == (refresh_every is not None)


@pytest.mark.cases(1)
@pytest.mark.filterwarnings("ignore::toolkit.ContourWarning")  # the run is short for θ
@pytest.mark.parametrize("kind", ["contour", "replica_exchange"])
def test_tempering_with_minibatches_of_less_variance(kind):
    """Anchored energies need no correction and give the posterior to 8 %, bias and chance; plain ones do not."""
    h, lowest = 5e-4, float(FULL.parameters[5])
    if kind == "contour":
        rule, temperatures = tempering.contour(partition=Partition(lowest, 0.5, 24)), (1.0, 1.0)
    else:
        rule, temperatures = tempering.replica_exchange(correction=0.0), (1.0, 2.0, 4.0)
    sampler = Sampler("minibatches", (h,) * len(temperatures), temperatures, tempering=rule)
    start = TRUTH.mean + (TRUTH.independent_draws(400, seed=2) - TRUTH.mean)[:, None] * np.sqrt(temperatures)[:, None]
    for refresh_every in (2, None):
        run = sample(
            regression(20, refresh_every), sampler, n_steps=3000, burn_in=1000, n_chains=400, thin=20, seed=2,
            init=start,
        )  # fmt: skip
        assert (abs(mean_square(run) - 1.0) < 0.08) == (refresh_every is not None)
    if kind == "replica_exchange":
        assert (run.swap_rates > 0.2).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "correction must be a number, or adapted_correction.*draws minibatches.*got None"),
        ({"correction": tempering.estimated_correction()}, "got EstimatedCorrection"),
        ({"correction": 1.0, "scheme": "all_pairs"}, "scheme must be 'deo' or 'seo'.*got 'all_pairs'"),
    ],
)
def test_swaps_by_minibatches_want_a_correction_of_their_own(options, message):
    sampler = samplers.resgld((1e-3, 1e-3), temperatures=(1.0, 2.0), **options)
    with pytest.raises(ValueError, match=message):
        sample(regression(5, None), sampler, n_steps=200, seed=1)


@pytest.mark.parametrize("refresh_every", [None, 3])
def test_bits_do_not_depend_on_the_layout(refresh_every):
    target = regression(5, refresh_every)
    sampler = Sampler(
        "preconditioned",
        (1e-2, 2e-2),
        (1.0, 3.0),
        dynamics=dynamics.preconditioned_langevin(decay=0.9, floor=1.0),
        tempering=tempering.replica_exchange(correction=0.0),
    )
    options = {"n_steps": 60, "seed": 8, "keep_energies": True, "keep_replicas": True}
    whole = sample(target, sampler, n_chains=20, threads=1, **options)
    for chains, layout, threads in (
        (20, Layout(chunk_steps=1), 1), (20, Layout(chunk_steps=7, lanes=6), 2), (3, Layout(lanes=1), 2),
    ):  # fmt: skip
        run = sample(target, sampler, n_chains=chains, threads=threads, layout=layout, **options)
        np.testing.assert_array_equal(run.replica_draws, whole.replica_draws[:chains])
        np.testing.assert_array_equal(run.energies, whole.energies[:chains])


BAD = {
    "features": (
        {"features": [1.0, 2.0]},
        ValueError,
        r"features must have shape \(data, dim\) and not be empty, got \(2,\)",
    ),
    "empty": ({"features": np.zeros((0, 2))}, ValueError, "features must have shape"),
    "response": ({"response": [1.0]}, ValueError, r"response must have shape \(data,\) = \(2,\), got \(1,\)"),
    "nan": ({"response": [1.0, np.nan]}, ValueError, "response must be finite"),
    "noise": ({"noise": 0.0}, ValueError, r"noise must be finite and > 0, got 0.0"),
    "prior": ({"prior": -1.0}, ValueError, r"prior must be finite and > 0, got -1.0"),
    "tiny": ({"noise": 1e-200}, ValueError, r"noise must be finite and > 1e-100 and < 1e\+100, got 1e-200"),
    "flat": (
        {"features": [[1.0, 1.0], [1.0, 1.0 + 1e-9]], "noise": 1e-3, "prior": 1e6},
        ValueError,
        r"must give a posterior that is not flat to rounding, .* condition .*, which must be < 1e\+14: scale or leave",
    ),
    "batch": ({"batch_size": 0}, ValueError, "batch_size must be ≥ 1 and < 131072, got 0"),
    "real": ({"batch_size": 2.0}, TypeError, "batch_size must be an integer"),
    "refresh": ({"batch_size": 2, "refresh_every": 0}, ValueError, "refresh_every must be ≥ 1, got 0"),
    "no batch": ({"refresh_every": 5}, ValueError, "refresh_every needs a batch_size"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_regressions_are_refused(name):
    change, kind, message = BAD[name]
    arguments = {"features": [[1.0], [2.0]], "response": [1.0, 2.0], "noise": 1.0, "prior": 1.0, **change}
    with pytest.raises(kind, match=message):
        linear_regression(**arguments)


@pytest.mark.parametrize("sampler", [samplers.mala(0.1), samplers.hmc(0.1)])
def test_metropolis_refuses_minibatches(sampler):
    with pytest.raises(ValueError, match=r"need exact energies for their Metropolis test, and .* draws minibatches"):
        sample(regression(DRAWN), sampler, n_steps=1, seed=0)
    assert sample(FULL, sampler, n_steps=1, seed=0).draws.shape == (1, 1, DIM)
