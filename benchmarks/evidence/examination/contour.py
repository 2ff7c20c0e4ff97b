"""Chains under contour and a Metropolis test in bins narrower than a step, and R-hat of chains that never move."""

import warnings
from dataclasses import replace

import numpy as np

from targets import mixtures
from toolkit import sample, samplers, tempering
from toolkit._output.report.warnings import largest_multiplier
from toolkit.tempering.contour_tempering import Partition

GRID, PLANE = mixtures.gaussian_grid25(), mixtures.gaussian_mixture([[0.0, 0.0]], 1.0)
CASES = {
    "MALA, h = 0.02, Δu = 0.02, gaussian_grid25": (GRID, samplers.mala(0.02), 0.02),
    "MALA, h = 0.02, Δu = 0.1, gaussian_grid25": (GRID, samplers.mala(0.02), 0.1),
    "MALA, h = 0.5, Δu = 0.02, N(0, I)": (PLANE, samplers.mala(0.5), 0.02),
    "HMC, ε = 1.2, L = 3, Δu = 0.01, N(0, I)": (PLANE, samplers.hmc(1.2, n_leapfrogs=3), 0.01),
}


def main() -> None:
    """Print acceptance, the largest multiplier and the warnings of each case, and R-hat in words."""
    for name, (problem, plain, width) in CASES.items():
        for freezes in (False, True):
            low = float(problem.truth.energy_quantiles([0.001])[0])
            cells = Partition(low, width, round(10.0 / width))
            sampler = replace(plain, tempering=tempering.contour(partition=cells, freezes=freezes))
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                start = np.random.default_rng(0).standard_normal((8, 2)) if problem is PLANE else None
                run = sample(problem, sampler, n_steps=60_000, burn_in=20_000, n_chains=8, seed=1, init=start)
            before = sum("a step changes the energy" in str(each.message) for each in caught)
            print(
                f"{name}, freezes={freezes}: acceptance of 8 chains {run.acceptance.min():.3f} to "
                f"{run.acceptance.max():.3f} (wanted > 0.01), multiplier up to "
                f"{largest_multiplier(run, 0.75, cells):.0f}, warned before: {bool(before)} (wanted True)"
            )
    start = np.array([[-2.0, 0.0], [2.0, 0.0], [0.0, 2.0], [0.0, -2.0]])
    run = sample(PLANE, samplers.mala(1e12), n_steps=2_000, burn_in=100, n_chains=4, seed=0, init=start)
    said = [sentence for sentence in run.warnings if sentence.startswith("R-hat")]
    print(f"R-hat of chains that never move: {said} (wanted in words, no number of 300 digits)")


if __name__ == "__main__":
    main()
