"""The interface of likelihoods: what they prepare from data and a model for ``identify``."""

import functools
from typing import Any, NamedTuple, Protocol

from numba import types

from toolkit._compiler import (
    FLOATS,
    MATRIX,
    SharedCode,
    call_part,
    has_linked_form,
    pack_arguments,
    pointer_to_part,
    reduced,
    set_linked_form,
)

from ..arrays import Array, Integers
from ..data.residuals import ResidualCheck
from .observations import NOTHING_ELSE, Observation

# Of a likelihood's kernel: theta (q, lane), energy (lane), slope (q, lane), numbers (any,), work (rows, lane).
KERNEL = types.void(MATRIX, FLOATS, MATRIX, FLOATS, MATRIX)
WITH_KERNEL = types.void(*KERNEL.args, types.FunctionType(KERNEL))


def link_with_kernel(function: Any, shared: SharedCode, likelihood: Any) -> None:
    """Let ``function`` have a linked form, where its ``likelihood`` has one: of the same five arrays.

    It calls ``shared``, of signature ``WITH_KERNEL``. A user's kernel has none, and may raise.
    """
    plain = getattr(likelihood, "py_func", None)
    if plain is not None and has_linked_form(plain):
        set_linked_form(function, functools.partial(with_kernel, shared, plain))


def with_kernel(shared: SharedCode, likelihood: Any) -> Any:
    """What ``link_with_kernel`` makes."""
    shared.provide()
    pointer, likelihood_pointer = shared.pointer, pointer_to_part(likelihood, KERNEL)

    def call(position, energy, gradient, numbers, work):
        part = pointer()
        call_part(part, pack_arguments(part, (position, energy, gradient, numbers, work, likelihood_pointer())))

    return call


class Experiment(NamedTuple):
    """One of several experiments: where its parameters and its initial state are in θ.

    parameter_rows: (n_parameters,) rows of θ, −1 where known. known: (n_parameters,) the values there, else 0.
    start_rows: (dim,) rows of θ, −1 where the initial state is fixed. initial: (dim,) the state then, else 0.
    """

    parameter_rows: Integers
    known: Array
    start_rows: Integers
    initial: Array


class Measured(NamedTuple):
    """One series' measured values, those missing left out: their times (n,), and what was measured (n,), as names."""

    times: Array
    quantities: tuple[str, ...]


class ValueByValue(Protocol):
    """A likelihood whose measured values are independent given the parameters."""

    def log_densities(self, theta: Array) -> Array:
        """Log densities (n, values), with all constants, at parameters (n, q); -inf where a solution has none."""

    def measured(self) -> tuple[Measured, ...]:
        """What the values are, series by series."""


class NoValues(NamedTuple):
    """Stands for a ``ValueByValue`` where there is none. reason: why, in words that follow those of ``error``."""

    reason: str

    def error(self) -> ValueError:
        """What to raise."""
        return ValueError(
            f"likelihood must be one whose values are independent given the parameters, but {self.reason}"
        )

    def log_densities(self, theta: Array) -> Array:
        """Raise ValueError."""
        raise self.error()

    def measured(self) -> tuple[Measured, ...]:
        """Raise ValueError."""
        raise self.error()


class Prepared(NamedTuple):
    """The energy −log likelihood in nats as a kernel, with its numbers and properties.

    names: of the parameters θ (q,). kernel: (theta (q, lane), energy (lane), slope (q, lane), numbers, work (work_rows,
    lane)) writes energy and dU/dθ of every lane. numbers: its data. positive: which θ must be > 0. start: a θ (q,) of
    finite energy. stochastic: it draws minibatches by the engine's counters, in the first rows of work.
    quadratic: (mean (q,), precision (q, q), lowest) where the energy is lowest + ½ (θ − mean)ᵀ precision (θ − mean).
    initial: the initial state (dim,) where the likelihood takes it as known. experiments: one for each series, where
    these differ in parameters or initial states, or parameters are known; else none. observation: functions of states
    whose values are data, too. values: the log density value by value, or why there is none. first_states: of a
    likelihood with paths, the first state of each series as a ``path_fit.StateOfPath``. residual_check: of a
    likelihood with paths, the test of their residuals.
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
    values: ValueByValue = NoValues("this one has none")
    first_states: tuple[Any, ...] = ()
    residual_check: ResidualCheck | None = None

    def __reduce__(self) -> Any:
        return reduced(self)


class Likelihood(Protocol):
    """What ``identify`` needs of a likelihood."""

    def prepare(self, data: Any, model: Any) -> Prepared:
        """The energy of ``data`` (a Series, or some) under ``model`` (a System, Library or Model)."""
