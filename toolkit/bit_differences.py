"""All that a run computed, and the first number in which two runs differ, bit by bit."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .run import Run

Arrays = dict[str, NDArray[Any]]

OF_ALL_CHAINS = ("pooled_mean", "pooled_covariance", "standard_error")  # of a subset they are others
PER_DRAW = ("draws", "energies", "weights", "walker", "swaps", "reflections")


class Difference(NamedTuple):
    """The first number that differs: in words, and the two values."""

    place: str
    expected: Any
    got: Any


def arrays_of(run: Run) -> Arrays:
    """All that a run computed, by name, chains first; what it lacks is left out."""
    found: Arrays = {"draws": run.replica_draws}
    if run.energies is not None:
        found["energies"] = run.energies
    if run.replica_weights is not None:
        found["weights"] = run.replica_weights
    if run.statistics is not None:
        found |= run.statistics._asdict()
    if run.trace is not None:
        found |= {f"trace.{name}": values for name, values in run.trace.fields.items()}
        if run.trace.theta is not None:
            found["trace.theta"] = run.trace.theta
    found |= {f"counts.{name}": values for name, values in run.counts._asdict().items()}
    for name, result in run.accumulated.items():
        by_chain = {field: values for field, values in result._asdict().items() if field not in OF_ALL_CHAINS}
        found |= {f"accumulated.{name}.{field}": np.asarray(values) for field, values in by_chain.items()}
    return {name: values for name, values in found.items() if values.size}


def joined(chunks: list[Run]) -> Arrays:
    """What the chunks of a stream hold together."""
    parts = [arrays_of(chunk) for chunk in chunks]
    last = dict(parts[-1])
    for name in {name for part in parts for name in part if not name.startswith(("counts.", "accumulated."))}:
        axis = 1 if name == "trace.theta" else 2
        last[name] = np.concatenate([part[name] for part in parts if name in part], axis=axis)
    return last


def first_difference(expected: Arrays, got: Arrays, steps: NDArray[np.int64]) -> Difference | None:
    """The earliest number of ``got`` whose bits are not those of ``expected``, of whose chains it may lack the last."""
    for name in [*expected, *(name for name in got if name not in expected)]:
        if name not in expected or name not in got:
            return Difference(f"{name} is there in one of the two alone", name in expected, name in got)
        ours, theirs = expected[name][: len(got[name])], got[name]
        if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
            return Difference(f"{name} has another shape or kind", f"{ours.dtype}{ours.shape}",
                              f"{theirs.dtype}{theirs.shape}")  # fmt: skip
        kind = f"u{ours.dtype.itemsize}"
        apart = np.ascontiguousarray(ours).view(kind) != np.ascontiguousarray(theirs).view(kind)
        if apart.any():
            return Difference(*place_of(name, apart, steps, ours, theirs))
    return None


def place_of(
    name: str, apart: NDArray[np.bool_], steps: NDArray[np.int64], ours: NDArray[Any], theirs: NDArray[Any]
) -> tuple[str, Any, Any]:
    """Where ``apart`` is first true, in words, and both values: in time for draws, else in the array's own order."""
    timed = name in PER_DRAW
    order = (2, 0, 1, *range(3, apart.ndim)) if timed else tuple(range(apart.ndim))
    first = np.argwhere(np.transpose(apart, order))[0]
    index = tuple(int(i) for _, i in sorted(zip(order, first, strict=True)))
    if timed:
        words = f"chain {index[0]}, replica {index[1]}, draw {index[2]} (step {steps[index[2]]})"
        words += f", coordinate {index[3]}" if apart.ndim > 3 else ""
    else:
        words = f"chain {index[0]}" + (f", entry {list(index[1:])}" if index[1:] else "")
    return f"{name} in {words}", ours[index].item(), theirs[index].item()
