"""Every kernel of the catalogue as PTX and as an assembler sees it, for sm_80 and sm_90, without a GPU.

Lines of PTX; registers, stack and spilled bytes by nvJitLink; operations that could be fused, which must be none; calls
left; reads and writes of local memory; functions that are CUDA's own, whose bits may not be a CPU's. Kernels that
differ in nothing but numbers given as arguments are one, and shown once. With ``--small``: one of each group.
"""

import itertools
import re
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from benchmarks.runner.plan import Plan
from benchmarks.runner.tables import Table
from toolkit._engine.cuda.compiling import CALLED, CONTRACTIBLE, LOCAL
from toolkit._engine.cuda.inspection import chain_codes, kernel_of

from .kernel_cases import Case, every

CAPABILITIES = ((8, 0), (9, 0))
USED = re.compile(r"Used (\d+) registers")
FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")


class Assembled(NamedTuple):
    """What an assembler made of a kernel; all in bytes but registers."""

    registers: int
    stack: int
    spill_stores: int
    spill_loads: int


def assembled(ptx: str, capability: tuple[int, int], most_registers: int | None = None) -> Assembled:
    """``ptx`` assembled by nvJitLink, which needs no device."""
    from cuda.bindings import nvjitlink

    code = ptx.encode()
    options = [f"-arch=sm_{capability[0]}{capability[1]}", "-verbose"]
    options += [] if most_registers is None else [f"-maxrregcount={most_registers}"]
    handle = nvjitlink.create(len(options), options)
    try:
        nvjitlink.add_data(handle, nvjitlink.InputType.PTX, code, len(code), "kernel")
        try:
            nvjitlink.complete(handle)
        except nvjitlink.nvJitLinkError as error:
            why = bytearray(nvjitlink.get_error_log_size(handle))
            nvjitlink.get_error_log(handle, why)
            raise RuntimeError(f"the kernel does not assemble: {why.decode()}") from error
        log = bytearray(nvjitlink.get_info_log_size(handle))
        nvjitlink.get_info_log(handle, log)
    finally:
        nvjitlink.destroy(handle)
    told = log.decode()
    frames = [tuple(map(int, found)) for found in FRAME.findall(told)]
    return Assembled(max(map(int, USED.findall(told))), *(max(frame[i] for frame in frames) for i in range(3)))


def unlike(cases: Iterator[Case]) -> Iterator[tuple[Case, Any]]:
    """Cases with their runs, the first of those that share a kernel."""
    seen = set()
    for case in cases:
        job = case.job()
        key = kernel_of(job)
        if key not in seen:
            seen.add(key)
            yield case, job


def main(plan: Plan) -> None:
    """Print the table."""
    cases = every()
    if plan.is_small:
        cases = (next(group) for _, group in itertools.groupby(every(), lambda case: case.group))
    capabilities = [f"sm_{major}{minor}" for major, minor in CAPABILITIES]
    table = Table(
        plan.folder, "ptx", "group", "kernel", *(f"{what}, {name}" for name in capabilities for what in
        ("lines", "registers", "stack", "spill stores", "spill loads", "local accesses")),
        "contractible", "calls", "CUDA's own", "seconds",
    )  # fmt: skip
    for case, job in unlike(cases):
        started = time.perf_counter()
        try:
            codes = chain_codes(job, CAPABILITIES)
            seconds = time.perf_counter() - started
            cells: list[Any] = []
            for capability, code in zip(CAPABILITIES, codes, strict=True):
                ptx = code.ptx
                cells += [len(ptx.splitlines()), *assembled(ptx, capability), len(LOCAL.findall(ptx))]
        except Exception as error:
            table.row(case.group, case.name, f"{type(error).__name__}: {' '.join(str(error).split())[:300]}")
            continue
        fused = sum(len(CONTRACTIBLE.findall(code.ptx)) for code in codes)
        calls = sorted({name for code in codes for name in CALLED.findall(code.ptx)})
        table.row(case.group, case.name, *cells, fused, ", ".join(calls) or 0, ", ".join(codes[0].functions), seconds)
