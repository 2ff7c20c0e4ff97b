"""One process of hostile calls: tells each before it is made, and writes what was found.

Arguments: a folder of its own; modules of calls, joined by +, and after a colon what their names must hold; which share
of the calls, of how many; examples for each argument; a seed. A call that takes longer than ``LIMIT`` ends the process,
as does one that crashes it; the last line of ``told`` names it.
"""

import dis
import faulthandler
import importlib
import json
import os
import re
import resource
import sys
import time
import warnings
import zlib
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import HypothesisWarning

from tests.hostile import values as hostile_values

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 10.0  # seconds for one call
WARM = 900.0  # for the first, which may compile
ROOM = 12 << 30  # bytes of address space
DOCUMENTED = (
    TypeError,
    ValueError,
    FileNotFoundError,
    PermissionError,
    IsADirectoryError,
    OSError,
    ArithmeticError,
    ImportError,
)
VAGUE = (ZeroDivisionError, OverflowError, FloatingPointError, np.linalg.LinAlgError, UnicodeError)


HAND_ON = (os.path.join("tables", "call.py"), os.path.join("problem", "call_text.py"))  # arguments as they came


class FoundError(AssertionError):
    """A call that did not end as it must."""


def said_by_us(error: BaseException) -> bool:
    """Whether one of the project's own ``raise`` statements, or Python's look at the arguments' names, raised it."""
    trace = error.__traceback__
    while trace.tb_next is not None:
        trace = trace.tb_next
    code = trace.tb_frame.f_code
    if code.co_filename == __file__ or code.co_filename.endswith(HAND_ON):
        return bool(re.search(r"argument|signature|keywords must be strings", str(error)))
    raised = dis.opname[code.co_code[trace.tb_lasti]] == "RAISE_VARARGS"  # the source may be edited meanwhile
    return raised and code.co_filename.startswith(str(ROOT))


def own(error: BaseException) -> bool:
    """Whether a method of the hostile object itself raised it, which is the user's error as it is."""
    trace = error.__traceback__
    while trace.tb_next is not None:
        trace = trace.tb_next
    return trace.tb_frame.f_code.co_filename == hostile_values.__file__


def is_named(name: str, said: str) -> bool:
    """Whether a message names an argument before it shows a value, other than in "must name"."""
    before = re.sub(r"\bmust name\b", "", re.split(r"\bgot (?!an unexpected)", said)[0])
    return bool(re.search(rf"(?<![\w'\"]){re.escape(name)}\b|argument '{re.escape(name)}'", before))


def judge(error: BaseException, names: list[str], given: list[object]) -> str:
    """What is wrong with a refusal; empty where nothing is."""
    said = str(error)
    if not isinstance(error, DOCUMENTED) or isinstance(error, VAGUE):
        return f"ended in {type(error).__name__}"
    if not said_by_us(error):
        return f"ended in a {type(error).__name__} that none of our checks raised"
    if not any(is_named(name, said) for name in names):
        return f"does not name {' or '.join(names)}"
    if not re.search(r"got |\d|'", said) and not all(value is None for value in given):
        return "says no value"
    if len(said) > 2000:
        return f"takes {len(said)} characters"
    return ""


def nan_in(result: object) -> bool:
    """Whether a result has a nan somewhere."""
    values = result if isinstance(result, tuple | list) else [result]
    return any(
        isinstance(v, float | np.ndarray) and np.asarray(v).dtype.kind == "f" and bool(np.isnan(v).any())
        for v in values
    )


def shown(value: object) -> str:
    """A value for the report."""
    try:
        return repr(value)[:160]
    except Exception as error:
        return f"<{type(value).__name__} whose repr raises {type(error).__name__}>"


class Caller:
    """Makes calls under the watch, and keeps count."""

    def __init__(self, folder: Path, limit: float) -> None:
        self.limit = limit
        self.told = (folder / "told").open("w", encoding="utf-8")
        self.traces = (folder / "traces").open("w", encoding="utf-8")
        self.done, self.made, self.refused, self.own, self.found, self.slowest = 0, 0, 0, 0, [], (0.0, "")
        self.last: FoundError | None = None

    def make(self, call, changes: dict, *, must_fail: bool) -> None:
        """One call; raises ``FoundError`` where it does not end as it must."""
        what = f"{call.name}({', '.join(f'{k}={shown(v)}' for k, v in changes.items())})"
        print(what, file=self.told, flush=True)
        self.made += 1
        names = [name for k in changes for name in (k, *call.also.get(k, "").split())]
        faulthandler.dump_traceback_later(self.limit, exit=True, file=self.traces)
        started = time.perf_counter()
        try:
            result = call(changes)
        except Exception as error:
            self.refused += 1
            if own(error):
                self.own += 1
                return
            fault = judge(error, names, list(changes.values()))
            if fault:
                raise FoundError(f"{what} {fault}: {type(error).__name__}: {str(error)[:300]}") from error
        else:
            if must_fail:
                raise FoundError(f"{what} is taken: {shown(result)}")
            if nan_in(result):
                raise FoundError(f"{what} gives nan: {shown(result)}")
        finally:
            faulthandler.cancel_dump_traceback_later()
            self.slowest = max(self.slowest, (time.perf_counter() - started, what))

    def try_all(self, call, examples: int, start: int) -> None:
        """The good call, then each argument hostile, then two of them, then odd values that may be right."""
        faulthandler.dump_traceback_later(WARM, exit=True, file=self.traces)
        print(call.name, file=self.told, flush=True)
        if call.tried:
            call({})
        faulthandler.cancel_dump_traceback_later()
        kinds = call.arguments()
        for name, kind in kinds.items():
            self.search(
                f"{call.name}.{name}", kind.wrong.map(lambda v, n=name: {n: v}), call, examples, start, must_fail=True
            )
            if kind.odd is not None:
                self.search(
                    f"{call.name}.{name} odd",
                    kind.odd.map(lambda v, n=name: {n: v}),
                    call,
                    examples,
                    start,
                    must_fail=False,
                )
        if len(kinds) > 1:
            pairs = st.lists(st.sampled_from(sorted(kinds)), min_size=2, max_size=2, unique=True).flatmap(
                lambda two: st.fixed_dictionaries({name: kinds[name].wrong for name in two})
            )
            self.search(f"{call.name}, two", pairs, call, examples, start, must_fail=True)
        unknown = st.from_regex(r"[a-z_]{3,9}", fullmatch=True).filter(
            lambda n: n not in kinds and n not in ("in", "is", "if")
        )
        self.search(f"{call.name}, name", st.builds(lambda n: {n: 1}, unknown), call, 1, start, must_fail=True)

    def search(self, label: str, changes, call, examples: int, start: int, *, must_fail: bool) -> None:
        """Let Hypothesis look for a call that does not end as it must, and keep the simplest one."""

        @seed(zlib.crc32(label.encode()) + start)
        @settings(
            max_examples=examples, database=None, deadline=None, phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck), report_multiple_bugs=False, print_blob=False,
        )  # fmt: skip
        @given(changes)
        def look(values: dict) -> None:
            try:
                self.make(call, values, must_fail=must_fail)
            except FoundError as found:
                self.last = found
                raise

        self.last = None
        try:
            look()
        except Exception as error:  # Hypothesis may fail itself where it shows an object whose repr raises
            self.found.append(str(self.last) if self.last is not None else f"{label}: {error!r}")


def main(folder: str, module: str, share: str, of: str, examples: str, start: str) -> None:
    """Make every ``of``-th call of the tables in ``module``, from ``share`` on, in an empty folder."""
    home = Path(folder)
    resource.setrlimit(resource.RLIMIT_AS, (ROOM, resource.RLIM_INFINITY))
    sys.path.insert(0, str(ROOT))
    warnings.simplefilter("error")
    warnings.filterwarnings("ignore", category=DeprecationWarning)
    warnings.filterwarnings("ignore", "Generating overly large repr", HypothesisWarning)  # of arguments, which are ours
    workplace = home / "workplace"
    workplace.mkdir()
    os.chdir(workplace)
    tables, _, only = module.partition(":")
    calls = [
        call for table in tables.split("+") for call in importlib.import_module(f"tests.hostile.tables.{table}").CALLS
    ]
    calls = [call for call in calls if re.search(only, call.name)]
    caller = Caller(home, 0.5 if tables == "examples" else LIMIT)
    for call in calls[int(share) :: int(of)]:
        caller.try_all(call, int(examples), int(start))
        caller.done += 1
        left = sorted(map(str, workplace.iterdir()))
        if left:
            caller.found.append(f"{call.name} left {left}")
        report = {
            "done": caller.done,
            "made": caller.made,
            "refused": caller.refused,
            "own": caller.own,
            "found": caller.found,
            "slowest": caller.slowest,
            "processor": time.process_time(),
        }
        (home / "report.json").write_text(json.dumps(report), encoding="utf-8")
        if left:
            break


if __name__ == "__main__":
    main(*sys.argv[1:])
