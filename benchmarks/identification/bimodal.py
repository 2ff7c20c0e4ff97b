"""A posterior of two modes, ω and 2π − ω of an oscillation sampled once a unit of time: their weights by sampler.

x″ = −ω²x, 12 samples, noise 0.3, ω ~ N(3, 1.5²), scaled positions. Exact weights are by quadrature. Moves: how often a
chain of the target went from one mode to the other. Warned: whether ``estimates`` says that chains do not. A second
table has ladders that ``tune`` finds.
"""

import time
import warnings
from typing import Any

import numpy as np

from benchmarks.runner.plan import Plan
from benchmarks.runner.tables import Table
from sysid import Series, identify, priors, systems
from sysid.likelihoods.trajectories import trajectory
from toolkit import boundaries, sample, samplers, tune
from toolkit.tempering.contour_tempering import Partition

OMEGA, NOISE, N_SAMPLES = 2.9, 0.3, 12
HALF = np.pi
TUNED = {"r2sghmc": 12, "resgld": 6, "pt_hmc": 6}  # seeds


def oscillation(_: Any, x: Any, p: Any) -> Any:
    """dx/dt of an undamped oscillation with ω = p[0]."""
    return (x[1], -p[0] * p[0] * x[0])


def problem() -> Any:
    """The posterior of ω."""
    times = np.arange(float(N_SAMPLES))
    values = np.cos(OMEGA * times) + NOISE * np.random.default_rng(0).standard_normal(N_SAMPLES)
    system = systems.own(oscillation, states=("x", "v"), parameters=("omega",), usual=(3.0,), start=(1.0, 0.0))
    likelihood = trajectory(noise=NOISE, start=(1.0, 0.0))
    data = Series(times, values[:, None], states=("x",))
    return identify(data, system, likelihood=likelihood, prior={"omega": priors.gaussian(3.0, 1.5)}).scaled()


def energies(posterior: Any, omega: Any) -> Any:
    """Energies (n,) at ω (n,)."""
    positions = posterior.positions(omega[:, None])
    return np.concatenate([posterior.target.evaluate(part)[0] for part in np.array_split(positions, omega.size // 64)])


def ladder(top: float, n_rungs: int) -> Any:
    """Replica exchange of SGHMC with exact gradients, from 1 to ``top``."""
    temperatures = np.geomspace(1.0, top, n_rungs)
    return samplers.r2sghmc(0.1 * np.sqrt(temperatures), temperatures=temperatures, boundary=boundaries.ignore())


def share_and_moves(posterior: Any, run: Any) -> tuple[float, int]:
    """The share of the target's draws with ω < π, and how often a chain of it went from one mode to the other."""
    below = posterior.parameters(run.replica_draws[:, : run.sampler.n_target_replicas])[..., 0] < HALF
    return float(below.mean()), int((below[..., 1:] != below[..., :-1]).sum())


def tuned_ladders(plan: Plan, posterior: Any) -> None:
    """A row for each sampler and seed: the ladder that ``tune`` found, and a run of 16 chains by it."""
    columns = ("sampler", "seed", "top", "rungs", "share below π", "moves", "tuning, s", "run, s")
    table = Table(plan.folder, "bimodal_tuned", *columns)
    n_steps = 2_000 if plan.is_small else 20_000
    for name, n_seeds in TUNED.items():
        for seed in range(1 if plan.is_small else n_seeds):
            tuned = tune(posterior, getattr(samplers, name)(boundary=boundaries.ignore()), seed=seed, progress=False)
            begin = time.perf_counter()
            run = sample(posterior, tuned, n_chains=16, n_steps=n_steps, burn_in=n_steps // 10, seed=seed)
            seconds = time.perf_counter() - begin
            temperatures = tuned.sampler.temperatures
            found = share_and_moves(posterior, run)
            table.row(name, seed, temperatures[-1], len(temperatures), *found, tuned.cost.seconds, seconds)


def main(plan: Plan) -> None:
    """Print the table."""
    posterior = problem()
    grid = np.linspace(0.0, 3.0 * HALF, 32_001)
    energy = energies(posterior, grid)
    density = np.exp(energy.min() - energy)
    exact = density[grid < HALF].sum() / density.sum()
    low, high = np.sort(posterior.modes.parameters[:, 0])
    between = energies(posterior, np.linspace(low, high, 640)).max()
    print(f"exact: {exact:.4f} below π; modes {posterior.modes.weights.round(4).tolist()} by Laplace's approximation;")
    print(f"{between - energy.min():.1f} nats between them\n")
    table = Table(plan.folder, "bimodal", "sampler", "chains", "steps", "share below π", "moves", "warned")
    settings: dict[str, tuple[Any, int, int]] = {
        "hmc(0.3)": (samplers.hmc(0.3, n_leapfrogs=10), 32, 4_000),
        "icsgld(0.08)": (samplers.icsgld(0.08), 16, 100_000),
        "icsgld(0.08), ζ = 1, bins to 86 nats": (
            samplers.icsgld(0.08, zeta=1.0, partition=Partition(-0.5, 0.75, 115)), 16, 100_000,
        ),
        **{
            f"r2sghmc, {n} rungs to T = {top:g}": (ladder(top, n), 16, 20_000)
            for top in (5.0, 9.0, 26.0) for n in (2, 4)
        },
    }  # fmt: skip
    for name, (sampler, n_chains, n_steps) in settings.items():
        n_steps //= 10 if plan.is_small else 1
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            run = sample(posterior, sampler, n_chains=n_chains, n_steps=n_steps, burn_in=n_steps // 10, seed=1)
            posterior.estimates(run)
        share, moves = share_and_moves(posterior, run)
        warned = any("chains do not go" in str(one.message) for one in caught)
        table.row(name, n_chains, n_steps, share, moves, "yes" if warned else "no")
    tuned_ladders(plan, posterior)
