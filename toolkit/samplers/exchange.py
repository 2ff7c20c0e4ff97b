"""Constructors with replica exchange: one step size and temperature per replica, coldest first."""

from dataclasses import replace

from .. import dynamics as moves
from .. import tempering as temper
from ..boundaries.rules import Boundary, ignore, reflect
from ..problem.call_text import recorded
from ..schedules import Schedule, constant
from ..tempering.exchange import Correction
from .sampler import Sampler, Values


@recorded("samplers")
def resgld(
    step_sizes: Values = (5e-4, 1.5e-3),
    *,
    temperatures: Values = (1.0, 10.0),
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
    is ignored by default. Step sizes and temperatures default to those of r2SGLD (2024), A.3.
    Source: r2SGLD (2024), algorithm 1 without R(·); Deng et al. (2020).
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


@recorded("samplers")
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

    >>> from targets import constrained, mixtures, shapes
    >>> from toolkit import sample, samplers
    >>> problem = constrained(mixtures.cosine25(), shapes.flower())
    >>> run = sample(problem, samplers.r2sgld(), n_steps=1_000, n_chains=4, seed=0)
    >>> bool(problem.contains(run.draws.reshape(-1, 2)).all())
    True
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


@recorded("samplers")
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
    ``dynamics.underdamped_langevin``, ``resgld``, ``rules.reflect``. Step sizes and temperatures default to those of
    ``r2sgld``. Source: r2SGLD (2024), section 4.3.
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


@recorded("samplers")
def pt_mala(
    step_sizes: Values = (0.1, 0.1, 0.1, 0.1),
    *,
    temperatures: Values = (1.0, 2.0, 4.0, 8.0),
    swap_every: int = 1,
    window: int = 1,
    schedule: Schedule = constant(),
    boundary: Boundary = ignore(),
) -> Sampler:
    """Non-reversible parallel tempering of MALA: ``dynamics.mala`` × replica exchange by even and odd pairs in turn.

    step_sizes: MALA's h, one per replica. temperatures: coldest first. swap_every, window: of
    ``tempering.replica_exchange``; its scheme is "deo".
    Law: exact, exp(−U/T) at every temperature T, for the moves and the swaps keep it; draws are those of the coldest
    replica. ``rules.reject()`` is exact in a domain.
    The step sizes default to that of ``mala`` on every replica, as a Gaussian target asks for: there, its law at T is
    that at 1 stretched by √T, and so are the moves. The temperatures default to four with a factor of 2 between them,
    which no paper prints; ``ladders.adapted_ladder`` moves them.
    Source: Okabe et al. (2001), swaps in even and odd pairs; Syed et al. (2022), why they beat random ones.
    """
    sampler = resgld(
        step_sizes,
        temperatures=temperatures,
        swap_every=swap_every,
        scheme="deo",
        window=window,
        schedule=schedule,
        boundary=boundary,
    )
    return replace(sampler, name="pt_mala", dynamics=moves.mala())


@recorded("samplers")
def pt_hmc(
    step_sizes: Values = (0.2, 0.2, 0.2, 0.2),
    *,
    temperatures: Values = (1.0, 2.0, 4.0, 8.0),
    n_leapfrogs: int = 10,
    random_length: bool = True,
    swap_every: int = 1,
    window: int = 1,
    schedule: Schedule = constant(),
    boundary: Boundary = ignore(),
) -> Sampler:
    """Non-reversible parallel tempering of HMC: ``dynamics.hmc`` × replica exchange by even and odd pairs in turn.

    step_sizes: the leapfrog's ε, one per replica. n_leapfrogs, random_length: of ``dynamics.hmc``, the same for all
    replicas. A swap follows a whole trajectory. The rest, law, defaults and source: ``pt_mala``, with ``hmc``'s step
    size. ``rules.reject()`` is exact in a domain.
    """
    sampler = resgld(
        step_sizes,
        temperatures=temperatures,
        swap_every=swap_every,
        scheme="deo",
        window=window,
        schedule=schedule,
        boundary=boundary,
    )
    return replace(
        sampler, name="pt_hmc", dynamics=moves.hmc(n_leapfrogs=n_leapfrogs, random_length=random_length)
    )  # fmt: skip


@recorded("samplers")
def pt_baoab(
    step_sizes: Values = (0.04, 0.04, 0.04, 0.04),
    *,
    temperatures: Values = (1.0, 2.0, 4.0, 8.0),
    friction: float = 0.1,
    correction: Correction = None,
    swap_every: int = 1,
    window: int = 1,
    schedule: Schedule = constant(),
    boundary: Boundary = ignore(),
    gradient_noise: float = 0.0,
    energy_noise: float = 0.0,
) -> Sampler:
    """Non-reversible parallel tempering of BAOAB Langevin: ``dynamics.baoab`` × exchange by even and odd pairs in turn.

    step_sizes: BAOAB's h, one per replica, whose time step is √h. friction: of ``dynamics.baoab``, the same for all
    replicas. correction: of ``tempering.replica_exchange``, for noisy energies. Takes noisy gradients and energies,
    which ``pt_mala`` and ``pt_hmc`` do not.
    Law: swaps leave each temperature's law as it is, and positions have no bias on a Gaussian target; elsewhere the
    bias is that of the moves, of second order in √h. ``rules.reflect()`` is exact in a domain as √h goes to 0.
    The step sizes default to a time step of 0.2 on every replica, ``hmc``'s ε: h times the curvature is 0.04 to 0.4
    where the curvature is 1 to 10, and steps are stable below 4. The rest, temperatures and source: ``pt_mala``;
    Leimkuhler & Matthews (2013).
    """
    sampler = resgld(
        step_sizes,
        temperatures=temperatures,
        correction=correction,
        swap_every=swap_every,
        scheme="deo",
        window=window,
        schedule=schedule,
        boundary=boundary,
        gradient_noise=gradient_noise,
        energy_noise=energy_noise,
    )
    return replace(sampler, name="pt_baoab", dynamics=moves.baoab(friction=friction))
