"""The bias of a run's step size, measured by halving it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from .._engine.run_options import RunOptions
from .._output.execution import run_sampler
from .._output.report.table import MOST_ROWS
from .._output.run import Run
from ..accumulators import moments
from ..accumulators.running_moments import MomentsSoFar
from ..errors import check_count, check_instance
from ..maths.seeds import HALF_STEP, STEP_SIZE, derived_seed
from ..samplers.sampler import Sampler
from .law_runs import halved

Floats = NDArray[np.float64]

CHAINS = 64  # with fewer, standard errors between chains are uncertain
FALSE_ALARM = 1e-3  # probability for an unbiased sampler, all comparisons together
LARGEST = 0.1  # runs are too short if a bias of so many standard deviations could be missed


@dataclass(frozen=True, eq=False)
class StepSizeReport:
    """What ``check_step_size`` found. Print it, or read its numbers.

    means, sds: (2, dim), at the step size h and at h/2; mean_errors, sd_errors: (2, dim), their standard errors between
    chains. mean_bias, sd_bias: (dim,), the bias at h, extrapolated to step size 0; mean_bias_errors, sd_bias_errors:
    (dim,). order: of the bias in h. quantile: standard errors from which a bias counts as found.
    """

    problem: str
    sampler: str
    order: int
    n_chains: int
    n_steps: int
    quantile: float
    means: Floats
    mean_errors: Floats
    sds: Floats
    sd_errors: Floats

    @property
    def mean_bias(self) -> Floats:
        """Bias of the means at h, (dim,)."""
        return np.asarray(self._factor * (self.means[0] - self.means[1]))

    @property
    def mean_bias_errors(self) -> Floats:
        """Standard errors of ``mean_bias``, (dim,)."""
        return np.asarray(self._factor * np.hypot(*self.mean_errors))

    @property
    def sd_bias(self) -> Floats:
        """Bias of the standard deviations at h, (dim,)."""
        return np.asarray(self._factor * (self.sds[0] - self.sds[1]))

    @property
    def sd_bias_errors(self) -> Floats:
        """Standard errors of ``sd_bias``, (dim,)."""
        return np.asarray(self._factor * np.hypot(*self.sd_errors))

    @property
    def is_biased(self) -> bool:
        """Whether a mean or a standard deviation differs at half the step size by more than chance."""
        return bool((self._standard_errors > self.quantile).any())

    @property
    def is_settled(self) -> bool:
        """Whether a bias was found, or one of a tenth of a standard deviation would have been found."""
        return self.is_biased or self._missed <= LARGEST

    @property
    def verdict(self) -> str:
        """What was found, in a sentence."""
        if self.is_biased:
            row, d = np.unravel_index(int(np.argmax(self._standard_errors)), self._standard_errors.shape)
            bias = (self.mean_bias, self.sd_bias)[row][d]
            error = (self.mean_bias_errors, self.sd_bias_errors)[row][d]
            if row:
                size, limit = "large" if bias > 0.0 else "small", max(self.sds[0, d] - bias, 1e-300)
                text = f"the sd of x[{d}] is {abs(bias) / limit:.2g} ± {error / limit:.2g} of itself too {size}"
            else:
                text = f"the mean of x[{d}] is off by {bias / self.sds[1, d]:.2g} ± {error / self.sds[1, d]:.2g} sd"
            n_biased = int((self._standard_errors > self.quantile).any(axis=0).sum())
            return (
                f"BIASED by the step size in {n_biased} of {self.sds.shape[1]} coordinates: most surely {text} at this "
                "step size, extrapolated from half of it; take smaller steps."
            )
        if not self.is_settled:
            return f"NOT SETTLED: no bias stands out, but one of {self._missed:.2g} sd would not; give more steps."
        return f"No bias of the step size stands out; one of more than {self._missed:.2g} sd would."

    @property
    def _factor(self) -> float:
        """Bias at h over the difference between h and h/2."""
        return 2.0**self.order / (2.0**self.order - 1.0)

    @property
    def _standard_errors(self) -> Floats:
        """Differences of means and sds in standard errors, (2, dim)."""
        bias = np.array([self.mean_bias, self.sd_bias])
        errors = np.array([self.mean_bias_errors, self.sd_bias_errors])
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(errors > 0.0, np.abs(bias) / errors, np.where(bias == 0.0, 0.0, np.inf))

    @property
    def _missed(self) -> float:
        """The largest bias, in standard deviations, that could be missed."""
        return float(self.quantile * np.max(np.maximum(self.mean_bias_errors, self.sd_bias_errors) / self.sds[1]))

    def __str__(self) -> str:
        title = (
            f"{self.sampler} on {self.problem}: {self.n_chains} chains × {self.n_steps:,} steps of size h and "
            f"{2 * self.n_steps:,} of size h/2, bias of order {self.order} in h"
        )
        rows = [("coordinate", "mean at h", "at h/2", "bias ± error", "sd at h", "at h/2", "bias ± error")]
        for d in range(min(MOST_ROWS, self.sds.shape[1])):
            rows.append((
                str(d), f"{self.means[0, d]:.5g}", f"{self.means[1, d]:.5g}",
                f"{self.mean_bias[d]:.2g} ± {self.mean_bias_errors[d]:.2g}", f"{self.sds[0, d]:.5g}",
                f"{self.sds[1, d]:.5g}", f"{self.sd_bias[d]:.2g} ± {self.sd_bias_errors[d]:.2g}",
            ))  # fmt: skip
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        lines = ["  " + "  ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=True)) for row in rows]
        if self.sds.shape[1] > MOST_ROWS:
            lines.append(f"  (the first {MOST_ROWS} of {self.sds.shape[1]} coordinates)")
        return "\n".join([title, *lines, self.verdict])


def check_step_size(
    run: Run,
    *,
    n_steps: int | None = None,
    burn_in: int | None = None,
    n_chains: int | None = None,
    order: int = 1,
    seed: int | None = None,
) -> StepSizeReport:
    """Measure the bias of a run's step size: run its sampler anew at the step size h, and at h/2 for the same time.

    The two are extrapolated to step size 0, where the bias goes as h to the power ``order``: 1, or 2 where it is known
    to. Under exchange and other tempering all replicas' steps are halved, and a schedule is stretched over twice the
    steps. Chains begin where the run's began, again and again where there are more of them, with other random numbers.
    n_steps: at h (None: as the run has done). burn_in: at h (None: the run's, or a quarter of the steps where it had
    none). n_chains: None for the run's, and at least 64, or what the sampler's arrays say. seed: None: a hash of the
    run's. Both runs take three times the gradient evaluations of one. Standard errors are those between chains, so a
    mode that neither run has found is not seen; an unbiased sampler is called biased with probability 1e-3, about.
    Raises TypeError or ValueError for arguments that are not what they must be, for Stein's particles, which are no
    random draws, and for chains of several settings; DivergenceError where a chain diverges.
    Source: Talay & Tubaro (1990), Stochastic Analysis and Applications 8, on extrapolation in the step size.
    """
    check_instance("run", run, Run)
    sampler = run.sampler
    check_setting(sampler)
    order = check_count("order", order, at_least=1, below=3)
    n_steps = check_count("n_steps", run.n_steps if n_steps is None else n_steps, at_least=4, below=2**40)
    own = min(run.burn_in, n_steps - 1) or n_steps // 4
    burn_in = check_count("burn_in", own if burn_in is None else burn_in, at_least=0, below=n_steps)
    least = sampler.n_chains or max(CHAINS, run.n_chains)
    n_chains = check_count("n_chains", least if n_chains is None else n_chains, at_least=8, below=2**20)
    seed = derived_seed(run.seed, STEP_SIZE) if seed is None else check_count("seed", seed, at_least=0, below=2**64)
    init = run.init[np.arange(n_chains) % run.n_chains]

    def measure(variant: Sampler, pace: int) -> MomentsSoFar:
        own = seed if pace == 1 else derived_seed(seed, HALF_STEP)
        options = RunOptions(
            n_steps=pace * n_steps, burn_in=pace * burn_in, n_chains=n_chains, init=init, seed=own, keep_draws=False,
            keep_statistics=False, progress=False, accumulators={"moments": moments()}, on_divergence="stop",
        )  # fmt: skip
        done = run_sampler(run.problem, variant, options)
        results: Any = done.accumulated["moments"]
        return results  # type: ignore[no-any-return]

    results = [estimates(measure(variant, pace)) for variant, pace in ((sampler, 1), (halved(sampler), 2))]
    means, mean_errors, sds, sd_errors = (np.array(parts) for parts in zip(*results, strict=True))
    comparisons = 2 * means.shape[1]
    quantile = float(scipy.special.stdtrit(n_chains - 1, 1.0 - 0.5 * FALSE_ALARM / comparisons))
    return StepSizeReport(
        run.problem.name, sampler.name, order, n_chains, n_steps, quantile, means, mean_errors, sds, sd_errors
    )


def check_setting(sampler: Sampler) -> None:
    """Raise ValueError where halving the step size of all chains is meaningless."""
    if sampler.tempers.comes_to_rest:
        raise ValueError(
            f"run must be one of random draws, and Stein's particles are none, got one of {sampler.name!r}"
        )
    for name, values in sampler.arrays.items():
        if values.ndim == 2 and (values != values[0]).any():
            raise ValueError(f"run must have one setting for all chains, got {name} that differ between chains")


def estimates(result: MomentsSoFar) -> tuple[Floats, Floats, Floats, Floats]:
    """Means and standard deviations of all chains, each with its standard error between chains: (dim,) each."""
    is_finite = np.isfinite(result.mean).all(axis=1)
    means, variances = result.mean[is_finite], np.diagonal(result.covariance[is_finite], axis1=1, axis2=2)
    n = max(2, len(means))
    mean = means.mean(axis=0)
    squares = variances + (means - mean) ** 2
    sd = np.sqrt(squares.mean(axis=0))
    with np.errstate(divide="ignore", invalid="ignore"):
        sd_error = np.where(sd > 0.0, squares.std(axis=0, ddof=1) / np.sqrt(n) / (2.0 * sd), 0.0)
    return mean, means.std(axis=0, ddof=1) / np.sqrt(n), sd, sd_error
