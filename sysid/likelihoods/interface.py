"""The interface of likelihoods: what they prepare from data and a model for ``identify``."""

from typing import Any, NamedTuple, Protocol

from toolkit._compiler import reduced

from ..arrays import Array, Integers
from .observations import NOTHING_ELSE, Observation


class Experiment(NamedTuple):
    """One of several experiments: where its parameters and its initial state are in θ.

    parameter_rows: (n_parameters,) rows of θ, −1 where known. known: (n_parameters,) the values there, else 0.
    start_rows: (dim,) rows of θ, −1 where the initial state is fixed. initial: (dim,) the state then, else 0.
    """

    parameter_rows: Integers
    known: Array
    start_rows: Integers
    initial: Array


class Prepared(NamedTuple):
    """The energy −log likelihood in nats as a kernel, with its numbers and properties.

    names: of the parameters θ (q,). kernel: (theta (q, lane), energy (lane), slope (q, lane), numbers, work (work_rows,
    lane)) writes energy and dU/dθ of every lane. numbers: its data. positive: which θ must be > 0. start: a θ (q,) of
    finite energy. stochastic: it draws minibatches by the engine's counters, in the first rows of work.
    quadratic: (mean (q,), precision (q, q), lowest) where the energy is lowest + ½ (θ − mean)ᵀ precision (θ − mean).
    initial: the initial state (dim,) where the likelihood takes it as known. experiments: one for each series, where
    these differ in parameters or initial states, or parameters are known; else none. observation: functions of states
    whose values are data, too.
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
    experiments: tuple[Experiment, ...] = ()
    observation: Observation = NOTHING_ELSE

    def __reduce__(self) -> Any:
        return reduced(self)


class Likelihood(Protocol):
    """What ``identify`` needs of a likelihood."""

    def prepare(self, data: Any, model: Any) -> Prepared:
        """The energy of ``data`` (a Series, or some) under ``model`` (a System, Library or Model)."""
