"""A target without energy: in a domain, the uniform law."""

from typing import Any

from toolkit import Target


def flat_block(position: Any, energy: Any, gradient: Any, parameters: Any, scratch: Any) -> None:
    """No energy anywhere in the plane."""
    for lane in range(position.shape[1]):
        energy[lane] = 0.0
        gradient[0, lane] = 0.0
        gradient[1, lane] = 0.0


FLAT = Target("flat", 2, flat_block)
