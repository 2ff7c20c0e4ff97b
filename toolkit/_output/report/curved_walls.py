"""A warning about steps that are long for the curvature of a reflecting wall."""

import math
from collections.abc import Iterator

import numpy as np

from ..._engine.run_record import RunRecord
from ...boundaries.convex import smallest_ball

DRAWS = 1_000  # independent ones, to the standard error of whose E|x|² a bias passes: the ESS that runs end at
SLOPE = 0.9  # of the law of ``boundaries.reflect``, which holds to a third from 2 to 20 dimensions, frictions 0.02 to 1


def contraction(dim: int, stride: float, friction: float) -> float:
    """The share by which E|x|² of a flat energy in a ball is too small under reflection at the nearest point.

    stride: √(hT) / R, for step size h, temperature T and radius R.
    """
    path = stride / friction
    return SLOPE * (dim - 1) * stride * path / (1.0 + path)


def error_of_draws(dim: int) -> float:
    """The standard error of E|x|², as a share, of ``DRAWS`` independent draws of a flat energy in a ball.

    |x|² is R² u^(2/d) of a uniform u, so that E|x|² = R² d/(d + 2), E|x|⁴ = R⁴ d/(d + 4).
    """
    return 2.0 / math.sqrt(dim * (dim + 4.0) * DRAWS)


def bounce_rate(dim: int, stride: float) -> float:
    """Reflections per step of a flat energy in a ball: its surface over its volume, times half the mean |√(hT) p|."""
    return dim * stride / math.sqrt(2.0 * math.pi)


def curved_wall_warnings(run: RunRecord) -> Iterator[str]:
    """Where a ball among the walls is small for the steps, and replicas meet walls as often as in a full ball.

    A target that meets walls less than half as often as a flat energy would has less of the error, in proportion; the
    contraction itself takes up to half of the meetings away.
    """
    dynamics, domain = run.sampler.dynamics, run.problem.domain
    if domain is None or run.sampler.boundary.kind != "reflect" or run.n_steps == 0:
        return
    radius = smallest_ball(domain)
    friction = dynamics.friction()
    if not math.isfinite(radius) or math.isnan(friction):
        return
    replicas = slice(run.sampler.n_target_replicas)
    step_sizes = np.asarray(run.sampler.arrays["step_sizes"], np.float64)[..., replicas]
    temperatures = np.asarray(run.sampler.arrays["temperatures"], np.float64)[..., replicas]
    stride = math.sqrt(float((step_sizes * temperatures).max())) / radius
    bounces = float((run.reflections[:, replicas] / run.n_steps).mean())
    share = contraction(domain.dim, stride, friction) * min(1.0, 2.0 * bounces / bounce_rate(domain.dim, stride))
    if share > error_of_draws(domain.dim):
        yield (
            f"Reflection at a ball of radius {radius:.3g} in {domain.dim} dimensions makes the draws' E|x|² about "
            f"{min(share, 1.0):.1%} too small: steps of √(hT) = {stride * radius:.2g} at friction {friction:g} are "
            "long for the wall's curvature (boundaries.reflect); make the step size smaller, or the friction larger."
        )
