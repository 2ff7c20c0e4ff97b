"""Whether code that runs is that of the function it was asked for: edits, damaged files, numbers that change.

Edits: a package is imported, edited, compiled first after that, and run by a second process. Damage: one bit of a kept
file is another. Numbers: K = 1, then 25, with a new target, posterior or system of the same function.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

import toolkit
from sysid import systems
from sysid.solvers.integrate import solve
from targets import posteriors
from toolkit import Target, sample, samplers

ROOT = Path(toolkit.__file__).resolve().parents[1]  # of the tree that is measured
FILES = {
    "__init__": "",
    "sub/__init__": "",
    "sub/config": "K = 1.0\n",
    "code": """import math
from math import sin as wave
from numba import njit
import kin.sub.config
from kin import sub
from toolkit import Target
FLAG = True
FACTOR = 1.0
ROWS = (1.0, (2.0, 3.0))
f = math.sin if FLAG else math.cos
SECOND = False
if SECOND:
    @njit
    def helper(x):
        return x + 1.0
else:
    @njit
    def helper(x):
        return x + 2.0
@njit
def scaled(x, by=1.0):
    return by * x
@njit
def value(x):
    return (math.sin(x) + 2 * f(x) + 4 * wave(x) + 8 * kin.sub.config.K + 16 * helper(x) + 32 * scaled(x)
            + 64 * ROWS[1][0] + 128 * abs(x) + 256 * FACTOR)
def block(position, energy, gradient, parameters, scratch):
    for lane in range(energy.size):
        energy[lane] = value(position[0, lane])
        gradient[0, lane] = 0.0
""",
}
EDITS = {
    "math.sin to math.cos": ("code", "math.sin(x)", "math.cos(x)"),
    "f = math.sin if flag else math.cos": ("code", "FLAG = True", "FLAG = 0"),
    "an imported function's alias": ("code", "sin as wave", "cos as wave"),
    "pkg.sub.config.K": ("sub/config", "1.0", "5.0"),
    "a helper defined in two branches": ("code", "SECOND = False", "SECOND = True"),
    "a default": ("code", "by=1.0", "by=3.0"),
    "a nested tuple": ("code", "(2.0, 3.0)", "(2.5, 3.0)"),
    "a builtin shadowed": ("code", "SECOND = False", "SECOND = False\nabs = math.floor"),
    "a global number": ("code", "FACTOR = 1.0", "FACTOR = 2.0"),
}
IMPORT = "from kin.code import block, value, Target; import pathlib\n"
EDIT = "p = pathlib.Path({file!r}); p.write_text(p.read_text().replace({old!r}, {new!r}))\n"
RUN = "print(Target('t', 1, block).evaluate([[0.7]])[0].item(), value.py_func(0.7))"
SIX = """
from targets import mixtures; from targets.classics import wells, curved; from targets.domains import convex
from targets import catalogue
done = 0
for target in catalogue():
    if done < 6:
        target.evaluate([[0.1] * target.dim])
        done += 1
"""


def started(script: str, *folders: Path) -> subprocess.CompletedProcess[str]:
    """What a new Python does with ``script``; folders: of kept code, and of a package."""
    path = os.pathsep.join(map(str, [*folders[1:], ROOT]))
    environment = {**os.environ, "PYTHONPATH": path, "NUMBA_CACHE_DIR": str(folders[0]), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", script]
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT, check=False)


def wrong_after(file: str, old: str, new: str) -> bool:
    """Whether a second process runs what the first imported before the edit."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "kin" / "sub").mkdir(parents=True)
        for part, text in FILES.items():
            (folder / "kin" / f"{part}.py").write_text(text, encoding="utf-8")
        edit = EDIT.format(file=str(folder / "kin" / f"{file}.py"), old=old, new=new)
        started(IMPORT + edit + RUN, folder / "kept", folder)
        got, expected = map(float, started(IMPORT + RUN, folder / "kept", folder).stdout.split())
        return abs(got - expected) > 1e-9


def ends_of_damaged_starts() -> Counter[str]:
    """How a start ends after one bit in the middle of a kept file has become another, for six files."""
    ends: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        kept = Path(name)
        started(SIX, kept)
        for file in sorted(kept.rglob("*.nbc"))[:6]:
            content = file.read_bytes()
            damaged = bytearray(content)
            damaged[len(content) // 2] ^= 1 << 4
            file.write_bytes(damaged)
            done = started(SIX, kept)
            ends["well" if done.returncode == 0 else f"status {done.returncode}"] += 1
            file.write_bytes(content)
    return ends


K = 1.0


def block(position, energy, gradient, parameters, scratch):  # type: ignore[no-untyped-def]
    """N(0, 1/K)."""
    for lane in range(energy.size):
        energy[lane] = 0.5 * K * position[0, lane] ** 2
        gradient[0, lane] = K * position[0, lane]


def datum(x, row):  # type: ignore[no-untyped-def]
    """K x² / 2."""
    return 0.5 * K * x[0] ** 2, (K * x[0],)


def decay(t, x, p):  # type: ignore[no-untyped-def]
    """dx/dt = −0.1 K x."""
    return (-0.1 * K * x[0],)


def numbers() -> dict[str, float]:
    """What depends on K, as it is now."""
    made = Target("block", 1, block)
    run = sample(made, samplers.mala(0.02), n_steps=4000, n_chains=64, burn_in=1000, seed=1)
    system = systems.own(decay, states=["x"], parameters=(), usual=[], start=[2.0])
    return {
        "energy of a target at 1": made.evaluate([[1.0]])[0].item(),
        "variance of its draws": float(np.var(run.draws)),
        "energy of a posterior at 1": posteriors.posterior(datum, [0.0], 1).evaluate([[1.0]])[0].item(),
        "x(1) of a system": float(solve(system, [0.0, 1.0]).states[-1, 0]),
    }


def best_of(calls: int, work) -> float:  # type: ignore[no-untyped-def]
    """Milliseconds of the quickest of some calls."""
    seconds = []
    for _ in range(calls):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return 1e3 * min(seconds)


def main() -> None:
    """Print what runs, and what should."""
    global K
    wrong = [what for what, edit in EDITS.items() if wrong_after(*edit)]
    print(f"edits after the import that ran the wrong code in the next process: {len(wrong)} of 9 (wanted 0)")
    for what in wrong:
        print(f"  {what}")
    print("ends of six starts after a flipped bit:", dict(ends_of_damaged_starts()), "(wanted {'well': 6})")
    numbers()
    K = 25.0
    wanted = (12.5, 0.04, 12.5, 2.0 * np.exp(-2.5))
    for (what, value), expected in zip(numbers().items(), wanted, strict=True):
        print(f"{what}, K = 25 after 1: {value:.4g} (wanted {expected:.4g})")
    made = Target("block", 1, block)
    print(f"a target of a known function: {best_of(20, lambda: Target('block', 1, block)):.2f} ms")
    run = best_of(20, lambda: sample(made, samplers.sgld(0.01), n_steps=2, n_chains=1, seed=1))
    print(f"a run of 2 steps: {run:.2f} ms")


if __name__ == "__main__":
    main()
