"""Constructors with contour tempering: one replica, or several that learn θ together."""

from dataclasses import replace

from .. import dynamics as moves
from .. import tempering as temper
from ..boundaries.rules import Boundary, ignore
from ..errors import check_count
from ..maths.philox import MAX_REPLICAS
from ..problem.call_text import recorded
from ..schedules import Schedule, constant
from ..tempering.contour_tempering import Partition, StepDecay, step_decay
from .sampler import Number, Sampler, shared


@recorded("samplers")
def csgld(
    step_size: Number = 3e-3,
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

    Draws come with ``run.weights``. Law, bias and numbers: ``tempering.contour``. The step size defaults to that of the
    CSGLD baseline of ICSGLD (2022), section 5.2. Source: CSGLD (2020), algorithm 1.

    >>> from targets import mixtures
    >>> from toolkit import sample, samplers, tempering
    >>> bins = tempering.Partition(1.3, 0.25, 56)  # of the energy: from 1.3, 56 of 0.25 nats
    >>> sampler = samplers.csgld(0.02, partition=bins, freezes=True)
    >>> run = sample(mixtures.unequal_pair(), sampler, n_steps=200_000, burn_in=100_000, n_chains=4, seed=0)
    >>> mean = (run.weights * run.draws[..., 0]).sum(axis=1) / run.weights.sum(axis=1)  # one for each chain
    >>> mean.shape
    (4,)
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


@recorded("samplers")
def icsgld(
    step_size: Number = 3e-3,
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

    All replicas sample the target: ``run.draws`` folds them, and comes with ``run.weights``. Law, bias and numbers:
    ``tempering.contour``. Source: ICSGLD (2022), algorithm 1 and B.1; step size, P and ζ of section 5.2.
    """
    check_count("n_replicas", n_replicas, at_least=1, below=MAX_REPLICAS)
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


@recorded("samplers")
def icsghmc(
    step_size: Number = 3e-3,
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

    As ``icsgld``, step size included, with the numbers of ``dynamics.underdamped_langevin``. Source: ICSGLD (2022),
    section 5.3.
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
