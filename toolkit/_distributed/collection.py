"""Parts joined again: a ``Run`` of their chains, or a ``PooledRun``."""

import bisect
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._engine.job import Job
from .._output.run import Run
from ..accumulators.chain_tree import Nodes, merge_nodes, result_of_nodes
from ..problem.definition import Problem
from ..samplers.sampler import Sampler
from .part import Array, Part, Request, Totals, added, joined

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class PooledRun:
    """What is kept of a run of very many chains: pooled results and counts, and nothing of a single chain.

    n_chains: of which there are results; all that were asked for, unless ``interrupted``. n_diverged: chains of which a
    replica has diverged. acceptance: share of moves that are accepted, (replica,); nan without a Metropolis test.
    swap_rates: (pair,). reflections, reflection_fallbacks: (replica,), as in ``Run``, of all chains. accumulated: each
    pooled accumulator's result. gradient_evaluations, elapsed, made_with: as in ``Run``.
    """

    problem: Problem
    sampler: Sampler
    seed: int
    n_chains: int
    n_steps: int
    burn_in: int
    thin: int
    n_diverged: int
    acceptance: Array
    swap_rates: Array
    round_trips: int
    reflections: Array
    reflection_fallbacks: Array
    accumulated: dict[str, Any]
    gradient_evaluations: int
    elapsed: float
    interrupted: bool = False
    made_with: dict[str, str] = field(default_factory=dict)

    @property
    def warnings(self) -> list[str]:
        """Warnings about the run, a sentence each; empty where there are none."""
        found = []
        if self.interrupted:
            found.append(f"The run was interrupted, and has the results of {self.n_chains:,} chains alone.")
        if self.n_diverged:
            found.append(
                f"{self.n_diverged:,} of {self.n_chains:,} chains diverged, and are left out of what is pooled where "
                "they have fewer draws: make the step size smaller."
            )
        return found

    def __repr__(self) -> str:
        return (
            f"PooledRun({self.sampler.name} on {self.problem.name}: {self.n_chains:,} chains × {self.n_steps:,} steps, "
            f"seed={self.seed}, {self.elapsed:.1f} s{', interrupted' if self.interrupted else ''}; "
            f"{', '.join(self.accumulated)})"
        )


class ChainSet:
    """Some of the chains of a run of ``n_chains``, in memory by the number of stretches that they form."""

    def __init__(self, n_chains: int) -> None:
        self._n_chains = n_chains
        self._ends: list[int] = []  # first and last (exclusive) of each stretch, in order

    def __len__(self) -> int:
        """The number of chains of the run."""
        return self._n_chains

    def add(self, first: int, last: int) -> None:
        """Add the chains first … last − 1. Raises ValueError where the run has no such chains."""
        if not 0 <= first < last <= self._n_chains:
            raise ValueError(f"chains {first} to {last} of {self._n_chains}")
        begin, end = bisect.bisect_left(self._ends, first), bisect.bisect_right(self._ends, last)
        self._ends[begin:end] = [first] * (begin % 2 == 0) + [last] * (end % 2 == 0)  # odd: within a stretch

    def any(self) -> bool:
        """Whether there are some."""
        return bool(self._ends)

    def all(self) -> bool:
        """Whether there are all."""
        return self._ends == [0, self._n_chains]

    def count(self) -> int:
        """How many there are."""
        return sum(self._ends[1::2]) - sum(self._ends[::2])

    def stretches(self) -> Integers:
        """First and last (exclusive) of each stretch, (stretch, 2), in order."""
        return np.array(self._ends, np.int64).reshape(-1, 2)

    def missing(self) -> list[tuple[int, int]]:
        """First and last (exclusive) of each stretch of other chains, in order."""
        ends = [0, *self._ends, self._n_chains]
        return [(first, last) for first, last in zip(ends[::2], ends[1::2], strict=True) if first < last]

    def mask(self) -> NDArray[np.bool_]:
        """Whether each chain is one of them, (n_chains,)."""
        found = np.zeros(self._n_chains, np.bool_)
        for first, last in self.stretches():
            found[first:last] = True
        return found


class ByChain:
    """Arrays of all chains, filled as parts come. job: of some of the chains."""

    kept = "results by chain"  # in a checkpoint

    def __init__(self, job: Job, request: Request) -> None:
        self._job, self._request, self.done = job, request, ChainSet(request.n_chains)
        self._arrays: dict[str, Array] = {}
        self._made_with: dict[str, str] = {}
        self._gradients = 0

    def add(self, part: Part) -> None:
        """Take the part's results."""
        for name, values in part.arrays.items():
            if len(values) != part.last - part.first:  # empty, of something that the run does not have
                self._arrays[name] = values
                continue
            if name not in self._arrays:
                self._arrays[name] = np.empty((self._request.n_chains, *values.shape[1:]), values.dtype)
            self._arrays[name][part.first : part.last] = values
        self._made_with = self._made_with or part.made_with
        self._gradients += part.gradients
        self.done.add(part.first, part.last)

    def result(self, *, pilot_gradients: int, elapsed: float, interrupted: bool = False) -> Run | None:
        """The run of the chains that are done; None where there are none."""
        if not self.done.any():
            return None
        chains: Any = slice(None) if self.done.all() else self.done.mask()
        arrays = {
            name: values[chains] if len(values) == len(self.done) else values for name, values in self._arrays.items()
        }
        return joined(
            self._job, self._request, arrays, chains, gradient_evaluations=self._gradients + pilot_gradients,
            elapsed=elapsed, interrupted=interrupted, made_with=self._made_with,
        )  # fmt: skip


class PooledResults:
    """Pooled results of all chains, merged as parts come. job: of some of the chains."""

    kept = "pooled results"  # in a checkpoint

    def __init__(self, job: Job, request: Request) -> None:
        self._job, self._request, self.done = job, request, ChainSet(request.n_chains)
        self._accumulators = request.options.accumulators
        self._nodes: dict[str, Nodes] = {name: {} for name in self._accumulators}
        self._totals: Totals | None = None
        self._made_with: dict[str, str] = {}
        self._gradients = 0

    def add(self, part: Part) -> None:
        """Take the part's results."""
        assert part.totals is not None
        for name, more in part.nodes.items():
            self._nodes[name] = merge_nodes(self._accumulators[name], self._nodes[name], more, len(self.done))
        self._totals = part.totals if self._totals is None else added(self._totals, part.totals)
        self._made_with = self._made_with or part.made_with
        self._gradients += part.gradients
        self.done.add(part.first, part.last)

    def stored(self) -> tuple[Any, dict[str, Array]]:
        """What there is so far, as JSON and arrays by name."""
        assert self._totals is not None
        nodes = [(name, level, index) for name, nodes in self._nodes.items() for level, index in nodes]
        arrays = {"done": self.done.stretches(), **self._totals._asdict()}
        for i, (name, level, index) in enumerate(nodes):
            arrays |= {f"{i} {key}": values for key, values in self._nodes[name][level, index].items()}
        return {"nodes": nodes, "gradients": self._gradients, "made_with": self._made_with}, arrays

    def restore(self, header: Any, arrays: dict[str, Array]) -> None:
        """The inverse of ``stored``. Raises ValueError, KeyError or TypeError where it is malformed."""
        done = ChainSet(len(self.done))
        for first, last in arrays["done"].tolist():
            done.add(first, last)
        nodes: dict[str, Nodes] = {name: {} for name in self._accumulators}
        for i, (name, level, index) in enumerate(header["nodes"]):
            own = {key.partition(" ")[2]: v for key, v in arrays.items() if key.startswith(f"{i} ")}
            nodes[name][int(level), int(index)] = own
        totals = Totals(*(arrays[name] for name in Totals._fields))
        self._gradients, self._made_with = int(header["gradients"]), dict(header["made_with"])
        self._nodes, self._totals, self.done = nodes, totals, done

    def result(self, *, pilot_gradients: int, elapsed: float, interrupted: bool = False) -> PooledRun | None:
        """The results of the chains that are done; None where there are none."""
        if self._totals is None:
            return None
        job, request, totals, n_chains = self._job, self._request, self._totals, self.done.count()
        tests = n_chains * (job.n_steps - job.burn_in) if request.sampler.dynamics.leapfrogs else 0
        with np.errstate(invalid="ignore", divide="ignore"):
            acceptance, swap_rates = totals.accepted_moves / np.float64(tests), totals.accepted / totals.attempted
        return PooledRun(
            problem=request.problem, sampler=request.sampler, seed=job.seed, n_chains=n_chains, n_steps=job.n_steps,
            burn_in=job.burn_in, thin=job.thin, n_diverged=int(totals.diverged), acceptance=acceptance,
            swap_rates=swap_rates, round_trips=int(totals.round_trips.sum()), reflections=totals.bounces,
            reflection_fallbacks=totals.fallbacks,
            accumulated={
                name: result_of_nodes(self._accumulators[name], nodes, len(self.done), partial=True)
                for name, nodes in self._nodes.items()
            },
            gradient_evaluations=self._gradients + pilot_gradients, elapsed=elapsed, interrupted=interrupted,
            made_with=self._made_with,
        )  # fmt: skip
