"""What is recorded with every draw: walkers, swaps, reflections, beside counts and traces that know them otherwise."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from targets import classics, constrained, mixtures, shapes
from toolkit import Layout, boundaries, sample, samplers
from toolkit._engine.recording import LARGEST_TALLY

FLOWER = constrained(mixtures.cosine25(), shapes.flower(petals=5, offset=3.0, radius=2.0))
LADDER = {"step_sizes": (5e-4, 1e-3, 2e-3), "temperatures": (1.0, 3.0, 10.0)}


def swaps_of_rungs(accepted, pairs, n_replicas):
    """Accepted swaps (chain, pair) as the sum over the pairs that a rung belongs to, (chain, rung)."""
    return np.stack([accepted[:, [rung in pair for pair in pairs]].sum(axis=1) for rung in range(n_replicas)], axis=1)


@pytest.mark.parametrize("scheme", ["deo", "seo", "adjacent", "all_pairs"])
@pytest.mark.parametrize("keep_replicas", [False, True])
def test_the_last_draw_has_counted_what_the_run_has(scheme, keep_replicas):
    sampler = samplers.r2sgld(**LADDER, scheme=scheme)
    arguments = {"n_steps": 600, "burn_in": 200, "n_chains": 5, "seed": 3, "keep_replicas": keep_replicas}
    run = sample(FLOWER, sampler, **arguments, thin=4, trace_every=4)
    kept = 3 if keep_replicas else 1
    assert all(values.shape == (5, kept, 100) and values.dtype == np.int32 for values in run.statistics)
    expected = swaps_of_rungs(run.counts.accepted, sampler.tempering.pairs(3), 3)
    assert expected.min() > 20
    # Swaps come before the move, and a draw after it, so the last draw has seen every one.
    assert_array_equal(run.statistics.swaps[:, :, -1], expected[:, :kept])
    assert_array_equal(run.statistics.reflections[:, :, -1], run.reflections[:, :kept])
    assert (np.diff(run.statistics.swaps, axis=2) >= 0).all()
    assert (np.diff(run.statistics.reflections, axis=2) >= 0).all()
    assert_array_equal(run.statistics.walker, run.trace.fields["walker"][:, :kept, 50:])
    if keep_replicas:
        assert_array_equal(np.sort(run.statistics.walker, axis=1), np.broadcast_to(np.arange(3)[:, None], (5, 3, 100)))


def test_a_walker_changes_where_an_odd_number_of_swaps_was_accepted():
    """With two rungs a walker is the parity of all accepted swaps; burn-in's are not counted, so in differences."""
    run = sample(FLOWER, samplers.r2sgld(), n_steps=400, n_chains=8, seed=1, keep_replicas=True)
    changed = np.diff(run.statistics.walker[:, 0], axis=1) != 0
    accepted = np.diff(run.statistics.swaps[:, 0], axis=1)
    assert accepted.sum() > 100
    assert_array_equal(changed, accepted % 2 == 1)


def test_bits_do_not_depend_on_the_layout_and_nothing_is_kept_where_nothing_happens():
    arguments = {"n_steps": 300, "seed": 9, "thin": 3}
    first = sample(FLOWER, samplers.r2sgld(), n_chains=7, **arguments)
    for threads, layout in ((1, Layout(lanes=1, chunk_steps=7)), (2, Layout(lanes=64))):
        other = sample(FLOWER, samplers.r2sgld(), n_chains=19, threads=threads, layout=layout, **arguments)
        for a, b in zip(first.statistics, other.statistics, strict=True):
            assert_array_equal(a, b[:7])
    assert sample(FLOWER, samplers.r2sgld(), n_steps=10, seed=0, keep_statistics=False).statistics is None
    assert sample(mixtures.cosine25(), samplers.sgld(1e-3), n_steps=10, seed=0).statistics is None
    rejects = sample(FLOWER, samplers.sgld(1e-3, boundary=boundaries.reject()), n_steps=10, seed=0).statistics
    assert_array_equal(rejects.walker, np.zeros((1, 1, 10)))
    assert_array_equal(rejects.swaps, np.zeros((1, 1, 10)))
    penalised = samplers.sgld(1e-3, boundary=boundaries.penalise(10.0))
    assert sample(FLOWER, penalised, n_steps=10, seed=0).statistics is None


def test_keep_draws_false_keeps_none():
    run = sample(classics.ring(), samplers.sgld(1e-2), n_steps=500, seed=0, init=[1.0, 0.0], keep_draws=False)
    assert run.draws.shape == (1, 0, 2)
    assert run.n_steps == run.total_steps == 500
    traced = sample(FLOWER, samplers.r2sgld(), n_steps=500, seed=0, keep_draws=False, trace_every=5, keep_energies=True)
    whole = sample(FLOWER, samplers.r2sgld(), n_steps=500, seed=0, trace_every=5)
    assert traced.energies.shape == traced.statistics.swaps.shape == (1, 1, 0)
    assert_array_equal(traced.counts.accepted, whole.counts.accepted)
    for name in whole.trace.fields:
        assert_array_equal(traced.trace.fields[name], whole.trace.fields[name])


def test_tallies_end_at_the_largest_int32():
    from numba import types

    from toolkit._compiler.decorators import compile_part
    from toolkit._compiler.signatures import TALLIES
    from toolkit._engine.recording import record_statistics
    from toolkit._engine.state import STATE, make_state

    state = make_state(FLOWER, samplers.r2sgld(), np.zeros((2, 2, 2)), 0)
    state.bounces[:] = 2**40
    state.exchange.accepted[:] = 2**40
    tallies = np.zeros((2, 2, 1, 3), np.int32)
    signature = types.void(STATE, types.int64, types.int64, types.int64, types.int64, TALLIES)
    compile_part(record_statistics.py_func, signature)(state, 2, 2, 2, 0, tallies)
    assert_array_equal(tallies[..., 0], [[[0], [1]], [[0], [1]]])
    assert_array_equal(tallies[..., 1:], np.full((2, 2, 1, 2), LARGEST_TALLY))
