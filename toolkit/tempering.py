"""Tempering: how replicas help each other, or themselves, over barriers."""

from .continuous import ContinuousTempering, continuous_tempering
from .contour import Contour, Partition, contour, step_decay
from .exchange import ReplicaExchange, adapted_correction, estimated_correction, replica_exchange
from .stein import Stein, stein

Tempering = ReplicaExchange | Contour | ContinuousTempering | Stein

__all__ = [
    "ContinuousTempering",
    "Contour",
    "Partition",
    "ReplicaExchange",
    "Stein",
    "adapted_correction",
    "continuous_tempering",
    "contour",
    "estimated_correction",
    "replica_exchange",
    "stein",
    "step_decay",
]
