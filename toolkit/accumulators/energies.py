"""Running statistics of the draws' energies: their histogram, and the best point."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from .._compiler.signatures import FLOATS, INTEGERS, MATRIX
from ..errors import check_edges
from .cells import cell_of, cells_per_unit
from .interface import DrawKernel, PoolableAccumulator, State, add_nodes
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


class PooledEnergies(NamedTuple):
    """Weights of the energies of all chains' draws in bins; those of each chain are scaled to sum to its draws.

    counts: (bin,). below, above: (), the weight below the first edge and above the last. draws: (), how many there
    were, of the chains with weight. minimum, maximum, mean: (), nan without draws. edges: of the bins, in nats.
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
class EnergyHistogram(PoolableAccumulator):
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

    def leaves(self, state: State, first: int) -> State:
        """Each chain's weights, scaled to sum to its draws, with range and mean."""
        sums = state["sums"]
        has_weight = sums[:, WEIGHT] > 0.0
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            factor = np.where(has_weight, state["draws"] / sums[:, WEIGHT], 0.0)
        return {
            "counts": state["counts"] * factor[:, None],
            "below": sums[:, BELOW] * factor,
            "above": sums[:, ABOVE] * factor,
            "draws": np.where(has_weight, state["draws"], 0),
            "minimum": sums[:, MINIMUM].copy(),
            "maximum": sums[:, MAXIMUM].copy(),
            "mean": sums[:, MEAN].copy(),
        }

    def merge(self, left: State, right: State) -> State:
        """Sums of weights; range and mean of both."""
        total = left["draws"] + right["draws"]
        with np.errstate(invalid="ignore"):
            share = np.where(total > 0, right["draws"] / total, 0.0)
        lower, higher = right["minimum"] < left["minimum"], right["maximum"] > left["maximum"]
        return {
            **add_nodes(left, right),
            "minimum": np.where(lower, right["minimum"], left["minimum"]),  # not np.minimum, whose zero may be ±0
            "maximum": np.where(higher, right["maximum"], left["maximum"]),
            "mean": left["mean"] + share * (right["mean"] - left["mean"]),
        }

    def pooled_result(self, node: State) -> PooledEnergies:
        """The statistics of all chains."""
        found = {name: np.array(values[0]) for name, values in node.items()}
        if found["draws"] == 0:
            found |= {name: np.array(np.nan) for name in ("minimum", "maximum", "mean")}
        return PooledEnergies(**found, edges=self.edges.copy())


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


class PooledBestPoint(NamedTuple):
    """The draw of lowest energy of all chains, that of the lowest chain of equal ones.

    energy: (), in nats; inf before the first draw. position: (dim,); nan before. step: (), the step after which it was
    taken; chain: (), whose it is; both −1 before.
    """

    energy: Floats
    position: Floats
    step: Integers
    chain: Integers


@dataclass(frozen=True)
class Best(PoolableAccumulator):
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

    def leaves(self, state: State, first: int) -> State:
        """The best point of each chain, with the chain's number."""
        numbers = np.arange(first, first + len(state["step"]))
        return {**{name: state[name].copy() for name in state}, "chain": np.where(state["step"] < 0, -1, numbers)}

    def merge(self, left: State, right: State) -> State:
        """The better point, the left one of equal ones."""
        is_right = right["energy"] < left["energy"]
        return {
            name: np.where(is_right[:, None] if left[name].ndim > 1 else is_right, right[name], left[name])
            for name in left
        }

    def pooled_result(self, node: State) -> PooledBestPoint:
        """The best point of all chains."""
        return PooledBestPoint(*(np.array(node[name][0]) for name in PooledBestPoint._fields))


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
