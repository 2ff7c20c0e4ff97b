"""Memory: peak resident size of whole processes, and bytes per chain.

Each run is a process of its own, after one of 8 chains that may compile. "× JAX" is JAX's peak over ours. Bytes per
chain are the slope between two numbers of chains: what a run holds for each chain that keeps one draw. "Last" keeps the
last draw of 100 steps, "all" those of 1,000 steps, which are 16 bytes each.
"""

import functools
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.peers.install import PYTHON
from benchmarks.runner.plan import Plan
from benchmarks.runner.tables import Table

ROOT = Path(__file__).resolve().parents[2]
OURS = Path(__file__).parent / "processes" / "memory_ours.py"
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


@functools.cache
def compiled(case: str) -> None:
    """Our functions for ``case`` are on disk; elsewhere it would be compiling that takes memory."""
    ours(case, 8)


def ours(case: str, chains: int) -> int:
    """Bytes of a process of ours."""
    return launched([sys.executable, "-P", str(OURS), case, str(chains)])


def launched(command: list[str]) -> int:
    """What a process prints. Raises RuntimeError with its last words where it fails."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[3:])}: {done.stderr.strip().splitlines()[-1:]}")
    return int(done.stdout)


def peak(who: str, case: str, chains: int) -> int | None:
    """Bytes of a process of ``who``; None of a peer that has no such run, is not there or fails."""
    if who == "ours":
        compiled(case)
        return ours(case, chains)
    if case not in THEIRS or not PYTHON.exists():
        return None
    try:
        return launched([str(PYTHON), "-P", str(JAX), who, case, str(chains)])
    except RuntimeError as error:
        print(error)
        return None


def cells(own: float, theirs: list[float | None], unit: float) -> tuple[list[str], list[str]]:
    """The ratios, and the numbers of all in ``unit``; dashes where there are none."""
    ratios = ["–" if their is None else f"{their / own:.3g}" for their in theirs]
    return ratios, ["–" if value is None else f"{value / unit:.4g}" for value in (own, *theirs)]


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
        own = known("ours", case, chains) if chains <= most and not (plan.is_small and case == "stream") else None
        if own is not None:
            ratios, peaks = cells(own, [known(who, case, chains) for who in ("blackjax", "jax")], 2**20)
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
