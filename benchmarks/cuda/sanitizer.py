"""Stage sanitizer: the equality check, small, under each tool of compute-sanitizer."""

import subprocess
import sys

from benchmarks.runner.tables import Table

from .disassembly import tools
from .measure import Plan

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")


def main(plan: Plan) -> None:
    """Print the table, where compute-sanitizer is found and the kernels run on a device."""
    found = tools("compute-sanitizer")
    if not found or plan.is_dry:
        print("sanitizer: nothing done, as this is a dry run" if found else "sanitizer: compute-sanitizer not found")
        return
    table = Table(plan.folder, "sanitizer", "tool", "exit status", "what it said last")
    for name in TOOLS:
        if not plan.is_late(name):
            check = [sys.executable, "-m", "benchmarks", "cuda", "equality", "--tiny"]
            command = [found[0], "--tool", name, "--error-exitcode", "9", *check]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            last = [line for line in (done.stdout + done.stderr).splitlines() if line.startswith("=====")][-1:]
            table.row(name, done.returncode, *(last or ["nothing"]))
            if plan.folder is not None:
                (plan.folder / f"sanitizer_{name}.log").write_text(done.stdout + done.stderr)
