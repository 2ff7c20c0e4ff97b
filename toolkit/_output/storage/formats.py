"""The three formats of a saved run: NumPy's NPZ, and netCDF-4 and Zarr as ArviZ reads them."""

import json
import math
import warnings
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ..._engine.run_record import RunRecord, fold
from ...errors import LoadError, optional, shown
from . import hdf5_reader, zarr_reader
from .datatree import Place, Tree, build_groups, build_tree
from .limits import (
    LONGEST_PLACES,
    Allowance,
    StoredArray,
    Values,
    check_file,
    check_header_length,
    checked_dtype,
    checked_shape,
    is_within,
    parse_json,
)
from .run_contents import Contents
from .zip_reader import open_archive, read_array_member

HEADER, CHECKSUM, PLACES = "header", "checksum", "places"
PART, PARTS, WORTH = 1 << 14, 8, 0.8  # arrays are compressed if 8 sampled parts of 16 KB shrink to four fifths or less
LARGEST_CHUNK = 8 << 20  # bytes
LARGEST_IN_MEMORY = 64 << 20  # bytes of arrays whose files are made in memory first


def as_bytes(text: str) -> Values:
    """Text as an array of bytes, which all formats can store."""
    return np.frombuffer(text.encode(), np.uint8)


def as_text(values: Any) -> str:
    """The inverse of ``as_bytes``."""
    return np.asarray(values, np.uint8).tobytes().decode()


def is_compressible(array: Values) -> bool:
    """Whether compression pays, judged by sampled parts: counts and tables shrink, random mantissas do not."""
    if array.nbytes < PART:
        return False
    flat = array.reshape(-1) if array.flags.c_contiguous else array.flat
    items = PART // array.itemsize
    firsts = np.linspace(0, max(array.size - items, 0), PARTS).astype(np.int64)
    sampled = np.stack([np.asarray(flat[int(first) : int(first) + items]) for first in firsts])
    shuffled = sampled.view(np.uint8).reshape(-1, array.itemsize).T.tobytes()
    return len(zlib.compress(shuffled, 1)) < WORTH * sampled.nbytes


def to_compress(arrays: dict[Any, Values]) -> set[Any]:
    """Names of the arrays to be compressed: where that pays, and as few bytes remain as a file may be loaded from."""
    pays = {name for name, array in arrays.items() if array.dtype.kind in "biuf" and is_compressible(array)}
    total = sum(array.nbytes for array in arrays.values())
    plain = sum(array.nbytes for name, array in arrays.items() if name not in pays)
    for name in sorted(pays, key=lambda name: -arrays[name].nbytes):
        if is_within(total, plain):
            break
        pays.remove(name)
        plain += arrays[name].nbytes
    return pays


def write_npz(run: RunRecord, contents: Contents, path: Path) -> None:
    """Write ``contents`` as NumPy's archive of arrays."""
    texts = {HEADER: as_bytes(contents.header), CHECKSUM: as_bytes(contents.checksum)}
    compressed = to_compress(contents.arrays)
    with zipfile.ZipFile(path, "w", allowZip64=True, compresslevel=1) as archive:
        for name, array in {**contents.arrays, **texts}.items():
            pays = name in compressed or (name in texts and is_compressible(array))
            archive.compression = zipfile.ZIP_DEFLATED if pays else zipfile.ZIP_STORED  # of the next
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, array, allow_pickle=False)


def read_npz(path: Path) -> tuple[Contents, str]:
    """Contents and checksum of a file of ``write_npz``."""
    with open_archive(path, (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)) as (archive, members):
        size = path.stat().st_size
        allowance = Allowance(size)
        for name in (HEADER, CHECKSUM):
            if f"{name}.npy" not in members:
                raise LoadError(f"it is no run: {name!r} is missing in it")
        header = members[f"{HEADER}.npy"]
        check_header_length(header.file_size, size - header.compress_size)
        for name, member in members.items():
            allowance.take(name, member.file_size)
        arrays = {name.removesuffix(".npy"): read_array_member(archive, member) for name, member in members.items()}
    header_text, checksum = arrays.pop(HEADER), arrays.pop(CHECKSUM)
    return Contents(as_text(header_text), arrays), as_text(checksum)


def saved_tree(run: RunRecord, contents: Contents) -> Any:
    """The run's tree, with header, checksum and the places of its arrays."""
    tree = build_groups(run, contents)
    add_texts(tree, contents, contents.checksum)
    return build_tree(run, tree, contents, None)


def add_texts(tree: Tree, contents: Contents, checksum: str) -> None:
    """Add header, checksum and places to the group ``run``."""
    places = json.dumps({name: list(place) for name, place in tree.places.items()}, ensure_ascii=False)
    for name, text in ((HEADER, contents.header), (CHECKSUM, checksum), (PLACES, places)):
        tree.groups["run"][name] = ((f"{name}_bytes",), as_bytes(text), "for toolkit.load")


def chunks(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """A chunk's shape, of at most ``LARGEST_CHUNK`` bytes; the first axes are cut first."""
    cut = list(shape)
    for axis in range(len(cut)):
        rest = math.prod(cut[axis + 1 :]) * itemsize
        cut[axis] = max(1, min(cut[axis], LARGEST_CHUNK // max(rest, 1)))
    return tuple(cut)


def encodings(tree: Any, compressed: dict[str, Any], plain: dict[str, Any], chunk_name: str) -> dict[str, Any]:
    """Encoding of every variable: no fill value, and compressed if that pays."""
    options_of_group: dict[str, Any] = {node.path: {} for node in tree.subtree}
    variables = {
        (node.path, name): variable
        for node in tree.subtree
        for name, variable in node.to_dataset(inherit=False).variables.items()
    }
    pays = to_compress({place: variable.values for place, variable in variables.items()})
    for (path, name), variable in variables.items():
        options = {"_FillValue": None, **plain}
        if (path, name) in pays:
            options = {"_FillValue": None, **compressed}
            options[chunk_name] = chunks(variable.shape, variable.dtype.itemsize)
        elif variable.size and chunk_name == "chunks":
            options[chunk_name] = chunks(variable.shape, variable.dtype.itemsize)
        options_of_group[path][name] = options
    return options_of_group


def write_netcdf(run: RunRecord, contents: Contents, path: Path) -> None:
    """Write the run's tree as netCDF-4."""
    optional("h5netcdf", "io"), optional("h5py", "io")
    tree = saved_tree(run, contents)
    deflated = {"zlib": True, "complevel": 1, "shuffle": True}
    tree.to_netcdf(path, engine="h5netcdf", encoding=encodings(tree, deflated, {}, "chunksizes"))


def read_netcdf(path: Path) -> tuple[Contents, str]:
    """Contents and checksum of a file of ``write_netcdf``."""
    h5py = optional("h5py", "io")
    size = check_file(path)
    with h5py.File(path, "r") as file:
        return read_groups(hdf5_reader.opener(file), size)


def write_zarr(run: RunRecord, contents: Contents, path: Path) -> None:
    """Write the run's tree as a Zarr folder of version 2, which all readers support.

    Files of a small run are made in memory first: Zarr looks for a folder's files in threads, which takes most of the
    time.
    """
    zarr = optional("zarr", "io")
    blosc = optional("numcodecs", "io").Blosc(cname="lz4", clevel=5, shuffle=1)  # Zarr's own choice differs by version
    tree = saved_tree(run, contents)
    files: dict[str, Any] = {}
    is_small = sum(array.nbytes for array in contents.arrays.values()) <= LARGEST_IN_MEMORY
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree.to_zarr(
            zarr.storage.MemoryStore(files) if is_small else path,
            zarr_format=2,
            write_empty_chunks=True,
            encoding=encodings(tree, {"compressors": blosc}, {"compressors": None}, "chunks"),
        )
    for name, content in files.items():
        file = path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.to_bytes())


def read_zarr(path: Path) -> tuple[Contents, str]:
    """Contents and checksum of a folder of ``write_zarr``, or of such a folder in a zip file."""
    if path.is_dir():
        return read_store(zarr_reader.files_of_folder(path))
    with open_archive(path, (zipfile.ZIP_STORED,)) as (archive, members):
        return read_store(zarr_reader.files_of_archive(archive, members))


def read_store(files: zarr_reader.Files) -> tuple[Contents, str]:
    """Contents and checksum of the files of a Zarr folder."""
    zarr_reader.check_group(files, "")
    return read_groups(
        lambda group, variable: zarr_reader.open_array(files, group, variable), sum(files.sizes.values())
    )


def read_groups(open_array: Callable[[str, str], StoredArray], size: int) -> tuple[Contents, str]:
    """Contents and checksum of an open file of ``size`` bytes; all its arrays are checked before one is read."""
    allowance = Allowance(size)
    texts = {}
    for name in (HEADER, CHECKSUM, PLACES):
        stored = open_array("run", name)
        if stored.dtype != np.uint8 or len(stored.shape) != 1:
            raise LoadError(f"{name!r} must be a row of bytes, got shape {stored.shape} of {stored.dtype}")
        allowance.take(name, stored.n_bytes)
        texts[name] = stored
    check_header_length(texts[HEADER].n_bytes, size - min(size, texts[HEADER].n_bytes))
    if texts[PLACES].n_bytes > LONGEST_PLACES:
        raise LoadError(f"{PLACES!r} has {texts[PLACES].n_bytes} bytes, and may have {LONGEST_PLACES}")
    places = {
        name: checked_place(name, fields) for name, fields in parse_json(PLACES, texts[PLACES].read().tobytes()).items()
    }
    used = [(place.group, place.variable) for place in places.values() if place.group]
    if len(set(used)) < len(used):
        raise LoadError("two of its arrays have the same place")
    found = {name: open_array(place.group, place.variable) for name, place in places.items() if place.group}
    for name, stored in found.items():
        allowance.take(name, stored.n_bytes)
    arrays = {}
    for name, place in places.items():
        values = found[name].read() if place.group else empty(name, place)
        arrays[name] = unfold(values, place.folds) if place.folds else values
    return Contents(as_text(texts[HEADER].read()), arrays), as_text(texts[CHECKSUM].read())


def checked_place(name: str, fields: Any) -> Place:
    """The place that a file says of an array. Raises LoadError where it is none."""
    if not isinstance(fields, list) or not 2 <= len(fields) <= 4 or not all(isinstance(f, str) for f in fields[:2]):
        raise LoadError(f"the place of {shown(name)} is malformed: {shown(fields)}")
    place = Place(*fields)
    if type(place.folds) is not int or not 0 <= place.folds < 2**31:
        raise LoadError(f"the replicas of {shown(name)} must be an integer ≥ 0, got {shown(place.folds)}")
    return place._replace(shape=checked_shape(name, list(place.shape)))


def empty(name: str, place: Place) -> Values:
    """An empty array."""
    if math.prod(place.shape) != 0:
        raise LoadError(f"{shown(name)} has no place, but entries: shape {shown(place.shape)}")
    return np.empty(place.shape, checked_dtype(name, place.variable))


def unfold(values: Values, replicas: int) -> Values:
    """The inverse of ``fold``: (chain, draw · replica, …) → (chain, replica, draw, …)."""
    parts = values.reshape(len(values), values.shape[1] // replicas, replicas, *values.shape[2:])
    result = np.ascontiguousarray(np.swapaxes(parts, 1, 2))
    assert fold(result).shape == values.shape
    return result
