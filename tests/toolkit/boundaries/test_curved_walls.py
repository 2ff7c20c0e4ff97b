"""Reflection at a ball contracts by the law that its docstring states, and a run warns where that is much."""

import numpy as np
import pytest

from targets import domains
from tests.support.laws import gaussian
from toolkit import Sampler, boundaries, dynamics, load, sample
from toolkit._output.report.curved_walls import DRAWS, contraction, error_of_draws
from toolkit.problem import Problem


def ball_run(dim, step_size, friction, region=None):
    """SGHMC of a flat energy in the unit ball, from its centre."""
    region = domains.ball([0.0] * dim, 1.0) if region is None else region
    move = dynamics.underdamped_langevin(friction=friction)
    return sample(
        Problem(gaussian(1e-6 * np.eye(dim)), region.domain),
        Sampler("sghmc", (step_size,), dynamics=move, boundary=boundaries.reflect()),
        n_steps=4000, burn_in=1000, n_chains=64, thin=4, init=[0.0] * dim, seed=1,
    )  # fmt: skip


def warned(run):
    """Whether the run says that reflection makes draws too small."""
    return any("too small: steps of" in sentence for sentence in run.warnings)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("dim", "step_size", "friction"), [(6, 4e-3, 0.1), (6, 1e-3, 0.5)])
def test_the_law_of_reflection_at_a_ball(dim, step_size, friction):
    run = ball_run(dim, step_size, friction)
    share = 1.0 - (run.draws**2).sum(axis=2).mean() * (dim + 2.0) / dim
    expected = contraction(dim, np.sqrt(step_size), friction)
    assert expected / 1.5 < share < 1.5 * expected
    assert warned(run) or expected < 2.0 * error_of_draws(dim)


@pytest.mark.filterwarnings("ignore")
def test_flat_walls_and_balls_that_are_not_met_give_no_warning():
    assert not warned(ball_run(6, 4e-3, 0.1, domains.box([-1.0] * 6, [1.0] * 6)))
    far = domains.ball([0.0] * 6, 100.0)
    assert not warned(ball_run(6, 4e-3, 0.1, far))
    assert not warned(ball_run(6, 5e-4, 1.0))


@pytest.mark.parametrize("dim", [1, 2, 6])
def test_the_limit_is_the_standard_error_of_a_thousand_draws(dim):
    squared = np.random.default_rng(0).uniform(size=200_000) ** (2.0 / dim)
    assert error_of_draws(dim) == pytest.approx(squared.std() / squared.mean() / np.sqrt(DRAWS), rel=0.02)


@pytest.mark.filterwarnings("ignore")
def test_frictions_are_declared_and_names_mean_nothing(tmp_path):
    """A move of the user's own that is called as one of the toolkit's; and one that says where its friction is."""
    move = dynamics.underdamped_langevin(friction=0.1)
    for form, friction in (
        (move, 0.1), (dynamics.baoab(friction=0.2), 0.2), (dynamics.nose_hoover(friction=0.3), 0.3),
        (dynamics.langevin(), 1.0), (move._replace(name="mine"), 0.1),
    ):  # fmt: skip
        assert form.friction() == friction
    for form in (move._replace(friction_parameter=-1), dynamics.hmc(), dynamics.descent()):
        assert np.isnan(form.friction())
    ball = Problem(gaussian(1e-6 * np.eye(6)), domains.ball([0.0] * 6, 1.0).domain)
    found = []
    for form in (move._replace(name="mine"), move._replace(name="baoab", friction_parameter=-1)):
        sampler = Sampler("own", (4e-3,), dynamics=form, boundary=boundaries.reflect())
        run = sample(ball, sampler, n_steps=400, n_chains=8, init=[0.0] * 6, seed=1)
        found.append(warned(run))
        run.save(tmp_path / "run.npz")
        assert load(tmp_path / "run.npz").sampler.dynamics.friction() == 0.1  # the toolkit's move, by its code
    assert found == [True, False]
    wrong = Sampler("own", (4e-3,), dynamics=move._replace(friction_parameter=9), boundary=boundaries.reflect())
    with pytest.raises(ValueError, match="friction_parameter must be"):
        sample(ball, wrong, n_steps=10, init=[0.0] * 6, seed=1)
