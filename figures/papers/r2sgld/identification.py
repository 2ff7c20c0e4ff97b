"""The identification figures' runs, panels of posteriors and simulations, and tables."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from scipy.stats import gaussian_kde

from sysid import Identification, identify, likelihoods, marginal_modes, model_of, systems
from sysid.data import simulate
from sysid.data.series import Series
from sysid.model import model_of_system
from sysid.solvers.integrate import solve
from sysid.systems.system import System
from toolkit import Run, boundaries, samplers, schedules
from toolkit.samplers import Sampler

from ...arrays import Array
from ...plots import style
from ...scripts.claims import Claim, said_above
from ...scripts.statistics import paired_ratio, with_error
from ...scripts.study import Data, Study

# The two identification experiments of the r2SGLD paper, section 4.1, A.1 and A.2, for figures 3, 4 and 6 to 9.
#
# Θ(X) Ξ against exact velocities on [0, 100] every 0.01, U = ½ mean_i |v_i − Θ_i Ξ|², T = 1 (hot replica: 10), batch
# 4,096, 60,000 iterations of which 20,000 are burn-in (3 seeds in place of 10 in the quick version). Step
# sizes of the paper: SGLD 5e-6; cycSGLD 2e-5 (Lorenz), 1e-5 (Lotka–Volterra), ten cosine cycles; reSGLD 2e-6 and 2e-5
# (1e-5); all but cycSGLD × 0.9999 per iteration after 10,000.
#
# What the paper leaves open, and our choice: data start at (−8, 7, 27) and (10, 5); chains at zero, as in the released
# code, mirrored into the domain where there is reflection; cycSGLD's floor 0.005, noise always on; swaps by u < S
# without a correction, which batches of exact velocities do not need (docs/identification.md); batches are windows of
# one random order, whose gradients cost O(q²). Where ``free`` is "named" the model has the parameters of the system and
# every other coefficient of its equations at its true value; where it is "all" every coefficient of the library's terms
# in every equation is free, as in the released scripts.


N_STEPS, BURN_IN, N_SEEDS, BATCH = 60_000, 20_000, 10, 4096
SEED = 3407
METHODS = ("SGLD", "R-SGLD", "cycSGLD", "R-cycSGLD", "reSGLD", "r2SGLD")
# Modes printed in figures 4 and 6; σ of four was lost with the figures' text. Lotka–Volterra's are not printed.
PRINTED = {
    "SGLD": {"rho": 28.32, "beta": 2.67},
    "R-SGLD": {"rho": 28.02, "beta": 2.68},
    "cycSGLD": {"rho": 27.67, "beta": 2.67},
    "R-cycSGLD": {"rho": 28.04, "beta": 2.66},
    "reSGLD": {"sigma": 9.92, "rho": 27.78, "beta": 2.68},
    "r2SGLD": {"sigma": 9.99, "rho": 28.01, "beta": 2.67},
}
CONSTRAINTS = {
    ("lorenz", "named"): ("sigma > 1 + beta", "rho > 1", "beta > 0"),
    ("lorenz", "all"): ("dx:y - dx:x > 2 - 2*dz:z", "dy:x > 1", "dz:z < 0"),
    ("lotka_volterra", "named"): ("alpha > 0", "beta > 0", "delta > 0", "gamma > 0"),
    ("lotka_volterra", "all"): ("dprey:prey > 0", "dprey:prey predator < 0",
                                "dpredator:prey predator > 0", "dpredator:predator < 0"),
}  # fmt: skip
LETTERS = {"sigma": "σ", "rho": "ρ", "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ"}


@dataclass(frozen=True, eq=False)
class Result:
    """One method's run: the system's parameters (chain, draw, n) of its draws, and marginal modes (chain, n)."""

    method: str
    system: System
    problem: Identification
    run: Run
    named: Array
    modes: Array

    @property
    def swap_rate(self) -> float:
        """Accepted over tried swaps; nan where there are none."""
        return float(self.run.swap_rates.mean()) if self.run.sampler.tempering else np.nan


def system_of(name: str) -> System:
    """The system, with its states and parameters as the paper has them."""
    return systems.lorenz() if name == "lorenz" else systems.lotka_volterra()


@cache
def data_of(name: str) -> Series:
    """Exact states and velocities on [0, 100], every 0.01."""
    return simulate(system_of(name), np.arange(10_001) * 0.01, seed=0)


@cache
def problem_of(name: str, *, reflected: bool, free: str = "named", batch_size: int | None = BATCH) -> Identification:
    """The paper's posterior."""
    named = model_of_system(system_of(name))
    model = named if free == "named" else model_of(named.library, name=name)
    energy = likelihoods.derivative(noise="mean", batch_size=batch_size, batches="windows")
    return identify(data_of(name), model, likelihood=energy, constraints=CONSTRAINTS[name, free] if reflected else None)


def named_parameters(problem: Identification, draws: Any) -> Array:
    """The system's parameters (…, n) of draws of either model; where all are free, σ is ½ (Ξ_y − Ξ_x) of ẋ."""
    theta = problem.parameters(draws)
    if (
        len(problem.names) == problem.system.n_parameters
        and problem.names == problem.system.parameters
        and ":" not in problem.names[0]
    ):
        return theta
    column = {name: theta[..., k] for k, name in enumerate(problem.names)}
    if "dx:y" in column:
        return np.stack([0.5 * (column["dx:y"] - column["dx:x"]), column["dy:x"], -column["dz:z"]], axis=-1)
    both = "prey predator"
    return np.stack([column["dprey:prey"], -column[f"dprey:{both}"], column[f"dpredator:{both}"],
                     -column["dpredator:predator"]], axis=-1)  # fmt: skip


def sampler_of(name: str, method: str) -> Sampler:
    """A method with the paper's numbers."""
    boundary = boundaries.reflect() if method.startswith(("R-", "r2")) else boundaries.ignore()
    decay = schedules.exponential_decay(0.9999, start=10_000)
    largest = 2e-5 if name == "lorenz" else 1e-5
    if "cyc" in method:
        return samplers.cyclical_sgld(largest, n_cycles=10, exploration=0.0, floor=0.005, boundary=boundary)
    if "SGLD" in method and "re" not in method and "r2" not in method:
        return samplers.sgld(5e-6, schedule=decay, boundary=boundary)
    return samplers.resgld((2e-6, largest), temperatures=(1.0, 10.0), correction=0.0,
                           schedule=decay, boundary=boundary)  # fmt: skip


def result_of(study: Study, name: str, method: str) -> Result:
    """A method run with every seed at once, each a chain of its own; one run serves all figures of a process."""
    result = run_once(name, method, quick=study.quick, seed=study.seed, backend=study.backend)
    study.note(method, result.run)
    return result


@cache
def run_once(name: str, method: str, *, quick: bool, seed: int, backend: str) -> Result:
    """The run behind ``result_of``."""
    study = Study(quick=quick, seed=seed, backend=backend)
    reflected = method.startswith(("R-", "r2"))
    problem = problem_of(name, reflected=reflected)
    run = study.sample(
        method, problem, sampler_of(name, method), n_steps=N_STEPS, burn_in=BURN_IN, thin=10,
        n_chains=study.size(N_SEEDS, 3), init=reflected_origin(problem) if reflected else np.zeros(problem.dim),
    )  # fmt: skip
    named = named_parameters(problem, run)
    return Result(method, system_of(name), problem, run, named, np.array([marginal_modes(chain) for chain in named]))


def reflected_origin(problem: Identification) -> Array:
    """The origin reflected into the domain, a little inside of its walls."""
    assert problem.truth is not None
    region: Any = problem.truth.region  # type: ignore[attr-defined]
    normals, offsets = region.walls
    point = np.zeros(problem.dim)
    for _ in range(100):
        excess = normals @ point - offsets
        farthest = int(np.argmax(excess))
        if excess[farthest] < 0.0:
            break
        point -= (2.0 * excess[farthest] + 1e-6) * normals[farthest]
    return point


def closed_form(result: Result) -> tuple[Array, Array]:
    """Means and standard deviations (n,) of the named parameters under the posterior without constraints."""
    posterior, problem = result.problem.posterior, result.problem
    assert posterior is not None
    origin = named_parameters(problem, np.zeros(problem.dim))
    slopes = np.array([named_parameters(problem, row) - origin for row in np.eye(problem.dim)])
    covariance = slopes.T @ posterior.covariance @ slopes
    return named_parameters(problem, problem.positions(posterior.mean)), np.sqrt(np.diag(covariance))


def moments_of(results: Sequence[Result]) -> dict[str, Any]:
    """What the table needs: an entry per method, of modes also per chain."""
    exact = [closed_form(result) for result in results]
    return {
        "system": results[0].system.name,
        "methods": [result.method for result in results],
        "modes": [result.modes for result in results],
        "means": [result.named.mean(axis=(0, 1)) for result in results],
        "sds": [result.named.std(axis=(0, 1)) for result in results],
        "exact_means": [mean for mean, _ in exact],
        "exact_sds": [sd for _, sd in exact],
        "swap_rates": [result.swap_rate for result in results],
        "reflections": [result.run.reflections.sum() / len(result.named) for result in results],
    }


def distances_of(results: Sequence[Result]) -> dict[str, Any]:
    """Distances from the truth in the posterior's standard deviations, (method, seed), RMS over the parameters.

    mode_distances: of each seed's mode. draw_distances: of its draws, RMS over them, too.
    """
    found: dict[str, Any] = {"compared": [result.method for result in results]}
    modes, draws = [], []
    for result in results:
        _, sds = closed_form(result)
        modes.append(np.sqrt((((result.modes - result.system.usual) / sds) ** 2).mean(axis=1)))
        draws.append(np.sqrt((((result.named - result.system.usual) / sds) ** 2).mean(axis=(1, 2))))
    return {**found, "mode_distances": modes, "draw_distances": draws}


def farther(data: Data, first: str, second: str, source: str, *, of: str = "mode", why: str = "") -> Claim:
    """The claim in words that one method's modes, or draws, are farther from the truth than another's."""
    where = data["compared"].tolist()
    distances = data[f"{of}_distances"]
    what = f"distance of {of}s from the truth, {system_of(str(data['system'])).name}: {first}'s over {second}'s"
    ratio = paired_ratio(distances[where.index(first)], distances[where.index(second)])
    return said_above(what, 1.0, ratio, source, why)


def reflection_claims(data: Data, source: str, *, modes_of: Sequence[str] = METHODS) -> list[Claim]:
    """That reflection brings modes, and the draws of all, nearer to the truth, of each pair with and without it."""
    return [
        farther(data, free, reflected, source, of=of, why=STARTS if free == "SGLD" else NO_WALLS)
        for of, methods in (("mode", modes_of), ("draw", METHODS))
        for free, reflected in zip(methods[::2], methods[1::2], strict=True)
    ]


NO_WALLS = "Once a chain has left the walls near its start it meets them no more, and both posteriors are the same."
STARTS = "R-SGLD starts nearer, its start being mirrored into the domain, and decaying steps keep what that gains."


def densities_of(results: Sequence[Result], grids: Array) -> Array:
    """Kernel densities (method, chain + 1, n, place) at ``grids`` (n, place): of each chain, last of all together."""
    return np.array([
        [[density_of(draws[..., k].ravel(), grid) for k, grid in enumerate(grids)]
         for draws in (*result.named, result.named)]
        for result in results
    ])  # fmt: skip


def density_of(values: Array, grid: Array) -> Array:
    """A Gaussian kernel density, of at most 4,000 values; nothing where they do not vary."""
    points = values[:: -(-len(values) // 4000)]
    if np.ptp(points) == 0.0:
        return np.full(grid.shape, np.nan)
    return np.asarray(gaussian_kde(points)(grid))


def simulations(results: Sequence[Result], times: Array) -> Array:
    """States (results + 1, times, dim) of the truth, then from each method's mean mode; nan where they blow up."""
    system = results[0].system
    rows = np.vstack([system.usual, *(result.modes.mean(axis=0) for result in results)])
    return np.asarray(solve(system, times, rows, None, rtol=1e-10, atol=1e-10).states)


def simulations_of_seeds(result: Result, times: Array) -> Array:
    """States (seed, times, dim) from the mode of each seed; nan where they blow up."""
    return np.asarray(solve(result.system, times, result.modes, None, rtol=1e-10, atol=1e-10).states)


def normal_density(grid: Array, mean: float, sd: float) -> Array:
    """The closed form of a parameter's posterior."""
    return np.asarray(np.exp(-0.5 * ((grid - mean) / sd) ** 2) / (np.sqrt(2.0 * np.pi) * sd))


def posterior_panel(axes: Axes, data: Data, m: int, k: int) -> None:
    """Densities of parameter ``k`` by method ``m``: every seed, all together, closed form; the truth and the modes."""
    system, method = system_of(str(data["system"])), str(data["methods"][m])
    parameter, grid = system.parameters[k], data["grids"][k]
    *seeds, pooled = data["densities"][m, :, k]
    for density in seeds:
        axes.plot(grid, density / len(seeds), color=style.MEDIUM, linewidth=0.5, alpha=0.6)
    axes.plot(grid, pooled, color=style.MEDIUM, linewidth=1.4)
    exact = normal_density(grid, data["exact_means"][m, k], data["exact_sds"][m, k])
    axes.plot(grid, exact, color=style.DARK, linewidth=1.2, linestyle=(0, (4, 1.5)))
    axes.axvline(system.usual[k], color="0.55", linewidth=1.0, zorder=1)
    modes = data["modes"][m, :, k]
    axes.plot(modes, np.full(len(modes), 0.03 * exact.max()), "|", color=style.MEDIUM, markersize=6)
    title = f"mode {with_error(modes.mean(), modes.std(ddof=1))}"
    printed = PRINTED[method].get(parameter) if system.name == "lorenz" else None
    if printed is not None:
        axes.plot(printed, 0.0, "^", color=style.LIGHT, markersize=5, clip_on=False, zorder=4)
        title += f"; printed {printed:g}"
    axes.set(xlim=(grid[0], grid[-1]), xlabel=LETTERS[parameter])
    axes.set_ylim(bottom=0.0)
    axes.locator_params(axis="y", nbins=4)
    axes.set_title(title, fontsize=7, loc="left")


def legend_of(axes: Axes, *, printed: bool) -> tuple[list[Any], list[str]]:
    """Handles and labels of a posterior panel."""
    (seed,) = axes.plot([], [], color=style.MEDIUM, linewidth=0.5, alpha=0.6)
    (pooled,) = axes.plot([], [], color=style.MEDIUM, linewidth=1.4)
    (exact,) = axes.plot([], [], color=style.DARK, linestyle=(0, (4, 1.5)))
    (truth,) = axes.plot([], [], color="0.55", linewidth=1.0)
    (mode,) = axes.plot([], [], "|", color=style.MEDIUM, markersize=6)
    handles, labels = (
        [seed, pooled, exact, truth, mode],
        ["one seed ÷ number of seeds", "all seeds", "closed form", "truth", "mode of each seed"],
    )
    if printed:
        (mark,) = axes.plot([], [], "^", color=style.LIGHT, markersize=5)
        handles, labels = [*handles, mark], [*labels, "printed mode"]
    return handles, labels


def portrait(axes: Any, states: Array, title: str, zoom: float = 0.88) -> None:
    """A path of three states (times, 3) in space."""
    axes.plot(*states.T, color=style.MEDIUM, linewidth=0.35)
    axes.set_title(title, pad=-4)
    axes.set(xlim=(-22, 22), ylim=(-28, 28), zlim=(0, 52), xlabel="x", ylabel="y", zlabel="z")
    axes.set(xticks=[-20, 0, 20], yticks=[-25, 0, 25], zticks=[0, 25, 50])
    axes.tick_params(pad=-3, labelsize=6)
    axes.xaxis.labelpad = axes.yaxis.labelpad = axes.zaxis.labelpad = -9
    axes.view_init(elev=18, azim=-55)
    axes.set_box_aspect(None, zoom=zoom)


def prediction_time(times: Array, states: Array, truth: Array, share: float = 0.4) -> float:
    """The first time at which ``states`` differ from the truth by ``share`` of its RMS, or else the last time."""
    size = np.sqrt((truth**2).sum(axis=1).mean())
    diverged = ~(np.sqrt(((states - truth) ** 2).sum(axis=1)) <= share * size)
    return float(times[np.argmax(diverged)] if diverged.any() else times[-1])


def rows_of(data: Data) -> list[dict[str, Any]]:
    """The table of a figure: every method's modes and moments beside closed form and print."""
    system = system_of(str(data["system"]))
    return [
        {
            "method": str(method), "parameter": parameter, "truth": float(system.usual[k]),
            "mode": float(data["modes"][m, :, k].mean()),
            "mode_sd_over_seeds": float(data["modes"][m, :, k].std(ddof=1)),
            "printed_mode": PRINTED[method].get(parameter, np.nan) if system.name == "lorenz" else np.nan,
            "mean": float(data["means"][m, k]), "sd": float(data["sds"][m, k]),
            "closed_form_mean": float(data["exact_means"][m, k]), "closed_form_sd": float(data["exact_sds"][m, k]),
            "seeds": data["modes"].shape[1], "swap_rate": float(data["swap_rates"][m]),
            "reflections_per_seed": float(data["reflections"][m]),
        }
        for m, method in enumerate(data["methods"].tolist())
        for k, parameter in enumerate(system.parameters)
    ]  # fmt: skip
