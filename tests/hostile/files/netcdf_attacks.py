"""Hostile netCDF files: links out, chunks that were never written or inflate, filters and kinds that we never write."""

import json
import pickle
import zlib
from pathlib import Path

import numpy as np

from .attack import GIANT, Attack, Canary, base, copied

X, HEADER, PLACES = "weighted_posterior/x", "run/header", "run/places"


def edited(edit, name="run"):
    """The good file after ``edit`` of it, opened by h5py."""

    def build(folder: Path) -> Path:
        import h5py

        path = copied(folder, ".nc", name)
        with h5py.File(path, "r+") as file:
            edit(file, h5py, folder)
        return path

    return build


def put(name, make):
    """One array replaced by what ``make`` creates."""

    def edit(file, h5py, folder):
        del file[name]
        parent, _, last = name.rpartition("/")
        make(file[parent], last, h5py, folder)

    return edited(edit)


def dataset(name=X, **options):
    return put(name, lambda group, last, *_: group.create_dataset(last, **options))


def link_to(make):
    """One array replaced by a link."""

    def edit(group, last, h5py, folder):
        group[last] = make(h5py, folder)

    return put(X, edit)


def other_file(folder):
    """Another good file, to which links lead."""
    path = folder / "other.nc"
    path.write_bytes(base(folder, ".nc").read_bytes())
    return path


def virtual(group, last, h5py, folder):
    layout = h5py.VirtualLayout((2, 60, 2), "<f8")
    layout[...] = h5py.VirtualSource(str(other_file(folder)), X, shape=(2, 60, 2))
    group.create_virtual_dataset(last, layout)


def giant_virtual(group, last, h5py, folder):
    group.create_virtual_dataset(last, h5py.VirtualLayout((GIANT // 8,), "<f8"), fillvalue=1.0)


def external(where):
    def make(group, last, h5py, folder):
        if where == "other":
            other_file(folder)
        target = {"other": str(folder / "other.nc"), "passwd": "/etc/passwd", "zero": "/dev/zero"}[where]
        group.create_dataset(last, (2, 60, 2), "<f8", external=[(target, 0, 2 * 60 * 2 * 8)])

    return put(X, make)


def raw_chunk(data, shape, mask=0, name=X, dtype="<f8", **options):
    """An array of one chunk whose bytes are given."""

    def make(group, last, h5py, folder):
        made = group.create_dataset(last, shape, dtype, chunks=shape, **options)
        made.id.write_direct_chunk((0,) * len(shape), data() if callable(data) else data, mask)

    return put(name, make)


def never_written(shape, chunks, dtype="<f8"):
    """A header that names chunks which were never written."""

    def make(group, last, h5py, folder):
        group.create_dataset(last, shape, dtype, chunks=chunks, fillvalue=1, compression="gzip")

    return put(X, make)


def filtered(number, level=2, values=()):
    """A chunk that says an HDF5 filter by its number; unknown ones are looked for among plugins."""

    def make(group, last, h5py, folder):
        settings = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        settings.set_chunk((2, 60, 2))
        settings.set_filter(number, h5py.h5z.FLAG_OPTIONAL, tuple(values))
        space = h5py.h5s.create_simple((2, 60, 2))
        made = h5py.h5d.create(group.id, last.encode(), h5py.h5t.IEEE_F64LE, space, settings)
        made.write_direct_chunk((0, 0, 0), bytes(1920))

    return put(X, make)


def of_kind(kind, shape=(2, 60, 2), name=X):
    """An array of an HDF5 kind that holds no plain numbers."""

    def make(group, last, h5py, folder):
        made = kind(h5py) if callable(kind) else kind
        group.create_dataset(last, shape, made)

    return put(name, make)


def odd_float(group, last, h5py, folder):
    kind = h5py.h5t.IEEE_F64LE.copy()
    kind.set_fields(63, 40, 23, 0, 40)
    kind.set_ebias(2000)
    h5py.h5d.create(group.id, last.encode(), kind, h5py.h5s.create_simple((2, 60, 2)))


def null_space(group, last, h5py, folder):
    group[last] = h5py.Empty("<f8")


def places(change):
    def edit(group, last, h5py, folder):
        with h5py.File(base(folder, ".nc"), "r") as good:
            known = json.loads(good[PLACES][...].tobytes())
        text = change if isinstance(change, bytes) else json.dumps({**known, "init": change}).encode()
        group[last] = np.frombuffer(text, np.uint8)

    return put(PLACES, edit)


def cycle(file, h5py, folder):
    """A group that is its own parent, and a place that leads through it."""
    file["run/run"] = file["run"]
    file["run/root"] = file["/"]


def pickled(group, last, h5py, folder):
    group.create_dataset(last, data=np.void(pickle.dumps(Canary(folder))))


def whole(change):
    def build(folder: Path) -> Path:
        path = folder / "run.nc"
        path.write_bytes(change(base(folder, ".nc").read_bytes(), folder))
        return path

    return build


def bomb(length):
    """Zeros, deflated to a thousandth."""

    def data():
        deflate = zlib.compressobj(1)
        block = bytes(16 << 20)
        return b"".join(deflate.compress(block) for _ in range(length >> 24)) + deflate.flush()

    return data


DEFLATED = {"compression": "gzip"}
SHAPE = (2, 60, 2)
LINKS = {
    "soft": link_to(lambda h5py, _: h5py.SoftLink("/weighted_posterior/energy")),
    "soft, dangling": link_to(lambda h5py, _: h5py.SoftLink("/no")),
    "soft to itself": link_to(lambda h5py, _: h5py.SoftLink(f"/{X}")),
    "to another file": link_to(lambda h5py, folder: h5py.ExternalLink(str(other_file(folder)), X)),
    "to no file": link_to(lambda h5py, _: h5py.ExternalLink("/no/such.nc", X)),
    "to a device": link_to(lambda h5py, _: h5py.ExternalLink("/dev/zero", X)),
    "external storage": external("other"),
    "external storage of passwd": external("passwd"),
    "external storage of zeros": external("zero"),
    "virtual": put(X, virtual),
    "virtual of 3 GiB": put(X, giant_virtual),
    "group is a soft link": edited(
        lambda f, h, _: (f.move("weighted_posterior", "kept"), f.__setitem__("weighted_posterior", h.SoftLink("/kept")))
    ),
    "group in another file": edited(
        lambda f, h, d: (
            f.__delitem__("weighted_posterior"),
            f.__setitem__("weighted_posterior", h.ExternalLink(str(other_file(d)), "weighted_posterior")),
        )
    ),
    "header in another file": edited(
        lambda f, h, d: (f.__delitem__(HEADER), f.__setitem__(HEADER, h.ExternalLink(str(other_file(d)), HEADER)))
    ),
    "run is an array": edited(lambda f, h, _: (f.__delitem__("run"), f.create_dataset("run", data=1))),
    "an array is a group": edited(lambda f, h, _: (f.__delitem__(X), f.create_group(X))),
    "an array is a type": edited(lambda f, h, _: (f.__delitem__(X), f.__setitem__(X, np.dtype("f8")))),
}
SIZES = {
    "16 GiB never written": never_written((2 << 30,), (1 << 20,)),
    "3 GiB never written": never_written((GIANT // 8,), (1 << 20,)),
    "one chunk of 3 GiB": never_written((GIANT // 8,), (GIANT // 8,)),
    "3 GiB in small chunks": never_written((GIANT // 8,), (1024,)),
    "2^60": never_written((2**57,), (1 << 20,)),
    "same shape, never written": never_written(SHAPE, SHAPE),
    "contiguous, never written": dataset(shape=SHAPE, dtype="<f8"),
    "3 GiB contiguous": dataset(shape=(GIANT // 8,), dtype="<f8"),
    "header of 3 GiB": put(
        HEADER, lambda g, n, *_: g.create_dataset(n, (GIANT,), "u1", chunks=(1 << 20,), fillvalue=32)
    ),
    "header of 3 GiB contiguous": put(HEADER, lambda g, n, *_: g.create_dataset(n, (GIANT,), "u1")),
    "places of 3 GiB": put(
        PLACES, lambda g, n, *_: g.create_dataset(n, (GIANT,), "u1", chunks=(1 << 20,), fillvalue=32)
    ),
    "unlimited": put(
        X, lambda g, n, *_: g.create_dataset(n, (10**9, 60, 2), "<f8", chunks=SHAPE, maxshape=(None, 60, 2))
    ),
    "chunk larger than the array": put(
        X, lambda g, n, *_: g.create_dataset(n, data=np.ones(SHAPE), chunks=(2, 2000, 2), maxshape=(2, None, 2))
    ),
    "chunk inflates to 512 MB": raw_chunk(bomb(512 << 20), SHAPE, **DEFLATED),
    "chunk inflates to 1 GiB": raw_chunk(bomb(1 << 30), SHAPE, **DEFLATED),
    "chunk of a GiB, as said": raw_chunk(bomb(1 << 30), ((1 << 30) // 8,), **DEFLATED),
    "chunk is no stream": raw_chunk(b"x" * 50, SHAPE, **DEFLATED),
    "chunk inflates to less": raw_chunk(zlib.compress(bytes(10)), SHAPE, **DEFLATED),
    "chunk of 20 MB": raw_chunk(bytes(20 << 20), SHAPE),
    "chunk too short": raw_chunk(bytes(100), SHAPE),
    "chunk without its end": raw_chunk(zlib.compress(np.random.default_rng(1).bytes(1920))[:-4], SHAPE, **DEFLATED),
    "plain chunk said to be deflated": raw_chunk(bytes(1920), SHAPE, **DEFLATED),
    "all filters skipped, short": raw_chunk(bytes(19), SHAPE, mask=0xFFFFFFFF, **DEFLATED),
}
KINDS = {
    "text": of_kind(lambda h5py: h5py.string_dtype()),
    "fixed text": of_kind("S1000"),
    "references": of_kind(lambda h5py: h5py.ref_dtype),
    "region references": of_kind(lambda h5py: h5py.regionref_dtype),
    "rows of any length": of_kind(lambda h5py: h5py.vlen_dtype(np.float64)),
    "compound": of_kind(np.dtype([("a", "<f8"), ("b", "<i4")])),
    "opaque": of_kind(np.dtype("V8")),
    "a giant opaque": of_kind(np.dtype("V1000000"), (3000,)),
    "enumeration": of_kind(lambda h5py: h5py.enum_dtype({"a": 1, "b": 2})),
    "arrays": of_kind(np.dtype(("<f8", (4,)))),
    "bool": of_kind("?"),
    "complex": of_kind("<c16"),
    "odd float": put(X, odd_float),
    "no space": put(X, null_space),
    "pickle": put(X, pickled),
    "pickled header": put(HEADER, pickled),
    "header of text": of_kind(lambda h5py: h5py.string_dtype(), (1,), HEADER),
    "header of floats": of_kind("<f8", (5,), HEADER),
    "header of two axes": of_kind("u1", (5, 5), HEADER),
    "header of one number": of_kind("u1", (), HEADER),
    "other numbers": put(X, lambda g, n, *_: g.create_dataset(n, data=np.ones(SHAPE))),
    "other shape": put(X, lambda g, n, *_: g.create_dataset(n, data=np.ones((2, 60)))),
}
FILTERS = {f"filter {number}": filtered(number) for number in (307, 32000, 32001, 32004, 32008, 32013, 32015, 60000)}
FILTERS |= {
    "fletcher32": put(X, lambda g, n, *_: g.create_dataset(n, data=np.ones(SHAPE), chunks=SHAPE, fletcher32=True)),
    "scale-offset": put(X, lambda g, n, *_: g.create_dataset(n, data=np.ones(SHAPE), chunks=SHAPE, scaleoffset=3)),
    "lzf": put(X, lambda g, n, *_: g.create_dataset(n, data=np.ones(SHAPE), chunks=SHAPE, compression="lzf")),
    "deflated and then shuffled": edited(lambda f, h, _: wrong_order(f, h)),
}


def wrong_order(file, h5py):
    del file[X]
    settings = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    settings.set_chunk(SHAPE)
    settings.set_deflate(1)
    settings.set_shuffle()
    made = h5py.h5d.create(
        file["weighted_posterior"].id, b"x", h5py.h5t.IEEE_F64LE, h5py.h5s.create_simple(SHAPE), settings
    )
    made.write(h5py.h5s.ALL, h5py.h5s.ALL, np.ones(SHAPE))


PLACED = {
    "through a cycle": edited(lambda f, h, d: (cycle(f, h, d), set_places(f, ["run/run/run", "header"]))),
    "through the root": edited(lambda f, h, d: (cycle(f, h, d), set_places(f, ["run/root/run", "header"]))),
    "the group itself": edited(lambda f, h, d: (cycle(f, h, d), set_places(f, ["run", "run"]))),
    "out": places(["../..", "x"]),
    "absolute": places(["/", "run"]),
    "a point": places([".", "run"]),
    "null": places(["run\0", "header"]),
    "empty variable": places(["run", ""]),
    "the same twice": places(["weighted_posterior", "x"]),
    "nowhere": places(["no", "x"]),
    "giant folds": places(["constant_data", "init", 10**18]),
    "empty of objects": places(["", "|O", 0, [0]]),
    "empty of entries": places(["", "<f8", 0, [GIANT // 8]]),
    "deep": places(b"[" * 10**5),
    "a list": places(b"[]"),
    "nan": places(b'{"a": NaN}'),
}


def set_places(file, change):
    known = json.loads(file[PLACES][...].tobytes())
    del file[PLACES]
    file[PLACES] = np.frombuffer(json.dumps({**known, "init": change}).encode(), np.uint8)


WHOLE = {
    "nothing": whole(lambda _, __: b""),
    "a pickle": whole(lambda _, folder: pickle.dumps(Canary(folder))),
    "magic alone": whole(lambda c, _: c[:8]),
    "half": whole(lambda c, _: c[: len(c) // 2]),
    "no magic": whole(lambda c, _: c[8:]),
    "superblock of ones": whole(lambda c, _: c[:8] + b"\xff" * 88 + c[96:]),
    "netCDF-3": whole(lambda _, __: b"CDF\1" + bytes(100)),
    "end of file at 2^62": whole(lambda c, _: c[:28] + (2**62).to_bytes(8, "little") + c[36:]),
    "root elsewhere": whole(lambda c, _: c[:36] + b"\x10" * 24 + c[60:]),
    "zeros after the superblock": whole(lambda c, _: c[:96] + bytes(len(c) - 96)),
}
ATTACKS = [
    Attack(f"netCDF: {family}", name, build)
    for family, builds in {
        "links": LINKS,
        "sizes": SIZES,
        "kinds": KINDS,
        "filters": FILTERS,
        "places": PLACED,
        "whole": WHOLE,
    }.items()
    for name, build in builds.items()
]
