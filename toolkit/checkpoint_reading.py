"""A saved run read back: its last state with the draws that belong to it, or where these are damaged the one before."""

import io
import os
import warnings
from typing import TYPE_CHECKING, Any

from .checkpoint_parts import Kept, Position, accumulated_arrays, check_fit, segment
from .comparing import check_extension
from .errors import CheckpointError, CheckpointWarning
from .job import Paths
from .journal import BEGINNING, Journal
from .records import DamagedError, Record, read_into, read_record
from .snapshots import are_possible, stored_names, views

if TYPE_CHECKING:
    from .driver import Driver
    from .state import Outputs


def load_saved(paths: Paths, journal: Journal, kept: Kept, driver: "Driver[Any]", outputs: "Outputs") -> bool:
    """Read the last state and its draws, or where they are damaged the previous ones; False where it had to be these.

    Raises CheckpointError where neither can be used.
    """
    reasons: list[str] = []
    for path in (paths.state, paths.previous):
        try:
            load_state(path, paths, journal, kept, driver, outputs)
        except FileNotFoundError:
            continue  # one that was killed between its two changes of names
        except (DamagedError, OSError) as error:
            reasons.append(f"{path!r} {error}")
            continue
        if reasons:
            warnings.warn(
                f"{reasons[0]}; the run goes on from {path!r}, saved after step {driver.done}",
                CheckpointWarning,
                stacklevel=4,
            )
        return not reasons
    raise CheckpointError(
        f"checkpoint {paths.state!r} cannot be used: {'; '.join(reasons)}; give another path, or remove the "
        f"files {paths.state + '*'!r} to begin anew"
    )


def load_state(
    path: str, paths: Paths, journal: Journal, kept: Kept, driver: "Driver[Any]", outputs: "Outputs"
) -> None:
    """Read one state and its draws. Raises DamagedError or OSError where they cannot be used."""
    with io.FileIO(path) as file:
        record = read_record(file, 0, os.fstat(file.fileno()).st_size)
        position = Position.of_info(record.info)
        check_extension(driver.job, paths, position.steps, position.n_steps)
        if (position.draws, position.traced) != driver.job.counts_before(position.steps):
            raise DamagedError("cannot be read: its steps have other draws")
        names = stored_names(driver.blocks, driver.job.sampler.n_replicas)
        accumulated = accumulated_arrays(driver)
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
    if not are_possible(driver.blocks) or not all(
        accumulator.is_possible(driver.accumulated[name])
        for name, accumulator in driver.job.accumulators.items()
        if hasattr(accumulator, "is_possible")
    ):
        raise DamagedError("cannot be read: its values are impossible")
    driver.resume(position.steps, position.draws, position.traced, position.elapsed)


def read_draws(position: Position, paths: Paths, journal: Journal, kept: Kept, outputs: "Outputs") -> None:
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
    if journal.mark != position.journal or (done.draws, done.traced) != kept.of(position):
        raise DamagedError(f"does not belong to {paths.journal!r}, or that is torn")


def read_segment(journal: Journal, done: Position, record: Record, outputs: "Outputs") -> Position:
    """Read one record of the journal into the outputs, and return how far they are filled."""
    try:
        draws, traced = int(record.info["draws"]), int(record.info["traced"])
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise DamagedError(f"cannot be read: {error!r}") from None
    parts = segment(outputs, (done.draws, draws), (done.traced, traced))
    for name, part in parts.items():
        check_fit(record, name, part.shape, part.dtype)
        read_into(journal.file, record.arrays[name], [part])
    return done._replace(draws=draws, traced=traced)
