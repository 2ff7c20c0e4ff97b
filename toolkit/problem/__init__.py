"""Problems: a target with its domain and truth, from block functions, point functions or Python callables."""

from .call_text import recorded, shows_call
from .definition import (
    Domain,
    EnergyAccuracy,
    Modes,
    Named,
    Problem,
    Spread,
    Target,
    Truth,
    check_finite_points,
    check_points,
    is_inside,
)
from .math_substitution import raises, rebind
from .minibatch_draws import draw_pair
from .point_function import array_like, lane_access, reason, with_item

__all__ = [
    "Domain",
    "EnergyAccuracy",
    "Modes",
    "Named",
    "Problem",
    "Spread",
    "Target",
    "Truth",
    "array_like",
    "check_finite_points",
    "check_points",
    "draw_pair",
    "is_inside",
    "lane_access",
    "raises",
    "reason",
    "rebind",
    "recorded",
    "shows_call",
    "with_item",
]
