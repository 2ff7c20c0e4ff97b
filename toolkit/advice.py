"""What speaks against a run, in sentences, each with what to do."""

from collections.abc import Iterator

import numpy as np

from .coordinates import MOST_SETTINGS, Table
from .exchange import ReplicaExchange
from .result import RunRecord
from .settings import Setting, settings_of
from .settling import doubts
from .standstill import standstills
from .starts import share_one_place
from .summary import weight_share
from .truth_comparison import Comparison

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
    if judged and not all_found and share_one_place(run.init):
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
