"""Hard targets of the literature: curved, heavy-tailed, badly scaled and with several wells; each with its truth.

``coin_flip``, ``dual_moon``, ``egg_crate`` and ``gaussian_shells`` are problems, constrained to a box; the others are
targets.
"""

from .boxed import coin_flip, dual_moon, egg_crate, gaussian_shells
from .curved import banana, funnel, pinched, ring
from .gaussians import badly_scaled_gaussian, correlated_gaussian
from .student import student_mixture
from .wells import double_well, egg_box, himmelblau, muller_brown

__all__ = [
    "badly_scaled_gaussian",
    "banana",
    "coin_flip",
    "correlated_gaussian",
    "double_well",
    "dual_moon",
    "egg_box",
    "egg_crate",
    "funnel",
    "gaussian_shells",
    "himmelblau",
    "muller_brown",
    "pinched",
    "ring",
    "student_mixture",
]
