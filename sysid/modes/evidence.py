"""The evidence of a model: the integral of likelihood times prior, by Laplace's approximation at the modes."""

import math

import scipy

from ..priors import Prior
from .search import Mode


def check_proper(priors: tuple[Prior, ...], names: tuple[str, ...]) -> None:
    """Raise ValueError naming the parameters without a proper prior, which leave the evidence undefined."""
    flat = [name for name, law in zip(names, priors, strict=True) if law.is_flat]
    if flat:
        more = ", …" if len(flat) > 8 else ""
        raise ValueError(
            f"prior must be proper for every parameter, as the evidence is the mean likelihood under it, but it is "
            f"flat for {', '.join(flat[:8])}{more}: give identify(prior=) for these"
        )


def log_evidence_of(modes: tuple[Mode, ...], priors: tuple[Prior, ...]) -> float:
    """log Σ_modes exp(−U) (2π)^(q/2) |root|, less the constants that the energies U leave out of the priors.

    Source: Kass & Raftery (1995), equation 5, summed over modes.
    """
    q = len(priors)
    total = scipy.special.logsumexp([mode.log_mass for mode in modes]) + 0.5 * q * math.log(2.0 * math.pi)
    return float(total) - sum(law.constant for law in priors)
