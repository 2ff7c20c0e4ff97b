"""What all stages of a tuning share: short runs with seeds of their own, the count of gradients, and the rounds."""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._engine.run_options import RunOptions
from .._output.execution import run_sampler
from .._output.run import Run
from ..boundaries.rules import Boundary
from ..errors import ContourWarning, InterruptedWarning
from ..maths.seeds import TUNING, derived_seed
from ..problem.definition import Problem
from ..samplers.sampler import Sampler

Floats = NDArray[np.float64]

MOST_RUNS = 500
LANES = 64  # chains × replicas of a round: what one core advances at full speed
DIGITS = 4  # of the numbers that are found, so that they are the same on machines whose sums differ in the last bits


class Fit(NamedTuple):
    """The line energy + slope · h through mean energies, in nats, at step sizes h up to ``largest``.

    error: of the slope. allowed: by how much the mean energy may be above ``energy``. step_size: what follows.
    """

    energy: float
    slope: float
    error: float
    allowed: float
    largest: float
    step_size: float


class Round(NamedTuple):
    """One short run of a tuning.

    stage: what it was for. Per rung or setting: ``temperatures``, ``step_sizes``, ``acceptance`` (nan without a test),
    ``rejection`` of swaps (rungs − 1,), empty without. figure: the number the stage looks at, of each setting; its name
    is in ``figure_name``. spent: gradients of the tuning at its end. variant: what a race runs, in words; score:
    by which one is kept. fit: of mean energies.
    """

    stage: str
    n_steps: int
    n_chains: int
    gradients: int
    temperatures: tuple[float, ...]
    step_sizes: tuple[float, ...]
    acceptance: tuple[float, ...] = ()
    rejection: tuple[float, ...] = ()
    figure: tuple[float, ...] = ()
    figure_name: str = ""
    spent: int = 0
    variant: str = ""
    fit: Fit | None = None
    score: float = math.nan


@dataclass
class Study:
    """A tuning under way.

    n_gradients: what it may spend; ``spent`` so far. temperature: that of the target. scale: of each coordinate, as
    found so far; may_scale: whether the sampler can have one.
    """

    problem: Problem
    seed: int
    n_gradients: int
    boundary: Boundary
    temperature: float = 1.0
    may_scale: bool = True
    scale: tuple[float, ...] | None = None
    widths: Floats | None = None  # (dim,): what the last round of exploration would have made the scale of
    threads: int | None = None
    spent: int = 0
    n_runs: int = 0
    rounds: list[Round] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    sites: list[Floats] = field(default_factory=list)  # (n, dim): states of the coldest chains of exploration
    progress: Any = None

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return self.problem.target.dim

    def evaluate(self, points: Floats) -> tuple[Floats, Floats]:
        """Energy (n,) and gradient (n, dim) at ``points`` (n, dim), counted; nan and inf where they are not finite."""
        self.spent += len(points)
        with np.errstate(all="ignore"):
            return self.problem.target.evaluate(points)

    def run(self, sampler: Sampler, n_steps: int, init: Floats, **options: Any) -> Run:
        """A run with a seed of its own. init: (chain, replica, dim)."""
        self.n_runs += 1
        if self.n_runs > MOST_RUNS:
            raise RuntimeError(f"tuning did not end after {MOST_RUNS} runs")
        options = {
            "burn_in": n_steps // 2,
            "keep_replicas": True,
            "keep_statistics": False,
            "on_divergence": "keep",
            **options,
        }
        run_options = RunOptions(
            n_steps=n_steps, n_chains=len(init), init=init, threads=self.threads,
            seed=study_seed(self.seed, self.n_runs), progress=False, **options,
        )  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ContourWarning)
            warnings.simplefilter("ignore", InterruptedWarning)
            run = run_sampler(self.problem, sampler, run_options)
        if run.interrupted:
            raise KeyboardInterrupt
        self.spent += run.gradient_evaluations
        return run

    def note(self, reason: str) -> None:
        """A sentence of the report."""
        self.reasons.append(reason)

    def warn(self, sentence: str) -> None:
        """A warning of the report."""
        self.warnings.append(sentence)

    def add_round(self, stage: str, run: Run, **found: Any) -> None:
        """Keep what a run showed, and show it where there is a progress bar."""
        self.rounds.append(Round(stage, run.n_steps, run.n_chains, run.gradient_evaluations, spent=self.spent, **found))
        if self.progress is not None:
            self.progress.show(self, self.rounds[-1])


def study_seed(seed: int, n: int) -> int:
    """The seed of the n-th run, from 1, of a tuning with ``seed``; of n = 0: of the host's own random numbers."""
    return derived_seed(seed, TUNING, n)


def rounded(values: Any) -> Any:
    """``values`` to ``DIGITS`` significant digits: a float, or an array of the same shape."""
    array = np.asarray(values, np.float64)
    flat = [float(f"{value:.{DIGITS}g}") for value in array.ravel()]
    return flat[0] if array.ndim == 0 else np.array(flat).reshape(array.shape)


def geometric_mean(values: Floats) -> float:
    """Of positive values."""
    return float(np.exp(np.log(values).mean()))


def mean_outer_product(gradients: Floats, matrix: Floats, temperature: float) -> Floats:
    """E[∂U ∂Uᵀ]/T in z, (dim, dim), x = L z: the mean of the Hessian over draws of exp(−U/T).

    gradients: (n, dim), at the draws, in x. matrix: L, (dim, dim).
    """
    scaled = gradients @ matrix
    return np.asarray(scaled.T @ scaled / (max(1, len(scaled)) * temperature))


def as_tuple(values: Sequence[float] | Floats) -> tuple[float, ...]:
    """Floats, as records hold them."""
    return tuple(float(value) for value in values)
