"""referee: inputs that others found the package wrong on, before the repairs and now, by point of their report."""

import argparse
import csv
import importlib
import pkgutil
import sys
from collections import Counter
from pathlib import Path

from benchmarks.runner.tables import line

from . import __path__ as folder
from .case import LONGEST, Case, Outcome

TABLE = "referee_before"
BEFORE = Path(__file__).resolve().parents[2] / "measured" / f"{TABLE}.csv"
COLUMNS = ("point", "case", "posed by", "right", "before", "now", "what is said now")
NOT_CASES = ("__main__", "case")


def all_cases() -> list[Case]:
    """The cases of every module of this folder, by point."""
    names = [module.name for module in pkgutil.iter_modules(folder) if module.name not in NOT_CASES]
    found = [case for name in names for case in importlib.import_module(f"{__package__}.{name}").CASES]
    return sorted(found, key=lambda case: case.point)


def outcomes_before() -> dict[tuple[int, str], Outcome]:
    """Outcomes before the repairs, by point and name."""
    with open(BEFORE, encoding="utf-8", newline="") as file:
        return {(int(row["point"]), row["case"]): Outcome(row["kind"], row["shown"]) for row in csv.DictReader(file)}


def main(arguments: list[str]) -> int:
    """Print the table; the exit status, 1 where a case is silent."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks evidence referee", description=__doc__)
    parser.add_argument("points", nargs="*", type=int, metavar="POINT", help="numbers of points; none: all")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the outcomes to FILE as CSV")
    given = parser.parse_args(arguments)
    cases = [case for case in all_cases() if not given.points or case.point in given.points]
    before = outcomes_before() if BEFORE.exists() else {}
    rows: list[tuple[int, str, str, str]] = []
    counts: Counter[tuple[str, str, str]] = Counter()
    print(line(COLUMNS) + "\n|" + " --- |" * len(COLUMNS), flush=True)
    for case in cases:
        now = case.run()
        old = before.get((case.point, case.name))
        shown = " ".join(now.shown.split())
        cells = (case.point, case.name, case.posed, case.right, old.kind if old else "–", now.kind, shown[:LONGEST])
        print(line(cells), flush=True)
        rows.append((case.point, case.name, now.kind, shown))
        counts[case.posed, "now", now.kind] += 1
        counts[case.posed, "before", old.kind if old else "–"] += 1
    for posed in ("others", "ours"):
        for when in ("before", "now"):
            found = {kind: n for (who, at, kind), n in sorted(counts.items()) if (who, at) == (posed, when)}
            print(f"\nposed by {posed}, {when}: " + ", ".join(f"{kind} {n}" for kind, n in found.items()))
    if given.write:
        with open(given.write, "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(("point", "case", "kind", "shown"))
            writer.writerows(rows)
    return int(any(kind == "SILENT" for _, _, kind, _ in rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
