"""Processes that make hostile calls; as a command, how many of each package, and what they found.

python -m tests.hostile.fuzz [examples = 3] [seed = 0] [tables, joined by +] [names, as a regular expression]
"""

import collections
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TABLES = ("toolkit_calls", "target_calls", "result_calls", "sysid_calls")


def start(folder, module, share, of, examples, seed):
    """A process that makes a share of a table's calls."""
    folder.mkdir()
    with (folder / "said").open("wb") as said:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.hostile.worker", str(folder), module, *map(str, (share, of, examples, seed))],
            stdout=said, stderr=subprocess.STDOUT, env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip


def outcome(folder, process):
    """The report of a process; where it did not come to its end, with the call that ended it."""
    ended = process.wait(timeout=3000)
    file = folder / "report.json"
    report = json.loads(file.read_text()) if file.exists() else {"made": 0, "refused": 0, "found": []}
    if ended:
        last = (folder / "told").read_text().splitlines()[-1:] if (folder / "told").exists() else []
        report["found"].append(f"ended by {last}: {(folder / 'said').read_text()[-2000:]}")
    return report


def reports(folder, examples, seed, processes=2, of=2):
    """What so many processes find, each with one call in so many."""
    folders = [folder / str(share) for share in range(processes)]
    running = [start(place, "+".join(TABLES), share, of, examples, seed) for share, place in enumerate(folders)]
    return [outcome(*each) for each in zip(folders, running, strict=True)]


def campaign(folder, examples, seed, tables, names):
    """Reports of one process after the other: where a call ends one, the next begins with the call after it."""
    first, found, lines = 0, [], []
    while True:
        place = folder / str(len(found))
        report = outcome(place, start(place, f"{tables}:{names}", first, 1, examples, seed))
        found.append(report)
        lines += (place / "told").read_text(encoding="utf-8").splitlines()
        if not any(one.startswith("ended by") for one in report["found"]):
            return found, lines
        first += report.get("done", 0) + 1


def main(examples="3", seed="0", tables="+".join(TABLES), names=""):
    """Make the calls, and print what came of them. Gives 1 where anything was found."""
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        all_reports, lines = campaign(Path(folder), examples, seed, tables, names)
    calls = [line.partition(".")[0] for line in lines if re.match(r"[\w.]+[^(]*\(", line)]
    packages = ", ".join(f"{name} {n}" for name, n in sorted(collections.Counter(calls).items()))
    refused, own, processor = (sum(one.get(k, 0) for one in all_reports) for k in ("refused", "own", "processor"))
    found = [one for report in all_reports for one in report["found"]]
    print(f"calls made: {len(calls)} ({packages})")
    print(f"refused: {refused}, of these by an error of the object's own methods: {own}")
    for what, words in KINDS.items():
        print(f"{what}: {sum(bool(re.search(words, one)) for one in found)}")
    print(f"slowest: {max((tuple(r['slowest']) for r in all_reports if 'slowest' in r), default=())}")
    print(
        f"processor: {processor:.0f} s, wall: {time.perf_counter() - started:.0f} s, examples {examples}, seed {seed}"
    )
    for one in found:
        print("-", one)
    return int(bool(found))


KINDS = {
    "ended the process (crashes, hangs)": "^ended by",
    "undocumented, or raised by none of our checks": r" ended in (a )?\w+",
    "not naming the argument": " does not name ",
    "taken, or giving nan": " is taken: | gives nan: ",
}

if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
