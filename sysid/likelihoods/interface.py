"""The interface of likelihoods: what they prepare from data and a model for ``identify``."""

from typing import Any, NamedTuple, Protocol

from toolkit._compiler import reduced

from ..arrays import Array


class Prepared(NamedTuple):
    """The energy −log likelihood in nats as a kernel, with its numbers and properties.

    names: of the parameters θ (q,). kernel: (theta (q, lane), energy (lane), slope (q, lane), numbers, work (work_rows,
    lane)) writes energy and dU/dθ of every lane. numbers: its data. positive: which θ must be > 0. start: a θ (q,) of
    finite energy. stochastic: it draws minibatches by the engine's counters, in the first rows of work.
    quadratic: (mean (q,), precision (q, q), lowest) where the energy is lowest + ½ (θ − mean)ᵀ precision (θ − mean).
    initial: the initial state (dim,) where the likelihood takes it as known.
    """

    names: tuple[str, ...]
    kernel: Any
    numbers: Array
    work_rows: int
    positive: tuple[bool, ...]
    start: Array
    stochastic: bool = False
    quadratic: tuple[Array, Array, float] | None = None
    initial: Array | None = None

    def __reduce__(self) -> Any:
        return reduced(self)


class Likelihood(Protocol):
    """What ``identify`` needs of a likelihood."""

    def prepare(self, data: Any, model: Any) -> Prepared:
        """The energy of ``data`` (a Series, or some) under ``model`` (a System, Library or Model)."""
