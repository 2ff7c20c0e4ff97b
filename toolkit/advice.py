"""What speaks against a run, in sentences, each with what to do."""

from collections.abc import Iterator

import numpy as np

from .coordinates import Coordinates
from .exchange import ReplicaExchange
from .result import Run
from .settling import doubts
from .standstill import standstills
from .summary import weight_share

R_HAT, APART = 1.01, 1.1  # Vehtari et al. (2021), section 4; Gelman & Rubin's old limit, above which chains are apart
ENOUGH, ENOUGH_A_CHAIN = 400, 100  # ESS: Vehtari et al. (2021), section 4
RARE, FREQUENT = 0.05, 0.6  # swaps; about 0.23 is best between two temperatures that are free to move
ACCEPTED = {"mala": (0.3, 0.8, 0.574), "hmc": (0.5, 0.95, 0.651)}  # Roberts & Rosenthal (1998), Beskos et al. (2013)
UNEVEN = 0.1  # share of the draws that weights leave
BOUNCES = 0.5  # a step


def warnings_of(run: Run, coordinates: Coordinates | None) -> list[str]:
    """All that speaks against the run; empty where nothing does."""
    return [
        *unfinished(run),
        *unmixed(run, coordinates),
        *untempered(run),
        *overshooting(run),
        *standstills(run),
        *unweighted(run),
    ]


def unfinished(run: Run) -> Iterator[str]:
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


def unmixed(run: Run, coordinates: Coordinates | None) -> Iterator[str]:
    """R̂ and ESS."""
    if coordinates is None:
        return
    if run.n_chains == 1:
        yield (
            "There is one chain: R-hat compares its two halves alone, and cannot see modes that it has not found; give "
            "n_chains=4 or more, from different starts."
        )
    worst = float(np.nan_to_num(coordinates.r_hat, nan=0.0).max(initial=0.0))
    which = int(np.argmax(np.nan_to_num(coordinates.r_hat, nan=0.0))) if worst else 0
    who = "chains" if coordinates.chains > 1 else "the two halves of the chain"
    if worst > APART:
        remedy = (
            "give it more time, more replicas or a hotter top"
            if run.sampler.tempering is not None
            else "give tempering, such as samplers.resgld, or more steps"
        )
        yield (
            f"R-hat is {worst:.3g} for coordinate {which}: {who} are in different places, perhaps in different modes, "
            f"and no number of the table holds for the target; {remedy}."
        )
    elif worst > R_HAT:
        yield (
            f"R-hat is {worst:.4f} for coordinate {which}, above {R_HAT}: {who} have not mixed yet; give more steps "
            "or a longer burn-in."
        )
    needed = min(ENOUGH, ENOUGH_A_CHAIN * coordinates.chains)
    finite = np.isfinite(coordinates.ess)
    least = float(coordinates.ess[finite].min()) if finite.any() else np.inf
    if least < needed:
        yield (
            f"ESS is {least:.0f} for coordinate {int(np.flatnonzero(coordinates.ess == least)[0])}; below {needed}, "
            "standard errors and R-hat are not to be trusted: give more steps, or larger ones where the bias allows."
        )


def untempered(run: Run) -> Iterator[str]:
    """Swaps and round trips."""
    exchange = run.sampler.tempering
    if not isinstance(exchange, ReplicaExchange) or run.sampling_steps == 0:
        return
    pairs = exchange.pairs(run.sampler.n_replicas)
    tried, swapped = run.counts.attempted.sum(axis=0), run.counts.accepted.sum(axis=0)
    for (cold, hot), tries, swaps in zip(pairs, tried, swapped, strict=True):
        if hot != cold + 1:
            continue
        if tries == 0:
            yield f"No swap of rungs {cold} and {hot} was tried after burn-in; give more steps or a smaller swap_every."
        elif swaps < RARE * tries:
            yield (
                f"Rungs {cold} and {hot} swap at {swaps / tries:.1%} of the attempts, which is less than {RARE:.0%}: "
                "put temperatures between them, or see ladders.adapted_ladder."
            )
        elif swaps > FREQUENT * tries:
            yield (
                f"Rungs {cold} and {hot} swap at {swaps / tries:.1%} of the attempts, more than {FREQUENT:.0%}: "
                "they are closer than they need be; use fewer replicas, or a hotter top."
            )
    stuck = int((run.round_trips == 0).sum())
    if stuck and tried.sum() > 0:
        yield (
            f"In {stuck} of {run.n_chains} chains no state has been to the hottest rung and back, so tempering has "
            "brought the coldest nothing new; give more steps, or more temperatures between."
        )


def overshooting(run: Run) -> Iterator[str]:
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


def unweighted(run: Run) -> Iterator[str]:
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
