"""Which chains of a run share one law: those of a sweep have step sizes or temperatures of their own."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .result import RunRecord

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Setting(NamedTuple):
    """Chains (n,) of one law. words: what they have that others have not; empty where all chains have one law."""

    words: str
    chains: Integers


def settings_of(run: RunRecord) -> list[Setting]:
    """The settings of ``run``, in the order of their first chains."""
    swept = {name: values for name, values in run.sampler.arrays.items() if values.ndim == 2}
    swept = {name: values for name, values in swept.items() if (values != values[0]).any()}
    if not swept:
        return [Setting("", np.arange(run.n_chains))]
    table = np.hstack(list(swept.values()))
    _, first, which = np.unique(table, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(which.ravel(), kind="stable")
    groups = np.split(order, np.cumsum(np.bincount(which.ravel()))[:-1])
    nouns = {"step_sizes": "step size", "temperatures": "temperature"}
    return [
        Setting(", ".join(spelled(nouns[name], values[first[i]]) for name, values in swept.items()), groups[i])
        for i in np.argsort(first)
    ]


def spelled(name: str, values: Floats) -> str:
    """Step sizes or temperatures, (R,) or (chain, R), in words."""
    if values.ndim == 2 and (values != values[0]).any():
        return f"{name}s {values.min():g} to {values.max():g} by chain"
    row = np.atleast_2d(values)[0]
    if (row == row[0]).all():
        return f"{name} {row[0]:g}"
    if row.size > 6:
        return f"{row.size} {name}s {row[0]:g} to {row[-1]:g}"
    return f"{name}s " + ", ".join(f"{value:g}" for value in row)
