"""Diagnostics of replica exchange: communication barrier, round trips to expect, ratio of normalising constants."""

from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from .._engine.run_record import check_run, settings_of
from ..errors import check_array, check_choice, check_number, check_numbers
from ..tempering.exchange import ReplicaExchange

Floats = NDArray[np.float64]


def barrier(swap_rates: Any) -> Floats:
    """Sum of the rejection rates of neighbouring pairs, (…, pair) → (…): an estimate of the communication barrier Λ.

    swap_rates: in [0, 1], as in ``run.swap_rates`` of all schemes but 'all_pairs'. For n pairs between the same ends
    the estimate differs from Λ by order 1 / n², and it needs swaps tried between states that have forgotten each other.
    Raises ValueError where rates are out of range or missing. Source: Syed et al. (2022).
    """
    return np.asarray((1.0 - check_rates(swap_rates)).sum(axis=-1))


def expected_round_trips(swap_rates: Any, n_attempts: float, *, scheme: str = "deo") -> Floats:
    """Round trips coldest → hottest → coldest of all replicas to expect in ``n_attempts`` attempts, (…, pair) → (…).

    With r the rejection rates of N neighbouring pairs, n_attempts / (2 + 2 Σ r / (1 − r)) for 'deo' with window 1 and
    n_attempts / (2 N + 2 Σ r / (1 − r)) for 'seo'; for N = 1, where either tries the pair every time,
    n_attempts (1 − r). Exact in the long run if swaps were independent of each other; moves too short to forget a
    state between attempts make fewer. 0 where a pair never swaps.
    swap_rates: in [0, 1]. n_attempts ≥ 0. Raises ValueError otherwise.
    Source: Syed et al. (2022), whose N = 1 under 'deo' idles every other time.
    """
    rates = check_rates(swap_rates)
    check_number("n_attempts", n_attempts, at_least=0.0)
    check_choice("scheme", scheme, ("deo", "seo"))
    pairs = rates.shape[-1]
    with np.errstate(divide="ignore"):
        odds = ((1.0 - rates) / rates).sum(axis=-1)
    if pairs == 1:
        return np.asarray(n_attempts / (1.0 + odds))
    return np.asarray(0.5 * n_attempts / ((1 if scheme == "deo" else pairs) + odds))


def check_rates(swap_rates: Any) -> Floats:
    """Rates (…, pair) in [0, 1] with at least one pair. Raises ValueError otherwise."""
    rates = check_array("swap_rates", swap_rates)
    if rates.ndim == 0 or rates.shape[-1] == 0:
        raise ValueError(f"swap_rates must have shape (…, pair) with at least one pair, got shape {rates.shape}")
    if ((rates < 0.0) | (rates > 1.0)).any():
        raise ValueError(f"swap_rates must be ≥ 0 and ≤ 1, got {rates.min()} to {rates.max()}")
    return rates


class LogNormaliserRatio(NamedTuple):
    """Estimates of log[Z(T_0) / Z(T_{R−1})] in nats.

    by_chain: (chain,), each from its own draws. pooled: from the draws of all. standard_error: of ``pooled``, from the
    spread between chains, to first order; nan for one chain.
    """

    by_chain: Floats
    pooled: float
    standard_error: float


def log_normaliser_ratio(energies: Any, temperatures: Any) -> LogNormaliserRatio:
    """log[Z(T_0) / Z(T_{R−1})] by stepping stones, Z(T) = ∫ exp(−U / T), from the draws at all temperatures.

    energies: (chain, replica, draw), U at temperature 1, as in ``run.energies`` with all replicas kept.
    temperatures: (replica,), at least 2 and increasing. From each rung to the next colder one
    Z(T_i) / Z(T_{i+1}) is the mean of exp(−(1/T_i − 1/T_{i+1}) U) over the hotter one's draws, which is bounded where U
    is. Each mean is unbiased; its logarithm is too low by half its relative variance.
    Raises TypeError or ValueError where shapes do not fit.
    Source: Xie et al. (2011), here from one temperature to the next.
    """
    energy = check_array("energies", energies)
    ladder = np.array(check_numbers("temperatures", temperatures, above=0.0))
    if ladder.size < 2 or not (np.diff(ladder) > 0.0).all():
        raise ValueError(f"temperatures must be at least 2 and increase, got {tuple(ladder.tolist())}")
    if energy.ndim != 3 or energy.shape[1] != ladder.size or energy.size == 0:
        raise ValueError(
            f"energies must have shape (chain, replica, draw) with {ladder.size} replicas, got {energy.shape}"
        )
    chains, _, draws = energy.shape
    drop = (1.0 / ladder[:-1] - 1.0 / ladder[1:])[:, None]
    log_means = scipy.special.logsumexp(-drop * energy[:, 1:], axis=2) - np.log(draws)
    pooled = scipy.special.logsumexp(log_means, axis=0) - np.log(chains)
    influence = np.expm1(log_means - pooled).sum(axis=1)
    error = float(influence.std(ddof=1) / np.sqrt(chains)) if chains > 1 else np.nan
    return LogNormaliserRatio(np.asarray(log_means.sum(axis=1)), float(pooled.sum()), error)


# Replica exchange of a run: swap rates and round trips.

Integers = NDArray[np.int64]


def swap_rates(run: Any) -> Floats:
    """Accepted share of the swaps tried since the end of burn-in, (chain, pair); nan where none was.

    Law: independent chains vary by √(s (1 − s) / attempts) times the root of the swaps' autocorrelation time. A rate
    says nothing of trips: two replicas can swap to and fro for ever. Raises TypeError where it is no run, ValueError
    where it has no replica exchange.
    """
    check_exchange(run)
    return np.asarray(run.swap_rates)


def round_trips(run: Any) -> Integers:
    """Round trips coldest → hottest → coldest of all walkers since the end of burn-in, (chain,).

    Their number, not the swap rates, says how often the coldest rung got a state that has been at the hottest since.
    Law: ``expected_round_trips``, if states forget themselves between attempts. Raises TypeError where it is no run,
    ValueError where it has no replica exchange.
    """
    check_exchange(run)
    return np.asarray(run.round_trips)


class ExchangeSummary(NamedTuple):
    """A run's replica exchange, all chains together.

    pairs: the two rungs of each pair. swap_rates, standard_errors: (pair,), errors from the spread between chains, nan
    for one. barrier: Σ of rejection rates, nan for scheme 'all_pairs'. round_trips: per chain. expected_round_trips: in
    the attempts made and at these rates, per chain, if swaps were independent; nan but for 'deo' with window 1, 'seo',
    and any scheme of two rungs, and with swap_threshold or where one_swap_per_window holds swaps back.
    """

    pairs: list[tuple[int, int]]
    swap_rates: Floats
    standard_errors: Floats
    barrier: float
    round_trips: float
    expected_round_trips: float


def exchange_summary(run: Any) -> ExchangeSummary:
    """Swap rates, barrier and round trips of a run, beside the round trips that theory expects at these rates.

    Many fewer than expected: states come back before they forget where they were, so space swaps out or let replicas
    move further. Raises TypeError where it is no run, ValueError where it has no replica exchange, or where chains have
    step sizes or temperatures of their own, whose rates have nothing in common.
    """
    exchange = check_exchange(run)
    settings = settings_of(run)
    if len(settings) > 1:
        raise ValueError(
            f"run must have one setting for all chains, got {len(settings)}, the first of {settings[0].words}; "
            "swap_rates and round_trips have those of each chain"
        )
    attempted = run.counts.attempted.sum(axis=0)  # of each pair; without steps at a schedule's temperature 0
    with np.errstate(invalid="ignore"):
        rates = run.counts.accepted.sum(axis=0) / attempted
    errors = np.full(rates.shape, np.nan)
    if run.n_chains > 1:
        errors = run.swap_rates.std(axis=0, ddof=1) / np.sqrt(run.n_chains)
    neighbours = exchange.scheme != "all_pairs" or run.sampler.n_replicas == 2
    is_known = np.isfinite(rates).all() and neighbours
    has_theory = exchange.scheme == "seo" or (exchange.scheme == "deo" and exchange.window == 1)
    restricts_swaps = exchange.swap_threshold is not None or (exchange.one_swap_per_window and exchange.window > 1)
    expected = np.nan
    if is_known and (has_theory or rates.size == 1) and not restricts_swaps:
        attempts = attempted[:2].sum() / run.n_chains  # an attempt tries the even pairs or the odd ones
        expected = float(expected_round_trips(rates, attempts, scheme="seo" if exchange.scheme == "seo" else "deo"))
    return ExchangeSummary(
        exchange.pairs(run.sampler.n_replicas),
        rates,
        np.asarray(errors),
        float(barrier(rates)) if is_known else np.nan,
        float(run.round_trips.mean()),
        expected,
    )


def check_exchange(run: Any) -> ReplicaExchange:
    """The replica exchange of ``run``. Raises TypeError where it is no run, ValueError where it has none."""
    check_run(run)
    if not run.sampler.tempers.swaps:
        raise ValueError(f"run must have replica exchange, got sampler {run.sampler.name!r} without it")
    exchange: ReplicaExchange = run.sampler.tempering
    return exchange
