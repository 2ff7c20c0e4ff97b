"""Stage floors: operations of a step as counted, and the chain-steps per second that the card could do at most.

The least time of a step is that of its operations at the card's rates, or of its bytes at the card's bandwidth.

Rates per multiprocessor and clock are those of the table of arithmetic instructions' throughput in the vendor's
programming guide; clocks, multiprocessors and the memory's width are the device's own attributes.
"""

from typing import Any, NamedTuple

from benchmarks.runner.tables import Table
from toolkit._engine.cuda.device import SIMULATED

from .cases import MAKERS, case_of
from .disassembly import operations_of
from .measure import Plan
from .operations import FLOAT32, FLOAT64, Operations

# Compute capability → results per clock and multiprocessor: float64, float32, 32-bit integer multiplication.
RATES = {
    (7, 0): (32, 64, 64), (7, 5): (2, 64, 64), (8, 0): (32, 64, 64), (8, 6): (2, 128, 64), (8, 9): (2, 128, 64),
    (9, 0): (64, 128, 64), (10, 0): (64, 128, 64), (12, 0): (2, 128, 64),
}  # fmt: skip
SPECIAL, CONVERT, ISSUED = 16, 16, 128  # alike on all of these; instructions issued are 4 warps' a clock


class Card(NamedTuple):
    """What a device can do: multiprocessors, Hz, results per clock and multiprocessor, bytes per second."""

    name: str
    capability: tuple[int, int]
    processors: int
    clock: float
    float64: int
    float32: int
    multiply: int
    bandwidth: float

    @property
    def flops64(self) -> float:
        """Float64 operations per second, an fma as two."""
        return 2.0 * self.processors * self.clock * self.float64

    @property
    def flops32(self) -> float:
        """Float32 operations per second, an fma as two."""
        return 2.0 * self.processors * self.clock * self.float32


class Floor(NamedTuple):
    """Least seconds of one step of a chain: by operations as sheets count them, by each pipe, and by bytes."""

    flops: float
    pipes: dict[str, float]
    bytes: float

    @property
    def limit(self) -> str:
        """What takes longest."""
        return max({**self.pipes, "memory": self.bytes}.items(), key=lambda item: item[1])[0]

    @property
    def seconds(self) -> float:
        """The longest of all."""
        return max(*self.pipes.values(), self.bytes)


# By the vendor's sheet: 34 TFLOP/s in float64 without tensor cores, 4.8 TB/s.
H200 = Card("H200 by its sheet", (9, 0), 132, 34e12 / (2 * 132 * 64), *RATES[9, 0], 4.8e12)


def card_here() -> Card:
    """The current device. Raises ValueError where its compute capability is not in the table."""
    from toolkit._engine.cuda.device import cuda

    device: Any = cuda.get_current_device()
    capability = tuple(device.compute_capability)
    if capability not in RATES:
        raise ValueError(f"compute capability must be one of {sorted(RATES)}, got {capability}")
    name = device.name.decode() if isinstance(device.name, bytes) else str(device.name)
    bandwidth = 2.0 * 1e3 * device.MEMORY_CLOCK_RATE * device.GLOBAL_MEMORY_BUS_WIDTH / 8
    clock = 1e3 * device.CLOCK_RATE
    return Card(name, capability, int(device.MULTIPROCESSOR_COUNT), clock, *RATES[capability], bandwidth)


def floor_of(operations: Operations, card: Card, bytes_per_step: float = 0.0) -> Floor:
    """The floor of a step of these operations that moves so many bytes in the device's memory."""
    per_clock = card.processors * card.clock
    is_single = operations.count(FLOAT64) < operations.count(FLOAT32)
    pipes = {
        "float64": operations.count(FLOAT64) / card.float64,
        "float32": operations.count(FLOAT32) / card.float32,
        "integer multiply": operations.count(("multiply", "wide multiply")) / card.multiply,
        "special": operations.kinds["special"] / SPECIAL,
        "convert": operations.kinds["convert"] / CONVERT,
        "issue": sum(operations.kinds.values()) / ISSUED,
    }
    return Floor(
        operations.flops / (card.flops32 if is_single else card.flops64),
        {pipe: clocks / per_clock for pipe, clocks in pipes.items()},
        bytes_per_step / card.bandwidth,
    )


def main(plan: Plan) -> None:
    """Print the table, for the card that is there, or the H200 by its sheet."""
    if SIMULATED:
        print("floors: the simulator compiles no kernels, so there are none to count")
        return
    card = H200 if plan.is_dry else card_here()
    print(f"{card.name}: {card.flops64 / 1e12:.3g} TFLOP/s float64, {card.bandwidth / 1e12:.3g} TB/s\n")
    table = Table(
        plan.folder, "floors", "case", "at most, 10⁹ chain-steps/s", "limit", "by flops alone", "flops", "float64",
        "wide multiplies", "divisions and roots", "instructions", "read from",
    )  # fmt: skip
    for name in MAKERS:
        if name in plan.names and not plan.is_late(name):
            lanes = case_of(name).sampler.n_replicas
            counted = operations_of(case_of(name), card.capability)
            floor = floor_of(counted, card)
            kinds = counted.kinds
            table.row(
                name, lanes / floor.seconds / 1e9, floor.limit, lanes / floor.flops / 1e9, counted.flops,
                counted.count(FLOAT64), kinds["wide multiply"], kinds["special"], sum(kinds.values()), counted.source,
            )  # fmt: skip


def floor_here(name: str, real: type) -> Floor | None:
    """The floor of a case on the card that is there; None in the simulator."""
    if SIMULATED:
        return None
    card = card_here()
    return floor_of(operations_of(case_of(name), card.capability, real), card)
