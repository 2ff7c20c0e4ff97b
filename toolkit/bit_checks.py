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

from .accumulators import best_point, moments
from .bit_differences import Arrays, Difference, arrays_of, first_difference, joined
from .blocks import Layout, available_threads, usual_lanes
from .elsewhere import NotSentError, run_elsewhere
from .errors import CheckpointError, CudaError, CudaWarning
from .problem import Problem
from .run import Run
from .sampler import Sampler
from .sampling import sample, stream

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
            f"blocks of {lanes} lane{'s' * (lanes > 1)} in place of {usual_lanes(case.sampler)}",
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
    from .device import is_here

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
