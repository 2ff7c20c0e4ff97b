"""What is added to a run of a tuned sampler: the report of the tuning, and what is doubtful after it."""

import contextlib
import dataclasses

import numpy as np
import scipy

from .._engine.run_record import Tuning
from .._output.run import Run
from ..maths.seeds import TUNING, derived_seed
from ..problem.properness import budget_of
from ..problem.python_callable import raised_in_function
from ..samplers.sampler import Sampler
from .exact_moves import EXTREME_STEPS, acceptance_at_extremes, moves_from_extremes
from .result import Tuned
from .study import LANES, Study


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
