"""Constructors with a Metropolis test: exact yardsticks for the others."""

from .. import dynamics as moves
from ..boundaries.rules import Boundary, ignore
from ..problem.call_text import recorded
from ..schedules import Schedule, constant
from .sampler import Number, Sampler, shared


@recorded("samplers")
def mala(
    step_size: Number = 0.1,
    *,
    temperature: Number = 1.0,
    schedule: Schedule = constant(),
    boundary: Boundary = ignore(),
) -> Sampler:
    """Metropolis-adjusted Langevin, an exact yardstick with SGLD's step size; ``rules.reject()`` keeps a domain.

    Law: ``dynamics.mala``. With the default step size 0.99 of the moves are accepted on a Gaussian in the plane of
    curvature 1, and 0.67 where it is 10. Source: Roberts & Tweedie (1996).
    """
    return Sampler(
        "mala",
        shared("step_size", step_size),
        shared("temperature", temperature),
        dynamics=moves.mala(),
        schedule=schedule,
        boundary=boundary,
    )


@recorded("samplers")
def hmc(
    step_size: Number = 0.2,
    *,
    n_leapfrogs: int = 10,
    random_length: bool = True,
    temperature: Number = 1.0,
    schedule: Schedule = constant(),
    boundary: Boundary = ignore(),
) -> Sampler:
    """Hamiltonian Monte Carlo, an exact yardstick; ``step_size`` is the leapfrog's ε.

    Law, n_leapfrogs and random_length: ``dynamics.hmc``. With the defaults a mean trajectory is 2 long, some third of
    a period where the curvature is 1; a leapfrog is stable below a curvature of 100.
    Source: Duane et al. (1987); Neal (2011).
    """
    return Sampler(
        "hmc",
        shared("step_size", step_size),
        shared("temperature", temperature),
        dynamics=moves.hmc(n_leapfrogs=n_leapfrogs, random_length=random_length),
        schedule=schedule,
        boundary=boundary,
    )
