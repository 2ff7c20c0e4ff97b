"""Stage layout: threads of a block, pieces of a chunk, steps of a chunk; and the way home of draws, part by part."""

import time
from collections.abc import Callable

import numpy as np

from benchmarks.tables import Table, rate_cell, ratio_cells
from toolkit import Layout
from toolkit._engine.cuda import device, engine
from toolkit._engine.cuda.transfers import Export

from .cases import case_of
from .measure import Plan, rate, rounds_of, steps_for

BLOCKS, PIECES, CHUNKS = (32, 64, 128, 256), (1, 2, 4, 8, 16), (128, 1024, 8192)


def with_block(size: int, call: Callable[[], float]) -> float:
    """What ``call`` returns, with blocks of ``size`` threads."""
    usual = device.blocks_of
    device.blocks_of = lambda n_threads: (-(-n_threads // size), size)
    try:
        return call()
    finally:
        device.blocks_of = usual


def with_pieces(number: int, call: Callable[[], float]) -> float:
    """What ``call`` returns, with chunks cut into so many pieces."""
    usual, engine.PIECES = engine.PIECES, number
    try:
        return call()
    finally:
        engine.PIECES = usual


def variants(plan: Plan, name: str, n_chains: int) -> dict[str, Callable[[], float]]:
    """Every variant of a layout as a rate."""
    case = case_of(name)
    plain = steps_for(case, "cuda", n_chains, plan)
    kept = steps_for(case, "cuda", n_chains, plan, "draws")

    def usual() -> float:
        return rate(case, "cuda", n_chains, plain)

    def keeping() -> float:
        return rate(case, "cuda", n_chains, kept, "draws")

    blocks = {} if plan.is_dry else {f"{n} threads a block": lambda n=n: with_block(n, usual) for n in BLOCKS}
    chunks = {
        f"chunks of {n} steps": lambda n=n: rate(case, "cuda", n_chains, plain, layout=Layout(chunk_steps=n))
        for n in CHUNKS[: 1 if plan.is_dry else None]
    }
    pieces = {f"{n} pieces, draws kept": lambda n=n: with_pieces(n, keeping) for n in PIECES}
    return {"as it is": usual, **blocks, **chunks, "as it is, draws kept": keeping, **pieces}


def ways_home(plan: Plan) -> None:
    """Seconds of transposition, copy and the host's placing of draws, of 128 MiB."""
    n_chains = 5 if plan.is_dry else 2**16
    moments = 3 if plan.is_dry else 2**7
    export = Export(2, 1, n_chains, np.float64)
    export.allocate(moments, True)
    stream, target = device.stream(), np.empty((n_chains, 1, moments, 2))
    size = moments * export.moment_bytes
    table = Table(plan.folder, "way_home", "part", "GB/s", "spread", "ms")

    def timed(work: Callable[[], None]) -> float:
        started = time.perf_counter()
        work()
        stream.synchronize()
        return time.perf_counter() - started

    parts = {
        "transposition on the device": lambda: export.transpose(0, moments, stream),
        "copy into pinned memory": lambda: export.copy_to_host(0, moments, stream),
        "placing by the host": lambda: export.store(0, moments, target),
    }
    for work in parts.values():
        timed(work)
    seen = rounds_of(plan, **{name: lambda work=work: timed(work) for name, work in parts.items()})
    for name, times in seen.items():
        speeds = size / np.array(times) / 1e9
        table.row(
            name, float(np.median(speeds)), f"{speeds.min():.3g} – {speeds.max():.3g}", float(np.median(times)) * 1e3
        )


def main(plan: Plan) -> None:
    """Print both tables."""
    ways_home(plan)
    print()
    table = Table(plan.folder, "layout", "case", "chains", "layout", "beside as it is", "spread", "10⁶/s")
    for name in (name for name in ("sgld", "icsgld") if name in plan.names):
        for n_chains in plan.sizes[-1:] if plan.is_dry else (10_000, 1_000_000):
            if plan.is_late(f"{name}, {n_chains} chains"):
                continue
            timed = variants(plan, name, n_chains)
            for call in timed.values():
                call()
            seen = rounds_of(plan, **timed)
            for variant, rates in seen.items():
                beside = seen["as it is, draws kept" if "draws" in variant else "as it is"]
                table.row(name, n_chains, variant, *ratio_cells(rates, beside), rate_cell(rates))
