"""Contour's partition of the energies, found by a pilot run."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from .contour import Contour, Partition
from .errors import DivergenceError
from .problem import Problem
from .sampler import Sampler
from .schedules import constant

CHAINS, STEPS, HEAT = 32, 2000, 10.0
SEED_SHIFT = 0x9E3779B97F4A7C15  # the pilot's random numbers are not those of the run


def find_partition(problem: Problem, sampler: Sampler, *, seed: int, init: NDArray[np.float64]) -> Partition:
    """A partition for ``sampler`` on ``problem`` from 32 chains, 2,000 steps at ten times T and 2,000 at T.

    They move as the sampler does, without tempering, from ``init`` (chain, replica, dim), in turn. From the second
    half of each: u_min is the 1 % quantile of the energy at T; u_max the 90 % quantile at 10 T, but 6 to 20 T above the
    99 % quantile at T; Δu the energy's root mean square change in one step at T, but at least T/2, for 10 to 200 bins.
    Modes that lie lower than any the pilot met are outside, where nothing is flattened; a run then warns.
    Raises DivergenceError where the pilot diverges at ten times T.
    """
    from .sampling import sample  # which calls this for a sampler without a partition

    temperature = float(np.ravel(sampler.temperatures)[0])
    step_size = float(np.ravel(sampler.step_sizes)[0])
    start = np.resize(init.reshape(-1, init.shape[2]), (CHAINS, init.shape[2]))
    energies = []
    for heat in (HEAT, 1.0):
        pilot = replace(
            sampler,
            name="pilot",
            step_sizes=(step_size,),
            temperatures=(heat * temperature,),
            schedule=constant(),
            tempering=None,
            energy_noise=0.0,
        )
        seed = (seed + SEED_SHIFT) % 2**64
        try:
            run = sample(problem, pilot, n_steps=STEPS, n_chains=CHAINS, seed=seed, init=start, keep_energies=True)
        except DivergenceError as error:
            error.add_note("This was the pilot run that finds the partition; give contour a partition to do without.")
            raise
        assert run.energies is not None
        energies.append(run.energies[:, 0, STEPS // 2 :])
        start = run.draws[:, -1]
    low, high = np.quantile(energies[1], [0.01, 0.99])
    top = np.clip(np.quantile(energies[0], 0.9), high + 6.0 * temperature, high + 20.0 * temperature)
    change = np.sqrt(np.mean(np.diff(energies[1], axis=1) ** 2))
    width = np.clip(max(0.5 * temperature, change), (top - low) / 200, (top - low) / 10)
    return Partition(float(low), float(width), int(np.ceil((top - low) / width - 1e-9)))


def with_partition(problem: Problem, sampler: Sampler, init: NDArray[np.float64], seed: int) -> Sampler:
    """``sampler``, with a partition found by a pilot run where it has contour without one."""
    if not isinstance(sampler.tempering, Contour) or sampler.tempering.partition is not None:
        return sampler
    partition = find_partition(problem, sampler, seed=seed, init=init)
    return replace(sampler, tempering=replace(sampler.tempering, partition=partition))
