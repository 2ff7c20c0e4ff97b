"""Accumulators: what stored draws give, for any cuts, threads and other chains; accurate, and of constant memory."""

import itertools
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest

from targets import mixtures
from toolkit import DivergenceError, Layout, Target, accumulators, diagnostics, sample, samplers, stream
from toolkit.contour import Partition
from toolkit.problem import Problem

EDGES = np.linspace(-2.0, 2.5, 16)
UNEVEN = np.array([-3.0, -1.1, -1.0, 0.25, 0.3, 2.0])
COSINE = mixtures.cosine25()
WEIGHTED = samplers.icsgld(1e-3, n_replicas=3, partition=Partition(-4.5, 0.5, 40))
EXCHANGE = samplers.resgld((1e-3, 3e-3), temperatures=(1.0, 5.0))


def every(masses, at):
    return {
        "moments": accumulators.moments(),
        "plane": accumulators.histogram(EDGES, UNEVEN),
        "line": accumulators.histogram(UNEVEN, coordinates=(1, 0)),
        "kl": accumulators.kl(masses, EDGES, EDGES, at=at),
        "energies": accumulators.energy_histogram(np.linspace(-4.0, 8.0, 25)),
        "best": accumulators.best_point(),
        "batches": accumulators.batch_means(8),
    }


@pytest.fixture(scope="module")
def masses():
    return COSINE.truth.cell_masses(EDGES, EDGES)


def problem(dim):
    return Problem(Target("any", dim, lambda position, energy, gradient, parameters, scratch: None))


def gathered(accumulator, draws, weights=None, energies=None, steps=None, cuts=()):
    """The result after the draws have come in pieces."""
    steps = np.arange(draws.shape[1]) if steps is None else steps
    replicas = draws.shape[1] // steps.size
    state = accumulator.start(problem(draws.shape[2]), len(draws))
    ends = [0, *cuts, steps.size]
    for first, last in itertools.pairwise(ends):
        part = slice(first * replicas, last * replicas)
        pieces = [None if a is None else a[:, part] for a in (weights, energies)]
        accumulator.update(state, draws[:, part], *pieces, steps[first:last])
    return accumulator.result(state)


def assert_same(a, b):
    for name, x, y in zip(a._fields, a, b, strict=True):
        np.testing.assert_array_equal(x, y, err_msg=name)


# --- What a run gathers ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sampler", [samplers.sgld(0.01), EXCHANGE, WEIGHTED], ids=["sgld", "resgld", "icsgld"])
@pytest.mark.filterwarnings("ignore::toolkit.ContourWarning")
def test_runs_gather_what_stored_draws_give(sampler, masses):
    """Kept or not, streamed or not, by any threads, chunks and other chains: the bits of all draws at once."""
    asked = {"n_steps": 300, "burn_in": 40, "thin": 4, "seed": 3}
    chosen = every(masses, [10, 100, 200, 300])
    run = sample(COSINE, sampler, n_chains=5, keep_energies=True, accumulators=chosen, **asked)
    energies = run.energies[:, : sampler.n_target_replicas].swapaxes(1, 2).reshape(5, -1)
    weights = run.weights if sampler.is_weighted else None
    for name, accumulator in chosen.items():
        stored = gathered(accumulator, run.draws, weights, energies, run.steps)
        assert_same(run.accumulated[name], stored)
    for n_chains, threads, chunk_steps in ((5, 1, 1), (5, 2, 7), (3, 2, None), (1, 1, None)):
        layout = Layout(lanes=2, chunk_steps=chunk_steps)
        own = {"n_chains": n_chains, "threads": threads, "layout": layout, "accumulators": chosen, **asked}
        *_, last = stream(COSINE, sampler, **own)
        unkept = sample(COSINE, sampler, keep_draws=False, **own)
        assert unkept.draws.shape[1] == 0
        for name in chosen:
            assert_same(last.accumulated[name], unkept.accumulated[name])
            for field, value in zip(unkept.accumulated[name]._fields, unkept.accumulated[name], strict=True):
                whole = getattr(run.accumulated[name], field)
                if value is not None and np.shape(whole)[:1] == (5,) and not field.endswith("edges"):
                    np.testing.assert_array_equal(value, whole[:n_chains], err_msg=field)


def test_a_chunks_result_stays_as_it_was(masses):
    chosen = every(masses, [10])
    chunks = stream(
        COSINE, samplers.sgld(0.01), n_steps=40, n_chains=2, seed=1, accumulators=chosen, layout=Layout(8, 10)
    )
    first = next(chunks).accumulated
    before = {
        name: [np.array(value, copy=True) for value in result if value is not None] for name, result in first.items()
    }
    for _ in chunks:
        pass
    for name, values in before.items():
        for old, new in zip(values, (v for v in first[name] if v is not None), strict=True):
            np.testing.assert_array_equal(old, new)
    first["plane"].x_edges[:] = 0.0
    assert chosen["plane"].x_edges[0] == -2.0


def test_memory_does_not_grow_with_the_steps():
    """210,000 more steps of 8 chains, 16 bytes a draw, raise the peak by less than 10,000 draws would."""

    def peak(n_steps):
        chosen = {"moments": accumulators.moments(), "grid": accumulators.histogram(EDGES, EDGES)}
        tracemalloc.start()
        try:
            sample(
                COSINE, samplers.sgld(0.01), n_steps=n_steps, n_chains=8, seed=0, keep_draws=False, threads=1,
                accumulators=chosen, layout=Layout(chunk_steps=1_000),
            )  # fmt: skip
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(70_000)
    assert abs(peak(280_000) - peak(70_000)) < 160_000


@pytest.mark.filterwarnings("ignore::toolkit.ContourWarning")
def test_a_checkpoint_holds_what_was_gathered(masses, tmp_path):
    chosen = every(masses, [10, 100, 290])
    asked = {"n_chains": 3, "burn_in": 40, "seed": 3, "keep_draws": False, "accumulators": chosen}
    whole = sample(COSINE, WEIGHTED, n_steps=300, **asked)
    for n_steps in (150, 300):
        resumed = sample(COSINE, WEIGHTED, n_steps=n_steps, checkpoint=tmp_path / "run.ckpt", **asked)
    for name in chosen:
        assert_same(resumed.accumulated[name], whole.accumulated[name])


def quartic_block(position, energy, gradient, parameters, scratch):
    for lane in range(position.shape[1]):
        energy[lane] = position[0, lane] ** 4
        gradient[0, lane] = 4.0 * position[0, lane] ** 3


def test_draws_of_a_diverged_chain_are_left_out():
    chosen = {"moments": accumulators.moments(), "line": accumulators.histogram([-1e9, 1e9])}
    with pytest.raises(DivergenceError) as caught:
        sample(
            Target("quartic", 1, quartic_block), samplers.sgld(0.02), n_steps=300, n_chains=3,
            init=[[0.1], [5.0], [0.2]], seed=6, accumulators=chosen, layout=Layout(chunk_steps=100),
        )  # fmt: skip
    run = caught.value.run
    finite = np.isfinite(run.draws[..., 0])
    assert finite.sum(axis=1).min() < 100
    moments = run.accumulated["moments"]
    np.testing.assert_array_equal(moments.draws, finite.sum(axis=1))
    np.testing.assert_array_equal(run.accumulated["line"].draws, finite.sum(axis=1))
    assert np.isfinite(moments.mean).all()


# --- Moments -----------------------------------------------------------------------------------------------------


def exact_moments(draws, weights):
    """Mean and covariance of (draw, dim) in rational numbers."""
    rows = [[Fraction(x) for x in row] for row in draws.tolist()]
    shares = [Fraction(w) for w in weights.tolist()]
    total, dim = sum(shares), draws.shape[1]
    mean = [sum(w * row[i] for w, row in zip(shares, rows, strict=True)) / total for i in range(dim)]
    covariance = [
        [
            float(sum(w * (r[i] - mean[i]) * (r[j] - mean[j]) for w, r in zip(shares, rows, strict=True)) / total)
            for j in range(dim)
        ]
        for i in range(dim)
    ]
    return np.array([float(m) for m in mean]), np.array(covariance)


@pytest.mark.parametrize("dim", [1, 2, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_moments_of_hard_data(dim, weighted):
    """Mean 10⁸, standard deviation 10⁻³, beside the sums in rational numbers; one-pass sums have no digit right."""
    rng = np.random.default_rng(dim)
    draws = 1e8 + 1e-3 * rng.standard_normal((2, 2_000, dim)) @ np.linspace(0.5, 1.5, dim * dim).reshape(dim, dim)
    weights = np.exp(5.0 * rng.standard_normal((2, 2_000))) if weighted else None
    result = gathered(accumulators.moments(), draws, weights)
    for chain in range(2):
        mean, covariance = exact_moments(draws[chain], np.ones(2_000) if weights is None else weights[chain])
        np.testing.assert_allclose(result.mean[chain], mean, rtol=3e-16)
        np.testing.assert_allclose(result.covariance[chain], covariance, rtol=1e-11)
        one_pass = np.average(draws[chain] ** 2, axis=0, weights=None if weights is None else weights[chain])
        wrong = one_pass - result.mean[chain] ** 2
        assert not np.allclose(wrong, np.diag(covariance), rtol=0.5)
    away = draws - 1e8
    plain = gathered(accumulators.moments(), away, weights)
    for chain in range(2):
        w = None if weights is None else weights[chain]
        np.testing.assert_allclose(
            plain.covariance[chain], np.cov(away[chain].T, ddof=0, aweights=w).reshape(dim, dim), rtol=1e-11
        )


def test_the_plane_has_the_bits_of_any_dimension():
    rng = np.random.default_rng(4)
    draws, weights = rng.standard_normal((3, 500, 3)) + 7.0, rng.random((3, 500))
    draws[0, 5, 1], draws[2, 9, 0], weights[1, 3] = np.nan, np.inf, 0.0
    draws[..., 2] = np.where(np.isfinite(draws[..., :2]).all(axis=2), draws[..., 2], np.nan)
    three, two = (gathered(accumulators.moments(), d, weights) for d in (draws, draws[..., :2]))
    one = gathered(accumulators.moments(), draws[1:2, :, :1], weights[1:2])
    np.testing.assert_array_equal(two.mean, three.mean[:, :2])
    np.testing.assert_array_equal(two.covariance, three.covariance[:, :2, :2])
    np.testing.assert_array_equal(one.covariance, three.covariance[1:2, :1, :1])
    np.testing.assert_array_equal(two.draws, [499, 500, 499])
    np.testing.assert_array_equal(two.weighted_ess, three.weighted_ess)
    np.testing.assert_allclose(two.weighted_ess[1:2], diagnostics.weighted_ess(weights[1:2]))


def test_chains_count_alike_in_what_is_pooled():
    """Weights are known up to a factor of each chain, so a factor changes nothing."""
    rng = np.random.default_rng(5)
    draws, weights = rng.standard_normal((3, 200, 2)) + np.arange(3)[:, None, None], rng.random((3, 200))
    a, b = (gathered(accumulators.moments(), draws, weights * f) for f in (1.0, np.array([[1.0], [64.0], [0.25]])))
    np.testing.assert_array_equal(a.pooled_mean, b.pooled_mean)
    np.testing.assert_array_equal(a.pooled_covariance, b.pooled_covariance)
    shares = (weights / weights.sum(axis=1, keepdims=True)).ravel()
    together = draws.reshape(-1, 2)
    np.testing.assert_allclose(a.pooled_mean, np.average(together, axis=0, weights=shares), rtol=1e-13)
    np.testing.assert_allclose(a.pooled_covariance, np.cov(together.T, ddof=0, aweights=shares), rtol=1e-12)
    np.testing.assert_allclose(a.standard_error, a.mean.std(axis=0, ddof=1) / np.sqrt(3.0))
    weights[1] = 0.0
    without = gathered(accumulators.moments(), draws, weights)
    assert np.isnan(without.mean[1]).all()
    np.testing.assert_allclose(without.pooled_mean, a.mean[[0, 2]].mean(axis=0))
    assert np.isnan(gathered(accumulators.moments(), draws[:1]).standard_error).all()


def test_the_standard_error_knows_autocorrelation():
    """400 chains of an AR(1): the squared error has its law to 4.5 of its own errors; that without φ is far off."""
    phi, n, chains = 0.9, 400, 400
    draws = autoregression(phi, n, chains, seed=6)
    error = gathered(accumulators.moments(), draws).standard_error[0]
    law = mean_variance(phi, n) / chains
    assert abs(error**2 / law - 1.0) < 4.5 * np.sqrt(2.0 / (chains - 1))
    assert abs(1.0 / (n * chains) / law - 1.0) > 4.5 * np.sqrt(2.0 / (chains - 1))


# --- Histograms --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("x_edges", [EDGES, UNEVEN, np.linspace(0.1, 0.7, 8), np.array([-1.0, 1.0])], ids=len)
@pytest.mark.parametrize("scale", [1.0, 1e-300, 1e300])
def test_histograms_are_numpys(x_edges, scale):
    """Draws on edges and beside them are in the cells that comparison says."""
    rng = np.random.default_rng(7)
    x_edges, y_edges = scale * x_edges, scale * UNEVEN
    near = np.concatenate([x_edges, np.nextafter(x_edges, np.inf), np.nextafter(x_edges, -np.inf), [np.inf, -np.inf]])
    x = np.concatenate([scale * rng.standard_normal(2_000), rng.permutation(np.tile(near[:-2], 20))])
    y = np.concatenate([rng.choice(y_edges, 1_000), scale * rng.standard_normal(x.size - 1_000)])
    draws = np.stack([np.stack([x, y], axis=1), np.stack([y, x], axis=1)])
    result = gathered(accumulators.histogram(x_edges, y_edges), draws)
    line = gathered(accumulators.histogram(x_edges, coordinates=(1, 0)), draws)
    for chain in range(2):
        expected = np.histogram2d(draws[chain, :, 0], draws[chain, :, 1], bins=[x_edges, y_edges])[0]
        np.testing.assert_array_equal(result.counts[chain], expected)
        np.testing.assert_array_equal(line.counts[chain], np.histogram(draws[chain, :, 1], bins=x_edges)[0])
    np.testing.assert_array_equal(result.beyond, x.size - result.counts.sum(axis=(1, 2)))
    np.testing.assert_array_equal(line.beyond, x.size - line.counts.sum(axis=1))


def test_an_endless_grid_is_searched():
    edges = np.array([-1.7e308, -1.0, 0.0, 2.0, 1.7e308])
    draws = np.array([[-3.0, -1.0, 0.5, 1.9, 1e300]])[..., None]
    np.testing.assert_array_equal(gathered(accumulators.histogram(edges), draws).counts, [[1, 1, 2, 1]])


def test_weighted_histograms():
    rng = np.random.default_rng(8)
    draws, weights = rng.standard_normal((2, 3_000, 2)), rng.random((2, 3_000))
    result = gathered(accumulators.histogram(EDGES, UNEVEN), draws, weights)
    for chain in range(2):
        x, y = draws[chain].T
        expected = np.histogram2d(x, y, bins=[EDGES, UNEVEN], weights=weights[chain])[0]
        np.testing.assert_allclose(result.counts[chain], expected, rtol=1e-12)
    np.testing.assert_allclose(result.counts.sum(axis=(1, 2)) + result.beyond, weights.sum(axis=1), rtol=1e-12)
    np.testing.assert_array_equal(result.draws, 3_000)


# --- KL ----------------------------------------------------------------------------------------------------------


def test_kl_is_that_of_stored_draws(masses):
    at = [20, 50, 51, 200]
    chosen = {"kl": accumulators.kl(COSINE.truth, EDGES, EDGES, at=[*at, 900])}
    run = sample(COSINE, samplers.sgld(0.05), n_steps=200, burn_in=20, thin=3, n_chains=3, seed=2, accumulators=chosen)
    found = run.accumulated["kl"]
    kept = np.searchsorted(run.steps, at)
    assert kept.tolist() == [0, 10, 10, 60]
    np.testing.assert_array_equal(found.draws, np.tile([*kept, 0], (3, 1)))
    assert np.isnan(found.kl[:, [0, 4]]).all()
    path = diagnostics.kl_path(run.draws, masses, EDGES, EDGES, [10, 60])
    np.testing.assert_array_equal(found.kl[:, 1], path[:, 0])
    np.testing.assert_array_equal(found.kl[:, 2], path[:, 0])
    np.testing.assert_array_equal(found.kl[:, 3], path[:, 1])
    assert found.expected[0, 3] == diagnostics.expected_kl(masses, 60)
    assert np.isnan(found.expected[:, 0]).all()


def test_kl_in_one_dimension():
    target, edges = mixtures.three_on_a_line(), np.linspace(-8.0, 8.0, 33)
    truth = target.truth.cell_masses(edges)
    chosen = {"kl": accumulators.kl(target.truth, edges, at=[500], pseudo_count=0.1)}
    run = sample(target, samplers.sgld(0.05), n_steps=500, n_chains=2, seed=3, accumulators=chosen)
    for chain in range(2):
        counts = np.histogram(run.draws[chain, :, 0], bins=edges)[0].astype(float)
        expected = diagnostics.kl_divergence(counts, truth, total=500, pseudo_count=0.1)
        assert run.accumulated["kl"].kl[chain, 0] == expected


def test_weighted_kl_is_that_of_stored_draws(masses):
    rng = np.random.default_rng(9)
    draws, weights = rng.uniform(-2.2, 2.6, (2, 4_000, 2)), np.exp(rng.standard_normal((2, 4_000)))
    path = diagnostics.kl_path(draws, masses, EDGES, EDGES, [100, 4_000], weights=weights)
    assert not np.allclose(path, diagnostics.kl_path(draws, masses, EDGES, EDGES, [100, 4_000]), rtol=0.05)
    for factor in (1.0, 1e200, 1e-200):
        found = gathered(accumulators.kl(masses, EDGES, EDGES, at=[100, 4_000]), draws, factor * weights)
        np.testing.assert_allclose(found.kl, path, rtol=1e-11)


# --- Energies ----------------------------------------------------------------------------------------------------


def test_energies_and_the_best_point():
    rng = np.random.default_rng(10)
    draws, weights = rng.standard_normal((2, 900, 2)), rng.random((2, 900)) * rng.integers(0, 2, (2, 900))
    energies = np.round((draws**2).sum(axis=2), 1)
    energies[0, 3] = np.nan
    edges, steps = np.array([0.5, 1.0, 4.0]), np.arange(5, 905, 3)
    result = gathered(accumulators.energy_histogram(edges), draws, weights, energies, steps)
    best = gathered(accumulators.best_point(), draws, weights, energies, steps)
    for chain in range(2):
        kept = np.isfinite(energies[chain])
        e, w = energies[chain, kept], weights[chain, kept]
        np.testing.assert_allclose(result.counts[chain], np.histogram(e, bins=edges, weights=w)[0], rtol=1e-12)
        assert result.below[chain] == pytest.approx(w[e < 0.5].sum())
        assert result.above[chain] == pytest.approx(w[e > 4.0].sum())
        assert (result.minimum[chain], result.maximum[chain]) == (e[w > 0].min(), e[w > 0].max())
        assert result.mean[chain] == pytest.approx(np.average(e, weights=w))
        first = int(np.nanargmin(energies[chain]))  # of equal ones the first
        assert best.energy[chain] == energies[chain, first]
        assert best.step[chain] == steps[first // 3]
        np.testing.assert_array_equal(best.position[chain], draws[chain, first])
    nothing = gathered(accumulators.best_point(), draws, None, np.full((2, 900), np.nan), steps)
    assert (nothing.step == -1).all()
    assert np.isnan(nothing.position).all()
    empty = gathered(accumulators.energy_histogram(edges), draws, np.zeros((2, 900)), energies, steps)
    assert np.isnan(empty.mean).all()


# --- Batch means -------------------------------------------------------------------------------------------------


def autoregression(phi, n, chains, seed):
    """An AR(1) of variance 1 from its start on, (chain, draw, 1)."""
    noise = np.random.default_rng(seed).standard_normal((chains, n))
    x = np.empty((chains, n))
    x[:, 0] = noise[:, 0]
    for t in range(1, n):
        x[:, t] = phi * x[:, t - 1] + np.sqrt(1.0 - phi**2) * noise[:, t]
    return x[..., None]


def mean_variance(phi, n):
    """Variance of the mean of n draws of that AR(1)."""
    return ((1.0 + phi) / (1.0 - phi) - 2.0 * phi * (1.0 - phi**n) / (n * (1.0 - phi) ** 2)) / n


def test_batch_means_of_an_autoregression():
    """E of the squared error is (variance of a batch's mean − that of the whole) / (B − 1), exactly; to 4.5 errors."""
    phi, n, chains = 0.8, 12_800, 300
    result = gathered(accumulators.batch_means(50), 1e6 + 3.0 * autoregression(phi, n, chains, seed=11))
    batches, length = int(result.n_batches[0]), int(result.batch_length[0])
    assert (batches, length) == (100, 128)
    squares = result.standard_error[:, 0] ** 2
    law = 9.0 * (mean_variance(phi, length) - mean_variance(phi, n)) / (batches - 1)
    assert abs(squares.mean() / law - 1.0) < 4.5 * np.sqrt(2.0 / (batches - 1) / chains)
    assert abs(9.0 / n / law - 1.0) > 0.5  # as if the draws were independent
    worth = n * (1.0 - phi) / (1.0 + phi)
    assert abs(np.median(result.ess) / worth - 1.0) < 0.1
    np.testing.assert_allclose(result.variance[:, 0], 9.0, rtol=0.2)


def test_batch_means_hold_the_loss_by_weights():
    """Independent draws x with weights exp(s x): by the delta method, E w² (x − μ)² / (E w)² n, known for a normal."""
    s, n, chains = 0.5, 6_400, 400
    draws = np.random.default_rng(12).standard_normal((chains, n, 1))
    result = gathered(accumulators.batch_means(), draws, np.exp(s * draws[..., 0]))
    law = np.exp(s * s) * (1.0 + s * s) / n
    assert abs((result.standard_error[:, 0] ** 2).mean() / law - 1.0) < 0.06
    assert abs(1.0 / n / law - 1.0) > 0.3
    np.testing.assert_allclose(result.mean.mean(), s, atol=4.5 * np.sqrt(law / chains))


def test_batches_join_and_forget_nothing():
    rng = np.random.default_rng(13)
    draws, weights = rng.standard_normal((2, 77, 3)), rng.random((2, 77))
    result = gathered(accumulators.batch_means(4), draws, weights)
    assert (result.batch_length[0], result.n_batches[0]) == (16, 4)
    whole = gathered(accumulators.moments(), draws, weights)
    np.testing.assert_array_equal(result.mean, whole.mean)
    for chain in range(2):
        away = weights[chain, :, None] * (draws[chain] - whole.mean[chain])
        sums = np.add.reduceat(away, np.arange(0, 77, 16))
        error = np.sqrt((sums**2).sum(axis=0) * 5 / 4) / weights[chain].sum()
        np.testing.assert_allclose(result.standard_error[chain], error, rtol=1e-12)
    assert np.isnan(gathered(accumulators.batch_means(100), draws).ess).all()


@pytest.mark.parametrize("name", ["moments", "plane", "line", "kl", "energies", "best", "batches"])
def test_cuts_change_no_bit(name, masses):
    rng = np.random.default_rng(14)
    draws, weights, energies = rng.standard_normal((3, 600, 2)), rng.random((3, 600)), rng.standard_normal((3, 600))
    steps = np.arange(4, 904, 3)
    accumulator = every(masses, [5, 100, 101, 500, 902])[name]
    whole = gathered(accumulator, draws, weights, energies, steps)
    for cuts in (np.arange(1, 300), [1, 2, 5, 33, 34, 299], [150]):
        assert_same(whole, gathered(accumulator, draws, weights, energies, steps, cuts))
    strided = np.repeat(draws, 2, axis=1)[:, ::2]
    assert_same(whole, gathered(accumulator, strided, weights, energies, steps))


# --- Bad arguments -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: accumulators.histogram([1.0]), "x_edges must be at least 2 numbers that increase"),
        (lambda: accumulators.histogram([[0.0, 1.0]]), "x_edges must be at least 2 numbers that increase"),
        (lambda: accumulators.histogram([0.0, 1.0], [0.0, 0.0]), "y_edges must be at least 2 numbers that increase"),
        (lambda: accumulators.histogram([0.0, np.inf]), "x_edges must be finite"),
        (lambda: accumulators.histogram("edges"), "x_edges must be an array of real numbers"),
        (lambda: accumulators.histogram(EDGES, EDGES, coordinates=(1, 1)), "coordinates must be different"),
        (lambda: accumulators.histogram(EDGES, coordinates=1), "coordinates must be two numbers"),
        (lambda: accumulators.histogram(EDGES, EDGES, coordinates=(0, -1)), r"coordinates\[1\] must be ≥ 0, got -1"),
        (lambda: accumulators.kl(COSINE.truth, EDGES, EDGES, at=[]), "at must be a sequence of numbers of steps"),
        (lambda: accumulators.kl(COSINE.truth, EDGES, EDGES, at=5), "at must be a sequence of numbers of steps"),
        (lambda: accumulators.kl(COSINE.truth, EDGES, EDGES, at=[0]), r"at\[0\] must be ≥ 1, got 0"),
        (lambda: accumulators.kl(COSINE.truth, EDGES, EDGES, at=[5, 5]), r"at must increase, got \[5, 5\]"),
        (
            lambda: accumulators.kl([0.5, 0.5], [0, 1, 2, 3], at=[1]),
            r"truth must have masses of the grid's shape \(3,\)",
        ),
        (lambda: accumulators.kl([2.0, 0.5], [0, 1, 2], at=[1]), "masses must be ≥ 0 and sum to at most 1"),
        (lambda: accumulators.kl(None, [0, 1, 2], at=[1]), "truth must be an array of real numbers"),
        (lambda: accumulators.kl([1.0], [0, 1], at=[1], pseudo_count=0), "pseudo_count must be finite and > 0"),
        (
            lambda: accumulators.kl(COSINE.truth, EDGES, EDGES, at=[1], coordinates=(1, 0)),
            r"coordinates must be \(0, 1\)",
        ),
        (lambda: accumulators.energy_histogram([3.0, 1.0]), "edges must be at least 2 numbers that increase"),
        (lambda: accumulators.batch_means(3), "n_batches must be ≥ 4"),
        (lambda: accumulators.batch_means(7.0), "n_batches must be an integer"),
    ],
)
def test_bad_arguments_are_refused(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()


@pytest.mark.parametrize(
    "accumulator",
    [accumulators.histogram(EDGES, EDGES), accumulators.histogram(EDGES, coordinates=(1, 0)),
     accumulators.kl([[1.0]], [0, 1], [0, 1], at=[1])],
)  # fmt: skip
def test_a_problem_that_lacks_the_coordinates_is_refused(accumulator):
    with pytest.raises(ValueError, match="coordinates must be < 1, the dimension of"):
        sample(mixtures.three_on_a_line(), samplers.sgld(0.1), n_steps=5, seed=0, accumulators={"grid": accumulator})
