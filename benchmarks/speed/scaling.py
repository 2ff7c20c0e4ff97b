"""Scaling: time per unit of work as threads, chains, replicas, dimension, bins, edges and components grow.

"× of expected" is the time that the expected law gives, from the first size at which it should hold, over the time
measured: 1 where it holds, below 1 where growth costs more. Sizes below the first are shown for what they lose. Set-up
is all that comes before the first step, making the problem included. One thread, float64; for threads, "× of expected"
is the speed-up over the number of threads. The second table fits time per unit ∝ size^exponent by least squares in
logarithms, from the first size on.
"""

import statistics
import time
import warnings
from collections.abc import Sequence

import numpy as np

from benchmarks.rounds import interleaved, steps_for
from benchmarks.tables import Table, ratio_cells
from toolkit import ContourWarning

from .plan import Plan
from .scaling_cases import Case, Sized, cases

MOST_STEPS = 2_000_000
LONGER = 5.0  # times the usual length, of a run on threads, which start and end together


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
