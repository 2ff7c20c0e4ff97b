"""What is at the path is no file: FIFOs, devices, sockets, folders, links; and the same in a Zarr folder."""

import os
import shutil
import socket
from pathlib import Path

from .attack import FORMATS, Attack, base, copied


def fifo(path: Path) -> None:
    os.mkfifo(path)


def listening(path: Path) -> None:
    here = os.getcwd()
    os.chdir(path.parent)  # a socket's path has at most 108 bytes
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


def folder_there(path: Path) -> None:
    path.mkdir()


def link_to(target):
    return lambda path: path.symlink_to(target)


def link_to_fifo(path: Path) -> None:
    os.mkfifo(path.parent / "pipe")
    path.symlink_to(path.parent / "pipe")


def nested_folder(path: Path) -> None:
    path.mkdir()
    (path / "run").mkdir()


KINDS = {
    "a fifo": fifo,
    "a socket": listening,
    "a folder": folder_there,
    "a link to zeros": link_to("/dev/zero"),
    "a link to randomness": link_to("/dev/urandom"),
    "a link to nothing": link_to("/dev/null"),
    "a link to a fifo": link_to_fifo,
    "a link to a folder": link_to("/etc"),
    "a link to memory": link_to("/proc/self/mem"),
    "a link to itself": lambda path: path.symlink_to(path),
    "a folder of a folder": nested_folder,
    "a link to the terminal": link_to("/dev/ptmx"),
}
INSIDE = {
    "a chunk": "weighted_posterior/x/0.0.0",
    "metadata": "weighted_posterior/x/.zarray",
    "the header": "run/header/0",
    "a group": "weighted_posterior/.zgroup",
    "the root": ".zgroup",
    "an array": "weighted_posterior/x",
    "a whole group": "weighted_posterior",
    "something else": "run/more",
    "consolidated metadata": ".zmetadata",
}


def at_path(make, suffix):
    def build(folder: Path) -> Path:
        path = folder / f"run{suffix}"
        make(path)
        return path

    return build


def inside(make, name):
    """The good folder with one of its files replaced."""

    def build(folder: Path) -> Path:
        path = copied(folder, ".zarr")
        place = path / name
        if place.is_dir():
            shutil.rmtree(place)
        place.unlink(missing_ok=True)
        make(place)
        return path

    return build


def link_out(name):
    """A link to the same file of the good folder, whose bytes would fit."""

    def build(folder: Path) -> Path:
        return inside(link_to(base(folder, ".zarr") / name), name)(folder)

    return build


def deep(folder: Path) -> Path:
    path = copied(folder, ".zarr")
    place = path
    for _ in range(300):
        place = place / "d"
    os.makedirs(place)
    return path


def loop(folder: Path) -> Path:
    path = copied(folder, ".zarr")
    (path / "run" / "up").symlink_to(path)
    return path


ATTACKS = [
    *(
        Attack("places: at the path", f"{name}{suffix}", at_path(make, suffix))
        for name, make in KINDS.items()
        for suffix in FORMATS
    ),
    *(
        Attack("places: in a Zarr folder", f"{what} is {kind}", inside(make, name))
        for what, name in INSIDE.items()
        for kind, make in {"a fifo": fifo, "a socket": listening, "a link to zeros": link_to("/dev/zero")}.items()
    ),
    *(
        Attack("places: in a Zarr folder", f"{what} is a link out", link_out(name))
        for what, name in INSIDE.items()
        if name != "run/more"
    ),
    Attack("places: in a Zarr folder", "300 folders deep", deep),
    Attack("places: in a Zarr folder", "a link to the folder itself", loop),
]
