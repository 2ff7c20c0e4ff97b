"""Memory: peak resident size of whole processes, and bytes per chain.

Each run is a process of its own, launched twice, of which the smaller peak counts: the first may compile. "× JAX" is
JAX's peak over ours. Bytes per chain are the slope between two numbers of chains: what a run holds for each chain that
keeps one draw. "Last" keeps the last draw of 100 steps, "all" those of 1,000 steps, which are 16 bytes each.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.peers.install import PYTHON
from benchmarks.tables import Table

from .plan import Plan

ROOT = Path(__file__).resolve().parents[2]
OURS = Path(__file__).with_name("memory_ours.py")
JAX = ROOT / "benchmarks" / "peers" / "memory_jax.py"
RUNS = (  # words, case, chains
    ("import alone", "import", 1),
    ("sgld, last, 1,000 chains", "sgld", 1000),
    ("sgld, all, 1,000 chains", "sgld, all draws", 1000),
    ("sgld, last, 10⁵ chains", "sgld", 10**5),
    ("sgld, last, 10⁶ chains", "sgld", 10**6),
    ("r2sgld in the flower, last, 1,000 chains", "r2sgld", 1000),
    ("icsgld × 5, 1,000 bins, last, 1,000 chains", "icsgld", 1000),
    ("stream of 10⁶ steps, 100 chains", "stream", 100),
    ("moments and histogram, 1,000 chains", "accumulators", 1000),
    ("Lorenz identified from 10,001 data, 1,000 chains", "identification", 1000),
)
SLOPES = (  # words, case, from, to
    ("sgld", "sgld", 10**5, 10**6),
    ("r2sgld in the flower", "r2sgld", 10**4, 10**5),
    ("icsgld × 5, 1,000 bins", "icsgld", 1000, 5000),
    ("sgld, all of 1,000 draws", "sgld, all draws", 1000, 10_000),
    ("moments and 100 × 100 histogram", "accumulators", 500, 2000),
)
THEIRS = ("import", "sgld", "sgld, all draws")  # what JAX runs, too

Peak = Callable[[str, str, int], int | None]


def peak(who: str, case: str, chains: int) -> int | None:
    """Bytes of a process of ``who``, the smaller of two; None where it has no such run, is not there or fails."""
    command = [sys.executable, "-P", str(OURS), case, str(chains)]
    if who != "ours":
        if case not in THEIRS or not PYTHON.exists():
            return None
        command = [str(PYTHON), "-P", str(JAX), who, case, str(chains)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    said = []
    for _ in range(2):
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode and who == "ours":
            raise RuntimeError(f"{case}, {chains} chains: {done.stderr}")
        if done.returncode:
            print(f"{who}, {case}, {chains} chains: {done.stderr.strip().splitlines()[-1:]}")
            return None
        said.append(int(done.stdout))
    return min(said)


def cells(ours: float, theirs: list[float | None], unit: float) -> tuple[list[str], list[str]]:
    """The ratios, and the numbers of all in ``unit``; dashes where there are none."""
    ratios = ["–" if their is None else f"{their / ours:.3g}" for their in theirs]
    return ratios, ["–" if value is None else f"{value / unit:.4g}" for value in (ours, *theirs)]


def main(plan: Plan, of: Peak = peak) -> None:
    """Print both tables."""
    most = 1000 if plan.is_small else 10**6
    seen: dict[tuple[str, str, int], int | None] = {}

    def known(who: str, case: str, chains: int) -> int | None:
        if (who, case, chains) not in seen:
            seen[who, case, chains] = of(who, case, chains)
        return seen[who, case, chains]

    names = ("× BlackJAX", "× JAX", "ours", "BlackJAX", "JAX")
    table = Table(plan.folder, "memory", "run", *names[:2], *(f"{name}, MiB" for name in names[2:]))
    for words, case, chains in RUNS:
        ours = known("ours", case, chains) if chains <= most and not (plan.is_small and case == "stream") else None
        if ours is not None:
            ratios, peaks = cells(ours, [known(who, case, chains) for who in ("blackjax", "jax")], 2**20)
            table.row(words, *ratios, *peaks)
    print()
    table = Table(plan.folder, "memory_per_chain", "run", *names[:2], *(f"{name}, bytes" for name in names[2:]))
    for words, case, few, many in SLOPES:
        if many > most:
            continue
        slopes = []
        for who in ("ours", "blackjax", "jax"):
            less, more = known(who, case, few), known(who, case, many)
            slopes.append(None if less is None or more is None else (more - less) / (many - few))
        assert slopes[0] is not None
        ratios, each = cells(slopes[0], slopes[1:], 1.0)
        table.row(words, *ratios, *each)
