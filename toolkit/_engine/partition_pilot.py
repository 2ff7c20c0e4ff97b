"""Contour's partition of the energies, found by a pilot run."""

import warnings
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..errors import ContourWarning, DivergenceError, InterruptedWarning
from ..maths.seeds import PILOT, derived_seed
from ..problem.definition import Problem
from ..samplers.sampler import Sampler
from ..schedules import constant
from ..tempering.contour_tempering import Contour, Partition
from .driver import SavesNothing, execute
from .job import PILOT_CHAINS, Job, make_job
from .record import RunRecord

Floats = NDArray[np.float64]

USUAL = 0.68  # quantile of an energy's change in one step: a standard deviation
STEPS, HEATS = 2000, (10.0, 5.0, 2.0, 1.0)
LOOKS = 64  # steps by which a partition that is given is judged
NARROW = 5.0  # bins in one step; where they were 10 and more, chains under a Metropolis test have stood still


def find_partition(
    problem: Problem, sampler: Sampler, *, seed: int, init: Floats, threads: int | None = None
) -> tuple[Partition, int]:
    """A partition for ``sampler`` on ``problem``, and the gradient evaluations it took.

    32 chains move as the sampler does, without tempering, from ``init`` (chain, replica, dim), in turn, with its step
    sizes and temperatures T, in turn where they differ: 2,000 steps at 10 T, or at 5, 2 or 1 T where they diverge, and
    2,000 at T. From the second half of each: u_min is the 1 % quantile of the energy at T; u_max the 90 % quantile in
    the heat, but 6 to 20 T above the 99 % quantile at T; Δu the 68 % quantile of the energy's change in one step at T,
    but at least T/2, for 10 to 200 bins. Modes that lie lower than any the pilot met are outside, where nothing is
    flattened; a run then warns.
    Raises DivergenceError where the pilot diverges at T. Ctrl-C ends it.
    """
    pilot, start = pilot_of(sampler), starts_of(init)
    gradients = 0
    for attempt, heat in enumerate(HEATS):
        own = derived_seed(seed, PILOT, 1 + attempt)
        hot = replace(pilot, temperatures=[[heat * t for t in row] for row in pilot.arrays["temperatures"]])
        gradients += PILOT_CHAINS * STEPS * pilot.gradients_per_step
        try:
            hot_energies, ends = energies_of(problem, hot, own, start, threads, STEPS)
            start = np.where(problem.contains(ends)[:, None], ends, start)  # a penalty's walls are soft
            break
        except DivergenceError as error:
            if heat == HEATS[-1]:
                error.add_note("This was the pilot run that finds the partition; give contour a partition instead.")
                raise
    energies, _ = energies_of(problem, pilot, derived_seed(seed, PILOT, 0), start, threads, STEPS)
    gradients += PILOT_CHAINS * STEPS * pilot.gradients_per_step
    temperature = float(sampler.arrays["temperatures"].max())
    low, high = np.quantile(energies, [0.01, 0.99])
    top = np.clip(np.quantile(hot_energies, 0.9), high + 6.0 * temperature, high + 20.0 * temperature)
    change = np.quantile(np.abs(np.diff(energies, axis=1)), USUAL)
    width = np.clip(max(0.5 * temperature, change), (top - low) / 200, (top - low) / 10)
    return Partition(float(low), float(width), int(np.ceil((top - low) / width - 1e-9))), gradients


def pilot_of(sampler: Sampler) -> Sampler:
    """``sampler`` for the chains of a pilot: one replica each, without tempering."""
    return replace(
        sampler,
        name="pilot",
        step_sizes=cycled(sampler.arrays["step_sizes"]),
        temperatures=cycled(sampler.arrays["temperatures"]),
        schedule=constant(),
        tempering=None,
        energy_noise=0.0,
    )


def starts_of(init: Floats) -> Floats:
    """Starts (PILOT_CHAINS, dim) of a pilot: those of ``init`` (chain, replica, dim), in turn."""
    return np.resize(init.reshape(-1, init.shape[2]), (PILOT_CHAINS, init.shape[2]))


def cycled(values: Floats) -> list[list[float]]:
    """The first replica's value of every chain, (R,) or (chain, R), in turn for the pilot's chains."""
    return [[float(v)] for v in np.resize(np.atleast_2d(values)[:, 0], PILOT_CHAINS)]


def energies_of(
    problem: Problem, sampler: Sampler, seed: int, start: Floats, threads: int | None, n_steps: int
) -> tuple[Floats, Floats]:
    """Energies (chain, step) of the second half of ``n_steps``, and the last places (chain, dim)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InterruptedWarning)
        job = make_job(
            problem, sampler, n_steps=n_steps, n_chains=PILOT_CHAINS, seed=seed, init=start, keep_energies=True,
            threads=threads,
        )  # fmt: skip
        run = execute(job, RunRecord, SavesNothing(), progress=False)
    if run.interrupted:
        raise KeyboardInterrupt
    assert run.energies is not None
    return run.energies[:, 0, n_steps // 2 :], run.draws[:, -1]


def warn_of_narrow_bins(job: Job, partition: Partition, *, stacklevel: int) -> int:
    """Warn where a step of the sampler goes through more than ``NARROW`` bins; the gradient evaluations it took.

    32 chains move as the pilot's do, for 64 steps at T; of the second half's changes of energy that are not 0, which
    rejected moves have, it takes the 68 % quantile.
    """
    pilot, start, seed = pilot_of(job.sampler), starts_of(job.pilot_init), derived_seed(job.seed, PILOT)
    energies, _ = energies_of(job.problem, pilot, seed, start, job.threads, LOOKS)
    changes = np.abs(np.diff(energies, axis=1))
    change = float(np.quantile(changes[changes > 0.0], USUAL)) if changes.any() else 0.0
    if change > NARROW * partition.width:
        warnings.warn(
            f"a step changes the energy by {change:.3g}, which is {change / partition.width:.0f} bins of width "
            f"{partition.width:.3g}; beyond {NARROW:.0f} moves are rarely accepted and θ is slow to settle: give a "
            f"partition of width {0.5 * change:.2g} or more, or smaller steps",
            ContourWarning,
            stacklevel=stacklevel + 1,
        )
    return PILOT_CHAINS * LOOKS * pilot.gradients_per_step


def with_partition(job: Job, stacklevel: int) -> tuple[Sampler, int]:
    """The job's sampler, with a partition found by a pilot where it has contour without one; and the pilot's gradients.

    A partition that is given is looked at where moves may be rejected and that costs less than a tenth of the run.
    """
    problem, sampler, contour = job.problem, job.sampler, job.sampler.tempering
    if not isinstance(contour, Contour):
        return sampler, 0
    if contour.partition is not None:
        moves = job.init.shape[0] * job.init.shape[1] * job.n_steps
        looks = sampler.dynamics.leapfrogs > 0 and moves >= 10 * PILOT_CHAINS * LOOKS
        if not looks or problem.target.callback is not None:
            return sampler, 0
        return sampler, warn_of_narrow_bins(job, contour.partition, stacklevel=stacklevel + 1)
    partition, gradients = find_partition(problem, sampler, seed=job.seed, init=job.pilot_init, threads=job.threads)
    return replace(sampler, tempering=replace(contour, partition=partition)), gradients
