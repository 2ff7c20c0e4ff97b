"""Mixtures of Gaussians of any covariances, and the multimodal targets of the papers; each with its truth."""

from .cosines import cosine9, cosine9_block, cosine25, cosine25_block
from .full_covariance import correlated_mixture_block
from .gaussian import five_spots, gaussian_mixture, gaussian_mixture_block, six_petals, three_on_a_line, unequal_pair
from .gaussian_grid import gaussian_grid25, gaussian_grid_block

__all__ = [
    "correlated_mixture_block",
    "cosine9",
    "cosine9_block",
    "cosine25",
    "cosine25_block",
    "five_spots",
    "gaussian_grid25",
    "gaussian_grid_block",
    "gaussian_mixture",
    "gaussian_mixture_block",
    "six_petals",
    "three_on_a_line",
    "unequal_pair",
]
