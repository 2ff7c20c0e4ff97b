"""Modes inside constraints: closed forms at a wall, and starts of constrained problems where data pull outside."""

import numpy as np
import pytest

from sysid import identify, priors, systems
from sysid.constraints import Coordinates
from sysid.data import simulate
from sysid.likelihoods import trajectory
from sysid.modes.inside import Walls, mode_inside, point_inside
from toolkit import sample, samplers

PLAIN = Coordinates(np.zeros(2, bool), np.zeros(2), np.eye(2))
LORENZ = simulate(systems.lorenz(), np.linspace(0.0, 4.0, 401), noise=0.02, seed=0)


def leaning(steepness):
    """U = −k x₀ + ½ x₁², which leans on the wall x₀ ≤ 1."""

    def evaluate(points):
        slopes = np.stack([np.full(len(points), -steepness), points[:, 1]], axis=1)
        return -steepness * points[:, 0] + 0.5 * points[:, 1] ** 2, slopes

    return evaluate


def walls(*functions, normals=(), offsets=()):
    return Walls(np.reshape(normals, (-1, 2)), np.array(offsets, float), functions, PLAIN)


@pytest.mark.parametrize("steepness", [0.5, 3.0, 200.0])
@pytest.mark.parametrize("by_function", [False, True])
def test_the_mode_at_a_wall_has_the_mean_and_deviation_of_an_exponential(steepness, by_function):
    wall = walls(lambda p: 1.0 - p[0]) if by_function else walls(normals=[[1.0, 0.0]], offsets=[1.0])
    found = mode_inside(leaning(steepness), wall, np.array([5.0, 0.7]))
    assert 1.0 - found.position[0] == pytest.approx(1.0 / steepness, rel=1e-3)
    assert found.position[1] == pytest.approx(0.0, abs=1e-2)
    assert found.root == pytest.approx(np.diag([1.0 / steepness, 1.0]), rel=1e-2, abs=1e-2)


def test_a_point_inside_several_walls_is_found_near_the_start():
    wall = walls(lambda p: 4.0 - p[0] * p[0] - p[1] * p[1], normals=[[-1.0, -1.0]], offsets=[-1.0])
    for start in ([10.0, 0.0], [-8.0, -8.0], [0.9, 0.9]):
        point = point_inside(wall, np.array(start))
        assert wall.contains(point[None])[0]
    assert np.array_equal(point, start)
    assert point_inside(walls(lambda p: -1.0 - p[0] * p[0]), np.zeros(2)) is None
    assert mode_inside(leaning(1.0), walls(lambda p: -1.0 - p[0] * p[0]), np.zeros(2)) is None


@pytest.mark.slow_cases("weak function")  # "weak curved" is one, too
@pytest.mark.parametrize(
    ("likelihood", "constraint"),
    [
        ("weak", "sigma < 9.5"), ("weak", lambda p: 9.5 - p[0]), ("weak", lambda p: 9.5 * 9.5 - p[0] * p[0]),
        (trajectory(segments=4), "sigma < rho - 19"), (trajectory(segments=4), lambda p: 9.5 - p[0]),
    ],
    ids=["weak text", "weak function", "weak curved", "trajectory two", "trajectory function"],
)  # fmt: skip
def test_chains_start_inside_where_data_pull_outside(likelihood, constraint):
    """σ is 10: without an ``init``, scaled or not, all chains begin inside and stay there, leaning on the wall."""
    problem = identify(LORENZ, systems.lorenz(), likelihood=likelihood, constraints=[constraint])
    scaled = problem.scaled()
    sampler = samplers.r2sghmc((0.02, 0.03), temperatures=(1.0, 2.0))
    run = sample(scaled, sampler, n_chains=8, n_steps=300, seed=0)
    sigma, rho, _ = np.moveaxis(scaled.parameters(run)[..., :3], -1, 0)
    assert (sigma < (rho - 19.0 if constraint == "sigma < rho - 19" else 9.5)).all()
    assert sigma.mean() > 9.0
    plain = sample(problem, samplers.r2sgld((1e-12, 1e-12)), n_chains=8, n_steps=2, seed=0)
    assert problem.contains(plain.init.reshape(-1, problem.dim)).all()
    assert len(np.unique(plain.init[:, 0, 0])) == 8
    assert scaled.contains(scaled.starts(8, seed=0)).all()


def test_a_mode_inside_keeps_the_coordinates_as_they_were():
    free = identify(LORENZ, systems.lorenz(), likelihood="weak").scaled()
    loose = identify(LORENZ, systems.lorenz(), likelihood="weak", constraints=["sigma < 20"]).scaled()
    assert np.array_equal(free.coordinates.root, loose.coordinates.root)
    assert np.array_equal(free.coordinates.shift, loose.coordinates.shift)


def test_logarithms_and_constraints_go_together():
    problem = identify(
        LORENZ, systems.lorenz(), likelihood="weak", prior={"beta": priors.lognormal(1.0, 1.0)},
        constraints=[lambda p: 2.5 - p[2]],
    )  # fmt: skip
    scaled = problem.scaled()
    beta = scaled.parameters(scaled.starts(50, seed=0))[:, 2]
    assert (beta < 2.5).all()
    assert beta.mean() > 2.3
