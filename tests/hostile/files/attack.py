"""What all hostile files are made of: a small run in every format, and ways to write what no writer would write.

An attack is a function of a folder that writes a hostile file there and returns its path. ``CANARY`` in its folder is
what code of the file would write.
"""

import hashlib
import io
import json
import shutil
import struct
import warnings
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

FORMATS = (".npz", ".nc", ".zarr", ".zarr.zip")
BASE = "base"  # beside the attacks' folders: the good files
CANARY = "canary"
GIANT = 3 << 30  # bytes that bombs inflate to, or ask for
STEPS = {"n_steps": 60, "burn_in": 20, "thin": 2, "n_chains": 2, "seed": 7}


class Attack(NamedTuple):
    """A hostile file. kind: "load", or "checkpoint" for a run that would go on from it."""

    family: str
    name: str
    build: Callable[[Path], Path]
    kind: str = "load"


class Canary:
    """What writes a file when a pickle of it is loaded."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / CANARY

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


def base_call() -> Any:
    """The run that is attacked: a weighted one with a trace, all replicas and energies kept."""
    from tests.support.saving_cases import BOX, NAMED

    return BOX, NAMED["icsgld"], {**STEPS, "keep_energies": True, "trace_every": 7, "keep_replicas": True}


def make_base(folder: Path) -> None:
    """The good files: a run in each format, a larger one with compressed arrays, a checkpoint."""
    from tests.support.saving_cases import NAMED
    from toolkit import sample

    folder.mkdir()
    warnings.simplefilter("ignore")
    problem, sampler, options = base_call()
    run = sample(problem, sampler, **options)
    larger = sample(problem, NAMED["r2sgld"], **{**STEPS, "n_steps": 12_000, "thin": 1})
    for suffix in FORMATS:
        run.save(folder / f"run{suffix}")
        larger.save(folder / f"larger{suffix}")
    sample(problem, sampler, **{**options, "n_steps": 40}, checkpoint=folder / "saved", checkpoint_every=1e-6)
    for extra in ("saved.previous", "saved.writing"):
        (folder / extra).unlink(missing_ok=True)


def base(folder: Path, suffix: str, name: str = "run") -> Path:
    """The good file of that suffix, for an attack in ``folder``."""
    return folder.parent / BASE / f"{name}{suffix}"


def numbers(text: bytes) -> bytes:
    """Bytes as an NPY array."""
    file = io.BytesIO()
    np.lib.format.write_array(file, np.frombuffer(text, np.uint8))
    return file.getvalue()


def npy(header: str | bytes, data: bytes = b"", version: int = 1) -> bytes:
    """An NPY array with a header as given."""
    text = header.encode() if isinstance(header, str) else header
    return b"\x93NUMPY" + bytes((version, 0)) + len(text).to_bytes(2 if version == 1 else 4, "little") + text + data


def npy_header(descr: str, shape: str) -> str:
    """A header like NumPy's, with text put in."""
    return f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"


def npz_members(folder: Path, name: str = "run") -> dict[str, bytes]:
    """The members of the good NPZ file, unpacked."""
    with zipfile.ZipFile(base(folder, ".npz", name)) as archive:
        return {member: archive.read(member) for member in archive.namelist()}


def write_zip(path: Path, members: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> Path:
    """An archive."""
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data, method)
    return path


def zeros_deflated(length: int) -> bytes:
    """Zeros, deflated without holding them: one block of 16 MB again and again."""
    block = 16 << 20
    deflate = zlib.compressobj(1, zlib.DEFLATED, -15)
    piece = deflate.compress(bytes(block)) + deflate.flush(zlib.Z_FULL_FLUSH)
    return piece * (length // block) + zlib.compressobj(9, zlib.DEFLATED, -15).flush()


class Member(NamedTuple):
    """A member of an archive written byte by byte, with whatever is to be said of it."""

    name: bytes
    data: bytes  # as in the file
    size: int  # as said
    method: int = 0
    crc: int = 0
    flags: int = 0
    mode: int = 0
    offset: int | None = None  # another one's
    local_name: bytes | None = None
    said: int | None = None  # bytes in the file, as said


def raw_zip(members: list[Member], *, offset_error: int = 0, count_error: int = 0, comment: bytes = b"") -> bytes:
    """An archive as the ``members`` say."""
    body, central = bytearray(), bytearray()
    for member in members:
        said = len(member.data) if member.said is None else member.said
        offset = len(body) if member.offset is None else member.offset
        local = member.name if member.local_name is None else member.local_name
        numbers_ = (member.crc, said, member.size)
        if member.offset is None:
            body += struct.pack(
                "<4s5H3L2H", b"PK\3\4", 20, member.flags, member.method, 0, 33, *numbers_, len(local), 0
            )
            body += local + member.data
        central += (
            struct.pack(
                "<4s6H3L5H2L",
                b"PK\1\2",
                0x314,
                20,
                member.flags,
                member.method,
                0,
                33,
                *numbers_,
                len(member.name),
                0,
                0,
                0,
                0,
                member.mode << 16,
                offset,
            )
            + member.name
        )
    count = len(members) + count_error
    end = (count % 2**16, count % 2**16, len(central), len(body) + offset_error, len(comment))
    return bytes(body + central) + struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, *end) + comment


def plain(name: str, data: bytes, **other: Any) -> Member:
    """A member that is stored, and right but for what is given."""
    return Member(name.encode(), data, len(data), crc=zlib.crc32(data))._replace(**other)


Files = dict[str, bytes]


def zarr_files(folder: Path, name: str = "run") -> Files:
    """The files of the good Zarr folder."""
    place = base(folder, ".zarr", name)
    return {file.relative_to(place).as_posix(): file.read_bytes() for file in place.rglob("*") if file.is_file()}


def write_store(folder: Path, suffix: str, files: Files) -> Path:
    """A Zarr folder, or one in a ZIP file."""
    path = folder / f"run{suffix}"
    if suffix == ".zarr.zip":
        return write_zip(path, files)
    for name, data in files.items():
        file = path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    return path


def with_metadata(files: Files, array: str, **changes: Any) -> Files:
    """The files with other metadata of an array, also in the consolidated ones."""
    info = {**json.loads(files[f"{array}/.zarray"]), **changes}
    files[f"{array}/.zarray"] = json.dumps(info).encode()
    if ".zmetadata" in files:
        whole = json.loads(files[".zmetadata"])
        whole["metadata"][f"{array}/.zarray"] = info
        files[".zmetadata"] = json.dumps(whole).encode()
    return files


def with_text(files: Files, name: str, text: bytes) -> Files:
    """The files with another header, checksum or places."""
    files[f"run/{name}/0"] = text
    return with_metadata(files, f"run/{name}", shape=[len(text)], chunks=[max(1, len(text))], compressor=None)


def copied(folder: Path, suffix: str, name: str = "run") -> Path:
    """A copy of the good file."""
    source, path = base(folder, suffix, name), folder / f"run{suffix}"
    return Path(shutil.copytree(source, path) if source.is_dir() else shutil.copy(source, path))


def checksum_of(header: str, arrays: dict[str, Any]) -> str:
    """As ``Contents.checksum``."""
    digest = hashlib.sha256(header.encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"\0{name}\0{array.dtype.str}\0{array.shape}\0".encode())
        digest.update(array.reshape(-1).view(np.uint8).tobytes())
    return digest.hexdigest()


def run_arrays(folder: Path) -> tuple[str, dict[str, Any]]:
    """Header and arrays of the good NPZ file."""
    with np.load(base(folder, ".npz"), allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    header = arrays.pop("header").tobytes().decode()
    del arrays["checksum"]
    return header, arrays


def write_run(folder: Path, header: str, arrays: dict[str, Any], suffix: str = ".npz") -> Path:
    """A file of that header, with a checksum that fits; only an NPZ file may have other arrays."""
    checksum = checksum_of(header, arrays).encode()
    if suffix == ".npz":
        path = folder / "run.npz"
        texts = {"header": np.frombuffer(header.encode(), np.uint8), "checksum": np.frombuffer(checksum, np.uint8)}
        np.savez_compressed(path, **arrays, **texts)
        return path
    if suffix == ".nc":
        import h5py

        path = copied(folder, suffix)
        with h5py.File(path, "r+") as file:
            for name, text in (("header", header.encode()), ("checksum", checksum)):
                del file[f"run/{name}"]
                file[f"run/{name}"] = np.frombuffer(text, np.uint8)
        return path
    return write_store(
        folder, suffix, with_text(with_text(zarr_files(folder), "header", header.encode()), "checksum", checksum)
    )
