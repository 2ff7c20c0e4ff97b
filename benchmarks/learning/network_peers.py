"""SGLD on the weights of a network by PyTorch and JAX, each as its users write it: minibatches drawn anew, per chain.

The energy is that of ``posteriors.network`` with likelihood 'normal' and noise² = ½: N/n Σ |f(x) − y|² + ½ ‖w‖²/100.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

STEP_SIZE, DECAY = 1e-7, 0.01


def data(n_data: int, inputs: int) -> tuple[Any, Any]:
    """Features (data, inputs) and responses (data, 2)."""
    rng = np.random.default_rng(0)
    return rng.standard_normal((n_data, inputs)), rng.standard_normal((n_data, 2))


def sizes(inputs: int, hidden: int) -> list[tuple[int, int]]:
    """Inputs and outputs of each layer."""
    return [(inputs, hidden), (hidden, hidden), (hidden, 2)]


def by_jax(
    inputs: int, hidden: int, n_data: int, batch: int, chains: int, n_steps: int, single: bool
) -> Callable[[], float]:
    """A compiled loop over steps of all chains, ``vmap`` over these."""
    import jax
    from jax import lax
    from jax import numpy as jnp

    jax.config.update("jax_enable_x64", not single)
    kind = jnp.float32 if single else jnp.float64
    features, responses = (jnp.asarray(values, kind) for values in data(n_data, inputs))

    def energy(weights: Any, rows: Any) -> Any:
        values = features[rows]
        for i, (matrix, bias) in enumerate(weights):
            values = values @ matrix + bias
            values = jnp.maximum(values, 0.0) if i < 2 else values
        squares = sum((part**2).sum() for layer in weights for part in layer)
        return n_data / batch * ((values - responses[rows]) ** 2).sum() + 0.5 * DECAY * squares

    def step(weights: Any, key: Any) -> Any:
        picking, moving = jax.random.split(key)
        slopes = jax.grad(energy)(weights, jax.random.randint(picking, (batch,), 0, n_data))
        parts, tree = jax.tree.flatten(weights)
        keys = jax.random.split(moving, len(parts))
        scale = (2.0 * STEP_SIZE) ** 0.5
        moved = [
            part - STEP_SIZE * slope + scale * jax.random.normal(own, part.shape, kind)
            for part, slope, own in zip(parts, jax.tree.leaves(slopes), keys, strict=True)
        ]
        return jax.tree.unflatten(tree, moved)

    @jax.jit
    def advance(weights: Any, key: Any) -> Any:
        def body(k: Any, now: Any) -> Any:
            return jax.vmap(step)(now, jax.random.split(jax.random.fold_in(key, k), chains))

        return lax.fori_loop(0, n_steps, body, weights)

    key = jax.random.key(0)
    start = [
        (
            jax.random.uniform(jax.random.fold_in(key, i), (chains, n_in, n_out), kind, -(n_in**-0.5), n_in**-0.5),
            jnp.zeros((chains, n_out), kind),
        )
        for i, (n_in, n_out) in enumerate(sizes(inputs, hidden))
    ]
    return lambda: float(jax.block_until_ready(advance(start, key))[2][1].mean())


def torch_parts(inputs: int, hidden: int, n_data: int, single: bool) -> tuple[Any, Any, Any, Any]:
    """PyTorch, a function that makes a module, features and responses."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    kind = torch.float32 if single else torch.float64
    features, responses = (torch.as_tensor(values, dtype=kind) for values in data(n_data, inputs))

    def module() -> Any:
        layers = [torch.nn.Linear(n_in, n_out) for n_in, n_out in sizes(inputs, hidden)]
        return torch.nn.Sequential(layers[0], torch.nn.ReLU(), layers[1], torch.nn.ReLU(), layers[2]).to(kind)

    return torch, module, features, responses


def by_torch_loop(
    inputs: int, hidden: int, n_data: int, batch: int, chains: int, n_steps: int, single: bool
) -> Callable[[], float]:
    """One chain after another at each step, by autograd."""
    torch, module, features, responses = torch_parts(inputs, hidden, n_data, single)

    def run() -> float:
        modules = [module() for _ in range(chains)]
        scale = (2.0 * STEP_SIZE) ** 0.5
        for _ in range(n_steps):
            for one in modules:
                rows = torch.randint(n_data, (batch,))
                loss = n_data / batch * ((one(features[rows]) - responses[rows]) ** 2).sum()
                one.zero_grad()
                loss.backward()
                with torch.no_grad():
                    for part in one.parameters():
                        part.add_(part.grad + DECAY * part, alpha=-STEP_SIZE)
                        part.add_(torch.randn_like(part), alpha=scale)
        return float(modules[0][4].bias[0])

    return run


def by_torch_vmap(
    inputs: int, hidden: int, n_data: int, batch: int, chains: int, n_steps: int, single: bool
) -> Callable[[], float]:
    """All chains at once, by ``torch.func.vmap`` of ``grad``."""
    torch, module, features, responses = torch_parts(inputs, hidden, n_data, single)
    skeleton = module().to("meta")

    def energy(parts: Any, rows: Any, wanted: Any) -> Any:
        return n_data / batch * ((torch.func.functional_call(skeleton, parts, (rows,)) - wanted) ** 2).sum()

    slopes_of = torch.func.vmap(torch.func.grad(energy))

    def run() -> float:
        parts, _ = torch.func.stack_module_state([module() for _ in range(chains)])
        parts = {name: part.detach() for name, part in parts.items()}
        scale = (2.0 * STEP_SIZE) ** 0.5
        for _ in range(n_steps):
            rows = torch.randint(n_data, (chains, batch))
            slopes = slopes_of(parts, features[rows], responses[rows])
            for name, part in parts.items():
                part.add_(slopes[name] + DECAY * part, alpha=-STEP_SIZE)
                part.add_(torch.randn_like(part), alpha=scale)
        return float(parts["4.bias"][0, 0])

    return run


CASES = {"JAX": by_jax, "PyTorch, loop": by_torch_loop, "PyTorch, vmap": by_torch_vmap}
