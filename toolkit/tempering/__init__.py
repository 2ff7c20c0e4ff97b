"""Tempering: how replicas help each other, or themselves, over barriers."""

from collections.abc import Callable

from .._compiler.block_rows import CONTINUOUS, CONTOUR, EXCHANGE, NO_TEMPERING, STEIN
from .continuous import ContinuousTempering, continuous_tempering, temper_by_coupling
from .contour_tempering import Contour, Partition, contour, step_decay, temper_by_contour
from .exchange import ReplicaExchange, adapted_correction, estimated_correction, replica_exchange, temper_by_exchange
from .interface import no_tempering
from .stein_particles import Stein, stein, temper_by_stein

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


TEMPERS: dict[int, Callable[..., None]] = {
    NO_TEMPERING: no_tempering,
    EXCHANGE: temper_by_exchange,
    CONTOUR: temper_by_contour,
    CONTINUOUS: temper_by_coupling,
    STEIN: temper_by_stein,
}
