"""What a run gives back."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .problem import Problem
from .samplers import Sampler

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Run:
    """Draws of a run, or of one chunk of a stream, with what was counted on the way.

    replica_draws: (chain, replica, draw, dim), the target-temperature replica alone unless all were kept.
    steps: (draw,), the step after which each draw was taken; steps count from 0.
    energies: (chain, replica, draw), where asked for: exact, without noise, with the penalty where there is one.
    swaps, swap_rates: (chain, pair), accepted since the end of burn-in, and as a share of the attempts; nan before the
    first attempt.
    reflections, reflection_fallbacks: (chain, replica), since the start of the run: reflections, and returns to the
    last inside point after the allowed number of bounces.
    gradient_evaluations: so far, all chains and replicas. elapsed: seconds of sampling. interrupted: stopped by Ctrl-C.
    """

    problem: Problem
    sampler: Sampler
    seed: int
    n_steps: int
    burn_in: int
    thin: int
    replica_draws: Floats
    steps: Integers
    energies: Floats | None
    swaps: Integers
    swap_rates: Floats
    reflections: Integers
    reflection_fallbacks: Integers
    gradient_evaluations: int
    elapsed: float
    interrupted: bool = False

    @property
    def draws(self) -> Floats:
        """Draws at the target temperature, (chain, draw, dim)."""
        return self.replica_draws[:, 0]

    @property
    def weights(self) -> Floats:
        """Importance weights of ``draws``, (chain, draw); all 1, as no sampler here needs any."""
        return np.ones(self.draws.shape[:2])

    @property
    def n_chains(self) -> int:
        """Number of chains."""
        return len(self.replica_draws)

    def __repr__(self) -> str:
        chains, replicas, draws, dim = self.replica_draws.shape
        return (
            f"Run({self.sampler.name} on {self.problem.name}: {chains} chains × {replicas} kept replicas × "
            f"{draws} draws of dimension {dim}; {self.n_steps} steps, burn_in={self.burn_in}, thin={self.thin}, "
            f"seed={self.seed}, "
            f"{self.elapsed:.2f} s{', interrupted' if self.interrupted else ''})"
        )
