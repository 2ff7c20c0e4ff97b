"""The first picture of a run: the right panels, density in the plane, ranks that are flat where chains agree."""

from dataclasses import replace

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest

import figures
from targets import constrained, mixtures, shapes
from tests.support.laws import gaussian
from toolkit import boundaries, sample, samplers
from toolkit.tempering.contour_tempering import Partition

mpl.use("Agg")
FLOWER = constrained(mixtures.cosine25(), shapes.flower(petals=5, offset=3.0, radius=2.0))


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def drawn(problem, sampler=samplers.hmc(0.3), **asked):
    return sample(problem, sampler, **{"n_steps": 3_000, "n_chains": 4, "burn_in": 100, "seed": 0, **asked})


def test_the_plane_shows_the_density_and_the_edge():
    run = drawn(FLOWER, samplers.sgld(0.01, boundary=boundaries.reflect()))
    panels = run.plot()
    assert list(panels) == ["density", "x[0]", "x[1]"]
    (image,) = panels["density"].images
    cells = np.asarray(image.get_array())
    (left, right), (low, high) = panels["density"].get_xlim(), panels["density"].get_ylim()
    assert cells.shape == (100, 100)
    np.testing.assert_allclose(cells.sum() * (right - left) * (high - low) / cells.size, 1.0, rtol=1e-9)
    edge = panels["density"].collections[0].get_paths()[0].vertices
    inside = FLOWER.contains(edge * 0.98)
    assert len(edge) > 100
    assert inside.mean() > 0.95
    assert not FLOWER.contains(edge * 1.05).any()


def test_ranks_are_even_where_chains_agree_and_not_where_they_do_not():
    law = replace(gaussian(np.eye(3)), names=("a", "b", "c"))
    agree = drawn(law).plot()
    assert list(agree) == ["a", "ranks of a", "b", "ranks of b", "c", "ranks of c"]
    apart = drawn(law, samplers.sgld(1e-7), init=np.linspace(-2.0, 2.0, 12).reshape(4, 3)).plot()

    def unevenness(panels):
        lines = panels["ranks of a"].lines[1:]  # the first is the even one
        return max(np.abs(line.get_ydata() * 20.0 - 1.0).max() for line in lines)

    assert len(agree["a"].lines) == 4
    assert unevenness(agree) < 0.6
    assert unevenness(apart) > 2.5


def test_weights_count_in_the_density():
    run = drawn(gaussian(np.eye(2)), samplers.csgld(0.3, zeta=0.5, partition=Partition(0.0, 0.4, 20)), n_steps=6_000)
    cells = np.asarray(figures.overview(run)["density"].images[0].get_array())
    alike = np.asarray(figures.overview(replace(run, replica_weights=None))["density"].images[0].get_array())
    assert cells.max() > 1.1 * alike.max()  # contour visits the tails more often, and gives them less weight


def test_many_coordinates_and_chains_are_cut_with_a_word():
    run = drawn(gaussian(np.eye(12)), n_chains=15, n_steps=200)
    figure = plt.figure()
    panels = figures.overview(run, figure)
    assert len(panels) == 16
    assert "the first 8 of 12 coordinates; lines: the first 10 of 15 chains" in figure.get_suptitle()
    with pytest.raises(ValueError, match="figure must be empty"):
        figures.overview(run, figure)


def test_a_run_without_draws_is_refused():
    with pytest.raises(ValueError, match="run must have draws"):
        drawn(gaussian(np.eye(2)), keep_draws=False).plot()


def test_a_run_says_where_no_package_that_is_installed_offers_pictures(monkeypatch):
    run = drawn(gaussian(np.eye(2)), n_steps=200)
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: [])
    with pytest.raises(ImportError, match=r"an entry point 'overview' of 'manymodes\.pictures'"):
        run.plot()
