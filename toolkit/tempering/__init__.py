"""Tempering: how replicas help each other, or themselves, over barriers; ``interface.Tempering`` says what one has."""

from .continuous import ContinuousTempering, continuous_tempering
from .contour_tempering import Contour, Partition, contour, step_decay
from .exchange import ReplicaExchange, adapted_correction, estimated_correction, replica_exchange
from .interface import Tempering
from .stein_particles import Stein, stein

__all__ = [
    "ContinuousTempering",
    "Contour",
    "Partition",
    "ReplicaExchange",
    "Stein",
    "Tempering",
    "adapted_correction",
    "continuous_tempering",
    "contour",
    "estimated_correction",
    "replica_exchange",
    "stein",
    "step_decay",
]
