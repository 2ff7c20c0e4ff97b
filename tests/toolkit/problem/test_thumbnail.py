"""Pictures of problems in notebooks: of the plane alone, of where the density is, white outside, and never an error."""

import base64
import io
import re
import subprocess
import sys

import matplotlib.image
import numpy as np
import pytest

import toolkit
from targets import classics, constrained, mixtures, shapes
from toolkit import sample, samplers, target
from toolkit.problem.thumbnail import density_on, window_of

FLOWER = constrained(mixtures.cosine25(), shapes.flower(petals=5, offset=3.0, radius=2.0))


def pixels(made):
    data = base64.b64decode(re.search('base64,(.*?)"', made)[1])
    return matplotlib.image.imread(io.BytesIO(data))[..., :3]


@pytest.mark.parametrize("problem", [FLOWER, mixtures.gaussian_grid25(), classics.ring(), classics.himmelblau()])
def test_a_problem_in_the_plane_has_a_picture(problem):
    made = problem._repr_html_()
    assert repr(problem).replace("'", "&#x27;").split("(")[0] in made
    colours = np.unique(pixels(made).reshape(-1, 3).round(2), axis=0)
    assert len(colours) > 30


def test_the_outside_of_a_domain_is_white_and_the_inside_is_as_dense_as_it_is():
    low, high = window_of(FLOWER)
    np.testing.assert_allclose([low, high], FLOWER.truth.region.bounds, atol=0.1)
    density = density_on(FLOWER, low, high)
    share = np.isfinite(density).mean() * np.prod(high - low)
    assert share == pytest.approx(FLOWER.truth.region.volume, rel=0.02)
    assert np.nanmax(density) == 1.0


def test_a_target_of_ones_own_is_shown_where_it_is():
    @target(dim=2, names=("rate", "<size>"))
    def own(x):
        return 50.0 * ((x[0] - 1.0) ** 2 + x[1] ** 2), (100.0 * (x[0] - 1.0), 100.0 * x[1])

    picture = pixels(own._repr_html_())
    bright = (picture[..., 0] > 0.5) & (picture[..., 2] < 0.6)
    assert bright.mean() > 0.01  # in a window of ±4 it would be a dot
    assert "size" not in own._repr_html_().partition("base64")[0]  # names are drawn, not written


def test_other_dimensions_and_broken_functions_have_words_alone(tmp_path):
    assert mixtures.unequal_pair()._repr_html_() is None
    assert classics.funnel(dim=3)._repr_html_() is None
    nowhere = toolkit.from_callable(lambda points: 1 / 0, dim=2, name="nowhere")
    assert nowhere._repr_html_() is None
    run = sample(FLOWER, samplers.sgld(0.01, boundary=toolkit.boundaries.reflect()), n_steps=20, seed=0)
    run.save(tmp_path / "run.npz")
    assert toolkit.load(tmp_path / "run.npz").problem._repr_html_() is None


def test_matplotlib_is_imported_for_a_picture_alone():
    script = "import sys, toolkit, targets; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
