"""Warnings about a run: sentences that say what is wrong and what to do."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._engine.run_record import Judged, RunRecord, Setting, settings_of
from ...diagnostics.standstill import standstills
from ...errors import ContourWarning, warn_user
from ...problem.starts import all_start_alike
from ...tempering.contour_tempering import Partition
from .curved_walls import curved_wall_warnings
from .energy_warnings import energy_warnings
from .short_chains import nested_warning
from .table import MOST_SETTINGS, Coordinates, Table, short_number, weight_share

# Contour: weights that should not be trusted yet.

UNSETTLED, STEEPEST, RARE_CONTOUR = 0.3, 10.0, 0.01
BELOW, ABOVE = 0.1, 0.25
STILL = 0.02  # share of accepted moves


def warn_about(run: RunRecord) -> None:
    """Warn where contour's θ has not settled, its multipliers are extreme, or energies lie outside its partition."""
    for message in doubts(run):
        warn_user(message, ContourWarning)


def doubts(run: RunRecord) -> list[str]:
    """Warnings about the weights of ``run``, a sentence each.

    Thresholds are from runs with known truth: in correct runs, θ at a quarter to half of the run differs by 0.01 to 0.2
    in L1 from the final one, and the largest multiplier was 5; in wrong runs it was 36 to 660.
    """
    contour: Any = run.sampler.tempering
    if run.partition is None or run.sampling_steps == 0:
        return []
    sentences = []
    change = float(np.abs(run.counts.theta - run.counts.earlier_theta).sum(axis=1).mean())
    if change > UNSETTLED and run.counts.earlier_theta.any():
        sentences.append(
            f"θ has not settled: in the last half or more of the steps after burn-in it moved by {change:.2f} in L1, "
            f"and more than {UNSETTLED} is too much to trust the weights; give more steps or a longer burn-in"
        )
    steepest = largest_multiplier(run, contour.zeta, contour.partition)
    if steepest > STEEPEST:
        has_test = run.sampler.dynamics.leapfrogs > 0
        where = f"by up to {steepest:.0f} in bins with {RARE_CONTOUR:.0%} of the visits or more"
        sentences.append(
            f"the gradient is to be multiplied {where}; proposals that would then be rejected follow the gradient as "
            "it is, and θ is slow to settle: give smaller steps or wider bins"
            if has_test
            else f"the gradient is multiplied {where}; steps overshoot there and θ settles on a wrong value: give "
            "smaller steps or wider bins"
        )
    if run.sampler.dynamics.leapfrogs > 0:
        still = int((run.acceptance < STILL).any(axis=1).sum())
        if still:
            sentences.append(
                f"{still} of {run.n_chains} chains accept less than {STILL:.0%} of their moves, and hardly move: give "
                "smaller steps or wider bins"
            )
    below, above = shares_outside(run)
    for share, limit, side, bound in (
        (below, BELOW, "below", contour.partition.u_min),
        (above, ABOVE, "above", contour.partition.u_max),
    ):
        if share > limit:
            sentences.append(
                f"{share:.0%} of the energies lie {side} the partition, which has its end at {bound:.6g}; "
                "nothing is flattened there: give a partition that covers them"
            )
    return sentences


def shares_outside(run: RunRecord) -> tuple[float, float]:
    """Shares of the energies below and above the partition; the largest of all chains' temperatures."""
    temperature = chain_temperatures(run)
    groups = np.array([run.counts.outside[temperature == t].sum(axis=0) for t in np.unique(temperature)])
    below, above = (groups[:, :2] / np.maximum(groups[:, 2:], 1)).max(axis=0)
    return float(below), float(above)


def chain_temperatures(run: RunRecord) -> NDArray[np.float64]:
    """The temperature that all replicas of a chain share, (chain,)."""
    return run.sampler.per_chain("temperatures", np.arange(run.n_chains), np.zeros(run.n_chains, np.int64))


def largest_multiplier(run: RunRecord, zeta: float, partition: Partition) -> float:
    """Largest |1 + ζ T (log θ(i) − log θ(i−1)) / Δu| over bins with enough visits, and over chains."""
    visits, theta = run.counts.visits, run.counts.theta
    often = visits[:, 1:] >= RARE_CONTOUR * visits.sum(axis=1, keepdims=True)
    often &= visits[:, :-1] > 0
    temperature = chain_temperatures(run)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        multiplier = np.abs(1.0 + zeta * temperature * np.diff(np.log(theta), axis=1) / partition.width)
    return float(multiplier[often].max(initial=1.0))


# Comparison of a run with the truth of its problem, if that is cheap: missed modes, mean and sd.
#
# A truth's attribute ``at_hand`` says what it knows without a quadrature: "memberships" of points, or also "moments",
# which are ``mean``, ``covariance`` and the modes' weights.

Floats = NDArray[np.float64]

MOST_POINTS = 20_000  # draws whose mode is looked up
SELDOM = 0.01  # a mode whose share of the draws is below this part of its probability was not found
EXPECTED = 20  # expected independent draws in a mode; that there are none has probability e⁻²⁰


class Comparison(NamedTuple):
    """Which of the truth's modes the draws contain.

    modes, found: how many there are, and how many have draws. missed: how many have none, although at least
    ``EXPECTED`` of as many independent draws would be expected in each; missed_probability: their total probability.
    words: the line of the report.
    """

    modes: int
    found: int
    missed: int
    missed_probability: float
    words: str


def compare_with_truth(run: RunRecord, tables: list[Table]) -> Comparison | None:
    """Compare ``run`` with the truth; None where this is expensive or not the law that is sampled."""
    truth, available = run.problem.truth, getattr(run.problem.truth, "at_hand", ())
    target_temperatures = run.sampler.arrays["temperatures"][..., : run.sampler.n_target_replicas]
    keeps_domain = run.problem.domain is None or run.sampler.boundary.kind in ("reflect", "reject")
    if truth is None or not available or not keeps_domain or (target_temperatures != 1.0).any():
        return None
    points = some_points(run)
    if len(points) == 0:
        return None
    shares = truth.memberships(points).mean(axis=0)
    found, missed, probability = shares > 0.0, 0, 0.0
    if "moments" in available:
        weights = truth.modes.weights
        found = shares > SELDOM * weights
        is_missed = ~found & (weights * len(points) >= EXPECTED)
        missed, probability = int(is_missed.sum()), float(weights[is_missed].sum())
    parts = [f"{int(found.sum())} of {found.size} modes found"] if found.size > 1 else []
    named = run.problem._named()
    has_moments = "moments" in available and (named is None or named.values is None)  # the table's are of positions
    if has_moments and len(tables) == 1 and tables[0].coordinates is not None:
        parts += moment_words(tables[0].coordinates, truth.mean, truth.covariance)
    return Comparison(found.size, int(found.sum()), missed, probability, "; ".join(parts))


def some_points(run: RunRecord) -> Floats:
    """Evenly spaced draws (n, dim) of chains without divergence, at most about ``MOST_POINTS``."""
    undiverged = np.flatnonzero((run.counts.status == 0).all(axis=1))
    targets, n_draws, dim = run.sampler.n_target_replicas, *run.replica_draws.shape[2:]
    if undiverged.size == 0 or n_draws == 0:
        return np.zeros((0, dim))
    chains = undiverged[:: -(-undiverged.size * targets // MOST_POINTS)]
    stride = -(-n_draws * chains.size * targets // MOST_POINTS)
    return run.replica_draws[chains, :targets, ::stride].reshape(-1, dim)


def moment_words(coordinates: Coordinates, mean: Floats, covariance: Floats) -> list[str]:
    """Mean and sd of the table compared with the truth's; empty where the truth has none."""
    rows = len(coordinates.mean)
    sd = np.sqrt(np.diagonal(covariance)[:rows])
    if not np.isfinite(mean[:rows]).all() or not np.isfinite(sd).all() or not (sd > 0.0).all():
        return []
    off = np.abs(coordinates.mean - mean[:rows])
    with np.errstate(divide="ignore", invalid="ignore"):
        errors = off / coordinates.mcse
    ratio = coordinates.sd / sd
    standard = f" ({errors.max():.2g} standard errors)" if np.isfinite(errors).all() else ""
    low, high = f"{ratio.min():.3g}", f"{ratio.max():.3g}"
    return [
        f"mean off by {'at most ' if rows > 1 else ''}{(off / sd).max():.2g} sd{standard}",
        f"sd {low if low == high else f'{low} to {high}'} of the truth's",
    ]


R_HAT = 1.01  # Vehtari et al. (2021), section 4
SEPARATED = 1.1  # Gelman & Rubin's old limit, above which chains have different laws
ENOUGH, ENOUGH_A_CHAIN = 400, 100  # ESS: Vehtari et al. (2021), section 4
RARE, FREQUENT = 0.05, 0.6  # swap rates; about 0.23 is best between two temperatures that can be chosen freely
ACCEPTED = {"mala": (0.3, 0.8, 0.574), "hmc": (0.5, 0.95, 0.651)}  # Roberts & Rosenthal (1998), Beskos et al. (2013)
FEWEST_TRIPS, FEW_CHAINS = 10, 0.05
UNEVEN = 0.1  # weighted ESS over draws
BOUNCES = 0.5  # a step
HARDLY, ENOUGH_MOVES = 0.5, 100  # of the median acceptance; accepted moves of a chain, whose half is 5 sd away


def warnings_of(run: RunRecord, tables: list[Table], comparison: Comparison | None) -> list[str]:
    """All warnings about the run; empty where there are none."""
    return [
        *completion_warnings(run),
        *energy_warnings(run),
        *mixing_warnings(run, tables),
        *mode_warnings(run, comparison),
        *exchange_warnings(run),
        *boundary_and_acceptance_warnings(run),
        *curved_wall_warnings(run),
        *standstills(run),
        *weight_warnings(run),
        *(run.tuning.warnings if run.tuning is not None else ()),
    ]


def completion_warnings(run: RunRecord) -> Iterator[str]:
    """Divergence, interruption, and too few draws."""
    diverged = (run.counts.status > 0).any(axis=1)
    if diverged.any():
        yield (
            f"{int(diverged.sum())} of {run.n_chains} chains diverged, the first at step "
            f"{int(run.counts.status[run.counts.status > 0].min()) - 1}: their later draws are nan and no part of the "
            "table; make the step size smaller."
        )
    if run.interrupted:
        all_steps = f" of {run.total_steps:,}" if run.total_steps > run.n_steps else ""
        yield (
            f"The run was interrupted after {run.n_steps:,}{all_steps} steps; what it holds is what there was by then."
        )
    elif run.stopping is not None and not run.stopping.satisfied:
        wanted = [judged for judged in run.stopping.conditions if not judged.met and not is_limit(judged)]
        found = "; ".join(f"{judged.condition} is at {short_number(judged.value)}" for judged in wanted)
        yield (
            f"The run ended before it had what was asked for by until: {found}. It ended as {run.stopping.reason}; "
            "allow more, or look for what makes it slow in the other warnings."
        )
    kept = run.replica_draws.shape[2]
    if kept == 0 and not run.accumulated:
        if run.n_steps <= run.burn_in:
            yield f"There are no draws: the burn-in of {run.burn_in:,} steps has not ended; go on, or shorten it."
        else:
            yield "There are no draws to judge: keep them, or give accumulators."
    elif kept in (1, 2, 3):
        yield f"With {kept} draws a chain nothing can be said; give more steps, or a smaller thin."


def is_limit(judged: Judged) -> bool:
    """Whether a condition of ``until`` is one of what the run may cost."""
    return judged.condition.startswith(("seconds(", "gradients("))


def mixing_warnings(run: RunRecord, tables: list[Table]) -> Iterator[str]:
    """R̂ and ESS of each setting's chains."""
    if len(tables) > MOST_SETTINGS:
        yield (
            f"The chains have {len(tables):,} settings, too many to judge each here, and no R-hat in common; see "
            "diagnostics.r_hat and ess of the draws of each."
        )
    judged = [table for table in tables if table.coordinates is not None]
    if not judged:
        return
    if run.n_chains == 1:
        yield (
            "There is one chain: R-hat compares its two halves alone, and cannot see modes that it has not found; give "
            "n_chains=4 or more, from different starts."
        )
    elif any(table.chains.size == 1 for table in tables):
        yield (
            f"{sum(table.chains.size == 1 for table in tables)} of {len(tables)} settings have one chain: R-hat "
            "compares its two halves alone, and cannot see modes that it has not found; give 4 or more of each."
        )
    yield from r_hat_warnings(run, judged)
    yield from ess_warnings(judged)


def r_hat_warnings(run: RunRecord, tables: list[Table]) -> Iterator[str]:
    """The largest R̂."""
    ratios = [
        np.where(np.isnan(table.coordinates.r_hat), 0.0, table.coordinates.r_hat)
        for table in tables
        if table.coordinates is not None
    ]
    most = np.array([ratio.max(initial=0.0) for ratio in ratios])
    table, worst = tables[int(most.argmax())], float(most.max())
    assert table.coordinates is not None
    which = table.coordinates.names[int(ratios[int(most.argmax())].argmax()) if worst else 0]
    who = "chains" if table.coordinates.chains > 1 else "the two halves of the chain"
    where = of_setting(table)
    others = f" ({int((most > R_HAT).sum())} of {len(tables)} settings are above {R_HAT})" if table.words else ""
    nested = None if worst == np.inf else nested_warning(run, table)
    if nested is not None:
        yield from nested
    elif worst == np.inf:
        yield (
            f"R-hat is infinite for coordinate {which}{where}{others}: no chain moves it, and they are in different "
            "places, so no number of the table holds for the target; make the step size smaller, or give other starts."
        )
    elif worst > SEPARATED:
        remedy = (
            "give it more time, more replicas or a hotter top"
            if run.sampler.tempering is not None
            else "give tempering, such as samplers.resgld, or more steps"
        )
        yield (
            f"R-hat is {worst:.3g} for coordinate {which}{where}: {who} are in different places, perhaps in different "
            f"modes, and no number of the table holds for the target{others}; {remedy}."
        )
    elif worst > R_HAT:
        yield (
            f"R-hat is {worst:.4f} for coordinate {which}{where}, above {R_HAT}: {who} have not mixed yet{others}; "
            "give more steps or a longer burn-in."
        )


def ess_warnings(tables: list[Table]) -> Iterator[str]:
    """The smallest ESS, where it is less than needed."""
    poor = []
    for table in tables:
        assert table.coordinates is not None
        needed = min(ENOUGH, ENOUGH_A_CHAIN * table.coordinates.chains)
        ess = np.where(np.isfinite(table.coordinates.ess), table.coordinates.ess, np.inf)
        if ess.min(initial=np.inf) < needed:
            poor.append((float(ess.min()), table.coordinates.names[int(ess.argmin())], needed, table))
    if poor:
        least, which, needed, table = min(poor, key=lambda entry: entry[0] / entry[2])
        others = f" ({len(poor)} of {len(tables)} settings are below)" if table.words else ""
        yield (
            f"ESS is {least:.0f} for coordinate {which}{of_setting(table)}; below {needed}{others}, "
            "standard errors and R-hat are not to be trusted: give more steps, or larger ones where the bias allows."
        )


def of_setting(table: Table | Setting) -> str:
    """The chains that a sentence is about, where there are several settings."""
    return f" of the chains with {table.words}" if table.words else ""


def mode_warnings(run: RunRecord, comparison: Comparison | None) -> Iterator[str]:
    """Modes of the truth without draws, and chains that all start at one point.

    A common start is no problem with one chain, without draws to judge, or if all modes of a known truth have draws.
    """
    if comparison is not None and comparison.missed:
        remedy = (
            "give it more time, more replicas or a hotter top"
            if run.sampler.tempering is not None
            else "give tempering, such as samplers.resgld"
        )
        yield (
            f"{comparison.missed} of {comparison.modes} modes of the truth have no draws, of probability "
            f"{comparison.missed_probability:.2g} in all, and no number of the table holds for the target; {remedy}."
        )
    judged = run.replica_draws.shape[2] > 0 or bool(run.accumulated)
    all_found = comparison is not None and comparison.found == comparison.modes
    if judged and not all_found and all_start_alike(run.init):
        yield (
            f"All {run.n_chains} chains began at one point, so that R-hat cannot see modes that none of them has "
            "found; leave init out, or give every chain a start of its own."
        )


def exchange_warnings(run: RunRecord) -> Iterator[str]:
    """Swaps and round trips."""
    exchange = run.sampler.tempers
    if not exchange.swaps or run.sampling_steps == 0:
        return
    pairs, settings = exchange.pairs(run.sampler.n_replicas), settings_of(run)
    attempted, swapped = (
        np.array([counted[setting.chains].sum(axis=0) for setting in settings])
        for counted in (run.counts.attempted, run.counts.accepted)
    )
    for (cold, hot), tries, swaps in zip(pairs, attempted.T, swapped.T, strict=True):
        if hot != cold + 1:
            continue
        if tries.min() == 0:
            yield f"No swap of rungs {cold} and {hot} was tried after burn-in; give more steps or a smaller swap_every."
            continue
        rates = swaps / tries
        least, most = int(rates.argmin()), int(rates.argmax())
        if rates[least] < RARE:
            yield (
                f"Rungs {cold} and {hot}{of_setting(settings[least])} swap at {rates[least]:.1%} of the attempts, "
                f"which is less than {RARE:.0%}: put temperatures between them, or see ladders.adapted_ladder."
            )
        elif rates[most] > FREQUENT and run.tuning is None:  # a tuned ladder has weighed that
            yield (
                f"Rungs {cold} and {hot}{of_setting(settings[most])} swap at {rates[most]:.1%} of the attempts, more "
                f"than {FREQUENT:.0%}: they are closer than they need be; use fewer replicas, or a hotter top."
            )
    trips = int(run.round_trips.sum())
    if 0 < trips < FEWEST_TRIPS:
        yield (
            f"States have gone from the coldest to the hottest rung and back {trips} times in all chains: with "
            f"fewer than {FEWEST_TRIPS}, weights of modes are not known; give more steps."
        )
    stuck = int((run.round_trips == 0).sum())
    if stuck > FEW_CHAINS * run.n_chains and attempted.sum() > 0:
        yield (
            f"In {stuck} of {run.n_chains} chains no state has been to the hottest rung and back, so tempering has "
            "brought the coldest nothing new; give more steps, or more temperatures between."
        )


def boundary_and_acceptance_warnings(run: RunRecord) -> Iterator[str]:
    """An ignored domain, and step sizes that cause too many reflections or a wrong acceptance rate."""
    if run.problem.domain is not None and run.sampler.boundary.kind == "ignore":
        yield (
            "The sampler ignores the domain, and its draws may lie outside; give boundary=boundaries.reflect(), or use "
            "those that problem.contains."
        )
    lost = int(run.reflection_fallbacks.sum())
    if lost:
        yield (
            f"{lost:,} moves were still outside after {run.sampler.boundary.max_bounces} reflections and were given "
            "up, which biases the draws; make the step size smaller."
        )
    if run.sampler.boundary.kind in ("reflect", "reject"):
        bounces = float((run.reflections / max(1, run.n_steps)).max(initial=0.0))
        if bounces > BOUNCES:
            yield f"A replica meets the wall {bounces:.2g} times a step: it is as long as the domain; make it smaller."
    limits = ACCEPTED.get(run.sampler.dynamics.name)
    if limits is None or run.sampling_steps == 0:
        return
    target = run.acceptance[:, : run.sampler.n_target_replicas]
    slow = int((target < HARDLY * np.median(target)).any(axis=1).sum())
    if slow and len(settings_of(run)) == 1 and run.sampling_steps * np.median(target) > ENOUGH_MOVES:
        yield (
            f"{slow} of {run.n_chains} chains accept less than {HARDLY:.0%} of what the others do: they are in places "
            "too narrow for the step size, which the others may never enter; make it smaller."
        )
    low, high, best = limits
    accepted = float(run.acceptance.mean())
    if accepted < low:
        yield f"{accepted:.0%} of the moves are accepted, and about {best:.0%} is best; make the step size smaller."
    elif accepted > high and run.tuning is None:
        yield f"{accepted:.0%} of the moves are accepted, and about {best:.0%} is best; make the step size larger."


def weight_warnings(run: RunRecord) -> Iterator[str]:
    """Uneven weights, and contour's warnings."""
    share = weight_share(run)
    if share is not None and not share.any():
        if not (run.counts.status > 0).any(axis=1).all():
            yield (
                "No draw has weight, so none counts: the target's own temperature was not come to; give more steps, or "
                "temper less (a lower top temperature)."
            )
    elif share is not None and share.mean() < UNEVEN:
        yield (
            f"The weights leave {share.mean():.1%} of the draws: a few carry all; give more steps, or temper less (a "
            "smaller zeta, or a lower top temperature)."
        )
    for doubt in doubts(run):
        yield f"{doubt[0].upper()}{doubt[1:]}."
