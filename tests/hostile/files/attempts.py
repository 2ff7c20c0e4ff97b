"""All hostile files built, loaded in processes of their own, and counted."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from . import checkpoint_attacks, header_attacks, netcdf_attacks, place_attacks, zarr_attacks, zip_attacks
from .attack import BASE, CANARY, FORMATS, Attack, make_base

ATTACKS: list[Attack] = [
    *zip_attacks.ATTACKS,
    *zarr_attacks.ATTACKS,
    *netcdf_attacks.ATTACKS,
    *header_attacks.ATTACKS,
    *place_attacks.ATTACKS,
    *checkpoint_attacks.ATTACKS,
]
ROOM = 2 << 30  # bytes of address space for what a file asks for
MOST = 1 << 30  # bytes of memory that a refusal may take on its way
BATCH = 120  # files that are on the disk at a time


class Outcome(NamedTuple):
    """What came of one attack. came: "refused", or what is wrong; took: seconds; memory: bytes at the peak."""

    attack: Attack
    came: str
    took: float
    memory: int

    @property
    def is_refused(self) -> bool:
        """Whether it was refused as it must be."""
        return self.came == "refused"


def attempts(folder: Path, attacks: Sequence[Attack]) -> list[Outcome]:
    """The outcome of each attack; files are made in ``folder``, beside the good ones, and removed."""
    if not (folder / BASE).exists():
        make_base(folder / BASE)
    outcomes = []
    for first in range(0, len(attacks), BATCH):
        outcomes += batch(folder, attacks[first : first + BATCH])
    return outcomes


def batch(folder: Path, attacks: Sequence[Attack]) -> list[Outcome]:
    """The outcomes of some attacks, whose files are there together."""
    folders = [folder / f"a{i}" for i in range(len(attacks))]
    paths = []
    for attack, place in zip(attacks, folders, strict=True):
        place.mkdir()
        paths.append(attack.build(place))
    found: dict[int, dict[str, Any]] = {}
    while len(found) < len(attacks):
        left = [[i, attacks[i].kind, str(paths[i])] for i in range(len(attacks)) if i not in found]
        found |= loaded(folder, left)
    outcomes = []
    for i, (attack, place) in enumerate(zip(attacks, folders, strict=True)):
        came = found[i]["came"]
        if (place / CANARY).exists():
            came = f"executed, and {came}"
        victim = place / "victim"
        if victim.exists() and victim.read_bytes() != b"kept":
            came = f"overwrote another's file, and {came}"
        if came == "refused" and found[i]["memory"] > MOST:
            came = f"memory, {found[i]['memory'] >> 20} MB"
        outcomes.append(Outcome(attack, came, found[i]["took"], found[i]["memory"]))
        shutil.rmtree(place)
    return outcomes


def loaded(folder: Path, files: list[list[Any]]) -> dict[int, dict[str, Any]]:
    """What one process said of the files, up to the one that ended it."""
    plan, said = folder / "plan.json", folder / "said"
    plan.write_text(
        json.dumps({"folder": str(folder), "room": ROOM, "formats": FORMATS, "files": files}), encoding="utf-8"
    )
    said.write_text("", encoding="utf-8")
    with (folder / "errors").open("w", encoding="utf-8") as errors:
        code = subprocess.run(
            [sys.executable, "-m", "tests.hostile.files.worker", str(plan)],
            stdin=subprocess.DEVNULL,
            stdout=errors,
            stderr=errors,
            env=dict(os.environ),
            check=False,
        ).returncode
    lines = [json.loads(line) for line in said.read_text(encoding="utf-8").splitlines()]
    found = {line["ended"]: line for line in lines if "ended" in line}
    begun = {line["begun"] for line in lines if "begun" in line} - found.keys()
    if code and not begun:
        raise RuntimeError(f"the process that loads ended by itself: {(folder / 'errors').read_text()[-2000:]}")
    ends = "hangs" if code == 1 else f"crashed, {code}"
    return found | {number: {"came": ends, "took": 5.0, "memory": 0} for number in begun}
