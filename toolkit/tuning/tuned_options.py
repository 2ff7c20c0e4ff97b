"""Options of a run of a tuned sampler: what is not given follows from the tuning."""

from dataclasses import replace
from typing import Any

import numpy as np

from .._engine.run_options import RunOptions
from ..diagnostics import stopping
from ..diagnostics.stopping import Condition
from ..errors import check_count
from ..problem.definition import as_problem
from ..samplers.sampler import Sampler
from .result import Tuned

ESS, R_HAT, ROUND_TRIPS = 1_000, 1.01, 100  # what a run ends at, unless told


def options_of(problem: Any, tuned: Tuned, options: RunOptions, most: int) -> RunOptions:
    """``options`` with what they leave to the tuning; most: gradients of a run whose end is not given."""
    dim = as_problem(problem).target.dim
    if tuned.init.shape[2] != dim:
        raise ValueError(f"sampler was tuned for {tuned.problem!r} of dimension {tuned.init.shape[2]}, not {dim}")
    n_chains, until, init = options.n_chains, options.until, options.init
    if n_chains is None:
        n_chains = tuned.n_chains
    if until is None and options.n_steps is None:
        until = default_condition(tuned.sampler, most)
    if init is None:
        n = check_count("n_chains", n_chains, at_least=1, below=2**31)
        init = np.resize(tuned.init, (n, *tuned.init.shape[1:]))
    filled = replace(options, n_chains=n_chains, until=until, init=init)
    burn_in, thin = burn_in_and_thin(tuned, filled)
    return replace(filled, burn_in=burn_in, thin=thin)


def burn_in_and_thin(tuned: Tuned, options: RunOptions) -> tuple[Any, Any]:
    """Burn-in and thinning: as given, else as tuned, but so that a run of a known end leaves draws.

    That is of ``n_steps``, or one that ``until`` ends at a number of gradients.
    """
    burn_in, thin, until = options.burn_in, options.thin, options.until
    known = [] if options.n_steps is None else [check_count("n_steps", options.n_steps, at_least=1)]
    if isinstance(until, Condition):
        n_chains = check_count("n_chains", options.n_chains, at_least=1, below=2**31)
        known += [int(limit // (n_chains * tuned.sampler.gradients_per_step)) for limit in ends_at(until)]
    if burn_in is None:
        burn_in = min([tuned.burn_in, *(steps // 4 for steps in known)])
    if thin is None:
        thin = max(1, min([tuned.thin, *(steps // 400 for steps in known)]))
    return burn_in, thin


def ends_at(condition: Condition) -> list[float]:
    """Numbers of gradients at which the condition ends a run by itself: not those inside an ``&``."""
    if isinstance(condition, stopping.AnyOf):
        return [limit for part in condition.parts for limit in ends_at(part)]
    return [condition.n] if isinstance(condition, stopping.Gradients) else []


def default_condition(sampler: Sampler, most: int) -> Condition:
    """ESS and R-hat of every coordinate, round trips under replica exchange; at most so many gradients."""
    wanted = stopping.ess(ESS) & stopping.r_hat(R_HAT)
    if sampler.tempers.swaps:
        wanted = wanted & stopping.round_trips(ROUND_TRIPS)
    return wanted | stopping.gradients(most)
