"""``sample`` and ``stream``, the public face of a run."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ._engine.job import make_job
from ._engine.run_options import RunOptions
from ._engine.state import Layout
from ._output.execution import run_sampler, stream_sampler
from ._output.run import Run
from .accumulators import Accumulator
from .diagnostics.stopping import Condition
from .errors import shown
from .problem.definition import Problem, Target, as_problem
from .samplers.sampler import Sampler

if TYPE_CHECKING:
    from ._output.online import Chains
    from .tuning import Tuned


def sample(
    problem: Problem | Target,
    sampler: "Sampler | Tuned | None" = None,
    *,
    n_steps: int | None = None,
    seed: int,
    n_chains: int | None = None,
    burn_in: int | None = None,
    thin: int | None = None,
    init: Any = None,
    backend: str = "cpu",
    dtype: str = "float64",
    threads: int | None = None,
    progress: bool | None = None,
    keep_replicas: bool = False,
    keep_draws: bool = True,
    keep_energies: bool = False,
    keep_statistics: bool = True,
    trace_every: int | None = None,
    accumulators: Mapping[str, Accumulator] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 60.0,
    layout: Layout = Layout(),
    until: Condition | None = None,
    on_divergence: str | None = None,
    client: Any = None,
    chains_per_task: int | None = None,
    save: str | os.PathLike[str] | None = None,
) -> Run:
    """Run ``sampler`` on ``problem`` and return its draws.

    problem: a Problem or a Target. n_steps: steps in all, burn-in included; each is one gradient evaluation for
    every replica of every chain. seed: 0 to 2⁶⁴ − 1, all bits count; the same seed gives the same bits for any
    number of threads, other chains or layout. Every ``thin``-th step after ``burn_in`` is kept, where the schedule
    allows. init: start of shape (dim,), (n_chains, dim) or (n_chains, n_replicas, dim); or a ``Spread``, in which each
    chain and replica has a start of its own, drawn by the seed; None: in the domain, in the scale that the target
    states, or else within ±2 (docs/starts.md); a point without a finite energy is drawn anew, up to 100 times.
    backend: "cpu", or "cuda" for an NVIDIA GPU (docs/cuda.md). dtype: "float32" (backend "cuda" alone) computes with
    24 bits, which the run's arrays hold as float64. threads: None for all processors. progress: a bar on stderr; None:
    on a terminal, and in a notebook after two seconds; where one of them shows it, a line says so when compiling takes
    longer than that. keep_replicas: keep draws of all temperatures. keep_energies: keep the draws' energies.
    keep_statistics: keep ``run.statistics``, where there is anything to count. trace_every: also record ``run.trace``,
    what the sampler knows of itself (energies, thermostats, θ, walkers, …), after every so many steps, burn-in
    included. accumulators: name → what to gather from the draws (``accumulators``), which ``run.accumulated`` holds.
    keep_draws=False keeps none of them: memory does not grow with n_steps, but for a trace. checkpoint: a file in which
    the run is saved every ``checkpoint_every`` > 0 seconds of sampling, and at its end; called again the run goes on
    from there (docs/resume.md), with more n_steps too, and gives the bits of one that was never stopped.
    until: a condition of ``toolkit.stopping``, such as ``stopping.ess(1000) | stopping.seconds(60)``, at which the run
    ends, with the bits of one of that n_steps; ``run.stopping`` says what was found. n_steps is then the most steps
    there may be; None: as many as fit into memory, where the schedule does not depend on n_steps (docs/results.md).
    on_divergence: "stop" ends the run with a DivergenceError where a replica diverges; "keep" freezes that replica, its
    further draws are nan, and the others go on, until none is left; ``run.diverged`` says which chains. None: "keep" in
    a sweep, whose chains have step sizes or temperatures of their own, else "stop".
    client: a ``dask.distributed.Client``: chains are divided among its workers, with the bits of one machine, whatever
    the workers, their number and their losses (docs/cluster.md; extra ``cluster``). threads is then that of each task;
    None: 1. chains_per_task: None for as many as take some seconds. With keep_draws=False and pooled accumulators alone
    the result is a ``PooledRun``, which does not grow with n_chains. until, and a sampler of None without n_steps,
    are for one machine. checkpoint is then a folder. save: where ``run.save`` writes the run at its end; with a client
    a path that ends in .zarr, to which workers write their draws, and the result is a ``StoredRun``.

    Ctrl-C ends the run after the chunk under way and returns the draws so far, with an ``InterruptedWarning``; a second
    one does not wait, unless for a GPU. A run with a checkpoint is saved first, as far as it has come in whole chunks.
    Raises TypeError or ValueError before anything runs, naming the argument, its value and what is allowed; ImportError
    or CudaError where there is no numba-cuda or no GPU for backend "cuda"; CudaWarning where its bits may not be a
    CPU's; CheckpointError where a checkpoint is another run's, in use or damaged beyond use; DivergenceError, with the
    run so far attached, where a position or energy stops being finite; what a target made by ``from_callable`` raises,
    with the run so far as its attribute ``run``.

    >>> from targets import mixtures
    >>> from toolkit import sample, samplers
    >>> run = sample(mixtures.cosine25(), samplers.sgld(0.01), n_steps=1_000, burn_in=200, n_chains=4, seed=0)
    >>> run.draws.shape  # (chain, draw, dim)
    (4, 800, 2)
    """
    options = RunOptions(
        n_steps=n_steps, seed=seed, n_chains=n_chains, burn_in=burn_in, thin=thin, init=init, backend=backend,
        dtype=dtype, threads=threads, progress=progress, keep_replicas=keep_replicas, keep_draws=keep_draws,
        keep_energies=keep_energies, keep_statistics=keep_statistics, trace_every=trace_every,
        accumulators=accumulators, checkpoint=checkpoint, checkpoint_every=checkpoint_every, layout=layout,
        until=until, on_divergence=on_divergence,
    )  # fmt: skip
    if client is not None:
        distributed: Run = sample_distributed(problem, sampler, options, client, chains_per_task, save)
        return distributed
    if chains_per_task is not None:
        raise ValueError(f"chains_per_task must be None without a client, got {shown(chains_per_task)}")
    if save is not None:
        from ._output.storage.run_file import check_save

        check_save(save)
    if isinstance(sampler, Sampler):
        run = run_sampler(problem, sampler, options.completed())
    else:
        from .tuning.attempts import run_tuned

        run = run_tuned(problem, sampler, options)
    if save is not None:
        run.save(save)
    return run


def sample_distributed(
    problem: Any, sampler: Any, options: RunOptions, client: Any, chains_per_task: Any, save: Any
) -> Any:
    """``sample`` with a client: a Run, PooledRun or StoredRun."""
    from ._distributed.distributed_run import run_distributed

    if options.until is not None:
        raise ValueError(
            f"until must be None with a client, whose tasks do not see each other's chains, got {shown(options.until)}"
        )
    if options.n_steps is None:
        raise ValueError("n_steps must be given with a client, got None")
    given = {"client": client, "chains_per_task": chains_per_task, "save": save}
    if isinstance(sampler, Sampler):
        return run_distributed(problem, sampler, options.completed(), **given)
    from .tuning.attempts import sampler_and_options, tune_once
    from .tuning.tuned_run import with_tuning

    if sampler is None:
        sampler = tune_once(problem, options, init=options.init)
        options = replace(options, init=None)
    run = run_distributed(problem, *sampler_and_options(problem, sampler, options), **given)
    return with_tuning(run, sampler) if isinstance(run, Run) else run


def stream(
    problem: Problem | Target,
    sampler: "Sampler | Tuned | None" = None,
    *,
    n_steps: int | None = None,
    seed: int,
    n_chains: int | None = None,
    burn_in: int | None = None,
    thin: int | None = None,
    init: Any = None,
    backend: str = "cpu",
    dtype: str = "float64",
    threads: int | None = None,
    progress: bool | None = None,
    keep_replicas: bool = False,
    keep_energies: bool = False,
    keep_statistics: bool = True,
    trace_every: int | None = None,
    accumulators: Mapping[str, Accumulator] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 60.0,
    layout: Layout = Layout(),
    until: Condition | None = None,
    on_divergence: str | None = None,
) -> Iterator[Run]:
    """As ``sample``, but yield a ``Run`` for each chunk of steps, so that memory does not grow with ``n_steps``.

    A chunk's draws are its own; its rates and counts are those since the start. Chunks of burn-in have no draws.
    Joined along the draws, they equal ``sample``'s bit for bit. Checks its arguments when called, not when iterated.
    With a checkpoint, what is saved counts a chunk as taken once the next is asked for: a stream that is called again
    goes on after the last chunk saved as taken, and one that had come to its end yields a single run without draws.
    With ``until`` chunks end at looks, ESS, R-hat and MCSE are those of the chains' means (n_chains ≥ 4), and the last
    chunk has ``run.stopping``.
    """
    options = RunOptions(
        n_steps=n_steps, seed=seed, n_chains=n_chains, burn_in=burn_in, thin=thin, init=init, backend=backend,
        dtype=dtype, threads=threads, progress=progress, keep_replicas=keep_replicas, keep_draws=False,
        keep_energies=keep_energies, keep_statistics=keep_statistics, trace_every=trace_every,
        accumulators=accumulators, checkpoint=checkpoint, checkpoint_every=checkpoint_every, layout=layout,
        until=until, on_divergence=on_divergence,
    )  # fmt: skip
    if isinstance(sampler, Sampler):
        return stream_sampler(problem, sampler, options.completed())
    from .tuning.attempts import check_call, sampler_and_options, tune_once

    if sampler is None:
        problem = as_problem(problem)
        check_call(problem, options)
        sampler = tune_once(problem, options, init=init)
        options = replace(options, init=None)
    return stream_sampler(problem, *sampler_and_options(problem, sampler, options))


def chains(
    problem: Problem | Target,
    sampler: Sampler,
    *,
    n_chains: int = 1,
    seed: int,
    n_steps: int | None = None,
    init: Any = None,
    burn_in: int = 0,
    backend: str = "cpu",
    threads: int | None = None,
    keep_replicas: bool = False,
    keep_energies: bool = False,
    checkpoint: str | os.PathLike[str] | None = None,
    layout: Layout = Layout(),
    on_divergence: str | None = None,
) -> "Chains":
    """Hold the chains of ``sampler`` on ``problem``, to advance them a few steps at a time and replace the problem.

        with toolkit.chains(problem, sampler, n_chains=4, seed=0) as c:
            c.advance(16)
            c.positions  # (chain, replica, dim)
            c.replace(other_problem)
            run = c.advance(1000, thin=10)  # a Run of the draws of these steps

    Arguments are those of ``sample``. The bits are too, for every division of the steps into calls, as long as nothing
    is replaced. n_steps: the most there may be, which a schedule that depends on it needs; None: no end. burn_in:
    steps from the start, in which what adapts does so and no draws are kept. keep_replicas, keep_energies: of the runs
    that ``advance`` returns. checkpoint: a file in which the chains are saved at the end of the ``with``, with the
    problem that they have then; where it is there, they go on from it (docs/online.md).
    Raises as ``sample``; CheckpointError also where the checkpoint's problem at its last save is another.
    """
    options = RunOptions(
        n_steps=n_steps, seed=seed, n_chains=n_chains, burn_in=burn_in, init=init, backend=backend, threads=threads,
        keep_replicas=keep_replicas, keep_energies=keep_energies, checkpoint=checkpoint, layout=layout,
        on_divergence=on_divergence,
    )  # fmt: skip
    from ._output.online import Chains

    return Chains(make_job(problem, sampler, options, ends_when_asked=n_steps is None))
