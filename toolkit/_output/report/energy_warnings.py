"""Warnings about a run's energy: it belongs to no law, or float64 does not resolve it."""

import weakref

import numpy as np

from ..._engine.run_record import RunRecord
from ...problem.properness import budget_of, improper_words, places_of, resolution_words

BASES = 2  # points from which tails are looked at
SOME = 64  # chains, and draws of each, that give the scale of the coordinates
FOUND: "weakref.WeakKeyDictionary[RunRecord, list[str]]" = weakref.WeakKeyDictionary()


def energy_warnings(run: RunRecord) -> list[str]:
    """Sentences where the energy has no law, or no resolution, from at most 1 % of the run's evaluations, or 2,000.

    Not for minibatches, of which an energy needs all data. A target whose code a loaded run lacks, or that raises,
    gives no warning.
    """
    if run not in FOUND:
        try:
            with np.errstate(all="ignore"):
                FOUND[run] = sentences(run)
        except Exception:  # of a user's function
            FOUND[run] = []
    return FOUND[run]


def sentences(run: RunRecord) -> list[str]:
    """The warnings, computed."""
    target, budget = run.problem.target, budget_of(run.gradient_evaluations)
    if target.stochastic or budget <= BASES:
        return []
    starts = run.init[:: -(-run.n_chains // SOME), 0]
    some = run.replica_draws[:: -(-run.n_chains // SOME), 0]
    draws = some[:, :: max(1, -(-some.shape[1] // SOME))].reshape(-1, target.dim)
    wide = np.concatenate([starts, draws])
    chosen = draws if len(draws) else starts
    bases, scale = places_of(run.problem, chosen[np.linspace(0, len(chosen) - 1, BASES).astype(np.int64)], wide)
    if not len(bases):
        return []
    words = improper_words(run.problem, bases, scale, budget - BASES)
    uses_energies = run.sampler.dynamics.leapfrogs > 0 or run.sampler.tempering is not None
    unresolved = resolution_words(run.problem, target.evaluate(bases)[0], are_used=uses_energies)
    return [sentence for sentence in (words, unresolved) if sentence]
