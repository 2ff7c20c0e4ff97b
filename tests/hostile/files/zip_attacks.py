"""Hostile NPZ files: arrays that are pickles, bombs, and archives that lie."""

import pickle
import stat
import zipfile
import zlib
from pathlib import Path

import numpy as np

from .attack import (
    GIANT,
    Attack,
    Canary,
    Member,
    base,
    npy,
    npy_header,
    npz_members,
    numbers,
    plain,
    raw_zip,
    write_zip,
    zeros_deflated,
)


def with_member(name, data, method=zipfile.ZIP_STORED):
    """The good file with one member's bytes replaced."""

    def build(folder: Path) -> Path:
        made = data(folder) if callable(data) else data
        return write_zip(folder / "run.npz", {**npz_members(folder), name: made}, method)

    return build


def pickled(folder):
    return npy(npy_header("'|O'", "(1,)"), pickle.dumps(np.array([Canary(folder)], dtype=object)))


def raw(make, **end):
    """An archive written byte by byte from the good members."""

    def build(folder: Path) -> Path:
        path = folder / "run.npz"
        members = make([plain(name, data) for name, data in npz_members(folder).items()])
        path.write_bytes(raw_zip(members, **end))
        return path

    return build


def first(**changes):
    """The good members, the first of them changed."""
    return raw(lambda members: [members[0]._replace(**changes), *members[1:]])


def added(*more):
    return raw(lambda members: [*members, *more])


def bomb(shape, length, name="init.npy"):
    """A member of zeros that inflates to ``length`` bytes."""

    def make(members):
        start = npy(npy_header("'<f8'", shape))
        deflated = zlib.compressobj(9, zlib.DEFLATED, -15)
        head = deflated.compress(start) + deflated.flush(zlib.Z_FULL_FLUSH)
        member = Member(name.encode(), head + zeros_deflated(length), len(start) + length, method=8)
        return [m for m in members if m.name != name.encode()] + [member]

    return raw(make)


def long_header(members):
    """A header of 300 MB of blanks, which NumPy reads before it looks at its length."""
    length = 320 << 20
    start = b"\x93NUMPY\2\0" + length.to_bytes(4, "little")
    deflated = zlib.compressobj(9, zlib.DEFLATED, -15)
    head = deflated.compress(start) + deflated.flush(zlib.Z_FULL_FLUSH)
    return [*members, Member(b"more.npy", head + zeros_deflated(length), len(start) + length, method=8)]


def same_bytes(members):
    """Two hundred members that are one."""
    return [*members, *(members[0]._replace(name=b"copy%d.npy" % i, offset=0) for i in range(200))]


def overlapping_bombs(members):
    """Members whose bytes are one and the same bomb of 64 MB."""
    length = 64 << 20
    start = npy(npy_header("'<f8'", f"({length // 8},)"))
    deflated = zlib.compressobj(9, zlib.DEFLATED, -15)
    data = deflated.compress(start) + deflated.flush(zlib.Z_FULL_FLUSH) + zeros_deflated(length)
    one = Member(b"a0.npy", data, len(start) + length, method=8)
    at = sum(30 + len(m.name) + len(m.data) for m in members)
    return [*members, one, *(one._replace(name=b"a%d.npy" % i, offset=at, local_name=b"a0.npy") for i in range(1, 40))]


def bombs_of_bytes(members):
    length = 16 << 20
    start = npy(npy_header("'<f8'", f"({length // 8},)"))
    deflated = zlib.compressobj(9, zlib.DEFLATED, -15)
    data = deflated.compress(start) + deflated.flush(zlib.Z_FULL_FLUSH) + zeros_deflated(length)
    crc = zlib.crc32(start + bytes(length))
    return [*members, *(Member(b"b%d.npy" % i, data, len(start) + length, method=8, crc=crc) for i in range(150))]


def whole(data):
    def build(folder: Path) -> Path:
        (folder / "run.npz").write_bytes(data(folder) if callable(data) else data)
        return folder / "run.npz"

    return build


def cut(share):
    def data(folder):
        content = base(folder, ".npz").read_bytes()
        return content[: int(len(content) * share)]

    return whole(data)


def method(number, compress=lambda data: data):
    def make(members):
        data = compress(members[0].data)
        return [members[0]._replace(data=data, method=number), *members[1:]]

    return raw(make)


def without(name):
    return raw(lambda members: [m for m in members if m.name != name])


HEADERS = {
    "object": npy_header("'|O'", "(1,)"),
    "structured": npy_header("[('a', '<f8')]", "(1,)"),
    "text": npy_header("'<U250000000'", "(3,)"),
    "bytes": npy_header("'|S1000000000'", "(3,)"),
    "void": npy_header("'|V1000000000'", "(3,)"),
    "dates": npy_header("'<M8[s]'", "(1,)"),
    "complex": npy_header("'<c16'", "(1,)"),
    "giant shape": npy_header("'<f8'", f"({2**60},)"),
    "product overflows": npy_header("'<f8'", f"({2**33}, {2**33})"),
    "3 GiB": npy_header("'<f8'", f"({GIANT // 8},)"),
    "zero times giant": npy_header("'<f8'", f"(0, {2**70})"),
    "negative shape": npy_header("'<f8'", "(-1,)"),
    "4000 digits": npy_header("'<f8'", f"({'9' * 4000},)"),
    "5000 digits": npy_header("'<f8'", f"({'9' * 5000},)"),
    "true": npy_header("'<f8'", "(True,)"),
    "float": npy_header("'<f8'", "(1.0,)"),
    "90 dimensions": npy_header("'<f8'", "(" + "1, " * 90 + ")"),
    "a call": npy_header("'<f8'", "__import__('os').getpid()"),
    "deep tuples": npy_header("'<f8'", "(" * 4000 + ")" * 4000),
    "deep unary": npy_header("'<f8'", "-" * 9000 + "1"),
    "deep sum": npy_header("'<f8'", "1" + "+1j" * 3000),
    "one key": "{'descr': '<f8'}",
    "nothing": "",
    "no utf-8": b"\xff\xfe" * 40,
    "more keys": "{'descr': '<f8', 'fortran_order': False, 'shape': (1,), 'x': 1, }",
    "shape is text": npy_header("'<f8'", "'1'"),
}
WHOLE = {
    "nothing": b"",
    "text": b"hello",
    "a pickle": lambda folder: pickle.dumps(Canary(folder)),
    "an array": numbers(b"abc"),
    "only an end": raw_zip([]),
    "zeros": bytes(100_000),
    "an array of objects": pickled,
}
EXTRA = numbers(b"x" * 100)
LYING = {
    "says more bytes": first(size=10**9),
    "says fewer bytes": first(size=90),
    "says 4 GiB": first(size=2**32 - 2),
    "said bytes beyond the end": first(said=10**8, size=10**8),
    "wrong crc": first(crc=1),
    "encrypted": first(flags=1),
    "other local name": first(local_name=b"other.npy"),
    "a link": added(plain("l.npy", EXTRA, mode=stat.S_IFLNK | 0o777)),
    "a fifo": added(plain("l.npy", EXTRA, mode=stat.S_IFIFO)),
    "a device": added(plain("l.npy", EXTRA, mode=stat.S_IFCHR)),
    "a folder": added(plain("l/", b"")),
    "leads out": added(plain("../l.npy", EXTRA)),
    "leads out within": added(plain("a/../../l.npy", EXTRA)),
    "absolute": added(plain("/tmp/l.npy", EXTRA)),
    "a drive": added(plain("C:l.npy", EXTRA)),
    "leads out by backslashes": added(plain("..\\l.npy", EXTRA)),
    "null in the name": added(plain("init.npy\0.txt", EXTRA)),
    "empty name": added(plain("", EXTRA)),
    "a point": added(plain("./init.npy", EXTRA)),
    "same name": added(plain("header.npy", EXTRA)),
    "same bytes": raw(same_bytes),
    "overlapping bombs": raw(overlapping_bombs),
    "150 bombs of 16 MB": raw(bombs_of_bytes),
    "bzip2": method(12, lambda d: __import__("bz2").compress(d)),
    "deflate64": method(9),
    "zstandard": method(93),
    "lzma": method(14, lambda d: b"\x09\x04\x05\x00\x5d\x00\x00\x00\x40" + d),
    "implode": method(6),
    "aes": method(99),
    "lzma dictionary of 4 GiB": method(14, lambda d: b"\x09\x04\x05\x00\x5d\xff\xff\xff\xff" + d),
    "not deflated": method(8),
    "20,000 members": raw(lambda m: [*m, *(plain(f"{i}.npy", EXTRA) for i in range(20_000))]),
    "a million in the list": raw(lambda m: [*m, *([m[0]._replace(name=b"n" * 9, offset=0)] * 300_000)]),
    "no header": without(b"header.npy"),
    "no checksum": without(b"checksum.npy"),
    "more members said": raw(list, count_error=5),
    "list elsewhere": raw(list, offset_error=10**6),
    "list before the file": raw(list, offset_error=-(10**3)),
    "header of 320 MB": raw(long_header),
    "3 GiB of zeros": bomb(f"({GIANT // 8},)", GIANT),
    "400 MB of zeros": bomb(f"({(400 << 20) // 8},)", 400 << 20),
    "3 GiB in the header": bomb(f"({GIANT // 8},)", GIANT, "header.npy"),
    "3 GiB for 8 bytes": bomb("(1,)", GIANT),
    "zip64 of 2^60": first(size=2**32 - 1, said=2**32 - 1),
}
TEXTS = {
    "header is no utf-8": with_member("header.npy", numbers(b"\xff\xfe\xfd")),
    "header of floats": with_member("header.npy", npy(npy_header("'<f8'", "(1,)"), bytes(8))),
    "checksum of floats": with_member("checksum.npy", npy(npy_header("'<f8'", "(1,)"), b"\xff" * 8)),
    "checksum is no utf-8": with_member("checksum.npy", numbers(b"\xff" * 64)),
    "version 3": with_member("init.npy", npy(npy_header("'<f8'", "(1,)"), bytes(8), version=3)),
    "version 2, header of 4 GiB": with_member("init.npy", b"\x93NUMPY\2\0\xff\xff\xff\xff{"),
    "no magic": with_member("init.npy", b"x" * 200),
    "empty array": with_member("init.npy", b""),
    "longer than it says": with_member("init.npy", npy(npy_header("'<f8'", "(1,)"), bytes(80))),
    "pickled header": with_member("header.npy", pickled),
    "pickled array": with_member("init.npy", pickled),
    "pickled array, deflated": with_member("steps.npy", pickled, zipfile.ZIP_DEFLATED),
}
ATTACKS = [
    *(Attack("npz: headers of arrays", name, with_member("init.npy", npy(h, bytes(8)))) for name, h in HEADERS.items()),
    *(Attack("npz: no archive", name, whole(data)) for name, data in WHOLE.items()),
    *(Attack("npz: no archive", f"{share} of it", cut(share)) for share in (0.1, 0.5, 0.9, 0.999)),
    *(Attack("npz: archives that lie", name, build) for name, build in LYING.items()),
    *(Attack("npz: arrays", name, build) for name, build in TEXTS.items()),
]
