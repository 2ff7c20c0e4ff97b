"""Diagnostics: how good draws are, by themselves and against a truth. What each says and when it misleads: docs."""

from .autocorrelations import autocorrelation, ess, ess_by_cutoff
from .convergence import r_hat
from .distances import MMD, Wasserstein, mmd, wasserstein
from .energy_diagnostics import EnergyHistogram, ThetaError, energy_histogram, energy_probabilities, theta_error
from .exchange_diagnostics import LogNormaliserRatio, barrier, expected_round_trips, log_normaliser_ratio
from .grid_kl import GridKL, cell_ess, grid_kl
from .kl import cell_counts, equivalent_draws, expected_kl, kl_divergence, kl_path
from .mode_diagnostics import ModeCoverage, ModeWeights, mode_coverage, mode_weights_error
from .run_exchange import ExchangeSummary, exchange_summary, round_trips, swap_rates
from .stein_discrepancy import SteinDiscrepancy, ksd
from .weighting import weighted_ess

__all__ = [
    "MMD",
    "EnergyHistogram",
    "ExchangeSummary",
    "GridKL",
    "LogNormaliserRatio",
    "ModeCoverage",
    "ModeWeights",
    "SteinDiscrepancy",
    "ThetaError",
    "Wasserstein",
    "autocorrelation",
    "barrier",
    "cell_counts",
    "cell_ess",
    "energy_histogram",
    "energy_probabilities",
    "equivalent_draws",
    "ess",
    "ess_by_cutoff",
    "exchange_summary",
    "expected_kl",
    "expected_round_trips",
    "grid_kl",
    "kl_divergence",
    "kl_path",
    "ksd",
    "log_normaliser_ratio",
    "mmd",
    "mode_coverage",
    "mode_weights_error",
    "r_hat",
    "round_trips",
    "swap_rates",
    "theta_error",
    "wasserstein",
    "weighted_ess",
]
