"""Checkpoints of a run on a cluster: a folder of the results of its chains that are done."""

import time
from typing import Any

from .._compiler.disk_cache import environment
from .._engine.driver import defer_interrupt
from .._output.storage.checkpoint_file import Record, read_arrays
from .._output.storage.checkpoint_head import description_record, take_records
from .._output.storage.description import describe_call
from ..errors import CheckpointError, CheckpointWarning, warn_user
from .checkpoint_folder import Arrays, CheckpointFolder, SavedState
from .collection import ByChain, PooledResults
from .part import Part


class PartsFolder:
    """The folder at ``path``, made where it is not there; None: nothing is kept. A context manager that locks it.

    Results by chain are appended to its journal as each task ends; pooled results are its state, which is written
    anew after ``every`` seconds. description: all that determines the run's results.
    """

    def __init__(self, path: Any, description: Any, every: float) -> None:
        self._path, self._description, self._every = path, description, every
        self._folder: CheckpointFolder | None = None
        self._last = time.monotonic()

    def __enter__(self) -> "PartsFolder":
        if self._path is not None:
            self._folder = CheckpointFolder(self._path, self._description)
        return self

    def __exit__(self, *exception: object) -> None:
        if self._folder is not None:
            self._folder.close()

    def restore(self, collection: ByChain | PooledResults) -> None:
        """Take what is there; what is damaged is left out, with a warning, and its chains are computed again."""
        folder = self._folder
        if folder is None:
            return
        kept = collection.kept
        folder.new_head = description_record(self._description, environment=environment(), kept=kept)
        if folder.head is None:
            return
        if folder.head.info.get("kept") != kept:
            raise CheckpointError(
                f"checkpoint {folder.name!r} is of another run: it holds {folder.head.info.get('kept')}, and "
                f"this call wants {kept}; give the same keep_draws, accumulators and save, or another path"
            )
        if isinstance(collection, PooledResults):
            if folder.has_state:
                folder.last_state(lambda state: restore_pooled(state, collection))
            return

        def take(record: Record) -> None:
            arrays = read_arrays(folder.journal.file, record)
            collection.add(part_of(record.info, arrays, len(collection.done)))

        folder.saved, damage = take_records(folder.journal, take)
        if damage:
            warn_user(
                f"checkpoint {folder.name!r}: its journal {damage}; {collection.done.count():,} chains before that "
                "place are used, and the others are computed again",
                CheckpointWarning,
            )

    def after(self, part: Part, collection: ByChain | PooledResults) -> None:
        """Save the part that has been added to ``collection``, or its pooled results if it is time to."""
        if self._folder is not None and isinstance(collection, ByChain):
            info = {"chains": [part.first, part.last], "gradients": part.gradients, "made_with": part.made_with}
            words = f"with chains {part.first:,} to {part.last - 1:,}"
            with defer_interrupt():
                self._folder.save(words, results=(info, part.arrays))
        elif time.monotonic() - self._last >= self._every:
            self.save(collection)

    def save(self, collection: ByChain | PooledResults) -> None:
        """Save pooled results now."""
        if self._folder is not None and isinstance(collection, PooledResults) and collection.done.any():
            with defer_interrupt():
                self._folder.save(words_of(collection), state=collection.stored())
            self._last = time.monotonic()


def restore_pooled(state: SavedState, collection: PooledResults) -> str:
    """Put saved results into ``collection``. Raises ValueError, KeyError or TypeError where they are malformed."""
    collection.restore(state.info, state.arrays)
    return words_of(collection)


def words_of(collection: PooledResults) -> str:
    """How many chains are done, in words."""
    return f"with {collection.done.count():,} chains"


def part_of(info: Any, arrays: Arrays, n_chains: int) -> Part:
    """The part of a record. Raises ValueError, KeyError or TypeError where it is none."""
    first, last = (int(number) for number in info["chains"])
    if not 0 <= first < last <= n_chains or any(len(a) not in (0, last - first) for a in arrays.values()):
        raise ValueError(f"chains {first} to {last} of {n_chains}")
    return Part(first, last, arrays, {}, None, int(info["gradients"]), 0.0, dict(info["made_with"]))


def described(job: Any, n_chains: int) -> Any:
    """What determines the results of a run of ``n_chains`` chains of which ``job`` has some."""
    description = describe_call(job, "sample with a client")
    return {**description, "n_chains": n_chains, "n_steps": job.n_steps}
