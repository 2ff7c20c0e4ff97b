"""Figures: every script runs small, its numbers hold, its files repeat byte for byte."""

import csv
import hashlib
import importlib
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

import figures
from targets import catalogue, mixtures, shapes
from toolkit import sample, samplers

FOLDER = Path(figures.__file__).parent
SCRIPTS = [path.stem for path in [*sorted(FOLDER.glob("*_fig*.py")), *sorted(FOLDER.glob("gallery_*.py"))]]


def rows(path):
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """The files of every script, drawn small."""
    out = tmp_path_factory.mktemp("out")
    scripts = {name: importlib.import_module(f"figures.{name}").draw for name in SCRIPTS}
    return {name: [figures.run_script(draw, out, quick=True)] for name, draw in scripts.items()}


TAKES_LONG = {name for name in SCRIPTS if name.startswith("r2sgld") and "fig1" not in name and "fig9" not in name}


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (n in TAKES_LONG)) for n in SCRIPTS])
def test_each_script_writes_the_same_bytes_again(drawn, name, tmp_path):
    first = drawn[name][0]
    second = figures.run_script(importlib.import_module(f"figures.{name}").draw, tmp_path, quick=True)
    assert [path.suffix for path in first] == [".png", ".pdf", ".csv"]
    for a, b in zip(first, second, strict=True):
        assert a.stat().st_size > 100
        assert hashlib.sha256(a.read_bytes()).digest() == hashlib.sha256(b.read_bytes()).digest()


def test_flower_numbers(drawn):
    """With 2,000 draws and 4 chains the order of the methods shows already."""
    table = rows(drawn["r2sgld_fig5_flower"][0][2])
    last = {row["method"]: row for row in table if int(row["draws"]) == 2_000}
    kl = {method: float(row["kl_nats"]) for method, row in last.items()}
    assert len(kl) == 11
    for reflected, penalised, free in (
        ("R-SGLD", "P-SGLD", "SGLD"), ("R-cycSGLD", "P-cycSGLD", "cycSGLD"), ("r2SGLD", "P-reSGLD", "reSGLD")
    ):  # fmt: skip
        assert kl[reflected] < kl[free]
        assert kl[reflected] < kl[penalised] * 1.25  # they part with more draws
    nine = {k: v for k, v in kl.items() if k not in ("independent draws", "r2SGLD (released swap)")}
    assert min(nine, key=nine.get) == "r2SGLD"
    floor = float(last["r2SGLD"]["kl_of_independent_draws"])
    assert floor == pytest.approx(kl["independent draws"], rel=0.05)
    assert floor < kl["r2SGLD"] < 1.2 * floor
    assert float(last["r2SGLD"]["worth_independent_draws"]) > 1_500
    assert float(last["r2SGLD"]["share_outside"]) == 0.0
    assert float(last["SGLD"]["share_outside"]) > 0.2
    assert 0.25 < float(last["r2SGLD"]["swap_rate"]) < 0.35


def test_flower_settings_are_those_it_states(monkeypatch, tmp_path):
    """Equal cost, the paper's step sizes and noise, the stated penalty: what the script's text says it runs."""
    script = importlib.import_module("figures.r2sgld_fig5_flower")
    calls = []
    monkeypatch.setattr(script, "sample", lambda p, s, **k: calls.append((s, k)) or sample(p, s, **k))
    figures.run_script(script.draw, tmp_path, quick=True)
    assert len(calls) == 10
    for sampler, call in calls:
        assert (call["n_steps"] - call["burn_in"]) * sampler.n_replicas == 20 * 2_000
        assert call["burn_in"] * 5 == call["n_steps"] - call["burn_in"]
        assert call["thin"] * sampler.n_replicas == 20
        assert sampler.gradient_noise == 0.05
        assert sampler.boundary.coefficient == (10.0 if sampler.boundary.kind == "penalise" else 0.0)
        if sampler.n_replicas == 2:
            assert (tuple(sampler.step_sizes), tuple(sampler.temperatures)) == ((5e-4, 1.5e-3), (1.0, 10.0))
            assert sampler.energy_noise == 0.05
        else:
            cyclical = sampler.schedule.name == "cosine_cycles(5, exploration=0.0, floor=0.1)"
            assert tuple(sampler.step_sizes) == ((1e-3,) if cyclical else (5e-4,))
    released = calls[-1][0]
    assert (released.correction, released.tempering.swap_threshold) == (9.5, 3e-4)
    assert [s.tempering.swap_threshold for s, _ in calls[:-1] if s.tempering] == [None] * 3


def test_independent_draws_differ_between_chains(drawn):
    table = rows(drawn["r2sgld_fig5_flower"][0][2])
    assert all(float(r["kl_half_width_95"]) > 0 for r in table)


def test_trajectory_numbers(drawn):
    table = rows(drawn["r2sgld_fig1_trajectory"][0][2])
    assert len(table) == 400
    assert 0.2 < np.mean([int(row["swapped"]) for row in table]) < 0.45
    paths = {r: np.array([[float(row[f"{r}_x1"]), float(row[f"{r}_x2"])] for row in table]) for r in ("cold", "hot")}
    swapped = np.array([int(row["swapped"]) for row in table])[1:] == 1
    for name, other, reach in (("cold", "hot", 8 * np.sqrt(2 * 5e-4)), ("hot", "cold", 8 * np.sqrt(2 * 1.5e-3 * 10))):
        came_from = np.where(swapped[:, None], paths[other][:-1], paths[name][:-1])
        assert (np.hypot(*(paths[name][1:] - came_from).T) < reach).all()


def test_gallery_numbers(drawn):
    known = {row["target"]: row for row in rows(drawn["gallery_targets"][0][2])}
    assert list(known) == [target.name for target in catalogue()]
    assert float(known["unequal_pair"]["log_normaliser"]) == 0.0
    assert float(known["unequal_pair"]["lightest_mode"]) == 0.4
    assert int(known["gaussian_grid25"]["modes"]) == 25
    gaussian = known["correlated_gaussian(0.95) in 2-D"]
    assert float(gaussian["energy_median"]) == pytest.approx(np.log(2.0), rel=1e-5)
    assert float(gaussian["log_normaliser"]) == pytest.approx(np.log(2 * np.pi * np.sqrt(1 - 0.95**2)), rel=1e-5)
    regions = {row["domain"]: row for row in rows(drawn["gallery_domains"][0][2])}
    assert float(regions["flower"]["area"]) == pytest.approx(np.pi * (2 / 3.5) ** 2 * 9.5, rel=1e-5)
    assert float(regions["box"]["largest_distance"]) == pytest.approx(1.0, abs=0.06)  # on a grid of 60 points
    assert {float(row["share_of_path_outside"]) for row in regions.values()} == {0.0}


def test_identification_numbers(drawn):
    """3,000 steps in place of 60,000: the closed form is there, and σ of SGLD as far as its relaxation law has come."""
    posterior = {name: rows(drawn[name][0][2]) for name in SCRIPTS if name.endswith("posterior")}
    assert len(posterior) == 3
    for table in posterior.values():
        for row in table:
            assert float(row["closed_form_mean"]) == pytest.approx(float(row["truth"]), rel=2e-3)
            assert float(row["mode_sd_over_seeds"]) > 0.0
            assert (row["swap_rate"] == "nan") == ("re" not in row["method"] and "r2" not in row["method"])
            assert (float(row["reflections_per_seed"]) > 0.0) <= row["method"].startswith(("R-", "r2"))
    sigma = {row["method"]: row for row in posterior["r2sgld_fig6_lorenz_posterior"] if row["parameter"] == "sigma"}
    rate = 5e-6 / float(sigma["SGLD"]["closed_form_sd"]) ** 2
    at = np.exp(-rate * np.arange(1_001, 3_001)).mean()  # the draws' mean, from 0 and from 2
    assert float(sigma["SGLD"]["mean"]) == pytest.approx(10.0 * (1.0 - at), abs=0.25)
    assert float(sigma["R-SGLD"]["mean"]) > float(sigma["SGLD"]["mean"]) + 0.5
    printed = {(r["method"], r["parameter"]): r["printed_mode"] for r in posterior["r2sgld_fig4_lorenz_posterior"]}
    assert printed["r2SGLD", "sigma"] == "9.99"
    for name in ("r2sgld_fig3_lorenz_simulation", "r2sgld_fig7_lorenz_simulation"):
        assert all(0.0 < float(row["time_together"]) < 40.0 for row in rows(drawn[name][0][2]))
    assert all(0.0 < float(row["relative_error_of_simulation"]) < 1.5
               for row in rows(drawn["r2sgld_fig9_lotka_volterra_simulation"][0][2]))  # fmt: skip
    assert all(int(r["swaps"]) > 0 and int(r["reflections"]) > 0 for r in rows(drawn["r2sgld_fig2_schematic"][0][2]))


def test_identification_settings_are_those_it_states():
    experiment = importlib.import_module("figures.r2sgld_identification")
    assert (experiment.N_STEPS, experiment.BURN_IN, experiment.BATCH, experiment.N_SEEDS) == (60_000, 20_000, 4096, 10)
    for name, largest in (("lorenz", 2e-5), ("lotka_volterra", 1e-5)):
        steps = {m: tuple(experiment.sampler_of(name, m).step_sizes) for m in experiment.METHODS}
        pairs = ("SGLD", "R-SGLD"), ("cycSGLD", "R-cycSGLD"), ("reSGLD", "r2SGLD")
        for pair, expected in zip(pairs, ((5e-6,), (largest,), (2e-6, largest)), strict=True):
            assert [steps[method] for method in pair] == [expected] * 2
        for method in experiment.METHODS:
            sampler = experiment.sampler_of(name, method)
            assert sampler.boundary.kind == ("reflect" if method.startswith(("R-", "r2")) else "ignore")
            assert ("cosine_cycles(10" if "cyc" in method else "exponential_decay(0.9999") in sampler.schedule.name


def test_primitives_take_runs_or_arrays():
    run = sample(mixtures.cosine25(), samplers.sgld(1e-3), n_steps=200, n_chains=2, seed=1)
    edges = np.linspace(-2, 2, 11)
    _, axes = plt.subplots()
    by_run = figures.density(run, axes, x_edges=edges, y_edges=edges, shape=shapes.flower())
    by_array = figures.density(run.draws, axes, x_edges=edges, y_edges=edges)
    np.testing.assert_array_equal(by_run.get_array(), by_array.get_array())
    cell = 0.4 * 0.4
    assert by_run.get_array().sum() * cell == pytest.approx(1.0)
    masses = np.zeros((10, 10))
    masses[2, 7] = 1.0
    picture = figures.density(masses, axes, x_edges=edges, y_edges=edges).get_array()
    assert picture[7, 2] == pytest.approx(1 / cell)  # rows of a picture are y
    line, band = figures.kl_curve([1, 10], [[1.0, 0.5], [2.0, 0.7], [1.5, 0.9]], axes, label="x", color="black")
    np.testing.assert_allclose(line.get_ydata(), [1.5, 0.7])
    assert band.get_paths()[0].vertices[:, 1].max() == pytest.approx(1.5 + 4.302653 * 0.5 / np.sqrt(3))
    (path,) = figures.trajectory(np.arange(8.0).reshape(4, 2), axes, breaks=np.array([0, 0, 1, 0], bool))
    assert np.isnan(path.get_xdata()).tolist() == [False, False, True, False, False]
    for bad in (np.zeros((3, 3)), np.zeros(4)):
        with pytest.raises(ValueError, match="must"):
            figures.density(bad, axes, x_edges=edges, y_edges=edges)
        with pytest.raises(ValueError, match="must have shape"):
            figures.trajectory(bad, axes)
    plt.close("all")
