"""What a tempering is made of, and what all temperings share."""

from collections.abc import Callable
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from .._compiler.block_rows import OTHER
from .._compiler.decorators import inlined


class Tempering:
    """Base of the frozen dataclasses that hold a tempering's numbers; says what the engine and the reports ask of it.

    kind: which phases of the loop know the tempering (``block_rows``); OTHER where none but its own step does.
    reads_energies: energy noise is added to the energies it reads. is_weighted: draws have importance weights.
    field_types: the dataclasses, besides numbers, that its fields may hold; files name them.
    """

    kind: ClassVar[int] = OTHER
    reads_energies: ClassVar[bool] = False
    is_weighted: ClassVar[bool] = False
    field_types: ClassVar[tuple[type, ...]] = ()

    @property
    def step(self) -> Callable[..., None]:
        """The block function of one step, with the arguments of ``no_tempering``."""
        raise NotImplementedError(f"{type(self).__name__} must have a property `step`")

    def parameters(self, burn_in: int = 0, energy_noise: float = 0.0) -> NDArray[np.float64]:
        """The numbers as ``step`` takes them."""
        return np.zeros(1)

    def words(self, n_replicas: int) -> str:
        """The tempering with its most important numbers, for reports."""
        return type(self).__name__


def no_tempering(state, numbers, parameters, step, samples, changes):
    """No tempering.

    state: ``State`` of a block. numbers: ``Numbers``. parameters: those of the tempering. samples: false where the
    schedule explores, at temperature 0. changes: 2 where step size or temperature may have changed, else less.
    """
    return


@inlined
def scale_gradients(state, factor):
    """Multiply gradient and curvature by ``factor`` (lane)."""
    for d in range(state.gradient.shape[0]):
        for lane in range(factor.size):
            state.gradient[d, lane] *= factor[lane]
    for d in range(state.curvature.shape[0]):
        for lane in range(factor.size):
            state.curvature[d, lane] *= factor[lane]
