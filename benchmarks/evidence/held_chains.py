"""Held chains: what a call costs beside its steps, what a replacement costs, and calls of 16 steps beside one `sample`.

Four chains on one thread, wall-clock, medians over rounds in which all run once. A call's cost is that of one step, a
replacement's that of other numbers for the same block function. `sample` keeps its last draw alone, and makes as many
steps as all calls of 16 together. Logistic regressions draw 32 of 1,000 data, with 20 features.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.runner.plan import Plan
from benchmarks.runner.rounds import interleaved, wall
from benchmarks.runner.tables import Table, ratio_cells
from targets import mixtures, posteriors
from toolkit import Chains, Sampler, Target, chains, sample, samplers, tempering

CALLS, CALL_STEPS = 1_000, 16
PARTITION = tempering.Partition(-4.0, 0.5, 20)
PAIR = {"step_sizes": (0.01, 0.02), "temperatures": (1.0, 3.0)}


def data_set(seed: int, **batches: Any) -> Target:
    """A logistic regression on data of this seed."""
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((1_000, 20))
    return posteriors.logistic_regression(features, rng.integers(0, 2, 1_000), prior=2.0, **batches)


def cases(is_small: bool) -> dict[str, tuple[Target, Target, Sampler]]:
    """Problem, the problem that replaces it, and sampler, by name."""
    cosine = mixtures.cosine25()
    found = {"SGLD, cosine25": (cosine, mixtures.cosine25(), samplers.sgld(0.02))}
    if is_small:
        return found
    drawn = (data_set(0, batch_size=32), data_set(1, batch_size=32))
    anchored = tuple(data_set(seed, batch_size=32, refresh_every=100) for seed in (0, 1))
    return found | {
        "pSGLD, cosine25": (cosine, mixtures.cosine25(), samplers.psgld(0.01)),
        "reSGLD, 2 temperatures, cosine25": (cosine, mixtures.cosine25(), samplers.resgld(**PAIR)),
        "ICSGLD, 10 replicas, cosine25": (cosine, mixtures.cosine25(), samplers.icsgld(0.02, partition=PARTITION)),
        "SGLD, logistic regression": (*drawn, samplers.sgld(1e-3)),
        "the same about an anchor": (anchored[0], anchored[1], samplers.sgld(1e-3)),
    }


def repeated(call: Callable[[], object], n: int) -> Callable[[], float]:
    """The mean seconds of a call that is made ``n`` times."""

    def many() -> None:
        for _ in range(n):
            call()

    return lambda: wall(many) / n


def main(plan: Plan) -> None:
    """Print the table."""
    n = CALLS // 20 if plan.is_small else CALLS
    columns = ("chains", "µs a call of 1 step", "µs a call of 16", "µs a replacement", "calls of 16 / sample", "spread")
    table = Table(plan.folder, "held_chains", *columns)
    for name, (problem, other, sampler) in cases(plan.is_small).items():
        given = {"n_chains": 4, "seed": 0, "threads": 1}
        with chains(problem, sampler, **given) as held:
            turn = [other, problem]

            def replace(held: Chains = held, turn: list[Target] = turn) -> None:
                turn.reverse()
                held.replace(turn[0])

            def whole(problem: Target = problem, sampler: Sampler = sampler, given: Any = given) -> object:
                return sample(problem, sampler, n_steps=n * CALL_STEPS, thin=n * CALL_STEPS, **given)

            for call in (whole, replace, lambda held=held: held.advance(1)):
                call()
            seen = interleaved(plan.rounds, {
                "one": repeated(lambda held=held: held.advance(1), n),
                "sixteen": repeated(lambda held=held: held.advance(CALL_STEPS), n),
                "replace": repeated(replace, n // 5),
                "sample": lambda whole=whole: wall(whole) / n,
            })  # fmt: skip
        medians = [float(1e6 * np.median(seen[column])) for column in ("one", "sixteen", "replace")]
        table.row(name, *medians, *ratio_cells(seen["sixteen"], seen["sample"]))
