"""Conditions for ``until=`` of ``sample`` and ``stream``: when a run has what was asked for, and ends.

A condition on draws (``ess``, ``r_hat``, ``mcse``) or on swaps (``round_trips``) says what quality is wanted;
``seconds`` and ``gradients`` say what it may cost. ``a & b`` holds where both do, ``a | b`` where one does:
``(ess(1000) & r_hat(1.01)) | seconds(60)`` ends after a minute at the latest.

Quality is looked at after ``FIRST_LOOK`` kept draws of each chain, and whenever their number has doubled. So a run that
is lucky at one moment has few moments to be so, and where a run ends depends on its numbers alone, not on the machine.
Only ``seconds``, and the memory that there is, depend on the machine.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._engine.job import JUDGED, Job, check_footprint
from .._engine.run_record import Judged, Setting, Stopping, fold, settings_of_sampler
from ..accumulators import Accumulator, batch_means
from ..accumulators.running_moments import pool
from ..dynamics.metropolis import total_leapfrogs
from ..errors import check_choice, check_count, check_flag, check_number, is_a, shown
from ..problem.definition import Problem
from . import convergence

if TYPE_CHECKING:
    from .._engine.driver import Driver
    from .._engine.state import Outputs

__all__ = [
    "FIRST_LOOK",
    "Condition",
    "ess",
    "gradients",
    "mcse",
    "r_hat",
    "round_trips",
    "seconds",
]

Array = NDArray[np.float64]

FIRST_LOOK = 64  # kept draws of a chain
MOST_JUDGED = 2**22  # numbers that a look ranks; of more, evenly spaced draws are judged
FEWEST_JUDGED = 2**16  # of each coordinate, whatever their number
MOST_POINTS = 2**16  # whose memberships are looked up at a time
FEWEST_CHAINS = 4  # of a setting, for a judgement by the spread of the chains' means
EXPECTED = 20.0  # independent draws in a mode: that there are none has probability e⁻²⁰

# Conditions, as the user combines them.


@dataclass(frozen=True)
class Condition:
    """A condition on a run: what the functions of this module return, and their combinations by ``&`` and ``|``."""

    def __and__(self, other: object) -> "Condition":
        if not isinstance(other, Condition):
            return NotImplemented
        return AllOf((*parts_of(self, AllOf), *parts_of(other, AllOf)))

    def __or__(self, other: object) -> "Condition":
        if not isinstance(other, Condition):
            return NotImplemented
        return AnyOf((*parts_of(self, AnyOf), *parts_of(other, AnyOf)))

    def __bool__(self) -> bool:
        raise TypeError("conditions are combined by & and |, as `and`, `or` and `not` would drop one of them")


def parts_of(condition: "Condition", kind: type) -> "tuple[Condition, ...]":
    """The parts of a combination of this kind; the condition itself where it is none."""
    parts: tuple[Condition, ...] = condition.parts if isinstance(condition, kind) else (condition,)  # type: ignore[attr-defined]
    return parts


@dataclass(frozen=True, repr=False)
class AllOf(Condition):
    """Holds where all parts do."""

    parts: tuple[Condition, ...]

    def __repr__(self) -> str:
        return " & ".join(f"({part!r})" if isinstance(part, AnyOf) else repr(part) for part in self.parts)


@dataclass(frozen=True, repr=False)
class AnyOf(Condition):
    """Holds where one part does."""

    parts: tuple[Condition, ...]

    def __repr__(self) -> str:
        return " | ".join(f"({part!r})" if isinstance(part, AllOf) else repr(part) for part in self.parts)


@dataclass(frozen=True, repr=False)
class Single(Condition):
    """A condition that is no combination."""

    @property
    def target(self) -> float:
        """The number asked for."""
        raise NotImplementedError

    def shown_value(self, value: float) -> str:
        """A value in words."""
        return f"{value:,.0f}" if math.isfinite(value) else "unknown" if math.isnan(value) else f"{value}"


@dataclass(frozen=True, repr=False)
class OfDraws(Single):
    """A condition on functions of the draws, of which each must meet it."""

    @property
    def function(self) -> Any:
        """The function of draws; "modes"; None for the coordinates."""
        return getattr(self, "of", None)

    def of_draws(self, values: Array, weights: Array | None) -> float:
        """The value for one function, (chain, draw), that moves."""
        raise NotImplementedError

    def of_means(self, spread: float, within: float, error: float, chains: int) -> float:
        """The value by the chains' means. spread: sd of the pooled law; within: variance; error: of the pooled mean."""
        raise NotImplementedError

    def meets(self, value: float) -> bool:
        """Whether the value meets the target."""
        return value <= self.target

    def further(self, values: list[float]) -> float:
        """The value that is furthest from the target; nan where one is unknown."""
        return math.nan if any(map(math.isnan, values)) else max(values)


def option(name: str, value: Any, default: Any) -> str:
    """An argument in a repr, left out where it is the default."""
    if value is default or (type(value) is type(default) and value == default):
        return ""
    called = getattr(value, "__name__", None)
    return f", {name}={called if isinstance(called, str) else shown(value)}"


@dataclass(frozen=True, repr=False)
class Ess(OfDraws):
    """The condition of ``ess``."""

    n: float
    method: str = "bulk"
    of: Any = None

    def __repr__(self) -> str:
        return f"ess({self.n:g}{option('method', self.method, 'bulk')}{option('of', self.of, None)})"

    @property
    def target(self) -> float:
        """The effective sample size asked for."""
        return self.n

    def meets(self, value: float) -> bool:
        """Whether there are as many."""
        return value >= self.n

    def further(self, values: list[float]) -> float:
        """The smallest."""
        return math.nan if any(map(math.isnan, values)) else min(values)

    def of_draws(self, values: Array, weights: Array | None) -> float:
        """ESS."""
        return convergence.coordinate_ess(values, weights, self.method)

    def of_means(self, spread: float, within: float, error: float, chains: int) -> float:
        """Total variance over the squared error."""
        return (spread / error) ** 2 if error > 0.0 else math.inf


@dataclass(frozen=True, repr=False)
class RHat(OfDraws):
    """The condition of ``r_hat``."""

    limit: float = 1.01

    def __repr__(self) -> str:
        return f"r_hat({self.limit:g})"

    @property
    def target(self) -> float:
        """The largest R-hat allowed."""
        return self.limit

    def shown_value(self, value: float) -> str:
        """Four digits."""
        return f"{value:.4f}" if math.isfinite(value) else super().shown_value(value)

    def of_draws(self, values: Array, weights: Array | None) -> float:
        """Rank-normalised split R-hat."""
        return float(convergence.r_hat(values[..., None], weights=weights)[0])

    def of_means(self, spread: float, within: float, error: float, chains: int) -> float:
        """The classical one, for many draws."""
        return math.sqrt(1.0 + error**2 * chains / within) if within > 0.0 else math.inf


@dataclass(frozen=True, repr=False)
class Mcse(OfDraws):
    """The condition of ``mcse``."""

    limit: float
    of: Any = None
    relative: bool = True

    def __repr__(self) -> str:
        return f"mcse({self.limit:g}{option('of', self.of, None)}{option('relative', self.relative, True)})"

    @property
    def target(self) -> float:
        """The largest error allowed."""
        return self.limit

    def shown_value(self, value: float) -> str:
        """Three digits."""
        return f"{value:.3g}" if math.isfinite(value) else super().shown_value(value)

    def of_draws(self, values: Array, weights: Array | None) -> float:
        """sd / √ESS, or 1 / √ESS."""
        size = convergence.coordinate_ess(values, weights, "mean")
        return (1.0 if self.relative else pooled_sd(values, weights)) / math.sqrt(size)

    def of_means(self, spread: float, within: float, error: float, chains: int) -> float:
        """The error of the pooled mean."""
        return error / spread if self.relative else error


@dataclass(frozen=True, repr=False)
class RoundTrips(Single):
    """The condition of ``round_trips``."""

    n: int

    def __repr__(self) -> str:
        return f"round_trips({self.n})"

    @property
    def target(self) -> float:
        """Round trips asked for."""
        return float(self.n)


@dataclass(frozen=True, repr=False)
class Seconds(Single):
    """The condition of ``seconds``."""

    s: float

    def __repr__(self) -> str:
        return f"seconds({self.s:g})"

    @property
    def target(self) -> float:
        """Seconds."""
        return self.s

    def shown_value(self, value: float) -> str:
        """Three digits."""
        return f"{value:.3g}"


@dataclass(frozen=True, repr=False)
class Gradients(Single):
    """The condition of ``gradients``."""

    n: float

    def __repr__(self) -> str:
        return f"gradients({self.n:g})"

    @property
    def target(self) -> float:
        """Gradient evaluations."""
        return self.n


LIMITS = (Seconds, Gradients)  # what a run may cost; the other conditions are of its quality


def ess(n: float, *, method: str = "bulk", of: Any = None) -> Condition:
    """Holds when the effective sample size, of all chains together, is at least ``n``.

    Parameters
    ----------
    n
        Least effective sample size, above 0.
    method
        "bulk", "tail" or "mean", as in ``diagnostics.ess``.
    of
        None for each coordinate; a function of draws (chain, draw, dim) that returns (chain, draw) or (chain, draw, k),
        such as ``lambda x: x[..., 0] > 0``; or "modes" for the probability of each mode of the problem's truth. The
        smallest counts.

    Returns
    -------
    Condition
        For ``sample(until=...)``.

    Raises
    ------
    TypeError, ValueError
        Where an argument is wrong.

    Notes
    -----
    Of more than some four million numbers, evenly spaced draws are judged, whose ESS is at most that of all.

    A function that never moves and is the same in all chains is left out, so that a coordinate that is fixed does not
    keep a run from ending. Where nothing moves, the value is nan, and the condition is not met. A mode of the truth
    without a draw is not met where 20 of as many independent draws would be in it. No ESS sees what no chain has found.
    """
    size = check_number("n", n, above=0.0)
    return Ess(size, check_choice("method", method, convergence.METHODS), check_function(of))


def r_hat(limit: float = 1.01) -> Condition:
    """Holds when R-hat of every coordinate, as in ``diagnostics.r_hat``, is at most ``limit`` > 1.

    In a sweep, chains are compared with those of the same setting. What stands still counts as in ``ess``.
    Raises TypeError or ValueError where an argument is wrong.
    """
    return RHat(check_number("limit", limit, above=1.0))


def mcse(limit: float, *, of: Any = None, relative: bool = True) -> Condition:
    """Holds when the Monte Carlo standard error of every mean is at most ``limit`` > 0.

    relative: in units of the posterior standard deviation, so that 0.1 needs an ESS of 100; False: in the units of
    what is averaged. of: as in ``ess``. What stands still counts as there.
    Raises TypeError or ValueError where an argument is wrong.
    """
    return Mcse(check_number("limit", limit, above=0.0), check_function(of), check_flag("relative", relative))


def round_trips(n: int) -> Condition:
    """Holds when there are ``n`` ≥ 1 round trips coldest → hottest → coldest, all chains together, after burn-in.

    For replica exchange alone. Raises TypeError or ValueError where an argument is wrong.
    """
    return RoundTrips(check_count("n", n, at_least=1))


def seconds(s: float) -> Condition:
    """Holds after ``s`` > 0 seconds of sampling, those before a checkpoint was resumed included.

    It is the one condition by which a run's length depends on the machine. Looked at after every chunk of steps, which
    take a tenth of a second or so, or sixteen steps. Raises TypeError or ValueError where an argument is wrong.
    """
    return Seconds(check_number("s", s, above=0.0))


def gradients(n: float) -> Condition:
    """Holds where one step more would need over ``n`` ≥ 1 gradient evaluations, of all chains and replicas.

    A run ends at the step that is at or just below ``n``, whatever the machine; quality is looked at there too.
    Those of the pilot that finds contour's partition count. Raises TypeError or ValueError where an argument is wrong.
    """
    return Gradients(check_number("n", n, at_least=1.0))


def check_function(of: Any) -> Any:
    """``of`` of a condition. Raises TypeError or ValueError where it is no function, "modes" or None."""
    if is_a(of, str):
        return check_choice("of", of, ["modes"])
    if of is not None and (not callable(of) or is_a(of, type)):
        raise TypeError(f"of must be None, 'modes' or a function of draws, got {shown(of)} of type {type(of).__name__}")
    return of


def singles(condition: Condition) -> Iterator[Single]:
    """The conditions of a combination, from left to right."""
    if isinstance(condition, AllOf | AnyOf):
        for part in condition.parts:
            yield from singles(part)
    else:
        assert isinstance(condition, Single)
        yield condition


def holds(condition: Condition, met: Callable[[Single], bool]) -> bool:
    """Whether a combination holds, given which single conditions do."""
    if isinstance(condition, AllOf):
        return all(holds(part, met) for part in condition.parts)
    if isinstance(condition, AnyOf):
        return any(holds(part, met) for part in condition.parts)
    assert isinstance(condition, Single)
    return met(condition)


def quality_holds(condition: Condition, met: Callable[[Single], bool]) -> bool | None:
    """Whether the quality that was asked for is there, whatever the limits say; None where only limits were given."""
    if isinstance(condition, AllOf | AnyOf):
        said = [s for s in (quality_holds(part, met) for part in condition.parts) if s is not None]
        return None if not said else all(said) if isinstance(condition, AllOf) else any(said)
    assert isinstance(condition, Single)
    return None if isinstance(condition, LIMITS) else met(condition)


def cause(condition: Condition, met: Callable[[Single], bool]) -> Condition:
    """The part by which a combination holds."""
    if isinstance(condition, AnyOf):
        return cause(next(part for part in condition.parts if holds(part, met)), met)
    return condition


# Checks before a run.


def check_until(until: Any) -> Condition | None:
    """``until``, a condition or None. Raises TypeError otherwise."""
    if until is not None and not is_a(until, Condition):
        raise TypeError(
            f"until must be None or a condition of toolkit.stopping, got {shown(until)} of type {type(until).__name__}"
        )
    condition: Condition | None = until
    return condition


def check_fits(until: Condition, job: Job, *, keeps_draws: bool) -> None:
    """Raise ValueError or TypeError where a condition cannot be judged in a run of ``job``."""
    settings = settings_of_sampler(job.sampler, len(job.init))
    for condition in singles(until):
        if isinstance(condition, RoundTrips) and not job.sampler.tempers.swaps:
            raise ValueError(
                f"until must not ask for {condition!r} of sampler {job.sampler.name!r}, which has no replica exchange"
            )
        if isinstance(condition, OfDraws) and not keeps_draws:
            if condition.function is not None:
                raise ValueError(
                    f"until must ask for coordinates where no draws are kept, got {condition!r}: a function of draws "
                    "needs sample(..., keep_draws=True)"
                )
            if isinstance(condition, Ess) and condition.method == "tail":
                raise ValueError(f"until must not ask for method='tail' where no draws are kept, got {condition!r}")
            fewest = min(setting.chains.size for setting in settings)
            if fewest < FEWEST_CHAINS:
                raise ValueError(
                    f"n_chains must be ≥ {FEWEST_CHAINS} of each setting for {condition!r} where no draws are kept, "
                    f"as the spread of the chains' means is what is known then; got {fewest}"
                )
        elif isinstance(condition, OfDraws) and condition.function is not None:
            check_values(condition, job)


def check_budget(until: Condition, job: Job) -> None:
    """Raise ValueError where a limit of gradients leaves no step for the first draw."""
    limits = [condition for condition in singles(until) if isinstance(condition, Gradients)]
    needed = GradientCount(job).after(job.burn_in + job.thin) if limits else 0
    for condition in limits:
        if condition.n < needed:
            raise ValueError(
                f"until must allow the {needed:,} gradient evaluations up to the first draw, burn-in and pilot "
                f"included, got {condition!r}"
            )


def check_values(condition: OfDraws, job: Job) -> None:
    """Raise ValueError or TypeError where the condition's function does not fit the problem; it is called once."""
    if condition.function == "modes":
        truth = job.problem.truth
        if truth is None or not hasattr(truth, "memberships"):
            raise ValueError(f"of must not be 'modes' on {job.problem.name!r}, which has no truth that knows its modes")
        if truth.memberships(job.init[0, :1]).shape[1] < 2:
            raise ValueError(f"of must not be 'modes' on {job.problem.name!r}, which has one mode, of weight 1")
    points = job.init[:, : job.sampler.n_target_replicas]
    values_of(condition, np.repeat(points, 4, axis=1), job.problem)


def values_of(condition: OfDraws, draws: Array, problem: Problem) -> Array:
    """What the condition is on, (chain, draw, k), of draws (chain, draw, dim).

    Raises TypeError or ValueError where a function returns something else.
    """
    function = condition.function
    if function is None:
        return draws
    if function == "modes":
        truth: Any = problem.truth
        points = draws.reshape(-1, draws.shape[-1])
        pieces = [
            np.asarray(truth.memberships(points[first : first + MOST_POINTS]), np.float64)
            for first in range(0, len(points), MOST_POINTS)
        ]
        return np.concatenate(pieces).reshape(*draws.shape[:2], -1)
    given = function(draws)
    values = np.asarray(given)
    if values.dtype.kind not in "biuf":
        raise TypeError(f"of must return numbers, got {shown(given)} from {condition!r}")
    values = values.astype(np.float64)
    if values.shape[:2] != draws.shape[:2] or values.ndim not in (2, 3) or values.size == 0:
        raise ValueError(
            f"of must return shape (chain, draw) or (chain, draw, k) with (chain, draw) = {draws.shape[:2]}, got "
            f"{values.shape} from {condition!r}"
        )
    if not np.isfinite(values).all():
        raise ValueError(f"of must return finite numbers, got nan or infinity from {condition!r}")
    return values[..., None] if values.ndim == 2 else values


def judged_accumulators(until: Condition | None, *, keeps_draws: bool) -> dict[str, Accumulator]:
    """The accumulator by which a run without stored draws is judged, by its name; empty where none is needed."""
    if until is None or keeps_draws or not any(isinstance(condition, OfDraws) for condition in singles(until)):
        return {}
    return {JUDGED: batch_means(4)}


# Judging a run.


def pooled_sd(values: Array, weights: Array | None) -> float:
    """Standard deviation of values (chain, draw) under their weights, each chain with the same total."""
    scale = np.ones(values.shape) if weights is None else weights
    shares = scale / scale.sum(axis=1, keepdims=True) / len(scale)
    mean = (shares * values).sum()
    return math.sqrt(float((shares * (values - mean) ** 2).sum()))


class Sight(NamedTuple):
    """What is known of a run where it is looked at; ``outputs`` are the filled ones."""

    job: Job
    outputs: "Outputs"
    moments: Any  # BatchMeansSoFar, where draws are not kept; else None
    has_diverged: NDArray[np.bool_]  # (chain,)
    round_trips: int
    elapsed: float
    gradients: int


def judge(condition: Single, sight: Sight, settings: list[Setting], at_limit: Callable[[Gradients], bool]) -> Judged:
    """The condition's value and whether it is met. at_limit: whether a limit of gradients is reached."""
    if isinstance(condition, OfDraws):
        return judge_draws(condition, sight, settings)
    if isinstance(condition, Gradients):
        return Judged(repr(condition), float(sight.gradients), condition.target, at_limit(condition))
    value = float(sight.round_trips) if isinstance(condition, RoundTrips) else sight.elapsed
    return Judged(repr(condition), value, condition.target, value >= condition.target)


def judge_draws(condition: OfDraws, sight: Sight, settings: list[Setting]) -> Judged:
    """A condition on draws: the worst of all functions and settings, of chains that have not diverged."""
    values: list[float] = []
    for setting in settings:
        chains = setting.chains[~sight.has_diverged[setting.chains]]
        if chains.size == 0:
            continue  # all of its chains have diverged, so that no number of steps would do
        if sight.moments is None:
            values += values_of_draws(condition, sight, chains)
        else:
            values += values_of_means(condition, sight.moments, chains)
    worst = condition.further(values) if values else math.nan  # nan: nothing moves, so that nothing is known
    return Judged(repr(condition), worst, condition.target, not math.isnan(worst) and condition.meets(worst))


def values_of_draws(condition: OfDraws, sight: Sight, chains: NDArray[np.int64]) -> list[float]:
    """The values of the functions that move, from stored draws of some chains; nan where there is too little."""
    job, outputs = sight.job, sight.outputs
    targets, n_draws, dim = job.sampler.n_target_replicas, outputs.draws.shape[2], outputs.draws.shape[3]
    if n_draws < 4:
        return [math.nan]
    wanted = 16.0 * condition.target if isinstance(condition, Ess) else 0.0
    judged = max(MOST_JUDGED // dim, FEWEST_JUDGED, wanted)
    stride = max(1, min(int(chains.size * targets * n_draws / judged), n_draws // FIRST_LOOK))
    part = slice((n_draws - 1) % stride, None, stride)
    draws = fold(outputs.draws[chains, :targets, part])
    weights = fold(outputs.weights[chains, :targets, part]) if outputs.weights.shape[2] else None
    if weights is not None:
        has_weight = (weights > 0.0).any(axis=1)
        draws, weights = draws[has_weight], weights[has_weight]
        if len(draws) == 0:
            return [math.nan]
        weights = weights / weights.mean(axis=1, keepdims=True)
        weights = None if (weights == weights[:, :1]).all() else weights
    values = values_of(condition, draws, job.problem)
    found = []
    for k in range(values.shape[2]):
        column = np.ascontiguousarray(values[..., k])
        if convergence.moves(column, weights):
            found.append(condition.of_draws(column, weights))
        elif condition.function == "modes" and is_missed(job.problem.truth, k, column):
            found.append(0.0 if isinstance(condition, Ess) else math.inf)
    return found


def is_missed(truth: Any, mode: int, shares: Array) -> bool:
    """Whether a mode has no draws though 20 of as many independent ones would be in it, or its weight is unknown."""
    if shares.any():
        return False
    weights = truth.modes.weights if "moments" in getattr(truth, "at_hand", ()) else None
    return weights is None or float(weights[mode]) * shares.size >= EXPECTED


def values_of_means(condition: OfDraws, moments: Any, chains: NDArray[np.int64]) -> list[float]:
    """The values of the coordinates that move, from means and variances of some chains; nan where there are too few."""
    used = chains[np.isfinite(moments.mean[chains]).all(axis=1)]
    if used.size < FEWEST_CHAINS:
        return [math.nan]
    mean, variance = moments.mean[used], moments.variance[used]
    _, covariance, error = pool(mean, variance[:, :, None] * np.eye(mean.shape[1]))
    spread, within = np.sqrt(np.diagonal(covariance)), variance.mean(axis=0)
    return [
        condition.of_means(float(spread[d]), float(within[d]), float(error[d]), used.size)
        for d in np.flatnonzero(spread > 0.0)
    ]


class GradientCount:
    """Gradient evaluations after any number of steps of a job."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._leapfrogs = {0: 0}  # by steps

    def after(self, steps: int) -> int:
        """Those of ``steps`` steps."""
        dynamics = self._job.sampler.dynamics
        if not dynamics.random_length:
            return self._job.gradients(steps)
        if steps not in self._leapfrogs:
            known = max(other for other in self._leapfrogs if other <= steps)
            more = total_leapfrogs(dynamics.leapfrogs, self._job.seed, known, steps)
            self._leapfrogs[steps] = self._leapfrogs[known] + more
        return self._job.gradients(steps, self._leapfrogs[steps])

    def last_within(self, limit: float, low: int, high: int) -> int:
        """The most steps, from ``low`` to ``high`` − 1, that stay within ``limit``, which ``high`` exceeds."""
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.after(middle) <= limit else (low, middle)
        return low


class UntilWatch:
    """Looks at a run of ``job`` as ``until`` asks; see ``driver.Watch``."""

    def __init__(self, until: Condition, job: Job, *, room: dict[str, bool]) -> None:
        self._until, self._job, self._room = until, job, room
        self._settings = settings_of_sampler(job.sampler, len(job.init))
        self._count = GradientCount(job)
        self._limits = [condition.n for condition in singles(until) if isinstance(condition, Gradients)]
        self.in_time = any(isinstance(condition, Seconds) for condition in singles(until))
        self._judged: tuple[int, list[Judged]] = (-1, [])
        self._fewest = job.sampler.tempers.first_estimate

    def next_end(self, done: int) -> int:
        """The first look after ``done`` steps: at doublings of the kept draws, at limits of gradients, at the end."""
        job, look = self._job, FIRST_LOOK * self._job.thin
        while job.burn_in + look <= done or job.burn_in + look < self._fewest:
            look *= 2
        end = min(job.burn_in + look, job.n_steps)
        for limit in self._limits:
            if self._count.after(done + 1) <= limit < self._count.after(end):
                end = self._count.last_within(limit, done + 1, end)
        return end

    def room_for(self, end: int) -> str:
        """Why a run up to step ``end`` does not fit into memory; "" where it does."""
        try:
            check_footprint(self._job, **self._room, end=end)
        except ValueError as error:
            return str(error)
        return ""

    def is_over(self, driver: "Driver[Any]") -> bool:
        """Whether the limits of time alone end the run, between two looks."""
        return self.in_time and holds(
            self._until, lambda condition: isinstance(condition, Seconds) and driver.elapsed >= condition.s
        )

    def look(self, driver: "Driver[Any]", outputs: "Outputs") -> bool:
        """Judge the run, show the values beside the progress bar, and say whether it ends."""
        judged = self._judge(driver, outputs)
        words = "; ".join(
            f"{condition!r}: {condition.shown_value(found.value)}"
            for condition, found in zip(singles(self._until), judged, strict=True)
        )
        is_over = driver.done >= self._job.n_steps or holds(self._until, self._met(judged))
        driver.show(words, driver.done if is_over else self.next_end(driver.done))
        return is_over

    def _judge(self, driver: "Driver[Any]", outputs: "Outputs") -> list[Judged]:
        """All conditions after the last complete chunk, from left to right."""
        if self._judged[0] != driver.done:
            counts = driver.counts
            sight = Sight(
                job=self._job,
                outputs=outputs,
                moments=driver.judged_moments() if JUDGED in self._job.accumulators else None,
                has_diverged=np.asarray((counts.status > 0).any(axis=1)),
                round_trips=int(counts.round_trips.sum()),
                elapsed=driver.elapsed,
                gradients=self._count.after(driver.done),
            )
            after_next = self._count.after(driver.done + 1)
            judged = [
                judge(condition, sight, self._settings, lambda limit: after_next > limit.n)
                for condition in singles(self._until)
            ]
            self._judged = driver.done, judged
        return self._judged[1]

    def _last_look(self) -> list[Judged]:
        """The conditions at the last look; unknown, and not met, before the first."""
        unknown = [Judged(repr(condition), math.nan, condition.target, met=False) for condition in singles(self._until)]
        return self._judged[1] or unknown

    def _met(self, judged: list[Judged]) -> Callable[[Single], bool]:
        """Which single conditions are met."""
        met = {id(condition): found.met for condition, found in zip(singles(self._until), judged, strict=True)}
        return lambda condition: met[id(condition)]

    def stopping(self, driver: "Driver[Any]", outputs: "Outputs", *, interrupted: bool, full: str = "") -> Stopping:
        """How the run ended. Of an interrupted one, nobody waits for a judgement: what the last look found is told."""
        judged = self._last_look() if interrupted else self._judge(driver, outputs)
        met = self._met(judged)
        satisfied = quality_holds(self._until, met) is not False
        if interrupted:
            reason = "interrupted"
        elif holds(self._until, met):
            reason = f"{cause(self._until, met)!r} holds"
        elif full:
            reason = f"the memory is full: {full}"
        else:
            reason = f"all n_steps={driver.done:,} steps are done"
        return Stopping(tuple(judged), f"{reason}, after {driver.done:,} steps", satisfied)
