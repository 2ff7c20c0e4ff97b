"""Many short chains, judged by nested R-hat where R-hat is above its limit by construction."""

from typing import NamedTuple

import numpy as np

from ..._engine.run_record import RunRecord
from ...accumulators.running_moments import MomentsSoFar
from ...diagnostics.superchains import LARGEST, LIMIT, SUPERCHAINS, ByStart, by_starts, can_judge
from .table import FEWEST, MOST_ROWS, MOST_SUMMED, Floats, Integers, Table, sample_of

MOST_CHAINS = 2**17  # that are grouped: means of superchains are then known to 0.01 standard deviations


class Nested(NamedTuple):
    """Nested R-hat of the coordinate where it is largest, by name; or why it cannot judge. r_hat: the largest R-hat."""

    coordinate: str
    found: ByStart | None
    reason: str
    r_hat: float


def nested_of(run: RunRecord, table: Table) -> Nested | None:
    """Nested R-hat of the chains of ``table``; None where R-hat alone judges: few chains, or long ones.

    Of unweighted runs whose coordinates are positions: starts must be comparable with draws.
    """
    coordinates = table.coordinates
    if coordinates is None or run.sampler.is_weighted:
        return None
    worst = float(np.where(np.isnan(coordinates.r_hat), 0.0, coordinates.r_hat).max(initial=0.0))
    chains = table.chains[~run.diverged[table.chains]]
    named = run.problem._named()
    if not can_judge(chains.size, worst) or (named is not None and named.values is not None):
        return None
    starts = run.init[chains, 0]
    if (starts == starts[:1]).all():
        reason = "all chains have one start, so that no group of them has a start of its own"
        return Nested(coordinates.names[0], None, reason, worst)
    moments = moments_of(run, chains)
    if moments is None:
        return None
    means, variances = (values[:: -(-len(values) // MOST_CHAINS)] for values in moments)
    starts = starts[:: -(-len(starts) // MOST_CHAINS), :MOST_ROWS]
    each = [by_starts(means[:, d], variances[:, d], starts) for d in range(means.shape[1])]
    d = max(range(len(each)), key=lambda d: (not each[d].is_met, each[d].value))
    return Nested(coordinates.names[d], each[d], "", worst)


def moments_of(run: RunRecord, chains: Integers) -> tuple[Floats, Floats] | None:
    """Mean and variance of each chain's draws in the table's coordinates, each (chain, row); None where unknown."""
    if run.replica_draws.shape[2] >= FEWEST:
        sampled = sample_of(run, chains, MOST_SUMMED // 2, MOST_ROWS)
        if sampled is None or len(sampled.points) != chains.size:
            return None
        return sampled.points.mean(axis=1), sampled.points.var(axis=1, ddof=1)
    for result in run.accumulated.values():
        if isinstance(result, MomentsSoFar) and (result.weight[chains] > 0.0).all():
            variances = np.diagonal(result.covariance[chains], axis1=1, axis2=2)
            return result.mean[chains, :MOST_ROWS], variances[:, :MOST_ROWS]
    return None


def nested_warning(run: RunRecord, table: Table) -> list[str] | None:
    """The warning of nested R-hat, none where it is met; None where R-hat is to judge."""
    nested = nested_of(run, table)
    if nested is None or nested.found is None:
        return None
    found = nested.found
    if found.is_met and nested.r_hat <= LARGEST:
        return []
    if found.is_met:
        return [
            f"R-hat is {nested.r_hat:.3g}: half a chain is worth less than two independent draws. Nested "
            f"R-hat, {found.value:.4f}, finds no memory of the starts; but if there are modes "
            "that chains do not leave, their weights are those by which the burn-in filled them: give more steps to "
            "see."
        ]
    if found.value > LIMIT:
        return [
            f"Nested R-hat is {found.value:.3g} for coordinate {nested.coordinate}, above {LIMIT}: chains are "
            "in different places, by their starts, and no number of the table holds for the target; give a longer "
            "burn-in, or tempering where chains stay in modes."
        ]
    return [
        f"Means of chains with neighbouring starts differ by {found.excess:.2g} standard deviations in coordinate "
        f"{nested.coordinate} more than chance explains, so the table's means may be off by that much; "
        "give a longer burn-in."
    ]


def short_chain_line(run: RunRecord, tables: list[Table]) -> list[tuple[str, str]]:
    """A line of the report on how short chains are judged, where there are many and R-hat is above its limit."""
    nested = nested_of(run, tables[0]) if len(tables) == 1 else None
    if nested is None:
        return []
    if nested.found is None:
        return [("nested R-hat", f"not computed, as {nested.reason}")]
    words = f"at most {nested.found.value:.4f}, of {SUPERCHAINS} groups of chains by their starts"
    return [("nested R-hat", f"{words}: it judges these chains, as R-hat is above {LIMIT} for any so short")]
