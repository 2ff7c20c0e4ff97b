"""Where the state of a run goes: to a checkpoint, which is imported only where there is one, or nowhere."""

from contextlib import AbstractContextManager
from typing import Protocol, Self

from .._engine.driver import Saves, SavesNothing
from .._engine.job import Job
from .._engine.partition_pilot import completed_by_pilot


class Completes(Saves, AbstractContextManager["Completes"], Protocol):
    """Saves a run, and completes its job by what was saved of an earlier one."""

    def complete(self, job: Job) -> Job:
        """``job`` with its contour's missing partition: the saved one, or else one found by a pilot."""


class NoCheckpoint(SavesNothing):
    """A run without a checkpoint."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        """Nothing is held."""

    def complete(self, job: Job) -> Job:
        """``job`` with its contour's missing partition, found by a pilot."""
        return completed_by_pilot(job)


def saves_of(job: Job, kind: str) -> Completes:
    """What saves a job. kind: of the run, which a checkpoint compares.

    Raises CheckpointError where the files belong to another run, are unusable, or are in use.
    """
    if job.checkpoint is None:
        return NoCheckpoint()
    from .storage.checkpoint import Checkpoint

    return Checkpoint(job, kind)
