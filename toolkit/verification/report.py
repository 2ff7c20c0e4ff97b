"""``verify``: check bits and laws of a user's problem and sampler."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._engine.job import make_job
from .._engine.run_options import RunOptions
from ..errors import ContourWarning, DivergenceError, check_count, shown
from ..maths.seeds import ROUND, derived_seed
from ..problem.definition import Problem, Target, as_problem
from ..problem.gradient_check import GradientError, check_gradient
from ..samplers.sampler import Sampler
from .bits import Case, Verdict, check_bits, likely_cause
from .law_runs import Plan, Setting
from .laws import check_laws

Floats = NDArray[np.float64]

CHAINS, STEPS = 256, 50_000
FEWER = 4  # with contour: so many times fewer chains and more steps, because weights are per chain
MOST_STEPS, MOST_CHAINS = 2**40, 2**20
KEPT = 4000  # approximate draws per chain
MOST_NUMBERS = 2**25  # in the draws in memory at a time
BIT_CHAINS, BIT_STEPS = 13, 240
N_EXACT = 20_000
LAWS = ("mean", "covariance", "mode weights", "cells", "energies", "Stein's identity", "laws")
MARKS = {True: "passed", False: "FAILED", None: "not checked"}


class Check(NamedTuple):
    """One check: its name, whether it passed (None: not checked or not judged), and a sentence on it.

    needed: not made, but possible with other runs. n_steps: the steps that these need, about; 0 if unknown.
    """

    name: str
    passed: bool | None
    words: str
    needed: bool = False
    n_steps: int = 0


@dataclass(frozen=True)
class Report:
    """What ``verify`` found. Print it, or look at its checks by name."""

    problem: str
    sampler: str
    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        """Whether no check failed and all checks of the law that this problem and sampler allow were made."""
        return not self.failed and self.judged

    @property
    def judged(self) -> bool:
        """Whether a law was judged, and no check was omitted that other runs (longer ones, more chains) would allow."""
        return any(c.passed is not None for c in self.checks if c.name in LAWS) and not self.unjudged

    @property
    def unjudged(self) -> tuple[Check, ...]:
        """The checks that were not made but are possible with other runs."""
        return tuple(check for check in self.checks if check.passed is None and check.needed)

    @property
    def verdict(self) -> str:
        """``passed``, ``FAILED`` or ``NOT JUDGED``, with the checks it rests on, and what a run needs to judge them."""
        if self.failed:
            return f"FAILED: {', '.join(check.name for check in self.failed)}"
        if self.passed:
            laws = [check.name for check in self.checks if check.passed and check.name in LAWS]
            return f"passed, with the law judged by {', '.join(laws)}"
        if not self.unjudged:
            return "NOT JUDGED: nothing failed, but no law of this problem and sampler can be judged"
        text = f"NOT JUDGED: nothing failed, but not judged are {', '.join(check.name for check in self.unjudged)}"
        if all(check.n_steps for check in self.unjudged):
            return (
                f"{text}; give n_steps={max(check.n_steps for check in self.unjudged):_}, or as many times more chains"
            )
        return f"{text}; each says what it needs"

    @property
    def failed(self) -> tuple[Check, ...]:
        """The checks that failed."""
        return tuple(check for check in self.checks if check.passed is False)

    def __getitem__(self, name: str) -> Check:
        for check in self.checks:
            if check.name == name:
                return check
        raise KeyError(f"no check is called {name!r}; there are {', '.join(check.name for check in self.checks)}")

    def __str__(self) -> str:
        counts = [f"{sum(c.passed is p for c in self.checks)} {mark.lower()}" for p, mark in MARKS.items()]
        width = max(len(check.name) for check in self.checks)
        lines = [f"{c.name:{width}}  {MARKS[c.passed]:11}  {c.words}" for c in self.checks]
        return "\n".join([f"{self.sampler} on {self.problem}: {', '.join(counts)}", *lines, self.verdict])


def verify(
    problem: Problem | Target,
    sampler: Sampler,
    *,
    n_steps: int | None = None,
    n_chains: int | None = None,
    burn_in: int | None = None,
    init: Any = None,
    seed: int = 0,
) -> Report:
    """Try on ``problem`` and ``sampler`` what the toolkit promises: bits that depend on the seed alone, and the law.

    Bits: short runs, on other numbers of threads, blocks, chunks and chains, streamed, from a checkpoint where there
    are some, in another Python process (which a fresh interpreter is started for, and the problem sent to), and on a
    GPU where there is one, are compared bit for bit in all they compute. A check that fails names the first number that
    differs, and its cause where it is the target or the schedule. Gradient: ``check_gradient``. Domain: draws inside.
    Laws: ``n_chains`` chains (None: 256, or 64 with contour; runs are repeated where the sampler's arrays set a smaller
    number) of ``n_steps`` (None: 50,000, or 200,000), from ``init``, exact draws of the truth, or ``sample``'s starts;
    moments, weights of modes, cells and energies against ``problem.truth``, where there is one, and Stein's identities
    E ∂U/∂x = 0, E (x − c) ∂U/∂x = T. Samplers without a Metropolis test run at half the step size too, and the two are
    extrapolated to 0, to the standard error between chains and a quarter of the bias found: a documented bias is told,
    and no failure. A check of laws fails for a right sampler with probability 1e-4, about. What cannot be judged
    (too few effective draws, no change of mode, a temperature other than the truth's, Stein's particles) says so, and
    where a longer run or more chains would allow it the report has not ``passed``.

    Raises TypeError or ValueError as ``sample`` does for arguments that are not what they must be.
    """
    problem = as_problem(problem)
    if not isinstance(sampler, Sampler):
        raise TypeError(f"sampler must be a Sampler, got {shown(sampler)} of type {type(sampler).__name__}")
    fewer = FEWER if sampler.tempers.weighs_by_chain else 1
    seed = check_count("seed", seed, at_least=0, below=2**64)
    n_steps = check_count("n_steps", STEPS * fewer if n_steps is None else n_steps, at_least=4, below=MOST_STEPS)
    burn_in = check_count("burn_in", n_steps // 4 if burn_in is None else burn_in, at_least=0, below=n_steps)
    n_chains = check_count("n_chains", CHAINS // fewer if n_chains is None else n_chains, at_least=8, below=MOST_CHAINS)
    setting = setting_of(problem, sampler, n_steps, burn_in, n_chains, init, seed)
    checks = [Check(name, *verdict) for name, verdict in all_checks(setting, seed)]
    return Report(problem.name, sampler.name, tuple(checks))


def all_checks(setting: Setting, seed: int) -> Iterator[tuple[str, Verdict]]:
    """Name and verdict of every check, in the order of the report."""
    problem = setting.problem
    yield "gradient", gradient_verdict(problem, setting.plan.init[0, 0])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ContourWarning)  # the weights of these short runs do not matter
            yield from check_bits(case_of(setting, seed), likely_cause)
    except DivergenceError as error:
        yield "bits", Verdict(None, f"not checked: {error}")
    yield from check_laws(setting)


def gradient_verdict(problem: Problem, start: Floats) -> Verdict:
    """The verdict of ``check_gradient``."""
    try:
        return Verdict(True, str(check_gradient(problem, init=None if problem.truth is not None else start)))
    except GradientError as error:
        return Verdict(False, str(error))
    except ValueError as error:
        return Verdict(None, f"not checked: {error}")


def setting_of(
    given: Problem, sampler: Sampler, n_steps: int, burn_in: int, n_chains: int, init: Any, seed: int
) -> Setting:
    """The setting of the runs for laws, with checked arguments."""
    problem = given
    if given.domain is not None and sampler.boundary.kind == "ignore":
        problem = Problem(given.target, truth=given.target.truth)
    rounds, replicas, dim = 1, sampler.n_replicas, problem.target.dim
    if sampler.n_chains is not None:
        rounds, n_chains = -(-n_chains // sampler.n_chains), sampler.n_chains
    exact = exact_draws(problem, max(N_EXACT, rounds * n_chains * replicas), seed)
    starts_exact = init is None and exact is not None
    start = init
    if init is None and exact is not None:
        start = exact[: rounds * n_chains * replicas].reshape(rounds * n_chains, replicas, dim)
    kept = min(KEPT, max(8, MOST_NUMBERS // (n_chains * replicas * dim)))
    thin = min(max(1, (n_steps - burn_in) // kept) | 1, n_steps - burn_in)  # odd: a schedule may keep every second step
    options = RunOptions(
        n_steps=n_steps, seed=seed, n_chains=n_chains, burn_in=burn_in, thin=thin,
        init=start[:n_chains] if starts_exact else start,
    )  # fmt: skip
    job = make_job(problem, sampler, options)
    job.kept_steps()
    if not starts_exact:
        start = np.tile(job.init, (rounds, 1, 1))
    seeds = [seed, *(derived_seed(seed, ROUND, i) for i in range(1, rounds))]
    exact = None if exact is None else exact[:N_EXACT]
    return Setting(problem, given, sampler, Plan(n_steps, burn_in, thin, n_chains, start, seeds), starts_exact, exact)


def exact_draws(problem: Problem, n: int, seed: int) -> Floats | None:
    """Independent draws of the truth (n, dim); None without a truth or if it has none."""
    if problem.truth is None:
        return None
    try:
        draws = np.asarray(problem.truth.independent_draws(n, seed=seed), np.float64)
    except (AttributeError, NotImplementedError, TypeError, ValueError):
        return None
    return draws if draws.shape == (n, problem.target.dim) and np.isfinite(draws).all() else None


def case_of(setting: Setting, seed: int) -> Case:
    """The short run whose bits are compared: 240 steps, doubled until the schedule keeps a draw."""
    plan = setting.plan
    init = plan.init[: min(BIT_CHAINS, plan.n_chains)]
    case = Case(setting.problem, setting.sampler, 0, 0, init, seed)
    if setting.sampler.n_chains is not None:
        case = case.of_chains(len(init))
    n_steps = min(BIT_STEPS, plan.n_steps)
    while n_steps < plan.n_steps:
        try:
            options = RunOptions(n_steps=n_steps, burn_in=n_steps // 4, seed=seed, n_chains=len(init), init=init)
            make_job(case.problem, case.sampler, options).kept_steps()
            break
        except ValueError:
            n_steps = min(2 * n_steps, plan.n_steps)
    return case._replace(n_steps=n_steps, burn_in=n_steps // 4)
