"""The base classes of accumulators that add draws by a compiled function, on the host and on a device."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._compiler.binding import bound
from .._compiler.decorators import compile_part
from .._compiler.numba_private import Signature

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
State = dict[str, NDArray[Any]]

INPUTS = ("draws", "weights", "energies", "steps", "replicas")  # replicas: draws of one step, which are adjacent


class DrawKernel(NamedTuple):
    """A compiled function of the tuples inputs, constants and state, and of scratch, that adds draws chain by chain.

    The state's arrays have the chain first, and no chain reads another's. Weights are empty where there are none.
    """

    function: Callable[..., None]
    signature: Signature  # for the host
    inputs: tuple[str, ...]  # of INPUTS
    constants: tuple[Any, ...]  # integers and arrays
    state: tuple[str, ...]
    scratch: int = 0  # floats; 0: the function takes none


class KernelAccumulator(ABC):
    """An accumulator that adds draws by a compiled function."""

    @abstractmethod
    def draw_kernel(self, dim: int) -> DrawKernel:
        """The function that adds draws of ``dim`` coordinates."""

    def parts(self, state: State, steps: Integers) -> Iterator[tuple[int, int, bool]]:
        """First and last draw (exclusive) of each segment of ``steps``, and whether ``state`` is read after it.

        The caller must add a segment before it asks for the next.
        """
        yield 0, steps.size, False

    def update(
        self, state: State, draws: Floats, weights: Floats | None, energies: Floats | None, steps: Integers
    ) -> None:
        """Add ``draws``, one after the other; non-finite ones are left out."""
        dim, replicas = draws.shape[2], draws.shape[1] // max(1, steps.size)
        function, signature, names, constants, arrays, scratch = self.draw_kernel(dim)
        extra = (np.empty(scratch),) if scratch else ()
        for first, last, _ in self.parts(state, steps):
            part = slice(first * replicas, last * replicas)
            inputs = {
                "draws": draws[:, part],
                "weights": np.zeros((0, 0)) if weights is None else weights[:, part],
                "energies": None if energies is None else energies[:, part],
                "steps": steps[first:last],
                "replicas": replicas,
            }
            compiled = compile_part(bound(function), signature)
            compiled(
                tuple(inputs[name] for name in names),
                constants,
                tuple(state[name] for name in arrays),
                *extra,
            )


class PoolableAccumulator(KernelAccumulator):
    """An accumulator whose statistics of several chains can be merged, which ``pooled`` needs.

    A node holds the merged statistics of neighbouring chains: arrays by name, whose first axis is the node. Bits must
    not depend on how many nodes a call has: elementwise arithmetic only, and ``sum_by_halves`` for sums within a chain.
    """

    needs_energies: ClassVar[bool]

    @abstractmethod
    def start(self, problem: Any, n_chains: int) -> State:
        """The state before the first draw, chains first."""

    @abstractmethod
    def leaves(self, state: State, first: int) -> State:
        """A node for every chain of ``state``, whose first chain has the number ``first``."""

    @abstractmethod
    def merge(self, left: State, right: State) -> State:
        """The nodes that hold the chains of both: of ``left``, and of ``right``, which come after them."""

    def exact_sum(self, state: State) -> State | None:
        """The node of all chains of ``state`` where it is a sum that has the same bits in any order, else None."""
        return None

    @abstractmethod
    def pooled_result(self, node: State) -> Any:
        """The result of the one node that holds all chains: a NamedTuple of arrays."""


def sum_by_halves(values: Floats) -> Floats:
    """Sums over the second axis. The second half is added to the first until one is left.

    numpy.sum may add in an order that depends on the other axes; this one does not.
    """
    while values.shape[1] > 1:
        half = (values.shape[1] + 1) // 2
        total = values[:, :half].copy()
        total[:, : values.shape[1] - half] += values[:, half:]
        values = total
    return values[:, 0]


def add_nodes(left: State, right: State) -> State:
    """The sums of all arrays."""
    return {name: left[name] + right[name] for name in left}
