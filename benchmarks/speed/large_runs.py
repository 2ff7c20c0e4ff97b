"""Long and large: 10⁹ chain-steps in a stream, 10⁵ chains of 10 replicas, 10⁵ bins; each in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

from benchmarks.runner.plan import Plan
from benchmarks.runner.tables import Table

BEGIN = """
import resource, sys, time
import numpy as np
from targets import mixtures
from toolkit import accumulators, sample, samplers, stream, tempering

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

problem = mixtures.cosine25()
"""
STREAM = """
sampler, seen, total, seconds = samplers.sgld(1e-3), [], 0.0, 0.0
began = time.perf_counter()
for i, chunk in enumerate(stream(problem, sampler, n_steps=1_000_000, n_chains=1_000, seed=0)):
    total += chunk.draws[:, -1].sum()
    if i in (10, chunk.total_steps // chunk.draws.shape[1] // 2):
        seen.append(peak())
print(1e9, time.perf_counter() - began, *seen, peak(), sep=";")
"""
ACCUMULATED = """
edges = np.linspace(-2.5, 2.5, 101)
gathered = {"moments": accumulators.moments(), "histogram": accumulators.histogram(edges, edges)}
seen = []
for n_steps in (10_000, 100_000, 1_000_000):
    began = time.perf_counter()
    run = sample(
        problem, samplers.sgld(1e-3), n_steps=n_steps, n_chains=1_000, seed=0, keep_draws=False, accumulators=gathered
    )
    seen.append(peak())
print(1e9, time.perf_counter() - began, *seen, sep=";")
"""
CHAINS = """
temperatures = tuple(np.geomspace(1.0, 10.0, 10))
sampler = samplers.resgld(step_sizes=tuple(1e-3 * t for t in temperatures), temperatures=temperatures)
seen = []
for n_steps in (10, 100, 1_000):
    began = time.perf_counter()
    run = sample(problem, sampler, n_steps=n_steps, n_chains=100_000, seed=0, thin=n_steps)
    seen.append(peak())
print(1e9, time.perf_counter() - began, *seen, sep=";")
"""
BINS = """
import warnings
warnings.simplefilter("ignore")
seen = []
for n_bins in (100, 10_000, 100_000):
    bins = tempering.Partition(0.0, 10.0 / n_bins, n_bins)
    sampler = samplers.icsgld(1e-3, n_replicas=10, partition=bins)
    began = time.perf_counter()
    run = sample(problem, sampler, n_steps=100_000, n_chains=10, seed=0, burn_in=50_000, thin=100)
    seen.append(peak())
print(1e7, time.perf_counter() - began, *seen, sep=";")
"""
CASES = [
    ("stream, 1,000 chains × 10⁶ steps, every draw yielded", STREAM, "after 10 chunks, half-way, at the end"),
    ("`keep_draws=False`, moments and a 100 × 100 histogram of the same", ACCUMULATED, "10⁴, 10⁵, 10⁶ steps"),
    ("10⁵ chains × 10 replicas, 1,000 steps, last draw kept", CHAINS, "10, 100, 1,000 steps"),
    ("10 chains × 10 replicas of contour with 10⁵ bins, 10⁵ steps", BINS, "10², 10⁴, 10⁵ bins"),
]


def main(plan: Plan) -> None:
    """Print the table."""
    columns = ("case", "replica-steps of the last", "seconds", "10⁶ per second", "peak MiB", "at")
    table = Table(plan.folder, "large_runs", *columns)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    for name, script, where in CASES[-1:] if plan.is_small else CASES:
        command = [sys.executable, "-c", BEGIN + script]
        said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
        steps, seconds, *peaks = (float(word) for word in said.split(";"))
        table.row(name, f"{steps:.0e}", seconds, steps / seconds / 1e6, ", ".join(f"{p:.0f}" for p in peaks), where)
