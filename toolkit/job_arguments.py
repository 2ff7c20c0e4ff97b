"""The arguments of one run, each checked, and the job they make."""

from typing import Any

from .accumulators import check_accumulators
from .blocks import Layout, available_threads
from .checks import check_count, check_flag, check_number
from .job import Job, check_checkpoint
from .job_checks import (
    check_backend,
    check_dtype,
    check_lanes,
    check_learning,
    check_minibatches,
    check_penalty,
    check_start,
)
from .philox import MAX_CHAINS, MAX_STEPS
from .problem import Spread, as_problem
from .sampler import Sampler
from .tempering import ReplicaExchange


def make_job(
    problem: Any,
    sampler: Any,
    *,
    n_steps: Any,
    seed: Any,
    n_chains: Any = 1,
    burn_in: Any = 0,
    thin: Any = 1,
    init: Any = None,
    backend: Any = "cpu",
    dtype: Any = "float64",
    threads: Any = None,
    keep_replicas: Any = False,
    keep_energies: Any = False,
    keep_statistics: Any = False,
    trace_every: Any = None,
    accumulators: Any = None,
    checkpoint: Any = None,
    checkpoint_every: Any = 60.0,
    layout: Any = Layout(),
) -> Job:
    """Check all arguments of a run; ``sample`` says what they are. A contour may still lack its partition."""
    problem = as_problem(problem)
    if not isinstance(sampler, Sampler):
        raise TypeError(f"sampler must be a Sampler, got {sampler!r} of type {type(sampler).__name__}")
    if sampler.boundary.kind != "ignore" and problem.domain is None:
        raise ValueError(
            f"boundary {sampler.boundary.kind!r} needs a problem with a domain, and {problem.name!r} has none; "
            "give constrained(target, shape), or boundary=boundaries.ignore()"
        )
    check_minibatches(problem, sampler)
    check_backend(backend, problem)
    check_dtype(dtype, backend, problem, sampler)
    n_steps = check_count("n_steps", n_steps, at_least=1, below=MAX_STEPS)
    n_chains = check_count("n_chains", n_chains, at_least=1, below=MAX_CHAINS)
    burn_in = check_count("burn_in", burn_in, at_least=0, below=n_steps)
    thin = check_count("thin", thin, at_least=1, below=n_steps - burn_in + 1)
    seed = check_count("seed", seed, at_least=0, below=2**64)
    threads = available_threads() if threads is None else check_count("threads", threads, at_least=1)
    if not isinstance(layout, Layout):
        raise TypeError(f"layout must be a Layout, got {layout!r} of type {type(layout).__name__}")
    if layout.lanes is not None:
        check_count("layout.lanes", layout.lanes, at_least=1)
    if layout.chunk_steps is not None:
        check_count("layout.chunk_steps", layout.chunk_steps, at_least=1)
    check_flag("layout.fused", layout.fused)
    keep_replicas = check_flag("keep_replicas", keep_replicas)
    keep_energies = check_flag("keep_energies", keep_energies)
    happens = isinstance(sampler.tempering, ReplicaExchange) or sampler.boundary.kind in ("reflect", "reject")
    keep_statistics = check_flag("keep_statistics", keep_statistics) and happens
    accumulators = check_accumulators(accumulators)
    checkpoint_every = check_number("checkpoint_every", checkpoint_every, above=0.0)
    paths = check_checkpoint(checkpoint)
    if trace_every is not None:
        trace_every = check_count("trace_every", trace_every, at_least=1, below=n_steps + 1)
    if sampler.n_chains not in (None, n_chains):
        raise ValueError(
            f"n_chains must be {sampler.n_chains}, for which the sampler's step sizes or temperatures are given, got "
            f"{n_chains}"
        )
    check_learning(sampler, n_steps, burn_in)
    check_penalty(problem, sampler)
    check_lanes(problem, sampler, n_chains)
    start = check_start(problem, sampler, n_chains, init, seed)
    spread = init if isinstance(init, Spread) else None
    job = Job(
        problem, sampler, n_steps, seed, burn_in, thin, start, threads, layout, keep_replicas, keep_energies,
        keep_statistics, trace_every, accumulators, paths, checkpoint_every, sampler, 0, backend, dtype, spread,
        init is None or spread is not None,
    )  # fmt: skip
    job.plan(0, min(n_steps, 1024))  # the schedule, too, is looked at before anything runs
    return job
