"""A run that is saved as it goes, and goes on where it was saved; ``docs/resume.md`` says what is promised."""

import contextlib
import os
import time
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .checkpoint_parts import Kept, Position, rows_of, segment, state_arrays
from .checkpoint_reading import load_saved
from .comparing import asked_for, compare_with
from .contour import Partition
from .describing import to_json
from .errors import CheckpointError, CheckpointWarning
from .interrupts import held
from .journal import BEGINNING, Journal, LockedError, Mark
from .partitions import with_partition
from .records import KINDS, MAGIC, DamagedError, Record, Stored, little, read_array, store
from .stamps import environment
from .state_file import write_state

if TYPE_CHECKING:
    from .driver import Driver
    from .job import Job
    from .state import Outputs


class Checkpoint:
    """What saves a job and restores it; a context manager that gives its lock back. Without a path it does nothing.

    kind: what the run is, which is compared. Raises CheckpointError where the files are another run's, are damaged
    beyond use, or in use.
    """

    def __init__(self, job: "Job", kind: str) -> None:
        self._journal: Journal | None = None
        self._head: Record | None = None
        self._every = job.checkpoint_every
        if job.checkpoint is None:
            return
        self._paths = job.checkpoint
        self._kept = Kept(draws=kind == "sample", trace=kind != "stream")
        self._asked = asked_for(job, kind)
        self._journal = self._open()
        try:
            self._head = self._compare(self._journal)
        except BaseException:
            self._journal.close()
            raise
        self._saved = Position(0, 0, 0, 0.0, job.n_steps, BEGINNING)
        self._keeps_last = True  # a state that could not be used must not take the place of the one that could
        self._has_warned = False
        self._noted: tuple[Position, dict[str, Stored]] | None = None
        self._looked = time.monotonic()

    def __enter__(self) -> "Checkpoint":
        return self

    def __exit__(self, *exception: object) -> None:
        if self._journal is not None:
            self._journal.close()

    def _open(self) -> Journal:
        """The journal, locked."""
        try:
            journal = Journal(self._paths.journal)
        except LockedError:
            raise CheckpointError(
                f"checkpoint {self._paths.state!r} is in use by another run, of this process or another; wait for its "
                "end, or give this run a path of its own"
            ) from None
        except OSError as error:
            raise CheckpointError(f"checkpoint {self._paths.state!r} cannot be written: {error}") from error
        if not journal.is_locked:
            warnings.warn(
                f"files beside checkpoint {self._paths.state!r} cannot be locked there; see that no second run uses it",
                CheckpointWarning,
                stacklevel=3,
            )
        return journal

    def _compare(self, journal: Journal) -> Record | None:
        """The journal's head, which says what run it is; None where nothing has been saved yet."""
        has_state = os.path.exists(self._paths.state) or os.path.exists(self._paths.previous)
        try:
            head = journal.first() if has_state else None
            if head is None:
                if journal.size and not is_ours(journal):
                    raise DamagedError("is no checkpoint of this toolkit")
                return None
            arrays = {name: read_array(journal.file, placed) for name, placed in head.arrays.items()}
        except (DamagedError, OSError) as error:
            raise CheckpointError(
                f"checkpoint {self._paths.state!r} cannot be used: {self._paths.journal!r}, which holds its draws, "
                f"{error}; give another path, or remove the files {self._paths.state + '*'!r} to begin anew"
            ) from None
        compare_with(self._paths, head.info, arrays, self._asked)
        return head

    def complete(self, job: "Job") -> "Job":
        """``job`` with the partition that contour lacks: the saved one, or else one found by a pilot."""
        if self._head is not None and self._head.info.get("partition") is not None:
            try:
                low, width, bins = self._head.info["partition"]
                partition, gradients = Partition(low, width, bins), int(self._head.info["pilot_gradients"])
            except (TypeError, ValueError, KeyError) as error:
                raise CheckpointError(f"{self._paths.journal!r} cannot be read: {error!r}") from None
            contour: Any = job.sampler.tempering
            sampler = replace(job.sampler, tempering=replace(contour, partition=partition))
            return replace(job, sampler=sampler, pilot_gradients=gradients)
        sampler, pilot = with_partition(job, stacklevel=3)
        return replace(job, sampler=sampler, pilot_gradients=pilot) if pilot else job

    def restore(self, driver: "Driver[Any]", outputs: "Outputs") -> None:
        """Bring the driver and its outputs to where the run was saved, or begin the files of a new run."""
        if self._journal is None:
            return
        for name, state in driver.accumulated.items():
            for key, array in state.items():
                if not KINDS.fullmatch(little(array.dtype).str):
                    raise TypeError(
                        f"accumulators[{name!r}] must hold arrays of numbers to be saved, got {array.dtype} in {key!r}"
                    )
        if self._head is None:
            self._begin(driver)
        else:
            self._keeps_last = load_saved(self._paths, self._journal, self._kept, driver, outputs)
        self._saved = self._position(driver)
        self._looked = time.monotonic()

    def _begin(self, driver: "Driver[Any]") -> None:
        """Write what run this is at the head of the journal."""
        assert self._journal is not None
        text, arrays = to_json(self._asked)
        tempering = driver.job.sampler.tempering
        found = getattr(tempering, "partition", None) if driver.job.pilot_gradients else None
        info = {
            "description": text,
            "environment": environment(),
            "partition": found and [found.u_min, found.width, found.n_bins],
            "pilot_gradients": driver.job.pilot_gradients,
        }
        self._journal.go_to(BEGINNING)
        try:
            self._journal.append(info, {name: store(array) for name, array in arrays.items()})
        except OSError as error:
            raise CheckpointError(f"checkpoint {self._paths.state!r} cannot be written: {error}") from error

    def after_chunk(self, driver: "Driver[Any]", outputs: "Outputs") -> None:
        """Save where it is time to."""
        if self._journal is None:
            return
        if driver.job.calls_python:  # what it raises breaks a chunk off, and the state with it
            self._noted = self._position(driver), state_arrays(driver, copies=True)
        if time.monotonic() - self._looked >= self._every:
            self.save(driver, outputs)

    def save(self, driver: "Driver[Any]", outputs: "Outputs") -> None:
        """Save the run as it stands after its last whole chunk, where that is known; warn where the disk refuses."""
        if self._journal is None or (not driver.is_whole and self._noted is None):
            return
        position, arrays = self._noted or (self._position(driver), state_arrays(driver, copies=False))
        if position.steps == self._saved.steps:
            return
        try:
            with held():
                position = position._replace(journal=self._append(position, outputs))
                write_state(self._paths, position.as_info(), arrays, keeps_last=self._keeps_last)
                self._saved, self._keeps_last = position, True
        except OSError as error:
            self._journal.go_to(self._saved.journal)
            with contextlib.suppress(OSError):  # so that what there is of the disk is free for others
                self._journal.cut()
            if not self._has_warned:
                self._has_warned = True
                ends = driver.done == driver.job.n_steps
                then = "the run ends" if ends else f"sampling goes on, and the next is tried in {self._every:g} s"
                warnings.warn(
                    f"checkpoint {self._paths.state!r} could not be written after step {driver.done}: {error}; it "
                    f"stands at step {self._saved.steps}, and {then}",
                    CheckpointWarning,
                    stacklevel=4,
                )
        finally:
            self._looked = time.monotonic()

    def _append(self, position: Position, outputs: "Outputs") -> Mark:
        """Write what is new since the last save into the journal, and return where it ends."""
        assert self._journal is not None
        self._journal.check_place(self._paths.journal)
        saved = self._saved
        self._journal.go_to(saved.journal)
        (first_draw, first_traced), (draws, traced) = self._kept.of(saved), self._kept.of(position)
        if draws > first_draw or traced > first_traced:
            parts = segment(outputs, (first_draw, draws), (first_traced, traced))
            arrays = {name: Stored(part.dtype, part.shape, rows_of(part)) for name, part in parts.items()}
            self._journal.append({"draws": draws, "traced": traced}, arrays)
        return self._journal.mark

    def _position(self, driver: "Driver[Any]") -> Position:
        """How far the driver is."""
        assert self._journal is not None
        return Position(
            driver.done, driver.n_draws, driver.n_traced, driver.elapsed, driver.job.n_steps, self._journal.mark
        )


def is_ours(journal: Journal) -> bool:
    """Whether a journal without a state is the beginning of one of ours, which a kill has left."""
    journal.file.seek(0)
    return MAGIC.startswith(journal.file.read(len(MAGIC)))
