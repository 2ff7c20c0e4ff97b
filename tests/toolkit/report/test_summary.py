"""Summaries of runs: the numbers of the report for every coordinate, by name, of draws, accumulators and settings."""

import json
import warnings
from dataclasses import replace

import numpy as np
import pytest

import toolkit
from sysid import data, identify, likelihoods, systems
from tests.support.laws import gaussian
from toolkit import accumulators, diagnostics, sample, samplers, target
from toolkit.tempering.contour_tempering import Partition
from toolkit.weighting import shares_of

pandas = pytest.importorskip("pandas")
NAMED = replace(gaussian(np.diag([1.0, 4.0, 0.25])), names=["mass", "drag", "lift"])
COLUMNS = ["mean", "sd", "q05", "median", "q95", "mcse", "ess", "ess_tail", "r_hat"]


def drawn(problem=NAMED, sampler=samplers.hmc(0.3), **asked):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sample(problem, sampler, **{"n_steps": 1_000, "n_chains": 4, "burn_in": 100, "seed": 0, **asked})


def test_a_summary_has_the_diagnostics_of_every_coordinate_by_name():
    run = drawn()
    found = run.summary()
    assert list(found.columns) == COLUMNS
    assert list(found.index) == ["mass", "drag", "lift"]
    flat = run.draws.reshape(-1, 3)
    np.testing.assert_allclose(found["mean"], flat.mean(axis=0), rtol=0, atol=1e-12)
    np.testing.assert_allclose(found["ess"], diagnostics.ess(run.draws), rtol=1e-12)
    np.testing.assert_allclose(found["ess_tail"], diagnostics.ess(run.draws, method="tail"), rtol=1e-12)
    np.testing.assert_allclose(found["r_hat"], diagnostics.r_hat(run.draws), rtol=1e-12)
    for column, p in (("q05", 0.05), ("median", 0.5), ("q95", 0.95)):
        np.testing.assert_array_equal(found[column], np.quantile(flat, p, axis=0, method="inverted_cdf"))
    assert found.attrs["source"] == "all draws"
    assert "mass" in str(run)
    assert "drag" in run._repr_html_()


def test_coordinates_without_names_are_numbered_and_none_is_left_out():
    run = drawn(gaussian(np.eye(13)), keep_draws=True)
    assert list(run.summary().index) == [str(d) for d in range(13)]
    assert "the first 10 of 13 coordinates" in str(run)


def test_weights_count_in_quantiles():
    run = drawn(gaussian(np.eye(2)), samplers.csgld(0.3, zeta=0.5, partition=Partition(0.0, 0.4, 20)), n_steps=4_000)
    shares = shares_of(run)
    expected = np.quantile(run.draws.reshape(-1, 2), 0.95, axis=0, weights=shares, method="inverted_cdf")
    np.testing.assert_allclose(run.summary()["q95"], expected, rtol=1e-9)
    assert not np.allclose(run.summary()["q95"], np.quantile(run.draws.reshape(-1, 2), 0.95, axis=0))


def test_a_sweep_has_a_row_for_each_setting_and_coordinate():
    run = drawn(sampler=samplers.sgld(np.repeat([0.2, 0.4], 4)), n_chains=8)
    found = run.summary()
    assert found.index.names == ["setting", "coordinate"]
    assert found.shape == (6, len(COLUMNS))
    for (setting, rows), chains in zip(
        found.groupby(level="setting", sort=False), (slice(4), slice(4, 8)), strict=True
    ):
        assert "0.2" in setting or "0.4" in setting
        np.testing.assert_allclose(rows["mean"], run.draws[chains].reshape(-1, 3).mean(axis=0), atol=1e-12)


def test_without_draws_accumulators_are_summarised():
    run = drawn(keep_draws=False, accumulators={"moments": accumulators.moments()})
    found = run.summary()
    assert list(found.index) == ["mass", "drag", "lift"]
    assert np.isfinite(found[["mean", "sd", "mcse"]].to_numpy()).all()
    assert found[["q05", "median", "q95", "ess_tail"]].isna().all(axis=None)
    with pytest.raises(ValueError, match="must have draws, or an accumulator of moments"):
        drawn(keep_draws=False).summary()


def test_rows_of_an_identification_are_its_parameters():
    lorenz = systems.lorenz()
    series = data.simulate(lorenz, np.linspace(0.0, 5.0, 501), seed=0)
    problem = identify(series, lorenz, likelihood=likelihoods.derivative(noise=1.0)).scaled()
    run = drawn(problem, samplers.sgld(0.1), n_steps=200)
    found = run.summary()
    assert list(found.index) == ["sigma", "rho", "beta"]
    np.testing.assert_allclose(found["mean"], problem.parameters(run).reshape(-1, 3).mean(axis=0), rtol=1e-10)
    assert "sigma" in str(run)
    moments = drawn(problem, samplers.sgld(0.1), keep_draws=False, accumulators={"m": accumulators.moments()})
    assert list(moments.summary().index) == ["0", "1", "2"]  # of positions, which are no parameters


def test_warnings_name_the_coordinate():
    apart = np.array([[-40.0, 0.0, 0.0], [40.0, 0.0, 0.0], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    run = drawn(sampler=samplers.mala(1e-9), init=apart, n_steps=200)
    assert any("for coordinate mass" in sentence for sentence in run.warnings)


@pytest.mark.parametrize("suffix", [".npz", ".nc"])
def test_names_are_kept_in_files(suffix, tmp_path):
    run = drawn()
    run.save(tmp_path / f"run{suffix}")
    again = toolkit.load(tmp_path / f"run{suffix}")
    assert tuple(again.problem.target.names) == ("mass", "drag", "lift")
    assert list(again.to_datatree()["posterior"]["x"].coords["x_dim"].values) == ["mass", "drag", "lift"]
    pandas.testing.assert_frame_equal(again.summary(), run.summary())
    drawn(gaussian(np.eye(2))).save(tmp_path / "plain.npz")
    with np.load(tmp_path / "plain.npz") as file:
        header = json.loads(bytes(file["header"]))
    assert "names" not in header  # older versions read it


def test_names_of_wrong_kind_or_number_are_refused():
    with pytest.raises(TypeError, match="names must be a sequence of strings, got 'ab'"):
        target(lambda x: (x[0] * x[0] + x[1] * x[1], (2.0 * x[0], 2.0 * x[1])), dim=2, names="ab")
    with pytest.raises(ValueError, match="names must be 3 different ones"):
        replace(NAMED, names=["a", "b", "b"])


def test_symbols_name_their_coordinates():
    sympy = pytest.importorskip("sympy")
    from targets import from_sympy

    alpha, beta = sympy.symbols("alpha beta")
    assert tuple(from_sympy(alpha**2 + beta**2, [alpha, beta]).names) == ("alpha", "beta")
    same = [sympy.Symbol("x"), sympy.Symbol("x", real=True)]
    assert from_sympy(same[0] ** 2 + same[1] ** 2, same).names is None


def test_arviz_works_on_what_it_is_given():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        arviz = pytest.importorskip("arviz")
        table = arviz.summary(drawn().to_inference_data(), round_to=12)
    np.testing.assert_allclose(table["mean"], drawn().summary()["mean"], atol=1e-9)
    assert [name for name in table.index if "drag" in name]
