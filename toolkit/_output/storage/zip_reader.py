"""ZIP archives and arrays of NPZ files, checked member by member before anything is unpacked."""

import contextlib
import math
import os
import re
import stat
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ...errors import LoadError, shown
from .limits import Values, checked_dtype, checked_shape, open_file

METHODS = {zipfile.ZIP_STORED: "stored", zipfile.ZIP_DEFLATED: "deflated"}
END = struct.Struct("<4s4H2LH")  # of the list of members: magic, …, its members here and in all, bytes, offset, comment
LARGER_END = struct.Struct("<4sQ2H2L4Q")  # of ZIP64, in the 76 bytes before
LOCAL = 30  # bytes before a member's name and contents
LONGEST_LIST = 8 << 20  # bytes of the list of members, besides a hundredth of the file
DEFLATED = 1033  # deflate shrinks at most by this factor
LONGEST_ARRAY_HEADER = 10_000  # bytes, as NumPy has it
ARRAY_HEADER = re.compile(
    r"\{'descr': '([^']{1,8})', 'fortran_order': (True|False), 'shape': \(((?:\d{1,19}, ?)*(?:\d{1,19})?)\),? ?\}\s*"
)


@contextlib.contextmanager
def open_archive(path: Path, methods: tuple[int, ...]) -> Iterator[tuple[zipfile.ZipFile, dict[str, zipfile.ZipInfo]]]:
    """The archive at ``path`` and its members by name. Raises LoadError where one is not as our writers write it."""
    with open_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        count = count_members(file, size)
        with zipfile.ZipFile(file) as archive:
            if len(archive.infolist()) != count:
                raise LoadError(f"it says {count} members, and has {len(archive.infolist())}")
            yield archive, checked_members(archive.infolist(), size, methods)


def count_members(file: BinaryIO, size: int) -> int:
    """How many members it says.

    Raises LoadError where their list, which zipfile reads as a whole, is missing, torn or too long.
    """
    file.seek(max(0, size - END.size - 76))
    tail = file.read()
    if len(tail) < END.size or not tail[-END.size :].startswith(b"PK\5\6"):
        raise LoadError("it is torn, or is no ZIP archive: the list of its members is missing at the end")
    *_, count, length, _, _ = END.unpack(tail[-END.size :])
    if len(tail) == END.size + 76 and tail.startswith(b"PK\6\6"):
        *_, count, length, _ = LARGER_END.unpack(tail[: LARGER_END.size])
    if length > LONGEST_LIST + size // 100:
        raise LoadError(f"the list of its members has {length} bytes, too many for a file of {size} bytes")
    file.seek(0)
    return int(count)


def checked_members(members: list[zipfile.ZipInfo], size: int, methods: tuple[int, ...]) -> dict[str, zipfile.ZipInfo]:
    """Members by name. Raises LoadError where one has an odd name, kind, method or size, or two share bytes."""
    end = 0
    for member in sorted(members, key=lambda member: member.header_offset):
        name = member.filename
        if member.orig_filename != name or ":" in name[:2]:
            raise LoadError(f"member {shown(member.orig_filename)} has no plain name")
        if any(part in ("", ".", "..") for part in re.split(r"[/\\]", name)):
            raise LoadError(f"member {shown(name)} is no file inside the archive")
        if stat.S_IFMT(member.external_attr >> 16) not in (0, stat.S_IFREG):
            raise LoadError(f"member {shown(name)} is a link or another special file")
        if member.compress_type not in methods:
            allowed = " or ".join(METHODS[method] for method in methods)
            raise LoadError(f"member {shown(name)} must be {allowed}, got method {member.compress_type}")
        if member.flag_bits & 0x1:
            raise LoadError(f"member {shown(name)} is encrypted")
        most = member.compress_size
        if member.compress_type == zipfile.ZIP_DEFLATED:
            most = DEFLATED * member.compress_size
        if member.file_size > most:
            raise LoadError(
                f"member {shown(name)} says {member.file_size} bytes, of {member.compress_size} in the file"
            )
        if member.header_offset < end:
            raise LoadError(f"member {shown(name)} shares bytes with another")
        end = member.header_offset + LOCAL + len(name.encode()) + member.compress_size
        if end > size:
            raise LoadError(f"member {shown(name)} is torn")
    named = {member.filename: member for member in members}
    if len(named) < len(members):
        raise LoadError("two of its members have the same name")
    return named


def read_array_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Values:
    """One array of an NPZ file, whose header must fit the member's size."""
    with archive.open(member) as file:
        shape, by_column, dtype, start = read_array_header(file, member.filename)
        if math.prod(shape) * dtype.itemsize + start != member.file_size:
            raise LoadError(f"array {shown(member.filename)} is not as long as it says, or holds no numbers")
        values = np.empty(math.prod(shape), dtype)
        rest = values.view(np.uint8).data
        while rest:
            count = file.readinto(rest)  # type: ignore[attr-defined,unused-ignore]
            if not count:
                raise LoadError(f"array {shown(member.filename)} is torn")
            rest = rest[count:]
        if file.read(1):  # which also compares the checksum of the archive
            raise LoadError(f"array {shown(member.filename)} is longer than it says")
    return values.reshape(shape, order="F" if by_column else "C")


def read_array_header(file: Any, name: str) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    """Shape, whether in Fortran's order, kind, and the length of the header itself.

    NumPy evaluates the header as Python's literals; here it is matched, because nothing of a file is to be evaluated.
    """
    magic = file.read(8)
    width = {b"\x93NUMPY\x01\x00": 2, b"\x93NUMPY\x02\x00": 4}.get(magic)
    if width is None:
        raise LoadError(f"array {shown(name)} is of an unknown format or version, {shown(magic)}")
    length = int.from_bytes(file.read(width), "little")
    if length > LONGEST_ARRAY_HEADER:
        raise LoadError(f"the header of array {shown(name)} has {length} bytes")
    text = file.read(length).decode("latin1")
    found = ARRAY_HEADER.fullmatch(text)
    if found is None:
        raise LoadError(f"the header of array {shown(name)} is malformed: {shown(text)}")
    kind, by_column, sizes = found.groups()
    shape = checked_shape(name, [int(size) for size in sizes.split(",") if size.strip()])
    return shape, by_column == "True", checked_dtype(name, kind), 8 + width + length
