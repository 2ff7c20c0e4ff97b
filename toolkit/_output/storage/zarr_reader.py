"""Arrays of a Zarr folder of version 2, read without Zarr, of which codecs can run code or take any memory.

Only what our writer writes is read: numbers in C order, plain or by Blosc or Zstandard, every chunk of them written.
"""

import math
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...errors import LoadError, optional, shown
from .limits import (
    StoredArray,
    Values,
    check_name,
    checked_count,
    checked_dtype,
    checked_shape,
    files_below,
    open_file,
    parse_json,
    put_together,
)

LONGEST_METADATA = 1 << 16  # bytes
NUMBERS_OF_CODECS = {  # which a codec may have beside its name; none of them matters for decoding
    "blosc": {"clevel", "shuffle", "blocksize", "typesize"},
    "zstd": {"level", "checksum"},
}
BLOSC_NAMES = ("blosclz", "lz4", "lz4hc", "zlib", "zstd")
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"


class Files(NamedTuple):
    """Sizes of a store's files by name, and a function that reads one."""

    sizes: dict[str, int]
    read_whole: Callable[[str], bytes]

    def read(self, name: str, at_most: int) -> bytes:
        """The bytes of a file. Raises LoadError where it is missing or longer than ``at_most``."""
        if name not in self.sizes:
            raise LoadError(f"{shown(name)} is missing in it")
        if self.sizes[name] > at_most:
            raise LoadError(f"{shown(name)} in it has {self.sizes[name]} bytes, and may have {at_most}")
        return self.read_whole(name)


def files_of_folder(folder: Path) -> Files:
    """The files of a folder, which has no links."""

    def read_whole(name: str) -> bytes:
        with open_file(folder / name) as file:
            return file.read(sizes[name])

    sizes = files_below(folder)
    return Files(sizes, read_whole)


def files_of_archive(archive: zipfile.ZipFile, members: dict[str, zipfile.ZipInfo]) -> Files:
    """The files of an archive whose members are checked."""
    return Files({name: member.file_size for name, member in members.items()}, archive.read)


def check_group(files: Files, group: str) -> None:
    """Raise LoadError where ``group`` ("" for the root) is none of version 2."""
    prefix = f"{group}/" if group else ""
    if f"{prefix}zarr.json" in files.sizes:
        raise LoadError(f"{shown(prefix + 'zarr.json')} in it is of Zarr's version 3, and runs are saved in version 2")
    info = parse_json(f"{prefix}.zgroup", files.read(f"{prefix}.zgroup", LONGEST_METADATA))
    if info != {"zarr_format": 2} or type(info["zarr_format"]) is not int:
        raise LoadError(f"{shown(prefix + '.zgroup')} must say version 2, got {shown(info)}")


def open_array(files: Files, group: str, variable: str) -> StoredArray:
    """The array ``variable`` of ``group``. Raises LoadError where its metadata are not as our writer writes them."""
    path = f"{check_name(group)}/{check_name(variable)}"
    check_group(files, group)
    if f"{path}/zarr.json" in files.sizes:
        raise LoadError(f"{shown(path)} in it is of Zarr's version 3, and runs are saved in version 2")
    info = parse_json(f"{path}/.zarray", files.read(f"{path}/.zarray", LONGEST_METADATA))
    known = {"shape", "chunks", "dtype", "fill_value", "order", "filters", "compressor", "zarr_format"}
    if not known <= info.keys() <= known | {"dimension_separator"}:
        raise LoadError(f"the metadata of {shown(path)} have other entries than those of Zarr's version 2")
    fixed = {"zarr_format": (2,), "order": ("C",), "filters": (None, []), "dimension_separator": (".",)}
    for name, allowed in fixed.items():
        value = info.get(name, ".")
        if not any(type(value) is type(item) and value == item for item in allowed):
            raise LoadError(f"{name} of {shown(path)} must be {allowed[0]!r}, got {shown(value)}")
    shape, chunks = checked_shape(path, info["shape"]), checked_shape(path, info["chunks"])
    dtype = checked_dtype(path, info["dtype"])
    count = checked_count(path, shape, chunks)
    decode = decoder(path, info["compressor"])
    if count > len(files.sizes):
        raise LoadError(f"{shown(path)} must have {count} chunks, and not all are there")
    return StoredArray(shape, dtype, lambda: read_chunks(files, path, shape, chunks, dtype, decode))


def read_chunks(
    files: Files, path: str, shape: tuple[int, ...], chunks: tuple[int, ...], dtype: np.dtype[Any], decode: Any
) -> Values:
    """The array put together from its chunks."""
    length = math.prod(chunks) * dtype.itemsize

    def read_chunk(index: tuple[int, ...]) -> Values:
        name = f"{path}/{'.'.join(map(str, index)) or '0'}"
        data = decode(files.read(name, 2 * length + LONGEST_METADATA), length)
        if len(data) != length:
            raise LoadError(f"chunk {shown(name)} has {len(data)} bytes, and must have {length}")
        return np.frombuffer(data, dtype)

    return put_together(shape, chunks, dtype, read_chunk)


def decoder(path: str, codec: Any) -> Callable[[bytes, int], Any]:
    """The function that decodes a chunk of a given length. Raises LoadError where the codec is none that we write."""
    if codec is None:
        return lambda data, _: data
    name = codec.get("id") if isinstance(codec, dict) else codec
    if not isinstance(name, str) or name not in NUMBERS_OF_CODECS:
        raise LoadError(f"{shown(path)} must be plain or compressed by Blosc or Zstandard, got {shown(name)}")
    numbers = NUMBERS_OF_CODECS[name]
    for key, value in codec.items():
        if key == "cname" and name == "blosc" and value in BLOSC_NAMES:
            continue
        if key != "id" and (key not in numbers or not isinstance(value, int) or not -(2**31) <= value < 2**31):
            raise LoadError(f"the codec of {shown(path)} must be as it is written, got {key!r:.80}: {shown(value)}")
    return decode_blosc if name == "blosc" else decode_zstd


def decode_blosc(data: bytes, length: int) -> Values:
    """``length`` bytes from a buffer of Blosc, which says how many it has and how many it takes."""
    held, block, whole = (int.from_bytes(data[at : at + 4], "little") for at in (4, 8, 12))
    if len(data) < 16 or held != length or whole != len(data) or not 0 < block <= length:
        raise LoadError(f"a chunk of Blosc says {held} bytes in blocks of {block}, and must have {length}")
    values = np.empty(length, np.uint8)
    optional("numcodecs.blosc", "io").decompress(data, values)
    return values


def decode_zstd(data: bytes, length: int) -> Values:
    """``length`` bytes from one frame of Zstandard that says how many it has."""
    held = zstd_length(data)
    if held != length:
        raise LoadError(f"a chunk of Zstandard says {held} bytes, and must have {length}")
    values = np.empty(length, np.uint8)
    optional("numcodecs.zstd", "io").decompress(data, values)
    return values


def zstd_length(data: bytes) -> int | None:
    """The length that a frame's header says (RFC 8878, 3.1.1.1); None where it says none."""
    if len(data) < 6 or data[:4] != ZSTD_MAGIC:
        return None
    descriptor = data[4]
    single, width = descriptor >> 5 & 1, (0, 2, 4, 8)[descriptor >> 6]
    width = 1 if single and not width else width
    start = 5 + (1 - single) + (0, 1, 2, 4)[descriptor & 3]
    if not width or len(data) < start + width:
        return None
    return int.from_bytes(data[start : start + width], "little") + (256 if width == 2 else 0)
