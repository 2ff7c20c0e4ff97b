"""The two identification experiments of the r2SGLD paper, section 4.1, A.1 and A.2, for figures 3, 4 and 6 to 9.

Θ(X) Ξ against exact velocities on [0, 100] every 0.01, U = ½ mean_i |v_i − Θ_i Ξ|², T = 1 (hot replica: 10), batch
4,096, 60,000 iterations of which 20,000 are burn-in. Step sizes of the paper: SGLD 5e-6; cycSGLD 2e-5 (Lorenz), 1e-5
(Lotka–Volterra), ten cosine cycles; reSGLD 2e-6 and 2e-5 (1e-5); all but cycSGLD × 0.9999 per iteration after 10,000.

What the paper leaves open, and our choice: data start at (−8, 7, 27) and (10, 5); chains at zero, as in the released
code, mirrored into the domain where there is reflection; cycSGLD's floor 0.005, noise always on; swaps by u < S without
a correction, which batches of exact velocities do not need (docs/identification.md); batches are windows of one random
order, whose gradients cost O(q²). Where ``free`` is "named" the model has the parameters of the system and every other
coefficient of its equations at its true value; where it is "all" every coefficient of the library's terms in every
equation is free, as in the released scripts.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sysid import Identification, identify, likelihoods, marginal_modes, model_of, systems
from sysid.data import simulate
from sysid.model import model_of_system
from sysid.series import Series
from sysid.system import System
from toolkit import Run, boundaries, samplers, schedules
from toolkit.samplers import Sampler

from .study import Study

Array = NDArray[np.float64]

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
    share = study.size(1, 20)
    run = study.sample(
        method, problem, sampler_of(name, method), n_steps=N_STEPS // share, burn_in=BURN_IN // share, thin=10,
        n_chains=study.size(N_SEEDS, 3), init=mirrored(problem) if reflected else np.zeros(problem.dim),
    )  # fmt: skip
    named = named_parameters(problem, run)
    return Result(method, system_of(name), problem, run, named, np.array([marginal_modes(chain) for chain in named]))


def mirrored(problem: Identification) -> Array:
    """Zero mirrored into the domain, and off its walls by a hair."""
    assert problem.truth is not None
    region: Any = problem.truth.region  # type: ignore[attr-defined]
    normals, offsets = region.walls
    point = np.zeros(problem.dim)
    for _ in range(100):
        excess = normals @ point - offsets
        worst = int(np.argmax(excess))
        if excess[worst] < 0.0:
            break
        point -= (2.0 * excess[worst] + 1e-6) * normals[worst]
    return point
