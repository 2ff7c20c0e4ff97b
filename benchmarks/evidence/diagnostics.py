"""Diagnostics: what each says of independent draws beside its law, of SGLD and of r2SGLD, and what 10⁶ draws cost.

On cosine25 without walls, 10 chains of 2,000 draws; independent ones over 30 repeats, the samplers' every 200 steps
from exact starts (for ``mmd`` and ``ksd`` every 20th draw). ArviZ's times where it is installed; best of three calls.
"""

import importlib.util
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.runner.plan import Plan
from benchmarks.runner.tables import Table
from targets import mixtures
from toolkit import Problem, Run, boundaries, sample, samplers
from toolkit import diagnostics as d

CHAINS, DRAWS, REPEATS = 10, 2000, 30
EDGES = np.linspace(-3.0, 3.0, 31)
TARGET = mixtures.cosine25()
TRUTH: Any = TARGET.truth
MASSES = TRUTH.cell_masses(EDGES, EDGES)
LEVELS = TRUTH.energy_quantiles(np.arange(1, 20) / 20)


def numbers(draws: Any, seed: int) -> dict[str, tuple[float, float]]:
    """Each diagnostic of draws (chain, draw, 2), and what it expects of independent ones; nan for none."""
    others, weights = TRUTH.independent_draws(1000, seed=10_000 + seed), TRUTH.modes.weights
    n = draws.shape[0] * draws.shape[1]
    thin = draws[:, ::20]
    kl = d.grid_kl(draws, TRUTH, EDGES, EDGES)
    modes = d.mode_weights_error(draws, TRUTH)
    coverage = d.mode_coverage(draws, TRUTH.modes.centres, threshold=20.0)
    mmd, ksd, moved = d.mmd(thin, others, bandwidth=1.0), d.ksd(thin, TARGET, scale=0.3), d.wasserstein(draws, others)
    energies = TARGET.evaluate(draws.reshape(-1, 2))[0].reshape(draws.shape[:2])
    histogram = d.energy_histogram(energies, LEVELS)
    found = {
        "`ess`, bulk": (d.ess(draws)[0], n),
        "`ess`, tail": (d.ess(draws, method="tail")[0], n),
        "`ess`, mean": (d.ess(draws, method="mean")[0], n),
        "`ess_by_cutoff`, the truth's moments": (
            float(d.ess_by_cutoff(draws, mean=TRUTH.mean, variance=np.diag(TRUTH.covariance)).mean()), DRAWS
        ),
        "`r_hat` − 1": (d.r_hat(draws)[0] - 1.0, np.nan),
        "`autocorrelation`, lag 1": (float(d.autocorrelation(draws, n_lags=1)[:, 1].mean()), -1.0 / DRAWS),
        "`grid_kl`, kl": (kl.kl, d.expected_kl(MASSES, n)),
        "`grid_kl`, n_effective": (kl.n_effective, n),
        "`grid_kl`, debiased": (kl.debiased, 0.0),
        "`mode_coverage`, more than 20 draws": (float(coverage.number.mean()), np.nan),
        "`mode_weights_error`, l1": (modes.l1, np.sqrt(2.0 / np.pi * weights * (1.0 - weights) / n).sum()),
        "`mmd`, squared": (mmd.squared, 0.0),
        "`mmd`, spread": (mmd.spread, np.nan),
        "`ksd`, squared": (ksd.squared, 0.0),
        "`ksd`, spread": (ksd.spread, np.nan),
        "`wasserstein`, x₁": (moved.distance[0], moved.expected[0]),
        "`energy_histogram`, Σ of 18 bins' errors": (float(np.abs(histogram.shares - 0.05).sum()), np.sqrt(
            2.0 / np.pi * 0.05 * 0.95 / n) * 18),
    }  # fmt: skip
    return {name: (float(value), float(law)) for name, (value, law) in found.items()}


def run_of(sampler: Any) -> Run:
    """10 chains of the sampler from exact draws."""
    init = TRUTH.independent_draws(CHAINS, seed=7)[:, None].repeat(sampler.n_replicas, axis=1)
    return sample(
        Problem(TARGET), sampler, n_steps=200 * DRAWS + 1000, burn_in=1000, thin=200, n_chains=CHAINS, init=init, seed=1
    )


def seconds(function: Callable[[], Any]) -> float:
    """The shortest of three calls."""
    times = []
    for _ in range(3):
        started = time.perf_counter()
        function()
        times.append(time.perf_counter() - started)
    return min(times)


def main(plan: Plan) -> None:
    """Print the tables."""
    n_repeats = 3 if plan.is_small else REPEATS
    repeats = [
        numbers(TRUTH.independent_draws(CHAINS * DRAWS, seed=s).reshape(CHAINS, DRAWS, 2), s) for s in range(n_repeats)
    ]
    sgld = numbers(run_of(samplers.sgld(1e-3)).draws, 1000)
    exchanged = numbers(
        run_of(samplers.r2sgld((1e-3, 3e-3), temperatures=(1.0, 5.0), boundary=boundaries.ignore())).draws,
        1000,
    )
    columns = ("law, independent draws", f"seen, mean of {n_repeats}", "spread", "SGLD", "r2SGLD")
    table = Table(plan.folder, "diagnostics", "diagnostic", *columns)
    for name in sgld:
        seen = np.array([r[name] for r in repeats])
        law = "" if np.isnan(seen[0, 1]) else float(seen[:, 1].mean())
        table.row(name, law, float(seen[:, 0].mean()), float(seen[:, 0].std(ddof=1)), sgld[name][0], exchanged[name][0])
    print()
    table = Table(
        plan.folder, "diagnostics_cost", "10⁶ draws, 10 chains of 10⁵", "ms", "ArviZ, ms", "ArviZ's time over ours"
    )
    draws = np.random.default_rng(1).standard_normal((10, 100_000, 1))
    weights = np.random.default_rng(2).random((10, 100_000))
    arviz = importlib.util.find_spec("arviz") is not None
    if arviz:
        from arviz.stats import diagnostics as theirs
    for name in ("bulk", "tail", "mean"):
        ours = seconds(lambda name=name: d.ess(draws, method=name))  # type: ignore[misc]
        other = seconds(lambda name=name: theirs.ess(draws[..., 0], method=name)) if arviz else np.nan  # type: ignore[misc]
        table.row(f"`ess`, {name}", f"{1e3 * ours:.0f}", f"{1e3 * other:.0f}", f"{other / ours:.1f}")
    ours = seconds(lambda: d.r_hat(draws))
    other = seconds(lambda: theirs.rhat(draws[..., 0])) if arviz else np.nan
    table.row("`r_hat`", f"{1e3 * ours:.0f}", f"{1e3 * other:.0f}", f"{other / ours:.1f}")
    plane = np.random.default_rng(3).standard_normal((10, 100_000, 2))
    masses = mixtures.gaussian_mixture([[0.0, 0.0]], 1.0).truth.cell_masses(EDGES, EDGES)
    points, others = plane[:, :1000], plane[0, -10_000:]
    for name, call in {
        "`ess` with weights, bulk": lambda: d.ess(draws, weights=weights),
        "`autocorrelation`, 30 lags": lambda: d.autocorrelation(draws, n_lags=30),
        "`grid_kl`, 900 cells": lambda: d.grid_kl(plane, masses, EDGES, EDGES),
        "`mode_coverage`, 25 modes": lambda: d.mode_coverage(plane, TRUTH.modes.centres),
        "`wasserstein`, against 10⁴, 2-D": lambda: d.wasserstein(plane, others),
        "`energy_histogram`, 18 bins": lambda: d.energy_histogram(draws[..., 0], LEVELS),
        "`mmd`, 10⁴ draws against 10⁴, 2-D": lambda: d.mmd(points, others, bandwidth=1.0),
        "`ksd`, 10⁴ draws, 2-D": lambda: d.ksd(points, TARGET),
    }.items():
        table.row(name, f"{1e3 * seconds(call):.0f}", "", "")
