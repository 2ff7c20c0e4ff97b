"""A saved run comes back bit for bit from every format."""

import dataclasses
import json
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest

from targets import constrained, domains, mixtures
from tests.support.saving_cases import (
    BOX,
    FORMATS,
    NAMED,
    NORMAL,
    SEED,
    assert_same,
    assert_same_run,
    files_of,
    own_move,
    quick_or_slow,
    run_of,
)
from toolkit import (
    DivergenceError,
    LoadError,
    Sampler,
    Target,
    UnavailableError,
    accumulators,
    boundaries,
    dynamics,
    from_callable,
    load,
    sample,
    samplers,
    schedules,
)
from toolkit._output.storage import formats
from toolkit._output.storage.run_contents import contents_of
from toolkit.accumulators.chain_tree import POOLED_RESULTS

pytestmark = [
    pytest.mark.usefixtures("unflushed"),
    pytest.mark.filterwarnings("ignore::toolkit.ContourWarning"),  # runs too short for θ
]


@pytest.mark.cases(4)
@pytest.mark.parametrize(("name", "suffixes"), quick_or_slow(NAMED, {"icsgld", "r2sghmc", "tact_hmc"}))
def test_every_constructors_run_comes_back_from_every_format(name, suffixes, tmp_path):
    run = run_of(NAMED[name], keep_energies=True, trace_every=7, keep_replicas=True)
    for suffix in suffixes:
        path = tmp_path / f"läuft Δ{suffix}"
        run.save(path)
        back = load(path, BOX)
        assert_same_run(run, back)
        assert back.problem is BOX
        assert back.seed == SEED
    assert {path.name for path in tmp_path.iterdir()} == {f"läuft Δ{suffix}" for suffix in suffixes}


OPTIONS = {
    "nothing": {}, "energies": {"keep_energies": True}, "trace": {"trace_every": 1},
    "no statistics": {"keep_statistics": False}, "replicas": {"keep_replicas": True}, "no draws": {"keep_draws": False},
    "one chain": {"n_chains": 1}, "one draw": {"thin": 40},
}  # fmt: skip


@pytest.mark.parametrize(("kept", "suffixes"), quick_or_slow(OPTIONS, {"no draws"}))
def test_whatever_was_kept_comes_back(kept, suffixes, tmp_path):
    """Of a weighted run of three replicas that sample the target, and of an exchange."""
    for name in ("icsgld", "r2sgld"):
        run = run_of(NAMED[name], **OPTIONS[kept])
        for suffix in suffixes:
            run.save(tmp_path / f"run{suffix}")
            assert_same_run(run, load(tmp_path / f"run{suffix}"))


def odd_numbers(run):
    """The run with draws of every kind of bits: infinite, of either zero, nan with a payload, subnormal."""
    payload = np.array([0x7FF8000000000123, 0xFFF0000000000000, 0x8000000000000000, 1], np.uint64).view(np.float64)
    draws = np.resize(payload, run.replica_draws.shape)
    return dataclasses.replace(run, replica_draws=draws)


@pytest.mark.parametrize("suffix", FORMATS)
def test_every_bit_of_a_number_comes_back(suffix, tmp_path):
    run = odd_numbers(run_of(NAMED["mala"]))
    run.save(tmp_path / f"run{suffix}")
    assert_same_run(run, load(tmp_path / f"run{suffix}"))
    zeros = dataclasses.replace(run, replica_draws=np.full(run.replica_draws.shape, -0.0))
    zeros.save(tmp_path / f"run{suffix}")
    assert_same_run(zeros, load(tmp_path / f"run{suffix}"))


class Moments(NamedTuple):
    mean: np.ndarray
    total: int
    nothing: None
    inner: tuple


class Means:
    """An accumulator of the user's own, with a result of several kinds."""

    needs_energies = False

    def start(self, problem, n_chains):
        return {"sum": np.zeros((n_chains, problem.target.dim))}

    def update(self, state, draws, weights, energies, steps):
        for i in range(draws.shape[1]):
            state["sum"] += draws[:, i]

    def result(self, state):
        return Moments(state["sum"].copy(), 7, None, (np.arange(3), np.float64(0.5)))


@pytest.mark.parametrize("suffix", FORMATS)
def test_results_of_accumulators_come_back(suffix, tmp_path):
    run = run_of(NAMED["sgld"], accumulators={"a/b ü": Means(), "a|b ü": Means()}, keep_draws=False)
    run.save(tmp_path / f"run{suffix}")
    back = load(tmp_path / f"run{suffix}")
    assert list(back.accumulated) == ["a/b ü", "a|b ü"]
    for found in back.accumulated.values():
        assert isinstance(found, SimpleNamespace)  # a class of the user's own is not made by a file
        assert_same(run.accumulated["a/b ü"].mean, found.mean)
        assert (found.total, found.nothing) == (7, None)
        assert_same(found.inner[0], np.arange(3))
        assert found.inner[1] == 0.5
    back.save(tmp_path / f"again{suffix}")
    assert load(tmp_path / f"again{suffix}").accumulated.keys() == back.accumulated.keys()


@pytest.mark.parametrize("suffix", FORMATS)
def test_results_of_all_chains_come_back(suffix, tmp_path):
    """With their types, and numbers as arrays without axes."""
    edges = np.linspace(-3.0, 3.0, 4)
    every = {
        "moments": accumulators.moments(),
        "batches": accumulators.batch_means(4),
        "line": accumulators.histogram(edges),
        "energies": accumulators.energy_histogram(edges),
        "kl": accumulators.kl([0.2, 0.5, 0.3], edges, at=[10, 10_000]),
        "best": accumulators.best_point(),
    }
    chosen = {name: accumulators.pooled(accumulator) for name, accumulator in every.items()}
    run = run_of(NAMED["sgld"], accumulators=chosen, keep_draws=False)
    run.save(tmp_path / f"run{suffix}")
    back = load(tmp_path / f"run{suffix}")
    assert {type(result) for result in back.accumulated.values()} == set(POOLED_RESULTS)
    assert_same_run(run, back)
    for name, result in run.accumulated.items():
        for found, value in zip(back.accumulated[name], result, strict=True):
            assert (value is None and found is None) or (found.shape, found.dtype) == (value.shape, value.dtype)
            assert value is None or found.tobytes() == value.tobytes()
    assert str(back) == str(run)


@pytest.mark.parametrize("suffix", FORMATS)
def test_without_the_problem_a_stand_in_takes_its_place(suffix, tmp_path):
    path = tmp_path / f"run{suffix}"
    run = run_of(NAMED["sgld"])
    run.save(path)
    back = load(path)
    assert back.problem.name == BOX.name
    assert back.problem.target.dim == 2
    np.testing.assert_array_equal(back.problem.target.parameters, NORMAL.parameters)
    np.testing.assert_array_equal(back.problem.domain.float_table, BOX.domain.float_table)
    for use in (
        lambda: back.problem.target.evaluate(np.zeros((1, 2))),
        lambda: back.problem.contains(np.zeros((1, 2))),
        lambda: sample(back.problem, back.sampler, n_steps=10, seed=1),
    ):
        with pytest.raises(UnavailableError, match="the file holds the name of"):
            use()
    back.save(path)  # and again, without having it
    assert_same_run(run, load(path, BOX))
    again = sample(BOX, load(path).sampler, n_steps=60, burn_in=20, thin=2, n_chains=2, seed=back.seed)
    assert_same(again.draws, run.draws)


def test_another_problem_is_refused_with_the_difference_named(tmp_path):
    run = run_of(NAMED["sgld"])
    run.save(tmp_path / "run.npz")
    others = {
        "problem.domain: box": NORMAL,
        "problem.domain.real": constrained(NORMAL, domains.box([-2.0, -2.0], [2.5, np.inf])),
        "problem.target.parameters[": constrained(
            mixtures.gaussian_mixture([[0.0, 0.5]], 1.0), domains.box([-2.0, -2.0], [2.0, np.inf])
        ),
    }
    for words, other in others.items():
        with pytest.raises(ValueError, match="problem must be the one of the run") as caught:
            load(tmp_path / "run.npz", other)
        assert words in str(caught.value)
        assert not isinstance(caught.value, LoadError)
    with pytest.raises(TypeError, match="problem must be"):
        load(tmp_path / "run.npz", 3)


def own_block(position, energy, gradient, parameters, scratch):
    for lane in range(energy.size):
        energy[lane] = 0.5 * parameters[0] * position[0, lane] ** 2
        gradient[0, lane] = parameters[0] * position[0, lane]


@pytest.mark.parametrize("suffix", FORMATS)
def test_what_is_ones_own_is_saved_by_its_name(suffix, tmp_path):
    """A target of a Python function, with another handle now; a schedule and dynamics of functions."""
    python = from_callable(lambda x: (0.5 * (x**2).sum(axis=1), x), dim=1, name="Pythons ∇")
    own = Sampler(
        "mine", (0.1,), dynamics=dynamics.Dynamics("mine", own_move),
        schedule=schedules.custom(lambda steps: np.ones(steps.size)),
    )  # fmt: skip
    for target, sampler in ((python, samplers.sgld(0.1)), (Target("own", 1, own_block, [2.0]), own)):
        run = sample(target, sampler, n_steps=20, n_chains=2, seed=1, init=[0.5])
        run.save(tmp_path / f"run{suffix}")
        back = load(tmp_path / f"run{suffix}", target)
        assert_same(run.draws, back.draws)
        assert back.sampler.name == sampler.name
        stand_in = load(tmp_path / f"run{suffix}").problem.target
        assert stand_in.name == target.name
        with pytest.raises(UnavailableError):
            stand_in.evaluate(np.zeros((1, 1)))
        back.to_datatree()
    with pytest.raises(UnavailableError):
        sample(target, back.sampler, n_steps=5, seed=1)


def test_a_run_that_diverged_is_saved(tmp_path):
    with pytest.raises(DivergenceError) as caught:
        sample(NORMAL, samplers.sgld(5.0), n_steps=20_000, n_chains=2, seed=1, init=[1.0, 1.0])
    run = caught.value.run
    assert np.isnan(run.draws).any()
    for suffix in (".npz", ".nc"):
        run.save(tmp_path / f"run{suffix}")
        assert_same_run(run, load(tmp_path / f"run{suffix}", NORMAL))


def test_counts_are_compressed_and_draws_are_not(tmp_path):
    run = run_of(NAMED["r2sgld"], n_steps=20_000, burn_in=0, thin=1)
    run.save(tmp_path / "run.npz")
    with zipfile.ZipFile(tmp_path / "run.npz") as archive:
        kinds = {
            item.filename: (item.compress_type, item.compress_size / item.file_size) for item in archive.infolist()
        }
    assert kinds["replica_draws.npy"][0] == zipfile.ZIP_STORED
    assert kinds["steps.npy"][0] == kinds["statistics.swaps.npy"][0] == zipfile.ZIP_DEFLATED
    assert kinds["statistics.swaps.npy"][1] < 0.7


def test_draws_are_stored_once(tmp_path):
    run = run_of(NAMED["sgld"], n_steps=50_000, burn_in=0, thin=1)
    for suffix in (".nc", ".zarr"):
        path = tmp_path / f"run{suffix}"
        run.save(path)
        size = sum(file.stat().st_size for file in files_of(path))
        energies = run.draws.nbytes / 2
        assert run.draws.nbytes + energies < size < 1.25 * (run.draws.nbytes + energies)


def test_a_large_run_whose_files_are_not_made_in_memory_has_the_same_files(tmp_path, monkeypatch):
    run = run_of(NAMED["r2sgld"], n_steps=100)
    contents, names = contents_of(run), ("small.zarr", "large.zarr")
    for name, largest in zip(names, (formats.LARGEST_IN_MEMORY, 0), strict=True):
        monkeypatch.setattr(formats, "LARGEST_IN_MEMORY", largest)
        formats.write_zarr(run, contents, tmp_path / name)
    small, large = (
        {file.relative_to(tmp_path / name): file.read_bytes() for file in files_of(tmp_path / name)} for name in names
    )
    listed = [json.loads(files.pop(Path(".zmetadata"))) for files in (small, large)]  # whose order is Zarr's
    assert listed[0] == listed[1]
    assert small == large


def test_penalties_and_boundaries_come_back(tmp_path):
    penalties = boundaries.penalise(2.0), boundaries.penalise_as_printed(2.0)
    for boundary in (boundaries.reject(), *penalties, boundaries.reflect(max_bounces=3)):
        run = run_of(samplers.sgld(0.1, boundary=boundary))
        run.save(tmp_path / "run.npz")
        assert load(tmp_path / "run.npz").sampler == run.sampler
