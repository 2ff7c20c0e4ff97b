"""How accumulators take in draws: said once, for threads of the host, which do so, and for those of a device."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numba.core.typing.templates import Signature
from numpy.typing import NDArray

from .._compiler.binding import bound
from .._compiler.decorators import compile_part

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
State = dict[str, NDArray[Any]]

GIVEN = ("draws", "weights", "energies", "steps", "replicas")  # replicas: draws of one step, which follow each other


class Gathering(NamedTuple):
    """A function of (*given, *constants, *arrays of the state[, scratch]) that takes in draws, chain after chain.

    The state's arrays have the chain first, and no chain knows of another. Weights are empty where there are none.
    """

    function: Callable[..., None]
    signature: Signature  # for the host
    given: tuple[str, ...]  # of GIVEN
    constants: tuple[Any, ...]  # integers and arrays
    state: tuple[str, ...]
    scratch: int = 0  # floats; 0: the function takes none


class Gathers(ABC):
    """An accumulator that takes in draws by a ``Gathering``."""

    @abstractmethod
    def gathering(self, dim: int) -> Gathering:
        """How it takes in draws of ``dim`` coordinates."""

    def parts(self, state: State, steps: Integers) -> Iterator[tuple[int, int, bool]]:
        """First and last draw (exclusive, of those of ``steps``) to take in at a time, and whether it then looks.

        It looks at ``state`` when it is asked for the next part, and by then the part must have been taken in.
        """
        yield 0, steps.size, False

    def update(
        self, state: State, draws: Floats, weights: Floats | None, energies: Floats | None, steps: Integers
    ) -> None:
        """Take in ``draws``, one after the other; what is not finite is left out."""
        dim, replicas = draws.shape[2], draws.shape[1] // max(1, steps.size)
        function, signature, names, constants, arrays, scratch = self.gathering(dim)
        away = (np.empty(scratch),) if scratch else ()
        for first, last, _ in self.parts(state, steps):
            part = slice(first * replicas, last * replicas)
            given = {
                "draws": draws[:, part],
                "weights": np.zeros((0, 0)) if weights is None else weights[:, part],
                "energies": None if energies is None else energies[:, part],
                "steps": steps[first:last],
                "replicas": replicas,
            }
            compiled = compile_part(bound(function), signature)
            compiled(*(given[name] for name in names), *constants, *(state[name] for name in arrays), *away)
