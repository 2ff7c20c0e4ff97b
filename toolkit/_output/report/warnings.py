"""What speaks against a run, in sentences, each with what to do."""

import warnings
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._engine.record import RunRecord, Setting, settings_of
from ..._engine.starts import all_start_alike
from ...diagnostics.standstill import standstills
from ...errors import ContourWarning
from ...tempering.contour_tempering import Contour, Partition
from ...tempering.exchange import ReplicaExchange
from .table import MOST_SETTINGS, Coordinates, Table, weight_share

# Warnings about a contour run whose weights should not be trusted yet.

UNSETTLED, STEEPEST, RARE_CONTOUR = 0.3, 10.0, 0.01
BELOW, ABOVE = 0.1, 0.25
STILL = 0.02  # share of accepted moves


def warn_about(run: RunRecord, stacklevel: int) -> None:
    """Warn where contour's θ has not settled, its multipliers are extreme, or energies lie outside its partition."""
    for message in doubts(run):
        warnings.warn(message, ContourWarning, stacklevel=stacklevel + 1)


def doubts(run: RunRecord) -> list[str]:
    """What speaks against the weights of ``run``, a sentence each.

    Thresholds, from runs with known truth: θ at a quarter to half of the way differs by 0.01 to 0.2 in L1 where it is
    right; the largest multiplier of a right run was 5, and 36 to 660 where it had run away.
    """
    contour = run.sampler.tempering
    if not isinstance(contour, Contour) or contour.partition is None or run.sampling_steps == 0:
        return []
    found = []
    moved = float(np.abs(run.counts.theta - run.counts.earlier_theta).sum(axis=1).mean())
    if moved > UNSETTLED and run.counts.earlier_theta.any():
        found.append(
            f"θ has not settled: in the last half or more of the steps after burn-in it moved by {moved:.2f} in L1, "
            f"and more than {UNSETTLED} is too much to trust the weights; give more steps or a longer burn-in"
        )
    steepest = largest_multiplier(run, contour.zeta, contour.partition)
    if steepest > STEEPEST:
        tests = run.sampler.dynamics.leapfrogs > 0
        where = f"by up to {steepest:.0f} in bins with {RARE_CONTOUR:.0%} of the visits or more"
        found.append(
            f"the gradient is to be multiplied {where}; proposals that would then be rejected follow the gradient as "
            "it is, and θ is slow to settle: give smaller steps or wider bins"
            if tests
            else f"the gradient is multiplied {where}; steps overshoot there and θ settles on a wrong value: give "
            "smaller steps or wider bins"
        )
    if run.sampler.dynamics.leapfrogs > 0:
        still = int((run.acceptance < STILL).any(axis=1).sum())
        if still:
            found.append(
                f"{still} of {run.n_chains} chains accept less than {STILL:.0%} of their moves, and hardly move: give "
                "smaller steps or wider bins"
            )
    below, above = shares_outside(run)
    for share, limit, side, bound in (
        (below, BELOW, "below", contour.partition.u_min),
        (above, ABOVE, "above", contour.partition.u_max),
    ):
        if share > limit:
            found.append(
                f"{share:.0%} of the energies lie {side} the partition, which has its end at {bound:.6g}; "
                "nothing is flattened there: give a partition that covers them"
            )
    return found


def shares_outside(run: RunRecord) -> tuple[float, float]:
    """Shares of the energies below and above the partition, of the chains at the temperature that has the most."""
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


# A run beside the truth of its problem, where that costs next to nothing: modes that no draw has found, mean and sd.
#
# A truth says by its attribute ``at_hand`` what can be asked of it without a quadrature: "memberships" of points, or
# "moments" too, which are ``mean``, ``covariance`` and the modes' weights.

Floats = NDArray[np.float64]

MOST_POINTS = 20_000  # draws whose mode is looked up
SELDOM = 0.01  # of a mode's probability: where the draws have less of it, the mode was not found
EXPECTED = 20  # independent draws in a mode, of which hardly ever none is there: e⁻²⁰


class Comparison(NamedTuple):
    """What was found of the truth's modes.

    modes, found: how many there are, and how many have draws. missed: how many have none, although as many independent
    draws would have had ``EXPECTED`` in each; missed_probability: theirs together. words: a line.
    """

    modes: int
    found: int
    missed: int
    missed_probability: float
    words: str


def compared(run: RunRecord, tables: list[Table]) -> Comparison | None:
    """``run`` beside the truth; None where this is not at hand, or is not the law that is sampled."""
    truth, known = run.problem.truth, getattr(run.problem.truth, "at_hand", ())
    cold = run.sampler.arrays["temperatures"][..., : run.sampler.n_target_replicas]
    walled = run.problem.domain is None or run.sampler.boundary.kind in ("reflect", "reject")
    if truth is None or not known or not walled or (cold != 1.0).any():
        return None
    points = some_points(run)
    if len(points) == 0:
        return None
    shares = truth.memberships(points).mean(axis=0)
    found, missed, probability = shares > 0.0, 0, 0.0
    if "moments" in known:
        weights = truth.modes.weights
        found = shares > SELDOM * weights
        lost = ~found & (weights * len(points) >= EXPECTED)
        missed, probability = int(lost.sum()), float(weights[lost].sum())
    parts = [f"{int(found.sum())} of {found.size} modes found"] if found.size > 1 else []
    if "moments" in known and len(tables) == 1 and tables[0].coordinates is not None:
        parts += moment_words(tables[0].coordinates, truth.mean, truth.covariance)
    return Comparison(found.size, int(found.sum()), missed, probability, "; ".join(parts))


def some_points(run: RunRecord) -> Floats:
    """Draws (n, dim) of whole chains, evenly spaced, ``MOST_POINTS`` at most, about."""
    whole = np.flatnonzero((run.counts.status == 0).all(axis=1))
    targets, moments, dim = run.sampler.n_target_replicas, *run.replica_draws.shape[2:]
    if whole.size == 0 or moments == 0:
        return np.zeros((0, dim))
    chains = whole[:: -(-whole.size * targets // MOST_POINTS)]
    stride = -(-moments * chains.size * targets // MOST_POINTS)
    return run.replica_draws[chains, :targets, ::stride].reshape(-1, dim)


def moment_words(coordinates: Coordinates, mean: Floats, covariance: Floats) -> list[str]:
    """Mean and sd of the table beside the truth's; nothing where the truth has none."""
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


R_HAT, APART = 1.01, 1.1  # Vehtari et al. (2021), section 4; Gelman & Rubin's old limit, above which chains are apart
ENOUGH, ENOUGH_A_CHAIN = 400, 100  # ESS: Vehtari et al. (2021), section 4
RARE, FREQUENT = 0.05, 0.6  # swaps; about 0.23 is best between two temperatures that are free to move
ACCEPTED = {"mala": (0.3, 0.8, 0.574), "hmc": (0.5, 0.95, 0.651)}  # Roberts & Rosenthal (1998), Beskos et al. (2013)
UNEVEN = 0.1  # share of the draws that weights leave
BOUNCES = 0.5  # a step


def warnings_of(run: RunRecord, tables: list[Table], comparison: Comparison | None) -> list[str]:
    """All that speaks against the run; empty where nothing does."""
    return [
        *unfinished(run),
        *unmixed(run, tables),
        *unseen(run, comparison),
        *untempered(run),
        *overshooting(run),
        *standstills(run),
        *unweighted(run),
    ]


def unfinished(run: RunRecord) -> Iterator[str]:
    """Divergence, interruption, and nothing to judge."""
    diverged = (run.counts.status > 0).any(axis=1)
    if diverged.any():
        yield (
            f"{int(diverged.sum())} of {run.n_chains} chains diverged, the first at step "
            f"{int(run.counts.status[run.counts.status > 0].min()) - 1}: their later draws are nan and no part of the "
            "table; make the step size smaller."
        )
    if run.interrupted:
        yield (
            f"The run was interrupted after {run.n_steps:,} of {run.total_steps:,} steps; what it holds is what there "
            "was by then."
        )
    kept = run.replica_draws.shape[2]
    if kept == 0 and not run.accumulated:
        if run.n_steps <= run.burn_in:
            yield f"There are no draws: the burn-in of {run.burn_in:,} steps has not ended; go on, or shorten it."
        else:
            yield "There are no draws to judge: keep them, or give accumulators."
    elif kept in (1, 2, 3):
        yield f"With {kept} draws a chain nothing can be said; give more steps, or a smaller thin."


def unmixed(run: RunRecord, tables: list[Table]) -> Iterator[str]:
    """R̂ and ESS, of the chains of each setting by themselves."""
    if len(tables) > MOST_SETTINGS:
        yield (
            f"The chains have {len(tables):,} settings, too many to judge each here, and no R-hat in common; see "
            "diagnostics.r_hat and ess of the draws of each."
        )
    known = [table for table in tables if table.coordinates is not None]
    if not known:
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
    yield from apart(run, known)
    yield from too_few(known)


def apart(run: RunRecord, tables: list[Table]) -> Iterator[str]:
    """The largest R̂."""
    ratios = [
        np.where(np.isnan(table.coordinates.r_hat), 0.0, table.coordinates.r_hat)
        for table in tables
        if table.coordinates is not None
    ]
    most = np.array([ratio.max(initial=0.0) for ratio in ratios])
    table, worst = tables[int(most.argmax())], float(most.max())
    assert table.coordinates is not None
    which = int(ratios[int(most.argmax())].argmax()) if worst else 0
    who = "chains" if table.coordinates.chains > 1 else "the two halves of the chain"
    where = of_setting(table)
    others = f" ({int((most > R_HAT).sum())} of {len(tables)} settings are above {R_HAT})" if table.words else ""
    if worst == np.inf:
        yield (
            f"R-hat is infinite for coordinate {which}{where}{others}: no chain moves it, and they are in different "
            "places, so no number of the table holds for the target; make the step size smaller, or give other starts."
        )
    elif worst > APART:
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


def too_few(tables: list[Table]) -> Iterator[str]:
    """The smallest ESS, where it is less than needed."""
    poor = []
    for table in tables:
        assert table.coordinates is not None
        needed = min(ENOUGH, ENOUGH_A_CHAIN * table.coordinates.chains)
        worth = np.where(np.isfinite(table.coordinates.ess), table.coordinates.ess, np.inf)
        if worth.min(initial=np.inf) < needed:
            poor.append((float(worth.min()), int(worth.argmin()), needed, table))
    if poor:
        least, which, needed, table = min(poor, key=lambda found: found[0] / found[2])
        others = f" ({len(poor)} of {len(tables)} settings are below)" if table.words else ""
        yield (
            f"ESS is {least:.0f} for coordinate {which}{of_setting(table)}; below {needed}{others}, "
            "standard errors and R-hat are not to be trusted: give more steps, or larger ones where the bias allows."
        )


def of_setting(table: Table | Setting) -> str:
    """Which chains a sentence speaks of, where there are several settings."""
    return f" of the chains with {table.words}" if table.words else ""


def unseen(run: RunRecord, comparison: Comparison | None) -> Iterator[str]:
    """Modes of the truth that no draw is in, and starts from which no chain sees more than another.

    Chains that begin at one point are no matter where there is one chain or nothing to judge, and where the truth is
    at hand and every mode of it has draws.
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


def untempered(run: RunRecord) -> Iterator[str]:
    """Swaps and round trips."""
    exchange = run.sampler.tempering
    if not isinstance(exchange, ReplicaExchange) or run.sampling_steps == 0:
        return
    pairs, settings = exchange.pairs(run.sampler.n_replicas), settings_of(run)
    tried, swapped = (
        np.array([counted[setting.chains].sum(axis=0) for setting in settings])
        for counted in (run.counts.attempted, run.counts.accepted)
    )
    for (cold, hot), tries, swaps in zip(pairs, tried.T, swapped.T, strict=True):
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
        elif rates[most] > FREQUENT:
            yield (
                f"Rungs {cold} and {hot}{of_setting(settings[most])} swap at {rates[most]:.1%} of the attempts, more "
                f"than {FREQUENT:.0%}: they are closer than they need be; use fewer replicas, or a hotter top."
            )
    stuck = int((run.round_trips == 0).sum())
    if stuck and tried.sum() > 0:
        yield (
            f"In {stuck} of {run.n_chains} chains no state has been to the hottest rung and back, so tempering has "
            "brought the coldest nothing new; give more steps, or more temperatures between."
        )


def overshooting(run: RunRecord) -> Iterator[str]:
    """A domain that is ignored, and step sizes that the walls or the Metropolis test find wrong."""
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
    low, high, best = limits
    accepted = float(run.acceptance.mean())
    if accepted < low:
        yield f"{accepted:.0%} of the moves are accepted, and about {best:.0%} is best; make the step size smaller."
    elif accepted > high:
        yield f"{accepted:.0%} of the moves are accepted, and about {best:.0%} is best; make the step size larger."


def unweighted(run: RunRecord) -> Iterator[str]:
    """Weights that leave little, and contour's own doubts."""
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
