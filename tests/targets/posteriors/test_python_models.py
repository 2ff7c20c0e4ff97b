"""Targets from PyTorch and JAX: a network of ours is theirs, in all data and in minibatches; what is refused.

Each part is skipped where its package is not installed: neither is in the extra ``test``.
"""

import pickle

import numpy as np
import pytest

from targets.posteriors import from_jax, from_torch, network
from toolkit import check_gradient, from_callable, sample, samplers

RNG = np.random.default_rng(3)
N, N_IN, HIDDEN, CLASSES = 60, 5, 7, 3
FEATURES, LABELS = RNG.standard_normal((N, N_IN)), RNG.integers(0, CLASSES, N)
OURS = {"hidden": (HIDDEN,), "prior": 0.7}
DIM = (N_IN + 1) * HIDDEN + (HIDDEN + 1) * CLASSES
POINTS = RNG.normal(scale=0.4, size=(3, DIM))


def layers(w):
    """Weights and biases of both layers."""
    ends = np.cumsum([N_IN * HIDDEN, HIDDEN, HIDDEN * CLASSES])
    first, bias, second, last = w[: ends[0]], w[ends[0] : ends[1]], w[ends[1] : ends[2]], w[ends[2] :]
    return first.reshape(N_IN, HIDDEN), bias, second.reshape(HIDDEN, CLASSES), last


def in_torch(points):
    """The same weights in PyTorch's order: (outputs, inputs)."""
    rows = []
    for w in points:
        first, bias, second, last = layers(w)
        rows.append(np.concatenate([first.T.ravel(), bias, second.T.ravel(), last]))
    return np.array(rows)


def agree(ours, theirs, points):
    np.testing.assert_allclose(theirs.evaluate(points)[0], ours.evaluate(POINTS)[0], rtol=1e-12)
    check_gradient(theirs, points=points[:2])


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


@pytest.fixture
def jax():
    return pytest.importorskip("jax")


def torch_target(torch, **options):
    module = torch.nn.Sequential(
        torch.nn.Linear(N_IN, HIDDEN), torch.nn.ReLU(), torch.nn.Linear(HIDDEN, CLASSES)
    )  # fmt: skip
    return from_torch(
        module, lambda outputs, labels: torch.nn.functional.cross_entropy(outputs, labels, reduction="none"),
        (FEATURES, LABELS), prior=0.7, **options,
    )  # fmt: skip


def jax_target(jax, **options):
    def losses(w, features, labels):
        first, bias, second, last = layers(w)
        outputs = jax.numpy.maximum(features @ first + bias, 0.0) @ second + last
        return -jax.nn.log_softmax(outputs)[jax.numpy.arange(len(labels)), labels]

    return from_jax(losses, dim=DIM, data=(FEATURES, LABELS), prior=0.7, **options)


def test_torch_has_the_energies_of_our_network(torch):
    agree(network(FEATURES, LABELS, **OURS), torch_target(torch), in_torch(POINTS))


def test_jax_has_the_energies_of_our_network(jax):
    agree(network(FEATURES, LABELS, **OURS), jax_target(jax), POINTS)
    normal = from_jax(lambda x: 0.5 * (x**2).sum(), dim=2)
    np.testing.assert_array_equal(normal.evaluate(np.ones((1, 2)))[1], [[1.0, 1.0]])


def test_minibatches_are_the_same_data(torch, jax):
    """Draws of minibatches agree to rounding; with other data they would differ by far more."""
    options = {"n_steps": 20, "n_chains": 3, "seed": 2}
    ours = sample(network(FEATURES, LABELS, batch_size=9, **OURS), samplers.sgld(1e-4), init=POINTS, **options).draws
    by_jax = sample(jax_target(jax, batch_size=9), samplers.sgld(1e-4), init=POINTS, **options).draws
    np.testing.assert_allclose(by_jax, ours, atol=1e-12)
    start = in_torch(POINTS)
    one_step = {"n_steps": 1, "n_chains": 3, "seed": 2}
    moves = [
        sample(torch_target(torch, batch_size=9), samplers.sgld(1e-4, temperature=1e-30), init=start, **one_step).draws,
        sample(network(FEATURES, LABELS, batch_size=9, **OURS), samplers.sgld(1e-4, temperature=1e-30), init=POINTS,
               **one_step).draws,
    ]  # fmt: skip
    np.testing.assert_allclose(moves[0][:, 0], in_torch(moves[1][:, 0]), atol=1e-13)
    assert np.abs(moves[0][:, 0] - start).max() > 1e-4


def test_a_pickled_target_has_the_same_bits(torch, jax):
    """JAX would read arrays of 64 bits as 32 where its setting is the default."""
    for target in (torch_target(torch, batch_size=9), jax_target(jax, batch_size=9)):
        again = pickle.loads(pickle.dumps(target))
        np.testing.assert_array_equal(again.evaluate(POINTS)[1], target.evaluate(POINTS)[1])
    features, response = np.ones((40, 1)), 1e8 + RNG.standard_normal(40)
    target = from_jax(lambda w, x, y: 0.5 * (x @ w + 1e8 - y) ** 2, dim=1, data=(features, response))
    again = pickle.loads(pickle.dumps(target))
    np.testing.assert_array_equal(again.evaluate([[0.3]])[0], target.evaluate([[0.3]])[0])


def test_torch_keeps_its_own_data_and_leaves_the_module_alone(torch):
    """Arrays changed afterwards, buffers and frozen parameters are those of the moment; the docstring's start works."""
    features, module = FEATURES.copy(), torch.nn.Sequential(
        torch.nn.BatchNorm1d(N_IN), torch.nn.Linear(N_IN, 4), torch.nn.Linear(4, CLASSES)
    ).double()  # fmt: skip
    module[1].weight.requires_grad_(False)
    module.eval()
    target = from_torch(
        module, lambda outputs, labels: torch.nn.functional.cross_entropy(outputs, labels, reduction="none"),
        (features, LABELS),
    )  # fmt: skip
    assert target.dim == 2 * N_IN + 4 + 5 * CLASSES
    start = torch.nn.utils.parameters_to_vector(p for p in module.parameters() if p.requires_grad).detach()
    run = sample(target, samplers.sgld(1e-4), n_steps=3, seed=0, init=start)
    assert run.draws.shape == (1, 3, target.dim)
    before = target.evaluate(start[None].numpy())[0]
    features *= 10.0
    with torch.no_grad():
        module[0].running_var *= 9.0
        module[1].weight *= 2.0
    np.testing.assert_array_equal(target.evaluate(start[None].numpy())[0], before)
    many = target.evaluate(np.tile(start.numpy(), (3000, 1)))[0]  # in pieces
    np.testing.assert_allclose(many, before[0], rtol=1e-12)
    training = torch.nn.Sequential(torch.nn.BatchNorm1d(N_IN), torch.nn.Linear(N_IN, 1)).double()
    dropping = torch.nn.Sequential(torch.nn.Linear(N_IN, 1), torch.nn.Dropout())
    for random in (training, dropping):
        with pytest.raises(ValueError, match="it raises RuntimeError"):
            from_torch(random, lambda outputs, labels: outputs[:, 0], (FEATURES, LABELS))
    np.testing.assert_array_equal(training[0].running_var.numpy(), 1.0)


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        (lambda outputs, labels: outputs.sum(), r"one loss for each datum, shape \(60,\), got shape \(\)"),
        (lambda outputs, labels: outputs, r"got shape \(60, 3\)"),
        (lambda outputs, labels: 1 / 0, "it raises ZeroDivisionError"),
    ],
)
def test_losses_that_torch_is_refused(torch, loss, words):
    with pytest.raises(ValueError, match=words):
        from_torch(torch.nn.Linear(N_IN, CLASSES), loss, (FEATURES, LABELS))


def test_refusals_of_torch(torch):
    def loss(outputs, labels):
        return outputs[:, 0]

    with pytest.raises(TypeError, match=r"module must be a torch\.nn\.Module"):
        from_torch(lambda x: x, loss, (FEATURES, LABELS))
    with pytest.raises(ValueError, match="as many rows"):
        from_torch(torch.nn.Linear(N_IN, 1), loss, (FEATURES, LABELS[:-1]))
    with pytest.raises(ValueError, match=r"data\[0\] must be finite"):
        from_torch(torch.nn.Linear(N_IN, 1), loss, (FEATURES * np.nan, LABELS))
    with pytest.raises(ValueError, match="it raises RuntimeError"):
        from_torch(torch.nn.Linear(N_IN + 1, 1), loss, (FEATURES, LABELS))
    for device in ("gpu0", "", "cuda:99"):
        with pytest.raises(ValueError, match="device must be one that PyTorch can use here"):
            from_torch(torch.nn.Linear(N_IN, 1), loss, (FEATURES, LABELS), device=device)
    with pytest.raises(ValueError, match="precision must be one of 'float64', 'float32'"):
        from_torch(torch.nn.Linear(N_IN, 1), loss, (FEATURES, LABELS), precision="float16")


def test_torch_in_single_precision(torch):
    """Energies and gradients are those of float64 to 1e-6, and float64 themselves."""
    exact, single = torch_target(torch), torch_target(torch, precision="float32", device="cpu")
    for ours, theirs in zip(exact.evaluate(in_torch(POINTS)), single.evaluate(in_torch(POINTS)), strict=True):
        assert theirs.dtype == np.float64
        np.testing.assert_allclose(theirs, ours, rtol=1e-4, atol=1e-4)
        assert (theirs != ours).any()


def test_torch_starts_within_the_modules_own_numbers(torch):
    target = torch_target(torch)
    scale = target.spread.scale
    ends = np.cumsum([N_IN * HIDDEN, HIDDEN, HIDDEN * CLASSES])
    for piece in np.split(scale, ends):
        assert (piece == piece[0]).all()
    assert (scale > 0.0).all()
    assert (scale < 0.6).all()  # 1/√inputs at most
    zeros = torch.nn.Linear(N_IN, CLASSES)
    torch.nn.init.zeros_(zeros.bias)
    made = from_torch(zeros, lambda outputs, labels: outputs[:, 0], (FEATURES, LABELS))
    assert made.spread.scale[-1] == made.spread.scale[0] > 0.0


def test_refusals_of_jax(jax):
    with pytest.raises(ValueError, match="a scalar energy, got shape"):
        from_jax(lambda x: x, dim=2)
    with pytest.raises(ValueError, match="batch_size needs data"):
        from_jax(lambda x: x.sum(), dim=2, batch_size=3)
    with pytest.raises(ValueError, match="one loss for each datum"):
        from_jax(lambda x, rows: rows.sum(), dim=2, data=(FEATURES,))


def test_a_package_that_is_not_there_is_named(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(ImportError, match=r"pip install .*\[torch\]"):
        from_torch(None, None, None)
    with pytest.raises(ImportError, match=r"pip install .*\[jax\]"):
        from_jax(lambda x: x.sum(), dim=1)


def squared_losses(points, rows):
    """Energies and gradients of ½ Σ (y − f·x)² over the data ``rows`` of each point, (lane, data) or None for all."""
    picks = np.tile(np.arange(N), (len(points), 1)) if rows is None else rows
    features, response = FEATURES[picks], LABELS[picks].astype(float)
    residual = np.einsum("ldk,lk->ld", features, points) - response
    scale = N / picks.shape[1]
    return 0.5 * scale * (residual**2).sum(axis=1), scale * np.einsum("ld,ldk->lk", residual, features)


@pytest.mark.parametrize("batch_size", [1, 7, 10])
def test_a_python_function_is_given_its_minibatches(batch_size):
    """The data that ``network`` draws too: draws agree to rounding."""
    ours = from_callable(squared_losses, dim=N_IN, n_data=N, batch_size=batch_size)
    features = np.column_stack([FEATURES, np.zeros(N)])[:, :N_IN]
    theirs = network(features, LABELS.astype(float), hidden=(), likelihood="normal", prior=None, batch_size=batch_size)
    options = {"n_steps": 1, "n_chains": 5, "seed": 4, "threads": 1}
    mine = sample(ours, samplers.sgld(1e-3, temperature=1e-30), init=np.ones(N_IN), **options).draws
    start = np.append(np.ones(N_IN), 0.0)
    known = sample(theirs, samplers.sgld(1e-3, temperature=1e-30), init=start, **options).draws
    np.testing.assert_allclose(mine, known[..., :N_IN], atol=1e-12)
    assert len(np.unique(mine[:, 0, 0])) == 5


def test_a_size_without_the_other_is_refused():
    with pytest.raises(ValueError, match="n_data and batch_size must be given together"):
        from_callable(squared_losses, dim=2, n_data=4)
