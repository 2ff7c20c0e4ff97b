"""Scaling: time per unit of work as threads, chains, replicas, dimension, bins, edges and components grow.

"× of expected" is the time that the expected law gives, from the first size at which it should hold, over the time
measured: 1 where it holds, below 1 where growth costs more. Sizes below the first are shown for what they lose. Set-up
is all that comes before the first step, making the problem included. One thread, float64; for threads, "× of expected"
is the speed-up over the number of threads. The second table fits time per unit ∝ size^exponent by least squares in
logarithms, from the first size on.
"""

import math
import statistics
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from benchmarks.runner.plan import Plan
from benchmarks.runner.rounds import interleaved, steps_for
from benchmarks.runner.tables import Table, ratio_cells
from targets import classics, constrained, mixtures, shapes
from toolkit import (
    ContourWarning,
    Problem,
    Run,
    Sampler,
    Target,
    accumulators,
    boundaries,
    sample,
    samplers,
    tempering,
)  # fmt: skip

H = 1e-3
EDGES = np.linspace(-2.5, 2.5, 101)
MOST_STEPS = 2_000_000
LONGER = 5.0  # times the usual length, of a run on threads, which start and end together


class Sized(NamedTuple):
    """One size, ready to run. run: (steps) → Run. units: what the cost is counted in, per step. fewest: steps of a run.

    Fewer steps than 128, and what a block costs at each turn would show.
    """

    run: Callable[[int], Run]
    units: float
    fewest: int = 128


class Case(NamedTuple):
    """name, unit: words. sizes: rising. exponent: of the cost per unit, expected from the size ``first`` on.

    make: size → Sized. on_threads: whether it is threads that grow.
    """

    name: str
    unit: str
    sizes: tuple[int, ...]
    exponent: float
    first: int
    make: Callable[[int], Sized]
    on_threads: bool = False


def sized(problem: Problem | Target, sampler: Sampler, n_chains: int, units: float, **arguments: Any) -> Sized:
    """Runs on one thread that keep the last draw, where ``arguments`` of sample say nothing else."""
    given = {"threads": 1, "seed": 1, "n_chains": n_chains, "progress": False, **arguments}

    def run(n_steps: int) -> Run:
        return sample(problem, sampler, n_steps=n_steps, **({"thin": n_steps} | given))

    return Sized(run, units)


def threads(**arguments: Any) -> Callable[[int], Sized]:
    """1,000 chains of SGLD on that many threads."""
    return lambda n: sized(mixtures.cosine25(), samplers.sgld(H), 1000, 1000, **{"threads": n, **arguments})


def chains(n: int) -> Sized:
    """SGLD."""
    return sized(mixtures.cosine25(), samplers.sgld(H), n, n)


def replicas(n: int) -> Sized:
    """A ladder of that many rungs; 1,024 replicas in all."""
    ladder = np.geomspace(1.0, 10.0, n)
    sampler = samplers.resgld(step_sizes=tuple(H * ladder), temperatures=tuple(ladder))
    return sized(mixtures.cosine25(), sampler, 1024 // n, 1024)


def dimension(dim: int) -> Sized:
    """SGLD on independent normals of different scales."""
    return sized(classics.badly_scaled_gaussian(dim=dim, condition=10.0), samplers.sgld(0.01), 1024, 1024 * dim)


def bins(n: int) -> Sized:
    """CSGLD, the same energies in that many bins, each chain with a table of its own, over 5 steps a bin and more.

    A bin that is visited first takes the θ of the nearest that has been, and looks for it.
    """
    partition = tempering.Partition(-4.0, 16.0 / n, n)
    return sized(mixtures.cosine25(), samplers.csgld(H, partition=partition), 16, 16)._replace(fewest=max(128, 5 * n))


def edges(n: int) -> Sized:
    """SGLD that is reflected in a flower of that many corners."""
    turn = 2.0 * math.pi * np.arange(n) / n
    radius = 2.0 / 3.5 * (np.sin(5.0 * turn) + 3.0)
    corners = radius[:, None] * np.stack([np.cos(turn), np.sin(turn)], axis=1)
    problem = constrained(mixtures.cosine25(), shapes.polygon_of("flower", corners))
    return sized(problem, samplers.sgld(5e-4, boundary=boundaries.reflect()), 1024, 1024)


def components(n: int) -> Sized:
    """SGLD on a mixture of that many Gaussians on a spiral."""
    turn = math.pi * (3.0 - math.sqrt(5.0)) * np.arange(n)
    means = 0.2 * np.sqrt(np.arange(n))[:, None] * np.stack([np.cos(turn), np.sin(turn)], axis=1)
    return sized(mixtures.gaussian_mixture(means, 0.03), samplers.sgld(H), 256, 256 * n)


def cases() -> Iterator[Case]:
    """All."""
    step, every = "chain-step", {"thin": 1, "keep_draws": False}
    gathered = {"moments": accumulators.moments(), "histogram": accumulators.histogram(EDGES, EDGES)}
    yield Case("threads, last draw kept", step, (1, 2), -1.0, 1, threads(), True)
    yield Case("threads, every 10th draw kept", step, (1, 2), -1.0, 1, threads(thin=10), True)
    yield Case("threads, moments and histogram", step, (1, 2), -1.0, 1, threads(accumulators=gathered, **every), True)
    yield Case("chains", step, (1, 8, 64, 128, 1024, 10**4, 10**5, 10**6), 0.0, 128, chains)
    yield Case("replicas", "replica-step", (2, 4, 8, 16, 32, 64), 0.0, 2, replicas)
    yield Case("dimension", "coordinate of a chain-step", (1, 2, 4, 8, 16, 32, 64), 0.0, 2, dimension)
    yield Case("bins of csgld", step, (10, 100, 10**3, 10**4, 10**5), 0.0, 10, bins)
    yield Case("edges of a polygon", step, (8, 64, 512, 4096, 32_768, 10**5), 0.0, 8, edges)
    yield Case("components of a mixture", "component of a chain-step", (2, 10, 32, 100, 320, 1000), 0.0, 2, components)


def fitted(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """The exponent of seconds ∝ size^exponent, by least squares in logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def expected(case: Case, size: int, reference: float) -> float:
    """The time per unit at ``size`` by the case's law, where it is ``reference`` at the first size."""
    return float(reference * (size / case.first) ** case.exponent)


def seconds(case: Case, one: Sized, n_steps: int) -> float:
    """Seconds of the steps of one run; on one thread less what other processes took of the processor meanwhile."""
    wall, processor = time.perf_counter(), time.process_time()
    elapsed = one.run(n_steps).elapsed
    if case.on_threads:
        return elapsed
    return elapsed * (time.process_time() - processor) / (time.perf_counter() - wall)


def prepared(case: Case, size: int, plan: Plan) -> tuple[Sized, int, float]:
    """The size ready and compiled, the steps that take about the plan's seconds, and the seconds of its set-up."""
    started = time.perf_counter()
    ready = case.make(size)
    first = ready.run(ready.fewest)
    setup = time.perf_counter() - started - first.elapsed
    length = (LONGER if case.on_threads else 1.0) * plan.seconds
    n_steps = steps_for(lambda n: seconds(case, ready, n), length, MOST_STEPS, ready.fewest)
    return ready, n_steps, setup


def measure(case: Case, plan: Plan, table: Table) -> tuple[str, ...]:
    """The rows of one case; its row of the table of exponents."""
    sizes = [size for size in case.sizes if not plan.is_small or size <= 1024]
    smallest = case.make(sizes[0])
    smallest.run(smallest.fewest)  # which compiles
    ready = {str(size): prepared(case, size, plan) for size in sizes}
    seen = interleaved(
        plan.rounds,
        {name: lambda one=one, n=n: seconds(case, one, n) / (n * one.units) for name, (one, n, _) in ready.items()},
    )
    reference = seen[str(case.first)]
    for size in sizes:
        law = [expected(case, size, seconds) for seconds in reference]
        of_expected, spread = ratio_cells(law, seen[str(size)])
        _, n_steps, setup = ready[str(size)]
        each = statistics.median(seen[str(size)])
        table.row(case.name, size, of_expected, spread, f"{1e9 * each:.4g}", case.unit, f"{n_steps:,}", f"{setup:.3g}")
    held = [size for size in sizes if size >= case.first]
    medians = [statistics.median(seen[str(size)]) for size in held]
    whole = f"{expected(case, held[-1], medians[0]) / medians[-1]:.3g}"
    exponent = f"{fitted(held, medians):+.3f}"
    setups = f"{fitted(held, [ready[str(size)][2] for size in held]):+.2f}"
    return case.name, f"{held[0]:,} – {held[-1]:,}", whole, exponent, f"{case.exponent:+g}", setups


def main(plan: Plan) -> None:
    """Print both tables, the second as a whole at the end."""
    columns = ("what grows", "size", "× of expected", "spread", "ns per unit", "unit", "steps", "set-up, s")
    table = Table(plan.folder, "scaling", *columns)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ContourWarning)
        rows = [measure(case, plan, table) for case in cases()]
    print()
    fits = Table(
        plan.folder, "scaling_exponents", "what grows", "sizes", "× of expected at the last", "fitted exponent",
        "expected", "of the set-up",
    )  # fmt: skip
    for cells in rows:
        fits.row(*cells)
