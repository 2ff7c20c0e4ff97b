"""Log densities of values in the tree of a run, and ArviZ's leave-one-out estimate from them."""

import warnings
from typing import Any

import numpy as np

from toolkit.errors import optional

from ..arrays import Array

LOG_LIKELIHOOD, VARIABLE = "log_likelihood", "y"


def log_likelihood_group(
    densities: Array, experiments: list[str], times: Array, quantities: list[str], attributes: Any
) -> Any:
    """The group (an xarray.Dataset) of log densities (chain, draw, value); of each value its series, time and name."""
    xarray = optional("xarray", "io")
    n_chains, n_draws, _ = densities.shape
    coordinates = {
        "chain": np.arange(n_chains), "draw": np.arange(n_draws), "value": np.arange(densities.shape[2]),
        "series": ("value", experiments), "time": ("value", times), "quantity": ("value", quantities),
    }  # fmt: skip
    description = {"description": "log density of each measured value, with all constants, in nats"}
    variables = {VARIABLE: (("chain", "draw", "value"), densities, description)}
    return xarray.Dataset(variables, coords=coordinates, attrs=attributes)


def loo_of(tree: Any) -> Any:
    """What ArviZ's ``loo`` says of a tree's groups ``posterior`` and ``log_likelihood``, value by value.

    Raises ValueError where a draw has no solution: ArviZ would say nan.
    """
    has_solution = np.isfinite(tree[LOG_LIKELIHOOD][VARIABLE].values).all(axis=2)
    if not has_solution.all():
        missing = np.count_nonzero(~has_solution)
        raise ValueError(
            f"run must have draws that all have a density of the data, got {missing} of {has_solution.size} without"
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what it becomes in later versions
        arviz = optional("arviz", "arviz")
    xarray = optional("xarray", "io")
    few = xarray.DataTree.from_dict({name: tree[name].to_dataset() for name in ("posterior", LOG_LIKELIHOOD)})
    return arviz.loo(arviz.from_datatree(few) if hasattr(arviz, "from_datatree") else few, pointwise=True)
