"""One process of JAX, as ``memory`` runs it: ``python -P memory_jax.py package case chains`` says its peak in bytes."""

import os
import sys
from pathlib import Path
from typing import Any

H = 1e-3


def run(package: str, case: str, chains: int) -> None:
    """100 steps of SGLD by all chains and the last draw; or 1,000 and all draws."""
    import jax
    import jax.numpy as jnp

    from benchmarks.peers.jax_targets import gradient_of

    gradient = gradient_of("cosine25")
    if package == "blackjax":
        import blackjax

        kernel = blackjax.sgld(lambda x, data: -gradient(x))
    if case == "import":
        return

    def step(x: Any, key: Any) -> tuple[Any, Any]:
        if package == "blackjax":
            x = jax.vmap(lambda k, place: kernel.step(k, place, None, H))(jax.random.split(key, chains), x)
        else:
            x = x - H * gradient(x) + (2.0 * H) ** 0.5 * jax.random.normal(key, x.shape)
        return x, x if case == "sgld, all draws" else None

    n_steps = 1000 if case == "sgld, all draws" else 100
    whole = jax.jit(lambda x, key: jax.lax.scan(step, x, jax.random.split(key, n_steps)))
    jax.block_until_ready(whole(jnp.zeros((chains, 2)), jax.random.key(0)))


if __name__ == "__main__":
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    run(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines())
    print(1024 * int(lines["VmHWM"].split()[0]))
