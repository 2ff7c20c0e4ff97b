"""What a run's replica exchange did: swap rates, round trips, and what theory makes of them."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .exchange import ReplicaExchange
from .exchange_diagnostics import barrier, expected_round_trips
from .result import check_run
from .settings import settings_of

Floats = NDArray[np.float64]
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
    attempted = run.counts.attempted.sum(axis=0)  # of each pair; those of a schedule's temperature 0 are none
    with np.errstate(invalid="ignore"):
        rates = run.counts.accepted.sum(axis=0) / attempted
    errors = np.full(rates.shape, np.nan)
    if run.n_chains > 1:
        errors = run.swap_rates.std(axis=0, ddof=1) / np.sqrt(run.n_chains)
    neighbours = exchange.scheme != "all_pairs" or run.sampler.n_replicas == 2
    known = np.isfinite(rates).all() and neighbours
    plain = exchange.scheme == "seo" or (exchange.scheme == "deo" and exchange.window == 1)
    held_back = exchange.swap_threshold is not None or (exchange.one_swap_per_window and exchange.window > 1)
    expected = np.nan
    if known and (plain or rates.size == 1) and not held_back:
        attempts = attempted[:2].sum() / run.n_chains  # an attempt tries the even pairs or the odd ones
        expected = float(expected_round_trips(rates, attempts, scheme="seo" if exchange.scheme == "seo" else "deo"))
    return ExchangeSummary(
        exchange.pairs(run.sampler.n_replicas),
        rates,
        np.asarray(errors),
        float(barrier(rates)) if known else np.nan,
        float(run.round_trips.mean()),
        expected,
    )


def check_exchange(run: Any) -> ReplicaExchange:
    """The replica exchange of ``run``. Raises TypeError where it is no run, ValueError where it has none."""
    check_run(run)
    if not isinstance(run.sampler.tempering, ReplicaExchange):
        raise ValueError(f"run must have replica exchange, got sampler {run.sampler.name!r} without it")
    return run.sampler.tempering
