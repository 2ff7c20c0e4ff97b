"""``python -m tests.hostile.text_attacks``: hostile texts, in processes of their own; counts, times, memory."""

import collections
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.hostile.texts.worker import ALL, LIMIT, family

ROOT = Path(__file__).resolve().parents[2]


def told_of_time(lines: list[str]) -> bool:
    """Whether the clock ended a worker."""
    return any(line.startswith("Timeout") for line in lines)


def run_all() -> list[dict[str, Any]]:
    """What the workers tell of every case; a case that ends its process is told of here."""
    rows: list[dict[str, Any]] = []
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "default"}
    while len(rows) < len(ALL):
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "tests.hostile.texts.worker", folder, str(len(rows))]
            done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
            told = Path(folder) / "told"
            lines = told.read_text(encoding="utf-8").splitlines() if told.exists() else []
            new = [json.loads(line) for line in lines if line.startswith('{"family"')]
            shutil.rmtree(Path(folder) / "workplace", ignore_errors=True)
        rows += new
        if len(rows) < len(ALL):
            if done.returncode == 1 and not told_of_time(lines):
                raise RuntimeError(done.stderr[-2000:])
            table, case = ALL[len(rows)]
            why = "takes over" if told_of_time(lines) else f"ends the process with {done.returncode} within"
            rows.append({"family": family(table, case), "name": case.name, "fault": f"{why} {LIMIT:g} s",
                "seconds": LIMIT, "peak": 0})  # fmt: skip
    return rows


def main() -> int:
    """Print what the cases found."""
    rows = run_all()
    counts = collections.Counter(row["family"] for row in rows)
    wrong = collections.Counter(row["family"] for row in rows if row["fault"])
    for row in rows:
        if row["fault"]:
            print(f"{row['name']}: {row['fault'].encode('ascii', 'backslashreplace').decode()[:300]}")
    for name, n in counts.items():
        print(f"{name:12s} {n:4d} texts, {wrong[name]:3d} not as they must be")
    over = sum(row["seconds"] > 1.0 for row in rows)
    print(
        f"{'all':12s} {len(rows):4d} texts, {wrong.total():3d} not as they must be, {over} above 1 s of processor time"
    )
    for row in sorted(rows, key=lambda row: -row["seconds"])[:5]:
        print(f"  {row['seconds']:.2f} s  {row['name']}")
    print(f"peak memory {max(row['peak'] for row in rows)} MiB; {sum(row['seconds'] for row in rows):.1f} s in all")
    return int(wrong.total() > 0)


if __name__ == "__main__":
    sys.exit(main())
