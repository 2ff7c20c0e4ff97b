"""Contour's partition of the energies, found by a pilot run."""

import warnings
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from .contour import Contour, Partition
from .errors import DivergenceError, InterruptedWarning
from .problem import Problem
from .sampler import Sampler
from .schedules import constant
from .seeds import PILOT, derived_seed

Floats = NDArray[np.float64]

CHAINS, STEPS, HEATS = 32, 2000, (10.0, 5.0, 2.0, 1.0)


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
    pilot = replace(
        sampler,
        name="pilot",
        step_sizes=cycled(sampler.arrays["step_sizes"]),
        temperatures=cycled(sampler.arrays["temperatures"]),
        schedule=constant(),
        tempering=None,
        energy_noise=0.0,
    )
    start = np.resize(init.reshape(-1, init.shape[2]), (CHAINS, init.shape[2]))
    gradients = 0
    for attempt, heat in enumerate(HEATS):
        hot = replace(pilot, temperatures=[[heat * t for t in row] for row in pilot.arrays["temperatures"]])
        gradients += CHAINS * STEPS * pilot.gradients_per_step
        try:
            hot_energies, ends = energies_of(problem, hot, derived_seed(seed, PILOT, 1 + attempt), start, threads)
            start = np.where(problem.contains(ends)[:, None], ends, start)  # a penalty's walls are soft
            break
        except DivergenceError as error:
            if heat == HEATS[-1]:
                error.add_note("This was the pilot run that finds the partition; give contour a partition instead.")
                raise
    energies, _ = energies_of(problem, pilot, derived_seed(seed, PILOT, 0), start, threads)
    gradients += CHAINS * STEPS * pilot.gradients_per_step
    temperature = float(sampler.arrays["temperatures"].max())
    low, high = np.quantile(energies, [0.01, 0.99])
    top = np.clip(np.quantile(hot_energies, 0.9), high + 6.0 * temperature, high + 20.0 * temperature)
    change = np.quantile(np.abs(np.diff(energies, axis=1)), 0.68)
    width = np.clip(max(0.5 * temperature, change), (top - low) / 200, (top - low) / 10)
    return Partition(float(low), float(width), int(np.ceil((top - low) / width - 1e-9))), gradients


def cycled(values: Floats) -> list[list[float]]:
    """The first replica's value of every chain, (R,) or (chain, R), in turn for the pilot's chains."""
    return [[float(v)] for v in np.resize(np.atleast_2d(values)[:, 0], CHAINS)]


def energies_of(
    problem: Problem, sampler: Sampler, seed: int, start: Floats, threads: int | None
) -> tuple[Floats, Floats]:
    """Energies (chain, step) of the second half of a run, and its last places (chain, dim)."""
    from .sampling import sample  # which calls this module for a sampler without a partition

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InterruptedWarning)
        run = sample(
            problem, sampler, n_steps=STEPS, n_chains=CHAINS, seed=seed, init=start, keep_energies=True,
            threads=threads, progress=False,
        )  # fmt: skip
    if run.interrupted:
        raise KeyboardInterrupt
    assert run.energies is not None
    return run.energies[:, 0, STEPS // 2 :], run.draws[:, -1]


def with_partition(
    problem: Problem, sampler: Sampler, init: Floats, seed: int, threads: int | None
) -> tuple[Sampler, int]:
    """``sampler``, with a partition found by a pilot where it has contour without one; and the pilot's gradients."""
    if not isinstance(sampler.tempering, Contour) or sampler.tempering.partition is not None:
        return sampler, 0
    partition, gradients = find_partition(problem, sampler, seed=seed, init=init, threads=threads)
    return replace(sampler, tempering=replace(sampler.tempering, partition=partition)), gradients
