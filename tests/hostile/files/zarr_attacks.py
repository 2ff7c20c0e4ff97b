"""Hostile Zarr folders, and the same in a ZIP file: codecs that run code, metadata that lie, bombs, odd places."""

import json
import pickle

import numpy as np

from .attack import GIANT, Attack, Canary, plain, raw_zip, with_metadata, with_text, write_store, zarr_files

HEADER, X = "run/header", "weighted_posterior/x"
LENGTH = 4096  # of the chunks below


def metadata(array=X, **changes):
    return lambda files, _: with_metadata(files, array, **changes)


def code(field, first=({"id": "vlen-utf8"},)):
    """A chunk that is a pickle, and codec metadata that say so.

    With a codec of texts ``first``, after which Zarr 3.1.3 takes any other, it ran with numcodecs before 0.16.6.
    """

    def change(files, folder):
        codec = {"id": "pickle", "protocol": 5}
        how = {"filters": [*first, codec], "compressor": None}
        if field == "compressor":
            how = {"filters": list(first) or None, "compressor": codec}
        files[f"{HEADER}/0"] = pickle.dumps(np.array([Canary(folder)], dtype=object))
        return with_metadata(files, HEADER, dtype="|O", shape=[1], chunks=[1], fill_value=None, **how)

    return change


def objects(codec, data=b"\1\0\0\0\3\0\0\0abc"):
    def change(files, _):
        files[f"{HEADER}/0"] = data
        return with_metadata(files, HEADER, dtype="|O", shape=[1], chunks=[1], filters=[codec])

    return change


def replaced(name, data):
    def change(files, _):
        if data is None:
            del files[name]
        else:
            files[name] = data(files[name]) if callable(data) else data
        files.pop(".zmetadata", None)
        return files

    return change


def texts(name, text):
    return lambda files, _: with_text(files, name, text)


def place(fields, name="init"):
    """The places of the arrays, one of them changed."""

    def change(files, _):
        places = json.loads(files["run/places/0"])
        return with_text(files, "places", json.dumps({**places, name: fields}).encode())

    return change


def chunk(compressor, data, length=LENGTH):
    """An array of ``length`` bytes in one chunk as given."""

    def change(files, _):
        for old in [name for name in files if name.startswith(f"{HEADER}/0")]:
            del files[old]
        files[f"{HEADER}/0"] = data() if callable(data) else data
        return with_metadata(files, HEADER, shape=[length], chunks=[length], compressor=compressor)

    return change


def blosc_header(nbytes, blocksize, cbytes, flags=0x01, version=2):
    fields = (nbytes, blocksize, cbytes)
    return bytes((version, 1, flags, 1)) + b"".join(n.to_bytes(4, "little") for n in fields)


def blosc_bomb():
    import numcodecs

    return numcodecs.Blosc().encode(np.zeros(512 << 20, np.uint8))


def zstd(length):
    def data():
        import numcodecs

        return bytes(numcodecs.Zstd().encode(np.zeros(length, np.uint8)))

    return data


def zstd_blocks(blocks, declared=None):
    """A frame of blocks of one repeated byte, each 128 KB from four bytes; it says its length where that is given."""
    head = b"\x28\xb5\x2f\xfd" + (b"\x00\x58" if declared is None else b"\xe0" + declared.to_bytes(8, "little"))
    size = (128 << 10) - 1
    run = (size << 3 | 0b010).to_bytes(3, "little") + b"\0"
    return head + run * blocks + (0b011 | 1 << 3).to_bytes(3, "little") + b"\0"


BLOSC = {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0}
ZSTD = {"id": "zstd", "level": 0}
DEEP = b"[" * 100_000 + b"]" * 100_000
CODECS = {
    "pickle filter": code("filters"),
    "pickle compressor": code("compressor"),
    "pickle filter alone": code("filters", ()),
    "pickle compressor alone": code("compressor", ()),
    "json2": objects({"id": "json2"}, b'["a",[1]]'),
    "msgpack2": objects({"id": "msgpack2"}, b"\x92\xa1a\x91\x01"),
    "vlen-utf8": objects({"id": "vlen-utf8"}),
    "vlen-bytes": objects({"id": "vlen-bytes"}),
    "vlen-array": objects({"id": "vlen-array", "dtype": "<f8"}),
    "vlen of 2^31 strings": objects({"id": "vlen-utf8"}, b"\xff\xff\xff\x7f"),
    "object alone": metadata(dtype="|O"),
    **{
        f"filter {name}": metadata(filters=[{"id": name, **more}])
        for name, more in {
            "delta": {"dtype": "<f8"},
            "fixedscaleoffset": {"dtype": "<f8", "scale": 1, "offset": 0},
            "quantize": {"dtype": "<f8", "digits": 3},
            "astype": {"encode_dtype": "<f8", "decode_dtype": "|O"},
            "categorize": {"labels": ["a"], "dtype": "|O"},
            "base64": {},
            "shuffle": {},
            "no_such_codec": {},
        }.items()
    },
    **{
        f"compressor {name}": metadata(compressor={"id": name})
        for name in (
            "lzma",
            "bz2",
            "gzip",
            "zlib",
            "lz4",
            "pcodec",
            "zfpy",
            "no_such_codec",
            "../blosc",
            "",
        )
    },
    "compressor is a list": metadata(compressor=[ZSTD]),
    "compressor is text": metadata(compressor="zstd"),
    "compressor without id": metadata(compressor={"level": 1}),
    "id is a list": metadata(compressor={"id": ["zstd"]}),
    "blosc of an odd name": metadata(compressor={**BLOSC, "cname": "lzo"}),
    "blosc with more": metadata(compressor={**BLOSC, "hook": "os.system"}),
    "zstd of a giant level": metadata(compressor={**ZSTD, "level": 10**30}),
    "filters are text": metadata(filters="delta"),
    "filters is an object": metadata(filters={}),
}
SHAPES = {
    "2^60 numbers": {"shape": [2**60]},
    "3 GiB never written": {"shape": [GIANT // 8, 1, 1], "chunks": [GIANT // 8, 1, 1]},
    "3 GiB in 3 million chunks": {"shape": [GIANT // 8, 1, 1], "chunks": [128, 1, 1]},
    "3 GiB, one byte": {"shape": [GIANT], "chunks": [1], "dtype": "|u1"},
    "negative": {"shape": [-1, 60, 2]},
    "float": {"shape": [2.0, 60, 2]},
    "text": {"shape": "abc"},
    "true": {"shape": [True, 60, 2]},
    "1000 dimensions": {"shape": [1] * 1000, "chunks": [1] * 1000},
    "chunk of nothing": {"chunks": [0, 60, 2]},
    "chunk of 2^62": {"chunks": [2**62, 60, 2]},
    "chunk of 3 GiB": {"chunks": [GIANT // 960, 60, 2]},
    "fewer chunk sizes": {"chunks": [2]},
    "chunks are null": {"chunks": None},
    "shape is null": {"shape": None},
    "400 digits": {"shape": [10**400]},
    "zero times giant": {"shape": [0, 2**80, 1]},
    "other shape": {"shape": [2, 30, 2], "chunks": [2, 30, 2]},
}
KINDS = (
    "<U1000000000",
    "|S1000000000",
    "|V1000000000",
    "<M8[s]",
    "<c16",
    "|O8",
    "object",
    "f8,O",
    [["a", "<f8"]],
    None,
    8,
    "<f3",
    "x" * 10**5,
    "float64",
    "<i99999999999",
)
METADATA = {
    "Fortran's order": {"order": "F"},
    "odd order": {"order": ["C"]},
    "nested chunks": {"dimension_separator": "/"},
    "separator leads out": {"dimension_separator": "/../"},
    "no separator": {"dimension_separator": ""},
    "version 3": {"zarr_format": 3},
    "version is text": {"zarr_format": "2"},
    "version is true": {"zarr_format": True},
    "another key": {"storage_transformers": [{"name": "x"}]},
}
FILES = {
    "deep metadata": replaced(f"{X}/.zarray", DEEP),
    "digits": replaced(f"{X}/.zarray", b'{"shape":[' + b"9" * 10**5 + b"]}"),
    "metadata of nothing": replaced(f"{X}/.zarray", b""),
    "no utf-8": replaced(f"{X}/.zarray", b"\xff\xfe"),
    "a list": replaced(f"{X}/.zarray", b"[]"),
    "nan": replaced(f"{X}/.zarray", lambda t: t.replace(b"2,", b"NaN,", 1)),
    "key twice": replaced(f"{X}/.zarray", lambda t: b'{"dtype":"|O",' + t.lstrip()[1:]),
    "4 MB of metadata": replaced(f"{X}/.zarray", b" " * (4 << 20) + b"{}"),
    "no metadata": replaced(f"{X}/.zarray", None),
    "no group": replaced("weighted_posterior/.zgroup", None),
    "no root": replaced(".zgroup", None),
    "group of version 3": replaced(".zgroup", b'{"zarr_format": 3}'),
    "deep group": replaced(".zgroup", DEEP),
    "both versions": lambda files, _: {
        **files,
        "zarr.json": b'{"zarr_format": 3, "node_type": "group", "attributes": {}}',
    },
    "array of version 3": lambda files, _: {**files, f"{X}/zarr.json": b'{"zarr_format": 3, "node_type": "array"}'},
    "no chunk": replaced(f"{X}/0.0.0", None),
    "no header": replaced(f"{HEADER}/0", None),
    "chunk of nothing": replaced(f"{X}/0.0.0", b""),
    "chunk cut": replaced(f"{X}/0.0.0", lambda c: c[:-1]),
    "chunk of 64 MB": replaced(f"{X}/0.0.0", bytes(64 << 20)),
    "other numbers": replaced(f"{X}/0.0.0", lambda c: bytes(len(c))),
}
BOMBS = {
    "blosc says 2 GB": chunk(BLOSC, blosc_header(2**31 - 1, 2**20, 116) + bytes(100)),
    "blosc of 512 MB": chunk(BLOSC, blosc_bomb),
    "blosc of 512 MB, as said": chunk(BLOSC, blosc_bomb, 512 << 20),
    "blosc in blocks of 2 GB": chunk(BLOSC, blosc_header(LENGTH, 2**31 - 1, 116) + bytes(100)),
    "blosc in no blocks": chunk(BLOSC, blosc_header(LENGTH, 0, 116) + bytes(100)),
    "blosc longer than the chunk": chunk(BLOSC, blosc_header(LENGTH, LENGTH, 10**6) + bytes(100)),
    "blosc of zeros": chunk(BLOSC, blosc_header(LENGTH, LENGTH, 116) + bytes(100)),
    "blosc of ones": chunk(BLOSC, blosc_header(LENGTH, 64, 1016) + b"\xff" * 1000),
    "blosc of an odd codec": chunk(BLOSC, blosc_header(LENGTH, LENGTH, 116, flags=0xE1) + bytes(100)),
    "blosc of version 99": chunk(BLOSC, blosc_header(LENGTH, LENGTH, 116, version=99) + bytes(100)),
    "blosc of 9 bytes": chunk(BLOSC, b"\2\1\1\1" + bytes(5)),
    "blosc of nothing": chunk(BLOSC, b""),
    "zstd of 2 GiB": chunk(ZSTD, lambda: zstd_blocks((2 << 30) >> 17)),
    "zstd of 512 MB": chunk(ZSTD, zstd(512 << 20)),
    "zstd says 2^60": chunk(ZSTD, zstd_blocks(1, 2**60)),
    "zstd says 3 GiB": chunk(ZSTD, zstd_blocks(1, GIANT)),
    "zstd says what is right and holds more": chunk(ZSTD, zstd_blocks(10_000, LENGTH)),
    "zstd of two frames": chunk(ZSTD, lambda: zstd(LENGTH)() * 2),
    "zstd of a skipped frame": chunk(ZSTD, b"\x50\x2a\x4d\x18\xff\xff\xff\xff"),
    "zstd with a dictionary": chunk(ZSTD, b"\x28\xb5\x2f\xfd\x23" + bytes(4) + b"\x10" + bytes(20)),
    "zstd of 5 bytes": chunk(ZSTD, b"\x28\xb5\x2f\xfd\x60"),
    "zstd of nothing": chunk(ZSTD, b""),
    "zstd of 512 MB, as said": chunk(ZSTD, zstd(512 << 20), 512 << 20),
}
PLACES = {
    "out": place(["../../..", "x"]),
    "absolute": place(["/etc", "passwd"]),
    "variable out": place(["run", "../../x"]),
    "a point": place([".", "header"]),
    "null": place(["run", "a\0b"]),
    "empty variable": place(["run", ""]),
    "numbers": place([1, 2]),
    "text": place("run/header"),
    "too many": place(["run", "header", 0, [], 1]),
    "nowhere": place(["nowhere", "x"]),
    "a group": place(["", "posterior"]),
    "the same twice": place(["weighted_posterior", "x"]),
    "giant folds": place(["constant_data", "init", 10**18]),
    "negative folds": place(["constant_data", "init", -1]),
    "folds of text": place(["constant_data", "init", "3"]),
    "folds that do not divide": place(["constant_data", "init", 7]),
    "empty of entries": place(["", "<f8", 0, [GIANT // 8]]),
    "empty of objects": place(["", "|O", 0, [0]]),
    "empty of a giant": place(["", "<f8", 0, [0, 2**70]]),
    "empty of 99 sizes": place(["", "<f8", 0, [0] * 99]),
    "empty folded": place(["", "<f8", 3, [0]]),
    "shape of text": place(["", "<f8", 0, "abc"]),
    "deep": texts("places", DEEP),
    "a list": texts("places", b"[]"),
    "nothing": texts("places", b""),
    "20 MB": texts("places", b'{"a":' + b" " * (20 << 20) + b"[]}"),
    "a million": texts("places", json.dumps({f"a{i}": ["run", "header"] for i in range(200_000)}).encode()),
}
FAMILIES = {
    "codecs": CODECS,
    "shapes": {name: metadata(**changes) for name, changes in SHAPES.items()},
    "kinds": {f"kind {str(kind)[:20]}": metadata(dtype=kind) for kind in KINDS},
    "metadata": {**{name: metadata(**changes) for name, changes in METADATA.items()}, **FILES},
    "bombs": BOMBS,
    "places": PLACES,
}


def builder(change, suffix):
    return lambda folder: write_store(folder, suffix, change(zarr_files(folder), folder))


def archive(members):
    """A ZIP file of the good files and ``members`` besides, written byte by byte."""

    def build(folder):
        path = folder / "run.zarr.zip"
        good = [plain(name, data) for name, data in zarr_files(folder).items()]
        path.write_bytes(raw_zip(members(good)))
        return path

    return build


ARCHIVES = {
    "a link": archive(lambda m: [*m, plain("run/link", b"/etc/passwd", mode=0o120777)]),
    "leads out": archive(lambda m: [*m, plain("../x", b"x")]),
    "absolute": archive(lambda m: [*m, plain("/x", b"x")]),
    "same name": archive(lambda m: [*m, m[0]]),
    "same bytes": archive(lambda m: [*m, m[0]._replace(name=b"run/x", offset=0)]),
    "said to be deflated": archive(lambda m: [m[0]._replace(method=8), *m[1:]]),
    "said to be longer": archive(lambda m: [m[0]._replace(size=10**9), *m[1:]]),
    "200,000 members": archive(
        lambda m: [*m, *(m[0]._replace(name=b"run/%060d" % i, offset=0) for i in range(200_000))]
    ),
}
ATTACKS = [
    *(
        Attack(f"zarr: {family}", f"{name}{suffix}", builder(change, suffix))
        for family, changes in FAMILIES.items()
        for name, change in changes.items()
        for suffix in (".zarr", ".zarr.zip")
    ),
    *(Attack("zarr: archives", name, build) for name, build in ARCHIVES.items()),
]
