"""Constructors with replica exchange: one step size and temperature per replica, coldest first."""

from dataclasses import replace

from .. import dynamics as moves
from .. import tempering as temper
from ..boundaries.rules import Boundary, ignore, reflect
from ..schedules import Schedule, constant
from ..tempering.exchange import Correction
from .sampler import Sampler, Values


def resgld(
    step_sizes: Values,
    *,
    temperatures: Values,
    correction: Correction = None,
    swap_every: int = 1,
    swap_threshold: float | None = None,
    scheme: str = "deo",
    window: int = 1,
    schedule: Schedule = constant(),
    boundary: Boundary = ignore(),
    gradient_noise: float = 0.0,
    energy_noise: float = 0.0,
) -> Sampler:
    """Replica exchange SGLD: Langevin × replica exchange, one step size and temperature per replica.

    Law: swaps leave each temperature's law as it is (``tempering.replica_exchange``); the bias is that of the moves
    (``dynamics.langevin``). Numbers: ``tempering.replica_exchange``. Draws are those of the coldest replica. A domain
    is ignored by default. Source: r2SGLD (2024), algorithm 1 without R(·); Deng et al. (2020).
    """
    return Sampler(
        "resgld",
        step_sizes,
        temperatures,
        schedule=schedule,
        tempering=temper.replica_exchange(
            correction=correction, swap_every=swap_every, swap_threshold=swap_threshold, scheme=scheme, window=window
        ),
        boundary=boundary,
        gradient_noise=gradient_noise,
        energy_noise=energy_noise,
    )


def r2sgld(
    step_sizes: Values = (5e-4, 1.5e-3),
    *,
    temperatures: Values = (1.0, 10.0),
    correction: Correction = None,
    swap_every: int = 1,
    swap_threshold: float | None = None,
    scheme: str = "deo",
    window: int = 1,
    schedule: Schedule = constant(),
    boundary: Boundary = reflect(),
    gradient_noise: float = 0.0,
    energy_noise: float = 0.0,
) -> Sampler:
    """Reflected replica exchange SGLD: Langevin × replica exchange × reflect.

    Law, bias and numbers: ``resgld`` and ``rules.reflect``. Step sizes and temperatures default to those of r2SGLD
    (2024), A.3; its correction 9.5 and its swap without a random number do not (``swap_threshold``).
    Source: r2SGLD (2024), algorithm 1.
    """
    sampler = resgld(
        step_sizes,
        temperatures=temperatures,
        correction=correction,
        swap_every=swap_every,
        swap_threshold=swap_threshold,
        scheme=scheme,
        window=window,
        schedule=schedule,
        boundary=boundary,
        gradient_noise=gradient_noise,
        energy_noise=energy_noise,
    )
    return replace(sampler, name="r2sgld")


def r2sghmc(
    step_sizes: Values = (5e-4, 1.5e-3),
    *,
    temperatures: Values = (1.0, 10.0),
    friction: float = 0.1,
    noise_estimate: float = 0.0,
    correction: Correction = None,
    swap_every: int = 1,
    scheme: str = "deo",
    window: int = 1,
    schedule: Schedule = constant(),
    boundary: Boundary = reflect(),
    gradient_noise: float = 0.0,
    energy_noise: float = 0.0,
) -> Sampler:
    """Reflected replica exchange SGHMC: underdamped Langevin × replica exchange × reflect.

    Momenta are reflected with positions at the edge, and fitted to the temperature in a swap. Law, bias and numbers:
    ``dynamics.underdamped_langevin``, ``resgld``, ``rules.reflect``. Source: r2SGLD (2024), section 4.3.
    """
    sampler = r2sgld(
        step_sizes,
        temperatures=temperatures,
        correction=correction,
        swap_every=swap_every,
        scheme=scheme,
        window=window,
        schedule=schedule,
        boundary=boundary,
        gradient_noise=gradient_noise,
        energy_noise=energy_noise,
    )
    friction_and_noise = moves.underdamped_langevin(friction=friction, noise_estimate=noise_estimate)
    return replace(sampler, name="r2sghmc", dynamics=friction_and_noise)
