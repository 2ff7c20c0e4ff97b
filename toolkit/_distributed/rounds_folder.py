"""The folder of a run in rounds: its state after a round, and its draws, from which the same call goes on."""

import time
from typing import Any, NamedTuple

import numpy as np

from .._engine.driver import defer_interrupt
from .._engine.job import Job
from .._engine.run_record import Counts
from .._engine.state import Outputs
from .._output.storage.checkpoint_file import BEGINNING, DamagedError, Mark, read_array
from .._output.storage.checkpoint_head import completed, head_of
from .._output.storage.description import describe_call
from ..tempering.contour_groups import SharedTheta
from .checkpoint_folder import Arrays, CheckpointFolder, SavedState
from .replica_group import PER_DRAW, State

NO_THETA: dict[str, Any] = {name: np.zeros((0, 0)) for name in ("theta", "earlier_theta", "visits")}  # of a group
COUNTED = tuple(name for name in Counts._fields if name not in NO_THETA)


class Progress(NamedTuple):
    """How far a run has come: its steps, the draws of these, the shared θ, each group's counts, and seconds."""

    steps: int
    draws: int
    shared: SharedTheta
    counts: tuple[Counts, ...]
    elapsed: float


class RoundsFolder:
    """Saves and restores a run in rounds; a context manager that releases its lock. Without a path it does nothing.

    Raises CheckpointError where the folder belongs to another run, is in use, or damaged beyond use.
    """

    def __init__(self, path: Any, job: Job, n_groups: int, steps_per_round: int, every: float) -> None:
        self._folder: CheckpointFolder | None = None
        self._every, self._last_try, self._draws = every, time.monotonic(), 0
        if path is None:
            return
        self._asked = describe_call(job, "sample_in_rounds") | {
            "n_groups": n_groups, "steps_per_round": steps_per_round, "n_steps": job.n_steps,
        }  # fmt: skip
        self._folder = CheckpointFolder(path, self._asked)

    def __enter__(self) -> "RoundsFolder":
        return self

    def __exit__(self, *exception: object) -> None:
        if self._folder is not None:
            self._folder.close()

    def complete(self, job: Job) -> Job:
        """``job`` with its contour's missing partition: the saved one, or else one found by a pilot."""
        folder = self._folder
        if folder is None:
            return completed(job, None, "")
        job = completed(job, folder.head, folder.name)
        folder.new_head = head_of(self._asked, job)
        return job

    def restore(self, job: Job, outputs: list[Outputs]) -> tuple[Progress, list[State]] | None:
        """What was saved last, with its draws in ``outputs`` (group,); None where nothing was."""
        folder = self._folder
        if folder is None or folder.head is None or not folder.has_state:
            return None
        found: list[tuple[Progress, list[State]]] = []

        def take(saved: SavedState) -> str:
            at, states = progress_of(saved, len(outputs))
            if job.counts_before(at.steps)[0] != at.draws:
                raise ValueError(f"{at.draws} draws of {at.steps} steps")
            self._read_draws(folder, saved.journal, outputs)
            found.append((at, states))
            return f"after step {at.steps}"

        folder.last_state(take)
        self._draws = found[-1][0].draws
        return found[-1]

    def _read_draws(self, folder: CheckpointFolder, until: Mark, outputs: list[Outputs]) -> None:
        """Read the journal up to ``until`` into the outputs. Raises DamagedError where it does not fit."""
        first, reached = 0, BEGINNING
        for mark, record in folder.journal.records():
            if mark.records > 1:
                last = int(record.info["draws"])
                for name, placed in record.arrays.items():
                    number, _, field = name.partition("/")
                    getattr(outputs[int(number)], field)[:, :, first:last] = read_array(folder.journal.file, placed)
                first = last
            reached = mark
            if mark.length >= until.length:
                break
        if reached != until:
            raise DamagedError(f"does not belong to {folder.paths.journal!r}, or that is torn")

    def is_due(self) -> bool:
        """Whether it is time to save."""
        return self._folder is not None and time.monotonic() - self._last_try >= self._every

    def save(self, at: Progress, states: list[State], outputs: list[Outputs]) -> None:
        """Save the run, completely or not at all; warn, once, where writing fails."""
        if self._folder is None:
            return
        arrays: Arrays = {"theta": at.shared.theta, "visits": at.shared.visits}
        for number, (state, counts) in enumerate(zip(states, at.counts, strict=True)):
            arrays |= {f"{number}/state/{name}": array for name, array in state.items()}
            arrays |= {f"{number}/counts/{name}": getattr(counts, name) for name in COUNTED}
        info = {"steps": at.steps, "draws": at.draws, "elapsed": at.elapsed}
        results = ({"draws": at.draws}, self._draws_until(at.draws, outputs)) if at.draws > self._draws else None
        with defer_interrupt():
            if self._folder.save(f"after step {at.steps}", results=results, state=(info, arrays)):
                self._draws = at.draws
        self._last_try = time.monotonic()

    def _draws_until(self, last: int, outputs: list[Outputs]) -> Arrays:
        """The draws since the last save."""
        new = slice(self._draws, last)
        parts = {f"{n}/{name}": getattr(own, name)[:, :, new] for n, own in enumerate(outputs) for name in PER_DRAW}
        return {name: part for name, part in parts.items() if part.size}


def progress_of(saved: SavedState, n_groups: int) -> tuple[Progress, list[State]]:
    """How far a saved run had come, and the groups' states. Raises KeyError, TypeError or ValueError."""
    info, arrays = saved.info, saved.arrays
    states, counts = [], []
    for number in range(n_groups):
        prefix = f"{number}/state/"
        states.append({key.removeprefix(prefix): a for key, a in arrays.items() if key.startswith(prefix)})
        counts.append(Counts(**NO_THETA, **{name: arrays[f"{number}/counts/{name}"] for name in COUNTED}))
    shared = SharedTheta(arrays["theta"], arrays["visits"])
    return Progress(int(info["steps"]), int(info["draws"]), shared, tuple(counts), float(info["elapsed"])), states
