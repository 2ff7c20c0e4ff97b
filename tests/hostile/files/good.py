"""``python -m tests.hostile.files.good [FOLDER]``: good files are loaded, their bits compared with the runs; a count.

Runs of every sampler, with walls and weights and a trace, and with each thing that can be kept, in all formats; and
the files of earlier versions. FOLDER keeps what is saved, and where another environment has saved there before, its
files are loaded as well.
"""

import importlib.metadata
import sys
import tempfile
import warnings
import zipfile
from pathlib import Path

from tests.support.saving_cases import BOX, FORMATS, NAMED, ROOT, assert_same, assert_same_run, run_of
from toolkit import Run, load

from .__main__ import PACKAGES

EVERYTHING = {"keep_energies": True, "trace_every": 7, "keep_replicas": True}
KEPT = ({}, {"keep_energies": True}, {"trace_every": 1}, {"keep_statistics": False}, {"keep_draws": False},
        {"thin": 40}, {"n_steps": 9000, "thin": 1, "keep_energies": True})  # fmt: skip
RUNS = {
    **{name: (name, EVERYTHING) for name in NAMED},
    **{f"{name}_{i}": (name, kept) for name in ("icsgld", "r2sgld") for i, kept in enumerate(KEPT)},
}
NOT_COMPARED = ("problem", "made_with", "elapsed")  # of files of another environment


def own(folder: Path) -> int:
    """Save and load every run; the number of files whose bits were equal."""
    count = 0
    for name, (sampler, options) in RUNS.items():
        run = run_of(NAMED[sampler], **options)
        for suffix in FORMATS:
            run.save(folder / f"{name}{suffix}")
            assert_same_run(run, load(folder / f"{name}{suffix}", BOX))
            count += 1
    return count


def others(folder: Path, kept: Path) -> int:
    """Load the files that another environment saved; the number of those whose bits are those of this one's."""
    count = 0
    for path in sorted(kept.iterdir()):
        here, there = load(folder / path.name, BOX), load(path, BOX)
        for field in Run.__dataclass_fields__.keys() - NOT_COMPARED:
            assert_same(getattr(here, field), getattr(there, field))
        count += 1
    return count


def earlier(folder: Path) -> int:
    """Load the files of earlier versions; their number."""
    stored = ROOT / "tests" / "data" / "runs_of_2026_11.zip"
    with zipfile.ZipFile(stored) as archive:
        archive.extractall(folder)
    return len([load(path) for path in sorted(folder.iterdir())])


def main(kept: str | None = None) -> None:
    """Print the counts."""
    warnings.simplefilter("ignore")
    print(", ".join(f"{name} {importlib.metadata.version(name)}" for name in PACKAGES))
    with tempfile.TemporaryDirectory() as folder:
        here, before = Path(folder) / "here", Path(folder) / "before"
        here.mkdir(), before.mkdir()
        print(f"{own(here)} files saved and loaded with equal bits, {earlier(before)} of earlier versions loaded")
        if kept is not None:
            place = Path(kept)
            if place.exists():
                print(f"{others(here, place)} files of another environment loaded, with the bits of this one's")
            else:
                here.rename(place)


if __name__ == "__main__":
    main(*sys.argv[1:])
