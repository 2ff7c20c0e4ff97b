"""Stores that workers write by regions are those that one machine writes; their summaries are those of diagnostics."""

import dataclasses
import shutil
import warnings

import numpy as np
import pytest
import xarray
import zarr

from targets import mixtures
from tests.support.device_cases import made
from tests.toolkit.distributed.clusters import local_cluster
from toolkit import LoadError, accumulators, diagnostics, load, open_run, sample, samplers
from toolkit._distributed import distributed_run, store, store_summary
from toolkit._distributed.part import arrays_of

pytestmark = pytest.mark.filterwarnings("ignore::toolkit.ContourWarning")  # short runs are not settled

COSINE = mixtures.cosine25()
SHORT = {"n_steps": 60, "burn_in": 10, "thin": 5, "seed": 11, "n_chains": 13}
OF_ONE = ("header", "checksum", "places")  # texts, which say who wrote them and when


@pytest.fixture(scope="module")
def client():
    with local_cluster(n_workers=2, processes=False) as client:
        yield client


def small_blocks(monkeypatch):
    """Blocks of four chains, as if draws were large."""
    monkeypatch.setattr(store, "block_of", lambda run: 4)
    monkeypatch.setattr(distributed_run.store, "block_of", lambda run: 4)


@pytest.mark.slow_cases("True-sgld", "False-resgld", "False-csgld", "True-icsgld")
@pytest.mark.parametrize("name", ["sgld", "resgld", "csgld", "icsgld"])
@pytest.mark.parametrize("keep_replicas", [False, True])
def test_the_store_of_workers_is_that_of_one_machine(client, monkeypatch, tmp_path, name, keep_replicas):
    small_blocks(monkeypatch)
    options = {**SHORT, "keep_replicas": keep_replicas, "keep_energies": True, "trace_every": 20}
    whole = sample(COSINE, made(name), **options, save=tmp_path / "whole.zarr")
    stored = sample(COSINE, made(name), **options, client=client, chains_per_task=5, save=tmp_path / "spread.zarr")
    assert (stored.n_chains, stored.dim) == (13, 2)
    loaded = stored.load(COSINE)
    mine, theirs = arrays_of(whole, {}), arrays_of(loaded, {})
    assert mine.keys() == theirs.keys()
    for key, values in mine.items():
        assert values.dtype == theirs[key].dtype
        np.testing.assert_array_equal(values, theirs[key], err_msg=key)
    assert loaded.gradient_evaluations == whole.gradient_evaluations
    with (
        xarray.open_datatree(tmp_path / "whole.zarr", engine="zarr") as one,
        xarray.open_datatree(tmp_path / "spread.zarr", engine="zarr") as two,
    ):
        assert set(one.groups) == set(two.groups)
        for group in one.groups:
            assert set(one[group].variables) == set(two[group].variables)
            for variable in set(one[group].variables) - set(OF_ONE):
                first, second = one[group][variable], two[group][variable]
                assert first.dims == second.dims
                np.testing.assert_array_equal(first.values, second.values, err_msg=f"{group}/{variable}")


def test_tasks_write_whole_chunks(client, monkeypatch, tmp_path):
    """The wrong way: tasks whose regions share a chunk lose each other's draws."""
    small_blocks(monkeypatch)
    seen = []
    write = store.write

    def noted(region, run, first):
        seen.append((first, first + len(run.init)))
        return write(region, run, first)

    monkeypatch.setattr("toolkit._distributed.part.store.write", noted)
    sample(COSINE, samplers.sgld(0.02), **SHORT, client=client, chains_per_task=7, save=tmp_path / "run.zarr")
    assert all(first % 4 == 0 and (last % 4 == 0 or last == 13) for first, last in seen)
    assert zarr.open_array(tmp_path / "run.zarr" / "posterior" / "x").chunks[0] == 4


def test_pooled_results_and_arviz_groups(client, tmp_path):
    pools = {"moments": accumulators.pooled(accumulators.moments())}
    options = {**SHORT, "accumulators": pools}
    whole = sample(COSINE, samplers.sgld(0.02), **options)
    stored = sample(COSINE, samplers.sgld(0.02), **options, client=client, save=tmp_path / "run.zarr")
    for run in (stored.totals, stored.load()):
        np.testing.assert_array_equal(run.accumulated["moments"].mean, whole.accumulated["moments"].mean)
    tree = stored.to_datatree()
    assert tree["posterior"]["x"].chunks is not None
    np.testing.assert_array_equal(tree["posterior"]["x"].values, whole.draws)


def test_a_store_that_was_edited_is_refused(client, monkeypatch, tmp_path):
    small_blocks(monkeypatch)
    stored = sample(COSINE, samplers.sgld(0.02), **SHORT, client=client, save=tmp_path / "run.zarr")
    array = zarr.open_array(tmp_path / "run.zarr" / "posterior" / "x", mode="r+")
    array[9, 3, 1] += 1e-9
    with pytest.raises(LoadError, match="do not fit their checksum"):
        stored.load()


def test_a_store_that_was_broken_off_goes_on(client, monkeypatch, tmp_path):
    small_blocks(monkeypatch)
    options = {**SHORT, "checkpoint": tmp_path / "folder", "checkpoint_every": 1e-6, "chains_per_task": 4}
    after, n_left = distributed_run.PartsFolder.after, [2]

    def add(self, part, collection):
        after(self, part, collection)
        n_left[0] -= 1
        if n_left[0] == 0:
            raise RuntimeError("the power failed")

    with monkeypatch.context() as broken:
        broken.setattr(distributed_run.PartsFolder, "after", add)
        with pytest.raises(RuntimeError, match="the power failed"):
            sample(COSINE, samplers.sgld(0.02), **options, client=client, save=tmp_path / "run.zarr")
    assert not (tmp_path / "run.zarr").exists()
    seen = []
    write = store.write
    monkeypatch.setattr(
        "toolkit._distributed.part.store.write", lambda *arguments: (seen.append(arguments[2]), write(*arguments))[1]
    )
    stored = sample(COSINE, samplers.sgld(0.02), **options, client=client, save=tmp_path / "run.zarr")
    assert len(seen) == 2
    np.testing.assert_array_equal(stored.load().draws, sample(COSINE, samplers.sgld(0.02), **SHORT).draws)


def test_the_summary_is_that_of_the_draws_in_memory(client, tmp_path):
    run = sample(COSINE, samplers.resgld(), n_steps=2000, burn_in=500, thin=3, n_chains=200, seed=1)
    run.save(tmp_path / "run.zarr")
    for table in (open_run(tmp_path / "run.zarr").summary(), open_run(tmp_path / "run.zarr").summary(client)):
        np.testing.assert_allclose(table["mean"], run.draws.mean(axis=(0, 1)), rtol=0, atol=1e-12)
        np.testing.assert_allclose(table["sd"], run.draws.std(axis=(0, 1)), rtol=1e-4)
        np.testing.assert_allclose(table["ess_mean"], diagnostics.ess(run.draws, method="mean"), rtol=1e-9)
        np.testing.assert_allclose(table["ess"], diagnostics.ess(run.draws), rtol=3e-3)
        np.testing.assert_allclose(table["r_hat"], diagnostics.r_hat(run.draws), rtol=3e-3)
        np.testing.assert_allclose(table["median"], np.median(run.draws, axis=(0, 1)), atol=0.02)
        np.testing.assert_allclose(table["mcse"], table["sd"] / np.sqrt(table["ess_mean"]))


def test_workers_leave_the_filters_of_warnings_alone(monkeypatch):
    """They are those of all threads: where two of a worker change them at once, the last may leave them changed."""
    before, seen = warnings.filters, []
    build = store.build_groups
    monkeypatch.setattr(
        store, "build_groups", lambda *a, **k: (seen.append(warnings.filters is before), build(*a, **k))[1]
    )
    run = sample(COSINE, made("csgld"), **SHORT)
    weightless = dataclasses.replace(run, replica_weights=np.zeros_like(run.replica_weights))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        before = warnings.filters
        assert "posterior" not in store.tree_of(weightless, 0)[0].groups
    assert seen == [True]


def test_the_summary_of_what_stands_still(tmp_path):
    """In one place, or each chain in another, as ``diagnostics`` has it."""
    run = sample(COSINE, samplers.sgld(0.02), **SHORT)
    for name, places in (("one", 0.1), ("others", np.arange(13.0)[:, None, None])):
        draws = run.replica_draws.copy()
        draws[..., 0] = places
        still = dataclasses.replace(run, replica_draws=draws)
        still.save(tmp_path / f"{name}.zarr")
        table = open_run(tmp_path / f"{name}.zarr").summary()
        assert table["r_hat"].values[0] == pytest.approx(diagnostics.r_hat(still.draws)[0], nan_ok=True)
        for variable, method in (("ess", "bulk"), ("ess_mean", "mean")):
            own = diagnostics.ess(still.draws, method=method)[0]
            assert table[variable].values[0] == pytest.approx(own, rel=1e-6, nan_ok=True)


def test_ranks_are_those_of_all_draws():
    """Heavy tails, ties, and a block at a time; the wrong law is that of a block's own ranks."""
    values = np.random.default_rng(0).standard_cauchy((400, 50)).round(1)
    edges = np.quantile(values[::7], np.linspace(0.0, 1.0, 2000))
    counts = np.bincount(np.searchsorted(edges, values.ravel(), side="right"), minlength=len(edges) + 1)
    ranks = store_summary.ranks_of(edges, counts)
    from toolkit.diagnostics.convergence import normal_scores

    exact = normal_scores(values, None)
    inner = np.abs(exact) < 3.0
    assert np.abs(ranks.scores(values[:10], values.size) - exact[:10])[inner[:10]].max() < 0.05
    assert np.abs(normal_scores(values[:10] + 1.0, None) - exact[:10])[inner[:10]].max() > 0.05


@pytest.mark.parametrize(
    ("path", "error", "words"),
    [("none.zarr", FileNotFoundError, "there is nothing at"), ("run.npz", ValueError, "must end in .zarr")],
)
def test_what_cannot_be_opened(tmp_path, path, error, words):
    with pytest.raises(error, match=words):
        open_run(tmp_path / path)


def test_what_holds_no_run_is_refused(tmp_path):
    (tmp_path / "run.zarr").mkdir()
    with pytest.raises(LoadError, match="holds no run with draws"):
        open_run(tmp_path / "run.zarr")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"keep_draws": False}, "keep_draws must be True with save"),
        ({"accumulators": {"m": accumulators.moments()}}, "accumulators must be accumulators.pooled"),
    ],
)
def test_what_cannot_be_stored(client, tmp_path, options, words):
    with pytest.raises(ValueError, match=words):
        sample(COSINE, samplers.sgld(0.02), **{**SHORT, **options}, client=client, save=tmp_path / "run.zarr")


def test_save_without_a_client(tmp_path):
    run = sample(COSINE, samplers.sgld(0.02), **SHORT, save=tmp_path / "run.npz")
    np.testing.assert_array_equal(load(tmp_path / "run.npz").draws, run.draws)
    with pytest.raises(ValueError, match="save must end in one of"):
        sample(COSINE, samplers.sgld(0.02), **SHORT, save=tmp_path / "run.csv")
    shutil.rmtree(tmp_path, ignore_errors=True)
