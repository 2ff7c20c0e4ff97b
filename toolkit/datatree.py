"""A run as an xarray DataTree in the schema that ArviZ reads, versions 0.23 and 1.x alike."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .contents import Contents, contents_of
from .extras import optional
from .result import RunRecord
from .tree_groups import Tree, grow, resample_seed

if TYPE_CHECKING:
    import xarray

LONGEST_ATTRIBUTE = 32_000  # bytes; netCDF holds 64 KB of them


def to_datatree(run: RunRecord, names: Sequence[str] | None = None) -> "xarray.DataTree":
    """``run`` as ``Run.to_datatree`` explains it."""
    contents = contents_of(run)
    return planted(run, grow(run, contents), contents, names)


def planted(run: RunRecord, tree: Tree, contents: Contents, names: Sequence[str] | None) -> "xarray.DataTree":
    """The tree as xarray's, with its attributes."""
    xarray = optional("xarray", "io")
    attributes = attributes_of(run, contents)
    sets = {"/": xarray.Dataset(attrs=attributes)}
    labels = None if names is None else check_names(names, run.problem.target.dim)
    for group, variables in tree.groups.items():
        if not variables:
            continue
        coordinates: dict[str, Any] = dict(tree.coordinates.get(group, {}))
        if any("x_dim" in dims for dims, _, _ in variables.values()):
            coordinates["x_dim"] = (("x_dim",), np.arange(run.problem.target.dim) if labels is None else labels)
        own = (
            {"resample_seed": str(resample_seed(run))}
            if group == "posterior" and run.replica_weights is not None
            else {}
        )
        schema = ("inference_library", "inference_library_version", "created_at", "sampling_time", "tuning_steps")
        sets[group] = xarray.Dataset(
            {name: (dims, values, {"description": said}) for name, (dims, values, said) in variables.items()},
            coords=coordinates,
            attrs={**{name: attributes[name] for name in schema}, **own},
        )
    return xarray.DataTree.from_dict(sets)


def check_names(names: Any, dim: int) -> list[str]:
    """Names of the coordinates. Raises TypeError or ValueError where they are not one string for each."""
    if isinstance(names, str) or not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"names must be a sequence of strings, got {names!r}")
    if len(names) != dim or len(set(names)) != dim:
        raise ValueError(f"names must be {dim} different ones, one for each coordinate, got {list(names)!r}")
    return list(names)


def attributes_of(run: RunRecord, contents: Contents) -> dict[str, Any]:
    """All that repeats the run, and what ArviZ's schema asks for."""
    header = json.loads(contents.header)
    whole = {
        "inference_library": "manymodes",
        "inference_library_version": run.made_with.get("manymodes", "unknown"),
        "created_at": header["created_at"],
        "sampling_time": run.elapsed,
        "tuning_steps": run.burn_in,
        "problem": json.dumps(header["description"]["problem"], ensure_ascii=False),
        "sampler": json.dumps(header["description"]["sampler"], ensure_ascii=False),
        "problem_name": run.problem.name,
        "sampler_name": run.sampler.name,
        "seed": str(run.seed),
        "made_with": json.dumps(run.made_with, ensure_ascii=False),
        "interrupted": int(run.interrupted),
        "elapsed": run.elapsed,
    }
    counts = ("n_steps", "total_steps", "burn_in", "thin", "sampling_steps", "gradient_evaluations")
    whole |= {name: str(getattr(run, name)) for name in counts}
    too_long = "too long for an attribute; a saved file has it in 'header' of the group 'run'"
    return {
        name: too_long if isinstance(value, str) and len(value.encode()) > LONGEST_ATTRIBUTE else value
        for name, value in whole.items()
    }
