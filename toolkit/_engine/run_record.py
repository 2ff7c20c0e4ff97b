"""The record of a run: its draws, counts and trace."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..errors import shown
from ..problem.definition import Problem
from ..samplers.sampler import Sampler
from ..tempering.contour_tempering import Partition, theta_of, visits_of

if TYPE_CHECKING:
    from .state import Block

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Counts(NamedTuple):
    """Copies of the blocks' counts, chains first; sizes are 0 for parts that the run does not have."""

    status: Integers  # (chain, replica): 0, or 1 + the step of divergence
    bounces: Integers  # (chain, replica)
    fallbacks: Integers  # (chain, replica)
    accepted_moves: Integers  # (chain, replica)
    attempted: Integers  # (chain, pair)
    accepted: Integers  # (chain, pair)
    correction: Floats  # (chain, pair)
    round_trips: Integers  # (chain,)
    outside: Integers  # (chain, 3): energies below the partition, above it, and in all, after burn-in
    theta: Floats  # (chain, bin)
    earlier_theta: Floats  # (chain, bin): a quarter to half of the way from the end of burn-in to the end
    visits: Integers  # (chain, bin)


def count(blocks: "list[Block]", problem: Problem, sampler: Sampler) -> Counts:
    """The present counts of all blocks, without θ."""
    states = [block.state for block in blocks]
    exchanges, contours = [state.exchange for state in states], [state.contour for state in states]
    has_walls, is_tested = problem.domain is not None, sampler.dynamics.leapfrogs > 0

    def by_replica(field: str, may_count: bool) -> Integers:
        if not may_count:  # memory that is never written takes no room
            return np.zeros((sum(block.last - block.first for block in blocks), sampler.n_replicas), np.int64)
        parts = []
        for block in blocks:
            n_chains = block.last - block.first
            values = getattr(block.state, field)[: n_chains * sampler.n_replicas]
            parts.append(values.reshape(sampler.n_replicas, n_chains).T)
        return np.concatenate(parts)

    return Counts(
        status=by_replica("status", any(state.status.any() for state in states)),
        bounces=by_replica("bounces", has_walls),
        fallbacks=by_replica("fallbacks", has_walls),
        accepted_moves=by_replica("accepted", is_tested),
        attempted=np.concatenate([exchange.attempted.T for exchange in exchanges]),
        accepted=np.concatenate([exchange.accepted.T for exchange in exchanges]),
        correction=np.concatenate([exchange.correction.T for exchange in exchanges]),
        round_trips=np.concatenate([exchange.round_trips for exchange in exchanges]),
        outside=np.concatenate([contour.outside.T for contour in contours]),
        theta=np.zeros((0, 0)),
        earlier_theta=np.zeros((0, 0)),
        visits=np.zeros((0, 0), np.int64),
    )


def with_theta(counts: Counts, blocks: "list[Block]") -> Counts:
    """``counts`` with contour's θ and visits, which are too large to copy after every chunk."""
    contours = [block.state.contour for block in blocks]
    return counts._replace(
        theta=np.concatenate([theta_of(contour) for contour in contours]),
        earlier_theta=np.concatenate([contour.theta_before for contour in contours]),
        visits=np.concatenate([visits_of(contour) for contour in contours]),
    )


class Trace(NamedTuple):
    """The sampler's internal state at regular steps, burn-in included.

    steps: (time,), each the step after which it was recorded. fields: name → (chain, replica, time): ``energy``,
    ``multiplier`` (of the gradient: contour's, or λ of continuous tempering) and ``walker`` (the replica whose first
    state is now on this rung) for all samplers; then the dynamics' memory (``thermostat``, ``square[0]``, …) and
    ``xi``, ``xi_momentum``, ``xi_thermostat`` where there are some. Energies are those at the start of the step.
    theta: (chain, time, bin), θ of contour; None for the others.
    """

    steps: Integers
    fields: dict[str, Floats]
    theta: Floats | None


class Statistics(NamedTuple):
    """Counts up to every draw of the kept replicas, each (chain, replica, draw), int32.

    walker: the replica whose first state is now on this rung. swaps: accepted swaps of this rung since the end of
    burn-in. reflections: reflections or rejected moves at the boundary since the start. Counts stop at
    2³¹ − 1.
    """

    walker: NDArray[np.int32]
    swaps: NDArray[np.int32]
    reflections: NDArray[np.int32]


class Judged(NamedTuple):
    """A condition of ``until`` at the end of a run; of an interrupted one, at the last look.

    condition: in words. value: what was found, for several coordinates or settings the one that is furthest from the
    target; nan where nothing moves, or too little is known. target: the number that was asked for.
    """

    condition: str
    value: float
    target: float
    met: bool


class Stopping(NamedTuple):
    """How a run with ``until`` ended.

    conditions: each of ``until``'s, judged at the end. reason: why the run ended, in words. satisfied: the quality that
    was asked for is there; False where a limit of steps, time, gradients or memory came first.
    """

    conditions: tuple[Judged, ...]
    reason: str
    satisfied: bool


class Tuning(NamedTuple):
    """How the numbers of a run's sampler were found by ``tune``.

    report: of the tuning. gradients: evaluations before the run, with those of an attempt that was not enough.
    warnings: what is doubtful. seed: the seed that the user gave, from which those of the tuning and of a second
    attempt were derived; None: that of the run, as in files of earlier versions.
    """

    report: str
    gradients: int
    warnings: tuple[str, ...]
    seed: int | None = None


@dataclass(frozen=True, eq=False)
class RunRecord:
    """Draws and counts of a run; ``Run`` adds report, tree and file.

    replica_draws: (chain, replica, draw, dim), of the replicas that sample the target unless all were kept.
    steps: (draw,), the step after which each draw was taken; steps count from 0.
    energies: (chain, replica, draw), where requested: without energy_noise, with the penalty if there is one; for a
    target that draws minibatches, of a minibatch.
    replica_weights: (chain, replica, draw), importance weights where the sampler has any; up to a factor.
    statistics: counts up to every draw; None without replica exchange and without a boundary.
    counts: all counts, and contour's θ, see ``run_record.Counts``.
    n_steps: steps done, of ``total_steps`` requested. sampling_steps: those after burn-in.
    init: (chain, replica, dim), the start. trace: where requested. accumulated: each accumulator's result.
    gradient_evaluations: so far, all chains and replicas, with those of the pilot that found contour's partition.
    elapsed: seconds of sampling. interrupted: stopped by Ctrl-C. made_with: versions, machine, device and engine.
    stopping: how ``until`` ended the run; None without. tuning: how ``tune`` found the sampler; None without.
    """

    problem: Problem
    sampler: Sampler
    seed: int  # of the chains' random numbers; `given_seed` is the user's
    n_steps: int
    total_steps: int
    burn_in: int
    thin: int
    init: Floats
    replica_draws: Floats
    steps: Integers
    energies: Floats | None
    replica_weights: Floats | None
    statistics: Statistics | None
    counts: Counts
    sampling_steps: int
    trace: Trace | None
    gradient_evaluations: int
    elapsed: float
    interrupted: bool = False
    accumulated: dict[str, Any] = field(default_factory=dict)
    made_with: dict[str, str] = field(default_factory=dict)
    stopping: Stopping | None = None
    tuning: Tuning | None = None

    @property
    def diverged(self) -> NDArray[np.bool_]:
        """Whether a replica of the chain has diverged, (chain,); its draws from then on are nan."""
        return np.asarray((self.counts.status > 0).any(axis=1))

    @property
    def draws(self) -> Floats:
        """Draws of the target, (chain, draw, dim); those of several replicas that sample it follow step by step."""
        return fold(self.replica_draws[:, : self.sampler.n_target_replicas])

    @property
    def weights(self) -> Floats:
        """Importance weights of ``draws``, (chain, draw), up to a factor; all 1 where the sampler needs none."""
        if self.replica_weights is None:
            return np.ones(self.draws.shape[:2])
        return fold(self.replica_weights[:, : self.sampler.n_target_replicas])

    @property
    def given_seed(self) -> int:
        """The seed that the user gave, by which the same call makes the run again.

        It is ``seed`` itself, unless ``sample`` tuned twice: ``seed`` is then derived from it.
        """
        return self.seed if self.tuning is None or self.tuning.seed is None else self.tuning.seed

    @property
    def swaps(self) -> Integers:
        """Swaps accepted since the end of burn-in, (chain, pair)."""
        return self.counts.accepted

    @property
    def swap_rates(self) -> Floats:
        """Accepted share of the swaps attempted since the end of burn-in, (chain, pair); nan before the first."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.counts.accepted / self.counts.attempted)

    @property
    def round_trips(self) -> Integers:
        """Round trips coldest → hottest → coldest of all walkers since the end of burn-in, (chain,)."""
        return self.counts.round_trips

    @property
    def corrections(self) -> Floats:
        """The swaps' correction F at the end, (chain, pair)."""
        return self.counts.correction

    @property
    def reflections(self) -> Integers:
        """Reflections or rejected moves at the boundary since the start, (chain, replica)."""
        return self.counts.bounces

    @property
    def reflection_fallbacks(self) -> Integers:
        """Returns to the last inside point after the allowed number of bounces, since the start, (chain, replica)."""
        return self.counts.fallbacks

    @property
    def acceptance(self) -> Floats:
        """Share of moves after burn-in that the Metropolis test and the walls accept, (chain, replica).

        nan without a Metropolis test. Moves rejected by ``rules.reject()`` do not count as accepted.
        """
        tests = self.sampling_steps if self.sampler.dynamics.leapfrogs else 0
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(self.counts.accepted_moves / np.float64(tests))

    @property
    def partition(self) -> Partition | None:
        """The partition of the energies that contour used, found or given; None for the others."""
        return self.sampler.tempers.energy_partition  # type: ignore[no-any-return]

    @property
    def theta(self) -> Floats:
        """Contour's θ at the end, (chain, bin); ``tempering.contour`` says what it estimates."""
        return self.counts.theta

    @property
    def n_chains(self) -> int:
        """Number of chains."""
        return len(self.replica_draws)

    def __repr__(self) -> str:
        chains, replicas, draws, dim = self.replica_draws.shape
        return (
            f"{type(self).__name__}({self.sampler.name} on {self.problem.name}: {chains} chains × "
            f"{replicas} kept replicas × {draws} draws of dimension {dim}; {self.n_steps} steps, "
            f"burn_in={self.burn_in}, thin={self.thin}, seed={self.given_seed}, "
            f"{self.elapsed:.2f} s{', interrupted' if self.interrupted else ''})"
        )


AnyRun = TypeVar("AnyRun", bound=RunRecord)  # the class of the run that the caller wants


def fold(values: Floats) -> Floats:
    """(chain, replica, draw, …) → (chain, draw · replica, …), all replicas of a draw next to each other."""
    if values.shape[1] == 1:
        return values[:, 0]
    swapped = np.swapaxes(values, 1, 2)
    return np.ascontiguousarray(swapped.reshape(len(values), -1, *values.shape[3:]))


def check_run(run: Any) -> RunRecord:
    """``run``, a ``Run``. Raises TypeError for anything else."""
    if not isinstance(run, RunRecord):
        raise TypeError(f"run must be a Run, got {shown(run)} of type {type(run).__name__}")
    return run


# Settings: groups of chains with the same step sizes and temperatures, in a sweep.


class Setting(NamedTuple):
    """Chains (n,) of one law. words: their step size and temperature; empty where all chains have the same."""

    words: str
    chains: Integers


def swept_arrays(sampler: Sampler) -> dict[str, Floats]:
    """The step sizes or temperatures, (chain, R), that are not those of all chains; empty where there is no sweep."""
    swept = {name: values for name, values in sampler.arrays.items() if values.ndim == 2}
    return {name: values for name, values in swept.items() if (values != values[0]).any()}


def settings_of(run: RunRecord) -> list[Setting]:
    """The settings of ``run``, in the order of their first chains."""
    return settings_of_sampler(run.sampler, run.n_chains)


def settings_of_sampler(sampler: Sampler, n_chains: int) -> list[Setting]:
    """The settings of ``n_chains`` chains of ``sampler``, in the order of their first chains."""
    swept = swept_arrays(sampler)
    if not swept:
        return [Setting("", np.arange(n_chains))]
    table = np.hstack(list(swept.values()))
    _, first, which = np.unique(table, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(which.ravel(), kind="stable")
    groups = np.split(order, np.cumsum(np.bincount(which.ravel()))[:-1])
    nouns = {"step_sizes": "step size", "temperatures": "temperature"}
    return [
        Setting(", ".join(values_in_words(nouns[name], values[first[i]]) for name, values in swept.items()), groups[i])
        for i in np.argsort(first)
    ]


def values_in_words(name: str, values: Floats) -> str:
    """Step sizes or temperatures, (R,) or (chain, R), in words."""
    if values.ndim == 2 and (values != values[0]).any():
        return f"{name}s {values.min():g} to {values.max():g} by chain"
    row = np.atleast_2d(values)[0]
    if (row == row[0]).all():
        return f"{name} {row[0]:g}"
    if row.size > 6:
        return f"{row.size} {name}s {row[0]:g} to {row[-1]:g}"
    return f"{name}s " + ", ".join(f"{value:g}" for value in row)
