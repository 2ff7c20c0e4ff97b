"""Contour that freezes: θ learns during burn-in and rests afterwards."""

import numpy as np
import pytest

from targets import mixtures
from toolkit import sample, samplers, tempering

NORMAL = mixtures.gaussian_mixture([[0.0]], 1.0)
BINS = tempering.Partition(0.9189, 0.5, 24)


def thetas(freezes):
    sampler = samplers.icsgld(0.05, n_replicas=3, partition=BINS, freezes=freezes)
    run = sample(NORMAL, sampler, n_steps=3000, burn_in=2000, n_chains=4, seed=1, trace_every=500)
    return run.trace.theta, run.theta


def test_theta_rests_after_burn_in():
    history, last = thetas(True)
    assert (history[:, 3:] == history[:, 3:4]).all()
    assert (history[:, 3] == last).all()
    assert (history[:, 2] != history[:, 3]).any()


def test_theta_learns_on_where_it_does_not_freeze():
    history, _ = thetas(False)
    assert (history[:, 3] != history[:, 4]).any(axis=1).all()
    np.testing.assert_array_equal(history[:, :4], thetas(True)[0][:, :4])


def test_any_frozen_theta_has_the_law():
    """θ frozen after some 300 steps is far from settled, and E x² is right all the same, within 4.5 σ and the bias."""
    sampler = samplers.csgld(0.02, partition=BINS, freezes=True)
    run = sample(NORMAL, sampler, n_steps=30_000, burn_in=300, thin=10, n_chains=200, seed=2, init=[0.0])
    x, w = run.draws[..., 0], run.weights
    values = (w * x**2).sum(axis=1) / w.sum(axis=1)
    error = values.std(ddof=1) / np.sqrt(values.size)
    assert run.theta.std(axis=0).max() > 0.1  # the chains' θ differ widely
    assert abs(values.mean() - 1.0) < 0.01 + 4.5 * error
    assert abs((x**2).mean() - 1.0) > 0.05 + 4.5 * error  # the same without weights


def test_nothing_to_learn_from_is_refused():
    with pytest.raises(ValueError, match="burn_in must be ≥ 1 for a contour that freezes"):
        sample(NORMAL, samplers.csgld(0.02, partition=BINS, freezes=True), n_steps=10, seed=1)
