"""What all checkpoints share: a locked journal, and its first record, which says what the checkpoint is of."""

import io
import os
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..._compiler.disk_cache import environment
from ..._engine.job import Paths
from ..._engine.partition_pilot import completed_by_pilot
from ...errors import CheckpointError, CheckpointWarning, shown, warn_user
from ...tempering.contour_tempering import Partition
from .checkpoint_file import (
    MAGIC,
    DamagedError,
    Journal,
    LockedError,
    Mark,
    Record,
    Stored,
    TornError,
    read_arrays,
    store,
)
from .description import Description, differences, first_of, from_json, to_json

if TYPE_CHECKING:
    from ..._engine.job import Job

OTHER_FORMATS = (".zarr", ".nc", ".npz", ".zip", ".h5")
Contents = tuple[dict[str, Any], dict[str, Stored]]  # of a record to be written: its JSON and arrays


def check_suffix(given: str) -> None:
    """Raise ValueError where a checkpoint would have the name of a file of another format."""
    stem, suffix = os.path.splitext(given.rstrip(os.sep))
    if suffix in OTHER_FORMATS:
        raise ValueError(
            f"checkpoint must not end in {', '.join(OTHER_FORMATS)}, got {given!r}: it has a format of its own, of "
            f"which a kill loses nothing that is done; give {stem + '.ckpt'!r}, and save results apart"
        )


def is_foreign_file(path: str) -> bool:
    """Whether the file at ``path`` begins as none that was written here does; an empty one, or zeros, may be torn."""
    try:
        with io.FileIO(path) as file:
            begin = file.read(len(MAGIC))
    except OSError:  # none there, or it cannot be read, which is said where it is opened
        return False
    return not MAGIC.startswith(begin) and any(begin)


def open_journal(paths: Paths, of: str = "run", name: str = "") -> Journal:
    """The journal of a checkpoint, locked; warns where the file system has no locks.

    of: 'run' or 'sweep'. name: the checkpoint's; "": that of its state. Raises CheckpointError where the journal is in
    use or cannot be opened, and where a file was not written here, before it is overwritten; one among files that were
    written here counts as damaged.
    """
    state, previous, writing, draws = paths
    name = name or state
    for path in paths:
        if os.path.islink(path):
            raise CheckpointError(
                f"checkpoint {name!r} cannot be used: {path!r} is a link; remove it, or give another path"
            )
    foreign = [path for path in (state, draws, previous) if is_foreign_file(path)]
    others = [path for path in (state, draws, previous) if os.path.exists(path) and path not in foreign]
    foreign = foreign if not others else []
    foreign += [writing] if is_foreign_file(writing) else []
    if foreign:
        raise CheckpointError(
            f"checkpoint {name!r} cannot be used: {foreign[0]!r} is no checkpoint of this toolkit, and is left alone; "
            "give another path, or move that file away"
        )
    try:
        journal = Journal(draws)
    except LockedError:
        raise CheckpointError(
            f"checkpoint {name!r} is in use by another {of}, of this process or another; wait for its end, or give "
            f"this {of} a path of its own"
        ) from None
    except OSError as error:
        raise CheckpointError(f"checkpoint {name!r} cannot be written: {error}") from error
    if not journal.is_locked:
        warn_user(
            f"checkpoint {name!r} cannot be locked there; see that no second {of} uses it",
            CheckpointWarning,
        )
    return journal


def first_record(journal: Journal, name: str) -> Record | None:
    """The first record; None where the file is empty, or a kill tore it. Raises CheckpointError where it is damaged."""
    try:
        return journal.first()
    except TornError:
        return None
    except (DamagedError, OSError) as error:
        raise CheckpointError(
            f"checkpoint {name!r} cannot be used: its journal {error}; give another path, or remove it to begin anew"
        ) from None


def take_records(journal: Journal, take: Callable[[Record], None]) -> tuple[Mark, str]:
    """Call ``take`` with each record after the first; the mark after those taken, and what was wrong with the next.

    "" where nothing was, or a kill tore it. A CheckpointError of ``take`` is raised.
    """
    last = journal.mark
    try:
        for mark, record in journal.records():
            if mark.records > 1:
                take(record)
            last = mark
    except TornError:
        return last, ""
    except CheckpointError:
        raise
    except (DamagedError, KeyError, TypeError, ValueError) as error:
        return last, str(error) if isinstance(error, DamagedError) else f"cannot be read: {shown(error)}"
    return last, ""


def description_record(asked: Description, **info: Any) -> Contents:
    """A record that describes what is asked for."""
    text, arrays = to_json(asked)
    return {**info, "description": text}, {name: store(array) for name, array in arrays.items()}


def compare_with(
    file: io.FileIO, record: Record, asked: Description, name: str, *, of: str = "run", same: str = "the same run",
    part: str = "",
) -> None:  # fmt: skip
    """Raise CheckpointError where a record of ``file`` describes something else than ``asked``, naming the differences.

    name: the checkpoint's. of: 'run' or 'sweep'. same: what to ask for instead. part: what of it is described.
    """
    try:
        saved = from_json(record.info["description"], read_arrays(file, record))
        has_bits = "bits" in saved.get("toolkit", ("bits",))
        lines = differences(saved, asked) if has_bits else []
    except (DamagedError, OSError, KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise CheckpointError(f"checkpoint {name!r} cannot be read: {shown(error)}") from None
    if not has_bits:
        raise CheckpointError(
            f"checkpoint {name!r} was made by a toolkit that noted its sources and not its bits, so whether it can go "
            "on is not known; give another path, or delete it"
        )
    if lines:
        raise CheckpointError(
            f"checkpoint {name!r} is of another {of}: {part}{first_of(lines)}. There is the checkpoint, here is this "
            f"call; ask for {same}, or give another path"
        )


def last_usable(paths: Paths, take: Callable[[str], str]) -> tuple[bool, list[str]]:
    """Have ``take`` read the last state or, where that is damaged, the one before, with a warning.

    Whether it was the last, and why states could not be read: of both, where neither could. take: reads the state at a
    path, raises what shows that it is damaged, and returns in words when it was saved.
    """
    reasons: list[str] = []
    for path in (paths.state, paths.previous):
        try:
            when = take(path)
        except FileNotFoundError:
            continue  # the process was killed between its two renames
        except CheckpointError:
            raise
        except (DamagedError, OSError, KeyError, TypeError, ValueError) as error:
            said = str(error) if isinstance(error, DamagedError | OSError) else f"cannot be read: {shown(error)}"
            reasons.append(f"{path!r} {said}")
            continue
        if reasons:
            warn_user(
                f"{reasons[0]}; the run goes on from {path!r}, saved {when}",
                CheckpointWarning,
            )
        return not reasons, []
    return False, reasons


# The head of a run, which also holds the partition that a pilot has found for its contour.


def head_of(asked: Description, job: "Job") -> Contents:
    """The first record of the run of ``job``, whose partition is there."""
    found = getattr(job.sampler.tempering, "partition", None) if job.pilot_gradients else None
    partition = found and [found.u_min, found.width, found.n_bins]
    return description_record(
        asked, environment=environment(), partition=partition, pilot_gradients=job.pilot_gradients
    )


def completed(job: "Job", head: Record | None, name: str) -> "Job":
    """``job`` with its contour's missing partition: that of the head, or else one found by a pilot."""
    if head is None or head.info.get("partition") is None:
        return completed_by_pilot(job)
    try:
        low, width, bins = head.info["partition"]
        partition, gradients = Partition(low, width, bins), int(head.info["pilot_gradients"])
    except (TypeError, ValueError, KeyError) as error:
        raise CheckpointError(f"checkpoint {name!r} cannot be read: {shown(error)}") from None
    contour: Any = job.sampler.tempering
    sampler = replace(job.sampler, tempering=replace(contour, partition=partition))
    return replace(job, sampler=sampler, pilot_gradients=gradients)
