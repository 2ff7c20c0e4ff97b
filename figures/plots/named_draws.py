"""Draws of an identification as the parameters they stand for, by their names."""

from typing import Any

import numpy as np

from sysid import Identification
from toolkit import Run
from toolkit.errors import check_count, is_a, shown

from ..arrays import Array


def names_of(source: Any) -> tuple[str, ...]:
    """Names of the coordinates of a run's draws, or of the parameters that these stand for; () where it has none."""
    if not is_a(source, Run):
        return ()
    problem: Any = source.problem
    return problem.names if is_identified(source) else problem.target.names or ()


def is_identified(source: Any) -> bool:
    """Whether ``source`` is a run of an ``Identification``, whose draws stand for parameters of other units each."""
    return is_a(source, Run) and is_a(source.problem, Identification)


def parameters_of(run: Run, positions: Array) -> Array:
    """``positions`` (…, q) of a run as parameters, where it is of an ``Identification``; else as they are."""
    problem: Any = run.problem
    return np.asarray(problem.parameters(positions) if is_identified(run) else positions)


def number_of(coordinate: Any, names: tuple[str, ...], n: int) -> int:
    """The number, below ``n``, of a coordinate given as that or as one of ``names``."""
    if not is_a(coordinate, str):
        return check_count("coordinate", coordinate, at_least=0, below=n)
    if coordinate not in names:
        known = f"one of {', '.join(map(shown, names))}" if names else "a number, as the draws have no names"
        raise ValueError(f"coordinate must be {known}, got {shown(coordinate)}")
    return names.index(coordinate)
