"""Arrays of an HDF5 file, found by hard links alone, their chunks decoded here.

HDF5 itself would follow links to other files, fill in chunks that were never written, inflate a chunk to any length,
and load a filter from a plugin; of all this our writer needs nothing.
"""

import functools
import math
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import LoadError, optional, shown
from .limits import StoredArray, Values, check_name, checked_count, checked_dtype, checked_shape, put_together

DEFLATE, SHUFFLE = 1, 2  # HDF5's numbers of filters
ALLOWED = ((), (DEFLATE,), (SHUFFLE, DEFLATE))


def opener(file: Any) -> Callable[[str, str], StoredArray]:
    """The function that opens an array of an open file, by the names of its group and of the variable."""
    h5py = optional("h5py", "io")
    root = h5py.h5g.open(file.id, b"/")

    @functools.cache
    def group_of(name: str) -> Any:
        return open_item(root, name, "group")

    return lambda group, variable: open_array(group_of(check_name(group)), group, variable)


def open_item(parent: Any, name: str, kind: str) -> Any:
    """The group or dataset ``name`` of an open group, by a hard link. Raises LoadError where it is none."""
    h5py, encoded = optional("h5py", "io"), check_name(name).encode()
    links = parent.links
    if not links.exists(encoded):
        raise LoadError(f"{kind} {shown(name)} is missing in it")
    if links.get_info(encoded).type != h5py.h5l.TYPE_HARD:
        raise LoadError(f"{shown(name)} in it is a link, and what a link leads to is not read")
    item = h5py.h5o.open(parent, encoded)
    if not isinstance(item, h5py.h5g.GroupID if kind == "group" else h5py.h5d.DatasetID):
        raise LoadError(f"{shown(name)} in it is no {kind}")
    return item


def open_array(parent: Any, group: str, variable: str) -> StoredArray:
    """The dataset ``variable`` of ``parent``, the open ``group``.

    Raises LoadError where it is not as our writer writes it.
    """
    h5py = optional("h5py", "io")
    path = f"{group}/{variable}"
    dataset = open_item(parent, variable, "dataset")
    kind = dataset.get_type()
    if not isinstance(kind, h5py.h5t.TypeIntegerID | h5py.h5t.TypeFloatID):
        raise LoadError(f"{shown(path)} must hold numbers, got HDF5's class {kind.get_class()}")
    dtype = checked_dtype(path, kind.dtype.str)
    if not kind.equal(h5py.h5t.py_create(dtype)):
        raise LoadError(f"{shown(path)} must hold numbers of NumPy's kinds, got unusual ones")
    space = dataset.get_space()
    if space.get_simple_extent_type() not in (h5py.h5s.SIMPLE, h5py.h5s.SCALAR):
        raise LoadError(f"{shown(path)} has no shape")
    shape = checked_shape(path, tuple(map(int, space.get_simple_extent_dims())))
    n_bytes = math.prod(shape) * dtype.itemsize
    settings = dataset.get_create_plist()
    if settings.get_external_count():
        raise LoadError(f"{shown(path)} keeps its numbers in another file")
    layout = settings.get_layout()
    if layout in (h5py.h5d.CONTIGUOUS, h5py.h5d.COMPACT):
        if settings.get_nfilters():
            raise LoadError(f"{shown(path)} has filters without chunks")
        if n_bytes and dataset.get_storage_size() != n_bytes:
            raise LoadError(f"{shown(path)} says {n_bytes} bytes, and has {dataset.get_storage_size()} in the file")
        return StoredArray(shape, dtype, lambda: read_contiguous(dataset, shape, dtype))
    if layout != h5py.h5d.CHUNKED:
        raise LoadError(f"{shown(path)} is put together from other places")
    filters = tuple(settings.get_filter(i)[0] for i in range(settings.get_nfilters()))
    if filters not in ALLOWED:
        raise LoadError(f"{shown(path)} must be shuffled and deflated alone, got HDF5's filters {shown(filters)}")
    chunks = tuple(map(int, settings.get_chunk()))
    count = checked_count(path, shape, chunks)
    if count and dataset.get_num_chunks() != count:
        raise LoadError(f"{shown(path)} must have {count} chunks, and has {dataset.get_num_chunks()} in the file")
    return StoredArray(shape, dtype, lambda: read_chunks(dataset, path, shape, chunks, filters, dtype))


def read_contiguous(dataset: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Values:
    """A dataset without chunks."""
    h5py = optional("h5py", "io")
    values = np.empty(shape, dtype)
    if values.size:
        dataset.read(h5py.h5s.ALL, h5py.h5s.ALL, values)
    return values


def read_chunks(
    dataset: Any,
    path: str,
    shape: tuple[int, ...],
    chunks: tuple[int, ...],
    filters: tuple[int, ...],
    dtype: np.dtype[Any],
) -> Values:
    """A dataset of chunks, each inflated to no more than its length."""
    length = math.prod(chunks) * dtype.itemsize

    def read_chunk(index: tuple[int, ...]) -> Values:
        first = tuple(i * c for i, c in zip(index, chunks, strict=True))
        stored = dataset.get_chunk_info_by_coord(first).size
        if not 0 < stored <= length + length // 8 + 1024:
            raise LoadError(f"a chunk of {shown(path)} says {stored} bytes in the file, for {length}")
        skipped, data = dataset.read_direct_chunk(first)
        used = tuple(
            number for i, number in enumerate(filters) if not skipped >> i & 1
        )  # what does not shrink is plain
        return decoded(path, bytes(data), used, length, dtype)

    return put_together(shape, chunks, dtype, read_chunk)


def decoded(path: str, data: bytes, filters: tuple[int, ...], length: int, dtype: np.dtype[Any]) -> Values:
    """The numbers of one chunk, as a row."""
    if DEFLATE in filters:
        inflate = zlib.decompressobj()
        data = inflate.decompress(data, length + 1)
        if len(data) == length and not inflate.eof:
            data += inflate.decompress(inflate.unconsumed_tail, 1)  # to its end, where its checksum is compared
        if len(data) == length and not inflate.eof:
            raise LoadError(f"a chunk of {shown(path)} is torn")
    if len(data) != length:
        raise LoadError(f"a chunk of {shown(path)} has {len(data)} bytes, or more, and must have {length}")
    if SHUFFLE in filters and dtype.itemsize > 1:
        rows = np.frombuffer(data, np.uint8).reshape(dtype.itemsize, -1)
        values = np.empty((rows.shape[1], dtype.itemsize), np.uint8)
        for byte, row in enumerate(rows):
            values[:, byte] = row
        return values.reshape(-1).view(dtype)
    return np.frombuffer(data, dtype)
