"""What a tempering is made of, and what all temperings share."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from .._compiler.block_rows import OTHER
from .._compiler.decorators import inlined


class Tempering:
    """Base of the frozen dataclasses that hold a tempering's numbers; says what the engine and the reports ask of it.

    kind: which phases of the loop know the tempering (``block_rows``); OTHER where none but its own step does.
    reads_energies: energy noise is added to the energies it reads. is_weighted: draws have importance weights.
    field_types: the dataclasses, besides numbers, that its fields may hold; files name them.
    swaps: replicas exchange temperatures, so that the first alone has the target's draws, and pairs are counted.
    couples: a tempering variable ξ beside each replica, which traces record. weighs_by_chain: each chain has a table of
    energies, which weighs its draws up to a factor of its own. keeps_law: moves that end in a Metropolis test have the
    target's law at any step size. comes_to_rest: replicas are no random draws, and never leave each other where they
    start at one place. scratch_rows: rows of a block's ``masses``, which are float64 in a float32 engine too. raced:
    numbers that a tuning may change: field → its sign, and the factor by which it is made smaller and larger.
    """

    kind: ClassVar[int] = OTHER
    reads_energies: ClassVar[bool] = False
    is_weighted: ClassVar[bool] = False
    field_types: ClassVar[tuple[type, ...]] = ()
    swaps: ClassVar[bool] = False
    couples: ClassVar[bool] = False
    weighs_by_chain: ClassVar[bool] = False
    keeps_law: ClassVar[bool] = True
    comes_to_rest: ClassVar[bool] = False
    scratch_rows: ClassVar[int] = 0
    raced: ClassVar[Mapping[str, tuple[str, float]]] = {}

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

    @property
    def energy_partition(self) -> Any:
        """The bins of energy of which each chain has a table; None where there are none, or not yet."""
        return None

    @property
    def energy_bins(self) -> int:
        """Their number."""
        return 0 if self.energy_partition is None else int(self.energy_partition.n_bins)

    def pairs(self, n_replicas: int) -> list[tuple[int, int]]:
        """Pairs of replicas that may swap, in the order of ``run.swap_rates``."""
        return []

    @property
    def first_estimate(self) -> int:
        """Steps before which a run must not end, as something is estimated there first."""
        return 0

    def first_correction(self, energy_noise: float) -> float:
        """The correction of swaps before the first step."""
        return 0.0

    def with_half_step(self) -> Self:
        """The same tempering where all step sizes are half as long."""
        return self

    def check_minibatches(self, problem: str) -> None:
        """Raise ValueError where it needs more of an energy than minibatches tell; problem: its name."""

    def check_length(self, n_steps: int, burn_in: int) -> None:
        """Raise ValueError where a run is too short for what it is to adapt."""

    def check_noise(self, moves: str, energy_noise: float, *, has_test: bool) -> None:
        """Raise ValueError where moves, by name, with or without a Metropolis test, need an energy without noise."""


UNTEMPERED = Tempering()  # stands for None where something is asked of a tempering


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
