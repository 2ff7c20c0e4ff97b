"""The modes of an identification, as users read them."""

from typing import NamedTuple

import numpy as np

from toolkit.diagnostics import r_hat

from ..arrays import Array, Integers
from .search import Mode

MIN_EXPECTED = 20.0  # draws at a mode, of whose absence a warning tells
MIN_DRAWS = 8  # of a chain
MAX_R_HAT = 1.05  # of which mode a chain is at


class ModeTable(NamedTuple):
    """Modes of a posterior, the weightiest first.

    parameters: (modes, q). sd: their standard deviations (modes, q) by Laplace's approximation, to first order where
    logarithms are sampled. energies: (modes,), in nats. weights: probabilities (modes,) by Laplace's approximation,
    among the modes that were found. symmetries: in words, changes of the parameters that leave the energy as it is and
    lead to modes that were not searched; "" where there is none.
    """

    names: tuple[str, ...]
    parameters: Array
    sd: Array
    energies: Array
    weights: Array
    symmetries: str = ""

    def __str__(self) -> str:
        """A table in Markdown, a row per mode."""
        head = "| weight | energy | " + " | ".join(self.names) + " |"
        rows = [
            f"| {weight:.4f} | {energy:.6g} | "
            + " | ".join(f"{value:.5g} ± {sd:.2g}" for value, sd in zip(values, sds, strict=True))
            + " |"
            for weight, energy, values, sds in zip(self.weights, self.energies, self.parameters, self.sd, strict=True)
        ]
        note = ["", self.symmetries[:1].upper() + self.symmetries[1:] + "."] if self.symmetries else []
        return "\n".join([head, "| --- " * (2 + len(self.names)) + "|", *rows, *note])


def nearest_mode(modes: tuple[Mode, ...], points: Array) -> Integers:
    """The mode (n,) that each of ``points`` (n, q) is nearest to, in the modes' standard deviations."""
    return np.asarray(np.argmin([mode.distances(points) for mode in modes], axis=0))


def doubts_of_modes(modes: tuple[Mode, ...], chains: Array, labels: list[str]) -> list[str]:
    """What is wrong with how ``chains`` (chain, draw, q) share the modes, in words.

    labels: of the modes, for the reader.
    """
    n_chains, n_draws, q = chains.shape
    visits = nearest_mode(modes, chains.reshape(-1, q)).reshape(n_chains, n_draws)
    doubts = [
        f"no draw is at the mode {label}, which has {mode.weight:.3g} of the posterior by Laplace's approximation"
        for k, (mode, label) in enumerate(zip(modes, labels, strict=True))
        if mode.weight * visits.size >= MIN_EXPECTED and not (visits == k).any()
    ]
    if not doubts and n_draws >= MIN_DRAWS and n_chains > 1:
        disagreement = np.nanmax(r_hat((visits[..., None] == np.arange(len(modes))).astype(np.float64)))
        if disagreement > MAX_R_HAT:
            doubts.append(
                f"chains do not go from one of the {len(modes)} modes to another often enough (R-hat "
                f"{disagreement:.3g} of where they are), so that the modes' weights are those of the starts, by "
                "Laplace's approximation; hotter or more temperatures let them move (docs/identification.md)"
            )
    return doubts
