"""A run whose draws are in a Zarr store, and stay there: ``StoredRun`` and ``open_run``."""

import dataclasses
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._engine.job import Job
from .._output.run import Run, load
from .._output.storage import run_file
from ..errors import LoadError, check_path, optional, shown
from ..problem.definition import Problem, Target
from . import store
from .collection import PooledResults, PooledRun
from .part import Array, Part, Request
from .store_summary import summary
from .tasks import check_client

if TYPE_CHECKING:
    import xarray


@dataclass(frozen=True, eq=False)
class StoredRun:
    """A run in a Zarr store, of which only what is asked for is read.

    path: the store, as ``run.save`` writes it: ``toolkit.load`` and ArviZ read it. totals: counts and accumulators'
    results where the run was made by this process, else None.
    """

    path: str
    n_chains: int
    n_draws: int
    dim: int
    totals: PooledRun | None = None

    def to_datatree(self) -> "xarray.DataTree":
        """The run as an xarray.DataTree of Dask arrays, one chunk for each block of chains, in ``Run``'s groups."""
        optional("dask", "cluster")
        tree: xarray.DataTree = optional("xarray", "io").open_datatree(self.path, engine="zarr", chunks={})
        return tree

    def load(self, problem: Problem | Target | None = None) -> Run:
        """The whole run in memory, as ``toolkit.load``."""
        return load(self.path, problem)

    def summary(self, client: Any = None) -> "xarray.Dataset":
        """mean, sd, mcse, ess (bulk), ess_mean, r_hat and median of each coordinate, (x_dim,), from blocks of chains.

        Memory is that of one block for each worker. client: whose workers compute; None: threads of this process.
        Weighted draws are those resampled by their weights. Formulas are those of ``diagnostics.ess`` and ``r_hat``;
        ranks are known to 1/16,384 of the draws, from a table that is exact at its edges. Needs 8 draws of each chain.
        """
        if client is not None:
            check_client(client)
        return summary(os.path.join(self.path, "posterior", "x"), client)

    def __repr__(self) -> str:
        return f"StoredRun({self.path!r}: {self.n_chains:,} chains × {self.n_draws:,} draws of dimension {self.dim})"


def open_run(path: "str | os.PathLike[str]") -> StoredRun:
    """The run in the Zarr store at ``path``, which ``run.save`` or ``sample(save=)`` wrote; its draws stay there.

    Raises FileNotFoundError where there is nothing, ValueError for another suffix than ``.zarr``, LoadError where the
    store is no run or has no draws; ImportError without the extra ``io``.
    """
    name = check_path("path", path, "a string or a path")
    if not name.endswith(".zarr"):
        raise ValueError(f"path must end in .zarr, got {shown(name)}")
    if not os.path.exists(name):
        raise FileNotFoundError(f"path must be a stored run, and there is nothing at {shown(name)}")
    zarr = optional("zarr", "io")
    try:
        array = zarr.open_group(name, mode="r")["posterior/x"]
        n_chains, n_draws, dim = array.shape
    except Exception as error:
        raise LoadError(f"{shown(name)} holds no run with draws: {type(error).__name__}: {str(error)[:200]}") from error
    return StoredRun(name, n_chains, n_draws, dim)


class StoredResults(PooledResults):
    """Results of a run whose draws workers write to the store at ``path``: made there when all chains are done.

    few: a run of the first chains, which says what the store holds.
    """

    kept = "a store's record"

    def __init__(self, job: Job, request: Request, path: str, few: Run) -> None:
        super().__init__(job, request)
        self.place = Path(os.path.realpath(path))
        self.unfinished = Path(unfinished_path(self.place))
        self._few = few
        assert request.region is not None
        self._block = request.region.block
        self._digests = np.zeros((-(-request.n_chains // self._block), 32), np.uint8)
        self._has_posterior = True

    def begin(self) -> None:
        """Make the store, unless chains are done, which are in it."""
        if not self.done.any():
            store.create(self.unfinished, self._few, len(self.done), self._block)

    def add(self, part: Part) -> None:
        """Take the part's results."""
        super().add(part)
        assert part.written is not None
        blocks, has_posterior = part.written
        digests = np.frombuffer(blocks, np.uint8).reshape(-1, 32)
        first = part.first // self._block
        self._digests[first : first + len(digests)] = digests
        self._has_posterior &= has_posterior

    def stored(self) -> tuple[Any, dict[str, Array]]:
        """What there is so far, as JSON and arrays by name."""
        header, arrays = super().stored()
        return {**header, "has_posterior": self._has_posterior}, {**arrays, "digests": self._digests}

    def restore(self, header: Any, arrays: dict[str, Array]) -> None:
        """The inverse of ``stored``; nothing where the store is not there any more."""
        if not self.unfinished.is_dir():
            return
        digests = arrays.pop("digests")
        if digests.shape != self._digests.shape or digests.dtype != np.uint8:
            raise ValueError(f"digests of shape {digests.shape}")
        super().restore(header, arrays)
        self._digests, self._has_posterior = digests.copy(), bool(header["has_posterior"])

    def result(self, *, pilot_gradients: int, elapsed: float, interrupted: bool = False) -> Any:
        """The stored run; counts of the chains that are done, a ``PooledRun``, where not all are."""
        totals = super().result(pilot_gradients=pilot_gradients, elapsed=elapsed, interrupted=interrupted)
        if totals is None or not self.done.all():
            return totals
        run = dataclasses.replace(
            self._few, accumulated=totals.accumulated, gradient_evaluations=totals.gradient_evaluations,
            elapsed=elapsed, made_with=totals.made_with,
        )  # fmt: skip
        n_chains = len(self.done)
        store.finish(
            self.unfinished, run, n_chains, self._block, self._digests.tobytes(), has_posterior=self._has_posterior
        )
        run_file.replace(self.unfinished, self.place)
        return StoredRun(str(self.place), n_chains, run.draws.shape[1], run.draws.shape[2], totals)


def unfinished_path(place: Path) -> str:
    """Where a store is while chains are missing in it."""
    return str(place.with_name(f".{place.name[:100]}.unfinished"))
