"""What a case is: a hostile text, the call that is given it, and how it must be refused."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

ALLOWED = "allowed"  # the text is not refused: it is read, and ``holds`` says how


class Case(NamedTuple):
    """A call in a folder of its own, the errors that may end it, and patterns that its message must have."""

    name: str
    call: Callable[[Path], Any]
    errors: tuple[type[BaseException], ...] = (ValueError,)
    says: tuple[str, ...] = ()  # the argument or file, and the place
    holds: Callable[[Any], bool] | None = None  # of the result, where the text is good after all


def special(kind, read, name="a.svg"):
    """A call of ``read`` on what is no regular file, or a huge one."""

    def call(folder):
        path = folder / name
        if kind == "fifo":
            os.mkfifo(path)
        elif kind == "folder":
            path.mkdir()
        elif kind == "sparse":
            with path.open("wb") as stream:
                stream.truncate(1 << 30)
        elif kind == "locked":
            path = folder / "nowhere" / name
        else:
            path = Path(kind)
        return read(path)

    return call


def wrong_with(case: Case, folder: Path) -> str:
    """What is wrong with how a case ends; empty where nothing is. A file "ran" in the folder: text was run."""
    vague = (UnicodeError, RecursionError, MemoryError, OverflowError, ZeroDivisionError)
    try:
        result = case.call(folder)
    except BaseException as error:
        said = str(error)
        if case.holds is not None:
            fault = f"is refused: {type(error).__name__}: {said[:200]}"
        elif not isinstance(error, case.errors) or isinstance(error, vague):
            fault = f"ends in {type(error).__name__}: {said[:200]}"
        elif len(said) > 2000:
            fault = f"says {len(said)} characters"
        else:
            missing = [pattern for pattern in case.says if not re.search(pattern, said)]
            fault = f"does not say {missing}: {said[:300]}" if missing else ""
    else:
        if case.holds is None:
            fault = f"is taken: {str(result)[:100]}"
        else:
            fault = "" if case.holds(result) else f"is taken, but not as it is: {str(result)[:100]}"
    return "its text was run" if os.path.exists(folder / "ran") else fault
