"""A run's functions, numbers and tempering parameters, as engines take them."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .._compiler.binding import bound
from .._compiler.block_rows import CONTINUOUS, CONTOUR, NO_TEMPERING
from ..boundaries.convex import everywhere_inside
from ..tempering.interface import no_tempering
from .metropolis_step import propose, propose_by_contour
from .phases import (
    add_gradient_noise,
    confine,
    confine_and_record,
    estimate_curvature,
    freeze_diverged,
    no_calling_phase,
    no_phase,
    penalise,
    provide_noise,
    read_energies,
    record_draw_statistics,
    record_traces,
    start_momenta,
    use_trajectory_end,
)
from .state import Numbers, Parts

if TYPE_CHECKING:
    from .job import Job


PROPOSE = {False: propose, True: propose_by_contour}  # by whether there is a contour
# By whether there are walls, and statistics are kept.
AFTER_MOVE = {
    (False, False): no_calling_phase,
    (True, False): confine,
    (False, True): record_draw_statistics,
    (True, True): confine_and_record,
}


def parts_of(job: "Job") -> Parts:
    """The functions of a run."""
    problem, sampler = job.problem, job.sampler
    dynamics, tempering, numbers = sampler.dynamics, sampler.tempering, engine_numbers(job)
    has_walls = numbers.max_bounces > 0 or numbers.rejects
    reads_energies = numbers.tempering in (CONTOUR, CONTINUOUS)
    return Parts(
        numbers.tempering,
        bound(problem.target.energy_gradient),
        bound(dynamics.move),
        everywhere_inside if problem.domain is None else problem.domain.locate_for(sampler.boundary.kind),
        no_tempering if tempering is None else bound(tempering.step),
        propose=PROPOSE[numbers.tempering == CONTOUR] if dynamics.leapfrogs else no_calling_phase,
        penalise=penalise if numbers.penalty > 0.0 else no_calling_phase,
        provide_noise=provide_noise if numbers.draws_noise or numbers.gradient_noise > 0.0 else no_phase,
        add_gradient_noise=add_gradient_noise if numbers.gradient_noise > 0.0 else no_phase,
        start_momenta=start_momenta if dynamics.has_momentum else no_phase,
        use_trajectory_end=use_trajectory_end if dynamics.leapfrogs else no_phase,
        read_energies=read_energies if reads_energies else no_phase,
        estimate_curvature=estimate_curvature if numbers.needs_curvature else no_calling_phase,
        after_move=AFTER_MOVE[has_walls, numbers.keeps_statistics],
        record_traces=record_traces if numbers.keeps_trace else no_phase,
        freeze_diverged=freeze_diverged,
    )


def engine_numbers(job: "Job") -> Numbers:
    """The numbers of a run for the engine; n_chains is set for each block."""
    problem, sampler = job.problem, job.sampler
    dynamics, boundary = sampler.dynamics, sampler.boundary
    return Numbers(
        n_chains=0,
        n_replicas=sampler.n_replicas,
        seed=np.uint64(job.seed),
        burn_in=job.burn_in,
        tempering=NO_TEMPERING if sampler.tempering is None else sampler.tempering.kind,
        gradient_noise=float(sampler.gradient_noise),
        energy_noise=float(sampler.energy_noise),
        penalty=boundary.coefficient,
        max_bounces=boundary.max_bounces,
        from_origin=boundary.kind == "penalise_as_printed",
        rejects=boundary.kind == "reject",
        draws_batches=problem.target.stochastic,
        draws_noise=dynamics.draws_noise,
        needs_curvature=dynamics.needs_curvature,
        n_thermostats=dynamics.n_friction_rows(problem.target.dim),
        leapfrogs=dynamics.leapfrogs,
        random_length=dynamics.random_length,
        is_mala=dynamics.langevin_step,
        keeps_energies=job.records_energies,
        keeps_weights=sampler.is_weighted,
        keeps_statistics=job.keep_statistics,
        keeps_trace=job.trace_every is not None,
        n_kept=job.n_kept,
        n_traced_memory=dynamics.n_traced_memory(problem.target.dim),
    )


def compile_time_constants(numbers: Numbers, n_chains: int = 1) -> Numbers:
    """``numbers`` with those that are run-time arguments replaced by 0 or 1: what a kernel is compiled for."""
    return numbers._replace(
        n_chains=n_chains,
        seed=np.uint64(0),
        burn_in=0,
        gradient_noise=float(numbers.gradient_noise != 0.0),
        energy_noise=float(numbers.energy_noise != 0.0),
        penalty=float(numbers.penalty != 0.0),
        max_bounces=int(numbers.max_bounces != 0),
        leapfrogs=int(numbers.leapfrogs != 0),
    )


def tempering_parameters(job: "Job") -> NDArray[np.float64]:
    """The parameters of the run's tempering, as its step takes them."""
    tempering = job.sampler.tempering
    return np.zeros(1) if tempering is None else tempering.parameters(job.burn_in, float(job.sampler.energy_noise))
