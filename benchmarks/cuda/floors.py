"""Stage floors: operations of a step as counted, and the chain-steps per second that the card could do at most."""

from benchmarks.tables import Table
from toolkit._engine.cuda.device import SIMULATED

from .cases import MAKERS, case_of
from .floor import H200, Floor, card_here, floor_of
from .kernels import operations_of
from .measure import Plan
from .operations import FLOAT64


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
