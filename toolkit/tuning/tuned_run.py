"""What ``sample`` and ``stream`` do with a tuned sampler, or with none."""

import contextlib
import dataclasses
from typing import Any, NamedTuple

import numpy as np
import scipy

from .._engine.run_record import Tuning
from .._output.execution import check_arguments, run_sampler
from .._output.run import Run
from ..diagnostics import stopping
from ..diagnostics.stopping import Condition
from ..errors import check_count, shown
from ..maths.seeds import TUNING, derived_seed
from ..problem.definition import Problem, Spread, as_problem
from ..problem.properness import budget_of
from ..problem.python_callable import raised_in_function
from ..samplers.exchange import pt_hmc
from ..samplers.sampler import Sampler
from ..tempering import ReplicaExchange
from .exact_moves import EXTREME_STEPS, acceptance_at_extremes, moves_from_extremes
from .procedure import chosen, tune
from .result import Tuned
from .study import LANES, Floats, Study

ESS, R_HAT, ROUND_TRIPS = 1_000, 1.01, 100  # what a run ends at, unless told
ATTEMPTS = ((200_000, 4_000_000), (800_000, 16_000_000))  # gradients of the tuning, and of the run


class Arguments(NamedTuple):
    """Arguments of ``sample``, as far as a tuning decides them where they are None."""

    sampler: Sampler
    n_steps: Any
    n_chains: Any
    burn_in: Any
    thin: Any
    init: Any
    until: Any


def filled(problem: Any, tuned: Any, most: int, given: dict[str, Any]) -> Arguments:
    """Arguments of a run of ``tuned``, a Sampler or a Tuned. Raises TypeError for anything else."""
    if not isinstance(tuned, Tuned):
        if not isinstance(tuned, Sampler):
            raise TypeError(
                f"sampler must be None, a Sampler or a Tuned, got {shown(tuned)} of type {type(tuned).__name__}; "
                "write a call that makes one, such as samplers.sgld(step_size=0.01)"
            )
        usual = {"n_chains": 1, "burn_in": 0, "thin": 1}
        return Arguments(tuned, **{name: usual.get(name) if value is None else value for name, value in given.items()})
    dim = as_problem(problem).target.dim
    if tuned.init.shape[2] != dim:
        raise ValueError(f"sampler was tuned for {tuned.problem!r} of dimension {tuned.init.shape[2]}, not {dim}")
    values = dict(given)
    if values["n_chains"] is None:
        values["n_chains"] = tuned.n_chains
    if values["until"] is None and values["n_steps"] is None:
        values["until"] = default_condition(tuned.sampler, most)
    own_starts = values["init"] is None
    if own_starts:
        n_chains = check_count("n_chains", values["n_chains"], at_least=1, below=2**31)
        values["init"] = np.resize(tuned.init, (n_chains, *tuned.init.shape[1:]))
    values["burn_in"], values["thin"] = burn_in_and_thin(tuned, values)
    return Arguments(tuned.sampler, **values)


def burn_in_and_thin(tuned: Tuned, values: dict[str, Any]) -> tuple[Any, Any]:
    """Burn-in and thinning: as given, else as tuned, but so that a run of a known end leaves draws.

    That is of ``n_steps``, or one that ``until`` ends at a number of gradients. values: all other arguments.
    """
    burn_in, thin, until = values["burn_in"], values["thin"], values["until"]
    known = [] if values["n_steps"] is None else [check_count("n_steps", values["n_steps"], at_least=1)]
    if isinstance(until, Condition):
        each = check_count("n_chains", values["n_chains"], at_least=1, below=2**31) * tuned.sampler.gradients_per_step
        known += [int(limit // each) for limit in ends_at(until)]
    if burn_in is None:
        burn_in = min([tuned.burn_in, *(steps // 4 for steps in known)])
    if thin is None:
        thin = max(1, min([tuned.thin, *(steps // 400 for steps in known)]))
    return burn_in, thin


def ends_at(condition: Condition) -> list[float]:
    """The numbers of gradients each of which ends a run by itself: not those that other conditions must hold beside."""
    if isinstance(condition, stopping.AnyOf):
        return [limit for part in condition.parts for limit in ends_at(part)]
    return [condition.n] if isinstance(condition, stopping.Gradients) else []


def default_condition(sampler: Sampler, most: int) -> Condition:
    """ESS and R-hat of every coordinate, round trips under replica exchange; at most so many gradients."""
    wanted = stopping.ess(ESS) & stopping.r_hat(R_HAT)
    if isinstance(sampler.tempering, ReplicaExchange):
        wanted = wanted & stopping.round_trips(ROUND_TRIPS)
    return wanted | stopping.gradients(most)


def attempt_seeds(seed: int) -> list[int]:
    """The seeds of the tunings of all attempts."""
    return [derived_seed(seed, TUNING, 0, attempt) for attempt in range(len(ATTEMPTS))]


def run_seed(seed: int, attempt: int) -> int:
    """The seed of the run of an attempt: the user's own for the first."""
    return derived_seed(seed, TUNING, 1, attempt) if attempt else seed


def begun(problem: Problem, given: dict[str, Any]) -> Sampler | None:
    """What the tuning begins with: None, or parallel tempering where the caller's condition counts its round trips."""
    until = given["until"]
    if not isinstance(until, Condition) or problem.target.stochastic:
        return None
    if not any(isinstance(condition, stopping.RoundTrips) for condition in stopping.singles(until)):
        return None
    return pt_hmc(boundary=chosen(problem).boundary)


def check_call(problem: Problem, given: dict[str, Any], options: dict[str, Any]) -> None:
    """Raise what a run with these arguments would, before a tuning. given, options: as of ``run_chosen``."""
    usual = {"n_chains": LANES, "burn_in": 0, "thin": 1, "init": None}
    filled_in = {name: usual.get(name) if value is None else value for name, value in given.items()}
    if given["n_steps"] is None and given["until"] is None:
        filled_in["until"] = stopping.ess(ESS)
    filled_in["init"] = given["init"] if isinstance(given["init"], Spread) else None
    check_arguments(problem, begun(problem, given) or chosen(problem), **filled_in, **options)


def attempted(problem: Problem, given: dict[str, Any], options: dict[str, Any], attempt: int, init: Any) -> Tuned:
    """The tuning of an attempt, from ``init``. given, options: as of ``run_chosen``."""
    return tune(
        problem, begun(problem, given), seed=attempt_seeds(options["seed"])[attempt], n_gradients=ATTEMPTS[attempt][0],
        init=init, threads=options["threads"], progress=options["progress"],
    )  # fmt: skip


def run_chosen(problem: Any, given: dict[str, Any], options: dict[str, Any]) -> Run:
    """A run of a sampler that is chosen and tuned; where it does not come to what is wanted, once more, with more.

    given: of ``Arguments``, but the sampler; options: all others of ``run_sampler``. Where the caller says how long the
    run is to be, there is one attempt.
    """
    problem = as_problem(problem)
    check_call(problem, given, options)
    limits = ATTEMPTS if given["until"] is None and given["n_steps"] is None else ATTEMPTS[:1]
    init, run, spent, seed = given["init"], None, 0, options["seed"]
    for attempt, (_, most) in enumerate(limits):
        tuned = attempted(problem, given, options, attempt, init)
        path = options["checkpoint"]
        own: dict[str, Any] = {"seed": run_seed(seed, attempt)}
        if attempt and path is not None:
            own["checkpoint"] = f"{path}.again"
        arguments = filled(problem, tuned, most, {**given, "init": None})._asdict()
        run = run_sampler(problem, **arguments, **{**options, **own})
        run = with_tuning(run, tuned, spent, options["threads"], seed)
        assert run.tuning is not None
        is_settled = run.stopping is None or (run.stopping.satisfied and not run.tuning.warnings)
        if run.interrupted or is_settled or attempt + 1 == len(limits):
            break
        init, spent = starts_from(problem, run, tuned), run.tuning.gradients + run.gradient_evaluations
    assert run is not None
    return run


def starts_from(problem: Problem, run: Run, tuned: Tuned) -> Floats:
    """Points (n, dim) for the next tuning: draws, and states of all rungs, where they are finite and inside."""
    draws = run.draws.reshape(-1, problem.target.dim)
    some = draws[np.linspace(0, len(draws) - 1, 32).astype(np.int64)] if len(draws) else draws
    points = np.concatenate(
        [
            some,
            tuned.sites,
            np.resize(tuned.init.swapaxes(0, 1).reshape(-1, problem.target.dim), (32, problem.target.dim)),
        ]
    )
    finite = np.isfinite(points).all(axis=1)
    return np.asarray(points[finite & problem.contains(np.where(finite[:, None], points, 0.0))])


def with_tuning(run: Run, tuned: Tuned, before: int = 0, threads: int | None = None, seed: int | None = None) -> Run:
    """``run`` with the report of its tuning, and with what is doubtful.

    before: gradients of an earlier attempt. seed: the user's; None: that of the run.
    What the tuning could not find is no concern of a run that has come to what was wanted.
    """
    settled = run.stopping is not None and run.stopping.satisfied
    doubts = () if settled else tuned.warnings
    with contextlib.suppress(KeyboardInterrupt):  # the run is there, whatever is thought of it
        doubts = (*doubts, *places_in_doubt(run, tuned, threads))
    report = tuned.report
    if before:
        report += (
            f"\n\n  A tuning and a run before this one, of {before:,} gradients together, were not enough. The "
            f"chains' own seed, {run.seed}, was made from the one given{'' if seed is None else f', {seed}'}."
        )
    own = None if seed == run.seed else seed
    return dataclasses.replace(run, tuning=Tuning(report, before + tuned.cost.gradients, doubts, own))


def places_in_doubt(run: Run, tuned: Tuned, threads: int | None) -> tuple[str, ...]:
    """Warnings of ``unvisited`` and ``narrow_places``; none where a Python function raises what it has not before."""
    if run.problem.target.callback is None:
        return *unvisited(run, tuned), *narrow_places(run, threads)
    budget = budget_of(run.gradient_evaluations)
    try:
        return *unvisited(run, tuned, budget // 4), *narrow_places(run, threads, budget - budget // 4)
    except Exception as error:
        if not raised_in_function(error):
            raise
        return ()  # the run is there


def narrow_places(run: Run, threads: int | None = None, budget: int | None = None) -> tuple[str, ...]:
    """A warning where moves from the most extreme draws are accepted much less than others.

    budget: of evaluations, None: as many as it takes. It is split between the draws, of which the extreme ones are
    found, and the moves from these, which are then of fewer chains, so that chance is allowed for.
    """
    draws = run.draws.reshape(-1, run.draws.shape[2])
    if run.interrupted:
        return ()
    if not run.sampler.dynamics.leapfrogs or run.sampler.is_weighted or len(draws) < 1000 or run.diverged.any():
        return ()
    lanes, chance = LANES, 0.0
    if budget is not None:
        lanes, left = lanes_within(budget, run.sampler)
        if lanes == 0:
            return ()
        draws = draws[:: -(-len(draws) // left)]
        chance = 0.5 / np.sqrt(lanes * EXTREME_STEPS)  # a standard error of a share, at most
    study = Study(run.problem, derived_seed(run.seed, TUNING, 2), 0, run.sampler.boundary, threads=threads)
    usual = float(run.acceptance[:, 0].mean())
    extreme = acceptance_at_extremes(study, run.sampler, draws, lanes)
    if extreme + chance >= VERY_NARROW * usual:
        return ()
    return (
        f"Moves from the draws of the highest energies or steepest gradients are accepted at {extreme:.0%}, and others "
        f"at {usual:.0%}: there are places too narrow for the step size, and more of them may have no draws; make it "
        "smaller.",
    )


FEW_LANES = (16, 8)  # chains from extreme draws of a Python function; few, so that energies of many draws are known


def lanes_within(budget: int, sampler: Sampler) -> tuple[int, int]:
    """How many chains to start from extreme draws for three quarters of ``budget``, and the evaluations that are left.

    0 chains where not even the fewest can be had.
    """
    for lanes in FEW_LANES:
        cost = moves_from_extremes(sampler, lanes)
        if 4 * cost <= 3 * budget:
            return lanes, budget - cost
    return 0, budget


# Places that exploration found, and the run did not.

VERY_NARROW = 0.5  # as NARROW, of a run: below it a warning
MOST_DRAWS = 2**14
FEWEST_DRAWS = 100  # of a Python function, whose evaluations are few
USUAL = 0.9  # quantile of the draws' energies: a place with less is where draws should be
FAR = 3.0  # times the distance of a draw from its nearest, the 99.5 % quantile


def unvisited(run: Run, tuned: Tuned, budget: int | None = None) -> tuple[str, ...]:
    """A warning where a state of exploration, of an energy as draws have it, has no draw near.

    Not where draws are weighted or fewer than 1,000, or energies are of minibatches. budget: of evaluations, None: as
    many as it takes; half of it is for draws, half for states.
    """
    draws = run.draws.reshape(-1, run.draws.shape[2])
    target, sites = run.problem.target, tuned.sites
    if len(sites) == 0 or len(draws) < 1000 or run.sampler.is_weighted or target.stochastic:
        return ()
    most = 1024 if budget is None else min(1024, budget // 2)
    if most < FEWEST_DRAWS:
        return ()
    if budget is not None:
        sites = sites[:: -(-len(sites) // most)]
    draws = draws[:: -(-len(draws) // MOST_DRAWS)]
    draws = draws[np.isfinite(draws).all(axis=1)]
    some = draws[:: -(-len(draws) // most)]
    energies, gradients = target.evaluate(some)
    site_energies = target.evaluate(sites)[0]
    usual = np.quantile(energies, USUAL)
    sites = sites[site_energies <= usual]
    units = np.sqrt((gradients**2).mean(axis=0))
    if len(sites) == 0 or not (np.isfinite(units).all() and (units > 0.0).all()):
        return ()
    tree = scipy.spatial.cKDTree(draws * units)
    apart = tree.query(some * units, k=4)[0][:, 3]  # the draw itself, and copies of a rejected move
    missed = tree.query(sites * units)[0] > FAR * np.quantile(apart, 0.995)
    if not missed.any():
        return ()
    where = ", ".join(f"{x:.3g}" for x in sites[np.argmax(missed)][:4])
    return (
        f"{int(missed.sum())} of {len(sites)} places of low energy that the tuning had come to have no draw near, such "
        f"as ({where}{', …' if sites.shape[1] > 4 else ''}): a mode of little weight, or one that the run has lost; "
        "give more steps, or tune with more n_gradients.",
    )
