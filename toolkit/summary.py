"""What a person wants to know first of a run, as labelled lines; ``reporting`` prints them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .continuous import ContinuousTempering
from .contour import Contour
from .exchange import AdaptedCorrection, EstimatedCorrection, ReplicaExchange
from .moments import MomentsSoFar
from .result import RunRecord
from .settings import spelled
from .stein import Stein
from .weighting import weighted_ess

Floats = NDArray[np.float64]

MOST_PAIRS = 8
BIASED = "by the step size, as no Metropolis test takes it away: toolkit.check_step_size(run) measures it"


def lines_of(run: RunRecord) -> list[tuple[str, str]]:
    """The parts of the sampler, what was done, and what was counted: a label and a text each."""
    sampler, problem = run.sampler, run.problem
    draws = run.replica_draws.shape[2]
    replicas = f" × {sampler.n_target_replicas} replicas" if sampler.n_target_replicas > 1 else ""
    rate = f", {run.gradient_evaluations / run.elapsed:,.3g} a second" if run.elapsed > 0.0 else ""
    sizes = {"gradient": sampler.gradient_noise, "energy": sampler.energy_noise}
    noise = [f"{name} {size:g}" for name, size in sizes.items() if size]
    noise += ["minibatches of data"] * problem.target.stochastic
    return [
        ("dynamics", f"{sampler.dynamics.name}, {spelled('step size', sampler.arrays['step_sizes'])}"),
        ("schedule", sampler.schedule.name),
        ("tempering", f"{tempering_words(run)}, {spelled('temperature', sampler.arrays['temperatures'])}"),
        ("boundary", boundary_words(run)),
        ("noise", ", ".join(noise) or "none"),
        (
            "draws",
            f"{counted_out(run.n_chains, 'chain')} × {counted_out(draws, 'draw')}{replicas} × "
            f"{counted_out(problem.target.dim, 'dimension')}, "
            f"burn-in {run.burn_in:,}, thin {run.thin:,}, seed {run.seed}",
        ),
        (
            "steps",
            f"{run.n_steps:,} of {run.total_steps:,} in {run.elapsed:.2f} s; {run.gradient_evaluations:,} gradient "
            f"evaluations{rate}",
        ),
        *([("bias", BIASED)] if sampler.dynamics.leapfrogs == 0 and sampler.dynamics.draws_noise else []),
        *counted(run),
    ]


def counted_out(number: int, what: str) -> str:
    """A number of things, of one or of several."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def tempering_words(run: RunRecord) -> str:
    """The tempering with its important numbers."""
    match run.sampler.tempering:
        case ReplicaExchange() as exchange:
            kind = {EstimatedCorrection: "estimated", AdaptedCorrection: "adapted"}.get(
                type(exchange.correction), "fixed"
            )
            swaps = (
                f"swap tried every {exchange.swap_every} steps" if exchange.swap_every > 1 else "swap tried every step"
            )
            return f"replica exchange ({exchange.scheme}, {swaps}, {kind} correction)"
        case Contour() as contour:
            bins = contour.partition
            grid = f", {bins.n_bins} bins of {bins.width:.4g} nats from {bins.u_min:.4g}" if bins else ""
            return f"contour (ζ = {contour.zeta:g}{grid})"
        case ContinuousTempering() as continuous:
            return f"continuous tempering to temperature {continuous.top_temperature:g} ({continuous.bias})"
        case Stein():
            return f"Stein's repulsion of {run.sampler.n_replicas} particles"
    return "none"


def boundary_words(run: RunRecord) -> str:
    """What happens at the edge, and where that is."""
    boundary, domain = run.sampler.boundary, run.problem.domain
    number = f" (λ = {boundary.coefficient:g})" if boundary.coefficient else ""
    return f"{boundary.kind}{number}" + (f", at the edge of {domain.name}" if domain is not None else "")


def counted(run: RunRecord) -> list[tuple[str, str]]:
    """What the parts of the sampler counted, where they are there."""
    found, sampler, counts = [], run.sampler, run.counts
    if isinstance(sampler.tempering, ReplicaExchange):
        pairs, rates = sampler.tempering.pairs(sampler.n_replicas), run.swap_rates
        shown = [f"{a}–{b}: {spread(rates[:, i], '.3f')}" for i, (a, b) in enumerate(pairs[:MOST_PAIRS])]
        rest = f" and {len(pairs) - MOST_PAIRS} more" if len(pairs) > MOST_PAIRS else ""
        found.append(("swap rates", "; ".join(shown) + rest))
        found.append(("round trips", f"{spread(run.round_trips, ',.0f')} a chain"))
    if sampler.dynamics.leapfrogs:
        found.append(("acceptance", spread(run.acceptance.mean(axis=1), ".3f")))
    if sampler.boundary.kind in ("reflect", "reject"):
        word = "reflections" if sampler.boundary.kind == "reflect" else "moves taken back"
        steps = max(1, run.n_steps)
        text = f"{spread(run.reflections.sum(axis=1) / (steps * sampler.n_replicas), '.4g')} a step"
        found.append((word, text + f"; {int(run.reflection_fallbacks.sum()):,} given up"))
    if run.partition is not None and counts.theta.size:
        visited = (counts.visits > 0).sum(axis=1)
        found.append(("θ", f"{spread(visited, ',.0f')} of {run.partition.n_bins} bins visited"))
    share = weight_share(run)
    if share is not None:
        found.append(("weights", f"leave {spread(share, '.1%')} of the draws"))
    if counts.status.any():
        found.append(("divergences", f"{int((counts.status > 0).sum())} of {counts.status.size} replicas"))
    return found


def spread(values: Any, form: str) -> str:
    """Mean over chains, with the smallest and the largest."""
    finite = np.asarray(values)[np.isfinite(values)]
    if finite.size == 0:
        return "unknown"
    low, high, mean = (format(value, form) for value in (finite.min(), finite.max(), finite.mean()))
    return mean if low == high else f"{mean} ({low} to {high})"


def weight_share(run: RunRecord) -> Floats | None:
    """Share of each chain's draws that its weights leave, (chain,); None without weights or draws."""
    if not run.sampler.is_weighted:
        return None
    if run.replica_draws.shape[2] == 0:
        known = [r for r in run.accumulated.values() if isinstance(r, MomentsSoFar) and (r.draws > 0).all()]
        return known[0].weighted_ess / known[0].draws if known else None
    weights = run.weights
    used = np.isfinite(weights).all(axis=1) & (weights > 0.0).any(axis=1)
    share = np.zeros(len(weights))
    if used.any():
        share[used] = weighted_ess(weights[used]) / weights.shape[1]
    return share
