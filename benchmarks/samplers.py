"""Cost of every sampler's gradient on cosine25 beside plain SGLD's, one core, float64, 1,024 chains (fewer for SVGD).

Interleaved: each round runs SGLD and the sampler once; ratios are medians over rounds, with smallest and largest.
"""

import warnings

import numpy as np

from targets import mixtures
from toolkit import ContourWarning, Sampler, boundaries, sample, samplers, tempering

from .markdown import head, row

CHAINS, ROUNDS, GRADIENTS = 1024, 7, 4_000_000
H = 1e-3
PARTITION = tempering.Partition(-4.0, 0.5, 32)
LADDER = {"step_sizes": (H,) * 5, "temperatures": (1.0, 2.0, 3.0, 4.0, 5.0)}


def cases() -> list[tuple[str, Sampler, int]]:
    """Name, sampler and number of chains."""
    free = boundaries.ignore()
    named: list[tuple[str, Sampler]] = [
        ("sgld", samplers.sgld(H)),
        ("psgld", samplers.psgld(H, floor=1.0)),
        ("psgld, no Γ", samplers.psgld(H, floor=1.0, drift_correction=False)),
        ("sghmc", samplers.sghmc(H)),
        ("sgnht", samplers.sgnht(H)),
        ("sgnht by coordinate", samplers.sgnht(H, by_coordinate=True)),
        ("cyclical_sgld", samplers.cyclical_sgld(H)),
        ("cyclical_sghmc", samplers.cyclical_sghmc(H)),
        ("csgld", samplers.csgld(H, partition=PARTITION)),
        ("icsgld × 5", samplers.icsgld(H, partition=PARTITION)),
        ("icsghmc × 5", samplers.icsghmc(H, partition=PARTITION)),
        ("resgld × 2", samplers.resgld((H, 2 * H), temperatures=(1.0, 3.0))),
        ("resgld × 5", samplers.resgld(**LADDER)),
        ("resgld × 5, seo", samplers.resgld(**LADDER, scheme="seo")),
        ("resgld × 5, adjacent", samplers.resgld(**LADDER, scheme="adjacent")),
        ("resgld × 5, all pairs", samplers.resgld(**LADDER, scheme="all_pairs")),
        ("r2sgld without a domain", samplers.r2sgld(boundary=free)),
        ("r2sghmc without a domain", samplers.r2sghmc(boundary=free)),
        ("tact_hmc", samplers.tact_hmc(H)),
        ("mala", samplers.mala(H)),
        ("hmc, 10 leapfrogs", samplers.hmc(0.03, random_length=False)),
    ]
    stein = [(f"svgd × {n}", samplers.svgd(n_replicas=n), 640 // n) for n in (10, 40, 160)]
    return [(name, sampler, CHAINS) for name, sampler in named] + stein


def cost(sampler: Sampler, n_chains: int) -> float:
    """Seconds per gradient evaluation of one run of about ``GRADIENTS`` of them."""
    n_steps = max(50, GRADIENTS // (n_chains * sampler.gradients_per_step))
    init = np.random.default_rng(1).uniform(-2.0, 2.0, (n_chains, sampler.n_replicas, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ContourWarning)
        run = sample(
            mixtures.cosine25(), sampler, n_steps=n_steps, thin=n_steps, n_chains=n_chains, init=init, seed=1, threads=1
        )
    return run.elapsed / run.gradient_evaluations


def main() -> None:
    """Print the table."""
    head("sampler", "10⁶ gradients/s", "cost per gradient, SGLD = 1", "spread")
    plain = samplers.sgld(H)
    for name, sampler, n_chains in cases():
        cost(sampler, n_chains), cost(plain, CHAINS)
        pairs = [(cost(sampler, n_chains), cost(plain, CHAINS)) for _ in range(ROUNDS)]
        ratios = sorted(ours / sgld for ours, sgld in pairs)
        rate = 1e-6 / np.median([ours for ours, _ in pairs])
        row(name, f"{rate:.1f}", f"{ratios[ROUNDS // 2]:.2f}", f"{ratios[0]:.2f} – {ratios[-1]:.2f}")
