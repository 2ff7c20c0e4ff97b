"""Storage: a run of 10⁶ kept draws saved and loaded, beside np.save of the draws alone.

Each save and each load is a process of its own that does little else; seconds include flushing to the disk, and the
peak is what the process took beyond what it had before, the draws included when it loads and not when it saves.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.runner.plan import Plan
from benchmarks.runner.tables import Table

PREPARE = """
import os, resource, sys, threading, time
import numpy as np
from toolkit import load, sample, samplers
from targets import mixtures
chains, steps, path, what = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
for extra in ("xarray", "h5netcdf", "h5py", "zarr"):
    __import__(extra)

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize() / 2**20

def measure(action):
    before, peak, done = resident(), [0.0], []
    def watch():
        while not done:
            peak[0] = max(peak[0], resident())
            time.sleep(0.001)
    watcher = threading.Thread(target=watch)
    watcher.start()
    started = time.perf_counter()
    action()
    seconds = time.perf_counter() - started
    done.append(True)
    watcher.join()
    print(seconds, peak[0] - before)

def np_save():
    with open(path, "wb") as file:
        np.save(file, run.draws)
        file.flush()
        os.fsync(file.fileno())

if what == "save":
    sampler = samplers.resgld(step_sizes=(1e-3, 3e-3), temperatures=(1.0, 10.0))
    run = sample(mixtures.cosine25(), sampler, n_steps=steps, n_chains=chains, seed=0, keep_energies=True)
    measure(np_save if path.endswith(".npy") else lambda: run.save(path))
else:
    measure(lambda: np.load(path) if path.endswith(".npy") else load(path))
"""


def size_of(path: Path) -> int:
    """Bytes of a file, or of all files of a folder."""
    return sum(f.stat().st_size for f in path.rglob("*") if f.is_file()) if path.is_dir() else path.stat().st_size


def measured(*arguments: str) -> list[float]:
    """Seconds and MiB of one process."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    command = [sys.executable, "-c", PREPARE, *arguments]
    said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    return [float(word) for word in said.split()]


def main(plan: Plan) -> None:
    """Print the table."""
    columns = ("run", "file", "MiB", "× np.save", "save, s", "peak, MiB", "load, s", "peak, MiB")
    table = Table(plan.folder, "storage", *columns)
    for chains, steps in ((10, 1_000),) if plan.is_small else ((1, 1_000_000), (10, 100_000)):
        first = 0
        for suffix in (".npy", ".npz", ".nc", ".zarr", ".zarr.zip"):
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / f"run{suffix}"
                saving = measured(str(chains), str(steps), str(path), "save")
                size = size_of(path)
                first = first or size
                loading = measured(str(chains), str(steps), str(path), "load")
            name = "np.save of the draws" if suffix == ".npy" else suffix
            table.row(f"{chains} × {steps:,} in 2-D", name, size / 2**20, size / first, *saving, *loading)
