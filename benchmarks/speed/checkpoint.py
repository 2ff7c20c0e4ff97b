"""Checkpoints: bytes and seconds of a save, the median of all, and its share of a run that is saved every so often.

Seconds are wall-clock, with all waits for the disk: three, and two where no draws are kept.
"""

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.runner.plan import Plan
from benchmarks.runner.tables import Table
from targets import mixtures
from toolkit import Layout, sample, samplers
from toolkit._output.storage.checkpoint import Checkpoint
from toolkit.ladders import geometric_ladder

TEN = geometric_ladder(1.0, 10.0, 10)
CASES: list[tuple[str, Any, dict[str, Any]]] = [
    ("10 chains, 1 replica", samplers.sgld(1e-3), {"n_chains": 10, "n_steps": 2000, "layout": Layout(chunk_steps=100)}),
    (
        "10 chains, 2 replicas, 1,000 draws a save",
        samplers.resgld((1e-3, 3e-3), temperatures=(1.0, 3.0)),
        {"n_chains": 10, "n_steps": 20_000, "layout": Layout(chunk_steps=1000), "keep_draws": True},
    ),
    (
        "100,000 chains, 10 replicas",
        samplers.resgld(tuple(1e-3 * t for t in TEN), temperatures=TEN),
        {"n_chains": 100_000, "n_steps": 80, "layout": Layout(chunk_steps=16)},
    ),
]


def timed_saves(call: Callable[[], Any]) -> list[float]:
    """Seconds of each save that ``call`` makes."""
    seconds, save = [], Checkpoint.save

    def timing(self: Checkpoint, *given: Any) -> None:
        started = time.perf_counter()
        save(self, *given)
        seconds.append(time.perf_counter() - started)

    Checkpoint.save = timing  # type: ignore[method-assign]
    try:
        call()
    finally:
        Checkpoint.save = save  # type: ignore[method-assign]
    return seconds


def main(plan: Plan) -> None:
    """Print the table."""
    target = mixtures.cosine25()
    columns = ("state, bytes", "journal, bytes a save", "saves", "seconds a save", "share at 60 s, %", "at 1 s, %")
    table = Table(plan.folder, "checkpoint", "run", *columns)
    for name, sampler, arguments in CASES[: 1 if plan.is_small else None]:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "run.ckpt"
            given = {
                "seed": 1,
                "init": [0.0, 0.0],
                "keep_draws": False,
                "checkpoint": path,
                "checkpoint_every": 1e-9,
                **arguments,
            }
            seconds = timed_saves(lambda g=given, s=sampler: sample(target, s, **g))[:-1]  # the last has nothing to do
            journal = path.with_name("run.ckpt.draws").stat().st_size / len(seconds)
            typical = statistics.median(seconds)
            shares = [100.0 * typical / (every + typical) for every in (60.0, 1.0)]
            table.row(name, f"{path.stat().st_size:,}", f"{journal:,.0f}", len(seconds), typical, *shares)
