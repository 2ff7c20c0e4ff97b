"""The three formats of a saved run: NPZ of NumPy alone, netCDF-4 and Zarr as ArviZ reads them."""

import json
import math
import warnings
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._engine.record import RunRecord, fold
from ...errors import LoadError, optional
from .datatree import Place, build_groups, build_tree
from .run_contents import Contents

Values = NDArray[Any]
HEADER, CHECKSUM, PLACES = "header", "checksum", "places"
PART, PARTS, WORTH = 1 << 14, 8, 0.8  # compressed where some 16 KB parts shrink to four fifths or less
LARGEST_CHUNK = 8 << 20  # bytes


def as_bytes(text: str) -> Values:
    """Text as an array, which every format holds alike."""
    return np.frombuffer(text.encode(), np.uint8)


def as_text(values: Any) -> str:
    """What ``as_bytes`` was given."""
    return np.asarray(values, np.uint8).tobytes().decode()


def shrinks(array: Values) -> bool:
    """Whether compression pays, by the look of some parts: counts and tables shrink, random mantissas do not."""
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
            archive.compression = zipfile.ZIP_DEFLATED if shrinks(array) else zipfile.ZIP_STORED  # of the next member
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
    """One array of an archive, whose header must not promise more than the ``size`` bytes there are."""
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
    """A shape of at most ``LARGEST_CHUNK`` bytes, cut along the first axes first."""
    cut = list(shape)
    for axis in range(len(cut)):
        rest = math.prod(cut[axis + 1 :]) * itemsize
        cut[axis] = max(1, min(cut[axis], LARGEST_CHUNK // max(rest, 1)))
    return tuple(cut)


def encodings(tree: Any, compressed: dict[str, Any], plain: dict[str, Any], chunk_name: str) -> dict[str, Any]:
    """How every variable is written: no value stands for a missing one, and compressed where that pays."""
    found: dict[str, Any] = {}
    for node in tree.subtree:
        found[node.path] = {}
        for name, variable in node.to_dataset(inherit=False).variables.items():
            options = {"_FillValue": None, **plain}
            if variable.dtype.kind in "biuf" and variable.size and shrinks(variable.values):
                options = {"_FillValue": None, **compressed}
                options[chunk_name] = chunks(variable.shape, variable.dtype.itemsize)
            elif variable.size and chunk_name == "chunks":
                options[chunk_name] = chunks(variable.shape, variable.dtype.itemsize)
            found[node.path][name] = options
    return found


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
        return gathered(file)


def write_zarr(run: RunRecord, contents: Contents, path: Path) -> None:
    """Write the run's tree as a Zarr folder of version 2, which every reader knows."""
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
        return gathered(zarr.open_group(str(path), mode="r"))
    with zarr.storage.ZipStore(path, mode="r") as store:
        return gathered(zarr.open_group(store, mode="r"))


def gathered(root: Any) -> tuple[Contents, str]:
    """Contents and checksum from a file with groups of arrays."""
    own = root["run"]
    header, checksum = as_text(own[HEADER][...]), as_text(own[CHECKSUM][...])
    arrays = {}
    for name, given in json.loads(as_text(own[PLACES][...])).items():
        place = Place(*given)
        if not place.group:
            arrays[name] = empty(place)
            continue
        values = np.asarray(root[place.group][place.variable][...])
        arrays[name] = unfolded(values, place.folds) if place.folds else values
    return Contents(header, arrays), checksum


def empty(place: Place) -> Values:
    """An array without entries."""
    if math.prod(place.shape) != 0 or np.dtype(place.variable).kind not in "biuf":
        raise LoadError("an array that has no place has entries")
    return np.empty(tuple(place.shape), place.variable)


def unfolded(values: Values, replicas: int) -> Values:
    """What ``fold`` made (chain, draw · replica, …) of, (chain, replica, draw, …)."""
    parts = values.reshape(len(values), values.shape[1] // replicas, replicas, *values.shape[2:])
    back = np.ascontiguousarray(np.swapaxes(parts, 1, 2))
    assert fold(back).shape == values.shape
    return back
