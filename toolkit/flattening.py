"""Contour's look at a block: what ``contour.flatten`` needs, from the rows where the engine keeps it."""

from .compiling import inlined
from .contour import flatten
from .state import BIN, BOTTOM, LOG_PSI, LOG_WEIGHT, PLACE, TEMPERATURE, TOP


@inlined
def flatten_block(energy, multiplier, state, numbers, parameters):
    """``multiplier`` and the rows that go with it, (lane), at ``energy``; inlined, as a block is large to pass."""
    rows, masses = state.rows, state.masses
    flatten(
        energy, rows[TEMPERATURE], rows[PLACE], rows[BIN], masses[TOP], masses[BOTTOM], multiplier, rows[LOG_PSI],
        rows[LOG_WEIGHT], state.contour, parameters, numbers.n_chains, numbers.n_replicas,
    )  # fmt: skip
