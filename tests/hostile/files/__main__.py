"""``python -m tests.hostile.files [WORDS]``: load all hostile files, or those of family or name WORDS; counts."""

import importlib.metadata
import platform
import sys
import tempfile
from collections import Counter
from pathlib import Path

from .attempts import ATTACKS, MOST, attempts

PACKAGES = ("numpy", "numba", "xarray", "h5netcdf", "h5py", "zarr", "numcodecs")


def kind_of(came: str) -> str:
    """The column that an outcome counts in."""
    first = came.split(",")[0].split(":")[0].split()[0]
    known = {"refused", "taken", "hangs", "crashed", "executed", "memory"}
    return first if first in known else "otherwise"


def main(words: str = "") -> int:
    """Print a line for each family, and the attacks that were not refused."""
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in PACKAGES)
    print(f"Python {platform.python_version()}, {versions}")
    attacks = [attack for attack in ATTACKS if words in f"{attack.family}: {attack.name}"]
    with tempfile.TemporaryDirectory() as folder:
        outcomes = attempts(Path(folder), attacks)
    columns = ("refused", "executed", "hangs", "crashed", "memory", "taken", "otherwise")
    print(f"{'family':32}{'files':>7}" + "".join(f"{column:>10}" for column in columns) + f"{'MB':>7}{'s':>7}")
    for family in [*dict.fromkeys(attack.family for attack in attacks), ""]:
        mine = [outcome for outcome in outcomes if not family or outcome.attack.family == family]
        counts = Counter(kind_of(outcome.came) for outcome in mine)
        peak, slowest = max(o.memory for o in mine) >> 20, max(o.took for o in mine)
        numbers = "".join(f"{counts[column]:>10}" for column in columns)
        print(f"{family or 'all':32}{len(mine):>7}{numbers}{peak:>7}{slowest:>7.2f}")
    got_through = [outcome for outcome in outcomes if not outcome.is_refused]
    for outcome in got_through:
        print(f"  {outcome.attack.family}: {outcome.attack.name}: {outcome.came}")
    print(f"{len(outcomes)} files, {len(got_through)} not refused; a refusal may take {MOST >> 20} MB and 5 s")
    return int(bool(got_through))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
