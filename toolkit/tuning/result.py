"""The result of a tuning: the sampler, where its chains begin, and the report of how it was found."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..samplers.sampler import Sampler
from .study import Floats, Round

COLUMNS = ("round", "steps", "chains", "gradients", "temperatures", "step sizes", "accepted", "swaps rejected", "")


class Cost(NamedTuple):
    """What a tuning took: gradient evaluations, and seconds."""

    gradients: int
    seconds: float


@dataclass(frozen=True, eq=False)
class Tuned:
    """A sampler with its numbers found by ``tune``; give it to ``sample`` or ``stream`` in place of a sampler.

    init: (chain, replica, dim), where its chains begin, as the last round left them. burn_in: steps after which their
    start no longer matters. thin: steps between draws that are worth keeping. These are what ``sample`` takes where it
    is given no others. sites: (n, dim), states of the coldest chains of exploration, for a run to visit. rounds: each
    short run. reasons: sentences, what was decided and why. warnings: sentences, what could not be found.
    draws_per_gradient: independent draws, of the slowest coordinate, that the last race made for each gradient
    evaluation; nan where that was not measured. cost: gradient evaluations and seconds.
    """

    problem: str
    sampler: Sampler
    seed: int
    init: Floats
    burn_in: int
    thin: int
    sites: Floats
    rounds: tuple[Round, ...]
    reasons: tuple[str, ...]
    warnings: tuple[str, ...]
    draws_per_gradient: float
    cost: Cost

    @property
    def n_chains(self) -> int:
        """Chains that it has starts for: as many as fill the lanes of one core."""
        return len(self.init)

    @property
    def report(self) -> str:
        """What was found, how, and what it cost, in lines of text."""
        sampler, out = self.sampler, [f"{self.sampler.name} on {self.problem}, tuned with seed {self.seed}"]
        facts = [
            (
                "chains",
                f"{self.n_chains} × {sampler.n_replicas} replicas" if sampler.n_replicas > 1 else f"{self.n_chains}",
            ),
            ("step sizes", numbers(sampler.arrays["step_sizes"])),
            ("temperatures", numbers(sampler.arrays["temperatures"])),
            ("moves", moves_in_words(sampler)),
        ]
        if sampler.tempering is not None:
            facts.append(("tempering", sampler.tempering.words(sampler.n_replicas)))
        if np.isfinite(self.draws_per_gradient):
            facts.append(("worth", f"{1e3 * self.draws_per_gradient:.3g} independent draws per 1,000 gradients"))
        facts.append(("cost", f"{cost_in_words(self.cost)}, {len(self.rounds)} rounds"))
        out += [f"  {label:<13} {text}" for label, text in facts]
        out += ["", *(f"  {sentence}" for sentence in self.reasons), ""]
        rows = [COLUMNS, *(row_of(each) for each in self.rounds)]
        widths = [max(len(row[i]) for row in rows) for i in range(len(COLUMNS))]
        out += ["  " + "  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in rows]
        out += ["", *(f"  ! {sentence}" for sentence in self.warnings)] if self.warnings else []
        return "\n".join(out)

    def __str__(self) -> str:
        """``report``."""
        return self.report

    def __repr__(self) -> str:
        return (
            f"Tuned({self.sampler.name} on {self.problem}: {self.n_chains} chains × {self.sampler.n_replicas} "
            f"replicas, {self.cost.gradients:,} gradients in {len(self.rounds)} rounds, seed={self.seed})"
        )


def cost_in_words(cost: Cost) -> str:
    """Gradients and seconds, in all and of each."""
    seconds, each = (
        f"{float(f'{value:.2g}'):g}" for value in (cost.seconds, 1e6 * cost.seconds / max(1, cost.gradients))
    )
    return f"{cost.gradients:,} gradients in {seconds} s, {each} µs each"


def moves_in_words(sampler: Sampler) -> str:
    """The dynamics with their numbers."""
    return sampler.dynamics.in_words()


def numbers(values: Floats | tuple[float, ...], most: int = 8) -> str:
    """Up to ``most`` numbers in words."""
    flat = np.atleast_2d(np.asarray(values))[0]
    if len(flat) and (flat == flat[0]).all():
        return f"{flat[0]:.4g}"
    if len(flat) > most:
        return f"{len(flat)} from {flat[0]:.4g} to {flat[-1]:.4g}"
    return " ".join(f"{value:.4g}" for value in flat)


def short(values: tuple[float, ...]) -> str:
    """Numbers to two digits, as far as they are finite."""
    return " ".join(f"{value:.2g}" for value in values) if values and np.isfinite(values).any() else ""


def row_of(each: Round) -> tuple[str, ...]:
    """A line of the table of rounds."""
    figure = f"{each.figure_name} {short(each.figure)}" if each.figure else ""
    return (
        each.stage, f"{each.n_steps:,}", f"{each.n_chains}", f"{each.gradients:,}", numbers(each.temperatures),
        numbers(each.step_sizes), short(each.acceptance), short(each.rejection), figure,
    )  # fmt: skip
