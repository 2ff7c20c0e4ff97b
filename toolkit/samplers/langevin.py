"""Constructors without tempering: Langevin, preconditioned and underdamped, thermostats; and their cycles."""

from dataclasses import replace

from .. import dynamics as moves
from ..boundaries.rules import Boundary, ignore
from ..problem.call_text import recorded
from ..schedules import Schedule, constant, cosine_cycles
from .sampler import Number, Sampler, shared


@recorded("samplers")
def sgld(
    step_size: Number = 3e-3,
    *,
    temperature: Number = 1.0,
    schedule: Schedule = constant(),
    boundary: Boundary = ignore(),
    gradient_noise: float = 0.0,
) -> Sampler:
    """Stochastic gradient Langevin dynamics: Langevin × ``schedule``. With ``rules.reflect()``, R-SGLD.

    Law and bias: ``dynamics.langevin``. The step size defaults to that of the SGLD baseline of ICSGLD (2022), section
    5.2; it biases variances by 1.5 % where the curvature is 10. Source: Welling & Teh (2011), eq. 4.

    >>> from targets import mixtures
    >>> from toolkit import sample, samplers
    >>> run = sample(mixtures.cosine25(), samplers.sgld(0.01), n_steps=1_000, n_chains=4, seed=0)
    >>> run.gradient_evaluations  # one a step and chain
    4000
    """
    return Sampler(
        "sgld",
        shared("step_size", step_size),
        shared("temperature", temperature),
        schedule=schedule,
        boundary=boundary,
        gradient_noise=gradient_noise,
    )


@recorded("samplers")
def psgld(
    step_size: Number = 0.01,
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

    Law, bias and numbers: ``dynamics.preconditioned_langevin``. The default step size is of no paper: times the
    preconditioner, which is about 1/√c, and the curvature c it is 0.01 to 0.03 for c = 1 to 10. Source: Li et al.
    (2016), algorithm 1.
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


@recorded("samplers")
def sghmc(
    step_size: Number = 0.01,
    *,
    friction: float = 0.5,
    noise_estimate: float = 0.0,
    temperature: Number = 1.0,
    schedule: Schedule = constant(),
    boundary: Boundary = ignore(),
    gradient_noise: float = 0.0,
) -> Sampler:
    """Stochastic gradient HMC: underdamped Langevin × ``schedule``, friction as in cyclical SG-MCMC (2020), I.1.

    step_size: the paper's α, or η of TACT-HMC, so that friction 1 is ``sgld``. Law, bias and numbers:
    ``dynamics.underdamped_langevin``. The step size defaults to one that biases variances by 0.3 to 3 % where the
    curvature is 1 to 10. Source: Chen, Fox & Guestrin (2014); cyclical SG-MCMC (2020), section 2.
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


@recorded("samplers")
def sgnht(
    step_size: Number = 0.01,
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

    Law, bias and numbers: ``dynamics.nose_hoover``. The step size defaults to that of ``sghmc``, as TACT-HMC (2018)
    prints none for its synthetic targets. Source: Ding et al. (2014), algorithm 2; friction and inertia of TACT-HMC.
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


@recorded("samplers")
def cyclical_sgld(
    step_size: Number = 0.09,
    *,
    n_cycles: int = 30,
    exploration: float = 0.25,
    floor: float = 0.0,
    temperature: Number = 1.0,
    boundary: Boundary = ignore(),
    gradient_noise: float = 0.0,
) -> Sampler:
    """Cyclical SGLD: Langevin × cosine cycles, with step size ``step_size`` at the start of each cycle.

    n_cycles, exploration, floor: of ``schedules.cosine_cycles``; defaults are those of cyclical SG-MCMC (2020), section
    5.1: M = 30, β = 1/4, and α₀ = 0.09 at the start of a cycle, by which all kept draws together have a variance a
    quarter too large where the curvature is 10. Draws are biased by the step size at which they are kept;
    ``cycles.combine_cycles`` weighs cycles that found different modes. Source: the same, algorithm 1.
    """
    schedule = cosine_cycles(n_cycles, exploration=exploration, floor=floor)
    sampler = sgld(
        step_size, temperature=temperature, schedule=schedule, boundary=boundary, gradient_noise=gradient_noise
    )
    return replace(sampler, name="cyclical_sgld")


@recorded("samplers")
def cyclical_sghmc(
    step_size: Number = 0.09,
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

    Numbers: ``cyclical_sgld`` and ``sghmc``. Defaults and source: cyclical SG-MCMC (2020), section 5.1, I.1 and
    algorithm 1; the step size is that of its cyclical SGLD, as it has no cyclical SGHMC on the synthetic target.
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
