"""The named points of the product: one constructor for every algorithm and baseline of the papers.

Each says which dynamics, schedule, tempering and boundary it is; ``Sampler(...)`` makes every other combination.
A ``step_size`` or ``temperature`` is a number, or an array (chain,) with one per chain, so that a sweep is one run.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import dynamics as moves
from . import tempering as temper
from .boundaries import Boundary, ignore, reflect
from .checks import check_count, check_flag, check_number, check_numbers, is_sequence
from .contour import Partition, StepDecay, step_decay
from .exchange import Correction
from .sampler import Sampler, Values
from .schedules import Schedule, constant, cosine_cycles

__all__ = [
    "Sampler",
    "csgld",
    "cyclical_sghmc",
    "cyclical_sgld",
    "hmc",
    "icsghmc",
    "icsgld",
    "mala",
    "psgld",
    "r2sghmc",
    "r2sgld",
    "resgld",
    "sghmc",
    "sgld",
    "sgnht",
    "svgd",
    "tact_hmc",
]

Number = float | Sequence[float] | NDArray[np.float64]


def shared(name: str, value: Any, n_replicas: int = 1) -> Values:
    """One value for all replicas: (R,) of a number, (chain, R) of an array (chain,)."""
    if is_sequence(value) or (isinstance(value, np.ndarray) and value.ndim > 0):
        if len(value) == 0:
            raise ValueError(f"{name} must be a number, or one for every chain, got {value!r}")
        return tuple((v,) * n_replicas for v in check_numbers(name, value, above=0.0))
    return (check_number(name, value, above=0.0),) * n_replicas


def sgld(
    step_size: Number,
    *,
    temperature: Number = 1.0,
    schedule: Schedule = constant(),
    boundary: Boundary = ignore(),
    gradient_noise: float = 0.0,
) -> Sampler:
    """Stochastic gradient Langevin dynamics: Langevin × ``schedule``. With ``boundaries.reflect()``, R-SGLD.

    Law and bias: ``dynamics.langevin``. Source: Welling & Teh (2011), eq. 4.
    """
    return Sampler(
        "sgld",
        shared("step_size", step_size),
        shared("temperature", temperature),
        schedule=schedule,
        boundary=boundary,
        gradient_noise=gradient_noise,
    )


def psgld(
    step_size: Number,
    *,
    decay: float = 0.99,
    floor: float = 1e-5,
    drift_correction: bool = True,
    temperature: Number = 1.0,
    schedule: Schedule = constant(),
    boundary: Boundary = ignore(),
    gradient_noise: float = 0.0,
) -> Sampler:
    """Preconditioned SGLD: preconditioned Langevin × ``schedule``.

    Law and bias: ``dynamics.preconditioned_langevin``. Source: Li et al. (2016), algorithm 1.
    """
    return Sampler(
        "psgld",
        shared("step_size", step_size),
        shared("temperature", temperature),
        dynamics=moves.preconditioned_langevin(decay=decay, floor=floor, drift_correction=drift_correction),
        schedule=schedule,
        boundary=boundary,
        gradient_noise=gradient_noise,
    )


def sghmc(
    step_size: Number,
    *,
    friction: float = 0.5,
    noise_estimate: float = 0.0,
    temperature: Number = 1.0,
    schedule: Schedule = constant(),
    boundary: Boundary = ignore(),
    gradient_noise: float = 0.0,
) -> Sampler:
    """Stochastic gradient HMC: underdamped Langevin × ``schedule``, friction as in cyclical SG-MCMC (2020), I.1.

    step_size: the paper's α, or η of TACT-HMC, so that friction 1 is ``sgld``. Law and bias:
    ``dynamics.underdamped_langevin``. Source: Chen, Fox & Guestrin (2014); cyclical SG-MCMC (2020), section 2.
    """
    return Sampler(
        "sghmc",
        shared("step_size", step_size),
        shared("temperature", temperature),
        dynamics=moves.underdamped_langevin(friction=friction, noise_estimate=noise_estimate),
        schedule=schedule,
        boundary=boundary,
        gradient_noise=gradient_noise,
    )


def sgnht(
    step_size: Number,
    *,
    friction: float = 0.05,
    inertia: float = 1.0,
    by_coordinate: bool = False,
    temperature: Number = 1.0,
    schedule: Schedule = constant(),
    boundary: Boundary = ignore(),
    gradient_noise: float = 0.0,
) -> Sampler:
    """Stochastic gradient Nosé–Hoover thermostat: Nosé–Hoover × ``schedule``; neutralises unknown gradient noise.

    Law and bias: ``dynamics.nose_hoover``. Source: Ding et al. (2014), algorithm 2; defaults of TACT-HMC (2018).
    """
    return Sampler(
        "sgnht",
        shared("step_size", step_size),
        shared("temperature", temperature),
        dynamics=moves.nose_hoover(friction=friction, inertia=inertia, by_coordinate=by_coordinate),
        schedule=schedule,
        boundary=boundary,
        gradient_noise=gradient_noise,
    )


def cyclical_sgld(
    step_size: Number,
    *,
    n_cycles: int = 30,
    exploration: float = 0.25,
    floor: float = 0.0,
    temperature: Number = 1.0,
    boundary: Boundary = ignore(),
    gradient_noise: float = 0.0,
) -> Sampler:
    """Cyclical SGLD: Langevin × cosine cycles, with step size ``step_size`` at the start of each cycle.

    Defaults are those of cyclical SG-MCMC (2020), section 5.1: M = 30, β = 1/4. Draws are biased by the step size
    at which they are kept; ``cycles.combine_cycles`` weighs cycles that found different modes. Source: the same,
    algorithm 1.
    """
    schedule = cosine_cycles(n_cycles, exploration=exploration, floor=floor)
    sampler = sgld(
        step_size, temperature=temperature, schedule=schedule, boundary=boundary, gradient_noise=gradient_noise
    )
    return replace(sampler, name="cyclical_sgld")


def cyclical_sghmc(
    step_size: Number,
    *,
    n_cycles: int = 30,
    exploration: float = 0.25,
    floor: float = 0.0,
    friction: float = 0.5,
    noise_estimate: float = 0.0,
    temperature: Number = 1.0,
    boundary: Boundary = ignore(),
    gradient_noise: float = 0.0,
) -> Sampler:
    """Cyclical SGHMC: underdamped Langevin × cosine cycles; while it explores, gradient descent with momentum.

    Defaults and source: cyclical SG-MCMC (2020), section 5.1, I.1 and algorithm 1.
    """
    sampler = sghmc(
        step_size,
        friction=friction,
        noise_estimate=noise_estimate,
        temperature=temperature,
        schedule=cosine_cycles(n_cycles, exploration=exploration, floor=floor),
        boundary=boundary,
        gradient_noise=gradient_noise,
    )
    return replace(sampler, name="cyclical_sghmc")


def csgld(
    step_size: Number,
    *,
    zeta: float = 0.75,
    partition: Partition | None = None,
    decay: StepDecay = step_decay(),
    freezes: bool = False,
    temperature: Number = 1.0,
    schedule: Schedule = constant(),
    boundary: Boundary = ignore(),
    gradient_noise: float = 0.0,
    energy_noise: float = 0.0,
) -> Sampler:
    """Contour SGLD: Langevin × contour with one replica and the random field of 2020, Ψ^ζ.

    Draws come with ``run.weights``. Law and bias: ``tempering.contour``. Source: CSGLD (2020), algorithm 1.
    """
    return Sampler(
        "csgld",
        shared("step_size", step_size),
        shared("temperature", temperature),
        schedule=schedule,
        tempering=temper.contour(zeta=zeta, partition=partition, field="theta_zeta", decay=decay, freezes=freezes),
        boundary=boundary,
        gradient_noise=gradient_noise,
        energy_noise=energy_noise,
    )


def icsgld(
    step_size: Number,
    *,
    n_replicas: int = 5,
    zeta: float = 0.75,
    partition: Partition | None = None,
    decay: StepDecay = step_decay(),
    freezes: bool = False,
    temperature: Number = 1.0,
    schedule: Schedule = constant(),
    boundary: Boundary = ignore(),
    gradient_noise: float = 0.0,
    energy_noise: float = 0.0,
) -> Sampler:
    """Interacting contour SGLD: Langevin × contour with ``n_replicas`` that share θ and the random field of 2022, Ψ.

    All replicas sample the target: ``run.draws`` folds them, and comes with ``run.weights``. Law and bias:
    ``tempering.contour``. Source: ICSGLD (2022), algorithm 1 and B.1; P and ζ of section 5.2.
    """
    check_count("n_replicas", n_replicas, at_least=1)
    return Sampler(
        "icsgld",
        shared("step_size", step_size, n_replicas),
        shared("temperature", temperature, n_replicas),
        schedule=schedule,
        tempering=temper.contour(zeta=zeta, partition=partition, field="theta", decay=decay, freezes=freezes),
        boundary=boundary,
        gradient_noise=gradient_noise,
        energy_noise=energy_noise,
    )


def icsghmc(
    step_size: Number,
    *,
    n_replicas: int = 5,
    friction: float = 0.1,
    noise_estimate: float = 0.0,
    zeta: float = 0.75,
    partition: Partition | None = None,
    decay: StepDecay = step_decay(),
    freezes: bool = False,
    temperature: Number = 1.0,
    schedule: Schedule = constant(),
    boundary: Boundary = ignore(),
    gradient_noise: float = 0.0,
    energy_noise: float = 0.0,
) -> Sampler:
    """Interacting contour SGHMC: underdamped Langevin × contour with ``n_replicas`` that share θ.

    Otherwise as ``icsgld``. Source: ICSGLD (2022), section 5.3.
    """
    sampler = icsgld(
        step_size,
        n_replicas=n_replicas,
        zeta=zeta,
        partition=partition,
        decay=decay,
        freezes=freezes,
        temperature=temperature,
        schedule=schedule,
        boundary=boundary,
        gradient_noise=gradient_noise,
        energy_noise=energy_noise,
    )
    return replace(
        sampler,
        name="icsghmc",
        dynamics=moves.underdamped_langevin(friction=friction, noise_estimate=noise_estimate),
    )


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
    (``dynamics.langevin``). Draws are those of the coldest replica. A domain is ignored by default.
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

    Law and bias: ``resgld`` and ``boundaries.reflect``. Step sizes and temperatures default to those of r2SGLD (2024),
    A.3; its correction 9.5 and its swap without a random number do not (``swap_threshold``).
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

    Momenta are reflected with positions at the edge, and fitted to the temperature in a swap. Law and bias:
    ``dynamics.underdamped_langevin``, ``resgld``, ``boundaries.reflect``. Source: r2SGLD (2024), section 4.3.
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


def tact_hmc(
    step_size: Number,
    *,
    top_temperature: float = 6.0,
    friction: float = 0.05,
    inertia: float = 1.0,
    bias: str = "abf",
    resample_every: int = 50,
    thermostat: bool = True,
    tempers: bool = True,
    temperature: Number = 1.0,
    schedule: Schedule = constant(),
    boundary: Boundary = ignore(),
    gradient_noise: float = 0.0,
    energy_noise: float = 0.0,
) -> Sampler:
    """Thermostat-assisted continuously tempered HMC: Nosé–Hoover × continuous tempering.

    step_size, friction and inertia serve position and ξ alike (η, c, γ); give ``tempering.continuous_tempering`` to
    ``Sampler`` to set them apart. A draw counts where ``run.weights`` is 1, which is where λ = 1.
    thermostat=False and tempers=False are the paper's two ablations: friction c that does not adapt, for position
    and ξ; and Nosé–Hoover dynamics alone, which look at no energy and ignore energy_noise. Law and bias:
    ``dynamics.nose_hoover``, ``tempering.continuous_tempering``.
    Source: TACT-HMC (2018), algorithm 1; η is not printed for its synthetic targets, c, γ and K as for its networks.
    """
    frictional = moves.underdamped_langevin(friction=friction)
    return Sampler(
        "tact_hmc",
        shared("step_size", step_size),
        shared("temperature", temperature),
        dynamics=moves.nose_hoover(friction=friction, inertia=inertia)
        if check_flag("thermostat", thermostat)
        else frictional,
        schedule=schedule,
        tempering=temper.continuous_tempering(
            top_temperature=top_temperature,
            friction=friction,
            inertia=inertia,
            bias=bias,
            thermostat=thermostat,
            resample_every=resample_every,
        )
        if check_flag("tempers", tempers)
        else None,
        boundary=boundary,
        gradient_noise=gradient_noise,
        energy_noise=energy_noise if tempers else 0.0,
    )


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

    Particles need different places to start from: give ``init`` of shape (n_chains, n_replicas, dim). A step costs
    O(n_replicas²). Law and bias: ``tempering.stein``; step ``dynamics.descent``.
    Source: Liu & Wang (2016), algorithm 1; step size and step of the ICSGLD (2022) baseline.
    """
    check_count("n_replicas", n_replicas, at_least=1)
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


def mala(
    step_size: Number,
    *,
    temperature: Number = 1.0,
    schedule: Schedule = constant(),
    boundary: Boundary = ignore(),
) -> Sampler:
    """Metropolis-adjusted Langevin, an exact yardstick with SGLD's step size; ``boundaries.reject()`` keeps a domain.

    Law: ``dynamics.mala``. Source: Roberts & Tweedie (1996).
    """
    return Sampler(
        "mala",
        shared("step_size", step_size),
        shared("temperature", temperature),
        dynamics=moves.mala(),
        schedule=schedule,
        boundary=boundary,
    )


def hmc(
    step_size: Number,
    *,
    n_leapfrogs: int = 10,
    temperature: Number = 1.0,
    schedule: Schedule = constant(),
    boundary: Boundary = ignore(),
) -> Sampler:
    """Hamiltonian Monte Carlo, an exact yardstick; ``step_size`` is the leapfrog's ε.

    Law: ``dynamics.hmc``. Source: Duane et al. (1987); Neal (2011).
    """
    return Sampler(
        "hmc",
        shared("step_size", step_size),
        shared("temperature", temperature),
        dynamics=moves.hmc(n_leapfrogs=n_leapfrogs),
        schedule=schedule,
        boundary=boundary,
    )
