"""Faults in the accumulators."""

from .runner import Mutant

MUTANTS = [
    Mutant(
        "diagnostics: KL: bias of all draws, whatever they are worth",
        "toolkit/accumulators/grid_kl.py",
        "return GridKL(kl, number, expected, scaled - expected)",
        "return GridKL(kl, number, expected, kl - expected_kl(masses, n, pseudo_count=pseudo_count))",
        "tests/toolkit/accumulators/test_grid_kl.py",
    ),
    Mutant(
        "moments: weights forgotten in the plane",
        "toolkit/accumulators/running_moments.py",
        "share = w / total",
        "share = 1.0 / n",
        "tests/toolkit/accumulators/test_running_moments.py -k hard_data",
    ),
    Mutant(
        "moments: spread between chains forgotten in what is pooled",
        "toolkit/accumulators/running_moments.py",
        "covariance = covariances.mean(axis=0) + deviation.T @ deviation / chains",
        "covariance = covariances.mean(axis=0)",
        "tests/toolkit/accumulators/test_running_moments.py -k pooled",
    ),
    Mutant(
        "histogram: last cell open",
        "toolkit/accumulators/cells.py",
        "value <= edges[last]",
        "value < edges[last]",
        "tests/toolkit/accumulators/test_cells.py -k numpys",
    ),
    Mutant(
        "histogram: cell by arithmetic alone",
        "toolkit/accumulators/cells.py",
        "if edges[guess] <= value and value < edges[above]:",
        "if place < last:",
        "tests/toolkit/accumulators/test_cells.py -k numpys",
    ),
    Mutant(
        "histogram: a result that goes on changing",
        "toolkit/accumulators/cells.py",
        'state["counts"].reshape(-1, *self.shape).copy()',
        'state["counts"].reshape(-1, *self.shape)',
        "tests/toolkit/accumulators/test_accumulators.py -k stays_as_it_was",
    ),
    Mutant(
        "kl: one step late",
        "toolkit/accumulators/grid_kl.py",
        "np.searchsorted(steps, self.at[i])",
        "np.searchsorted(steps, self.at[i] + 1)",
        "tests/toolkit/accumulators/test_accumulators.py -k kl_is_that",
    ),
    Mutant(
        "best_point: the last of equal ones",
        "toolkit/accumulators/energies.py",
        "energies[c, t] < energy[c]",
        "energies[c, t] <= energy[c]",
        "tests/toolkit/accumulators/test_accumulators.py -k best_point",
    ),
    Mutant(
        "batch_means: half a batch lost in joining",
        "toolkit/accumulators/running_moments.py",
        "loads[i] = loads[2 * i] + loads[2 * i + 1]",
        "loads[i] = loads[2 * i]",
        "tests/toolkit/accumulators/test_running_moments.py",
    ),
    Mutant(
        "moments: a diverged chain is pooled",
        "toolkit/accumulators/running_moments.py",
        'whole = ~empty & (state["draws"] == state["draws"].max(initial=0))',
        "whole = ~empty",
        "tests/toolkit/engine/test_driver.py -k pooled",
    ),
]
