"""Time to the first draw: whole processes of ours and of JAX, from the first line to one draw of one chain.

"First ever": a copy of the packages without any machine code or bytecode; JAX with an empty cache of compilations;
ICSGLD and the target of one's own come after SGLD, whose compiled code they find. "New process": the same once more,
both with what they have kept on disk. "Compiled" counts our functions that Numba compiled in the stage; new numbers
must compile none. A target or system of one's own is a function in a script, which both know again by what it reads.
BlackJAX has CSGLD for ICSGLD, no reflection and no identification; data to identify are simulated first. The second
table says what imports cost, and whose modules these are, in % of the time.
"""

import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.peers.install import PYTHON
from benchmarks.runner.plan import Plan
from benchmarks.runner.rounds import interleaved
from benchmarks.runner.tables import Table, ratio_cells

ROOT = Path(__file__).resolve().parents[2]
OURS = Path(__file__).parent / "processes" / "first_draw_ours.py"
JAX = ROOT / "benchmarks" / "peers" / "first_draw_jax.py"
NAMES = {
    "sgld": "SGLD, gaussian_mixture",
    "icsgld": "ICSGLD, 100 bins",
    "r2sgld": "r2SGLD in the flower",
    "identification": "Lorenz identified",
    "own": "SGLD, a target of one's own",
    "own_system": "HMC, a system of one's own",
}
# With packages of their own; the others with what SGLD's has compiled.
FRESH = ("sgld", "r2sgld", "identification", "own_system")
MOST_ROUNDS = 3  # of whole processes, which take seconds each
ELSEWHERE = ("NUMBA_CACHE_DIR", "PYTHONDONTWRITEBYTECODE")  # would keep compiled code in another place, or none
PACKAGES = ("toolkit", "targets", "sysid")


class Stage(NamedTuple):
    """Wall and processor seconds of a stage, and the functions compiled in it; None: not known."""

    seconds: float
    processor: float
    compiled: int | None


def process(python: str, script: Path, case: str, packages: Path, cache: Path) -> dict[str, Stage]:
    """The stages of one process, by name. Raises CalledProcessError where it fails."""
    environment = {key: value for key, value in os.environ.items() if key not in ELSEWHERE}
    environment |= {
        "PYTHONPATH": str(packages), "JAX_COMPILATION_CACHE_DIR": str(cache),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0", "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }  # fmt: skip
    command = [python, "-P", str(script), case]
    out = subprocess.run(command, env=environment, cwd=packages, capture_output=True, text=True, check=True).stdout
    return {name: Stage(*rest) for name, *rest in map(json.loads, out.splitlines())}


def to_first_draw(stages: dict[str, Stage]) -> dict[str, Stage]:
    """The stages with import and first draw together in place of each."""
    begun = [stages["import"], stages["first draw"]]
    whole = Stage(sum(s.seconds for s in begun), sum(s.processor for s in begun), begun[1].compiled)
    return {"import to first draw": whole} | {k: v for k, v in stages.items() if k not in ("import", "first draw")}


def copy_packages(folder: Path) -> None:
    """A copy of ours without any compiled code."""
    for package in PACKAGES:
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(OURS, folder)  # beside it lies what was compiled of its own functions


def runs_of(case: str, rounds: int, folder: Path) -> tuple[dict[str, dict[str, list[Stage]]], list[str]]:
    """Stage → who → its rounds, "first ever" once in a new folder; and who failed, with the reason."""
    is_new = not folder.exists()
    if is_new:
        copy_packages(folder)
    who = {"ours": (sys.executable, folder / OURS.name, case)}
    if PYTHON.exists():
        peers = {"BlackJAX": f"blackjax {case}", "JAX": f"jax {case}"}
        known = {"sgld", "own"} if case != "icsgld" else {"icsgld"}
        who |= {n: (str(PYTHON), JAX, c) for n, c in peers.items() if case in known and (n, case) != ("JAX", "icsgld")}
    seen: dict[str, dict[str, list[Stage]]] = {}
    failed: list[str] = []
    for turn in range(rounds + 1):
        for name, (python, script, argument) in list(who.items()):
            try:
                stages = to_first_draw(process(python, script, argument, folder, folder / name))
            except subprocess.CalledProcessError as error:
                if name == "ours":
                    raise
                failed.append(f"{name}, {case}: {error.stderr.strip().splitlines()[-1:]}")
                del who[name]
                continue
            if turn == 0:
                first = {"first ever, import to first draw": stages["import to first draw"]}
                stages = first if is_new else {}
            for stage, measured in stages.items():
                label = stage if turn == 0 or stage != "import to first draw" else "new process, import to first draw"
                seen.setdefault(label, {}).setdefault(name, []).append(measured)
    return seen, failed


def against(seen: dict[str, list[Stage]], peer: str) -> tuple[str, str]:
    """How many times as long the peer takes; dashes where there is none."""
    if peer not in seen or len(seen[peer]) != len(seen["ours"]):
        return "–", "–"
    return ratio_cells([s.seconds for s in seen[peer]], [s.seconds for s in seen["ours"]])


def middle(seen: dict[str, list[Stage]], who: str) -> str:
    """Median wall time; a dash where there is none."""
    return f"{statistics.median(s.seconds for s in seen[who]):.3g}" if who in seen else "–"


def cells_of(who: dict[str, list[Stage]]) -> tuple[Any, ...]:
    """Ratios, spreads and seconds of a stage."""
    ours = who["ours"]
    (blackjax, its_spread), (jax, jax_spread) = against(who, "BlackJAX"), against(who, "JAX")
    return (
        blackjax, jax, its_spread, jax_spread, middle(who, "ours"),
        f"{statistics.median(s.processor for s in ours):.3g}", max(s.compiled or 0 for s in ours),
        middle(who, "BlackJAX"), middle(who, "JAX"),
    )  # fmt: skip


def draws(plan: Plan) -> None:
    """The table of stages."""
    table = Table(
        plan.folder, "first_draw", "case", "stage", "× BlackJAX", "× JAX", "spread, BlackJAX", "spread, JAX", "ours, s",
        "processor, s", "compiled", "BlackJAX, s", "JAX, s",
    )  # fmt: skip
    problems = []
    with tempfile.TemporaryDirectory() as folder:
        for case in list(NAMES)[: 1 if plan.is_small else None]:
            packages = Path(folder) / (case if case in FRESH else "sgld")
            seen, failed = runs_of(case, min(plan.rounds, MOST_ROUNDS), packages)
            problems += failed
            for stage, who in seen.items():
                table.row(NAMES[case], stage, *cells_of(who))
    print("\n".join(["", *problems]))


IMPORTS = {
    "numba, numpy": (sys.executable, "import numpy, numba"),
    "toolkit": (sys.executable, "import toolkit"),
    "toolkit, targets": (sys.executable, "import toolkit, targets"),
    "toolkit, targets, sysid": (sys.executable, "import toolkit, targets, sysid"),
    "jax, jax.numpy": (str(PYTHON), "import jax, jax.numpy"),
    "blackjax": (str(PYTHON), "import blackjax"),
}
TIMED = "import time; began = time.perf_counter(); {}; print(time.perf_counter() - began)"


def shares(told: str) -> str:
    """What ``-X importtime`` told, as % of all by distribution, the five largest; the standard library is "Python"."""
    spent: Counter[str] = Counter()
    for own, name in re.findall(r"import time: +(\d+) \| +\d+ \| +([\w.]+)", told):
        top = name.partition(".")[0]
        spent["Python" if top in sys.stdlib_module_names else top] += int(own)
    whole = max(1, sum(spent.values()))
    return ", ".join(f"{name} {100 * own / whole:.0f}" for name, own in spent.most_common(5))


def imports(plan: Plan) -> None:
    """The table of imports."""
    table = Table(plan.folder, "first_draw_imports", "imported", "× BlackJAX", "spread", "s", "whose, %")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)

    def launch(name: str, *options: str) -> subprocess.CompletedProcess[str]:
        python, line = IMPORTS[name]
        command = [python, *options, "-c", TIMED.format(line)]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True)

    names = []
    for name in IMPORTS:  # once before they count, so that bytecode is there
        try:
            launch(name)
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"{name}: {error}")
        else:
            names.append(name)
    rounds = min(plan.rounds, MOST_ROUNDS)
    seen = interleaved(rounds, {name: lambda name=name: float(launch(name).stdout) for name in names})
    for name in names:
        cells = ratio_cells(seen["blackjax"], seen[name]) if "blackjax" in seen else ("–", "–")
        table.row(name, *cells, f"{statistics.median(seen[name]):.3g}", shares(launch(name, "-X", "importtime").stderr))


def main(plan: Plan) -> None:
    """Print both tables."""
    draws(plan)
    imports(plan)
