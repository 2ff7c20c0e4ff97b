"""Time the runs of a module of peers, on one core, as asked on standard input: a line of JSON in, a line out.

``{"case": name, "numbers": {…}}`` makes a run, ready and compiled, and says its seconds and what it returned;
``{"run": index}`` runs one made before, and says the same; either answers ``{"error": …}`` where it fails.
"""

import importlib
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def answer(asked: dict[str, Any], cases: dict[str, Callable[..., Callable[[], Any]]], made: list[Any]) -> Any:
    """What is said to one question."""
    wall, processor = time.perf_counter(), time.process_time()
    if "case" in asked:
        made.append(cases[asked["case"]](**asked["numbers"]))
    index = asked.get("run", len(made) - 1)
    value = made[index]()
    seconds, of_processor = time.perf_counter() - wall, time.process_time() - processor
    return {"index": index, "seconds": seconds, "processor_seconds": of_processor, "value": value}


def main(module: str, core: int) -> None:
    """Answer until there are no more questions."""
    if core >= 0 and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(sys.prefix) / "compiled"))  # runs are timed warm
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.3")
    talks = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what packages print goes to standard error
    cases = importlib.import_module(f"benchmarks.{module}" if "." in module else f"benchmarks.peers.{module}").CASES
    made: list[Any] = []
    for asked in map(json.loads, sys.stdin):
        try:
            said = answer(asked, cases, made)
        except Exception as error:
            said = {"error": f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"}
        print(json.dumps(said), file=talks, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
