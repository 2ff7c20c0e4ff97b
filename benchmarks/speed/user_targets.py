"""A target of one's own by its four doors: cosine25 in SGLD, 1,024 chains, one core, interleaved.

Rates beside that of the block function, medians over rounds in which all run once; and milliseconds from the function
to the compiled block.
"""

import math
import time
from collections.abc import Callable

import numpy as np

from benchmarks.runner.plan import Plan
from benchmarks.runner.rounds import interleaved, wall
from benchmarks.runner.tables import Table, ratio_cells
from targets import mixtures
from targets.symbolic import from_sympy
from toolkit import Layout, Target, from_callable, sample, samplers, target
from toolkit.problem.python_callable import Array

CHAINS = 1024
TURN = 2.0 * math.pi


def of_a_point(x, y):
    """Energy and gradient of cosine25 at one point."""
    squared = x * x + y * y
    energy = 0.2 * squared - 2.0 * (math.cos(TURN * x) + math.cos(TURN * y))
    slope_x = 0.4 * x + 4.0 * math.pi * math.sin(TURN * x)
    slope_y = 0.4 * y + 4.0 * math.pi * math.sin(TURN * y)
    if squared > 20.0:
        energy += squared - 20.0
        slope_x += 2.0 * x
        slope_y += 2.0 * y
    return energy, (slope_x, slope_y)


def of_arrays(points: Array) -> tuple[Array, Array]:
    """The same for an array of points."""
    squared = (points**2).sum(axis=1)
    beyond = squared > 20.0
    energies = 0.2 * squared - 2.0 * np.cos(TURN * points).sum(axis=1) + np.where(beyond, squared - 20.0, 0.0)
    slopes = np.where(beyond, 2.4, 0.4)[:, None] * points + 4.0 * math.pi * np.sin(TURN * points)
    return energies, slopes


def symbolic() -> Target:
    """The same by SymPy."""
    import sympy

    x, y = sympy.symbols("x y", real=True)
    squared = x**2 + y**2
    energy = squared / 5 - 2 * (sympy.cos(2 * sympy.pi * x) + sympy.cos(2 * sympy.pi * y))
    return from_sympy(energy + sympy.Piecewise((squared - 20, squared > 20), (0, True)), (x, y), name="cosine25")


def main(plan: Plan) -> None:
    """Print the table."""
    columns = ("door", "10⁶ chain-steps/s", "of the block's", "spread", "ms to compile")
    table = Table(plan.folder, "user_targets", *columns)
    fewer = 10 if plan.is_small else 1
    doors: dict[str, tuple[Callable[[], Target], int, Layout]] = {
        "block function": (mixtures.cosine25, 4_000 // fewer, Layout()),
        "@target": (lambda: target(of_a_point, dim=2), 4_000 // fewer, Layout()),
        "from_sympy": (symbolic, 4_000 // fewer, Layout()),
        "from_callable, NumPy": (lambda: from_callable(of_arrays, dim=2), 100 // fewer, Layout()),
        "the same, blocks of 1,024": (lambda: from_callable(of_arrays, dim=2), 100 // fewer, Layout(lanes=1024)),
    }
    runs: dict[str, Callable[[], float]] = {}
    compiling = {}
    for name, (make, n_steps, layout) in doors.items():
        started = time.perf_counter()
        made = make()
        made.compiled()
        compiling[name] = time.perf_counter() - started

        def rate(made=made, n_steps=n_steps, layout=layout):
            seconds = wall(lambda: sample(
                made, samplers.sgld(1e-3), n_steps=n_steps, thin=n_steps, n_chains=CHAINS, seed=1, threads=1,
                layout=layout, init=np.zeros(made.dim),
            ))  # fmt: skip
            return CHAINS * n_steps / seconds / 1e6

        rate()
        runs[name] = rate
    seen = interleaved(plan.rounds, runs)
    for name, rates in seen.items():
        cells = ratio_cells(rates, seen["block function"])
        table.row(name, f"{np.median(rates):.3g}", *cells, f"{1e3 * compiling[name]:.0f}")
