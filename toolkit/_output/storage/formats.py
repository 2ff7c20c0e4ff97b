"""The three formats of a saved run: NumPy's NPZ, and netCDF-4 and Zarr as ArviZ reads them."""

import json
import math
import warnings
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._engine.run_record import RunRecord, fold
from ...errors import LoadError, optional
from .datatree import Place, build_groups, build_tree
from .run_contents import Contents

Values = NDArray[Any]
HEADER, CHECKSUM, PLACES = "header", "checksum", "places"
PART, PARTS, WORTH = 1 << 14, 8, 0.8  # arrays are compressed if 8 sampled parts of 16 KB shrink to four fifths or less
LARGEST_CHUNK = 8 << 20  # bytes


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


def write_npz(run: RunRecord, contents: Contents, path: Path) -> None:
    """Write ``contents`` as NumPy's archive of arrays."""
    texts = {HEADER: as_bytes(contents.header), CHECKSUM: as_bytes(contents.checksum)}
    with zipfile.ZipFile(path, "w", allowZip64=True, compresslevel=1) as archive:
        for name, array in {**contents.arrays, **texts}.items():
            archive.compression = zipfile.ZIP_DEFLATED if is_compressible(array) else zipfile.ZIP_STORED  # of the next
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, array, allow_pickle=False)


def read_npz(path: Path) -> tuple[Contents, str]:
    """Contents and checksum of a file of ``write_npz``."""
    arrays = {}
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            with archive.open(member) as file:
                arrays[member.filename.removesuffix(".npy")] = read_member(file, member.file_size)
    header, checksum = arrays.pop(HEADER), arrays.pop(CHECKSUM)
    return Contents(as_text(header), arrays), as_text(checksum)


def read_member(file: Any, size: int) -> Values:
    """One array of an archive, whose header must fit its ``size`` bytes."""
    version = np.lib.format.read_magic(file)
    read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}.get(version)
    if read is None:
        raise LoadError(f"its arrays are of an unknown version {version}")
    shape, by_column, dtype = read(file)
    if dtype.kind not in "biuf" or math.prod(shape) * dtype.itemsize + file.tell() != size:
        raise LoadError("an array is not as long as it says, or holds no numbers")
    values = np.empty(math.prod(shape), dtype)
    file.readinto(values.view(np.uint8))
    return values.reshape(shape, order="F" if by_column else "C")


def saved_tree(run: RunRecord, contents: Contents) -> Any:
    """The run's tree, with header, checksum and the places of its arrays."""
    tree = build_groups(run, contents)
    places = json.dumps({name: list(place) for name, place in tree.places.items()}, ensure_ascii=False)
    for name, text in ((HEADER, contents.header), (CHECKSUM, contents.checksum), (PLACES, places)):
        tree.groups["run"][name] = ((f"{name}_bytes",), as_bytes(text), "for toolkit.load")
    return build_tree(run, tree, contents, None)


def chunks(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """A chunk's shape, of at most ``LARGEST_CHUNK`` bytes; the first axes are cut first."""
    cut = list(shape)
    for axis in range(len(cut)):
        rest = math.prod(cut[axis + 1 :]) * itemsize
        cut[axis] = max(1, min(cut[axis], LARGEST_CHUNK // max(rest, 1)))
    return tuple(cut)


def encodings(tree: Any, compressed: dict[str, Any], plain: dict[str, Any], chunk_name: str) -> dict[str, Any]:
    """Encoding of every variable: no fill value, and compressed if that pays."""
    options_of_group: dict[str, Any] = {}
    for node in tree.subtree:
        options_of_group[node.path] = {}
        for name, variable in node.to_dataset(inherit=False).variables.items():
            options = {"_FillValue": None, **plain}
            if variable.dtype.kind in "biuf" and variable.size and is_compressible(variable.values):
                options = {"_FillValue": None, **compressed}
                options[chunk_name] = chunks(variable.shape, variable.dtype.itemsize)
            elif variable.size and chunk_name == "chunks":
                options[chunk_name] = chunks(variable.shape, variable.dtype.itemsize)
            options_of_group[node.path][name] = options
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
    with h5py.File(path, "r") as file:
        return read_groups(file)


def write_zarr(run: RunRecord, contents: Contents, path: Path) -> None:
    """Write the run's tree as a Zarr folder of version 2, which all readers support."""
    optional("zarr", "io")
    tree = saved_tree(run, contents)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree.to_zarr(
            path, zarr_format=2, write_empty_chunks=True, encoding=encodings(tree, {}, {"compressors": None}, "chunks")
        )


def read_zarr(path: Path) -> tuple[Contents, str]:
    """Contents and checksum of a folder of ``write_zarr``, or of such a folder in a zip file."""
    zarr = optional("zarr", "io")
    if path.is_dir():
        return read_groups(zarr.open_group(str(path), mode="r"))
    with zarr.storage.ZipStore(path, mode="r") as store:
        return read_groups(zarr.open_group(store, mode="r"))


def read_groups(root: Any) -> tuple[Contents, str]:
    """Contents and checksum of an open file with groups of arrays."""
    run_group = root["run"]
    header, checksum = as_text(run_group[HEADER][...]), as_text(run_group[CHECKSUM][...])
    arrays = {}
    for name, fields in json.loads(as_text(run_group[PLACES][...])).items():
        place = Place(*fields)
        if not place.group:
            arrays[name] = empty(place)
            continue
        values = np.asarray(root[place.group][place.variable][...])
        arrays[name] = unfold(values, place.folds) if place.folds else values
    return Contents(header, arrays), checksum


def empty(place: Place) -> Values:
    """An empty array."""
    if math.prod(place.shape) != 0 or np.dtype(place.variable).kind not in "biuf":
        raise LoadError("an array that has no place has entries")
    return np.empty(tuple(place.shape), place.variable)


def unfold(values: Values, replicas: int) -> Values:
    """The inverse of ``fold``: (chain, draw · replica, …) → (chain, replica, draw, …)."""
    parts = values.reshape(len(values), values.shape[1] // replicas, replicas, *values.shape[2:])
    result = np.ascontiguousarray(np.swapaxes(parts, 1, 2))
    assert fold(result).shape == values.shape
    return result
