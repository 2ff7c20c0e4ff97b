"""Random numbers that two seeds, or two purposes of one seed, have in common; seeds that lose bits."""

from types import SimpleNamespace
from typing import Any

import numpy as np

import sysid
from sysid import sparsity
from sysid.discovery import compare
from targets import constrained, domains, mixtures
from toolkit import samplers
from toolkit._engine import partition_pilot
from toolkit._output.storage import datatree
from toolkit.problem.definition import as_problem
from toolkit.verification import report
from toolkit.verification.law_runs import at_half_pace

N = 3_000
NORMAL = mixtures.gaussian_mixture([[0.0] * 3], 1.0)
BALL = constrained(NORMAL, domains.ball([0.0] * 3, 1.0))
SYSTEM, TIMES = sysid.systems.lotka_volterra(), np.arange(0.0, 6.0, 0.5)
SHIFT = 0x9E3779B97F4A7C15  # an odd number of 64 bits, of which half are 1


def shared(first: Any, second: Any) -> int:
    """How many rows of two arrays are the same to the bit."""
    ours, theirs = ({tuple(row) for row in np.asarray(rows).tolist()} for rows in (first, second))
    return len(ours & theirs)


def seeds_of_verify(seed: int) -> tuple[set[int], set[int]]:
    """Seeds of ``verify``'s rounds, eight of them, and of those at half the step size."""
    sampler = samplers.sgld([0.1] * 8)
    plan = report.setting_of(as_problem(NORMAL), sampler, 100, 10, 64, None, seed).plan
    return set(plan.seeds), set(at_half_pace(plan).seeds)


def seeds_of_pilot(seed: int) -> set[int]:
    """Seeds of the runs by which a partition is found."""
    seen: set[int] = set()
    run = partition_pilot.run_pilot

    def note(problem: Any, sampler: Any, seed: int, start: Any, *rest: Any) -> Any:
        seen.add(seed)
        return np.random.default_rng(0).chisquare(3, (len(start), 100)), start

    partition_pilot.run_pilot = note
    try:
        partition_pilot.find_partition(as_problem(NORMAL), samplers.csgld(0.1), seed=seed, init=np.zeros((1, 1, 3)))
    finally:
        partition_pilot.run_pilot = run
    return seen


def normals_of_gibbs(seed: int) -> Any:
    """The first normals (n,) of the stream that the first chain of ``sparse_posterior`` takes."""
    firsts: list[Any] = []
    chain = sparsity.run_chain

    def note(*given: Any) -> Any:
        firsts.append(given[-1].standard_normal(2 * TIMES.size))
        return chain(*given)

    data = sysid.data.simulate(SYSTEM, TIMES, noise=0.1, seed=0)
    library = sysid.libraries.polynomial(data.states, 1)
    prepared = sysid.likelihoods.weak().prepare(data, library)
    prior = sparsity.sparse_prior(prepared, sparsity.natural_scales(data, library))
    sparsity.run_chain = note
    try:
        sparsity.sparse_posterior(prepared, prior, sweeps=10, seed=seed)
    finally:
        sparsity.run_chain = chain
    return firsts[0]


def normals_of_data(seed: int) -> Any:
    """The errors (n,) of simulated data over their standard deviation."""
    noisy, exact = (sysid.data.simulate(SYSTEM, TIMES, noise=a, relative=False, seed=seed) for a in (1.0, 0.0))
    return (noisy.values - exact.values).ravel()


def global_state(seed: int) -> bytes:
    """NumPy's global state as one of PySINDy's methods finds it."""
    found: list[bytes] = []

    def look(trial: Any) -> Any:
        found.append(np.random.get_state()[1].tobytes())
        return np.zeros(1), None

    compare.pysindy_row("a method", SimpleNamespace(seed=seed), look)  # type: ignore[arg-type]
    return found[0]


def main() -> None:
    """Print how much is shared."""
    truth: Any = BALL.truth
    for shift in (32, 33, 40):
        count = shared(truth.independent_draws(N, seed=0), truth.independent_draws(N, seed=1 << shift))
        print(f"exact draws of {BALL.name}, of {N}, that seeds 0 and 2^{shift} share: {count} (wanted 0)")
    count = shared(truth._sample[0], truth.independent_draws(200_000, seed=0))
    print(f"exact draws of seed 0, of 200,000, that the truth's own numbers are made of: {count} (wanted 0)")
    problem = sysid.identify(sysid.data.simulate(SYSTEM, TIMES, noise=0.1, seed=2), SYSTEM).scaled()
    known: Any = problem.truth
    starts, exact = problem.starts(N, seed=2)[:, 0], known.independent_draws(N, seed=2)[:, 0]
    correlation = float(np.corrcoef(starts, exact)[0, 1])
    print(f"correlation of starts and exact draws of an identification, same seed: {correlation:.3f} (wanted ± 0.05)")
    same = int(np.isclose(normals_of_data(0), normals_of_gibbs(0), atol=1e-9).sum())
    print(f"errors of simulated data, of {2 * TIMES.size}, that the Gibbs sampler draws again: {same} (wanted 0)")
    (first, first_half), (second, second_half) = seeds_of_verify(0), seeds_of_verify(1)
    print(f"rounds, of 8, that verify of seeds 0 and 1 share: {len(first & second)} (wanted 0)")
    halves = len(seeds_of_verify(2**63)[0] & first_half) + len(first_half & second_half)
    print(f"rounds at half the step size, of 8, shared with seeds 2^63 and 1: {halves} (wanted 0)")
    print(f"runs of a pilot of seed 0 that a user's seed repeats: {int(SHIFT in seeds_of_pilot(0))} (wanted 0)")
    steps = {datatree.resample_seed(SimpleNamespace(seed=s + 1)) - datatree.resample_seed(SimpleNamespace(seed=s))
             for s in range(100)}  # type: ignore[arg-type]  # fmt: skip
    print(f"differences of the seeds that 101 runs, seeds 0 to 100, are resampled by: {len(steps)} (wanted 100)")
    states = {global_state(1 + (1 << k)) for k in range(32, 64)} | {global_state(1)}
    print(f"states of NumPy's own generator before a PySINDy method, of 33 seeds: {len(states)} (wanted 33)")


if __name__ == "__main__":
    main()
