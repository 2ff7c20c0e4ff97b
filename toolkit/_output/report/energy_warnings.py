"""Warnings about a run's energy: it belongs to no law, or float64 does not resolve it."""

import weakref

import numpy as np

from ..._engine.run_record import RunRecord
from ...problem.properness import EvaluationError, budget_of, energies_at, improper_words, places_of, resolution_words

BASES = 2  # points from which tails are looked at
SOME = 64  # chains, and draws of each, that give the scale of the coordinates
FOUND: "weakref.WeakKeyDictionary[RunRecord, list[str]]" = weakref.WeakKeyDictionary()


def energy_warnings(run: RunRecord) -> list[str]:
    """Sentences where the energy has no law, or no resolution.

    They cost at most 1 % of the run's evaluations, or 2,000; of a compiled target 300 however short the run.
    There are none for minibatches, of which an energy needs all data, nor where the target raises, or a loaded run
    lacks its code.
    """
    if run not in FOUND:
        try:
            with np.errstate(all="ignore"):
                FOUND[run] = sentences(run)
        except EvaluationError:
            FOUND[run] = []
    return FOUND[run]


def sentences(run: RunRecord) -> list[str]:
    """The warnings, computed."""
    target = run.problem.target
    budget = budget_of(run.gradient_evaluations, is_compiled=target.callback is None)
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
    unresolved = resolution_words(run.problem, energies_at(run.problem, bases), are_used=uses_energies)
    return [sentence for sentence in (words, unresolved) if sentence]
