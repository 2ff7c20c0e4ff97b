"""The penalty's law: shares outside of N(0, 1) in [−1, 0.5], λ = 3, by dynamics and swaps that should agree."""

import numpy as np
from scipy import stats

from targets import constrained, domains, mixtures
from toolkit import Sampler, boundaries, dynamics, sample, samplers, tempering

LOW, HIGH, COEFFICIENT = -1.0, 0.5, 3.0


def closed_form() -> float:
    """The share outside of exp(−x² / 2 − ½ λ distance²), a mixture of three truncated normals."""
    stiff = 1.0 + COEFFICIENT
    ends = np.array([LOW, HIGH])
    outside = np.exp(-0.5 * COEFFICIENT * ends**2 / stiff) / np.sqrt(stiff)
    outside = (outside * stats.norm.cdf(-np.abs(ends) / np.sqrt(stiff))).sum()
    return float(outside / (outside + stats.norm.cdf(HIGH) - stats.norm.cdf(LOW)))


def exchange(move: dynamics.Dynamics, step_size: float, every: int, boundary: boundaries.Boundary) -> Sampler:
    """Two replicas, at temperatures 1 and 3, that swap every so many steps."""
    rule = tempering.replica_exchange(swap_every=every)
    return Sampler("pair", (step_size,) * 2, (1.0, 3.0), dynamics=move, tempering=rule, boundary=boundary)


def print_shares(wanted: str, boundary: boundaries.Boundary) -> None:
    """A line for every way of moving and swapping."""
    problem = constrained(mixtures.gaussian_mixture([[0.0]], 1.0), domains.box([LOW], [HIGH]))
    ways = {
        "MALA, h = 0.5": samplers.mala(0.5, boundary=boundary),
        "SGLD, h = 0.01": samplers.sgld(0.01, boundary=boundary),
        "SGLD, h = 0.005": samplers.sgld(0.005, boundary=boundary),
        **{
            f"replica exchange of {name}, swap_every {every}": exchange(move, h, every, boundary)
            for name, move, h in (("SGLD", dynamics.langevin(), 0.01), ("MALA", dynamics.mala(), 0.5))
            for every in (1, 10)
        },
    }
    for name, sampler in ways.items():
        run = sample(problem, sampler, n_steps=100_000, burn_in=2_000, n_chains=100, thin=5, seed=0)
        outside = ((run.draws < LOW) | (run.draws > HIGH)).mean(axis=(1, 2))
        error = outside.std(ddof=1) / np.sqrt(outside.size)
        print(f"share outside, {name}: {outside.mean():.4f} ± {error:.4f} (wanted {wanted})")


def main() -> None:
    """Print the shares of the default, whether it serves away from the origin, and the variant as printed."""
    print_shares(f"{closed_form():.4f}", boundaries.penalise(COEFFICIENT))
    away = constrained(mixtures.gaussian_mixture([[0.0]], 1.0), domains.box([4.0], [5.0]))
    try:
        run = sample(away, samplers.mala(0.01, boundary=boundaries.penalise(100.0)), n_steps=20_000, n_chains=50,
                     burn_in=2_000, init=[4.1], seed=0)  # fmt: skip
        said = f"{run.draws.mean():.3f}"
    except ValueError as error:
        said = f"ValueError: {error}"
    places = np.linspace(2.0, 7.0, 500_001)
    density = np.exp(-0.5 * (places**2 - 16.0) - 50.0 * (places - np.clip(places, 4.0, 5.0)) ** 2)
    print(f"mean, N(0, 1) in [4, 5], λ = 100, MALA: {said} (wanted {(density * places).sum() / density.sum():.3f})")
    printed = getattr(boundaries, "penalise_as_printed", None)
    if printed is None:
        print("penalise_as_printed: missing (wanted: the papers' penalty under a name of its own)")
    else:
        print_shares("none: as printed it has no law", printed(COEFFICIENT))


if __name__ == "__main__":
    main()
