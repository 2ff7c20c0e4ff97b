"""The rugged target of ICSGLD (2022), D.2, in one box for all, and the paper's samplers of it at equal cost."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from targets import constrained, domains, mixtures
from toolkit import Problem, Sampler, boundaries, samplers, schedules
from toolkit.boundaries import Boundary
from toolkit.tempering import Partition

N_STEPS = 80_000  # of each of five replicas; a single one makes five times as many
STARTS = np.array([[0.0, -1.0], [0.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
NOISE = 0.25  # of gradients and energies
PARTITION = Partition(-4.998008, 0.1249801, 100)  # as released: from 1 below the lowest energy in the box to 1 above


class Method(NamedTuple):
    """A sampler, its start (replica, dim), and the ``sample`` settings of its length, a draw per 20 gradients."""

    sampler: Sampler
    start: NDArray[np.float64]
    steps: dict[str, int]


def rugged_problem() -> Problem:
    """``cosine25`` in the box [−2.5, 2.5]², where the released code has the truth and the contour samplers."""
    return constrained(mixtures.cosine25(), domains.box([-2.5, -2.5], [2.5, 2.5]))


def small_steps_kept(n_steps: int) -> schedules.Schedule:
    """Ten cosine cycles with noise throughout, of which draws at 0.9 of the largest step and more are dropped."""
    length = -(-n_steps // 10)
    factor = 0.5 * (np.cos(np.pi * (np.arange(n_steps) % length) / length) + 1.0)
    return schedules.custom(factor, keep=factor < 0.9)


def rugged_methods(n_steps: int = N_STEPS, boundary: Boundary = boundaries.reflect()) -> dict[str, Method]:
    """The paper's samplers by its names, each making 5 n_steps gradient evaluations a chain, burn-in included.

    Five replicas make n_steps, one alone makes 5 n_steps. Replica exchange keeps its coldest replica alone, every 4
    steps, the others every 20, so that a draw costs 20 evaluations everywhere.
    """
    noisy: dict[str, Any] = {"boundary": boundary, "gradient_noise": NOISE}
    both: dict[str, Any] = {**noisy, "energy_noise": NOISE}
    together = {"n_steps": n_steps, "burn_in": n_steps // 80, "thin": 20}
    alone = {"n_steps": 5 * n_steps, "burn_in": n_steps // 16, "thin": 20}
    origin, corner = np.zeros((1, 2)), np.full((1, 2), 2.0)
    cycles = samplers.sgld(1e-2, schedule=small_steps_kept(5 * n_steps), **noisy)
    ladder, sizes = (1.0, 2.0, 3.0, 4.0, 5.0), (1e-3, 2e-3, 3e-3, 4e-3, 5e-3)
    exchange = samplers.resgld(sizes, temperatures=ladder, scheme="adjacent", **both)
    return {
        "SGLD": Method(Sampler("sgld", (3e-3,) * 5, (1.0,) * 5, **noisy), STARTS, together),
        "cycSGLD": Method(cycles, origin, alone),
        "reSGLD": Method(exchange, STARTS, {**together, "thin": 4}),
        "CSGLD": Method(samplers.csgld(3e-3, partition=PARTITION, **both), corner, alone),
        "ICSGLD": Method(samplers.icsgld(3e-3, partition=PARTITION, **both), STARTS, together),
    }


def starts_of(method: Method, n_chains: int) -> NDArray[np.float64]:
    """The method's start for every chain, (chain, replica, dim)."""
    return np.tile(method.start, (n_chains, 1, 1))
