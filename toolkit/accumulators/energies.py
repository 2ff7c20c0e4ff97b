"""Running statistics of the draws' energies: their histogram, and the best point."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from .._compiler.signatures import FLOATS, INTEGERS, MATRIX
from ..errors import check_edges
from .cells import cell_of, cells_per_unit
from .interface import DrawKernel, KernelAccumulator
from .running_moments import ANY_DRAWS, ANY_WEIGHTS

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

TALLY = types.void(
    types.Tuple((ANY_WEIGHTS, ANY_WEIGHTS)), types.Tuple((FLOATS,)), types.Tuple((MATRIX, INTEGERS, MATRIX))
)
KEEP_BEST = types.void(
    types.Tuple((ANY_DRAWS, ANY_WEIGHTS, INTEGERS, types.int64)),
    types.Tuple(()),
    types.Tuple((FLOATS, MATRIX, INTEGERS)),
)
WEIGHT, BELOW, ABOVE, MEAN, MINIMUM, MAXIMUM, N_SUMS = range(7)


class EnergiesSoFar(NamedTuple):
    """Weights of the draws' energies in bins, by chain.

    counts: (chain, bin). below, above: (chain,), the weight below the first edge and above the last. draws: (chain,),
    how many there were. minimum, maximum: (chain,), of those with weight. mean: (chain,), weighted. These three are nan
    where a chain has no weight yet. edges: of the bins, in nats.
    """

    counts: Floats
    below: Floats
    above: Floats
    draws: Integers
    minimum: Floats
    maximum: Floats
    mean: Floats
    edges: Floats


@dataclass(frozen=True, eq=False)
class EnergyHistogram(KernelAccumulator):
    """The accumulator of ``energy_histogram``."""

    edges: Floats

    needs_energies = True

    def start(self, problem: Any, n_chains: int) -> dict[str, NDArray[Any]]:
        """No energies."""
        sums = np.zeros((n_chains, N_SUMS))
        sums[:, MINIMUM], sums[:, MAXIMUM] = np.inf, -np.inf
        return {
            "counts": np.zeros((n_chains, self.edges.size - 1)), "draws": np.zeros(n_chains, np.int64), "sums": sums,
        }  # fmt: skip

    def draw_kernel(self, dim: int) -> DrawKernel:
        """The kernel that adds energies to their bins."""
        state = ("counts", "draws", "sums")
        return DrawKernel(tally_energies, TALLY, ("energies", "weights"), (self.edges,), state)

    def result(self, state: dict[str, NDArray[Any]]) -> EnergiesSoFar:
        """The statistics so far."""
        sums = np.where(state["sums"][:, :1] == 0.0, np.nan, state["sums"])
        return EnergiesSoFar(
            counts=state["counts"].copy(),
            below=state["sums"][:, BELOW].copy(),
            above=state["sums"][:, ABOVE].copy(),
            draws=state["draws"].copy(),
            minimum=sums[:, MINIMUM],
            maximum=sums[:, MAXIMUM],
            mean=sums[:, MEAN],
            edges=self.edges.copy(),
        )


def energy_histogram(edges: Any) -> EnergyHistogram:
    """Histogram, range and mean of the draws' energies, which ``run.energies`` describes: ``EnergiesSoFar``.

    edges: at least 2 increasing energies in nats; a bin holds its lower edge, the last one its upper edge too. Weighted
    where draws have weights. What is not finite, which a diverged replica leaves, is left out.
    Raises TypeError or ValueError where the edges are wrong.
    """
    return EnergyHistogram(np.array(check_edges("edges", edges)))


class BestPoint(NamedTuple):
    """The draw of lowest energy of each chain.

    energy: (chain,), in nats; inf before the first draw. position: (chain, dim); nan before. step: (chain,), the step
    after which it was taken, as in ``run.steps``; −1 before.
    """

    energy: Floats
    position: Floats
    step: Integers


@dataclass(frozen=True)
class Best(KernelAccumulator):
    """The accumulator of ``best_point``."""

    needs_energies = True

    def start(self, problem: Any, n_chains: int) -> dict[str, NDArray[Any]]:
        """No point."""
        return {
            "energy": np.full(n_chains, np.inf),
            "position": np.full((n_chains, problem.target.dim), np.nan),
            "step": np.full(n_chains, -1),
        }

    def draw_kernel(self, dim: int) -> DrawKernel:
        """The kernel that keeps the draw of lowest energy, the first of equal ones."""
        state = ("energy", "position", "step")
        return DrawKernel(keep_best, KEEP_BEST, ("draws", "energies", "steps", "replicas"), (), state)

    def result(self, state: dict[str, NDArray[Any]]) -> BestPoint:
        """The best points so far."""
        return BestPoint(state["energy"].copy(), state["position"].copy(), state["step"].copy())


def best_point() -> Best:
    """The draw of lowest energy of each chain, whatever its weight, with its energy and step: ``BestPoint``.

    Of kept draws alone, so thin=1 sees most. Energies are those of ``run.energies``: of a target that draws minibatches
    they are noisy, and the lowest is then lucky as well as low.
    """
    return Best()


def tally_energies(inputs: Any, constants: Any, state: Any) -> None:
    """Add energies (chain, draw), in order, to ``counts`` (chain, bin) and ``sums`` (chain, sum).

    weights: (chain, draw), or empty.
    """
    energies, weights = inputs
    (edges,) = constants
    counts, count, sums = state
    weighted, scale = weights.size > 0, cells_per_unit(edges)
    for c in range(energies.shape[0]):
        for t in range(energies.shape[1]):
            w, energy = weights[c, t] if weighted else 1.0, energies[c, t]
            if (w - w) + (energy - energy) != 0.0:
                continue
            count[c] += 1
            if w > 0.0:
                sums[c, WEIGHT] += w
                sums[c, MEAN] += w / sums[c, WEIGHT] * (energy - sums[c, MEAN])
                if energy < sums[c, MINIMUM]:  # not min, which treats −0 differently on a device
                    sums[c, MINIMUM] = energy
                if energy > sums[c, MAXIMUM]:
                    sums[c, MAXIMUM] = energy
                cell = cell_of(energy, edges, scale)
                if cell >= 0:
                    counts[c, cell] += w
                elif energy < edges[0]:
                    sums[c, BELOW] += w
                else:
                    sums[c, ABOVE] += w


def keep_best(inputs: Any, constants: Any, state: Any) -> None:
    """Copy the draw of lowest energy of each chain where it is below ``energy`` (chain,)."""
    draws, energies, steps, replicas = inputs
    energy, position, step = state
    for c in range(draws.shape[0]):
        best = -1
        for t in range(draws.shape[1]):
            if energies[c, t] < energy[c]:  # false for nan
                energy[c], best = energies[c, t], t
        if best >= 0:
            step[c] = steps[best // replicas]
            for d in range(draws.shape[2]):
                position[c, d] = draws[c, best, d]
