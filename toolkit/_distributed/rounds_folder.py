"""The folder of a run in rounds: its state after a round, and its draws, from which the same call goes on."""

import contextlib
import dataclasses
import io
import os
import time
import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._compiler.disk_cache import environment
from .._engine.driver import defer_interrupt
from .._engine.job import Job, Paths
from .._engine.partition_pilot import with_partition
from .._engine.run_record import Counts
from .._engine.state import Outputs
from .._output.storage.checkpoint_file import (
    BEGINNING,
    DamagedError,
    Journal,
    LockedError,
    Mark,
    Record,
    Stored,
    read_array,
    read_record,
    store,
    write_state,
)
from .._output.storage.description import compare_with, describe_call, to_json
from ..errors import CheckpointError, CheckpointWarning, check_path, shown
from ..tempering import Contour, Partition
from ..tempering.contour_groups import SharedTheta
from .replica_group import PER_DRAW, State

Array = NDArray[Any]
NO_THETA: dict[str, Any] = {name: np.zeros((0, 0)) for name in ("theta", "earlier_theta", "visits")}  # of a group
COUNTED = tuple(name for name in Counts._fields if name not in NO_THETA)


class Progress(NamedTuple):
    """How far a run has come: its steps, the draws of these, the shared θ, each group's counts, and seconds."""

    steps: int
    draws: int
    shared: SharedTheta
    counts: tuple[Counts, ...]
    elapsed: float


def check_folder(path: Any) -> Paths | None:
    """The files of a run in the folder ``path``, which is made; None for None. Raises TypeError or ValueError."""
    if path is None:
        return None
    given = check_path("checkpoint", path, "None or the path of a folder")
    if not given or "\0" in given:
        raise ValueError(f"checkpoint must be the path of a folder, got {given!r}")
    folder = os.path.realpath(given)
    if not os.path.isdir(os.path.dirname(folder)):
        raise ValueError(f"checkpoint must lie in a folder that exists, got {given!r}, and there is no such folder")
    if os.path.lexists(folder) and not os.path.isdir(folder):
        raise ValueError(f"checkpoint must be the path of a folder, got {given!r}, and that is a file")
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise ValueError(f"checkpoint must be a folder that can be made, got {given!r:.80}: {error}") from None
    paths = Paths(*(os.path.join(folder, name) for name in ("state", "state.previous", "state.writing", "draws")))
    for name in paths:
        if os.path.lexists(name) and (os.path.islink(name) or not os.path.isfile(name)):
            raise CheckpointError(f"checkpoint {given!r} cannot be used: {name!r} is no file of a run")
    return paths


class RoundsFolder:
    """Saves and restores a run in rounds; a context manager that releases its lock. Without a path it does nothing.

    Raises CheckpointError where the folder belongs to another run, is in use, or damaged beyond use.
    """

    def __init__(self, path: Any, job: Job, n_groups: int, steps_per_round: int, every: float) -> None:
        self._journal: Journal | None = None
        self._every, self._saved, self._last_try = every, BEGINNING, time.monotonic()
        self._draws, self._has_warned, self._keeps_last = 0, False, True
        paths = check_folder(path)
        if paths is None:
            return
        self._paths, self.name = paths, os.path.dirname(paths.state)
        self._asked = describe_call(job, "sample_in_rounds") | {
            "n_groups": n_groups, "steps_per_round": steps_per_round, "n_steps": job.n_steps,
        }  # fmt: skip
        try:
            self._journal = Journal(paths.journal)
        except LockedError:
            raise CheckpointError(
                f"checkpoint {self.name!r} is in use by another run, of this process or another; wait for its end, or "
                "give this run a folder of its own"
            ) from None
        except OSError as error:
            raise CheckpointError(f"checkpoint {self.name!r} cannot be written: {error}") from error
        try:
            self._head = self._compare(self._journal)
        except BaseException:
            self._journal.close()
            raise

    def __enter__(self) -> "RoundsFolder":
        return self

    def __exit__(self, *exception: object) -> None:
        if self._journal is None:
            return
        is_empty = self._journal.size == 0
        self._journal.close()
        if is_empty:  # nothing was saved
            with contextlib.suppress(OSError):
                os.remove(self._paths.journal)
                os.rmdir(self.name)

    def _compare(self, journal: Journal) -> Record | None:
        """The journal's first record, which describes the run; None where nothing has been saved yet."""
        if not journal.size:
            return None
        has_state = os.path.exists(self._paths.state) or os.path.exists(self._paths.previous)
        try:
            head = journal.first()
            arrays = {name: read_array(journal.file, placed) for name, placed in head.arrays.items()}
        except (DamagedError, OSError) as error:
            if "torn" in str(error) and not has_state:
                return None  # killed while it was written
            raise self._unusable(f"{self._paths.journal!r} {error}") from None
        compare_with(self._paths._replace(state=self.name), head.info, arrays, self._asked)
        return head if has_state else None

    def _unusable(self, why: str) -> CheckpointError:
        """The error of files that cannot be read."""
        return CheckpointError(
            f"checkpoint {self.name!r} cannot be used: {why}; give another path, or remove the folder to begin anew"
        )

    def complete(self, job: Job) -> Job:
        """``job`` with its contour's missing partition: the saved one, or else one found by a pilot."""
        if self._journal is not None and self._head is not None and self._head.info.get("partition") is not None:
            try:
                low, width, bins = self._head.info["partition"]
                partition, gradients = Partition(low, width, bins), int(self._head.info["pilot_gradients"])
            except (TypeError, ValueError, KeyError) as error:
                raise self._unusable(f"it cannot be read: {shown(error)}") from None
            contour: Any = job.sampler.tempering
            sampler = dataclasses.replace(job.sampler, tempering=dataclasses.replace(contour, partition=partition))
            return dataclasses.replace(job, sampler=sampler, pilot_gradients=gradients)
        sampler, pilot = with_partition(job, stacklevel=3)
        job = dataclasses.replace(job, sampler=sampler, pilot_gradients=pilot)
        if self._journal is not None and self._head is None:
            self._prepare_head(job)
        return job

    def _prepare_head(self, job: Job) -> None:
        """Make the journal's first record, the description of the run."""
        assert self._journal is not None
        assert isinstance(job.sampler.tempering, Contour)
        found = job.sampler.tempering.partition if job.pilot_gradients else None
        text, arrays = to_json(self._asked)
        self._head_record = (
            {
                "description": text, "environment": environment(), "pilot_gradients": job.pilot_gradients,
                "partition": found and [found.u_min, found.width, found.n_bins],
            },
            {name: store(array) for name, array in arrays.items()},
        )  # fmt: skip
        self._saved = BEGINNING

    def restore(self, outputs: list[Outputs], n_chains: int) -> tuple[Progress, list[State]] | None:
        """What was saved last, with its draws in ``outputs`` (group,); None where nothing was."""
        if self._journal is None or self._head is None:
            return None
        reasons: list[str] = []
        for path in (self._paths.state, self._paths.previous):
            try:
                found = self._load(path, outputs)
            except FileNotFoundError:
                continue  # killed between two renames
            except (DamagedError, OSError, KeyError, TypeError, ValueError) as error:
                words = str(error) if isinstance(error, DamagedError | OSError) else f"cannot be read: {shown(error)}"
                reasons.append(f"{path!r} {words}")
                continue
            if reasons:
                warnings.warn(
                    f"{reasons[0]}; the run goes on from {path!r}, saved after step {found[0].steps}",
                    CheckpointWarning,
                    stacklevel=5,
                )
            self._keeps_last = not reasons
            return found
        raise self._unusable("; ".join(reasons))

    def _load(self, path: str, outputs: list[Outputs]) -> tuple[Progress, list[State]]:
        """One state, with its draws. Raises what shows that it cannot be used."""
        with io.FileIO(path) as file:
            record = read_record(file, 0, os.fstat(file.fileno()).st_size)
            arrays = {name: read_array(file, placed) for name, placed in record.arrays.items()}
        info = record.info
        mark = Mark(int(info["journal"][0]), int(info["journal"][1]), bytes.fromhex(info["journal"][2]))
        self._read_draws(mark, outputs)
        states: list[State] = []
        counts = []
        for number in range(len(outputs)):
            prefix = f"{number}/state/"
            states.append({key.removeprefix(prefix): a for key, a in arrays.items() if key.startswith(prefix)})
            own = {name: arrays[f"{number}/counts/{name}"] for name in COUNTED}
            counts.append(Counts(**NO_THETA, **own))
        shared = SharedTheta(arrays["theta"], arrays["visits"])
        self._saved, self._draws = mark, int(info["draws"])
        return Progress(int(info["steps"]), self._draws, shared, tuple(counts), float(info["elapsed"])), states

    def _read_draws(self, until: Mark, outputs: list[Outputs]) -> None:
        """Read the journal up to ``until`` into the outputs. Raises DamagedError where it does not fit."""
        journal = self._journal
        assert journal is not None
        first, reached = 0, BEGINNING
        for mark, record in journal.records():
            if mark.records > 1:
                last = int(record.info["draws"])
                for name, placed in record.arrays.items():
                    number, _, field = name.partition("/")
                    getattr(outputs[int(number)], field)[:, :, first:last] = read_array(journal.file, placed)
                first = last
            reached = mark
            if mark.length >= until.length:
                break
        if reached != until:
            raise DamagedError(f"does not belong to {self._paths.journal!r}, or that is torn")

    def is_due(self) -> bool:
        """Whether it is time to save."""
        return self._journal is not None and time.monotonic() - self._last_try >= self._every

    def save(self, at: Progress, states: list[State], outputs: list[Outputs]) -> None:
        """Save the run, completely or not at all; warn, once, where writing fails."""
        if self._journal is None:
            return
        try:
            with defer_interrupt():
                mark = self._append(at, outputs)
                arrays = {"theta": at.shared.theta, "visits": at.shared.visits}
                for number, (state, counts) in enumerate(zip(states, at.counts, strict=True)):
                    arrays |= {f"{number}/state/{name}": array for name, array in state.items()}
                    arrays |= {f"{number}/counts/{name}": getattr(counts, name) for name in COUNTED}
                info = {
                    "steps": at.steps, "draws": at.draws, "elapsed": at.elapsed,
                    "journal": [mark.length, mark.records, mark.digest.hex()],
                }  # fmt: skip
                stored = {name: store(array) for name, array in arrays.items()}
                write_state(self._paths, info, stored, keeps_last=self._keeps_last)
                self._saved, self._draws, self._keeps_last = mark, at.draws, True
        except OSError as error:
            self._journal.go_to(self._saved)
            with contextlib.suppress(OSError):  # to free the space on the disk
                self._journal.cut()
            if not self._has_warned:
                self._has_warned = True
                warnings.warn(
                    f"checkpoint {self.name!r} could not be written after step {at.steps}: {error}; sampling goes on",
                    CheckpointWarning,
                    stacklevel=6,
                )
        finally:
            self._last_try = time.monotonic()

    def _append(self, at: Progress, outputs: list[Outputs]) -> Mark:
        """Append the draws since the last save to the journal, and return its end."""
        journal = self._journal
        assert journal is not None
        journal.check_place(self._paths.journal)
        journal.go_to(self._saved)
        if self._saved == BEGINNING:
            journal.append(*self._head_record)
        if at.draws > self._draws:
            arrays: dict[str, Stored] = {}
            for number, own in enumerate(outputs):
                for name in PER_DRAW:
                    part = getattr(own, name)[:, :, self._draws : at.draws]
                    if part.size:
                        arrays[f"{number}/{name}"] = store(part)
            journal.append({"draws": at.draws}, arrays)
        return journal.mark
