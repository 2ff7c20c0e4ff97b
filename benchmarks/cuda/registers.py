"""Stage registers: chain-steps per second of the kernel alone, by most registers of a thread and threads of a block.

The state stays on the device, and nothing is kept: what a long run of many chains comes to.
"""

import itertools
import time

import numpy as np

from benchmarks.runner import rounds
from benchmarks.runner.tables import Table
from toolkit._engine.cuda import device, kernel
from toolkit._engine.cuda.engine import DeviceEngine
from toolkit._engine.cuda.transfers import Piece

from .cases import MAKERS, case_of
from .measure import Plan, job_of, run, side_by_side

CAPS = (None, 168, 128, 96)
BLOCKS = (32, 64, 128)
MOST_STEPS = 2**22  # of a launch


class Kernel:
    """A case's kernel with its chains' state on the device."""

    def __init__(self, name: str, n_chains: int) -> None:
        case = case_of(name)
        self._engine, self._next = DeviceEngine(job_of(case, n_chains=n_chains, backend="cuda"), False, {}), 1
        self._engine._state.send()
        self._gradients = n_chains * case.sampler.gradients_per_step

    def rate(self, n_steps: int) -> tuple[float, float]:
        """Chain-steps per second of so many steps in one launch, and the seconds."""
        ones, never = np.ones(n_steps), np.full(n_steps, -1)
        plan = [device.to_device(values) for values in (ones, ones, never, never)]
        self._engine._compute.synchronize()
        started = time.perf_counter()
        self._engine._launch(self._next, Piece(0, n_steps, 0, 0, 0, 0), plan)
        self._engine._compute.synchronize()
        took = time.perf_counter() - started
        self._next += n_steps
        return self._gradients * n_steps / took, took


def limit_registers(most: int | None) -> None:
    """Compile kernels of any number of replicas for at most so many registers."""
    kernel.MOST_REGISTERS, kernel.FEW_REPLICAS = most, 2**31  # type: ignore[assignment]
    kernel.compiled.cache_clear()


def compile_limited(name: str, most: int | None) -> None:
    """Compile a case's kernel, which is in the cache on disk afterwards."""
    limit_registers(most)
    run(case_of(name), "cuda", 8, 20)


def main(plan: Plan) -> None:
    """Print the table."""
    names = [name for name in MAKERS if name in plan.names]
    columns = [f"blocks of {size}, 10⁹/s" for size in BLOCKS]
    table = Table(plan.folder, "cuda_registers", "card", "case", "chains", "most registers", *columns)
    # A thread for each place of the card, several times as many as its registers allow at a time.
    n_chains = 3 if plan.is_dry else device.MOST_THREADS * device.n_processors()
    if plan.is_late("all"):
        return
    if not plan.is_dry:
        side_by_side([(compile_limited, *each) for each in itertools.product(names, CAPS)])
    before = kernel.MOST_REGISTERS, kernel.FEW_REPLICAS, device.BLOCK, device.SMALL_BLOCK
    try:
        for name, most in itertools.product(names, CAPS):
            if plan.is_late(f"{name}, {most} registers"):
                continue
            limit_registers(most)
            here, n_steps = Kernel(name, n_chains), 20
            if not plan.is_dry:
                n_steps = rounds.steps_for(lambda n, here=here: here.rate(n)[1], plan.seconds, MOST_STEPS, n_steps)
            cells = []
            for size in BLOCKS:
                device.BLOCK = device.SMALL_BLOCK = size
                cells.append(float(np.median([here.rate(n_steps)[0] for _ in range(plan.rounds)])) / 1e9)
            table.row(device.name(), name, n_chains, most or "any", *cells)
    finally:
        kernel.MOST_REGISTERS, kernel.FEW_REPLICAS, device.BLOCK, device.SMALL_BLOCK = before
        kernel.compiled.cache_clear()
