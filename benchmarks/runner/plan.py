"""How much the tables measure."""

from pathlib import Path
from typing import NamedTuple


class Plan(NamedTuple):
    """rounds: how often all that is compared runs. seconds: of one timed run, about. folder: of tables; None: none.

    is_small: few rows and small sizes, to see that all works.
    """

    rounds: int
    seconds: float
    folder: Path | None
    is_small: bool
