"""Bits: the same run laid out otherwise, of which each must have those of the first."""

import importlib.util
import tempfile
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._compiler.disk_cache import available_threads
from .._engine.state import Layout, default_lanes
from .._output.run import Run
from ..accumulators import best_point, moments
from ..errors import CheckpointError, CudaError, CudaWarning
from ..problem.definition import Problem
from ..samplers.sampler import Sampler
from ..sampling import sample, stream
from ..schedules import Schedule
from .subprocess_run import NotSentError, run_elsewhere

# All that a run computed, and the first number in which two runs differ, bit by bit.

Arrays = dict[str, NDArray[Any]]

OF_ALL_CHAINS = ("pooled_mean", "pooled_covariance", "standard_error")  # of a subset they are others
PER_DRAW = ("draws", "energies", "weights", "walker", "swaps", "reflections")


class Difference(NamedTuple):
    """The first number that differs: in words, and the two values."""

    place: str
    expected: Any
    got: Any


def arrays_of(run: Run) -> Arrays:
    """All that a run computed, by name, chains first; what it lacks is left out."""
    found: Arrays = {"draws": run.replica_draws}
    if run.energies is not None:
        found["energies"] = run.energies
    if run.replica_weights is not None:
        found["weights"] = run.replica_weights
    if run.statistics is not None:
        found |= run.statistics._asdict()
    if run.trace is not None:
        found |= {f"trace.{name}": values for name, values in run.trace.fields.items()}
        if run.trace.theta is not None:
            found["trace.theta"] = run.trace.theta
    found |= {f"counts.{name}": values for name, values in run.counts._asdict().items()}
    for name, result in run.accumulated.items():
        by_chain = {field: values for field, values in result._asdict().items() if field not in OF_ALL_CHAINS}
        found |= {f"accumulated.{name}.{field}": np.asarray(values) for field, values in by_chain.items()}
    return {name: values for name, values in found.items() if values.size}


def joined(chunks: list[Run]) -> Arrays:
    """What the chunks of a stream hold together."""
    parts = [arrays_of(chunk) for chunk in chunks]
    last = dict(parts[-1])
    for name in {name for part in parts for name in part if not name.startswith(("counts.", "accumulated."))}:
        axis = 1 if name == "trace.theta" else 2
        last[name] = np.concatenate([part[name] for part in parts if name in part], axis=axis)
    return last


def first_difference(expected: Arrays, got: Arrays, steps: NDArray[np.int64]) -> Difference | None:
    """The earliest number of ``got`` whose bits are not those of ``expected``, of whose chains it may lack the last."""
    for name in [*expected, *(name for name in got if name not in expected)]:
        if name not in expected or name not in got:
            return Difference(f"{name} is there in one of the two alone", name in expected, name in got)
        ours, theirs = expected[name][: len(got[name])], got[name]
        if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
            return Difference(f"{name} has another shape or kind", f"{ours.dtype}{ours.shape}",
                              f"{theirs.dtype}{theirs.shape}")  # fmt: skip
        kind = f"u{ours.dtype.itemsize}"
        apart = np.ascontiguousarray(ours).view(kind) != np.ascontiguousarray(theirs).view(kind)
        if apart.any():
            return Difference(*place_of(name, apart, steps, ours, theirs))
    return None


def place_of(
    name: str, apart: NDArray[np.bool_], steps: NDArray[np.int64], ours: NDArray[Any], theirs: NDArray[Any]
) -> tuple[str, Any, Any]:
    """Where ``apart`` is first true, in words, and both values: in time for draws, else in the array's own order."""
    timed = name in PER_DRAW
    order = (2, 0, 1, *range(3, apart.ndim)) if timed else tuple(range(apart.ndim))
    first = np.argwhere(np.transpose(apart, order))[0]
    index = tuple(int(i) for _, i in sorted(zip(order, first, strict=True)))
    if timed:
        words = f"chain {index[0]}, replica {index[1]}, draw {index[2]} (step {steps[index[2]]})"
        words += f", coordinate {index[3]}" if apart.ndim > 3 else ""
    else:
        words = f"chain {index[0]}" + (f", entry {list(index[1:])}" if index[1:] else "")
    return f"{name} in {words}", ours[index].item(), theirs[index].item()


Floats = NDArray[np.float64]

LAID_OUT = {"threads": 1, "layout": Layout()}


class Case(NamedTuple):
    """One short run, which every check repeats."""

    problem: Problem
    sampler: Sampler
    n_steps: int
    burn_in: int
    init: Floats  # (chain, replica, dim)
    seed: int

    def arguments(self, **changes: Any) -> dict[str, Any]:
        """What ``sample`` is given beside problem and sampler; everything a run can tell is kept."""
        given = {
            "n_steps": self.n_steps, "burn_in": self.burn_in, "n_chains": len(self.init), "init": self.init,
            "seed": self.seed, "progress": False, "keep_replicas": True, "keep_energies": True, "trace_every": 7,
            "accumulators": {"moments": moments(), "best": best_point()},
        }  # fmt: skip
        return given | LAID_OUT | changes

    def run(self, **changes: Any) -> Run:
        """The run, laid out otherwise."""
        return sample(self.problem, self.sampler, **self.arguments(**changes))

    def of_chains(self, n: int) -> "Case":
        """The first ``n`` chains alone."""
        rows = {
            name: values[:n].tolist() for name, values in self.sampler.arrays.items() if values.ndim == 2
        }  # per-chain step sizes and temperatures stay with their chains
        return self._replace(sampler=replace(self.sampler, **rows) if rows else self.sampler, init=self.init[:n])


class Verdict(NamedTuple):
    """What became of one check: True, False, or None where it was not made; in words.

    needed: whether it was not made though other runs would allow it. n_steps: about how many they need; 0 if unknown.
    """

    passed: bool | None
    words: str
    needed: bool = False
    n_steps: int = 0


def variations(case: Case) -> Iterator[tuple[str, str, Callable[[], Arrays]]]:
    """Name, words and the run of every check but the reference; ``NotSentError`` says why one cannot be made."""
    process = ThreadPoolExecutor(1)
    elsewhere = process.submit(run_elsewhere, [(case.problem, case.sampler, case.arguments())], arrays_of)
    process.shutdown(wait=False)  # it starts while the others run here
    many, chains = max(4, available_threads()), len(case.init)

    def laid_out(**changes: Any) -> Callable[[], Arrays]:
        return lambda: arrays_of(case.run(**changes))

    yield "called again", "the same call a second time", laid_out()
    for threads in (2, many):
        yield "threads", f"{threads} threads in place of 1", laid_out(threads=threads)
    for lanes in (1, 8, 10**6):
        yield (
            "blocks",
            f"blocks of {lanes} lane{'s' * (lanes > 1)} in place of {default_lanes(case.sampler)}",
            laid_out(layout=Layout(lanes=lanes)),
        )
    for length in (1, 7, case.n_steps // 2 + 1):
        words = f"chunks of {length} step{'s' * (length > 1)}"
        yield "chunks", words, laid_out(layout=Layout(chunk_steps=length))
    for n in sorted({1, (chains + 1) // 2} - {chains}):
        part = case.of_chains(n)
        yield "chains", f"the first {n} of {chains} chains alone", lambda part=part: arrays_of(part.run())  # type: ignore[misc]
    yield "streamed", "streamed in chunks of 13 steps", lambda: joined(list(
        stream(case.problem, case.sampler, **case.arguments(layout=Layout(chunk_steps=13)))
    ))  # fmt: skip
    yield "resumed", f"a stop after a third of the steps, resumed by {many} threads", lambda: resumed(case, many)
    yield "another process", "another Python process", lambda: elsewhere.result()[0]
    if case.problem.target.callback is None and has_gpu():
        yield "GPU", "a GPU", lambda: arrays_of(on_gpu(case))


def has_gpu() -> bool:
    """Whether the CUDA backend can be used here."""
    if importlib.util.find_spec("numba_cuda") is None:
        return False
    from .._engine.cuda.device import is_here

    return is_here()


def on_gpu(case: Case) -> Run:
    """The run on a GPU. Raises NotSentError where it is refused there, or where its bits may rightly be others."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", CudaWarning)
        try:
            return case.run(backend="cuda")
        except (CudaError, CudaWarning, TypeError, ValueError) as error:
            raise NotSentError(str(error)) from error


def resumed(case: Case, threads: int) -> Arrays:
    """The run stopped after a third of its steps, and gone on with from its checkpoint by other threads and chunks."""
    with tempfile.TemporaryDirectory() as folder:
        file = {"checkpoint": Path(folder) / "run.ckpt", "checkpoint_every": 1e-9}
        early = case.arguments(layout=Layout(chunk_steps=max(1, case.n_steps // 6)), **file)
        late = case.arguments(layout=Layout(lanes=8, chunk_steps=17), threads=threads, **file)
        chunks = stream(case.problem, case.sampler, **early)
        first = [chunk for chunk, _ in zip(chunks, range(2), strict=False)]
        chunks.close()  # type: ignore[attr-defined]
        return joined([*first, *stream(case.problem, case.sampler, **late)])


def check_bits(case: Case, likely_cause: Callable[[Case, str], str]) -> Iterator[tuple[str, Verdict]]:
    """Name and verdict of every check of bits; a cause is looked for once, where the first fails."""
    reference = case.run()
    expected = arrays_of(reference)
    found_partition = case._replace(sampler=reference.sampler)  # contour's pilot need not run each time
    held: dict[str, list[str]] = {}
    cause = None
    failed: set[str] = set()
    for name, words, make in variations(found_partition):
        if name in failed:
            continue
        try:
            difference = first_difference(expected, make(), reference.steps)
        except (NotSentError, CheckpointError) as error:
            yield name, Verdict(None, f"not checked: {error}")
            continue
        if difference is None:
            held.setdefault(name, []).append(words)
            continue
        failed.add(name)
        cause = likely_cause(found_partition, name) if cause is None else cause
        yield name, Verdict(False, in_words(words, difference, cause))
    for name, ways in held.items():
        if name not in failed:
            yield name, Verdict(True, f"equal with {', '.join(ways)}")


def in_words(words: str, difference: Difference, cause: str) -> str:
    """A sentence on a failed check."""
    said = (
        f"with {words}, {difference.place} differs: {difference.got!r}, but {difference.expected!r} in the run it is "
        "compared with"
    )
    return f"{said}. {cause}" if cause else said


# Why bits differ: what a target or a schedule does that makes a run depend on its layout.

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
