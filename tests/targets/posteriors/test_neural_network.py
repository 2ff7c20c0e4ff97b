"""Networks: their energies by NumPy, the regressions that they contain, minibatches, bits, and what is refused."""

import itertools
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy
from scipy.special import log_expit, log_softmax

from targets.posteriors import linear_regression, logistic_regression, network, predict
from targets.posteriors.neural_network import BLAS_THREADS_FROM, TILE, chunk_of, outputs_of
from tests.support.laws import estimates, has_moments
from toolkit import Layout, check_gradient, sample, samplers
from toolkit._engine.fused import can_be_fused
from toolkit._engine.job import FEWEST_STEPS, make_job
from toolkit._engine.run_options import RunOptions
from toolkit._engine.state import make_state
from toolkit.problem import Problem

RNG = np.random.default_rng(12)
N, N_IN = 61, 5
FEATURES = RNG.standard_normal((N, N_IN))
RESPONSE = RNG.standard_normal((N, 2))
CLASSES = RNG.integers(0, 3, N)
WITH_ONES = np.column_stack([FEATURES, np.ones(N)])


def numpy_energy(weights, units, labels, likelihood, prior, noise=1.0, activation="relu"):
    outputs = outputs_of(weights, units, FEATURES, ("relu", "tanh").index(activation))
    if likelihood == "categorical":
        loss = -log_softmax(outputs, axis=1)[np.arange(N), labels].sum()
    elif likelihood == "bernoulli":
        loss = -log_expit(np.where(labels > 0, outputs, -outputs)).sum()
    else:
        loss = 0.5 * np.nansum((outputs - labels) ** 2) / noise**2
        loss += np.isfinite(labels).sum() * np.log(noise * np.sqrt(2.0 * np.pi))
    return loss + 0.5 * (weights**2).sum() / prior**2


@pytest.mark.cases(6)
@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize("hidden", [(), (4,), [5, 4, 3]])
@pytest.mark.parametrize("likelihood", ["categorical", "bernoulli", "normal"])
def test_energy_and_gradient(likelihood, hidden, activation):
    labels = {
        "categorical": CLASSES,
        "bernoulli": (RESPONSE > 0.2).astype(int),
        "normal": np.where(RNG.random((N, 2)) < 0.3, np.nan, RESPONSE),
    }[likelihood]
    target = network(
        FEATURES, labels, hidden=hidden, likelihood=likelihood, prior=0.7, noise=0.4, activation=activation
    )
    units = [N_IN, *hidden, 3 if likelihood == "categorical" else 2]
    assert target.dim == sum((a + 1) * b for a, b in itertools.pairwise(units))
    points = RNG.normal(scale=0.6, size=(11, target.dim))
    expected = [numpy_energy(w, units, labels, likelihood, 0.7, 0.4, activation) for w in points]
    np.testing.assert_allclose(target.evaluate(points)[0], expected, rtol=1e-12)
    wrong = [
        numpy_energy(w, units, labels, likelihood, 0.7, 0.4, "tanh" if activation == "relu" else "relu") for w in points
    ]
    assert hidden == () or not np.allclose(target.evaluate(points)[0], wrong, rtol=1e-3)
    check_gradient(target, points=points[:2] + 0.013)


def test_wide_layers_are_divided_and_are_the_same():
    """Layers of more weights than one thread's product takes: 400 inputs in 2 pieces, 300 hidden units in several."""
    assert chunk_of(400, 300) < 400
    assert TILE * chunk_of(400, 300) * 300 <= BLAS_THREADS_FROM
    features = RNG.standard_normal((50, 400))
    target = network(features, RESPONSE[:50], hidden=(280, 60), likelihood="normal", activation="tanh")
    points = RNG.normal(scale=0.05, size=(2, target.dim))
    for w, energy in zip(points, target.evaluate(points)[0], strict=True):
        outputs = outputs_of(w, [400, 280, 60, 2], features, 1)
        np.testing.assert_allclose(
            energy - 50.0 * np.log(2.0 * np.pi),
            0.5 * ((outputs - RESPONSE[:50]) ** 2).sum() + 0.5 * (w**2).sum(),
            rtol=1e-12,
        )
    direction = RNG.standard_normal(target.dim)
    step = 1e-5
    ends = target.evaluate(points[0] + np.outer([step, -step], direction))[0]
    slope = target.evaluate(points[:1])[1][0] @ direction
    np.testing.assert_allclose((ends[0] - ends[1]) / (2 * step), slope, rtol=1e-6)


@pytest.mark.parametrize("batch_size", [None, 8])
def test_without_hidden_layers_it_is_a_regression(batch_size):
    """Linear and logistic regression, the intercept last: all data, and the same data of a minibatch."""
    ours = network(
        FEATURES, RESPONSE[:, 0], hidden=(), likelihood="normal", noise=0.5, prior=2.0, batch_size=batch_size
    )
    theirs = linear_regression(WITH_ONES, RESPONSE[:, 0], noise=0.5, prior=2.0, batch_size=batch_size)
    points = RNG.standard_normal((3, N_IN + 1))
    constant = (N_IN + 1) * np.log(2.0) + 0.5 * (N_IN + 1) * np.log(2.0 * np.pi)  # of the prior
    marks = (CLASSES > 0).astype(int)
    logits = network(FEATURES, marks, hidden=(), likelihood="bernoulli", prior=2.0, batch_size=batch_size)
    logistic = logistic_regression(WITH_ONES, marks, prior=2.0, batch_size=batch_size)
    for own, known, shift in ((ours, theirs, constant), (logits, logistic, 0.0)):
        np.testing.assert_allclose(own.evaluate(points)[0] + shift, known.evaluate(points)[0], rtol=1e-12)
        np.testing.assert_allclose(own.evaluate(points)[1], known.evaluate(points)[1], rtol=1e-11, atol=1e-11)
        if batch_size is not None:
            drawn = [estimates(target, points, lanes=5, step=4) for target in (own, known)]
            np.testing.assert_allclose(drawn[0][0] + shift, drawn[1][0], rtol=1e-11)
            np.testing.assert_allclose(drawn[0][1], drawn[1][1], rtol=1e-9, atol=1e-9)
            assert not np.allclose(drawn[0][0] + shift, known.evaluate(points)[0][:, None], rtol=1e-3)


@pytest.mark.parametrize(("noise", "prior"), [(0.5, 2.0), (3.0, 0.7), (1e-3, 5.0)])
def test_energies_of_normal_labels_have_their_constant(noise, prior):
    """U is −log N(y | f, noise²) of every observed label plus the prior's square; its integral is the evidence."""
    response = np.where(RNG.random((N, 2)) < 0.3, np.nan, RESPONSE[:, :2])
    options = {"hidden": (), "likelihood": "normal", "noise": noise, "prior": prior}
    target = network(FEATURES, response, **options)
    weights = RNG.standard_normal((3, target.dim))
    outputs = predict(target, weights, FEATURES)
    logs = np.nansum(scipy.stats.norm.logpdf(response, outputs, noise), axis=(1, 2))
    energies, gradients = target.evaluate(weights)
    np.testing.assert_allclose(energies, -logs + 0.5 * (weights**2).sum(axis=1) / prior**2, rtol=1e-12)
    plain = network(FEATURES, response, **options, normalised=False)
    shift = np.isfinite(response).sum() * np.log(noise * np.sqrt(2.0 * np.pi))
    np.testing.assert_allclose(energies - plain.evaluate(weights)[0], shift, rtol=1e-9)
    assert (plain.evaluate(weights)[1] == gradients).all()
    known = linear_regression(WITH_ONES, RESPONSE[:, 0], noise=noise, prior=prior)
    ours = network(FEATURES, RESPONSE[:, 0], **options)
    place, prior_constant = np.zeros((1, known.dim)), known.dim * np.log(prior * np.sqrt(2.0 * np.pi))
    apart = known.evaluate(place)[0] - ours.evaluate(place)[0]
    np.testing.assert_allclose(apart, prior_constant, rtol=1e-7)


def test_minibatches_have_their_mean_and_covariance():
    """Unbiased, and with N²/n times the covariance over the data; the prior in full."""
    drawn = 7
    target = network(FEATURES, CLASSES, hidden=(4,), prior=0.8, batch_size=drawn)
    x = RNG.normal(scale=0.7, size=target.dim)
    energy, gradient, _ = estimates(target, x[None], lanes=20_000, step=3)
    parts = []
    for i in range(N):
        one = network(FEATURES[i : i + 1], CLASSES[i : i + 1], hidden=(4,), n_classes=3, prior=None)
        value, slope = one.evaluate(x[None])
        parts.append([value[0], *slope[0, :6]])
    exact = target.evaluate(x[None])
    mean = np.concatenate([exact[0], exact[1][0, :6]])
    covariance = N**2 / drawn * np.cov(np.transpose(parts), bias=True)
    values = np.vstack([energy, gradient[:6, 0]])
    assert has_moments(values, mean, covariance)
    assert not has_moments(values, mean, 0.9 * covariance)


def test_hmc_samples_the_posterior_of_a_linear_network():
    target = network(FEATURES[:, :2], RESPONSE[:, 0], hidden=(), likelihood="normal", noise=1.0, prior=2.0)
    truth = linear_regression(WITH_ONES[:, [0, 1, 5]], RESPONSE[:, 0], noise=1.0, prior=2.0).truth
    run = sample(target, samplers.hmc(0.1, n_leapfrogs=8), n_steps=3000, burn_in=200, n_chains=8, seed=3)
    draws = run.draws.reshape(-1, 3)
    error = np.sqrt(np.diag(truth.covariance) / 5000.0)  # far fewer than independent
    assert (np.abs(draws.mean(axis=0) - truth.mean) < 5.0 * error).all()
    np.testing.assert_allclose(np.cov(draws.T), truth.covariance, rtol=0.1, atol=0.05 * truth.covariance.max())
    assert not (np.abs(draws.mean(axis=0) - truth.mean - 12.0 * error) < 5.0 * error).any()


@pytest.mark.parametrize("batch_size", [None, 16])
def test_bits_do_not_depend_on_the_layout(batch_size):
    target = network(FEATURES, CLASSES, hidden=(8,), batch_size=batch_size)
    options = {"n_steps": 12, "seed": 8, "keep_energies": True}
    sampler = samplers.sghmc(1e-2, friction=0.1)
    whole = sample(target, sampler, n_chains=19, threads=1, **options)
    assert len(np.unique(whole.energies[:, 0, -1])) == 19
    for chains, layout, threads in ((19, Layout(chunk_steps=5, lanes=6), 2), (3, Layout(lanes=1), 1), (1, Layout(), 1)):
        run = sample(target, sampler, n_chains=chains, threads=threads, layout=layout, **options)
        np.testing.assert_array_equal(run.draws, whole.draws[:chains])
        np.testing.assert_array_equal(run.energies, whole.energies[:chains])


def test_blocks_have_no_idle_lanes():
    target = network(FEATURES, CLASSES, hidden=(8,))
    state = make_state(Problem(target), samplers.sgld(0.1), np.zeros((3, 1, target.dim)), 0)
    assert state.position.shape == (target.dim, 3)


SCRIPT = """
import hashlib
import numpy as np
from targets.posteriors import network
from toolkit import sample, samplers
rng = np.random.default_rng(1)
target = network(rng.standard_normal((300, 130)), rng.integers(0, 3, 300), hidden=(120, 100), batch_size=200)
run = sample(target, samplers.sgld(1e-4), n_steps=4, n_chains=4, seed=0, threads=2)
print(hashlib.sha256(run.draws.tobytes()).hexdigest())
"""


@pytest.mark.slow
def test_bits_do_not_depend_on_the_threads_of_blas():
    found = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT], env={**os.environ, "OPENBLAS_NUM_THREADS": threads}, check=True, text=True,
            capture_output=True, timeout=300,
        ).stdout
        for threads in ("1", "2")
    }  # fmt: skip
    assert len(found) == 1


def test_a_run_of_a_network_begins_with_short_chunks_and_is_never_fused():
    """So that Ctrl-C, the bar and checkpoints need not wait for the whole run."""
    target = network(FEATURES, CLASSES, hidden=(8,))
    job = make_job(target, samplers.sgld(0.1), RunOptions(n_steps=10**6, seed=0, thin=1000))
    assert job.chunk_length == FEWEST_STEPS
    assert not can_be_fused(job)
    large = network(FEATURES, CLASSES, hidden=(1000, 100))
    state = make_state(Problem(large), samplers.sgld(0.1), np.zeros((1, 1, large.dim)), 0)
    assert 0 < state.noise_buffer.normals.nbytes <= 8 * 2**20


def test_predictions():
    target = network(FEATURES, CLASSES, hidden=(6,))
    points = RNG.standard_normal((2, 3, target.dim))
    found = predict(target, points, FEATURES[:4])
    assert found.shape == (2, 3, 4, 3)
    np.testing.assert_allclose(found.sum(axis=-1), 1.0, rtol=1e-14)
    losses = -np.log(predict(target, points[0, 0], FEATURES)[np.arange(N), CLASSES]).sum()
    np.testing.assert_allclose(losses + 0.5 * (points[0, 0] ** 2).sum(), target.evaluate(points[0, :1])[0][0])
    seen = network(FEATURES, (CLASSES > 0).astype(int), hidden=(6,), likelihood="bernoulli")
    probability = predict(seen, points[0, 0, : seen.dim], FEATURES)[:, 0]
    losses = -np.log(np.where(CLASSES > 0, probability, 1.0 - probability)).sum()
    np.testing.assert_allclose(
        losses + 0.5 * (points[0, 0, : seen.dim] ** 2).sum(), seen.evaluate(points[0, :1, : seen.dim])[0][0]
    )


def test_a_permutation_of_hidden_units_changes_no_energy():
    """A law of the posterior: it has modes that differ only by the order of units."""
    target = network(FEATURES, CLASSES, hidden=(6,), activation="tanh")
    w = RNG.standard_normal(target.dim)
    order, end = RNG.permutation(6), N_IN * 6
    moved = np.concatenate([
        w[:end].reshape(N_IN, 6)[:, order].ravel(), w[end : end + 6][order],
        w[end + 6 : end + 24].reshape(6, 3)[order].ravel(), w[end + 24 :],
    ])  # fmt: skip
    first, second = target.evaluate(np.stack([w, moved]))[0]
    assert abs(first - second) < 1e-11 * abs(first)
    moved[:end] = w[:end]
    assert abs(first - target.evaluate(moved[None])[0][0]) > 0.1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"features": np.full((N, 2), np.nan)}, "features must be finite, got nan at"),
        ({"features": np.zeros((0, 3))}, "features must have shape"),
        ({"labels": CLASSES[:-1]}, f"labels must have one row for each of the {N} rows"),
        ({"labels": CLASSES - 1}, "labels must be integers from 0 to"),
        ({"labels": CLASSES + 0.5}, "labels must be integers from 0 to"),
        ({"n_classes": 2}, "labels must be integers from 0 to 1"),
        ({"batch_size": 0}, "batch_size must be"),
        ({"hidden": (3, 0)}, r"hidden\[1\] must be"),
        ({"hidden": 3}, "hidden must be"),
        ({"hidden": (400, 400)}, "fewer than 131072 weights"),
        ({"likelihood": "poisson"}, "likelihood must be"),
        ({"activation": "gelu"}, "activation must be"),
        ({"likelihood": "bernoulli"}, "labels must be 0 or 1"),
        ({"likelihood": "normal", "n_classes": 3}, "n_classes must be None"),
        ({"likelihood": "normal", "labels": np.full(N, np.nan)}, "not all nan"),
        ({"prior": 0.0}, "prior must be"),
    ],
)
def test_refusals(change, words):
    with pytest.raises((TypeError, ValueError), match=words):
        network(**{"features": FEATURES, "labels": CLASSES, **change})


def test_refusals_of_predictions_and_backends():
    target = network(FEATURES, CLASSES, hidden=(4,))
    with pytest.raises(ValueError, match=r"features must have shape \(data, 5\)"):
        predict(target, np.zeros(target.dim), FEATURES[:, :3])
    with pytest.raises(ValueError, match="positions must have shape"):
        predict(target, np.zeros(3), FEATURES)
    with pytest.raises(ValueError, match=r"made by posteriors\.network"):
        predict(logistic_regression(FEATURES, (CLASSES > 0).astype(int)), np.zeros(5), FEATURES)
    with pytest.raises(ValueError, match="backend must be 'cpu'"):
        sample(target, samplers.sgld(0.1), n_steps=1, seed=0, backend="cuda")


def test_the_documented_example_classifies_digits():
    page = (Path(__file__).resolve().parents[3] / "docs" / "networks.md").read_text(encoding="utf-8")
    names = {}
    exec(page.partition("```python\n")[2].partition("```")[0], names)
    assert names["accuracy"] > 0.85
    assert names["probabilities"].shape == (540, 10)
