"""The file of a sweep: an append-only journal of the cells that are done, each known by what it is, not by its place.

The first record describes what all cells have in common; a further one describes a problem, or holds finished cells.
A kill tears at most the last record, which is cut off when the file is opened again.
"""

import contextlib
import hashlib
from typing import Any, NamedTuple

import numpy as np

from ..._compiler.function_digest import BITS, describe_function
from ..._engine.driver import defer_interrupt
from ..._engine.job import Paths, check_checkpoint
from ..._output.storage.checkpoint_file import BEGINNING, DamagedError, Record, read_array, store
from ..._output.storage.checkpoint_head import (
    check_suffix,
    compare_with,
    description_record,
    first_record,
    open_journal,
    take_records,
)
from ..._output.storage.description import describe_problem, describe_sampler, environment, to_json
from ...errors import CheckpointError, CheckpointWarning, check_path, shown, warn_user
from ...problem.definition import Problem, Spread
from .cells import Cell, CellResult, SweepRequest
from .grid import Grid, settings_of_groups

KEY = 32  # bytes by which a cell is known


def digest_of(description: dict[str, Any]) -> bytes:
    """A hash of a description and its arrays."""
    text, arrays = to_json(description)
    found = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        found.update(f"{name} {array.dtype.str} {array.shape}".encode())
        found.update(array.tobytes())
    return found.digest()


def setting_digests(grid: Grid) -> list[bytes]:
    """A hash of each setting's sampler: of its parts' description, and of its step sizes and temperatures."""
    samplers = [grid.sampler(index) for index in range(grid.n_settings)]
    parts: dict[int, bytes] = {}
    found = []
    for sampler, (group, first) in zip(samplers, settings_of_groups(samplers), strict=True):
        if group not in parts:
            described = describe_sampler(first)
            parts[group] = digest_of({k: v for k, v in described.items() if k not in ("step_sizes", "temperatures")})
        own = hashlib.sha256(parts[group])
        for values in sampler.arrays.values():
            own.update(np.ascontiguousarray(values).tobytes())
        found.append(own.digest())
    return found


class CellKeys(NamedTuple):
    """Hashes of a sweep's problems and settings, by which its cells are known."""

    problems: list[bytes]
    settings: list[bytes]

    def of(self, cell: Cell) -> bytes:
        """The key of a cell, (KEY,) bytes."""
        parts = (self.problems[cell.problem], self.settings[cell.setting], cell.seed.to_bytes(8, "little"))
        return hashlib.sha256(b"".join(parts)).digest()


def described_call(request: SweepRequest) -> dict[str, Any]:
    """What all cells of a sweep have in common: bits, steps, chains, start, and what is measured."""
    options, init = request.options, request.options["init"]
    start = init.numbers if isinstance(init, Spread) else init
    numbers = {name: value for name, value in options.items() if name != "init"}
    measure = None if request.measure is None else describe_function(request.measure)
    return {
        "toolkit": {"bits": BITS},
        **numbers,
        "init": start if start is None or isinstance(start, dict) else np.asarray(start, np.float64),
        "measure": measure,
    }


class NothingSaved:
    """A sweep without a file; a context manager."""

    found: dict[bytes, CellResult]

    def __init__(self) -> None:
        self.found = {}

    def __enter__(self) -> "NothingSaved":
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def add(self, keys: list[bytes], results: list[CellResult]) -> None:
        """Nothing is saved."""


class SweepJournal(NothingSaved):
    """The file at ``path``, locked as long as it is open; ``found`` has the cells that it holds, by their keys.

    names: of the problems, "" for one without a name. Raises CheckpointError where the file is in use, no sweep's, of
    another sweep, or cannot be opened; TypeError or ValueError where ``path`` is none.
    """

    def __init__(self, path: Any, request: SweepRequest, names: list[str]) -> None:
        super().__init__()
        self._path = checked_path(path)
        self._has_warned = False
        self._pending: tuple[list[bytes], list[CellResult]] = [], []
        self._journal = open_journal(Paths(*4 * [self._path]), "sweep")
        try:
            self._read(described_call(request), dict(zip(names, request.problems, strict=True)))
        except BaseException:
            self._journal.close()
            raise

    def __exit__(self, *exception: object) -> None:
        self._journal.close()

    def _read(self, call: dict[str, Any], problems: dict[str, Problem]) -> None:
        """Read the cells of the file, or begin it. Raises CheckpointError where it belongs to another sweep."""
        described = {name: describe_problem(problem) for name, problem in problems.items()}
        saved_names: set[str] = set()

        def take(record: Record) -> None:
            if "problem" not in record.info:
                self._take(record)
                return
            name = str(record.info["problem"])
            saved_names.add(name)
            if name in described:
                self._compare(record, described[name], f"problem {name!r}: " if name else "problem: ")

        head = first_record(self._journal, self._path)
        try:
            if head is None:
                self._journal.go_to(BEGINNING)
                self._journal.append(*description_record(call, sweep=1, environment=environment()))
            else:
                if "sweep" not in head.info:
                    raise CheckpointError(
                        f"checkpoint {self._path!r} is that of a run and not of a sweep; give another path"
                    )
                self._compare(head, call)
                mark, damage = take_records(self._journal, take)
                self._journal.go_to(mark)
                if damage:
                    warn_user(
                        f"checkpoint {self._path!r} {damage}; of its cells {len(self.found):,} before that place are "
                        "used, and the others are computed again",
                        CheckpointWarning,
                    )
            for name, description in described.items():
                if name not in saved_names:
                    self._journal.append(*description_record(description, problem=name))
        except OSError as error:
            raise CheckpointError(f"checkpoint {self._path!r} cannot be written: {error}") from error

    def _compare(self, record: Record, asked: dict[str, Any], part: str = "") -> None:
        """Raise CheckpointError where a record describes something else than what is asked for."""
        same = "the same but for settings, problems and seeds"
        compare_with(self._journal.file, record, asked, self._path, of="sweep", same=same, part=part)

    def _take(self, record: Record) -> None:
        """The cells of one record. Raises DamagedError where it has none."""
        try:
            own = {name: read_array(self._journal.file, record.arrays[name]) for name in ("keys", "lengths", "values")}
            measured = record.info["measured"]
            shapes = None if measured is None else {str(name): tuple(map(int, shape)) for name, shape in measured}
            if own["keys"].shape != (len(own["lengths"]), KEY) or own["lengths"].sum() != own["values"].size:
                raise ValueError("its arrays do not fit")
        except (KeyError, TypeError, ValueError) as error:
            raise DamagedError(f"cannot be read: {shown(error)}") from None
        parts = np.split(own["values"], np.cumsum(own["lengths"])[:-1])
        for key, values in zip(own["keys"], parts, strict=True):
            self.found[key.tobytes()] = CellResult(values, shapes)

    def add(self, keys: list[bytes], results: list[CellResult]) -> None:
        """Append cells, and wait for the disk; warn where that fails, and try again with the next."""
        self._pending[0].extend(keys)
        self._pending[1].extend(results)
        try:
            with defer_interrupt():
                self._journal.check_place(self._path)
                while self._pending[0]:
                    self._append_pending()
        except OSError as error:
            with contextlib.suppress(OSError):
                self._journal.cut()
            if not self._has_warned:
                self._has_warned = True
                warn_user(
                    f"checkpoint {self._path!r} could not be written: {error}; the sweep goes on, and tries again",
                    CheckpointWarning,
                )

    def _append_pending(self) -> None:
        """Append the first cells that have the same measured shapes."""
        keys, results = self._pending
        shapes, count = results[0].shapes, 1
        while count < len(results) and results[count].shapes == shapes:
            count += 1
        values = [result.values for result in results[:count]]
        arrays = {
            "keys": np.frombuffer(b"".join(keys[:count]), np.uint8).reshape(count, KEY),
            "lengths": np.array([each.size for each in values]),
            "values": np.concatenate(values),
        }
        measured = None if shapes is None else [[name, list(shape)] for name, shape in shapes.items()]
        self._journal.append({"measured": measured}, {name: store(array) for name, array in arrays.items()})
        del keys[:count], results[:count]


def checked_path(path: Any) -> str:
    """The path of a sweep's file. Raises TypeError or ValueError where it can be none."""
    given = check_path("checkpoint", path, "None or the path of a file")
    check_suffix(given)
    paths = check_checkpoint(given)
    assert paths is not None
    return paths.state
