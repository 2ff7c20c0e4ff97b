"""The result of a run: its record, with report, tree of arrays and file; and ``load``."""

import importlib.metadata
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .._engine.run_record import RunRecord
from ..errors import DISTRIBUTION, check_not_shadowed
from ..problem.definition import Problem, Target

if TYPE_CHECKING:
    import pandas
    import xarray

PICTURES = f"{DISTRIBUTION}.pictures"  # entry points by which packages that stand on this one offer pictures of runs


@dataclass(frozen=True, eq=False, repr=False)
class Run(RunRecord):
    """Draws and counts of a run, or of one chunk of a stream.

    replica_draws: (chain, replica, draw, dim), of the replicas that sample the target unless all were kept.
    steps: (draw,), the step after which each draw was taken; steps count from 0.
    energies: (chain, replica, draw), where requested: without energy_noise, with the penalty if there is one; for a
    target that draws minibatches, of a minibatch.
    replica_weights: (chain, replica, draw), importance weights where the sampler has any; up to a factor.
    statistics: counts up to every draw; None without replica exchange and without a boundary.
    counts: all counts, and contour's θ, see ``run_record.Counts``.
    n_steps: steps done, of ``total_steps`` requested. sampling_steps: those after burn-in.
    init: (chain, replica, dim), the start. trace: where requested. accumulated: each accumulator's result.
    gradient_evaluations: so far, all chains and replicas, with those of the pilot that found contour's partition.
    elapsed: seconds of sampling. interrupted: stopped by Ctrl-C. made_with: versions, machine, device and engine.
    stopping: how ``until`` ended the run; None without. tuning: how ``tune`` found the sampler; None without.
    seed: of the chains' random numbers. given_seed: the user's, which reports print; another one only after a second
    tuning.
    """

    def to_datatree(self, names: Sequence[str] | None = None) -> "xarray.DataTree":
        """The run as an xarray.DataTree in ArviZ's schema; needs the extra ``io``.

        names: of the coordinates, for tables and plots; None: 0, 1, …, or of ``sysid.identify`` those of parameters.
        Groups: ``posterior`` with ``x`` (chain, draw, x_dim), the target's draws, as parameters where the problem is
        one of ``sysid.identify``, with what was sampled in ``positions`` where it differs; ``sample_stats`` (chain,
        draw):
        energy U (as kept, or evaluated at the draws unless the target draws minibatches or is a Python function),
        weight, step_size, temperature, diverging, step, replica and, where there are ``statistics``, walker,
        swap_accepted, reflections; ``constant_data``: start, the target's numbers, the domain's tables; ``contour``:
        edges, θ, visits; ``trace``; ``accumulated``; ``replicas``: all temperatures, where they were kept; ``run``: all
        else. Attributes: problem and sampler with all numbers, seed and steps as text, versions, machine, times.

        ArviZ knows no weights. ``posterior`` and ``sample_stats`` of a weighted run therefore hold as many equally
        weighted draws, made by ``weighting.resample`` chain by chain with the seed in the attribute ``resample_seed``;
        the draws themselves are in ``weighted_posterior`` and ``weighted_sample_stats``. Means and quantiles of the
        former are right, and its copies, which follow each other, count as correlated draws in an ESS. Where a chain
        has no draw with a weight above 0 there is no ``posterior``, with a ContourWarning.
        Raises ImportError without xarray; TypeError or ValueError for wrong names.
        """
        from .storage.datatree import to_datatree

        return to_datatree(self, names)

    def save(self, path: "str | os.PathLike[str]") -> None:
        """Write the whole run to ``path``; ``toolkit.load`` reads it.

        By suffix: ``.npz`` (NumPy alone), ``.nc`` (netCDF-4), ``.zarr`` (a folder) or ``.zarr.zip``; all but the first
        hold the tree of ``to_datatree``, which ArviZ opens, with parameters by name for runs of ``sysid.identify`` (not
        of such a run that was loaded without its problem: these names are the problem's), and need the extra ``io``.
        Arrays are compressed where that pays, and a checksum of all contents is added. The file is written beside
        ``path`` and then moved, so it is never incomplete: after a failure the old file is unchanged.
        Raises ValueError for another suffix, or where something other than a file, or for ``.zarr`` than a run, is in
        its place; ImportError without the extra; OSError where it cannot be written.
        """
        from .storage import run_file

        run_file.save(self, path)

    @property
    def warnings(self) -> list[str]:
        """Warnings about the run, a sentence each with what to do; empty where there are none."""
        from .report.text import warnings_about

        return warnings_about(self)

    def __str__(self) -> str:
        """The sampler, what was done and counted, means with errors, ESS and R-hat, and ``warnings``, in lines."""
        from .report.text import text_of

        return text_of(self)

    def _repr_html_(self) -> str:
        """The same for notebooks."""
        from .report.text import html_of

        return html_of(self)

    def summary(self) -> "pandas.DataFrame":
        """A pandas DataFrame with a row for each coordinate, by name where the problem has names.

        Columns: mean, sd, q05, median, q95 (quantiles), mcse (standard error of the mean), ess (bulk), ess_tail, r_hat;
        importance weights count. As in ``print(run)`` they are of all draws or, of more than 10⁶ numbers (of ten
        coordinates), of evenly spaced ones; ``summary.attrs["source"]`` says of which. Without draws they are from
        accumulators; nan is what those do not know. Where chains have several step sizes, temperatures or targets, the
        first level of the index is the setting. Of problems of ``sysid.identify`` the rows are parameters.
        Needs pandas (extra ``data``). Raises ImportError without it; ValueError where there is nothing to summarise.
        """
        from .report.summary import summary_of

        return summary_of(self)

    def to_inference_data(self, names: Sequence[str] | None = None) -> Any:
        """The run in the form that the ArviZ which is installed works on: InferenceData before 1.0, then a DataTree.

        names and groups: as ``to_datatree`` has them. Needs ArviZ (extra ``arviz``). Raises ImportError without it, and
        what ``to_datatree`` raises.
        """
        from .storage.datatree import for_arviz

        return for_arviz(self.to_datatree(names))

    def plot(self) -> Any:
        """A picture of the draws: in the plane their density, else traces and ranks of each coordinate.

        Returns its panels by name; ``run.plot()["x[0]"].figure`` is Matplotlib's figure. ``figures.overview`` draws the
        same into a figure that is given. Raises ValueError without draws; ImportError where no package that is
        installed offers the picture.
        """
        for offered in importlib.metadata.entry_points(group=PICTURES, name="overview"):
            check_not_shadowed(offered.module, by="run.plot")
            return offered.load()(self)
        raise ImportError(
            f"run.plot needs a package that offers an entry point 'overview' of {PICTURES!r}; install "
            f"{DISTRIBUTION} again, which has one"
        )


def load(path: "str | os.PathLike[str]", problem: Problem | Target | None = None) -> Run:
    """The run that ``run.save(path)`` wrote, all its arrays equal bit for bit, its sampler built again.

    path: with the suffix it was saved with. problem: what was sampled; it is compared with what the file says of it.
    None: a stand-in with its name, dimension and numbers, whose evaluation raises UnavailableError, as do functions of
    one's own in a sampler. Code that another version of Python compiled is not compared. Nothing in a file is
    executed; what it may ask for is in ``docs/storage.md``.
    Raises ValueError for another suffix, and where ``problem`` differs, naming in what; LoadError, a ValueError, where
    the file is torn, was edited or is no run; FileNotFoundError or another OSError where it cannot be read;
    ImportError where the format needs the extra ``io``.
    """
    from .storage.run_file import read_run

    return read_run(path, problem, Run)
