"""Temperature ladders: geometric, or adapted until all neighbours swap equally often; and the window of DEO."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._engine.run_options import RunOptions
from ._output.execution import run_sampler
from .errors import check_count, check_instance, check_number
from .maths.philox import MAX_REPLICAS
from .problem.definition import Problem, Target
from .samplers.sampler import Sampler
from .tuning.exchange_rounds import equal_parts

__all__ = ["adapted_ladder", "deo_window", "geometric_ladder"]

Floats = NDArray[np.float64]


def geometric_ladder(coldest: float, hottest: float, n_replicas: int) -> tuple[float, ...]:
    """``n_replicas`` ≥ 2 temperatures from ``coldest`` > 0 to ``hottest`` > coldest, by equal factors.

    All neighbours swap equally often where U is a Gaussian's, or another homogeneous function of x − μ.
    Raises TypeError or ValueError where out of range.
    """
    check_count("n_replicas", n_replicas, at_least=2, below=MAX_REPLICAS)
    check_number("coldest", coldest, above=0.0)
    check_number("hottest", hottest, above=coldest)
    between = coldest * (hottest / coldest) ** (np.arange(1, n_replicas - 1) / (n_replicas - 1))
    return (float(coldest), *map(float, between), float(hottest))


def deo_window(n_replicas: int, rate: float) -> int:
    """Window W ≥ 1 of the even–odd scheme: ⌈(log P + log log P) / (−log(1 − S))⌉, P = n_replicas, S = rate.

    n_replicas ≥ 2; rate in (0, 1), the share of attempts that swap. For ``replica_exchange(scheme='deo', window=W)``.
    Raises TypeError or ValueError otherwise. Source: r2SGLD (2024), algorithm 2; Deng et al. (2023).
    """
    check_count("n_replicas", n_replicas, at_least=2)
    check_number("rate", check_number("rate", rate, above=0.0, below=1.0), above=1e-300)
    rungs = math.log(n_replicas)
    return max(1, math.ceil((rungs + math.log(rungs)) / -math.log1p(-rate)))


def adapted_ladder(
    problem: Problem | Target,
    sampler: Sampler,
    *,
    n_steps: int,
    n_chains: int,
    seed: int,
    n_rounds: int = 5,
    init: Any = None,
) -> Sampler:
    """``sampler`` with its temperatures moved until all neighbouring replicas swap equally often.

    Each of ``n_rounds`` ≥ 1 rounds runs n_steps steps of n_chains chains, from where the last one ended (the first
    from ``init``, as in ``sample``), and takes rejection rates from the second half. Their cumulative sum over the
    ladder, interpolated as a monotone cubic in the logarithm of the inverse temperature, is then cut in equal parts.
    The coldest and the hottest stay. Step sizes are interpolated in temperature, both in logarithms. A ladder with
    gaps that nothing crosses needs several rounds; errors of the rates are carried over to the temperatures.

    sampler: with replica exchange, one temperature and step size per replica for all chains.
    Raises TypeError or ValueError otherwise, and ValueError where a pair was never tried in the second half of a round.
    Source: Syed et al. (2022), there with the inverse temperature itself in place of its logarithm.
    """
    check_sampler(sampler)
    check_count("n_rounds", n_rounds, at_least=1, below=2**16)
    check_count("n_steps", n_steps, at_least=2)
    check_count("seed", seed, at_least=0, below=2**64)
    burn_in = n_steps // 2
    for round_seed in np.random.SeedSequence(seed).generate_state(n_rounds, np.uint64):
        options = RunOptions(
            n_steps=n_steps, n_chains=n_chains, seed=int(round_seed), burn_in=burn_in, thin=n_steps - burn_in,
            init=init, keep_replicas=True, progress=False, on_divergence="stop",
        )  # fmt: skip
        run = run_sampler(problem, sampler, options)
        sampler = with_equal_parts(sampler, *neighbour_counts(run.counts.attempted, run.counts.accepted, sampler))
        init = run.replica_draws[:, :, -1] if run.steps.size else init
    return sampler


def check_sampler(sampler: Any) -> None:
    """Raise TypeError or ValueError where ``sampler`` does not have exactly one ladder."""
    check_instance("sampler", sampler, Sampler)
    if not sampler.tempers.swaps:
        raise ValueError(f"sampler must have replica exchange as tempering, got {sampler.tempering}")
    if sampler.n_chains is not None:
        raise ValueError(
            f"sampler must have one ladder for all chains, got step sizes or temperatures for {sampler.n_chains} chains"
        )


def neighbour_counts(attempted: Any, accepted: Any, sampler: Sampler) -> tuple[Floats, Floats]:
    """Attempts and swaps of all chains for each pair of neighbours, (pair,); from counts (chain, pair)."""
    pairs = sampler.tempers.pairs(sampler.n_replicas)
    tries, swaps = attempted.sum(axis=0).astype(np.float64), accepted.sum(axis=0).astype(np.float64)
    neighbours = [i for i, (cold, hot) in enumerate(pairs) if hot == cold + 1]
    if (tries[neighbours] == 0).any():
        raise ValueError(f"n_steps must be large enough for every pair to be tried, got attempts {tries.tolist()}")
    return tries[neighbours], swaps[neighbours]


def with_equal_parts(sampler: Sampler, tries: Floats, swaps: Floats) -> Sampler:
    """``sampler`` with its ladder cut into parts of equal rejection, as counted on the ladder it has."""
    rejections = np.maximum(1.0 - swaps / tries, 0.5 / tries)  # never 0, so that the sum increases
    ladder, sizes = np.array(sampler.temperatures), np.array(sampler.step_sizes)
    log_temperature = np.log(ladder)
    barrier = np.concatenate([[0.0], np.cumsum(rejections)])
    moved = equal_parts(log_temperature, barrier, rejections.size)[1:-1]
    log_sizes = np.interp(moved, log_temperature, np.log(sizes))
    temperatures = np.concatenate([ladder[:1], np.exp(moved), ladder[-1:]])
    step_sizes = np.concatenate([sizes[:1], np.exp(log_sizes), sizes[-1:]])
    return replace(sampler, temperatures=tuple(temperatures.tolist()), step_sizes=tuple(step_sizes.tolist()))
