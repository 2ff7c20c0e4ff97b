"""Whether a saved run is the one asked for now: what is compared, and in what words the difference is told."""

from typing import TYPE_CHECKING, Any

import numpy as np

from .describing import Description, describe, differences, from_json
from .digests import BITS, describe_function
from .errors import CheckpointError
from .job import Paths
from .schedule import evaluate

if TYPE_CHECKING:
    from .job import Job

MOST = 5  # differences that a message tells
STRIDE = 2**20  # steps of a schedule that are compared at a time


def asked_for(job: "Job", kind: str) -> Description:
    """All that determines what a run gives, but its number of steps."""
    return {
        "toolkit": {"bits": BITS},
        "called": kind,
        "dtype": job.dtype,
        "seed": job.seed,
        "n_chains": len(job.init),
        "burn_in": job.burn_in,
        "thin": job.thin,
        "keep_replicas": job.keep_replicas,
        "keep_energies": job.keep_energies,
        "keep_statistics": job.keep_statistics,
        "trace_every": job.trace_every,
        "accumulators": {name: describe_function(accumulator) for name, accumulator in job.accumulators.items()},
        **describe(job.problem, job.asked),
        "init": job.init,
    }


def compare_with(paths: Paths, info: dict[str, Any], arrays: dict[str, Any], asked: Description) -> None:
    """Raise CheckpointError where the run of a journal's head is not the one ``asked`` for, naming the differences."""
    try:
        saved = from_json(info["description"], arrays)
        if "bits" not in saved["toolkit"]:
            raise CheckpointError(
                f"checkpoint {paths.state!r} was made by a toolkit that noted its sources and not its bits, so whether "
                "it can go on is not known; give another path, or delete it"
            )
        found = differences(saved, asked)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CheckpointError(f"{paths.journal!r} cannot be read: {error!r}") from None
    if found:
        more = f"; and {len(found) - MOST} more" if len(found) > MOST else ""
        raise CheckpointError(
            f"checkpoint {paths.state!r} is of another run: {'; '.join(found[:MOST])}{more}. There is the checkpoint, "
            "here is this call; ask for the same run, or give another path"
        )


def check_extension(job: "Job", paths: Paths, done: int, total: int) -> None:
    """Raise CheckpointError where ``done`` steps of a run of ``total`` are not those of a run of the job's."""
    if job.n_steps < done:
        raise CheckpointError(
            f"n_steps must be ≥ {done}, the steps that checkpoint {paths.state!r} has done, got {job.n_steps}"
        )
    if job.n_steps == total:
        return
    for first in range(0, done, STRIDE):
        steps = np.arange(first, min(first + STRIDE, done))
        then, now = evaluate(job.sampler.schedule, steps, total), evaluate(job.sampler.schedule, steps, job.n_steps)
        if not all(np.array_equal(a, b) for a, b in zip(then, now, strict=True)):
            raise CheckpointError(
                f"n_steps must be {total}, with which checkpoint {paths.state!r} was made, got {job.n_steps}: schedule "
                f"{job.sampler.schedule.name} depends on it, and the {done} steps done would have been others"
            )
