"""Fits: seconds from data to draws from a posterior of ours, beside data to coefficients of PySINDy's, on one core.

Lorenz, 10 time units in steps of 0.002, all 30 coefficients of its quadratic terms free, errors ‖Ξ̂ − Ξ‖ / ‖Ξ‖.
PySINDy's fits give coefficients alone, with one threshold that was told to them; ours draws and their intervals.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers.host import Peer, PeerError, opened
from benchmarks.runner.plan import Plan
from benchmarks.runner.rounds import interleaved, one_core, wall
from benchmarks.runner.tables import Table, ratio_cells
from sysid import identify, likelihoods, systems
from sysid.data import simulate
from sysid.data.series import Series
from sysid.libraries import polynomial
from sysid.sparsity import natural_scales, sparse_posterior, sparse_prior
from toolkit import sample, samplers

Array = NDArray[np.float64]

THRESHOLD = 0.1
TRUE = {"x": (-10, 28, 0), "y": (10, -1, 0), "z": (0, 0, -8 / 3), "xz": (0, -1, 0), "xy": (0, 0, 1)}


def error(coefficients: Any) -> float:
    """‖Ξ̂ − Ξ‖ / ‖Ξ‖ of coefficients (terms, states)."""
    truth = np.array([TRUE.get(name, (0, 0, 0)) for name in polynomial(("x", "y", "z"), 2).names])
    return float(np.linalg.norm(np.asarray(coefficients) - truth) / np.linalg.norm(truth))


def closed_form(data: Series, likelihood: Any) -> tuple[Array, int]:
    """Medians (30,) of a flat posterior, and a number of independent draws from it."""
    posterior = identify(data, polynomial(data.states, 2), likelihood=likelihood).posterior
    assert posterior is not None
    draws = np.random.default_rng(0).multivariate_normal(posterior.mean, posterior.covariance, 10_000)
    return np.median(draws, axis=0), len(draws)


def by_chains(data: Series, likelihood: Any) -> tuple[Array, int]:
    """The same by HMC in scaled positions, 64 chains."""
    problem = identify(data, polynomial(data.states, 2), likelihood=likelihood).scaled()
    sampler = samplers.hmc(0.4, n_leapfrogs=4, random_length=False)
    run = sample(problem, sampler, n_steps=1000, burn_in=200, thin=5, n_chains=64, seed=1, threads=1, progress=False)
    draws = problem.parameters(run)
    return np.median(draws, axis=(0, 1)), draws.shape[0] * draws.shape[1]


def sparse(data: Series, likelihood: Any) -> tuple[Array, int]:
    """The same under the sparse prior, by its Gibbs sampler."""
    library = polynomial(data.states, 2)
    prepared = likelihood.prepare(data, library)
    found = sparse_posterior(prepared, sparse_prior(prepared, natural_scales(data, library)))
    return found.median, len(found.draws)


Fit = tuple[str, Callable[[Series, Any], tuple[Array, int]], Any]
OURS: dict[str, Fit] = {
    "derivative": ("independent draws", closed_form, likelihoods.derivative(velocities="savitzky_golay")),
    "derivative, HMC": ("HMC, 64 chains", by_chains, likelihoods.derivative(velocities="savitzky_golay")),
    "derivative, sparse": ("Gibbs", sparse, likelihoods.derivative(velocities="savitzky_golay")),
    "weak, sparse": ("Gibbs", sparse, likelihoods.weak()),
}
PAIRS = [
    ("derivative", "stlsq"), ("derivative, HMC", "stlsq"), ("derivative, sparse", "stlsq"),
    ("derivative, sparse", "ensemble"), ("weak, sparse", "weak"),
]  # fmt: skip


def row_of(data: Series, ours: str, theirs: str, peer: Peer | None, rounds: int) -> tuple[Any, ...]:
    """Ours, draws and their kind, and theirs, their errors and seconds."""
    kind, fit, likelihood = OURS[ours]
    medians, n_draws = fit(data, likelihood)
    timed, remark = {"ours": lambda: wall(lambda: fit(data, likelihood))}, ""
    try:
        if peer:
            numbers = {"times": data.times.tolist(), "values": data.values.tolist(), "threshold": THRESHOLD}
            run = peer.make(theirs, **numbers)
            timed["theirs"] = run.seconds
    except PeerError as failure:
        remark = str(failure)
    seen = interleaved(rounds, timed)
    times, spread = ratio_cells(seen["theirs"], seen["ours"]) if "theirs" in seen else ("–", "–")
    other = [float(np.median(seen["theirs"])), error(run.value)] if "theirs" in seen else ["–", "–"]
    found = error(medians.reshape(3, -1).T)
    return times, spread, float(np.median(seen["ours"])), f"{n_draws} by {kind}", found, *other, remark


def main(plan: Plan) -> None:
    """Print the table."""
    with one_core() as core:
        table = Table(
            plan.folder, "identification_fits", "noise", "ours", "PySINDy's", "× PySINDy", "spread", "ours, s", "draws",
            "error", "PySINDy, s", "its error", "remark",
        )  # fmt: skip
        peer, absent = opened("pysindy_runs", core)
        times = np.linspace(0.0, 10.0, 1001 if plan.is_small else 5001)
        for noise in (0.01, 0.05):
            data = simulate(systems.lorenz(), times, noise=noise, seed=1)
            for ours, theirs in PAIRS[-1:] if plan.is_small else PAIRS:
                table.row(f"{noise:.0%}", ours, theirs, *row_of(data, ours, theirs, peer, min(plan.rounds, 3)))
        if peer:
            peer.close()
        if absent:
            print(f"\n{absent}")
