"""What a run takes of memory, and the refusal, before it runs, of one that cannot fit."""

import numpy as np

from .contour import Contour
from .job import Job
from .memory import check_room
from .recording import STATISTICS

LOOKS = 4096  # steps at which a schedule is asked whether it keeps them
GOLDEN = 0.6180339887498949  # its multiples, modulo 1, lie evenly and in step with no period


def check_footprint(job: Job, *, keep_draws: bool, keep_trace: bool, has_draws: bool = True) -> None:
    """Raise ValueError where the draws, or the trace, of a run, or else of a chunk of it, do not fit into memory.

    has_draws: whether there are any on the host.
    """
    chains, replicas, dim = job.init.shape
    chunk = min(job.chunk_length, job.n_steps)
    numbers = dim + job.records_energies + job.sampler.is_weighted + 0.5 * len(STATISTICS) * job.keep_statistics
    draws = expected_draws(job) if keep_draws else has_draws * -(-chunk // job.thin)
    got = f"{job.n_steps} with n_chains={chains}, thin={job.thin} and layout.chunk_steps={job.layout.chunk_steps}"
    hint = "; give a larger thin, or accumulators with keep_draws=False, or use stream"
    check_room("n_steps", got, 8.0 * draws * (1 + chains * job.n_kept * numbers) + 40.0 * chunk, hint=hint)
    if job.trace_every is not None:
        tempering = job.sampler.tempering
        bins = tempering.partition.n_bins if isinstance(tempering, Contour) and tempering.partition else 0
        times = (job.n_steps if keep_trace else chunk) // job.trace_every
        got = f"{job.trace_every} with n_steps={job.n_steps} and n_chains={chains}"
        check_room("trace_every", got, 8.0 * times * (1 + chains * (replicas * len(job.trace_fields) + bins)))


def expected_draws(job: Job) -> float:
    """The draws of each chain: an estimate, where the schedule does not keep all steps."""
    most = (job.n_steps - job.burn_in) // job.thin
    if job.sampler.schedule.keeps_all or most < LOOKS:
        return most
    steps = np.unique((np.arange(LOOKS) * GOLDEN % 1.0 * job.n_steps).astype(np.int64))
    kept = job.sampler.schedule.factors(steps, job.n_steps).keep
    return most * float(np.mean(kept))
