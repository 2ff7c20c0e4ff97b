"""What a run can raise while it is under way."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


class DivergenceError(ArithmeticError):
    """A replica's position or energy stopped being finite.

    chain, replica, step: where, for the first lane that diverged; state: its last finite position, shape (dim,).
    run: the ``Run`` so far, all chains; draws of a diverged replica from that step on are nan. Where the energy alone
    is not finite, the draw before is the place itself.
    """

    def __init__(
        self, message: str, *, chain: int, replica: int, step: int, state: NDArray[np.float64], run: Any
    ) -> None:
        super().__init__(message)
        self.chain = chain
        self.replica = replica
        self.step = step
        self.state = state
        self.run = run


class CheckpointError(ValueError):
    """A checkpoint is another run's, damaged beyond use, in use or nowhere to be written; the message says which."""


class CheckpointWarning(UserWarning):
    """A checkpoint could not be written, or the last one was damaged and the one before was used."""


class CudaError(RuntimeError):
    """``backend="cuda"`` cannot run here; the message says what to install, or what to use."""


class InterruptedWarning(UserWarning):
    """A run was stopped by the keyboard and holds fewer draws than were asked for."""


class CudaWarning(UserWarning):
    """A run on a device may differ from a CPU's in its last bits; the message says why. Without it, bits are equal."""


class ContourWarning(UserWarning):
    """A contour run's weights should not be trusted yet; the message says why and what to do."""


class LoadError(ValueError):
    """A file does not hold a run as it was saved: it is torn, was edited, or never was one; the message says which."""
