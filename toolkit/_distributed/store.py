"""A run's Zarr store that workers write by regions of chains, as ``Run.save`` would write it whole."""

import dataclasses
import math
import threading
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._engine.run_record import RunRecord
from .._output.storage import formats
from .._output.storage.datatree import Tree, build_groups, build_tree
from .._output.storage.run_contents import Contents, block_digest, contents_of, is_by_chain
from ..errors import optional

Array = NDArray[Any]

_WRITING = threading.Lock()  # Zarr's configuration is that of all threads of a process
BLOCK_BYTES = 8 << 20  # of the largest variable of a block of chains, which is one Zarr chunk of every variable


class Region(NamedTuple):
    """Where the chains of a part are written. path: the store's. block: chains of a Zarr chunk."""

    path: str
    block: int


def chain_variables(tree: Tree) -> dict[tuple[str, str], Array]:
    """The variables of a tree whose first dimension is the chain, by group and name."""
    return {
        (group, name): np.asarray(values)
        for group, variables in tree.groups.items()
        for name, (dims, values, _) in variables.items()
        if dims[:1] == ("chain",)
    }


def tree_of(run: RunRecord, first_chain: int) -> tuple[Tree, Contents]:
    """The tree of a part of a run, and its contents."""
    contents = contents_of(run)
    return build_groups(run, contents, first_chain, warns=False), contents


def block_of(run: RunRecord) -> int:
    """Chains of a Zarr chunk, from a run of a few."""
    largest = max(values[:1].nbytes for values in chain_variables(tree_of(run, 0)[0]).values())
    return int(max(1, 2 ** int(math.log2(max(1, BLOCK_BYTES // max(1, largest))))))


def create(path: Path, run: RunRecord, n_chains: int, block: int) -> None:
    """Make the store at ``path`` with room for ``n_chains`` chains. run: of a few of them."""
    zarr = optional("zarr", "io")
    tree = tree_of(run, 0)[0]
    root = zarr.open_group(path, mode="w", zarr_format=2)
    for (group, name), values in chain_variables(tree).items():
        dims, _, description = tree.groups[group][name]
        root.require_group(group).create_array(
            name, shape=(n_chains, *values.shape[1:]), dtype=values.dtype, compressors=None, fill_value=None,
            chunks=(min(block, n_chains), *(max(1, size) for size in values.shape[1:])),
            attributes={"_ARRAY_DIMENSIONS": list(dims), "description": description},
        )  # fmt: skip


def write(region: Region, run: RunRecord, first_chain: int) -> tuple[bytes, bool]:
    """Write the chains of ``run`` from ``first_chain`` on; their blocks' digests, and whether each has a weight."""
    zarr = optional("zarr", "io")
    run = dataclasses.replace(run, accumulated={})
    tree, contents = tree_of(run, first_chain)
    n_chains = len(run.init)
    with _WRITING, zarr.config.set({"array.write_empty_chunks": True}):
        root = zarr.open_group(region.path, mode="r+", zarr_format=2)
        for (group, name), values in chain_variables(tree).items():
            root[f"{group}/{name}"][first_chain : first_chain + n_chains] = values
    blocks = [block_digest(contents.arrays, slice(i, i + region.block)) for i in range(0, n_chains, region.block)]
    return b"".join(blocks), "posterior" in tree.groups


def finish(path: Path, run: RunRecord, n_chains: int, block: int, digests: bytes, *, has_posterior: bool) -> None:
    """Add all that is not by chain. run: of a few of its chains, with the accumulators' results of all."""
    zarr = optional("zarr", "io")
    tree, contents = tree_of(run, 0)
    written = chain_variables(tree)
    for name, place in tree.places.items():
        if not place.group and is_by_chain(name) and place.shape[0] == len(run.init):  # an empty array
            tree.places[name] = place._replace(shape=(n_chains, *place.shape[1:]))
    formats.add_texts(tree, contents, contents.checksum_of_blocks(block, digests))
    for node in build_tree(run, tree, contents, None).subtree:
        group = node.path.strip("/")
        own = node.to_dataset(inherit=False).drop_vars([name for of, name in written if of == group])
        if "chain" in own.coords:
            own = own.drop_vars("chain").assign_coords(chain=np.arange(n_chains))
        own.to_zarr(path, group=group or None, mode="a", zarr_format=2, consolidated=False)
    root = zarr.open_group(path, mode="r+", zarr_format=2)
    if not has_posterior:
        for group in {"posterior", "sample_stats"} & set(root.group_keys()):
            del root[group]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        zarr.consolidate_metadata(path, zarr_format=2)
