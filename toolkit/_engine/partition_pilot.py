"""Contour's partition of the energies, found by a pilot run."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ContourWarning, DivergenceError, warn_user
from ..maths.seeds import PILOT, derived_seed
from ..problem.definition import Problem
from ..samplers.sampler import Sampler
from ..schedules import constant
from ..tempering.contour_tempering import Partition
from .driver import SavesNothing, execute
from .job import PILOT_CHAINS, Job, make_job
from .run_options import RunOptions
from .run_record import RunRecord

Floats = NDArray[np.float64]

CHANGE_QUANTILE = 0.68  # quantile of an energy's change in one step: a standard deviation
STEPS, TEMPERATURE_FACTORS = 2000, (10.0, 5.0, 2.0, 1.0)
CHECK_STEPS = 64  # of the run that checks a partition that is given
NARROW = 5.0  # bins in one step; with 10 and more, chains with a Metropolis test have got stuck


def find_partition(
    problem: Problem, sampler: Sampler, *, seed: int, init: Floats, threads: int | None = None
) -> tuple[Partition, int]:
    """A partition for ``sampler`` on ``problem``, and the gradient evaluations it took.

    32 chains run the sampler without tempering, with the starts of ``init`` (chain, replica, dim), the step sizes and
    the temperatures T each repeated cyclically: 2,000 steps at 10 T, or at 5, 2 or 1 T if they diverge, then 2,000 at
    T. From the second half of each: u_min is the 1 % quantile of the energy at T; u_max the 90 % quantile at the high
    temperature, clipped to 6 … 20 T above the 99 % quantile at T; Δu the 68 % quantile of the energy's change in one
    step at T, at least T/2, clipped to 10 … 200 bins. Modes below all energies of the pilot are outside the partition,
    where nothing is flattened; a run then warns.
    Raises DivergenceError where the pilot diverges at T. Ctrl-C ends it.
    """
    pilot, start = pilot_sampler(sampler), pilot_starts(init)
    gradients = 0
    for attempt, factor in enumerate(TEMPERATURE_FACTORS):
        pilot_seed = derived_seed(seed, PILOT, 1 + attempt)
        hot = replace(pilot, temperatures=[[factor * t for t in row] for row in pilot.arrays["temperatures"]])
        gradients += PILOT_CHAINS * STEPS * pilot.gradients_per_step
        try:
            hot_energies, ends = run_pilot(problem, hot, pilot_seed, start, threads, STEPS)
            start = np.where(problem.contains(ends)[:, None], ends, start)  # a penalty's walls are soft
            break
        except DivergenceError as error:
            if factor == TEMPERATURE_FACTORS[-1]:
                error.add_note("This was the pilot run that finds the partition; give contour a partition instead.")
                raise
    energies, _ = run_pilot(problem, pilot, derived_seed(seed, PILOT, 0), start, threads, STEPS)
    gradients += PILOT_CHAINS * STEPS * pilot.gradients_per_step
    temperature = float(sampler.arrays["temperatures"].max())
    change = np.quantile(np.abs(np.diff(energies, axis=1)), CHANGE_QUANTILE)
    return partition_of(energies, hot_energies, max(0.5 * temperature, change), temperature), gradients


def partition_of(energies: Floats, hot_energies: Floats, width: float, temperature: float) -> Partition:
    """Bins about ``width`` wide, from energies at a temperature and at a higher one, as ``find_partition`` says."""
    low, high = np.quantile(energies, [0.01, 0.99])
    top = np.clip(np.quantile(hot_energies, 0.9), high + 6.0 * temperature, high + 20.0 * temperature)
    width = np.clip(width, (top - low) / 200, (top - low) / 10)
    return Partition(float(low), float(width), int(np.ceil((top - low) / width - 1e-9)))


def pilot_sampler(sampler: Sampler) -> Sampler:
    """``sampler`` for a pilot's chains: one replica each, without tempering."""
    return replace(
        sampler,
        name="pilot",
        step_sizes=repeat_for_pilot(sampler.arrays["step_sizes"]),
        temperatures=repeat_for_pilot(sampler.arrays["temperatures"]),
        schedule=constant(),
        tempering=None,
        energy_noise=0.0,
    )


def pilot_starts(init: Floats) -> Floats:
    """Starts (PILOT_CHAINS, dim) of a pilot: those of ``init`` (chain, replica, dim), repeated cyclically."""
    return np.resize(init.reshape(-1, init.shape[2]), (PILOT_CHAINS, init.shape[2]))


def repeat_for_pilot(values: Floats) -> list[list[float]]:
    """The first replica's values of all chains, from (R,) or (chain, R), repeated cyclically for the pilot's chains."""
    return [[float(v)] for v in np.resize(np.atleast_2d(values)[:, 0], PILOT_CHAINS)]


def run_pilot(
    problem: Problem, sampler: Sampler, seed: int, start: Floats, threads: int | None, n_steps: int
) -> tuple[Floats, Floats]:
    """Energies (chain, step) of the second half of ``n_steps``, and the last positions (chain, dim)."""
    options = RunOptions(
        n_steps=n_steps, n_chains=PILOT_CHAINS, seed=seed, init=start, keep_energies=True, keep_statistics=False,
        threads=threads,
    )  # fmt: skip
    job = make_job(problem, sampler, options)
    run = execute(job, RunRecord, SavesNothing(), progress=False, warns=False)
    if run.interrupted:
        raise KeyboardInterrupt
    assert run.energies is not None
    return run.energies[:, 0, n_steps // 2 :], run.draws[:, -1]


def warn_if_bins_are_narrow(job: Job, partition: Partition, *, warns: bool) -> int:
    """Warn if a step of the sampler crosses more than ``NARROW`` bins; returns the gradient evaluations it took.

    32 chains move as the pilot's do, for 64 steps at T. The change of a step is the 68 % quantile of the second half's
    energy changes, without those of 0, from rejected moves.
    """
    pilot, start, seed = pilot_sampler(job.sampler), pilot_starts(job.pilot_init), derived_seed(job.seed, PILOT)
    energies, _ = run_pilot(job.problem, pilot, seed, start, job.threads, CHECK_STEPS)
    changes = np.abs(np.diff(energies, axis=1))
    change = float(np.quantile(changes[changes > 0.0], CHANGE_QUANTILE)) if changes.any() else 0.0
    if change > NARROW * partition.width and warns:
        warn_user(
            f"a step changes the energy by {change:.3g}, which is {change / partition.width:.0f} bins of width "
            f"{partition.width:.3g}; beyond {NARROW:.0f} moves are rarely accepted and θ is slow to settle: give a "
            f"partition of width {0.5 * change:.2g} or more, or smaller steps",
            ContourWarning,
        )
    return PILOT_CHAINS * CHECK_STEPS * pilot.gradients_per_step


def with_partition(job: Job, *, warns: bool = True, n_chains: int | None = None) -> tuple[Sampler, int]:
    """The job's sampler, with a partition from a pilot if its contour has none; and the pilot's gradient evaluations.

    A given partition is checked where moves may be rejected and the check costs less than a tenth of the run.
    warns: whether it may warn about its bins. n_chains: of the whole run, if the job has a part.
    """
    problem, sampler = job.problem, job.sampler
    contour: Any = sampler.tempering
    if not sampler.tempers.weighs_by_chain:
        return sampler, 0
    if contour.partition is not None:
        moves = (n_chains or job.init.shape[0]) * job.init.shape[1] * job.n_steps
        checks = sampler.dynamics.leapfrogs > 0 and moves >= 10 * PILOT_CHAINS * CHECK_STEPS
        if not checks or problem.target.callback is not None:
            return sampler, 0
        return sampler, warn_if_bins_are_narrow(job, contour.partition, warns=warns)
    partition, gradients = find_partition(problem, sampler, seed=job.seed, init=job.pilot_init, threads=job.threads)
    return replace(sampler, tempering=replace(contour, partition=partition)), gradients


def completed_by_pilot(job: Job) -> Job:
    """``job`` with its contour's missing partition, found by a pilot."""
    sampler, gradients = with_partition(job)
    return replace(job, sampler=sampler, pilot_gradients=gradients) if gradients else job
