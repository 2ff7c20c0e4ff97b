"""Hostile checkpoints: no files, records that lie, contents of another kind with a checksum that fits."""

import hashlib
import json
import os
import pickle
import shutil
import struct
from pathlib import Path

from .attack import BASE, Attack, Canary
from .place_attacks import KINDS

PREFIX = struct.Struct("<8sIIQQ")


def copied(folder: Path) -> Path:
    """A copy of the good checkpoint, of a state and its draws."""
    for name in ("saved", "saved.draws"):
        shutil.copy(folder.parent / BASE / name, folder / name)
    return folder / "saved"


def special(make, ending):
    def build(folder: Path) -> Path:
        path = copied(folder)
        place = path.with_name(path.name + ending)
        place.unlink(missing_ok=True)
        make(place)
        return path

    return build


def link_to_victim(path: Path) -> None:
    """A link to a file of another's, which a checkpoint must not overwrite."""
    victim = path.parent / "victim"
    victim.write_bytes(b"kept")
    path.symlink_to(victim)


def records(data: bytes):
    """The records of a file: (JSON, arrays, end)."""
    offset = 0
    while offset < len(data):
        _, _, _, text, length = PREFIX.unpack_from(data, offset)
        start = offset + PREFIX.size
        offset = start + text + length + 32
        yield json.loads(data[start : start + text]), data[start + text : start + text + length], offset


def record(content: bytes, blob: bytes, before: bytes = bytes(32), **said) -> bytes:
    """A record with a digest that fits."""
    fields = {"version": 1, "zero": 0, "text": len(content), "length": len(blob), **said}
    start = PREFIX.pack(b"manymode", *(fields[name] for name in ("version", "zero", "text", "length")))
    return start + content + blob + hashlib.sha256(before + start + content + blob).digest()


def rewritten(ending, change, which=0):
    """A file whose record ``which`` has other contents, made by ``change``; all digests fit."""

    def build(folder: Path) -> Path:
        path = copied(folder)
        file = path.with_name(path.name + ending)
        made, before = b"", bytes(32)
        for i, (content, blob, _) in enumerate(records(file.read_bytes())):
            text = json.dumps(content).encode()
            if i == which:
                text, blob = change(content, blob)
                text = text if isinstance(text, bytes) else json.dumps(text).encode()
            made += record(text, blob, before)
            before = made[-32:]
        file.write_bytes(made)
        return path

    return build


def said(ending, **fields):
    """A first record that says other lengths."""

    def build(folder: Path) -> Path:
        path = copied(folder)
        file = path.with_name(path.name + ending)
        (content, blob, _), *_ = records(file.read_bytes())
        file.write_bytes(record(json.dumps(content).encode(), blob, **fields))
        return path

    return build


def sparse(ending, size, text):
    """A file of ``size`` bytes, nearly all of them a hole, which says that they are its contents."""

    def build(folder: Path) -> Path:
        path = copied(folder)
        file = path.with_name(path.name + ending)
        length = size - PREFIX.size - 32
        lengths = (length, 0) if text else (2, length - 2)
        file.write_bytes(PREFIX.pack(b"manymode", 1, 0, *lengths) + b"{}")
        os.truncate(file, size)
        return path

    return build


def whole(ending, data):
    def build(folder: Path) -> Path:
        path = copied(folder)
        path.with_name(path.name + ending).write_bytes(data(folder) if callable(data) else data)
        return path

    return build


def info(**changes):
    return lambda content, blob: ({**content, "info": {**content["info"], **changes}}, blob)


def kinds(change):
    """Other kinds or shapes of the first array."""

    def edit(content, blob):
        name = next(iter(content["arrays"]))
        return {**content, "arrays": {**content["arrays"], name: change}}, blob

    return edit


def described(change):
    """Another description of the run in the journal's first record."""

    def edit(content, blob):
        nested = json.loads(content["info"]["description"])
        made = change(nested)
        text = made if isinstance(made, str) else json.dumps(made)
        return {**content, "info": {**content["info"], "description": text}}, blob

    return edit


DEEP = b"[" * 100_000 + b"]" * 100_000
HUGE = 10**400
ANY = {
    "deep JSON": lambda c, b: (DEEP, b),
    "no object": lambda c, b: (b"[]", b),
    "nothing": lambda c, b: (b"", b),
    "no utf-8": lambda c, b: (b"\xff\xfe", b),
    "a million digits": lambda c, b: (b'{"info": ' + b"9" * 10**6 + b"}", b),
    "info is a list": lambda c, b: ({**c, "info": [1]}, b),
    "arrays is a list": lambda c, b: ({**c, "arrays": [1]}, b),
    "objects": kinds(["|O", [1]]),
    "text": kinds(["<U9999999", [1]]),
    "giant shape": kinds(["<f8", [2**60]]),
    "product overflows": kinds(["<f8", [2**33, 2**33]]),
    "negative": kinds(["<f8", [-1]]),
    "zero times giant": kinds(["<f8", [0, 2**70]]),
    "1000 dimensions": kinds(["<f8", [1] * 1000]),
    "float shape": kinds(["<f8", [1.0]]),
    "3 GiB": kinds(["<f8", [3 << 27]]),
    "true": kinds(["<f8", [True]]),
    "kind is a list": kinds([["<f8"], [1]]),
    "no shape": kinds(["<f8"]),
    "no arrays": lambda c, b: ({**c, "arrays": {}}, b),
    "arrays too short": lambda c, b: (c, b[:-8]),
    "arrays too long": lambda c, b: (c, b + bytes(8)),
    "20 million lists": lambda c, b: (b'{"info": [' + b"[]," * 25_000_000 + b"[]]}", b),
}
STATE = {
    "steps huge": info(steps=HUGE),
    "steps negative": info(steps=-1),
    "steps of text": info(steps="x"),
    "total huge": info(n_steps=HUGE),
    "draws huge": info(draws=HUGE),
    "draws negative": info(draws=-1),
    "traced": info(traced=10**9),
    "elapsed of text": info(elapsed="long"),
    "elapsed huge": info(elapsed=HUGE),
    "journal of nothing": info(journal=[]),
    "journal huge": info(journal=[HUGE, 1, "00"]),
    "journal's digest": info(journal=[1, 1, "zz"]),
    "journal's other digest": info(journal=[10, 1, "00" * 32]),
    "journal negative": info(journal=[-1, -1, "00" * 32]),
}
HEAD = {
    "other seed": described(lambda n: {**n, "seed": 1}),
    "deep": described(lambda n: DEEP.decode()),
    "nothing": described(lambda n: ""),
    "a list": described(lambda n: []),
    "no toolkit": described(lambda n: {k: v for k, v in n.items() if k != "toolkit"}),
    "array nowhere": described(lambda n: {**n, "init": {"$array": "no"}}),
    "code of a list": described(lambda n: {**n, "problem": {"function": 1, "code": [], "values": []}}),
    "code of numbers": described(
        lambda n: {**n, "problem": {"function": "a", "code": {"a": 1}, "values": 5, "python": 1}}
    ),
    "sampler of text": described(lambda n: {**n, "sampler": "x"}),
    "problem of a list": described(lambda n: {**n, "problem": [[[[]]]]}),
    "description of a number": info(description=5),
    "no description": info(description=None),
    "a million digits": described(lambda n: '{"seed": ' + "9" * 10**6 + "}"),
    "deep objects": described(lambda n: '{"a":' * 900 + "1" + "}" * 900),
}
WHOLE = {
    "nothing": b"",
    "text": b"hello" * 100,
    "zeros": bytes(10_000),
    "a pickle": lambda folder: pickle.dumps(Canary(folder)),
    "magic alone": b"manymode",
    "half a prefix": b"manymode" + bytes(10),
    "another version": PREFIX.pack(b"manymode", 9, 0, 2, 0) + b"{}" + bytes(32),
}
LENGTHS = {
    "text of 2^63": {"text": 2**63},
    "arrays of 2^63": {"length": 2**63},
    "both of 2^64 - 1": {"text": 2**64 - 1, "length": 2**64 - 1},
    "3 GiB of text": {"text": 3 << 30},
    "not zero": {"zero": 1},
    "version 0": {"version": 0},
}
TABLES = {
    "JSON": {ending: {name: rewritten(ending, change) for name, change in ANY.items()} for ending in ("", ".draws")},
    "contents": {
        "": {name: rewritten("", change) for name, change in STATE.items()},
        ".draws": {name: rewritten(".draws", change) for name, change in HEAD.items()},
    },
    "whole": {ending: {name: whole(ending, data) for name, data in WHOLE.items()} for ending in ("", ".draws")},
    "lengths": {
        ending: {name: said(ending, **fields) for name, fields in LENGTHS.items()} for ending in ("", ".draws")
    },
    "holes": {
        ending: {
            "1 TiB of text": sparse(ending, 1 << 40, True),
            "1 TiB of arrays": sparse(ending, 1 << 40, False),
            "1 GiB of text": sparse(ending, 1 << 30, True),
        }
        for ending in ("", ".draws")
    },
    "places": {
        ending: {
            name: special(make, ending) for name, make in {**KINDS, "a link to another's file": link_to_victim}.items()
        }
        for ending in (".draws", ".writing", ".previous")
    },
}
STATE_PLACES = {name: special(make, "") for name, make in KINDS.items()}
ATTACKS = [
    *(
        Attack(f"checkpoint: {family}", f"saved{ending}, {name}", build, "checkpoint")
        for family, by_file in TABLES.items()
        for ending, builds in by_file.items()
        for name, build in builds.items()
    ),
    *(Attack("checkpoint: places", f"saved, {name}", build, "checkpoint") for name, build in STATE_PLACES.items()),
]
