"""One run: so many gradient evaluations of a sampler on a problem, and the error of its draws."""

import time
import warnings
from typing import NamedTuple

import numpy as np

from toolkit import DivergenceError, sample
from toolkit.errors import ContourWarning
from toolkit.tempering import ContinuousTempering

from .problems import Case
from .samplers import FAMILIES, LANES, Values

BURN_IN = 10  # a part in so many of the steps
THIN = 4  # where a step is one gradient evaluation, after which little has changed


class Measured(NamedTuple):
    """What came of a run: error (inf where it diverged), gradient evaluations made, processor seconds."""

    error: float
    gradients: int
    seconds: float


def shrunk(case: Case, family: str, values: Values, gradients: int) -> Values:
    """``values`` for more gradient evaluations n than they were found for: without a test, step size ∝ n^(−1/3).

    Source: Teh, Thiery & Vollmer (2016), the rate at which bias and noise fall together.
    """
    if not FAMILIES[family].biased or gradients <= case.tuned_for:
        return values
    return {**values, "step": values["step"] * (case.tuned_for / gradients) ** (1.0 / 3.0)}


def measure(case: Case, family: str, values: Values, gradients: int, seed: int, thin: int | None = None) -> Measured:
    """Run it from within 0.1 sd of the origin, on one thread, draws after a tenth of the steps taken in.

    thin: steps between draws; None: about ``THIN`` gradients.
    """
    sampler = FAMILIES[family].make(case, shrunk(case, family, values, gradients))
    n_chains = max(1, LANES // sampler.n_replicas)
    n_steps = max(20, gradients // (n_chains * sampler.gradients_per_step))
    start = 0.1 * case.spread * np.random.default_rng(seed).standard_normal((n_chains, sampler.n_replicas, case.dim))
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ContourWarning)
        try:
            run = sample(
                case.problem, sampler, n_steps=n_steps, burn_in=n_steps // BURN_IN,
                thin=thin or max(1, THIN * sampler.n_replicas // sampler.gradients_per_step), n_chains=n_chains,
                init=start, seed=seed, threads=1, keep_draws=False, keep_statistics=False,
                accumulators={"law": case.accumulator},
            )  # fmt: skip
        except DivergenceError as error:
            return Measured(np.inf, error.run.gradient_evaluations, time.process_time() - started)
    seconds = time.process_time() - started
    by_chain = sampler.is_weighted and not isinstance(sampler.tempering, ContinuousTempering)
    return Measured(case.error(run.accumulated["law"], by_chain), run.gradient_evaluations, seconds)
