"""Hard targets of the literature: curved, heavy-tailed, badly scaled and with several wells; each with its truth."""

from .curved import banana, funnel, pinched, ring
from .gaussians import badly_scaled_gaussian, correlated_gaussian
from .student import student_mixture
from .wells import double_well, egg_box, himmelblau, muller_brown

__all__ = [
    "badly_scaled_gaussian",
    "banana",
    "correlated_gaussian",
    "double_well",
    "egg_box",
    "funnel",
    "himmelblau",
    "muller_brown",
    "pinched",
    "ring",
    "student_mixture",
]
