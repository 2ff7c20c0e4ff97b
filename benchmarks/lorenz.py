"""The r2SGLD paper's identification of Lorenz: gradients per second beside a NumPy loop, and the time of it all.

60,000 iterations, batch 4,096, six samplers of which two have two replicas, 10 seeds: 4.8·10⁶ gradients. The loop in
NumPy does the same for one replica: draw a batch, multiply matrices, step. Ratios are medians over interleaved rounds.
"""

import time

import numpy as np

from figures.r2sgld_identification import BATCH, METHODS, N_SEEDS, N_STEPS, problem_of, sampler_of
from sysid import identify, likelihoods, systems
from sysid.data import simulate
from toolkit import sample, samplers

from .markdown import head, row
from .speed import seconds

ROUNDS = 5
GRADIENTS = N_STEPS * N_SEEDS * 8


def numpy_loop(terms, velocities, n_steps):
    """SGLD of the three named parameters as one would write it in NumPy, in the paper's form."""
    rng = np.random.default_rng(0)
    fixed = np.zeros((5, 3))
    fixed[1, 1], fixed[4, 1], fixed[3, 2] = -1.0, -1.0, 1.0
    beta, h = np.zeros(3), 5e-6

    def run():
        for _ in range(n_steps):
            pick = rng.integers(0, len(terms), BATCH)
            coefficients = fixed.copy()
            coefficients[0, 0], coefficients[1, 0] = -beta[0], beta[0]
            coefficients[0, 1], coefficients[2, 2] = beta[1], -beta[2]
            batch = terms[pick]
            slope = batch.T @ (batch @ coefficients - velocities[pick]) / BATCH
            gradient = np.array([slope[1, 0] - slope[0, 0], slope[0, 1], -slope[2, 2]])
            beta[:] += -h * gradient + np.sqrt(2.0 * h) * rng.standard_normal(3)

    return run


def main() -> None:
    """Print the tables."""
    system = systems.lorenz()
    data = simulate(system, np.arange(10_001) * 0.01, seed=0)
    assert data.velocities is not None
    library = problem_of("lorenz", reflected=False).model.library
    loop_steps = 300
    loop = numpy_loop(library.evaluate(data.values), data.velocities, loop_steps)
    head("batch of 4,096", "ours, gradients/s", "NumPy loop, gradients/s", "ratio", "spread")
    for batches, n_steps in (("windows", 4000), ("independent", 200)):
        energy = likelihoods.derivative(noise="mean", batch_size=BATCH, batches=batches)
        problem = identify(data, system, likelihood=energy)

        def ours(problem=problem, n_steps=n_steps):
            sample(problem, samplers.sgld(5e-6), n_steps=n_steps, n_chains=N_SEEDS, seed=1, thin=n_steps, threads=1)

        ours(), loop()
        pairs = [(n_steps * N_SEEDS / seconds(ours), loop_steps / seconds(loop)) for _ in range(ROUNDS)]
        ratios = sorted(a / b for a, b in pairs)
        rates = np.median(pairs, axis=0)
        spread = f"{ratios[0]:.1f} – {ratios[-1]:.1f}"
        row(batches, f"{rates[0]:,.0f}", f"{rates[1]:,.0f}", f"{ratios[ROUNDS // 2]:.1f}", spread)
    print()
    head("the whole experiment", "gradients", "seconds, all processors")
    started = time.perf_counter()
    for method in METHODS:
        problem = problem_of("lorenz", reflected=method.startswith(("R-", "r2")))
        init = problem.prepared.start
        sample(problem, sampler_of("lorenz", method), n_steps=N_STEPS, n_chains=N_SEEDS, thin=10, seed=1, init=init)
    row("six samplers, 10 seeds, windows", f"{GRADIENTS:,}", f"{time.perf_counter() - started:.1f}")
