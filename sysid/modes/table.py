"""The modes of an identification, as users read them."""

from typing import NamedTuple

import numpy as np

from ..arrays import Array, Integers
from .search import Mode


class ModeTable(NamedTuple):
    """Modes of a posterior, the weightiest first.

    parameters: (modes, q). sd: their standard deviations (modes, q) by Laplace's approximation, to first order where
    logarithms are sampled. energies: (modes,), in nats. weights: probabilities (modes,) by Laplace's approximation,
    among the modes that were found.
    """

    names: tuple[str, ...]
    parameters: Array
    sd: Array
    energies: Array
    weights: Array

    def __str__(self) -> str:
        """A table in Markdown, a row per mode."""
        head = "| weight | energy | " + " | ".join(self.names) + " |"
        rows = [
            f"| {weight:.4f} | {energy:.6g} | "
            + " | ".join(f"{value:.5g} ± {sd:.2g}" for value, sd in zip(values, sds, strict=True))
            + " |"
            for weight, energy, values, sds in zip(self.weights, self.energies, self.parameters, self.sd, strict=True)
        ]
        return "\n".join([head, "| --- " * (2 + len(self.names)) + "|", *rows])


def nearest_mode(modes: tuple[Mode, ...], points: Array) -> Integers:
    """The mode (n,) that each of ``points`` (n, q) is nearest to, in the modes' standard deviations."""
    return np.asarray(np.argmin([mode.distances(points) for mode in modes], axis=0))


def doubts_of_modes(modes: tuple[Mode, ...], chains: Array, labels: list[str]) -> list[str]:
    """What is wrong with how ``chains`` (chain, draw, q) share the modes, in words.

    labels: of the modes, for the reader.
    """
    n_chains, n_draws, q = chains.shape
    visits = nearest_mode(modes, chains.reshape(-1, q)).reshape(n_chains, n_draws)
    doubts = []
    for k, mode in enumerate(modes):
        if not (visits == k).any() and mode.weight * visits.size >= 20.0:
            doubts.append(
                f"no draw is at the mode {labels[k]}, which has {mode.weight:.3g} of the posterior by Laplace"
            )
    moves = int((visits[:, 1:] != visits[:, :-1]).sum())
    if not doubts and moves < len(modes) * max(1.0, 0.05 * n_chains) and n_draws > 1:
        went = "no chain went" if moves == 0 else f"chains went {moves} time{'s' * (moves > 1)}"
        doubts.append(
            f"{went} from one of the {len(modes)} modes to another, so that their weights are those of the starts, by "
            "Laplace's approximation; a sampler with temperatures, such as r2sghmc, can move between them"
        )
    return doubts
