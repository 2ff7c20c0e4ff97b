"""Sweeps: every cell is the run that ``sample`` makes, however it was grouped, interrupted, resumed or distributed."""

import dataclasses
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest

import toolkit
from sysid import identify, systems
from sysid.data import simulate
from targets import constrained, domains, mixtures, posteriors
from toolkit import CheckpointError, CheckpointWarning, DivergenceError, InterruptedWarning, boundaries, samplers
from toolkit._distributed.sweeps import cells as sweep_cells
from toolkit._distributed.sweeps import sweep as sweep_module
from toolkit._distributed.sweeps.grid import COUNTS, STATISTICS
from toolkit._distributed.sweeps.statistics import statistics_of
from toolkit.diagnostics import ess, r_hat
from toolkit.tempering import Partition

pytestmark = pytest.mark.filterwarnings("ignore::toolkit.errors.ContourWarning")  # short runs of contour
ROOT = Path(__file__).resolve().parents[3]
TWO = mixtures.gaussian_mixture([[0.0, 0.0], [3.0, 3.0]], 1.0)
LINE = mixtures.gaussian_mixture([[0.5]], 1.0)
QUARTER = constrained(TWO, domains.box([0.0, 0.0], [5.0, 5.0]))
RUN = {"n_steps": 60, "n_chains": 3, "burn_in": 10}
STEPS = [0.02, 0.05, 0.1]


def sgld_grid(steps=STEPS, **axes):
    return toolkit.grid(samplers.sgld, {"step_size": steps, **axes})


def ladder(constructor):
    """``constructor`` with a step size and a hottest temperature for its ladder."""

    def make(step_size, top=4.0, **others):
        return constructor(step_sizes=(step_size, 2 * step_size), temperatures=(1.0, top), **others)

    return make


def by_temperatures(temperatures):
    """A ladder of any length."""
    return samplers.resgld(step_sizes=[0.05] * len(temperatures), temperatures=temperatures)


def look(run):
    """The draws and counts of a run themselves, whose bits are compared."""
    return {"draws": run.draws, "theta": run.theta, "swaps": run.swaps.sum(axis=1), "weights": run.weights,
            "start": run.init[:, 0], "step": run.sampler.arrays["step_sizes"][0]}  # fmt: skip


def of_arrays(points):
    """A target in Python."""
    return 0.5 * (points**2).sum(axis=1), points


DATA = np.random.default_rng(1).standard_normal((40, 2)), np.arange(40) % 2
PARTITION = Partition(0.0, 0.5, 20)
CASES = {
    "sgld": (TWO, samplers.sgld, {"step_size": STEPS, "temperature": [0.5, 2.0]}, {}),
    "sghmc, friction": (TWO, samplers.sghmc, {"step_size": STEPS, "friction": [0.1, 0.5]}, {}),
    "resgld": (TWO, ladder(samplers.resgld), {"step_size": STEPS, "top": [2.0, 4.0]}, {}),
    "resgld, ladders of two lengths": (TWO, by_temperatures, {"temperatures": [(1.0, 2.0), (1.0, 2.0, 4.0)]}, {}),
    "hmc": (TWO, samplers.hmc, {"step_size": STEPS, "n_leapfrogs": [2, 5]}, {}),
    "csgld, a pilot": (LINE, samplers.csgld, {"step_size": STEPS[1:]}, {}),
    "csgld, a partition": (LINE, samplers.csgld, {"step_size": STEPS}, {"partition": PARTITION}),
    "sgld, minibatches": (posteriors.logistic_regression(*DATA, batch_size=4), samplers.sgld, {"step_size": STEPS}, {}),
    "sgld, a Python function": (toolkit.from_callable(of_arrays, dim=2), samplers.sgld, {"step_size": STEPS}, {}),
    "r2sgld": (QUARTER, ladder(samplers.r2sgld), {"step_size": STEPS}, {"boundary": boundaries.reflect()}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_cell_is_the_run_of_sample(name):
    problem, constructor, axes, fixed = CASES[name]
    grid = toolkit.grid(constructor, axes, **fixed)
    table = toolkit.sweep(problem, grid, seeds=[3, 2**63], measure=look, threads=2, **RUN)
    for i in range(len(grid)):
        for seed in (3, 2**63):
            place = dict(zip(axes, np.unravel_index(i, grid.shape), strict=True))
            cell = table.isel(place).sel(seed=seed)
            run = toolkit.sample(problem, constructor(**grid.setting(i)), seed=seed, threads=1, **RUN)
            for key, value in look(run).items():
                assert np.array_equal(cell[key], value), key
            assert cell.gradient_evaluations == run.gradient_evaluations
            assert cell.diverged == 0.0


@pytest.mark.parametrize(
    "init", [[1.0, 2.0], [[0.0, 0.0], [1.0, 1.0], [2.0, 0.0]], "each replica", toolkit.Spread(0.5)]
)
def test_starts_are_those_of_sample(init):
    """One for all, of each chain, of each chain and replica, and drawn."""
    if init == "each replica":
        init = np.arange(12.0).reshape(3, 2, 2) / 4.0
    grid = toolkit.grid(ladder(samplers.resgld), {"step_size": STEPS})
    table = toolkit.sweep(TWO, grid, seeds=[0], init=init, measure=look, threads=1, **RUN)
    for i in range(len(STEPS)):
        run = toolkit.sample(TWO, grid.sampler(i), seed=0, init=init, **RUN)
        assert np.array_equal(table["draws"][i, 0], run.draws)


def test_a_bar_counts_runs(capsys):
    toolkit.sweep(TWO, sgld_grid(), seeds=[0, 1], progress=True, **RUN)
    assert "sgld: " in capsys.readouterr().err
    toolkit.sweep(TWO, sgld_grid(), seeds=[0, 1], progress=False, **RUN)
    assert not capsys.readouterr().err


def test_numbers_of_a_cell_are_those_of_the_run():
    """Mean, sd, ESS and R-hat are those of ``run.draws``; acceptance and swaps are shares."""
    grid = toolkit.grid(ladder(samplers.pt_hmc), {"step_size": STEPS, "n_leapfrogs": [2, 3]})
    table = toolkit.sweep(TWO, grid, seeds=[0, 1], **RUN)
    for i in range(len(grid)):
        run = toolkit.sample(TWO, grid.sampler(i), seed=1, **RUN)
        cell = table.sel(seed=1).isel(dict(zip(grid.axes, np.unravel_index(i, grid.shape), strict=True)))
        points = run.draws.reshape(-1, 2)
        assert cell["mean"].values == pytest.approx(points.mean(axis=0), abs=1e-13)
        assert cell["sd"].values == pytest.approx(points.std(axis=0), rel=1e-13)
        assert np.array_equal(cell["ess"], ess(run.draws))
        assert np.array_equal(cell["r_hat"], r_hat(run.draws))
        assert cell["mcse"].values == pytest.approx(
            points.std(axis=0) / ess(run.draws, method="mean") ** 0.5, rel=1e-12
        )
        assert float(cell["acceptance"]) == run.acceptance[:, 0].mean()
        assert float(cell["swap_rate"]) == run.swaps.sum() / run.counts.attempted.sum()
        truth = TWO.truth
        expected = (cell["mean"].values - truth.mean) / np.sqrt(np.diagonal(truth.covariance))
        assert cell["error"].values == pytest.approx(expected, rel=1e-12)
    means = table["mean"].values
    assert table["mean_over_seeds"].values == pytest.approx(means.mean(axis=2), rel=1e-12)
    assert table["mean_standard_error"].values == pytest.approx(means.std(axis=2, ddof=1) / 2**0.5, rel=1e-12)


@pytest.mark.parametrize(("chains", "draws"), [(1, 3), (1, 4), (1, 37), (4, 50), (3, 400)])
def test_statistics_of_many_runs_are_those_of_each(chains, draws):
    """Bit for bit, with ties, coordinates that stand still in some or all chains, and draws that are not finite."""
    rng = np.random.default_rng(1)
    runs = []
    for i in range(70):
        points = rng.standard_normal((chains, draws, 3)) * 10.0 ** rng.integers(-8, 8)
        points[:, :, 1] = points[:, :, 1].round(1) if i % 2 else np.repeat(points[:, :1, 1], draws, axis=1)
        points[:, :, 2] = 3.0 if i % 3 else points[:, :, 2].cumsum(axis=1)
        if i == 50:
            points[0, 0, 0] = np.inf
        runs.append(Draws(points[:, None]))
    together = statistics_of(runs)
    assert np.isnan(together[50]).all()
    for i, run in enumerate(runs):
        assert np.array_equal(together[i], statistics_of([run])[0], equal_nan=True)
        if i != 50:
            assert np.array_equal(together[i, 3], ess(run.draws), equal_nan=True)
            assert np.array_equal(together[i, 4], r_hat(run.draws), equal_nan=True)
            with np.errstate(invalid="ignore"):
                mcse = together[i, 1] / np.sqrt(ess(run.draws, method="mean"))
            assert together[i, 2] == pytest.approx(mcse, rel=1e-12, nan_ok=True)


class Draws:
    """A run as far as ``statistics_of`` reads it."""

    replica_weights = None

    def __init__(self, replica_draws):
        self.replica_draws, self.draws = replica_draws, replica_draws[:, 0]


def test_weighted_runs_have_weighted_means():
    grid = toolkit.grid(samplers.csgld, {"step_size": STEPS}, partition=PARTITION)
    table = toolkit.sweep(LINE, grid, seeds=[0], **RUN)
    for h in STEPS:
        run = toolkit.sample(LINE, samplers.csgld(h, partition=PARTITION), seed=0, **RUN)
        shares = run.weights / run.weights.sum(axis=1, keepdims=True)
        cell = table.sel(step_size=h, seed=0)
        assert float(cell["mean"][0]) == pytest.approx(
            float((shares * run.draws[..., 0]).sum(axis=1).mean()), abs=1e-12
        )
        assert np.array_equal(cell["ess"], ess(run.draws, weights=run.weights))
        assert np.array_equal(cell["r_hat"], r_hat(run.draws, weights=run.weights))


def test_chains_that_are_numbered_through_give_other_bits(monkeypatch):
    """A wrong law: chains of the second setting with numbers after those of the first are other chains."""

    def draws():
        table = toolkit.sweep(TWO, sgld_grid(), seeds=[0], measure=look, threads=1, **RUN)
        return table["draws"].sel(seed=0).values

    right = draws()
    monkeypatch.setattr(sweep_cells, "Keys", lambda chains: sweep_cells_keys(np.arange(len(chains))))
    wrong = draws()
    assert np.array_equal(right[0], wrong[0])
    assert not np.isclose(right[1:], wrong[1:]).any()


sweep_cells_keys = sweep_cells.Keys


def test_coordinates_are_labelled_by_the_names_that_all_problems_have():
    named = dataclasses.replace(TWO, names=("rate", "scale"))
    unnamed, table, mixed = (
        toolkit.sweep(problem, sgld_grid(), seeds=[1], **RUN) for problem in (TWO, named, {"named": named, "two": TWO})
    )
    assert list(table.coordinate.values) == ["rate", "scale"]
    assert list(unnamed.coordinate.values) == list(mixed.coordinate.values) == [0, 1]
    assert np.array_equal(table["mean"].sel(coordinate="scale"), unnamed["mean"].sel(coordinate=1))
    data = simulate(systems.lotka_volterra(), np.linspace(0.0, 1.0, 11), seed=0)
    positive = identify(data, systems.lotka_volterra(), log=["alpha"])  # positions are other numbers than parameters
    scaled = toolkit.sweep(positive, toolkit.grid(samplers.sgld, {"step_size": [1e-9]}), seeds=[1], **RUN)
    assert list(scaled.coordinate.values) == [0, 1, 2, 3]


def test_settings_of_equal_parts_run_together(monkeypatch):
    """Engine calls are counted: one for each problem, seed and friction."""
    calls = []
    runs_of = sweep_cells.runs_of
    monkeypatch.setattr(
        sweep_cells, "runs_of", lambda r, cells, stop: calls.append(len(cells)) or runs_of(r, cells, stop)
    )
    grid = toolkit.grid(samplers.sghmc, {"step_size": STEPS, "friction": [0.1, 0.5], "temperature": [1.0, 2.0]})
    toolkit.sweep({"two": TWO, "line": LINE}, grid, seeds=[0, 1], threads=1, **RUN)
    assert sum(calls) == 2 * 2 * len(grid)
    assert max(calls) == 6
    assert len(calls) <= 2 * 2 * 2 + 8  # tasks, of at first 8 cells, may divide some


def test_problems_are_a_dimension():
    table = toolkit.sweep({"two": TWO, "line": LINE}, sgld_grid(), seeds=range(2), **RUN)
    assert table["mean"].dims == ("problem", "step_size", "seed", "coordinate")
    assert list(table.problem.values) == ["two", "line"]
    assert np.isnan(table["mean"].sel(problem="line", coordinate=1)).all()
    alone = toolkit.sweep(LINE, sgld_grid(), seeds=[1], **RUN)
    for name in STATISTICS:
        assert np.array_equal(table[name].sel(problem="line", seed=1, coordinate=0), alone[name][:, 0, 0])
    for name in set(COUNTS) & set(alone):
        assert np.array_equal(table[name].sel(problem="line", seed=1), alone[name][:, 0])


def test_a_setting_that_diverges_is_marked_and_the_others_go_on():
    steps = [0.05, 1e6]
    table = toolkit.sweep(TWO, sgld_grid(steps), seeds=[0], measure=look, **RUN)
    with pytest.raises(DivergenceError):
        toolkit.sample(TWO, samplers.sgld(1e6), seed=0, on_divergence="keep", **RUN)
    assert list(table["diverged"].values.ravel()) == [0.0, 1.0]
    bad = table.sel(step_size=1e6)
    assert all(np.isnan(bad[name]).all() for name in (*STATISTICS, "draws"))
    run = toolkit.sample(TWO, samplers.sgld(0.05), seed=0, **RUN)
    assert np.array_equal(table["draws"].sel(step_size=0.05, seed=0), run.draws)
    everything = toolkit.sweep(TWO, sgld_grid(steps[1:]), seeds=[0, 1], measure=look, **RUN)
    assert (everything["diverged"] == 1.0).all()
    assert np.isnan(everything["mean_over_seeds"]).all()
    assert "draws" not in everything


@toolkit.target(dim=1)
def quartic(x):
    return 0.25 * x[0] ** 4, (x[0] ** 3,)


def test_a_setting_of_which_some_chains_diverge_has_no_numbers():
    """x − h x³ runs away from 50 at h = 0.05; the mean of the other chains would be of those that stayed."""
    call = {**RUN, "init": [[0.1], [0.2], [50.0]]}
    table = toolkit.sweep(quartic, sgld_grid([1e-4, 0.05]), seeds=[0], measure=look, **call)
    assert table["diverged"].values.ravel() == pytest.approx([0.0, 1.0 / 3.0])
    assert all(np.isnan(table[name].sel(step_size=0.05)).all() for name in (*STATISTICS, "draws"))
    run = toolkit.sample(quartic, samplers.sgld(1e-4), seed=0, **call)
    assert np.array_equal(table["draws"].sel(step_size=1e-4, seed=0), run.draws)
    kept = toolkit.sample(quartic, samplers.sgld(0.05), seed=0, on_divergence="keep", **call)
    assert float(table["gradient_evaluations"][1, 0]) == kept.gradient_evaluations


def test_a_pilot_that_diverges_marks_its_setting():
    grid = toolkit.grid(samplers.csgld, {"step_size": [0.1, 1e6]})
    table = toolkit.sweep(LINE, grid, seeds=[0], **RUN)
    assert list(table["diverged"].values.ravel()) == [0.0, 1.0]
    assert np.isnan(table["gradient_evaluations"].values[1])


def test_bits_depend_on_neither_threads_nor_tasks(monkeypatch):
    grid = toolkit.grid(samplers.sghmc, {"step_size": np.geomspace(0.01, 0.1, 9), "friction": [0.1, 0.5]})
    call = dict(RUN, seeds=[0, 1], measure=look)
    one = toolkit.sweep(TWO, grid, threads=1, **call)
    monkeypatch.setattr(sweep_module, "MOST_CELLS", 3)
    monkeypatch.setattr(sweep_cells, "DRAWS_BYTES", 2 * 8 * 3 * 50 * 2)
    assert one.equals(toolkit.sweep(TWO, grid, threads=3, **call))
    backwards = toolkit.grid(samplers.sghmc, {name: values[::-1] for name, values in grid.axes.items()})
    again = toolkit.sweep(TWO, backwards, threads=2, **{**call, "seeds": [1, 0]})
    assert one.equals(again.sel(one.coords)[list(one)])


def test_the_page_runs_as_written(monkeypatch, tmp_path):
    """The indented blocks of docs/sweeps.md, and what it says of the size of a file."""
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "sweeps.md").read_text(encoding="utf-8")
    names: dict = {}
    for block in re.findall(r"(?:^    .*\n|^\n(?=    ))+", page, re.MULTILINE):
        exec(textwrap.dedent(block), names)
    assert names["table"]["error"].sel(temperature=1.0).dims == ("step_size", "seed", "coordinate")
    size = os.path.getsize("sweep.ckpt") / 36
    assert 130 < size < 700  # 36 runs are few for the record that describes them


# Files.


@pytest.fixture
def counted(monkeypatch):
    """A list to which every cell that is computed is added."""
    cells = []
    compute = sweep_module.compute_cells
    monkeypatch.setattr(sweep_module, "compute_cells", lambda r, own, stop: cells.extend(own) or compute(r, own, stop))
    return cells


def test_a_sweep_is_extended_without_computing_anything_again(tmp_path, counted):
    call = dict(RUN, checkpoint=tmp_path / "sweep.ckpt", measure=look)
    toolkit.sweep(TWO, sgld_grid([0.05, 0.02]), seeds=[0, 1], **call)
    assert len(counted) == 4
    counted.clear()
    assert toolkit.sweep(TWO, sgld_grid([0.02, 0.05]), seeds=[1, 0], **call)["mean"].notnull().all()
    assert not counted
    more = toolkit.sweep(TWO, sgld_grid([0.1, 0.02, 0.05]), seeds=[2, 1, 0], **call)
    assert len(counted) == 9 - 4
    counted.clear()
    fewer = toolkit.sweep(TWO, sgld_grid([0.2, 0.05]), seeds=[1, 7], **call)  # partly different
    assert len(counted) == 3
    counted.clear()
    both = toolkit.sweep({"own": TWO, "other": QUARTER}, sgld_grid([0.05]), seeds=[1], **call)
    assert len(counted) == 1
    call = dict(RUN, measure=look)
    assert more.equals(toolkit.sweep(TWO, sgld_grid([0.1, 0.02, 0.05]), seeds=[2, 1, 0], **call))
    assert fewer.equals(toolkit.sweep(TWO, sgld_grid([0.2, 0.05]), seeds=[1, 7], **call))
    assert np.array_equal(both["mean"].sel(problem="own", seed=1)[0], fewer["mean"].sel(step_size=0.05, seed=1))


CHANGES = {
    "n_steps": ({"n_steps": 70}, "n_steps: 60 there, 70 here"),
    "n_chains": ({"n_chains": 2}, "n_chains: 3 there, 2 here"),
    "burn_in": ({"burn_in": 5}, "burn_in: 10 there, 5 here"),
    "thin": ({"thin": 2}, "thin: 1 there, 2 here"),
    "init": ({"init": [0.0, 0.0]}, "init: None there, an array of shape"),
    "measure": ({"measure": look}, "measure: None there"),
    "problem": (
        {"problem": mixtures.gaussian_mixture([[0.0, 0.0], [3.0, 4.0]], 1.0)},
        r"problem: target\.parameters\[\d+\]: 3\.0 there, 4\.0 here",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_another_sweep_is_refused_and_the_difference_named(name, tmp_path):
    changes, words = CHANGES[name]
    call = {**RUN, "problem": TWO, "grid": sgld_grid(), "seeds": [0], "checkpoint": tmp_path / "sweep.ckpt"}
    toolkit.sweep(**call)
    before = (tmp_path / "sweep.ckpt").read_bytes()
    with pytest.raises(CheckpointError, match=words):
        toolkit.sweep(**{**call, **changes})
    assert (tmp_path / "sweep.ckpt").read_bytes() == before


def test_a_file_that_ends_anywhere_is_resumed(tmp_path, counted):
    """As a kill leaves it; one whose last record was edited is used as far as it is whole, with a warning."""
    path, call = tmp_path / "sweep.ckpt", dict(RUN, seeds=[0], threads=1)
    whole = toolkit.sweep(TWO, sgld_grid(np.geomspace(0.01, 0.1, 40)), checkpoint=path, **call)
    content = path.read_bytes()
    n_records = content.count(b"manymode\x01")
    assert n_records > 3
    found = set()
    for length in [0, 1, 7, *np.linspace(20, len(content), 12).astype(int)]:
        path.write_bytes(content[:length])
        counted.clear()
        again = toolkit.sweep(TWO, sgld_grid(np.geomspace(0.01, 0.1, 40)), checkpoint=path, **call)
        assert again.equals(whole)
        found.add(len(counted))
        counted.clear()
        assert toolkit.sweep(TWO, sgld_grid(np.geomspace(0.01, 0.1, 40)), checkpoint=path, **call).equals(whole)
        assert not counted
    assert {0, 40} < found
    edited = bytearray(content)
    edited[-100] ^= 1
    path.write_bytes(edited)
    with pytest.warns(CheckpointWarning, match=r"is torn or was edited.* are used"):
        again = toolkit.sweep(TWO, sgld_grid(np.geomspace(0.01, 0.1, 40)), checkpoint=path, **call)
    assert again.equals(whole)


def test_files_of_others_are_left_alone(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("mine")
    with pytest.raises(CheckpointError, match="no checkpoint of this toolkit"):
        toolkit.sweep(TWO, sgld_grid(), seeds=[0], checkpoint=path, **RUN)
    assert path.read_text() == "mine"
    toolkit.sample(TWO, samplers.sgld(0.1), seed=0, checkpoint=tmp_path / "run", **RUN)
    with pytest.raises(CheckpointError, match="not of a sweep"):
        toolkit.sweep(TWO, sgld_grid(), seeds=[0], checkpoint=tmp_path / "run.draws", **RUN)
    (tmp_path / "sweep.zarr").mkdir()
    with pytest.raises(ValueError, match=r"checkpoint must not end in \.zarr.*give '.*sweep\.ckpt', and save"):
        toolkit.sweep(TWO, sgld_grid(), seeds=[0], checkpoint=tmp_path / "sweep.zarr", **RUN)


def test_a_file_in_use_is_refused(tmp_path):
    path = tmp_path / "sweep.ckpt"

    def reenter(run):
        with pytest.raises(CheckpointError, match="in use by another sweep"):
            toolkit.sweep(TWO, sgld_grid(), seeds=[0], checkpoint=path, **RUN)
        return {"one": 1.0}

    toolkit.sweep(TWO, sgld_grid(), seeds=[0], checkpoint=path, measure=reenter, **RUN)


SCRIPT = """
import os, signal, sys, numpy as np, toolkit
from targets import mixtures
from toolkit import samplers
from toolkit._distributed.sweeps import sweep
from toolkit._output.storage.checkpoint_file import Journal
sweep.MOST_CELLS = 4
sweep.TaskSizes.next = lambda sizes, left, n_threads: left  # not by the time that tasks took
append, count = Journal.append, 0
def counted(self, info, arrays):
    global count
    append(self, info, arrays)
    count += 1
    if count == 6:
        os.kill(os.getpid(), signal.SIGKILL)
Journal.append = counted
problem = mixtures.gaussian_mixture([[0.0, 0.0], [3.0, 3.0]], 1.0)
grid = toolkit.grid(samplers.sgld, {"step_size": np.geomspace(0.01, 0.1, 40)})
toolkit.sweep(problem, grid, seeds=[0], n_steps=60, n_chains=3, burn_in=10, checkpoint=sys.argv[1], threads=2)
"""


def test_a_killed_sweep_is_resumed(tmp_path, counted):
    """Killed after its sixth record, of which four have runs; as many are computed as the file does not have."""
    path = tmp_path / "sweep.ckpt"
    ended = subprocess.run([sys.executable, "-c", SCRIPT, str(path)], cwd=ROOT, check=False, timeout=120)
    assert ended.returncode == -signal.SIGKILL
    call = dict(RUN, seeds=[0])
    grid = sgld_grid(np.geomspace(0.01, 0.1, 40))
    found = toolkit.sweep(TWO, grid, checkpoint=path, **call)
    assert len(counted) == 40 - 4 * 4
    assert found.equals(toolkit.sweep(TWO, grid, **call))


# Interruption, errors, arguments.


def test_ctrl_c_returns_what_is_there(tmp_path, counted):
    path = tmp_path / "sweep.ckpt"
    grid = sgld_grid(np.geomspace(0.01, 0.1, 40))

    def press(run):
        if run.sampler.arrays["step_sizes"][0] > 0.05:
            os.kill(os.getpid(), signal.SIGINT)
            threading.Event().wait(0.05)
        return {"steps": run.n_steps}

    with pytest.warns(InterruptedWarning, match=r"interrupted after \d+ of 40 runs"):
        part = toolkit.sweep(TWO, grid, seeds=[0], threads=1, checkpoint=path, measure=press, **RUN)
    known = part["mean"].notnull().all("coordinate").values.ravel()
    assert 0 < known.sum() < 40
    assert "error" in part
    counted.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            whole = toolkit.sweep(TWO, grid, seeds=[0], threads=1, checkpoint=path, measure=press, **RUN)
        finally:
            signal.signal(signal.SIGINT, handler)
    assert len(counted) == 40 - known.sum()
    assert np.array_equal(whole["mean"].values[known], part["mean"].values[known])


def test_what_measure_raises_names_the_run():
    def fails(run):
        if run.sampler.step_sizes == (0.05,):  # the second of three that run together
            raise KeyError("what")
        return {}

    with pytest.raises(KeyError, match="what") as caught:
        toolkit.sweep(TWO, sgld_grid(), seeds=[5], measure=fails, **RUN)
    assert "step_size=0.05 on 'gaussian_mixture(2 in 2-D)', seed=5" in caught.value.__notes__[0]


@pytest.mark.parametrize(("given", "error", "words"), [
    (lambda run: 1.0, TypeError, "measure must return a mapping"),
    (lambda run: {"mean": 1.0}, ValueError, "other than"),
    (lambda run: {"x": "text"}, TypeError, "real numbers"),
    (lambda run: {"x": np.zeros(int(100 * run.sampler.step_sizes[0]))}, ValueError, "same names and shapes"),
])  # fmt: skip
def test_what_measure_returns_is_checked(given, error, words):
    with pytest.raises(error, match=words):
        toolkit.sweep(TWO, sgld_grid(), seeds=[0], measure=given, **RUN)


@pytest.mark.parametrize(("axes", "fixed", "words"), [
    ({"step": [0.1]}, {}, "axes must name arguments of sgld, which are step_size"),
    ({"step_size": []}, {}, r"axes\['step_size'\] must have at least one value"),
    ({"step_size": [0.1, 0.1]}, {}, "must have distinct values, got 0.1 twice"),
    ({"step_size": [0.1]}, {"step_size": 0.1}, "step_size must be an axis or fixed"),
    ({"step_size": [0.1, -0.1]}, {}, r"sgld\(step_size=-0.1\): step_size must be"),
    ({"step_size": [0.1]}, {"nonsense": 1}, "fixed must name arguments of sgld"),
    ({"step_size": [(0.1, 0.2)]}, {}, "several settings: make them an axis"),
    ({"boundary": [boundaries.reflect(), boundaries.reflect()]}, {}, "must have distinct values"),
])  # fmt: skip
def test_grids_are_checked_before_anything_runs(axes, fixed, words):
    with pytest.raises(ValueError, match=words):
        toolkit.grid(samplers.sgld, axes, **fixed)


def test_axes_of_parts_and_strings_have_labels():
    grid = toolkit.grid(samplers.sgld, {"schedule": [toolkit.schedules.constant(), toolkit.schedules.cosine_cycles(2)]})
    assert len(set(grid.labels["schedule"])) == 2
    table = toolkit.sweep(TWO, toolkit.grid(samplers.psgld, {"drift_correction": [True, False]}), seeds=[0], **RUN)
    assert float(table["mean"].sel(drift_correction=True, seed=0, coordinate=0)) != float(
        table["mean"].sel(drift_correction=False, seed=0, coordinate=0)
    )
    pairs = toolkit.grid(by_temperatures, {"temperatures": [(1.0, 2.0), (1.0, 3.0)]})
    assert list(pairs.labels["temperatures"]) == ["(1.0, 2.0)", "(1.0, 3.0)"]


@pytest.mark.parametrize(("changes", "error", "words"), [
    ({"seeds": []}, ValueError, "one or more distinct integers"),
    ({"seeds": [1, 1]}, ValueError, "one or more distinct integers"),
    ({"seeds": 3}, TypeError, "seeds must be a sequence"),
    ({"seeds": [-1]}, ValueError, r"seeds\[0\] must be"),
    ({"grid": samplers.sgld()}, TypeError, "grid must be a Grid"),
    ({"problem": {}}, TypeError, "problem must be"),
    ({"problem": {"a": 3}}, TypeError, "problem must be"),
    ({"n_steps": 10}, ValueError, "burn_in must be"),
    ({"thin": 51}, ValueError, "thin must be"),
    ({"client": 3}, TypeError, "client must be None or a dask"),
    ({"threads": 0}, ValueError, "threads must be"),
])  # fmt: skip
def test_arguments_are_checked_before_anything_runs(changes, error, words, counted):
    with pytest.raises(error, match=words):
        toolkit.sweep(**{"problem": TWO, "grid": sgld_grid(), "seeds": [0], **RUN, **changes})
    assert not counted


def test_the_table_is_saved_by_xarray(tmp_path):
    import xarray

    table = toolkit.sweep({"two": TWO}, sgld_grid(), seeds=[0, 1], measure=look, **RUN)
    table.to_netcdf(tmp_path / "sweep.nc", engine="h5netcdf")
    with xarray.open_dataset(tmp_path / "sweep.nc", engine="h5netcdf") as read:
        assert read.equals(table)
    assert dataclasses.is_dataclass(sgld_grid())


def test_an_interrupted_table_has_all_columns(monkeypatch):
    """Also where no run is done: columns follow from the problems and the grid, not from the cells that are there."""
    grid = sgld_grid([0.02, 0.05])
    whole = toolkit.sweep({"two": TWO, "line": LINE}, grid, seeds=[0, 1], threads=1, **RUN)

    def pressed(self, runner):
        raise KeyboardInterrupt

    monkeypatch.setattr(sweep_module.Collected, "fill_with", pressed)
    with pytest.warns(InterruptedWarning, match="interrupted after 0 of 8 runs"):
        part = toolkit.sweep({"two": TWO, "line": LINE}, grid, seeds=[0, 1], threads=1, **RUN)
    assert set(part) == set(whole)
    assert "error_over_seeds" in part
    assert {name: part[name].shape for name in part} == {name: whole[name].shape for name in whole}
