"""What a checkpoint holds of a run: how far it is, its state's arrays, and its draws between two saves."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .journal import Mark
from .records import DamagedError, Record, Stored, little, runs, store
from .snapshots import stored_names, views

if TYPE_CHECKING:
    from .driver import Driver
    from .state import Outputs

Array = NDArray[Any]


class Position(NamedTuple):
    """How far a saved run is, of how many steps, and the journal that goes with it."""

    steps: int
    draws: int
    traced: int
    elapsed: float
    n_steps: int
    journal: Mark

    def as_info(self) -> dict[str, Any]:
        """As JSON."""
        return {**self._asdict(), "journal": [*self.journal[:2], self.journal.digest.hex()]}

    @classmethod
    def of_info(cls, info: dict[str, Any]) -> "Position":
        """From JSON. Raises DamagedError where it is none."""
        try:
            length, records, digest = info["journal"]
            mark = Mark(int(length), int(records), bytes.fromhex(digest))
            steps, draws, traced, n_steps = (int(info[name]) for name in ("steps", "draws", "traced", "n_steps"))
            if not 0 < steps <= n_steps:
                raise ValueError(f"{steps} of {n_steps} steps")
            return cls(steps, draws, traced, float(info["elapsed"]), n_steps, mark)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise DamagedError(f"cannot be read: {error!r}") from None


class Kept(NamedTuple):
    """What of a run goes into its journal."""

    draws: bool
    trace: bool

    def of(self, position: Position) -> tuple[int, int]:
        """Draws and moments of the trace that the journal holds at ``position``."""
        return position.draws if self.draws else 0, position.traced if self.trace else 0


def state_arrays(driver: "Driver[Any]", *, copies: bool) -> dict[str, Stored]:
    """The state's arrays, read from the blocks as they are written, or copied now."""
    n_chains, n_replicas = len(driver.job.init), driver.job.sampler.n_replicas
    arrays = {}
    for name in stored_names(driver.blocks, n_replicas):
        first = next(views(driver.blocks, name, n_replicas))
        pieces = views(driver.blocks, name, n_replicas)
        shape = (n_chains, *first.shape[1:])
        arrays[name] = Stored(first.dtype, shape, [np.concatenate(list(pieces))] if copies else pieces)
    for name, array in accumulated_arrays(driver).items():
        arrays[name] = store(array.copy() if copies else array)
    return arrays


def accumulated_arrays(driver: "Driver[Any]") -> dict[str, Array]:
    """The accumulators' arrays by names that no two of them share."""
    states = driver.accumulated.items()
    return {f"accumulators[{name!r}][{key!r}]": array for name, state in states for key, array in state.items()}


def segment(outputs: "Outputs", draws: tuple[int, int], traced: tuple[int, int]) -> dict[str, Array]:
    """The outputs' views between two draws, and between two moments of the trace."""
    drawn, times = slice(*draws), slice(*traced)
    parts = {name: getattr(outputs, name)[:, :, drawn] for name in ("draws", "energies", "weights", "statistics")}
    parts |= {"trace": outputs.trace[:, :, times], "theta": outputs.theta[:, times]}
    return {name: part for name, part in parts.items() if part.size}


def rows_of(part: Array) -> Iterator[Array]:
    """Chains of ``part``, some at a time."""
    return runs(part, part.nbytes // len(part))


def check_fit(record: Record, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Raise DamagedError where a record has no array ``name`` of this shape and kind."""
    placed = record.arrays.get(name)
    if placed is None or placed.shape != shape or placed.dtype != little(dtype):
        raise DamagedError(f"cannot be read: it has no {name} of shape {shape} and kind {dtype}")
