"""Reflection at a ball contracts by the law that its docstring states, and a run warns where that is much."""

import numpy as np
import pytest

from targets import domains
from tests.support.laws import gaussian
from toolkit import Sampler, boundaries, dynamics, sample
from toolkit._output.report.curved_walls import contraction
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
@pytest.mark.parametrize(("dim", "step_size", "friction", "warns"), [(6, 4e-3, 0.1, True), (6, 1e-3, 0.5, False)])
def test_the_law_of_reflection_at_a_ball(dim, step_size, friction, warns):
    run = ball_run(dim, step_size, friction)
    share = 1.0 - (run.draws**2).sum(axis=2).mean() * (dim + 2.0) / dim
    expected = contraction(dim, np.sqrt(step_size), friction)
    assert expected / 1.5 < share < 1.5 * expected
    assert warned(run) == warns


@pytest.mark.filterwarnings("ignore")
def test_flat_walls_and_balls_that_are_not_met_give_no_warning():
    assert not warned(ball_run(6, 4e-3, 0.1, domains.box([-1.0] * 6, [1.0] * 6)))
    far = domains.ball([0.0] * 6, 100.0)
    assert not warned(ball_run(6, 4e-3, 0.1, far))
