"""One process of ours from its launch, as ``first_draw`` runs it: ``python -P first_draw_ours.py case``.

After each stage it says, as a line of JSON: stage, wall and processor seconds since the one before, functions compiled.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator

last = time.perf_counter(), time.process_time()
compiled = [0]

Stages = Iterator[tuple[str, Callable[[], object]]]


def said(stage: str) -> None:
    """A line for the stage that ends here."""
    global last
    print(json.dumps([stage, time.perf_counter() - last[0], time.process_time() - last[1], compiled[0]]), flush=True)
    last, compiled[0] = (time.perf_counter(), time.process_time()), 0


def count_compilations() -> None:
    """Count Numba's compilations from here on."""
    from numba.core import event

    class Counting(event.Listener):  # type: ignore[misc]
        """Counts what begins to compile."""

        def on_start(self, begun: object) -> None:
            """One more."""
            compiled[0] += 1

        def on_end(self, ended: object) -> None:
            """Counted when it began."""

    event.register("numba:compile", Counting())


def one_of_own() -> object:
    """A target that no package has."""
    from toolkit import target

    @target(dim=2)
    def own(x, y):  # type: ignore[no-untyped-def]
        return 0.5 * (x * x + 3.0 * y * y), (x, 3.0 * y)

    return own


def sgld() -> Stages:
    """SGLD on a mixture whose means can change."""
    from targets import mixtures
    from toolkit import sample, samplers

    yield "import", lambda: None
    means = [[i, j] for i in range(-2, 3) for j in range(-2, 3)]

    def draw(h: float = 1e-3, shift: float = 0.0) -> object:
        mixture = mixtures.gaussian_mixture([[a + shift, b] for a, b in means], 0.03)
        return sample(mixture, samplers.sgld(h), n_steps=1, seed=0)

    yield "first draw", draw
    yield "the same again", draw
    yield "new step size and means", lambda: draw(2e-3, 0.1)
    yield "a target of one's own", lambda: sample(one_of_own(), samplers.sgld(1e-3), n_steps=1, seed=0)


def r2sgld() -> Stages:
    """r2SGLD in the flower."""
    from targets import constrained, mixtures, shapes
    from toolkit import sample, samplers

    yield "import", lambda: None

    def draw(noise: float = 0.05) -> object:
        problem = constrained(mixtures.cosine25(), shapes.flower())
        return sample(problem, samplers.r2sgld(energy_noise=noise), n_steps=1, seed=0)

    yield "first draw", draw
    yield "the same again", draw
    yield "new noise", lambda: draw(0.1)


def icsgld() -> Stages:
    """Contour in 100 bins."""
    from targets import mixtures
    from toolkit import sample, samplers, tempering

    yield "import", lambda: None

    bins = tempering.Partition(-4.0, 0.16, 100)

    def draw(h: float = 1e-3) -> object:
        return sample(mixtures.cosine25(), samplers.icsgld(h, partition=bins), n_steps=1, seed=0)

    yield "first draw", draw
    yield "the same again", draw
    yield "new step size", lambda: draw(2e-3)
    yield (
        "a target of one's own",
        lambda: sample(one_of_own(), samplers.icsgld(1e-3, partition=bins), n_steps=1, seed=0),
    )


def identification() -> Stages:
    """Lorenz's three parameters from 1,001 states and velocities, data simulated."""
    from sysid import identify, systems
    from sysid.data import simulate
    from toolkit import sample, samplers

    yield "import", lambda: None

    def draw(h: float = 1e-6) -> object:
        system = systems.lorenz()
        data = simulate(system, [0.01 * k for k in range(1_001)], seed=0)
        problem = identify(data, system)
        return sample(problem, samplers.sgld(h), n_steps=1, seed=0, init=problem.prepared.start)

    yield "first draw", draw
    yield "the same again", draw
    yield "new step size", lambda: draw(2e-6)


def own() -> Stages:
    """SGLD on a target of one's own, in a process that has seen nothing else."""
    from toolkit import sample, samplers

    yield "import", lambda: None
    yield "first draw", lambda: sample(one_of_own(), samplers.sgld(1e-3), n_steps=1, seed=0)


def own_system() -> Stages:
    """HMC on three rates of a right-hand side of one's own, from 21 noisy states of its solution."""
    from sysid import identify, likelihoods, systems
    from sysid.data import simulate
    from toolkit import sample, samplers

    yield "import", lambda: None

    def rhs(t, x, p):  # type: ignore[no-untyped-def]
        return (p[0] * x[0] * (1.0 - x[0]) - p[1] * x[0] * x[1], p[2] * x[0] * x[1] - p[1] * x[1])

    def draw(h: float = 0.2) -> object:
        system = systems.own(
            rhs, states=["prey", "hunters"], parameters=["r", "a", "b"], usual=[1.0, 0.8, 1.5], start=[0.5, 0.2]
        )
        data = simulate(system, [0.5 * k for k in range(21)], noise=0.02, seed=0)
        problem = identify(data, system, likelihood=likelihoods.trajectory(), progress=False)
        return sample(problem.scaled(), samplers.hmc(h), n_steps=1, seed=0)

    yield "first draw", draw
    yield "the same again", draw
    yield "new step size", lambda: draw(0.1)


CASES = {case.__name__: case for case in (sgld, r2sgld, icsgld, identification, own, own_system)}

if __name__ == "__main__":
    stages = CASES[sys.argv[1]]()
    next(stages)
    said("import")
    count_compilations()
    for name, call in stages:
        call()
        said(name)
