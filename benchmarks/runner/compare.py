"""Ratios that fell since the committed tables: ``python -m benchmarks compare [new] [committed]``.

A column whose name begins with "×" is a ratio, the larger the better; the columns before the first of these name the
row. A ratio is flagged that is less than 85 % of the committed one, and a row that is gone. Exit status 1 where
anything is flagged.
"""

import csv
from pathlib import Path

NEW = Path("benchmarks/out/bench")
COMMITTED = Path("benchmarks/measured")
KEPT = 0.85  # of a ratio
MARK = "×"

Ratios = dict[tuple[str, ...], dict[str, float]]


def number(cell: str) -> float | None:
    """A cell's number, if it is one."""
    try:
        return float(cell)
    except ValueError:
        return None


def ratios(path: Path) -> Ratios:
    """The ratios of a table by the cells that name the row, by column."""
    with path.open(encoding="utf-8", newline="") as file:
        columns, *rows = csv.reader(file)
    first = next((k for k, name in enumerate(columns) if name.startswith(MARK)), len(columns))
    named: Ratios = {}
    for cells in rows:
        values = {name: number(cell) for name, cell in zip(columns, cells, strict=True) if name.startswith(MARK)}
        named[tuple(cells[:first])] = {name: value for name, value in values.items() if value is not None}
    return named


def fallen(new: Path, committed: Path) -> tuple[list[str], int]:
    """What is worse in the tables of ``new`` than in those of ``committed``, and how many ratios were compared."""
    flagged, compared = [], 0
    for path in sorted(committed.glob("*.csv")):
        if not (new / path.name).exists():
            flagged.append(f"{path.stem}: the table is gone")
            continue
        now = ratios(new / path.name)
        for row, before in ratios(path).items():
            name = f"{path.stem}: {', '.join(row)}"
            if row not in now:
                flagged.append(f"{name}: the row is gone")
                continue
            for column, value in before.items():
                compared += 1
                after = now[row].get(column)
                if after is None or after < KEPT * value:
                    flagged.append(f"{name}: {column} {value:g} → {'nothing' if after is None else f'{after:g}'}")
    return flagged, compared


def main(arguments: list[str]) -> int:
    """Print what fell; the exit status."""
    new, committed = (Path(one) for one in (arguments + [str(NEW), str(COMMITTED)][len(arguments) :]))
    for folder, how in ((new, "make bench"), (committed, "copy the tables of a quiet run there")):
        if not list(folder.glob("*.csv")):
            print(f"no tables in {folder}: {how}")
            return 2
    flagged, compared = fallen(new, committed)
    print(f"{compared} ratios compared with {committed}, {len(flagged)} flagged")
    print("\n".join(flagged))
    return int(bool(flagged))
