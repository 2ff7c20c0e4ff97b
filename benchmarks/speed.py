"""Speed of a general mixture and of walls, float64, one core: chain-steps a second beside a scalar Numba loop.

A chain-step is one step of one replica: one gradient evaluation. 1,024 chains; ratios are medians over rounds in
which both run once, with their smallest and largest. Of samplers without walls: ``benchmarks.side_by_side.engine``.
"""

from collections.abc import Callable

import numpy as np

from targets import constrained, mixtures, shapes
from toolkit import boundaries, sample, samplers
from toolkit.problem.definition import as_problem

from .markdown import head, row
from .rounds import wall
from .scalar_flower import r2sgld_cosine25
from .scalar_targets import CENTRES
from .side_by_side.scalar_loops import scalar_run

CHAINS, ROUNDS = 1024, 7


def compare(name: str, ours: Callable[[], object], reference: Callable[[], object], work: float, less: float) -> None:
    """One row: both rates, and the ratio; ``work`` chain-steps of ours, ``work / less`` of the reference."""
    ours(), reference()
    pairs = [(work / wall(ours), work / less / wall(reference)) for _ in range(ROUNDS)]
    ratios = sorted(a / b for a, b in pairs)
    rates = np.median(np.array(pairs), axis=0) / 1e6
    row(name, f"{rates[0]:.1f}", f"{rates[1]:.1f}", f"{ratios[ROUNDS // 2]:.1f}", f"{ratios[0]:.1f} – {ratios[-1]:.1f}")


def main() -> None:
    """Print the table."""
    head("case", "ours, 10⁶/s", "scalar loop, 10⁶/s", "ratio", "spread")
    out = np.empty((CHAINS, 2))
    problem = constrained(mixtures.cosine25(), shapes.flower())
    domain = problem.domain
    assert domain is not None
    mixture = mixtures.gaussian_mixture(CENTRES, 0.03)

    def ours(target, sampler, n_steps):
        arguments = {
            "n_steps": n_steps,
            "thin": n_steps,
            "n_chains": CHAINS,
            "seed": 1,
            "threads": 1,
            "init": np.zeros(2),
        }
        return lambda: sample(as_problem(target), sampler, **arguments)

    def scalar(target, n):
        run = scalar_run("sgld", target, 1e-3)
        return lambda: run(CHAINS, n)

    def flower(n, noise):
        sizes, temperatures = np.array([5e-4, 1.5e-3]), np.array([1.0, 10.0])
        return lambda: r2sgld_cosine25(n, CHAINS, sizes, temperatures, noise, noise, out, domain.real, domain.whole)

    plain = samplers.sgld(1e-3)
    compare(
        "SGLD, gaussian_mixture: 25 exp, beside 25", ours(mixture, plain, 2_000), scalar("gaussian_mixture25", 400),
        CHAINS * 2e3, 5,
    )  # fmt: skip
    noisy = samplers.r2sgld(gradient_noise=0.05, energy_noise=0.05)
    compare("r2SGLD in the flower, noisy", ours(problem, noisy, 2_000), flower(400, 0.05), CHAINS * 4e3, 5)
    reflected = samplers.sgld(5e-4, boundary=boundaries.reflect())
    compare(
        "R-SGLD in the flower (beside free scalar SGLD)", ours(problem, reflected, 4_000), scalar("cosine25", 800),
        CHAINS * 4e3, 5,
    )  # fmt: skip
