"""Checkpoints: save a run while it runs, and resume it; ``docs/resume.md`` says what is guaranteed."""

import contextlib
import io
import os
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._engine.driver import defer_interrupt
from ..._engine.job import JUDGED, Paths
from ..._engine.state import STATUS, are_valid, stored_names, views
from ...errors import CheckpointError, CheckpointWarning, shown, warn_user
from .checkpoint_file import (
    BEGINNING,
    KINDS,
    DamagedError,
    Journal,
    Mark,
    Record,
    Stored,
    little_endian,
    read_array,
    read_into,
    read_record,
    row_batches,
    store,
    write_state,
)
from .checkpoint_head import (
    compare_with,
    completed,
    description_record,
    head_of,
    is_foreign_file,
    last_usable,
    open_journal,
)
from .description import CHAINS, check_extension, describe_call, describe_problem

if TYPE_CHECKING:
    from ..._engine.driver import Driver
    from ..._engine.job import Job
    from ..._engine.state import Outputs

# Contents of a checkpoint: the position of the run, its state's arrays, and its draws since the last save.

Array = NDArray[Any]


class Position(NamedTuple):
    """Progress of a saved run, its total steps, and the end of its journal."""

    steps: int
    draws: int
    traced: int
    elapsed: float
    n_steps: int
    journal: Mark

    def as_info(self) -> dict[str, Any]:
        """Convert to JSON."""
        return {**self._asdict(), "journal": [*self.journal[:2], self.journal.digest.hex()]}

    @classmethod
    def of_info(cls, info: dict[str, Any]) -> "Position":
        """Convert from JSON. Raises DamagedError where it is malformed."""
        try:
            length, records, digest = info["journal"]
            mark = Mark(int(length), int(records), bytes.fromhex(digest))
            steps, draws, traced, n_steps = (int(info[name]) for name in ("steps", "draws", "traced", "n_steps"))
            if not 0 < steps <= n_steps < 2**63:
                raise ValueError(f"{steps} of {n_steps} steps")
            return cls(steps, draws, traced, float(info["elapsed"]), n_steps, mark)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise DamagedError(f"cannot be read: {shown(error)}") from None


class JournalFields(NamedTuple):
    """Which outputs of a run its journal holds."""

    draws: bool
    trace: bool
    held: bool  # and whether it is of held chains, whose states say more

    def counts_at(self, position: Position) -> tuple[int, int]:
        """Draws and traced times in the journal at ``position``."""
        return position.draws if self.draws else 0, position.traced if self.trace else 0


def state_arrays(driver: "Driver[Any]", *, copies: bool) -> dict[str, Stored]:
    """The state's arrays: copied now, or read from the blocks while they are written."""
    n_chains, n_replicas = len(driver.job.init), driver.job.sampler.n_replicas
    arrays = {}
    for name in stored_names(driver.blocks, n_replicas):
        first = next(views(driver.blocks, name, n_replicas))
        pieces = views(driver.blocks, name, n_replicas)
        shape = (n_chains, *first.shape[1:])
        arrays[name] = Stored(first.dtype, shape, [np.concatenate(list(pieces))] if copies else pieces)
    for name, array in accumulated_arrays(driver).items():
        arrays[name] = store(array.copy() if copies else array)
    return arrays


def accumulated_arrays(driver: "Driver[Any]") -> dict[str, Array]:
    """The accumulators' arrays by unique names."""
    states = driver.accumulated.items()
    return {f"accumulators[{name!r}][{key!r}]": array for name, state in states for key, array in state.items()}


def segment(outputs: "Outputs", draws: tuple[int, int], traced: tuple[int, int]) -> dict[str, Array]:
    """Views of the outputs between two draws, and between two traced times."""
    drawn, times = slice(*draws), slice(*traced)
    parts = {name: getattr(outputs, name)[:, :, drawn] for name in ("draws", "energies", "weights", "statistics")}
    parts |= {"trace": outputs.trace[:, :, times], "theta": outputs.theta[:, times]}
    return {name: part for name, part in parts.items() if part.size}


def rows_of(part: Array) -> Iterator[Array]:
    """Views of ``part``, a few chains at a time."""
    return row_batches(part, part.nbytes // len(part))


def check_fit(record: Record, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Raise DamagedError where a record has no array ``name`` of this shape and kind."""
    placed = record.arrays.get(name)
    if placed is None or placed.shape != shape or placed.dtype != little_endian(dtype):
        raise DamagedError(f"cannot be read: it has no {name} of shape {shape} and kind {dtype}")


# Held chains: a saved state says on which problem they go on, and where they began.


def held_contents(driver: "Driver[Any]") -> tuple[dict[str, Any], dict[str, Stored]]:
    """What a state of held chains has besides: the problem of the moment, and the start."""
    info, arrays = description_record({"problem": describe_problem(driver.job.problem)})
    return info, {**arrays, "init": store(driver.job.init)}


def take_held(driver: "Driver[Any]", paths: Paths, file: io.FileIO, record: Record) -> None:
    """Take the start from a state of held chains. Raises CheckpointError where it is of another problem."""
    own = record._replace(arrays={name: a for name, a in record.arrays.items() if name.startswith("problem.")})
    compare_with(file, own, {"problem": describe_problem(driver.job.problem)}, paths.state)
    check_fit(record, "init", driver.job.init.shape, driver.job.init.dtype)
    driver.job = replace(driver.job, init=read_array(file, record.arrays["init"]))


COPYING = 0.02  # share of the time of sampling that copies of the state may take

# Reading: the last state with its draws or, if these are damaged, the previous state.


def load_state(
    path: str, paths: Paths, journal: Journal, kept: JournalFields, driver: "Driver[Any]", outputs: "Outputs"
) -> None:
    """Read one state and its draws. Raises DamagedError or OSError where they cannot be used."""
    with io.FileIO(path) as file:
        record = read_record(file, 0, os.fstat(file.fileno()).st_size)
        position = Position.of_info(record.info)
        check_extension(driver.job, paths, position.steps, position.n_steps)
        if (position.draws, position.traced) != driver.job.counts_before(position.steps):
            raise DamagedError("cannot be read: its steps have other draws")
        names = stored_names(driver.blocks, driver.job.sampler.n_replicas, STATUS in record.arrays)
        accumulated = accumulated_arrays(driver)
        check_judged(driver, paths, record)
        if kept.held:
            take_held(driver, paths, file, record)
        for name in names:
            first = next(views(driver.blocks, name, driver.job.sampler.n_replicas))
            check_fit(record, name, (len(driver.job.init), *first.shape[1:]), first.dtype)
        for name, array in accumulated.items():
            check_fit(record, name, array.shape, array.dtype)
        read_draws(position, paths, journal, kept, outputs)
        for name in names:
            read_into(file, record.arrays[name], views(driver.blocks, name, driver.job.sampler.n_replicas))
        for name, array in accumulated.items():
            read_into(file, record.arrays[name], [array])
    if not are_valid(driver.blocks) or not all(
        accumulator.is_valid(driver.accumulated[name])
        for name, accumulator in driver.job.accumulators.items()
        if hasattr(accumulator, "is_valid")
    ):
        raise DamagedError("cannot be read: its values are impossible")
    driver.resume(position.steps, position.draws, position.traced, position.elapsed)


def check_judged(driver: "Driver[Any]", paths: Paths, record: Record) -> None:
    """Raise CheckpointError where ``until`` needs moments of draws that were neither kept nor gathered."""
    if JUDGED in driver.accumulated and not any(name.startswith(f"accumulators[{JUDGED!r}]") for name in record.arrays):
        raise CheckpointError(
            f"until must be as in the call that made checkpoint {paths.state!r}, which kept no draws and gathered none "
            "of their moments: leave out the conditions on draws (ess, r_hat, mcse), or give another path"
        )


def read_draws(position: Position, paths: Paths, journal: Journal, kept: JournalFields, outputs: "Outputs") -> None:
    """Read the journal into the outputs, up to the saved position. Raises DamagedError where it does not fit."""
    done = Position(0, 0, 0, 0.0, position.n_steps, BEGINNING)
    try:
        for mark, record in journal.records():
            if mark.records > 1:
                done = read_segment(journal, done, record, outputs)
            if mark.length >= position.journal.length:
                break
    except DamagedError as error:
        raise DamagedError(f"cannot be used, as {paths.journal!r}, which holds its draws, {error}") from None
    if journal.mark != position.journal or (done.draws, done.traced) != kept.counts_at(position):
        raise DamagedError(f"does not belong to {paths.journal!r}, or that is torn")


def read_segment(journal: Journal, done: Position, record: Record, outputs: "Outputs") -> Position:
    """Read one record of the journal into the outputs; returns the position up to which they are filled."""
    try:
        draws, traced = int(record.info["draws"]), int(record.info["traced"])
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise DamagedError(f"cannot be read: {shown(error)}") from None
    parts = segment(outputs, (done.draws, draws), (done.traced, traced))
    for name, part in parts.items():
        check_fit(record, name, part.shape, part.dtype)
        read_into(journal.file, record.arrays[name], [part])
    return done._replace(draws=draws, traced=traced)


class Checkpoint:
    """Saves and restores a job; a context manager that releases its lock. Without a path it does nothing.

    kind: of the run, which is compared. Raises CheckpointError where the files belong to another run, are unusable, or
    are in use.
    """

    def __init__(self, job: "Job", kind: str) -> None:
        self._journal: Journal | None = None
        self._head: Record | None = None
        self._every = job.checkpoint_every
        if job.checkpoint is None:
            return
        self._paths = job.checkpoint
        self._kept = JournalFields(draws=kind == "sample", trace=kind not in ("stream", CHAINS), held=kind == CHAINS)
        self._asked = describe_call(job, kind)
        self._is_new = not os.path.exists(self._paths.journal)
        self._journal = open_journal(self._paths)
        try:
            self._head = self._compare(self._journal)
        except BaseException:
            self._close()
            raise
        self._saved = Position(0, 0, 0, 0.0, job.n_steps, BEGINNING)
        self._keeps_last = True  # an unusable state must not replace the previous, usable one
        self._has_warned = False
        self._snapshot: tuple[Position, dict[str, Stored]] | None = None
        self._snapshot_seconds = 0.0
        self._last_try = time.monotonic()

    def __enter__(self) -> "Checkpoint":
        return self

    def __exit__(self, *exception: object) -> None:
        self._close()

    def _close(self) -> None:
        """Release the lock, and remove a journal that this run has begun and not written."""
        if self._journal is None:
            return
        nothing_saved = self._is_new and self._journal.size == 0
        self._journal.close()
        if nothing_saved:
            with contextlib.suppress(OSError):
                os.remove(self._paths.journal)

    def _compare(self, journal: Journal) -> Record | None:
        """The journal's first record, which describes the run; None where nothing has been saved yet."""
        if not os.path.exists(self._paths.state) and not os.path.exists(self._paths.previous):
            return None
        try:
            head = journal.first()
        except (DamagedError, OSError) as error:
            raise unusable(self._paths, f"{self._paths.journal!r}, which holds its draws, {error}") from None
        compare_with(journal.file, head, self._asked, self._paths.state)
        return head

    def complete(self, job: "Job") -> "Job":
        """``job`` with its contour's missing partition: the saved one, or else one found by a pilot."""
        name = "" if self._journal is None else self._paths.state
        return completed(job, self._head, name)

    @property
    def paths(self) -> Paths | None:
        """Its files."""
        return None if self._journal is None else self._paths

    def steps_done(self) -> int:
        """Steps of the last saved state, or of the previous one if more; 0 where none can be read."""
        most = 0
        for path in (self._paths.state, self._paths.previous) if self._head is not None else ():
            with contextlib.suppress(DamagedError, OSError), io.FileIO(path) as file:
                record = read_record(file, 0, os.fstat(file.fileno()).st_size)
                most = max(most, Position.of_info(record.info).steps)
        return most

    def restore(self, driver: "Driver[Any]", outputs: "Outputs") -> None:
        """Restore the driver and its outputs to the saved position, or create the files of a new run."""
        if self._journal is None:
            return
        for name, state in driver.accumulated.items():
            for key, array in state.items():
                if not KINDS.fullmatch(little_endian(array.dtype).str):
                    raise TypeError(
                        f"accumulators[{name!r}] must hold arrays of numbers to be saved, got {array.dtype} in {key!r}"
                    )
        if self._head is None:
            self._first_record = head_of(self._asked, driver.job)
            try:
                self._write_head()
            except OSError as error:
                self._warn(driver, error)
        else:
            self._load(self._journal, driver, outputs)
        self._saved = self._position(driver)
        self._last_try = time.monotonic()

    def restore_nothing(self, driver: "Driver[Any]", outputs: "Outputs") -> None:
        """As ``restore``, but leave the driver as it is, to save it over what is there."""
        if self._head is None:
            self.restore(driver, outputs)
        elif self._journal is not None:
            self._saved = self._saved._replace(journal=self._journal.mark)

    def _load(self, journal: Journal, driver: "Driver[Any]", outputs: "Outputs") -> None:
        """Read the last state and its draws, or the previous ones. Raises CheckpointError where neither is usable."""

        def take(path: str) -> str:
            load_state(path, self._paths, journal, self._kept, driver, outputs)
            return f"after step {driver.done}"

        self._keeps_last, reasons = last_usable(self._paths, take)
        if reasons:
            raise unusable(self._paths, "; ".join(reasons))

    def _write_head(self) -> None:
        """Write the journal's first record. Raises OSError, and leaves the journal empty, where that fails."""
        assert self._journal is not None
        self._journal.go_to(BEGINNING)
        try:
            self._journal.append(*self._first_record)
        except OSError:
            with contextlib.suppress(OSError):
                self._journal.cut()
            raise

    def after_chunk(self, driver: "Driver[Any]", outputs: "Outputs") -> None:
        """Save if it is time to."""
        if self._journal is None:
            return
        if self._needs_snapshot(driver):
            started = time.perf_counter()
            self._snapshot = self._position(driver), state_arrays(driver, copies=True)
            self._snapshot_seconds += time.perf_counter() - started
        if time.monotonic() - self._last_try >= self._every:
            self.save(driver, outputs)

    def _needs_snapshot(self, driver: "Driver[Any]") -> bool:
        """Whether the state is to be copied after this chunk, because the next may leave none that can be saved.

        A Python function's exception interrupts a chunk, and a divergence spoils it. Against the latter, copies are
        made as long as they take at most ``COPYING`` of the time of sampling.
        """
        if driver.job.calls_python:
            return True
        return driver.job.on_divergence == "stop" and self._snapshot_seconds <= COPYING * driver.elapsed

    def save(self, driver: "Driver[Any]", outputs: "Outputs") -> None:
        """Save the run after its last complete chunk, if that state exists; warn if writing fails."""
        if self._journal is None:
            return
        if driver.is_whole:
            self._save(driver, outputs, self._position(driver), state_arrays(driver, copies=False))
        elif self._snapshot is not None:
            self._save(driver, outputs, *self._snapshot)

    def save_last_good(self, driver: "Driver[Any]", outputs: "Outputs") -> str:
        """Save the last copy of the state, before a divergence; a sentence on what is saved."""
        if self._journal is None:
            return ""
        if self._snapshot is not None:
            self._save(driver, outputs, *self._snapshot)
        if self._saved.steps == 0:
            return f"Nothing is saved in checkpoint {self._paths.state!r}, as no chunk of steps came before."
        then = "" if driver.job.on_divergence == "keep" else "; on_divergence='keep' would go on from there"
        return f"Checkpoint {self._paths.state!r} stands at step {self._saved.steps}{then}."

    def _save(self, driver: "Driver[Any]", outputs: "Outputs", position: Position, arrays: dict[str, Stored]) -> None:
        """Save this state, unless it is saved already; warn if writing fails."""
        if position.steps <= self._saved.steps and not self._kept.held:
            return
        assert self._journal is not None
        info, own = held_contents(driver) if self._kept.held else ({}, {})
        try:
            with defer_interrupt():
                position = position._replace(journal=self._append(position, outputs))
                write_state(self._paths, position.as_info() | info, {**arrays, **own}, keeps_last=self._keeps_last)
                self._saved, self._keeps_last = position, True
        except OSError as error:
            self._journal.go_to(self._saved.journal)
            with contextlib.suppress(OSError):  # to free the space on the disk
                self._journal.cut()
            self._warn(driver, error)
        finally:
            self._last_try = time.monotonic()

    def _warn(self, driver: "Driver[Any]", error: OSError) -> None:
        """Warn, once a run, that a save has failed; raise CheckpointError where chains are held, which can go on."""
        if self._kept.held:
            raise CheckpointError(
                f"checkpoint {self._paths.state!r} could not be written after step {driver.done}: {error}"
            ) from error
        if self._has_warned:
            return
        self._has_warned = True
        ends = driver.done == driver.job.n_steps
        then = "the run ends" if ends else f"sampling goes on, and the next is tried in {self._every:g} s"
        stands = (
            "nothing is saved yet" if self._saved.journal == BEGINNING else f"it stands at step {self._saved.steps}"
        )
        warn_user(
            f"checkpoint {self._paths.state!r} could not be written after step {driver.done}: {error}; {stands}, and "
            f"{then}",
            CheckpointWarning,
        )

    def _append(self, position: Position, outputs: "Outputs") -> Mark:
        """Append the outputs since the last save to the journal, and return its end."""
        assert self._journal is not None
        self._journal.check_place(self._paths.journal)
        saved = self._saved
        self._journal.go_to(saved.journal)
        if saved.journal == BEGINNING:  # there was no room for it before
            self._write_head()
        (first_draw, first_traced), (draws, traced) = self._kept.counts_at(saved), self._kept.counts_at(position)
        if draws > first_draw or traced > first_traced:
            parts = segment(outputs, (first_draw, draws), (first_traced, traced))
            arrays = {name: Stored(part.dtype, part.shape, rows_of(part)) for name, part in parts.items()}
            self._journal.append({"draws": draws, "traced": traced}, arrays)
        return self._journal.mark

    def _position(self, driver: "Driver[Any]") -> Position:
        """The driver's position."""
        assert self._journal is not None
        return Position(
            driver.done, driver.n_draws, driver.n_traced, driver.elapsed, driver.job.n_steps, self._journal.mark
        )


def unusable(paths: Paths, why: str) -> CheckpointError:
    """The error of files that cannot be read."""
    return CheckpointError(
        f"checkpoint {paths.state!r} cannot be used: {why}; give another path, or remove the files {own_files(paths)} "
        "to begin anew"
    )


def own_files(paths: Paths) -> str:
    """The names of those files at ``paths`` that are there and were written here."""
    return ", ".join(repr(path) for path in paths if os.path.lexists(path) and not is_foreign_file(path))
