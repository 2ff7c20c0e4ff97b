"""Memory: peak resident size of a process that streams, by number of steps."""

import os
import subprocess
import sys
from pathlib import Path

from .markdown import head, row

SCRIPT = """
import resource, sys
from toolkit import samplers, stream
from targets import mixtures
total = 0.0
for chunk in stream(mixtures.cosine25(), samplers.sgld(1e-3), n_steps=int(sys.argv[1]), n_chains=100, seed=0):
    total += chunk.draws.sum()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def main() -> None:
    """Print the table."""
    head("steps of 100 chains", "draws streamed", "peak MiB")
    root = str(Path(__file__).resolve().parents[1])
    for n_steps in (10_000, 100_000, 1_000_000, 3_000_000):
        command = [sys.executable, "-c", SCRIPT, str(n_steps)]
        environment = {**os.environ, "PYTHONPATH": root}
        said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
        row(f"{n_steps:,}", f"{100 * n_steps:,}", float(said))
