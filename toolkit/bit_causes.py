"""Why bits differ: what a target or a schedule does that makes a run depend on its layout."""

import numpy as np
from numpy.typing import NDArray

from .bit_checks import Case
from .problem import Problem
from .schedule import Schedule

Floats = NDArray[np.float64]

SIZES = (1, 3, 8)  # points in a call, beside all at once


def likely_cause(case: Case, name: str) -> str:
    """A sentence on the likely cause of a failed check ``name``; empty where none is found."""
    points = spread_points(case)
    if schedule_depends(case.sampler.schedule, case.n_steps):
        return (
            f"The schedule {case.sampler.schedule.name!r} gives a step another value when it is asked for with other "
            "steps: a function of a custom schedule must depend on each step alone"
        )
    again = first_apart(case.problem, points, len(points))
    if again:
        return (
            f"Called twice with the same points, {again}: the target keeps state from call to call, or draws random "
            "numbers"
        )
    for size in SIZES:
        apart = first_apart(case.problem, points, size)
        if apart:
            return of_company(case.problem, apart, size)
    if reads_scratch(case.problem, points):
        return "The target's block function reads rows of its scratch that it has not written at this step"
    if name == "another process":
        return (
            "The other process compiles anew: a function reads something that is not the same there, such as the clock"
        )
    return (
        "Schedule and target pass when tried alone; what is left is a dynamics of one's own, or a target that keeps "
        "state between steps"
    )


def of_company(problem: Problem, apart: str, size: int) -> str:
    """The cause where a point's values depend on the other points of a call."""
    said = f"Called with {size} point{'s' * (size > 1)} at a time in place of all at once, {apart}"
    callback = problem.target.callback
    if callback is None:
        return f"{said}: the block function mixes lanes, or sums over them"
    coarse = callback.rounding > 2.0**-52
    precision = ", and its outputs are of less precision than float64, which makes it more frequent" if coarse else ""
    return (
        f"{said}: the rounding of the Python function depends on how many points it is given, as that of matrix "
        f"products (BLAS) and of sums over points does{precision}. Draws differ from layout to layout then, though "
        "their law does not; sums over coordinates written out one by one keep their bits"
    )


def spread_points(case: Case) -> Floats:
    """Some 24 points (n, dim) near the starts, in no particular order."""
    starts = case.init.reshape(-1, case.init.shape[2])
    rng = np.random.default_rng(case.seed)
    points = np.resize(starts, (24, starts.shape[1]))
    points = points + 0.1 * (1e-3 + np.abs(points)) * rng.standard_normal(points.shape)
    return np.asarray(points[np.isfinite(case.problem.target.evaluate(points)[0])])


def first_apart(problem: Problem, points: Floats, size: int) -> str:
    """What differs, in words, where ``points`` are evaluated ``size`` at a time after all at once; else nothing."""
    together = np.column_stack(problem.target.evaluate(points))
    parts = [problem.target.evaluate(points[i : i + size]) for i in range(0, len(points), size)]
    alone = np.concatenate([np.column_stack(part) for part in parts])
    apart = np.argwhere(together.view(np.uint64) != alone.view(np.uint64))
    if not apart.size:
        return ""
    n, column = (int(i) for i in apart[0])
    what = "its energy" if column == 0 else f"its gradient[{column - 1}]"
    shown = ", ".join(map(repr, points[n, :3].tolist())) + ", …" * (points.shape[1] > 3)
    return f"{what} at [{shown}] is {together[n, column]!s} and then {alone[n, column]!s}"


def reads_scratch(problem: Problem, points: Floats) -> bool:
    """Whether the outputs change with what stands in the scratch; a target with minibatches keeps things there."""
    target = problem.target
    if target.stochastic or target.callback is not None or target.scratch_rows == 0:
        return False
    outputs = []
    for filling in (0.0, np.nan):
        energy, gradient = np.full(len(points), np.nan), np.full((target.dim, len(points)), np.nan)
        scratch = np.full((target.scratch_rows, len(points)), filling)
        target.compiled()(np.array(points.T, order="C"), energy, gradient, target.parameters, scratch)
        outputs.append(np.concatenate([energy, gradient.ravel()]))
    return not np.array_equal(outputs[0].view(np.uint64), outputs[1].view(np.uint64))


def schedule_depends(schedule: Schedule, n_steps: int) -> bool:
    """Whether a step's factors differ between a call with all steps and one with that step alone."""
    steps = np.arange(n_steps)
    together = schedule.factors(steps, n_steps)
    alone = [schedule.factors(steps[i : i + 1], n_steps) for i in range(0, n_steps, max(1, n_steps // 64))]
    some = [np.asarray(values)[:: max(1, n_steps // 64)] for values in together]
    return any(
        not np.array_equal(values, np.concatenate([np.atleast_1d(part[i]) for part in alone]))
        for i, values in enumerate(some)
    )
