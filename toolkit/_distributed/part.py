"""A part of a run's chains: what a worker computes, as arrays with chains first that can be joined again."""

import dataclasses
import itertools
import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._engine.driver import Driver, Kept, RunsToEnd, SavesNothing, Watch, run_to_end
from .._engine.job import Job, make_job, needs_host_draws
from .._engine.run_options import RunOptions
from .._engine.run_record import Counts, RunRecord, Statistics, Trace
from .._output.run import Run
from ..accumulators import Accumulator
from ..accumulators.chain_tree import Nodes, Pooled, PooledPart, merge_nodes
from ..problem.starts import Keys
from ..samplers.sampler import Sampler
from . import store

Array = NDArray[Any]

STATE_BYTES = 64 << 20  # of the lanes and accumulators of the chains that advance together where results are pooled
FEWEST_CHAINS = 512


class Request(NamedTuple):
    """A run of which parts are computed.

    sampler: with its contour's partition. init: (dim,), a ``Spread`` or None; starts of each chain are given to their
    part. options: checked; a part has its own chains, starts and threads. pools: only pooled results are wanted, and
    none by chain. region: where draws are written; None: they are returned.
    """

    problem: Any
    sampler: Sampler
    n_chains: int
    init: Any
    options: RunOptions
    keep_draws: bool
    pools: bool
    region: store.Region | None = None


class Totals(NamedTuple):
    """Counts of all chains of a run together.

    diverged: chains. bounces, fallbacks, accepted_moves: (replica,). attempted, accepted: swaps, (pair,).
    """

    diverged: Array
    bounces: Array
    fallbacks: Array
    accepted_moves: Array
    attempted: Array
    accepted: Array
    round_trips: Array


class Part(NamedTuple):
    """Results of the chains first … last − 1.

    arrays: by name, chains first; empty where results are pooled. nodes: of each pooled accumulator, by its name.
    totals: None where results are by chain. gradients: evaluations. seconds: of sampling. made_with: as of a run.
    written: of draws that were written, as ``store.write`` returns it.
    """

    first: int
    last: int
    arrays: dict[str, Array]
    nodes: dict[str, Nodes]
    totals: Totals | None
    gradients: int
    seconds: float
    made_with: dict[str, str]
    written: tuple[bytes, bool] | None = None


def sampler_of_chains(sampler: Sampler, chains: Any) -> Sampler:
    """The sampler of these chains, a slice or a mask, where step sizes or temperatures may be those of each chain."""
    if sampler.n_chains is None:
        return sampler
    own = {name: values[chains] for name, values in sampler.arrays.items() if values.ndim == 2}
    return dataclasses.replace(sampler, **own)


def job_of(request: Request, first: int, last: int, threads: int, init: Any) -> Job:
    """The checked arguments of a part."""
    own = request.init if init is None else init
    options = dataclasses.replace(request.options, n_chains=last - first, init=own, threads=threads)
    sampler = sampler_of_chains(request.sampler, slice(first, last))
    return make_job(request.problem, sampler, options, keys=Keys(np.arange(first, last)))


def compute_part(request: Request, first: int, last: int, threads: int = 1, init: Array | None = None) -> Part:
    """The results of the chains first … last − 1 of a run, with the bits that they have in the whole run.

    init: (chain, replica, dim) of these chains; None: that of the request.
    """
    if not request.pools:
        run, states = run_chains(job_of(request, first, last, threads, init), request.keep_draws)
        arrays = arrays_of(run, states)
        return Part(first, last, arrays, {}, None, run.gradient_evaluations, run.elapsed, run.made_with)
    accumulators = request.options.accumulators
    written: tuple[bytes, bool] | None = None
    nodes: dict[str, Nodes] = {name: {} for name in accumulators}
    totals, gradients, seconds = None, 0, 0.0
    length = chains_together(request) if request.region is None else request.n_chains
    ends = [first, *range((first // length + 1) * length, last, length), last]  # whole nodes of the tree in between
    for begin, end in itertools.pairwise(ends):
        own = None if init is None else init[begin - first : end - first]
        job = job_of(request, begin, end, threads, own)
        parts: dict[str, Accumulator] = {
            name: PooledPart(a.accumulator, begin, request.n_chains) for name, a in accumulators.items()
        }
        run, _ = run_chains(dataclasses.replace(job, accumulators=parts), request.keep_draws)
        if request.region is not None:
            written = store.write(request.region, run, begin)
        for name, more in run.accumulated.items():
            nodes[name] = merge_nodes(accumulators[name], nodes[name], more, request.n_chains)
        totals = totals_of(run.counts) if totals is None else added(totals, totals_of(run.counts))
        gradients += run.gradient_evaluations
        seconds += run.elapsed
    return Part(first, last, {}, nodes, totals, gradients, seconds, run.made_with, written)


def chains_together(request: Request) -> int:
    """Chains that advance together where results are pooled: as many as their state fits into ``STATE_BYTES``."""
    dim, replicas = request.problem.target.dim, request.sampler.n_replicas
    each = state_bytes(request.options.accumulators, request.problem) + 8 * replicas * (
        5 * dim + request.problem.target.scratch_rows + 24
    )
    return int(max(FEWEST_CHAINS, 2 ** int(math.log2(max(1, STATE_BYTES // each)))))


def state_bytes(accumulators: dict[str, Any], problem: Any) -> int:
    """Bytes of the accumulators' states of one chain."""
    return sum(array.nbytes for a in accumulators.values() for array in a.start(problem, 1).values())


def numbers_of_chain(job: Job) -> float:
    """Numbers of a chain's results besides draws and trace: starts, counts, contour's tables, accumulators' states."""
    replicas, bins = job.sampler.n_replicas, job.sampler.tempers.energy_bins
    counts = replicas * (job.init.shape[2] + 7) + 4 + 3 * bins
    return float(counts + state_bytes(job.accumulators, job.problem) / 8)


def run_chains(job: Job, keep_draws: bool, watch: Watch | None = None) -> tuple[Run, dict[str, dict[str, Array]]]:
    """The record of a part's chains, and the states of their accumulators. watch: None for one that runs to its end."""
    kept = Kept(job, job.n_steps, keep_draws=keep_draws, has_draws=needs_host_draws(job, keep_draws))
    with Driver(job, False, Run, keep_draws=keep_draws) as driver:
        run_to_end(driver, kept, SavesNothing(), watch or RunsToEnd(job))
        return driver.result(*kept.filled(driver)), driver.accumulated


# Arrays with chains first, by name.

BY_CHAIN = ("init", "replica_draws", "energies", "replica_weights")


def arrays_of(run: RunRecord, states: dict[str, dict[str, Array]]) -> dict[str, Array]:
    """All arrays of a run with chains first, by name, with the states of its accumulators."""
    arrays = {name: getattr(run, name) for name in BY_CHAIN}
    arrays |= {f"counts.{name}": values for name, values in run.counts._asdict().items()}
    if run.statistics is not None:
        arrays |= {f"statistics.{name}": values for name, values in run.statistics._asdict().items()}
    if run.trace is not None:
        arrays |= {f"trace.{name}": values for name, values in run.trace.fields.items()}
        arrays["trace/theta"] = run.trace.theta
    for name, state in states.items():
        arrays |= {f"state.{name}\0{key}": values for key, values in state.items()}
    return {name: values for name, values in arrays.items() if values is not None}


def joined(job: Job, request: Request, arrays: dict[str, Array], chains: Any, **facts: Any) -> Run:
    """The run of these arrays, the inverse of ``arrays_of``, with the accumulators' results.

    job: of some of the chains. chains: which the arrays have of all, a slice or a mask. facts: other fields of a run.
    """
    trace = statistics = None
    if job.trace_every is not None:
        own = {name: arrays[f"trace.{name}"] for name in job.trace_fields}
        trace = Trace(job.traced(0, job.n_steps), own, arrays.get("trace/theta"))
    if job.keep_statistics:
        statistics = Statistics(*(arrays[f"statistics.{name}"] for name in Statistics._fields))
    accumulated = {}
    for name, accumulator in request.options.accumulators.items():
        prefix = f"state.{name}\0"
        state = {key.removeprefix(prefix): values for key, values in arrays.items() if key.startswith(prefix)}
        accumulated[name] = accumulator.result(state)
    return Run(
        problem=request.problem, sampler=sampler_of_chains(request.sampler, chains), seed=job.seed,
        n_steps=job.n_steps, total_steps=job.n_steps, burn_in=job.burn_in, thin=job.thin,
        steps=job.kept_steps() if request.keep_draws else np.zeros(0, np.int64),
        sampling_steps=job.n_steps - job.burn_in, statistics=statistics, trace=trace, accumulated=accumulated,
        counts=Counts(**{name: arrays[f"counts.{name}"] for name in Counts._fields}),
        init=arrays["init"], replica_draws=arrays["replica_draws"], energies=arrays.get("energies"),
        replica_weights=arrays.get("replica_weights"), **facts,
    )  # fmt: skip


def totals_of(counts: Counts) -> Totals:
    """The sums over all chains."""
    return Totals(
        np.asarray((counts.status > 0).any(axis=1).sum()),
        *(getattr(counts, name).sum(axis=0) for name in Totals._fields[1:]),
    )


def added(totals: Totals, more: Totals) -> Totals:
    """The sum of two totals."""
    return Totals(*(a + b for a, b in zip(totals, more, strict=True)))


def is_pooled(accumulators: dict[str, Any]) -> bool:
    """Whether there are accumulators, and all of them are pooled."""
    return bool(accumulators) and all(isinstance(accumulator, Pooled) for accumulator in accumulators.values())
