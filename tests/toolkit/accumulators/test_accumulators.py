"""Accumulators: what stored draws give, for any cuts, threads and other chains; accurate, and of constant memory."""

import tracemalloc

import numpy as np
import pytest

from targets import mixtures
from tests.support.accumulator_cases import COSINE, EDGES, assert_same, every, gathered
from tests.support.simple_targets import QUARTIC
from toolkit import DivergenceError, Layout, accumulators, diagnostics, sample, samplers, schedules, stream
from toolkit.tempering.contour_tempering import Partition

WEIGHTED = samplers.icsgld(1e-3, n_replicas=3, partition=Partition(-4.5, 0.5, 40))
EXCHANGE = samplers.resgld((1e-3, 3e-3), temperatures=(1.0, 5.0))


@pytest.fixture(scope="module")
def masses():
    return COSINE.truth.cell_masses(EDGES, EDGES)


@pytest.mark.cases(1)
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


def test_draws_of_a_diverged_chain_are_left_out():
    chosen = {"moments": accumulators.moments(), "line": accumulators.histogram([-1e9, 1e9])}
    with pytest.raises(DivergenceError) as caught:
        sample(
            QUARTIC, samplers.sgld(0.02), n_steps=300, n_chains=3,
            init=[[0.1], [5.0], [0.2]], seed=6, accumulators=chosen, layout=Layout(chunk_steps=100),
        )  # fmt: skip
    run = caught.value.run
    finite = np.isfinite(run.draws[..., 0])
    assert finite.sum(axis=1).min() < 100
    moments = run.accumulated["moments"]
    np.testing.assert_array_equal(moments.draws, finite.sum(axis=1))
    np.testing.assert_array_equal(run.accumulated["line"].draws, finite.sum(axis=1))
    assert np.isfinite(moments.mean).all()


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


LAST_DROPPED = schedules.custom(keep=np.arange(1_000) < 998)


@pytest.mark.parametrize(("thin", "schedule", "n"), [(7, schedules.constant(), 142), (1, LAST_DROPPED, 998)])
def test_kl_at_the_end_is_of_all_draws_by_then(masses, tmp_path, thin, schedule, n):
    """Though the last steps keep no draw: in one go, streamed, saved, resumed and extended, the same bits."""
    sampler, at = samplers.sgld(0.05, schedule=schedule), [499, 998 if thin == 1 else 500, 1_000]
    asked = {"n_chains": 3, "thin": thin, "seed": 2}
    asked["accumulators"] = {"kl": accumulators.kl(masses, EDGES, EDGES, at=[*at, 1_001])}
    run = sample(COSINE, sampler, n_steps=1_000, **asked)
    found, kept = run.accumulated["kl"], np.searchsorted(run.steps, at)
    assert kept[2] == n
    np.testing.assert_array_equal(found.draws, np.tile([*kept, 0], (3, 1)))
    for i, ends in enumerate(kept):
        path = diagnostics.kl_path(run.draws, masses, EDGES, EDGES, [ends])
        np.testing.assert_array_equal(found.kl[:, i], path[:, 0])
    assert np.isnan(found.kl[:, 3]).all()
    *early, last = stream(COSINE, sampler, n_steps=1_000, layout=Layout(chunk_steps=250), **asked)
    assert_same(last.accumulated["kl"], found)
    known = [int(np.isfinite(chunk.accumulated["kl"].kl[0]).sum()) for chunk in early]
    assert known == [int((np.array(at) <= steps).sum()) for steps in (250, 500, 750)]
    if thin > 1:  # a schedule given step by step is of one length
        for steps in (300, 500, 999):
            checkpoint = tmp_path / f"{steps}.ckpt"
            sample(COSINE, sampler, n_steps=steps, checkpoint=checkpoint, **asked)
            longer = sample(COSINE, sampler, n_steps=1_000, checkpoint=checkpoint, **asked)
            assert_same(longer.accumulated["kl"], found)


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
        (
            lambda: accumulators.kl(COSINE.truth, EDGES, at=[1]),
            "y_edges must be given in 2 dimensions",
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
