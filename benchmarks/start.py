"""Time to the first draw: whole processes, from launch to exit, with caches cold and warm.

Cold: a copy of the packages without any cached machine code. Warm: the same, once more, median of five.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from .markdown import head, row

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = {
    "SGLD on cosine25": "sample(mixtures.cosine25(), samplers.sgld(1e-3), n_steps=1, seed=0)",
    "r2SGLD in the flower": (
        "sample(constrained(mixtures.cosine25(), shapes.flower()), samplers.r2sgld(energy_noise=0.05), n_steps=1, "
        "seed=0)"
    ),
}
LINES = """
import time; started = time.perf_counter()
from toolkit import sample, samplers
from targets import constrained, mixtures, shapes
{}
print(time.perf_counter() - started)
"""


def launch(folder: str, call: str) -> tuple[float, float]:
    """Seconds from import to first draw, as the process says, and of the whole process."""
    started = time.perf_counter()
    environment = {**os.environ, "PYTHONPATH": folder}
    command = [sys.executable, "-c", LINES.format(call)]
    said = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True).stdout
    return float(said), time.perf_counter() - started


def main() -> None:
    """Print the table."""
    head("call", "import to first draw, s", "whole process, s")
    for name, call in SCRIPTS.items():
        with tempfile.TemporaryDirectory() as folder:
            for package in ("toolkit", "targets"):
                ignored = shutil.ignore_patterns("__pycache__")
                shutil.copytree(ROOT / package, Path(folder) / package, ignore=ignored)
            row(f"{name}, first ever", *launch(folder, call))
            row(f"{name}, later", *sorted(launch(folder, call) for _ in range(5))[2])
