"""One process of JAX from its launch: ``python -P first_draw_jax.py case``, the stages as first_draw_ours.py says them.

A compiled loop over steps, their number an argument, so that neither it nor the step size nor the target's numbers
compile anything anew.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

last = time.perf_counter(), time.process_time()

Stages = Iterator[tuple[str, Callable[[], object]]]


def said(stage: str) -> None:
    """A line for the stage that ends here."""
    global last
    print(json.dumps([stage, time.perf_counter() - last[0], time.process_time() - last[1], None]), flush=True)
    last = time.perf_counter(), time.process_time()


def import_jax() -> Any:
    """JAX on the CPU, in 64 bits; BlackJAX where ``also`` says so."""
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    import jax

    jax.config.update("jax_enable_x64", True)
    return jax


def mixture(x: Any, means: Any) -> Any:
    """Energy of equal Gaussians of variance 0.03 at ``x`` (2,)."""
    from jax.scipy.special import logsumexp

    return -logsumexp(-((x - means) ** 2).sum(-1) / 0.06)


def one_of_own(x: Any, numbers: Any) -> Any:
    """A target that no package has."""
    return 0.5 * (x[0] * x[0] + 3.0 * x[1] * x[1])


def grid(shift: float) -> Any:
    """25 means."""
    import numpy as np

    return np.array([[i + shift, j] for i in range(-2, 3) for j in range(-2, 3)], np.float64)


def by_hand(energy: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """SGLD as one would write it."""
    import jax

    def steps(key: Any, x: Any, h: Any, numbers: Any, n_steps: Any) -> Any:
        def step(k: Any, x: Any) -> Any:
            noise = jax.random.normal(jax.random.fold_in(key, k), x.shape)
            return x - h * jax.grad(energy)(x, numbers) + (2.0 * h) ** 0.5 * noise

        return jax.lax.fori_loop(0, n_steps, step, x)

    return jax.jit(steps)  # type: ignore[no-any-return]


def by_blackjax(energy: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """BlackJAX's SGLD, the target's numbers in place of a minibatch."""
    import blackjax
    import jax

    kernel = blackjax.sgld(lambda x, numbers: -jax.grad(energy)(x, numbers))

    def steps(key: Any, x: Any, h: Any, numbers: Any, n_steps: Any) -> Any:
        def step(k: Any, x: Any) -> Any:
            return kernel.step(jax.random.fold_in(key, k), x, numbers, h)

        return jax.lax.fori_loop(0, n_steps, step, kernel.init(x))

    return jax.jit(steps)  # type: ignore[no-any-return]


def contour_of_blackjax(energy: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """BlackJAX's CSGLD with 100 bins."""
    import blackjax
    import jax

    kernel = blackjax.csgld(
        lambda x, numbers: -energy(x, numbers), lambda x, numbers: -jax.grad(energy)(x, numbers), zeta=0.75,
        num_partitions=100, energy_gap=0.16, min_energy=-4.0,
    )  # fmt: skip

    def steps(key: Any, x: Any, h: Any, numbers: Any, n_steps: Any) -> Any:
        def step(k: Any, state: Any) -> Any:
            return kernel.step(jax.random.fold_in(key, k), state, numbers, h, 3e-3)

        return jax.lax.fori_loop(0, n_steps, step, kernel.init(x)).position

    return jax.jit(steps)  # type: ignore[no-any-return]


def stages(make: Callable[..., Any], newer: str) -> Stages:
    """From the first draw of a sampler on; newer: what new numbers are called."""
    import jax
    import numpy as np

    def drawing(energy: Callable[[Any, Any], Any]) -> Callable[..., object]:
        steps = make(energy)
        return lambda h=1e-3, shift=0.0: np.asarray(steps(jax.random.key(0), np.zeros(2), h, grid(shift), 1))

    drawn = []

    def first() -> None:
        drawn.append(drawing(mixture))
        drawn[0]()

    yield "first draw", first
    yield "the same again", lambda: drawn[0]()
    yield newer, lambda: drawn[0](2e-3, 0.1)
    yield "a target of one's own", lambda: drawing(one_of_own)()


def own(make: Callable[..., Any]) -> Stages:
    """The first draw of a target of one's own, in a process that has seen nothing else."""
    import jax
    import numpy as np

    yield "first draw", lambda: np.asarray(make(one_of_own)(jax.random.key(0), np.zeros(2), 1e-3, grid(0.0), 1))


CASES: dict[str, Callable[[], Stages]] = {
    "jax sgld": lambda: stages(by_hand, "new step size and means"),
    "blackjax sgld": lambda: stages(by_blackjax, "new step size and means"),
    "blackjax icsgld": lambda: stages(contour_of_blackjax, "new step size"),
    "jax own": lambda: own(by_hand),
    "blackjax own": lambda: own(by_blackjax),
}

if __name__ == "__main__":
    import_jax()
    if sys.argv[1].startswith("blackjax"):
        import blackjax  # noqa: F401
    import jax.numpy  # noqa: F401

    said("import")
    for name, call in CASES[sys.argv[1]]():
        call()
        said(name)
