"""Diagnostics: how good draws are, by themselves and against a truth. What each says and when it misleads: docs."""

from .autocorrelations import autocorrelation, ess, ess_by_cutoff
from .convergence import r_hat
from .exchange_diagnostics import LogNormaliserRatio, barrier, expected_round_trips, log_normaliser_ratio
from .kl import cell_counts, equivalent_draws, expected_kl, kl_divergence, kl_path
from .weighting import weighted_ess

__all__ = [
    "LogNormaliserRatio",
    "autocorrelation",
    "barrier",
    "cell_counts",
    "equivalent_draws",
    "ess",
    "ess_by_cutoff",
    "expected_kl",
    "expected_round_trips",
    "kl_divergence",
    "kl_path",
    "log_normaliser_ratio",
    "r_hat",
    "weighted_ess",
]
