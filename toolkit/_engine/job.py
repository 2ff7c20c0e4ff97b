"""The checked arguments of one run, and what follows from them: chunks, kept steps, sizes of the outputs."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._compiler.disk_cache import available_threads
from ..accumulators import Accumulator, check_accumulators
from ..accumulators.interface import KernelAccumulator
from ..errors import (
    check_array,
    check_choice,
    check_count,
    check_flag,
    check_number,
    check_path,
    check_room,
    listed,
    names_removed_folder,
    optional,
    shown,
)
from ..maths.philox import MAX_CHAINS, MAX_STEPS
from ..problem.definition import Problem, Spread, as_problem
from ..problem.starts import Keys, draw_starts
from ..samplers.sampler import Sampler
from ..schedules import Factors, depends_on_length, evaluate
from .recording import N_TRACED, N_TRACED_COUPLING, STATISTICS, TRACED, TRACED_COUPLING
from .run_options import RunOptions
from .run_record import swept_arrays
from .state import Layout, Outputs

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

FEWEST_STEPS = 16  # in a chunk
MOST_FLOATS = 2**25  # in the draws of a chunk
PILOT_CHAINS = 32
JUDGED = "\0until"  # the accumulator by which a run without stored draws is judged; in no result, and no description


class Paths(NamedTuple):
    """The files of one checkpoint: the state, the previous state, the one being written, and the journal of draws."""

    state: str
    previous: str
    writing: str
    journal: str


@dataclass(frozen=True, eq=False)
class Job:
    """The arguments of ``sample`` or ``stream``, checked and completed."""

    problem: Problem
    sampler: Sampler
    n_steps: int
    seed: int
    burn_in: int
    thin: int
    init: Floats  # (chain, replica, dim)
    threads: int
    layout: Layout
    keep_replicas: bool
    keep_energies: bool
    keep_statistics: bool  # False without replica exchange and boundary
    trace_every: int | None
    accumulators: dict[str, Accumulator]
    checkpoint: Paths | None
    checkpoint_every: float  # seconds
    asked: Sampler  # as given; ``sampler`` may hold the partition found by a pilot
    pilot_gradients: int  # gradient evaluations of that pilot
    backend: str
    dtype: str  # of the engine's arithmetic; draws are always float64
    spread: Spread | None  # the spread that ``init`` was drawn from, if the caller gave one
    drew_init: bool
    on_divergence: str  # "stop" or "keep"
    keys: Keys
    is_part: bool  # of a larger run, which goes on where all chains of this part have diverged
    is_open: bool  # no n_steps was given, and a condition ends the run; ``n_steps`` is then the most there can be
    may_end_early: bool  # by a condition

    @property
    def pilot_init(self) -> Floats:
        """Starts (chain, replica, dim) of the pilot that finds contour's partition: the same for any number of chains.

        Those given; or, if starts are drawn, the first replica's starts of the first ``PILOT_CHAINS`` chains.
        """
        if not self.drew_init:
            return self.init
        return draw_starts(self.problem, self.spread, self.seed, Keys(np.arange(PILOT_CHAINS)), 1)

    @property
    def n_kept(self) -> int:
        """Replicas whose draws are kept."""
        return self.sampler.n_replicas if self.keep_replicas else self.sampler.n_target_replicas

    @property
    def records_energies(self) -> bool:
        """Whether the engine records the draws' energies, for the run or for an accumulator."""
        return self.keep_energies or any(accumulator.needs_energies for accumulator in self.accumulators.values())

    @property
    def trace_fields(self) -> list[str]:
        """What a trace records for every replica."""
        names = self.sampler.dynamics.memory_names(self.problem.target.dim)
        coupled = self.sampler.tempers.couples
        return [*TRACED, *(n for n in names if not n.startswith("_")), *(TRACED_COUPLING if coupled else ())]

    @property
    def n_trace_fields(self) -> int:
        """Their number, without the names, of which networks have many."""
        coupled = self.sampler.tempers.couples
        memory = self.sampler.dynamics.n_traced_memory(self.problem.target.dim)
        return N_TRACED + memory + coupled * N_TRACED_COUPLING

    @property
    def calls_python(self) -> bool:
        """Whether the target is a user's Python function."""
        return self.problem.target.callback is not None

    @property
    def chunk_length(self) -> int:
        """Steps of the first chunk."""
        if self.layout.chunk_steps is not None:
            return self.layout.chunk_steps
        if self.problem.target.lane_by_lane:
            return FEWEST_STEPS  # a step may take a second
        n_chains, n_replicas, dim = self.init.shape
        most = min(max(MOST_FLOATS * self.thin // (n_chains * self.n_kept * dim), FEWEST_STEPS), 2**16)
        # Each call of the engine costs some 20 µs per block besides its steps, so a chunk must not be too short.
        return int(np.clip(2**21 // (n_chains * n_replicas), min(128, most), most))

    def chunks(self, done: int = 0, end: int | None = None) -> Iterator[tuple[int, int]]:
        """First and last step (exclusive) of a stream's chunks from ``done`` to ``end``, all of the same length."""
        length, last_step = self.chunk_length, self.n_steps if end is None else end
        for first in range(done, last_step, length):
            yield first, min(first + length, last_step)

    def plan(self, first: int, last: int) -> tuple[Factors, Integers]:
        """The schedule's factors of a chunk's steps, and the steps whose draw is kept."""
        factors = evaluate(self.sampler.schedule, np.arange(first, last), self.n_steps)
        start = max(first, self.burn_in)
        due = np.arange(start + (self.burn_in - 1 - start) % self.thin, last, self.thin)
        return factors, due[factors.keep[due - first]]

    def kept_pieces(self, end: int | None = None) -> Iterator[Integers]:
        """The steps before ``end`` (None: all) whose draw is kept, in non-empty pieces.

        Raises ValueError where there are none; of a run without n_steps, among the first 2²⁰ that could be.
        """
        length, is_any_kept = 1 << 16, False
        last_step = end if end is not None else self.n_steps
        if self.is_open and end is None:
            last_step = min(last_step, self.burn_in + (self.thin << 20))
        for first in range(self.burn_in, last_step, length):
            steps = self.plan(first, min(first + length, last_step))[1]
            if steps.size:
                is_any_kept = True
                yield steps
        if not is_any_kept and end is None:
            raise ValueError(
                f"schedule {self.sampler.schedule.name} keeps none of the draws asked for by n_steps="
                f"{None if self.is_open else self.n_steps}, burn_in={self.burn_in}, thin={self.thin}"
            )

    def kept_steps(self, end: int | None = None) -> Integers:
        """The steps before ``end`` whose draw is kept; None: all, and ValueError where there are none."""
        if self.sampler.schedule.keeps_all:
            return np.arange(self.burn_in + self.thin - 1, self.n_steps if end is None else end, self.thin)
        return np.concatenate([np.zeros(0, np.int64), *self.kept_pieces(end)])

    def gradients(self, steps: int, leapfrogs: int = 0) -> int:
        """Gradient evaluations of ``steps`` steps, all chains and replicas, with those of the pilot.

        leapfrogs: of one replica in these steps, where trajectories have random lengths.
        """
        per_chain = steps * self.sampler.gradients_per_step
        if self.sampler.dynamics.random_length:
            per_chain += (leapfrogs - steps * self.sampler.dynamics.leapfrogs) * self.sampler.n_replicas
        return self.pilot_gradients + per_chain * len(self.init)

    def counts_before(self, step: int) -> tuple[int, int]:
        """The numbers of draws kept, and of times of the trace, before ``step``."""
        if self.sampler.schedule.keeps_all:
            kept = max(0, step - self.burn_in) // self.thin
        else:
            length = 1 << 20
            kept = sum(self.plan(first, min(first + length, step))[1].size for first in range(0, step, length))
        return kept, step // self.trace_every if self.trace_every else 0

    def traced(self, first: int, last: int) -> Integers:
        """The steps from ``first`` to ``last`` (exclusive) after which the trace is recorded."""
        every = self.trace_every
        return np.arange(first + (-first - 1) % every, last, every) if every else np.zeros(0, np.int64)

    def chunk_outputs(self, first: int, last: int, outputs: Outputs) -> Outputs:
        """Uninitialised outputs for the draws of one chunk, with the trace of ``outputs``."""
        own = self.empty_outputs(self.plan(first, last)[1].size, 0)
        return own._replace(trace=outputs.trace, theta=outputs.theta)

    def empty_outputs(self, n_draws: int, n_traced: int) -> Outputs:
        """Uninitialised arrays for ``n_draws`` draws with their energies and weights, and ``n_traced`` traced times."""
        n_chains, n_replicas, dim = self.init.shape
        shape, bins = (n_chains, self.n_kept), self.sampler.tempers.energy_bins
        return Outputs(
            draws=np.empty((*shape, n_draws, dim)),
            energies=np.empty((*shape, n_draws if self.records_energies else 0)),
            weights=np.empty((*shape, n_draws if self.sampler.is_weighted else 0)),
            statistics=np.empty((*shape, n_draws if self.keep_statistics else 0, len(STATISTICS)), np.int32),
            trace=np.empty((n_chains, n_replicas, n_traced, self.n_trace_fields)),
            theta=np.empty((n_chains, n_traced, bins)),
        )


LONGEST_NAME, LONGEST_PATH = 240, 2000  # limits of file systems, less the suffixes that are added


def check_checkpoint(path: Any, name: str = "checkpoint") -> Paths | None:
    """The files for a checkpoint at ``path``, the argument called ``name``; None for None.

    Raises TypeError or ValueError where it cannot be one.
    """
    if path is None:
        return None
    given = check_path(name, path, "None or the path of a file")
    if not given or "\0" in given:
        raise ValueError(f"{name} must be the path of a file, got {given!r}")
    if len(os.fsencode(given)) > LONGEST_PATH or len(os.fsencode(os.path.basename(given))) > LONGEST_NAME:
        raise ValueError(
            f"{name} must be the path of a file, of at most {LONGEST_NAME} bytes in its name and {LONGEST_PATH} in "
            f"all, got {given!r:.80}…"
        )
    with names_removed_folder():
        resolved = os.path.realpath(given)
    if not os.path.isdir(os.path.dirname(resolved)):
        raise ValueError(f"{name} must lie in a folder that exists, got {given!r}, and there is no such folder")
    paths = Paths(resolved, f"{resolved}.previous", f"{resolved}.writing", f"{resolved}.draws")
    for file in paths:
        if os.path.isdir(given) or given.endswith(os.sep) or (os.path.lexists(file) and not os.path.isfile(file)):
            raise ValueError(f"{name} must be the path of a file, got {given!r}, and {file!r} is none")
    return paths


def names_on_device(job: Job) -> list[str]:
    """Names of the accumulators that are updated on the device."""
    if job.backend == "cpu":
        return []
    return [name for name, accumulator in job.accumulators.items() if isinstance(accumulator, KernelAccumulator)]


def needs_host_draws(job: Job, keep_draws: bool) -> bool:
    """Whether draws are copied to the host: to be kept, or for an accumulator there."""
    return keep_draws or job.backend == "cpu" or len(names_on_device(job)) < len(job.accumulators)


# Memory.

SAMPLED_STEPS = 4096  # at which a schedule is evaluated to estimate how many it keeps
GOLDEN = 0.6180339887498949  # its multiples modulo 1 are evenly spread, whatever the period of the schedule


def check_footprint(
    job: Job, *, keep_draws: bool, keep_trace: bool, has_draws: bool = True, end: int | None = None
) -> None:
    """Raise ValueError where the draws or the trace of a run, or of a chunk if not kept, do not fit into memory.

    has_draws: whether draws are copied to the host. end: the step before which the run ends; None: ``job.n_steps``.
    """
    chains, replicas, dim = job.init.shape
    n_steps = job.n_steps if end is None else end
    chunk = min(job.chunk_length, n_steps)
    numbers = dim + job.records_energies + job.sampler.is_weighted + 0.5 * len(STATISTICS) * job.keep_statistics
    draws = expected_draws(job, n_steps) if keep_draws else has_draws * -(-chunk // job.thin)
    got = f"{n_steps} with n_chains={chains}, thin={job.thin} and layout.chunk_steps={job.layout.chunk_steps}"
    hint = "; give a larger thin, or accumulators with keep_draws=False, or use stream"
    check_room("n_steps", got, 8.0 * draws * (1 + chains * job.n_kept * numbers) + 40.0 * chunk, hint=hint)
    if job.trace_every is not None:
        bins = job.sampler.tempers.energy_bins
        times = (n_steps if keep_trace else chunk) // job.trace_every
        got = f"{job.trace_every} with n_steps={n_steps} and n_chains={chains}"
        check_room("trace_every", got, 8.0 * times * (1 + chains * (replicas * job.n_trace_fields + bins)))


def expected_draws(job: Job, n_steps: int) -> float:
    """The draws of each chain in ``n_steps`` steps; an estimate if the schedule does not keep all steps."""
    most = max(0, n_steps - job.burn_in) // job.thin
    if job.sampler.schedule.keeps_all or most < SAMPLED_STEPS:
        return most
    steps = np.unique((np.arange(SAMPLED_STEPS) * GOLDEN % 1.0 * n_steps).astype(np.int64))
    kept = job.sampler.schedule.factors(steps, job.n_steps).keep
    return most * float(np.mean(kept))


# Checks: combinations of parts, backend, starts.


def check_cuda() -> None:
    """Raise ImportError without numba-cuda, CudaError without a GPU that can be used."""
    optional("numba_cuda", "cuda")
    from .cuda.device import check_available

    check_available()


def check_backend(backend: Any, problem: Problem) -> None:
    """Raise ValueError for a backend that is unknown or unable to run it; ImportError or CudaError without CUDA."""
    check_choice("backend", backend, ["cpu", "cuda"])
    if backend == "cpu":
        return
    if problem.target.callback is not None:
        raise ValueError(
            f"backend must be 'cpu' for {problem.name!r}, a Python function of arrays that no GPU can call; got 'cuda'"
        )
    if problem.target.lane_by_lane:
        raise ValueError(f"backend must be 'cpu' for {problem.name!r}, which is made for CPUs alone; got 'cuda'")
    check_cuda()


def check_dtype(dtype: Any, backend: str, problem: Problem, sampler: Sampler) -> None:
    """Raise ValueError for a dtype that is unknown or that the backend or a part does not support."""
    check_choice("dtype", dtype, ["float64", "float32"])
    if dtype == "float64":
        return
    if backend != "cuda":
        raise ValueError(
            f"dtype must be 'float64' for backend {shown(backend)}, got {shown(dtype)}; float32 needs backend='cuda'"
        )
    if sampler.dynamics.needs_curvature:
        raise ValueError(
            f"dtype must be 'float64' for dynamics {sampler.dynamics.name!r} with their drift correction, which is a "
            "difference of two gradients a thousandth of a step apart; got 'float32'"
        )
    from .cuda.float32 import to_singles

    numbers = {
        f"the parameters of {problem.name!r}": () if problem.target.stochastic else problem.target.parameters,
        f"the numbers of {sampler.dynamics.name!r}": sampler.dynamics.parameters,
        "step sizes": sampler.step_sizes,
        "temperatures": sampler.temperatures,
        "noises": (sampler.gradient_noise, sampler.energy_noise),
        "the boundary's coefficient": (sampler.boundary.coefficient,),
        "the squares of the scale": np.square(np.ravel(sampler.scale or ())),
    }
    for name, values in numbers.items():
        to_singles(values, name)


def check_lanes(problem: Problem, sampler: Sampler, n_chains: int) -> None:
    """Raise ValueError where the chains' state does not fit into memory."""
    dim, bins = problem.target.dim, sampler.tempers.energy_bins
    lane = 4 * dim + problem.target.scratch_rows + 8  # position, gradient, noise, start, and more
    check_room("n_chains", n_chains, 8.0 * n_chains * (lane * sampler.n_replicas + 2 * bins))


def check_scale_size(problem: Problem, sampler: Sampler) -> None:
    """Raise ValueError where the sampler's scale has not one number for every coordinate of the problem."""
    dim = problem.target.dim
    if sampler.scale is not None and len(sampler.scale) != dim:
        raise ValueError(
            f"scale of {sampler.name!r} must have shape (dim,) = ({dim},) on {problem.name!r}, one number for every "
            f"coordinate, or (dim, dim), got {np.shape(sampler.scale)}"
        )


def check_penalty(problem: Problem, sampler: Sampler) -> None:
    """Raise ValueError for a penalty without a nearest point, or as printed on a domain that excludes the origin."""
    kind, domain = sampler.boundary.kind, problem.domain
    if kind == "penalise" and domain is not None and domain.nearest is None:
        raise ValueError(
            f"boundary must not be 'penalise' in {problem.name!r}: of its domain the nearest point, where a penalty "
            "pulls to, is not known; reflect or reject instead"
        )
    if kind == "penalise_as_printed" and not problem.contains(np.zeros((1, problem.target.dim)))[0]:
        raise ValueError(
            f"boundary must not be 'penalise_as_printed' in {problem.name!r}, which does not hold the origin, where it "
            "pulls to; use boundaries.penalise(...)"
        )


def check_minibatches(problem: Problem, sampler: Sampler) -> None:
    """Raise ValueError for a target that draws minibatches with parts that need its exact energy."""
    if not problem.target.stochastic:
        return
    if sampler.dynamics.leapfrogs > 0:
        raise ValueError(
            f"dynamics {sampler.dynamics.name!r} need exact energies for their Metropolis test, and {problem.name!r} "
            "draws minibatches"
        )
    sampler.tempers.check_minibatches(problem.name)


def check_start(problem: Problem, sampler: Sampler, init: Any, seed: int, keys: Keys) -> Floats:
    """``init`` as (chain, replica, dim), checked to be inside with finite energy and gradient; drawn if not given."""
    if init is None or isinstance(init, Spread):
        return draw_starts(problem, init, seed, keys, sampler.n_replicas, shared=sampler.n_target_replicas > 1)
    shape = (len(keys.chains), sampler.n_replicas, problem.target.dim)
    given = check_array("init", init)
    if given.shape not in (shape[2:], (shape[0], shape[2]), shape):
        raise ValueError(
            f"init must have shape (dim,) = {shape[2:]}, (n_chains, dim) = {(shape[0], shape[2])} or "
            f"(n_chains, n_replicas, dim) = {shape}, got {given.shape}"
        )
    if given.ndim == 2:
        given = given[:, None]
    start = np.array(np.broadcast_to(given, shape))
    points = start.reshape(-1, shape[2])
    inside = problem.contains(points)
    if not inside.all():
        chain, replica = divmod(int(np.argmin(inside)), shape[1])
        raise ValueError(
            f"init must lie inside the domain {problem.name!r}, got {listed(start[chain, replica])} for chain "
            f"{chain}, replica {replica}"
        )
    energy, gradient = problem.target.evaluate(points)
    if not np.isfinite(energy).all():
        chain, replica = divmod(int(np.argmin(np.isfinite(energy))), shape[1])
        raise ValueError(
            f"init must have a finite energy, got energy {energy[chain * shape[1] + replica]} at "
            f"{listed(start[chain, replica])} for chain {chain}, replica {replica}"
        )
    is_finite = np.isfinite(gradient).all(axis=1)
    if not is_finite.all():
        chain, replica = divmod(int(np.argmin(is_finite)), shape[1])
        lane = chain * shape[1] + replica
        raise ValueError(
            f"init must have a finite gradient, got gradient {listed(gradient[lane])} with energy {energy[lane]:.6g} "
            f"at {listed(start[chain, replica])} for chain {chain}, replica {replica}; an entry that is always nan "
            "is one that the target does not fill"
        )
    coincide = (start == start[:, :1]).all(axis=(1, 2))
    if sampler.tempers.comes_to_rest and shape[1] > 1 and coincide.any():
        raise ValueError(
            "init must give the particles of a chain different places, which those at one place never leave; got all "
            f"{shape[1]} of chain {int(np.argmax(coincide))} at {listed(start[int(np.argmax(coincide)), 0])}; give "
            f"shape (n_chains, n_replicas, dim) = {shape}"
        )
    return start


def check_replacement(
    job: Job, problem: Any, positions: Floats, is_alive: NDArray[np.bool_], *, checks_energies: bool
) -> Problem:
    """``problem``, checked to be one on which the job's chains can go on from ``positions`` (chain, replica, dim).

    is_alive: (chain, replica), False for those that have diverged, which stay where they are. Raises TypeError or
    ValueError naming the problem.
    """
    other: Problem = as_problem(problem)
    present = job.problem
    if other.target.dim != present.target.dim:
        raise ValueError(
            f"problem must have the chains' dimension {present.target.dim}, got {other.target.dim} of {other.name!r}"
        )
    if (other.domain is None) != (present.domain is None):
        has, lacks = ("a", "none") if present.domain is not None else ("no", "one")
        raise ValueError(f"problem must have {has} domain, as {present.name!r}, and {other.name!r} has {lacks}")
    check_minibatches(other, job.sampler)
    check_backend(job.backend, other)
    check_penalty(other, job.sampler)
    if other.target.scratch_rows > present.target.scratch_rows:
        check_lanes(other, job.sampler, len(job.init))
    points = positions.reshape(-1, present.target.dim)
    energy, gradient = np.zeros(len(points)), np.zeros_like(points)
    if checks_energies:
        energy, gradient = other.target.evaluate(points)
    walls_hold = job.sampler.boundary.kind in ("reflect", "reject")  # else chains may be outside
    for what, good in (
        ("hold the chains' positions in its domain", other.contains(points) | (not walls_hold)),
        ("have a finite energy at the chains' positions", np.isfinite(energy)),
        ("have a finite gradient at the chains' positions", np.isfinite(gradient).all(axis=1)),
    ):
        bad = ~good.reshape(is_alive.shape) & is_alive
        if bad.any():
            chain, replica = (int(i) for i in np.argwhere(bad)[0])
            raise ValueError(
                f"problem must {what}, and {other.name!r} does not at {listed(positions[chain, replica])}, where "
                f"chain {chain}, replica {replica} is ({int(bad.sum())} of {bad.size} replicas); the chains go on with "
                f"{present.name!r}"
            )
    return other


def default_on_divergence(sampler: Sampler) -> str:
    """The value for None: "keep" in a sweep, whose chains have step sizes or temperatures of their own; else "stop"."""
    return "keep" if swept_arrays(sampler) else "stop"


def make_job(
    problem: Any, sampler: Any, options: RunOptions, *, keys: Keys | None = None, ends_when_asked: bool = False
) -> Job:
    """Check all arguments of a run, documented in ``sample``. A contour may still lack its partition.

    keys: of a part of a larger run. ends_when_asked: there is neither n_steps nor a condition that ends the run.
    """
    problem = as_problem(problem)
    if not isinstance(sampler, Sampler):
        raise TypeError(f"sampler must be a Sampler, got {shown(sampler)} of type {type(sampler).__name__}")
    if sampler.boundary.kind != "ignore" and problem.domain is None:
        raise ValueError(
            f"boundary {shown(sampler.boundary.kind)} needs a problem with a domain, and {problem.name!r} has none; "
            "give constrained(target, shape), or boundary=boundaries.ignore()"
        )
    check_scale_size(problem, sampler)
    check_minibatches(problem, sampler)
    check_backend(options.backend, problem)
    check_dtype(options.dtype, options.backend, problem, sampler)
    may_end_early = options.until is not None or ends_when_asked
    n_steps = options.n_steps
    is_open = n_steps is None and may_end_early
    if is_open:
        if depends_on_length(sampler.schedule):
            raise ValueError(
                f"n_steps must be given with schedule {sampler.schedule.name}, which may depend on it; got None"
            )
        n_steps = MAX_STEPS - 1
    n_steps = check_count("n_steps", n_steps, at_least=1, below=MAX_STEPS)
    n_chains = check_count("n_chains", options.n_chains, at_least=1, below=MAX_CHAINS)
    burn_in = check_count("burn_in", options.burn_in, at_least=0, below=n_steps)
    thin = check_count("thin", options.thin, at_least=1, below=n_steps - burn_in + 1)
    seed = check_count("seed", options.seed, at_least=0, below=2**64)
    threads = available_threads() if options.threads is None else check_count("threads", options.threads, at_least=1)
    layout, trace_every = options.layout, options.trace_every
    if not isinstance(layout, Layout):
        raise TypeError(f"layout must be a Layout, got {shown(layout)} of type {type(layout).__name__}")
    if layout.lanes is not None:
        check_count("layout.lanes", layout.lanes, at_least=1)
    if layout.chunk_steps is not None:
        check_count("layout.chunk_steps", layout.chunk_steps, at_least=1)
    if layout.fused is not None:
        check_flag("layout.fused", layout.fused, or_none=True)
    keep_replicas = check_flag("keep_replicas", options.keep_replicas)
    keep_energies = check_flag("keep_energies", options.keep_energies)
    has_statistics = sampler.tempers.swaps or sampler.boundary.kind in ("reflect", "reject")
    keep_statistics = check_flag("keep_statistics", options.keep_statistics) and has_statistics
    accumulators = check_accumulators(options.accumulators)
    checkpoint_every = check_number("checkpoint_every", options.checkpoint_every, above=0.0)
    paths = check_checkpoint(options.checkpoint)
    if trace_every is not None:
        trace_every = check_count("trace_every", trace_every, at_least=1, below=n_steps + 1)
    if sampler.n_chains not in (None, n_chains):
        raise ValueError(
            f"n_chains must be {sampler.n_chains}, for which the sampler's step sizes or temperatures are given, got "
            f"{n_chains}"
        )
    on_divergence = default_on_divergence(sampler) if options.on_divergence is None else options.on_divergence
    check_choice("on_divergence", on_divergence, ["stop", "keep"])
    sampler.tempers.check_length(n_steps, burn_in)
    check_penalty(problem, sampler)
    check_lanes(problem, sampler, n_chains)
    is_part = keys is not None
    keys = Keys(np.arange(n_chains)) if keys is None else keys
    spread = options.init if isinstance(options.init, Spread) else None
    job = Job(
        problem=problem, sampler=sampler, n_steps=n_steps, seed=seed, burn_in=burn_in, thin=thin,
        init=check_start(problem, sampler, options.init, seed, keys), threads=threads, layout=layout,
        keep_replicas=keep_replicas, keep_energies=keep_energies, keep_statistics=keep_statistics,
        trace_every=trace_every, accumulators=accumulators, checkpoint=paths, checkpoint_every=checkpoint_every,
        asked=sampler, pilot_gradients=0, backend=options.backend, dtype=options.dtype, spread=spread,
        drew_init=options.init is None or spread is not None, on_divergence=on_divergence, keys=keys, is_part=is_part,
        is_open=is_open, may_end_early=may_end_early,
    )  # fmt: skip
    job.plan(0, min(n_steps, 1024))  # so that a schedule's errors are raised before anything runs
    return job
