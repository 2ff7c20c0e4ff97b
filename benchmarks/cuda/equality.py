"""Stage equality: whether the device's runs have the CPU's bits, and by how many last places they differ if not."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.runner.tables import Table
from toolkit import Run

from .cases import MAKERS, case_of
from .measure import Plan, run

FULL = {"keep_statistics": True, "keep_energies": True, "keep_replicas": True, "trace_every": 5}


def arrays_of(done: Run) -> dict[str, NDArray[Any]]:
    """All that a run found, by name."""
    found: dict[str, Any] = {"draws": done.replica_draws, "weights": done.weights, "energies": done.energies}
    found |= {f"counts.{name}": values for name, values in done.counts._asdict().items()}
    if done.statistics is not None:
        found |= {f"statistics.{name}": values for name, values in done.statistics._asdict().items()}
    if done.trace is not None:
        found |= {f"trace.{name}": values for name, values in done.trace.fields.items()}
        found["trace.theta"] = done.trace.theta
    return {name: np.asarray(values) for name, values in found.items() if values is not None}


def differences(ours: Run, theirs: Run) -> dict[str, tuple[int, float]]:
    """Arrays whose bits differ: how many numbers of them, and the largest difference in last places."""
    other = arrays_of(theirs)
    found = {}
    for name, values in arrays_of(ours).items():
        apart = ~((values == other[name]) | ((values != values) & (other[name] != other[name])))
        if apart.any():
            gaps = np.abs(values[apart].astype(float) - other[name][apart])
            found[name] = int(apart.sum()), float(np.max(gaps / np.spacing(np.abs(values[apart].astype(float)))))
    return found


def main(plan: Plan) -> None:
    """Print the table. Exit with an error where bits differ."""
    table = Table(plan.folder, "equality", "case", "chains", "steps", "same bits", "what differs: numbers, last places")
    sizes = ((3, 20),) if plan.is_dry else ((3, 300), (1001, 300), (100_000, 60))
    failed = False
    for name in (name for name in MAKERS if name in plan.names):
        for n_chains, n_steps in sizes:
            if plan.is_late(f"{name}, {n_chains} chains"):
                continue
            runs = [run(case_of(name), backend, n_chains, n_steps, "draws", **FULL) for backend in ("cpu", "cuda")]
            apart = differences(*runs)
            failed |= bool(apart)
            told = "; ".join(f"{key}: {n}, {places:.3g}" for key, (n, places) in apart.items())
            table.row(name, n_chains, n_steps, "no" if apart else "yes", told)
    if failed:
        raise SystemExit("the device's bits differ from the CPU's")
