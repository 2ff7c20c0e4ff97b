"""Checks of bits: the same run with other threads, blocks, chunks and so on must give the same bits."""

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
from .._engine.run_options import RunOptions
from .._engine.state import Layout, default_lanes
from .._output.execution import run_sampler, stream_sampler
from .._output.run import Run
from ..accumulators import best_point, moments
from ..accumulators.chain_tree import POOLED_RESULTS
from ..errors import CheckpointError, CudaError, CudaWarning
from ..problem.definition import Problem
from ..samplers.sampler import Sampler
from ..schedules import Schedule
from .subprocess_run import NotSentError, run_in_subprocess

Arrays = dict[str, NDArray[Any]]

POOLED = "accumulated, pooled: "  # arrays of all chains together, which differ for a subset of them
OF_ALL_CHAINS = ("pooled_mean", "pooled_covariance", "standard_error")  # these differ for a subset of the chains
PER_DRAW = ("draws", "energies", "weights", "walker", "swaps", "reflections")


class Difference(NamedTuple):
    """The first difference: its place in words, and the two values."""

    place: str
    expected: Any
    got: Any


def arrays_of(run: Run) -> Arrays:
    """All arrays of a run by name, without empty ones; chains first, but in those of ``pooled`` accumulators."""
    arrays: Arrays = {"draws": run.replica_draws}
    if run.energies is not None:
        arrays["energies"] = run.energies
    if run.replica_weights is not None:
        arrays["weights"] = run.replica_weights
    if run.statistics is not None:
        arrays |= run.statistics._asdict()
    if run.trace is not None:
        arrays |= {f"trace.{name}": values for name, values in run.trace.fields.items()}
        if run.trace.theta is not None:
            arrays["trace.theta"] = run.trace.theta
    arrays |= {f"counts.{name}": values for name, values in run.counts._asdict().items()}
    for name, result in run.accumulated.items():
        if isinstance(result, POOLED_RESULTS):
            fields = {f: np.atleast_1d(values) for f, values in result._asdict().items() if values is not None}
            arrays |= {f"{POOLED}{name}.{field}": values for field, values in fields.items()}
            continue
        by_chain = {field: values for field, values in result._asdict().items() if field not in OF_ALL_CHAINS}
        arrays |= {f"accumulated.{name}.{field}": np.asarray(values) for field, values in by_chain.items()}
    return {name: values for name, values in arrays.items() if values.size}


def joined(chunks: list[Run]) -> Arrays:
    """The arrays of all chunks of a stream, concatenated."""
    parts = [arrays_of(chunk) for chunk in chunks]
    last = dict(parts[-1])
    for name in {name for part in parts for name in part if not name.startswith(("counts.", "accumulated.", POOLED))}:
        axis = 1 if name == "trace.theta" else 2
        last[name] = np.concatenate([part[name] for part in parts if name in part], axis=axis)
    return last


def first_difference(expected: Arrays, got: Arrays, steps: NDArray[np.int64]) -> Difference | None:
    """The first number of ``got`` whose bits differ from ``expected``; ``got`` may lack the last chains."""
    for name in [*expected, *(name for name in got if name not in expected)]:
        if name not in expected or name not in got:
            return Difference(f"{name} is there in one of the two alone", name in expected, name in got)
        is_pooled = name.startswith(POOLED)
        if is_pooled and len(got["counts.status"]) < len(expected["counts.status"]):
            continue  # it is of fewer chains
        a, b = expected[name] if is_pooled else expected[name][: len(got[name])], got[name]
        if a.shape != b.shape or a.dtype != b.dtype:
            return Difference(f"{name} has another shape or kind", f"{a.dtype}{a.shape}",
                              f"{b.dtype}{b.shape}")  # fmt: skip
        kind = f"u{a.dtype.itemsize}"
        differs = np.ascontiguousarray(a).view(kind) != np.ascontiguousarray(b).view(kind)
        if differs.any():
            return Difference(*locate(name, differs, steps, a, b))
    return None


def locate(
    name: str, differs: NDArray[np.bool_], steps: NDArray[np.int64], a: NDArray[Any], b: NDArray[Any]
) -> tuple[str, Any, Any]:
    """Where ``differs`` is first true, in words, and both values; draws in order of time, else in the array's order."""
    timed = name in PER_DRAW
    order = (2, 0, 1, *range(3, differs.ndim)) if timed else tuple(range(differs.ndim))
    first = np.argwhere(np.transpose(differs, order))[0]
    index = tuple(int(i) for _, i in sorted(zip(order, first, strict=True)))
    if timed:
        words = f"chain {index[0]}, replica {index[1]}, draw {index[2]} (step {steps[index[2]]})"
        words += f", coordinate {index[3]}" if differs.ndim > 3 else ""
    elif name.startswith(POOLED):
        words = f"entry {list(index)}"
    else:
        words = f"chain {index[0]}" + (f", entry {list(index[1:])}" if index[1:] else "")
    return f"{name} in {words}", a[index].item(), b[index].item()


Floats = NDArray[np.float64]

REFERENCE_LAYOUT = {"threads": 1, "layout": Layout(fused=False)}


class Case(NamedTuple):
    """One short run, which every check repeats."""

    problem: Problem
    sampler: Sampler
    n_steps: int
    burn_in: int
    init: Floats  # (chain, replica, dim)
    seed: int

    def arguments(self, **changes: Any) -> dict[str, Any]:
        """The arguments of ``sample`` besides problem and sampler; everything is recorded."""
        defaults = {
            "n_steps": self.n_steps, "burn_in": self.burn_in, "n_chains": len(self.init), "init": self.init,
            "seed": self.seed, "progress": False, "keep_replicas": True, "keep_energies": True, "trace_every": 7,
            "accumulators": {"moments": moments(), "best": best_point()}, "on_divergence": "stop",
        }  # fmt: skip
        return defaults | REFERENCE_LAYOUT | changes

    def run(self, **changes: Any) -> Run:
        """The run, with changed arguments."""
        return run_sampler(self.problem, self.sampler, RunOptions(**self.arguments(**changes)))

    def of_chains(self, n: int) -> "Case":
        """The first ``n`` chains alone."""
        rows = {
            name: values[:n].tolist() for name, values in self.sampler.arrays.items() if values.ndim == 2
        }  # per-chain step sizes and temperatures stay with their chains
        return self._replace(sampler=replace(self.sampler, **rows) if rows else self.sampler, init=self.init[:n])


class Verdict(NamedTuple):
    """The result of one check: True, False, or None where it was not made; and a sentence.

    needed: not made, but possible with other runs. n_steps: the steps that these need, about; 0 if unknown.
    """

    passed: bool | None
    words: str
    needed: bool = False
    n_steps: int = 0


def variations(case: Case) -> Iterator[tuple[str, str, Callable[[], Arrays]]]:
    """Name, words and run of every check, without the reference; a run that is impossible raises ``NotSentError``."""
    process = ThreadPoolExecutor(1)
    subprocess_result = process.submit(run_in_subprocess, [(case.problem, case.sampler, case.arguments())], arrays_of)
    process.shutdown(wait=False)  # it runs while the others run here
    many, chains = max(4, available_threads()), len(case.init)

    def run_with(**changes: Any) -> Callable[[], Arrays]:
        return lambda: arrays_of(case.run(**changes))

    yield "called again", "the same call a second time", run_with()
    for threads in (2, many):
        yield "threads", f"{threads} threads in place of 1", run_with(threads=threads)
    for lanes in (1, 8, 10**6):
        yield (
            "blocks",
            f"blocks of {lanes} lane{'s' * (lanes > 1)} in place of {default_lanes(case.sampler)}",
            run_with(layout=Layout(lanes=lanes)),
        )
    for length in (1, 7, case.n_steps // 2 + 1):
        words = f"chunks of {length} step{'s' * (length > 1)}"
        yield "chunks", words, run_with(layout=Layout(chunk_steps=length))
    for n in sorted({1, (chains + 1) // 2} - {chains}):
        part = case.of_chains(n)
        yield "chains", f"the first {n} of {chains} chains alone", lambda part=part: arrays_of(part.run())  # type: ignore[misc]
    yield "streamed", "streamed in chunks of 13 steps", lambda: joined(list(
        stream_sampler(case.problem, case.sampler, RunOptions(**case.arguments(layout=Layout(chunk_steps=13))))
    ))  # fmt: skip
    yield "resumed", f"a stop after a third of the steps, resumed by {many} threads", lambda: run_resumed(case, many)
    yield "another process", "another Python process", lambda: subprocess_result.result()[0]
    if case.problem.target.callback is None and has_gpu():
        yield "GPU", "a GPU", lambda: arrays_of(run_on_gpu(case))


def has_gpu() -> bool:
    """Whether the CUDA backend can be used here."""
    if importlib.util.find_spec("numba_cuda") is None:
        return False
    from .._engine.cuda.device import is_here

    return is_here()


def run_on_gpu(case: Case) -> Run:
    """The run on a GPU. Raises NotSentError where that is impossible, or its bits may differ for a known reason."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", CudaWarning)
        try:
            return case.run(backend="cuda")
        except (CudaError, CudaWarning, TypeError, ValueError) as error:
            raise NotSentError(str(error)) from error


def run_resumed(case: Case, threads: int) -> Arrays:
    """The run, stopped after a third of its steps and resumed from its checkpoint with other threads and chunks."""
    with tempfile.TemporaryDirectory() as folder:
        file = {"checkpoint": Path(folder) / "run.ckpt", "checkpoint_every": 1e-9}
        early = case.arguments(layout=Layout(chunk_steps=max(1, case.n_steps // 6)), **file)
        late = case.arguments(layout=Layout(lanes=8, chunk_steps=17), threads=threads, **file)
        chunks = stream_sampler(case.problem, case.sampler, RunOptions(**early))
        first = [chunk for chunk, _ in zip(chunks, range(2), strict=False)]
        chunks.close()  # type: ignore[attr-defined]
        return joined([*first, *stream_sampler(case.problem, case.sampler, RunOptions(**late))])


def check_bits(case: Case, likely_cause: Callable[[Case, str], str]) -> Iterator[tuple[str, Verdict]]:
    """Name and verdict of every check of bits; the likely cause is determined once, for the first failure."""
    reference = case.run()
    expected = arrays_of(reference)
    found_partition = case._replace(sampler=reference.sampler)  # so that contour's pilot runs only once
    passed: dict[str, list[str]] = {}
    cause = None
    failed: set[str] = set()
    for name, words, run in variations(found_partition):
        if name in failed:
            continue
        try:
            difference = first_difference(expected, run(), reference.steps)
        except (NotSentError, CheckpointError) as error:
            yield name, Verdict(None, f"not checked: {error}")
            continue
        if difference is None:
            passed.setdefault(name, []).append(words)
            continue
        failed.add(name)
        cause = likely_cause(found_partition, name) if cause is None else cause
        yield name, Verdict(False, in_words(words, difference, cause))
    for name, ways in passed.items():
        if name not in failed:
            yield name, Verdict(True, f"equal with {', '.join(ways)}")


def in_words(words: str, difference: Difference, cause: str) -> str:
    """A sentence on a failed check."""
    text = (
        f"with {words}, {difference.place} differs: {difference.got!r}, but {difference.expected!r} in the run it is "
        "compared with"
    )
    return f"{text}. {cause}" if cause else text


# Likely causes: targets and schedules that depend on the layout.

SIZES = (1, 3, 8)  # points in a call, compared with all at once


def likely_cause(case: Case, name: str) -> str:
    """A sentence on the likely cause of a failed check ``name``; empty where none is found."""
    points = spread_points(case)
    if schedule_depends(case.sampler.schedule, case.n_steps):
        return (
            f"The schedule {case.sampler.schedule.name!r} gives a step another value when it is asked for with other "
            "steps: a function of a custom schedule must depend on each step alone"
        )
    change = first_changed_value(case.problem, points, len(points))
    if change:
        return (
            f"Called twice with the same points, {change}: the target keeps state from call to call, or draws random "
            "numbers"
        )
    for size in SIZES:
        change_by_size = first_changed_value(case.problem, points, size)
        if change_by_size:
            return depends_on_other_points(case.problem, change_by_size, size)
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


def depends_on_other_points(problem: Problem, change: str, size: int) -> str:
    """The sentence for a target whose values at a point depend on the other points of a call."""
    text = f"Called with {size} point{'s' * (size > 1)} at a time in place of all at once, {change}"
    callback = problem.target.callback
    if callback is None:
        return f"{text}: the block function mixes lanes, or sums over them"
    coarse = callback.rounding > 2.0**-52
    precision = ", and its outputs are of less precision than float64, which makes it more frequent" if coarse else ""
    return (
        f"{text}: the rounding of the Python function depends on how many points it is given, as that of matrix "
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


def first_changed_value(problem: Problem, points: Floats, size: int) -> str:
    """The first value that differs if ``points`` are evaluated ``size`` at a time, in words; empty if none does."""
    at_once = np.column_stack(problem.target.evaluate(points))
    parts = [problem.target.evaluate(points[i : i + size]) for i in range(0, len(points), size)]
    separate = np.concatenate([np.column_stack(part) for part in parts])
    changed = np.argwhere(at_once.view(np.uint64) != separate.view(np.uint64))
    if not changed.size:
        return ""
    n, column = (int(i) for i in changed[0])
    what = "its energy" if column == 0 else f"its gradient[{column - 1}]"
    coordinates = ", ".join(map(repr, points[n, :3].tolist())) + ", …" * (points.shape[1] > 3)
    return f"{what} at [{coordinates}] is {at_once[n, column]!s} and then {separate[n, column]!s}"


def reads_scratch(problem: Problem, points: Floats) -> bool:
    """Whether the outputs depend on the initial scratch; False for a target with minibatches, which reads it."""
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
    at_once = schedule.factors(steps, n_steps)
    separate = [schedule.factors(steps[i : i + 1], n_steps) for i in range(0, n_steps, max(1, n_steps // 64))]
    sampled = [np.asarray(values)[:: max(1, n_steps // 64)] for values in at_once]
    return any(
        not np.array_equal(values, np.concatenate([np.atleast_1d(part[i]) for part in separate]))
        for i, values in enumerate(sampled)
    )
