"""One process of hostile texts: makes the calls from a place on, and tells of each what is wrong, its time and memory.

Arguments: a folder of its own, and the place of the first case. One that takes longer than ``LIMIT`` ends it.
"""

import faulthandler
import json
import resource
import shutil
import sys
import time
import warnings
from pathlib import Path

from tests.hostile.texts import cases, constraint_texts, shape_texts, sympy_texts, table_texts

LIMIT = 5.0  # seconds for one case
ROOM = 2 << 30  # bytes of address space beyond what the libraries take
TABLES = (constraint_texts, shape_texts, table_texts, sympy_texts)
ALL = [(module.__name__.rpartition(".")[2].removesuffix("_texts"), case) for module in TABLES for case in module.CASES]


def family(table: str, case: cases.Case) -> str:
    """What a case belongs to, for counts."""
    return case.name.split(" ")[0].rstrip(":") if table not in ("constraint",) else table


def prepare() -> None:
    """Import and compile what good calls need, so that the clock sees the texts alone."""
    import pyarrow.parquet
    import sympy

    from sysid.data import lynx_hare
    from targets import from_sympy, shapes

    lynx_hare()
    pyarrow.parquet.write_table(pyarrow.table({"t": [0.0], "x": ["a"]}), pyarrow.BufferOutputStream())
    shapes.from_svg("M 0 0 H 4 V 4 H 0 Z M 1 1 h 1 v 1 h -1 z")
    from_sympy(sympy.Symbol("x") ** 2, [sympy.Symbol("x")])
    sympy_texts.slope(sympy, sympy.Symbol("x"), -sympy.Symbol("x"))


def main(folder: str, first: str) -> None:
    """Make the calls."""
    home = Path(folder)
    warnings.simplefilter("error")
    warnings.filterwarnings("ignore", category=DeprecationWarning)
    prepare()
    used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, resource.RLIM_INFINITY))
    with (home / "told").open("a", encoding="utf-8") as told:
        for table, case in ALL[int(first) :]:
            workplace = home / "workplace"
            workplace.mkdir()
            faulthandler.dump_traceback_later(LIMIT, exit=True, file=told)
            began = time.process_time()
            fault = cases.wrong_with(case, workplace)
            seconds = time.process_time() - began
            faulthandler.cancel_dump_traceback_later()
            shutil.rmtree(workplace)
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
            row = {"family": family(table, case), "name": case.name, "fault": fault, "seconds": seconds, "peak": peak}
            print(json.dumps(row), file=told, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
