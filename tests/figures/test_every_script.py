"""Figures: every script runs small, its files repeat byte for byte; the plotting layer takes runs or arrays."""

import hashlib

import matplotlib.pyplot as plt
import numpy as np
import pytest

import figures
from figures.scripts.runner import draw_and_save, names, script
from figures.scripts.study import Study
from targets import mixtures, shapes
from toolkit import sample, samplers


def chosen(every_time):
    """All scripts, of which one is tested every time."""
    return [pytest.param(name, marks=[] if name == every_time else [pytest.mark.slow]) for name in names()]


@pytest.mark.parametrize("name", chosen("gallery_tuning"))  # it has figures in a figure
def test_each_script_draws_the_same_bytes_again(produced, name, tmp_path):
    product = produced(name)
    data, places = product.measured.data, ("first", "again")
    first, again = (draw_and_save(product.script, data, tmp_path / place) for place in places)
    assert [path.suffix for path in first] == [".png", ".pdf", ".csv"]
    for a, b in zip(first, again, strict=True):
        assert a.stat().st_size > 100
        assert hashlib.sha256(a.read_bytes()).digest() == hashlib.sha256(b.read_bytes()).digest(), a.suffix


@pytest.mark.parametrize("name", chosen("gallery_domains"))
def test_each_script_measures_the_same_arrays_again(produced, name):
    first = produced(name).measured.data
    again = figures.scripts.cached_data.as_data(
        script(name).module.measure(Study(quick=True, seed=script(name).module.SEED))
    )
    assert first.keys() == again.keys()
    for key in first.keys() - {"seconds"}:  # which are by the clock
        np.testing.assert_array_equal(again[key], first[key], err_msg=key)


@pytest.mark.parametrize("name", names())
def test_each_script_says_what_it_shows_and_keeps_its_data_small(produced, name):
    product = produced(name)
    assert product.script.module.__doc__.partition("\n")[0] == f"{product.script.title}."
    assert product.script.differs.endswith(".") or product.script.paper == "gallery"
    assert sum(array.nbytes for array in product.measured.data.values()) < 5e6
    product.script.compare(product.measured.data)
    assert [path.name for path in product.paths] == [f"{name}.png", f"{name}.csv"]
    assert all(path.stat().st_size > 100 for path in product.paths)


def test_primitives_take_runs_or_arrays():
    run = sample(mixtures.cosine25(), samplers.sgld(1e-3), n_steps=200, n_chains=2, seed=1, init=[0.0, 0.0])
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
    assert band.get_paths()[0].vertices[:, 1].max() == pytest.approx(1.5 * np.exp(4.302653 * 0.5 / np.sqrt(3) / 1.5))
    (path,) = figures.trajectory(np.arange(8.0).reshape(4, 2), axes, breaks=np.array([0, 0, 1, 0], bool))
    assert np.isnan(path.get_xdata()).tolist() == [False, False, True, False, False]
    for bad in (np.zeros((3, 3)), np.zeros(4)):
        with pytest.raises(ValueError, match="must"):
            figures.density(bad, axes, x_edges=edges, y_edges=edges)
        with pytest.raises(ValueError, match="must have shape"):
            figures.trajectory(bad, axes)
    plt.close("all")
