"""Tiers: seconds to the end of a run of one chain, with the fused engine compiled before it, beside it, and never.

Each run is a process of its own, timed without its imports. "Cold": of compiled code the cache has the general engine
alone; "warm": the fused one too. Ratios of rounds are of the engine that is never fused to the others, so more is
better. Runs of more than half a minute have one round, and those that would take more than two and a half minutes with
the general engine are left out. Load: of the machine after the rows' runs, of so many cores; where it leaves none idle,
runs of less than ten minutes start no process.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from benchmarks.runner.plan import Plan
from benchmarks.runner.rounds import interleaved
from benchmarks.runner.tables import Table, ratio_cells
from toolkit._compiler.disk_cache import available_threads

ROOT = Path(__file__).resolve().parents[2]
OURS = Path(__file__).parent / "processes" / "tiers_ours.py"
NAMES = {"sgld": "SGLD", "hmc": "HMC, 10 leapfrogs"}
LAYOUTS = ("None", "True", "False")
STEPS = (10**4, 10**5, 10**6, 10**7, 10**8, 4 * 10**8, 10**9)
MOST_ROUNDS, LONG, LONGEST = 3, 30.0, 150.0  # seconds


class Timed(NamedTuple):
    """Seconds of a run, and the engine that it had."""

    seconds: float
    engine: str


def timed(case: str, n_steps: int, fused: str, cache: Path) -> Timed:
    """A run with the compiled code in ``cache``, which grows."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-P", str(OURS), case, str(n_steps), fused]
    out = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    return Timed(*json.loads(out))


class Caches:
    """Folders of compiled code: of the general engine alone, and of both."""

    def __init__(self, folder: Path, case: str) -> None:
        self._cold, self.warm, self._used = (folder / f"{case} {name}" for name in ("cold", "warm", "used"))
        timed(case, 1000, "False", self._cold)
        shutil.copytree(self._cold, self.warm)
        timed(case, 1000, "True", self.warm)

    def timed(self, case: str, n_steps: int, fused: str, *, is_warm: bool) -> Timed:
        """A run that finds what it is to find, and leaves it so."""
        if is_warm:
            return timed(case, n_steps, fused, self.warm)
        shutil.copytree(self._cold, self._used)
        try:
            return timed(case, n_steps, fused, self._used)
        finally:
            shutil.rmtree(self._used)


def rows(table: Table, case: str, n_steps: int, caches: Caches, rounds: int) -> float:
    """The rows of one number of steps; seconds of the general engine."""
    general = 0.0
    for is_warm in (False, True):
        calls = {f: lambda f=f, is_warm=is_warm: caches.timed(case, n_steps, f, is_warm=is_warm) for f in LAYOUTS}
        seen = interleaved(rounds, calls)
        seconds = {fused: [one.seconds for one in seen[fused]] for fused in LAYOUTS}
        middle = {fused: statistics.median(values) for fused, values in seconds.items()}
        general = middle["False"]
        beside, spread = ratio_cells(seconds["False"], seconds["None"])
        table.row(
            NAMES[case], f"{n_steps:.0e}", "warm" if is_warm else "cold", beside, spread,
            ratio_cells(seconds["False"], seconds["True"])[0], *(f"{middle[fused]:.3g}" for fused in LAYOUTS),
            seen["None"][-1].engine, f"{load():.2g} of {available_threads()}",
        )  # fmt: skip
    return general


def load() -> float:
    """Of the machine, in the last minute; nan where it is not known."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")


def main(plan: Plan) -> None:
    """Print the table."""
    table = Table(
        plan.folder, "tiers", "sampler", "steps", "cache", "× None", "spread", "× True", "None, s", "True, s",
        "False, s", "engine with None", "load",
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        for case in list(NAMES)[: 1 if plan.is_small else None]:
            caches, pace = Caches(Path(folder), case), 0.0  # seconds a step
            for n_steps in STEPS[: 1 if plan.is_small else None]:
                if n_steps * pace < LONGEST:
                    rounds = 1 if n_steps * pace > LONG else min(plan.rounds, MOST_ROUNDS)
                    pace = rows(table, case, n_steps, caches, rounds) / n_steps
