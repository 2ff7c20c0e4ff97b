"""Diagnostics: how good draws are, by themselves and against a truth. What each says and when it misleads: docs."""

from typing import TYPE_CHECKING

from ..accumulators.grid_kl import (
    GridKL,
    cell_counts,
    cell_ess,
    equivalent_draws,
    expected_kl,
    grid_kl,
    kl_divergence,
    kl_path,
)
from ..errors import on_demand
from ..weighting import weighted_ess
from .convergence import autocorrelation, ess, ess_by_cutoff, r_hat
from .superchains import nested_r_hat

if TYPE_CHECKING:
    from .distances import MMD, Wasserstein, mmd, wasserstein
    from .energies import EnergyHistogram, ThetaError, energy_histogram, energy_probabilities, theta_error
    from .exchange import (
        ExchangeSummary,
        LogNormaliserRatio,
        barrier,
        exchange_summary,
        expected_round_trips,
        log_normaliser_ratio,
        round_trips,
        swap_rates,
    )
    from .modes import ModeCoverage, ModeWeights, mode_coverage, mode_weights_error
    from .stein_discrepancy import SteinDiscrepancy, ksd
else:  # what no run needs
    MODULES = {
        "distances": ("MMD", "Wasserstein", "mmd", "wasserstein"),
        "energies": ("EnergyHistogram", "ThetaError", "energy_histogram", "energy_probabilities", "theta_error"),
        "exchange": (
            "ExchangeSummary", "LogNormaliserRatio", "barrier", "exchange_summary", "expected_round_trips",
            "log_normaliser_ratio", "round_trips", "swap_rates",
        ),
        "modes": ("ModeCoverage", "ModeWeights", "mode_coverage", "mode_weights_error"),
        "stein_discrepancy": ("SteinDiscrepancy", "ksd"),
    }  # fmt: skip
    __getattr__ = on_demand(__name__, {name: module for module, names in MODULES.items() for name in names})

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
    "nested_r_hat",
    "r_hat",
    "round_trips",
    "swap_rates",
    "theta_error",
    "wasserstein",
    "weighted_ess",
]
