"""All chains' state on a CUDA device: where each field of the host's lies there, and its way there and home."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import device
from .blocks import Block
from .chain_columns import Shape, float_columns, integer_columns
from .chain_kernel import Kinds
from .snapshots import by_chain

Array = NDArray[Any]


class StateOnDevice:
    """Room on the device for the state of the host's ``block``, which holds all chains.

    arrays: as the kernel takes them. is_there: the state is on the device. is_home: and the host's is the same.
    """

    def __init__(self, block: Block, shape: Shape, kinds: Kinds, n_chains: int) -> None:
        self._block, self._shape, self._n_chains = block, shape, n_chains
        self.is_there, self.is_home = False, True
        n, far_scratch = n_chains, shape.scratch > 0 and not shape.scratch_is_local
        self.arrays = (
            device.device_array((total(float_columns(shape)), n), np.float64),
            device.device_array((total(integer_columns(shape)), n), np.int64),
            device.device_array((4 * shape.bins, n if shape.bins else 1), np.float64),
            device.device_array((2 * shape.coupling_bins, shape.replicas, n if shape.coupling_bins else 1), np.float64),
            device.device_array((shape.scratch, shape.replicas, n if far_scratch else 1), kinds.target),
            device.device_array((shape.distances, n if shape.distances else 1), kinds.real),
        )

    def _columns(self) -> Iterator[tuple[int, str, slice]]:
        """Number of the state's array, name and rows of every field of a chain."""
        for number, places in enumerate((float_columns(self._shape), integer_columns(self._shape))):
            for name, column in places.items():
                if column.size:
                    yield number, name, slice(column.first, column.first + column.size)

    def _by_chain(self, name: str) -> Array:
        """A view of a field of the host's state, chains first."""
        return by_chain(self._block.state, name, self._n_chains, self._shape.replicas)

    def _tables(self) -> Iterator[tuple[int, str, slice]]:
        """Number of the state's array, name and rows of every large field."""
        shape = self._shape
        if shape.bins:
            yield 2, "contour.table", slice(0, 2 * shape.bins)
            yield 2, "contour.late", slice(2 * shape.bins, 3 * shape.bins)
            yield 2, "contour.early", slice(3 * shape.bins, 4 * shape.bins)
        if shape.coupling_bins:
            yield 3, "continuous.bias", slice(0, shape.coupling_bins)
            yield 3, "continuous.visits", slice(shape.coupling_bins, 2 * shape.coupling_bins)
        if shape.scratch and not shape.scratch_is_local:
            yield 4, "scratch", slice(0, shape.scratch)

    def send(self) -> None:
        """The host's state to the device."""
        hosts = [np.zeros(array.shape, array.dtype) for array in self.arrays[:5]]
        for number, name, rows in self._columns():
            hosts[number][rows] = self._by_chain(name).reshape(self._n_chains, -1).T
        for number, name, rows in self._tables():
            hosts[number][rows] = np.moveaxis(self._by_chain(name), 0, -1)
        for array, host in zip(self.arrays, hosts, strict=False):
            array.copy_to_device(host)
        self.is_there = True

    def fetch(self) -> None:
        """The device's state to the host."""
        hosts = [array.copy_to_host() for array in self.arrays[:5]]
        for number, name, rows in self._columns():
            values = self._by_chain(name)
            values[...] = hosts[number][rows].T.reshape(values.shape)
        for number, name, rows in self._tables():
            self._by_chain(name)[...] = np.moveaxis(hosts[number][rows], -1, 0)
        self.is_home = True


def state_size(shape: Shape) -> int:
    """Numbers, of 8 bytes each, that a chain's state takes on the device."""
    size = total(float_columns(shape)) + total(integer_columns(shape)) + 4 * shape.bins + shape.distances
    size += 2 * shape.coupling_bins * shape.replicas
    return size + (0 if shape.scratch_is_local else shape.scratch * shape.replicas)


def total(columns: dict[str, Any]) -> int:
    """Numbers in a chain's column."""
    return sum(int(column.size) for column in columns.values())
