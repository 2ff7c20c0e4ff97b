"""The constructor with Stein's particles, SVGD."""

from .. import dynamics as moves
from .. import tempering as temper
from ..boundaries.rules import Boundary, ignore
from ..errors import check_count
from ..maths.philox import MAX_REPLICAS
from ..problem.call_text import recorded
from ..schedules import Schedule, constant
from .sampler import Number, Sampler, shared


@recorded("samplers")
def svgd(
    step_size: Number = 3e-3,
    *,
    n_replicas: int = 100,
    bandwidth: float | None = None,
    preconditioned: bool = True,
    temperature: Number = 1.0,
    schedule: Schedule = constant(),
    boundary: Boundary = ignore(),
    gradient_noise: float = 0.0,
) -> Sampler:
    """Stein variational gradient descent: descent × Stein, ``n_replicas`` particles per chain.

    Particles need different places to start from: an ``init`` has the shape (n_chains, n_replicas, dim). A step costs
    O(n_replicas²). Law, bias and numbers: ``tempering.stein``; step ``dynamics.descent``.
    Source: Liu & Wang (2016), algorithm 1; step size and step of the ICSGLD (2022) baseline.
    """
    check_count("n_replicas", n_replicas, at_least=1, below=MAX_REPLICAS)
    return Sampler(
        "svgd",
        shared("step_size", step_size, n_replicas),
        shared("temperature", temperature, n_replicas),
        dynamics=moves.descent(preconditioned=preconditioned),
        schedule=schedule,
        tempering=temper.stein(bandwidth=bandwidth),
        boundary=boundary,
        gradient_noise=gradient_noise,
    )
