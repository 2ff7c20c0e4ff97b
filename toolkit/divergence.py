"""The error of a run that diverged: which lane did first, where it was, and what is likely to be the cause."""

import numpy as np
from numpy.typing import NDArray

from .blocks import Block
from .continuous import MOMENTUM, THERMOSTAT, ContinuousTempering
from .errors import DivergenceError
from .job import Job
from .result import RunRecord

Floats = NDArray[np.float64]


def divergence(job: Job, blocks: list[Block], status: NDArray[np.int64], run: RunRecord) -> DivergenceError:
    """The error for the first lane that diverged. status: (chain, replica), some not 0; run: what there is so far."""
    step = int(status[status > 0].min()) - 1
    chain, replica = (int(i) for i in np.argwhere(status == step + 1)[0])
    block = next(block for block in blocks if block.first <= chain < block.last)
    lane = replica * (block.last - block.first) + chain - block.first
    state = block.state.position[:, lane].copy()
    energy, gradient = job.problem.target.evaluate(state[None])
    with np.errstate(over="ignore"):
        steepness = float(np.linalg.norm(gradient))
    step_size = float(job.sampler.per_chain("step_sizes", np.array([chain]), np.array([replica]))[0])
    couples = isinstance(job.sampler.tempering, ContinuousTempering)
    if couples and not np.isfinite(block.state.continuous.rows[[MOMENTUM, THERMOSTAT], lane]).all():
        cause = (
            "The friction of its tempering variable overshot: make continuous tempering's step size smaller, its "
            "inertia larger, or the top temperature lower."
        )
    else:
        cause = likely_cause(job.init, state, energy[0], gradient)
    message = (
        f"chain {chain}, replica {replica} diverged at step {step}: its last finite position is {state.tolist()}, "
        f"with energy {energy[0]:.6g} and gradient of norm {steepness:.6g}, its step size "
        f"{step_size:g}. {cause} "
        f"{int((status > 0).sum())} of {status.size} replicas diverged; this error's `run` holds the draws so far."
    )
    return DivergenceError(message, chain=chain, replica=replica, step=step, state=state, run=run)


def likely_cause(init: Floats, state: Floats, energy: float, gradient: Floats) -> str:
    """A sentence on why a lane of a run that began at ``init`` diverged from ``state``."""
    far = np.abs(state).max() > 1e6 * (1.0 + np.abs(init).max())
    if not far and not np.isfinite(energy):
        return "The energy is not finite there: the target does not cover the place."
    if not far and not np.isfinite(gradient).all():
        return "The gradient is not finite there though the energy is: the target's gradient is at fault."
    return "Step size times gradient overshoots: make the step size smaller."
