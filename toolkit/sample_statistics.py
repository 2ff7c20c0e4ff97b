"""What is known of every draw of a run, as variables of its tree."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .result import RunRecord, fold
from .schedule import evaluate
from .unavailable import Unavailable, UnavailableError

Values = NDArray[Any]


def sample_statistics(run: RunRecord) -> dict[str, tuple[tuple[str, ...], Values, str]]:
    """What is known of every draw of ``run.draws``, (chain, draw)."""
    target = slice(run.sampler.n_target_replicas)
    chains, replicas, draws = run.replica_draws[:, target].shape[:3]
    shape, dims = (chains, replicas, draws), ("chain", "draw")
    found: dict[str, tuple[Values, str]] = {}
    energies, whence = energies_of(run)
    if energies is not None:
        found["energy"] = (energies[:, target], f"U, −log density + a constant, in nats; {whence}")
    weights = np.broadcast_to(1.0, shape) if run.replica_weights is None else run.replica_weights[:, target]
    found["weight"] = (weights, "importance weight, up to a factor of each chain")
    factors = evaluate(run.sampler.schedule, run.steps, run.total_steps) if can_evaluate(run) else None
    for i, name in enumerate(("step_size", "temperature")):
        if factors is not None:
            base = np.broadcast_to(run.sampler.arrays[f"{name}s"], (chains, run.sampler.n_replicas))[:, target]
            constant = bool((factors[i] == 1.0).all())
            values = np.broadcast_to(base[:, :, None], shape) if constant else base[:, :, None] * factors[i]
            found[name] = (values, "at the draw's step, the schedule's factor included")
    diverged = run.counts.status[:, target, None]
    late = (diverged > 0) & (run.steps >= diverged - 1)
    found["diverging"] = (late, "not finite, from the step on at which the replica diverged")
    found["step"] = (np.broadcast_to(run.steps, shape), "the step after which the draw was taken, from 0")
    found["replica"] = (np.broadcast_to(np.arange(replicas)[None, :, None], shape), "which replica of the chain")
    if run.statistics is not None:
        walker, swaps, reflections = (values[:, target] for values in run.statistics)
        before = np.concatenate([np.zeros((chains, replicas, 1), swaps.dtype), swaps[:, :, :-1]], axis=2)[:, :, :draws]
        found["walker"] = (walker, "the replica whose first state sits on this rung")
        found["swap_accepted"] = (swaps > before, "a swap since the draw before; the first: since the end of burn-in")
        found["reflections"] = (reflections, "reflections, or moves taken back, since the start")
    return {name: (dims, fold(values), said) for name, (values, said) in found.items()}


def can_evaluate(run: RunRecord) -> bool:
    """Whether the schedule is there: of a loaded run, one of the user's own is not."""
    try:
        evaluate(run.sampler.schedule, run.steps[:1], run.total_steps)
    except UnavailableError:
        return False
    return True


def energies_of(run: RunRecord) -> tuple[Values | None, str]:
    """Energies (chain, replica, draw) that were kept, or those of the target at the draws; None where neither can be.

    They are evaluated where the target draws no minibatches, calls no Python, and is there; a loaded run's is not.
    """
    target = run.problem.target
    if run.energies is not None:
        return run.energies, "as kept by the run"
    absent = isinstance(target.energy_gradient, Unavailable) or target.callback is not None
    if target.stochastic or absent or run.replica_draws.size == 0:
        return None, ""
    values = np.empty(run.replica_draws.shape[:3])
    for chain, draws in zip(values, run.replica_draws, strict=True):
        chain[:] = target.evaluate(draws.reshape(-1, target.dim))[0].reshape(chain.shape)
    return values, "evaluated at the draws"
