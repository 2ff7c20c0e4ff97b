"""Ask a peer's process for runs: they are made there once, and timed there whenever asked."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from .install import PYTHON, REPORT

ROOT = Path(__file__).resolve().parents[2]
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class PeerError(RuntimeError):
    """A peer that is not installed, or a run that it cannot make."""


def versions() -> dict[str, str]:
    """What ``install`` said of each peer; empty where it never ran."""
    return json.loads(REPORT.read_text(encoding="utf-8")) if REPORT.exists() else {}


class Peer:
    """A process of the peers' environment, on core ``core`` (−1: on all), that knows the cases of ``module``."""

    def __init__(self, module: str, core: int = 0) -> None:
        if not PYTHON.exists():
            raise PeerError("no peers are installed: run python -m benchmarks.peers.install")
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
        if core >= 0:
            environment |= dict.fromkeys(THREADS, "1")
        self._process = subprocess.Popen(
            [str(PYTHON), "-m", "benchmarks.peers.worker", module, str(core)], cwd=ROOT, env=environment,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip

    def make(self, case: str, **numbers: Any) -> "PeerRun":
        """A run, compiled and run once; numbers: of the case, as JSON can say them. Raises PeerError."""
        said = self._ask(case=case, numbers=numbers)
        return PeerRun(self, said)

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()

    def _ask(self, **question: Any) -> dict[str, Any]:
        """The answer to a question."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            print(json.dumps(question), file=self._process.stdin, flush=True)
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise PeerError(f"the peer's process ended with exit status {self._process.wait()}")
        said: dict[str, Any] = json.loads(line)
        if "error" in said:
            raise PeerError(said["error"])
        return said


class PeerRun:
    """A run that a peer has made and run once.

    value: what the last run returned. processor_seconds: its processor time, of all threads.
    """

    def __init__(self, peer: Peer, said: dict[str, Any]) -> None:
        self._peer, self._index = peer, said["index"]
        self.value: Any = said["value"]
        self.processor_seconds = float(said["processor_seconds"])

    def seconds(self) -> float:
        """Wall time of one run more, by the peer's own clock; what it returned is then in ``value``."""
        said = self._peer._ask(run=self._index)
        self.value = said["value"]
        self.processor_seconds = float(said["processor_seconds"])
        return float(said["seconds"])


def opened(module: str, core: int = 0) -> tuple[Peer | None, str]:
    """A peer's process on a core, or why there is none."""
    try:
        return Peer(module, core), ""
    except PeerError as error:
        return None, str(error)
