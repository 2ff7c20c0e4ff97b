"""Calibration: how often 50 % and 90 % intervals of identified parameters hold the truth; whether its ranks are even.

Parameters, initial state and noise are drawn from the prior, data simulated, and the posterior sampled by Hamiltonian
Monte Carlo in Laplace's coordinates (Talts et al. 2018). ``--small``: 40 data sets a row instead of 200.
"""

import functools
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import chi2

from benchmarks.runner.plan import Plan
from benchmarks.runner.tables import Table, mean_and_error
from sysid import Inputs, Series, priors, systems
from sysid.data import simulate
from sysid.identification import identify
from sysid.likelihoods.error_laws import scale_name, with_errors
from sysid.likelihoods.trajectories import trajectory
from sysid.likelihoods.velocity import derivative
from sysid.likelihoods.weak_form import weak
from sysid.solvers.integrate import solve
from toolkit import sample, samplers
from toolkit.diagnostics import ess, r_hat

NOISES = (0.001, 0.01, 0.05, 0.1)  # of the root mean square of each state
NOISE_SPREAD = 0.3  # of the logarithm of the noise, in the prior
N_CHAINS, N_DRAWS, LEAPS, STEP_SIZE = 32, 40, 5, 0.4
BINS = 10


class Case(NamedTuple):
    """A system, when it is measured, and the widths of the priors of its parameters (relative) and initial state."""

    system: Any
    times: Any
    segments: int
    width: float
    start_width: Any


CASES = {
    "Lotka–Volterra": Case(systems.lotka_volterra(), np.linspace(0.0, 10.0, 41), 1, 0.1, 0.1),
    "Lorenz": Case(systems.lorenz(), np.linspace(0.0, 2.0, 101), 4, 0.05, 0.5),
}


def sizes_of(case: Case) -> Any:
    """Root mean squares of the states of the usual solution."""
    return np.sqrt((solve(case.system, case.times).states ** 2).mean(axis=0))


def priors_of(case: Case, noise: float) -> dict[str, Any]:
    """The priors of parameters, initial states and standard deviations, by name."""
    system = case.system
    table = {
        name: priors.lognormal(float(np.log(usual)), case.width)
        for name, usual in zip(system.parameters, system.usual, strict=True)
    }
    for state, first, size in zip(system.states, system.start, sizes_of(case), strict=True):
        table[f"{state}(0)"] = priors.gaussian(float(first), case.start_width * abs(float(first)))
        table[f"sd({state})"] = priors.lognormal(float(np.log(noise * size)), NOISE_SPREAD)
    return table


def by_trajectory(case: Case, noise: float, data: Any) -> Any:
    """Parameters, initial states and noise are free; Lorenz in segments."""
    return identify(
        data, case.system, likelihood=trajectory(segments=case.segments), prior=priors_of(case, noise)
    ).scaled()


def by_weak(case: Case, noise: float, data: Any) -> Any:
    """Parameters are free; the states' noise is that of the series, the path is taken out."""
    table = priors_of(case, noise)
    return identify(data, case.system, likelihood=weak(), prior={p: table[p] for p in case.system.parameters}).scaled()


def by_derivative(case: Case, noise: float, data: Any) -> Any:
    """Parameters are free; velocities and states are those of smoothing splines, the noise that of the residuals."""
    table = priors_of(case, noise)
    return identify(
        data, case.system, likelihood=derivative(velocities="spline"),
        prior={p: table[p] for p in case.system.parameters},
    ).scaled()  # fmt: skip


# Name → function of a case, its noise and a series to a problem to sample, with the parameters of the system among its
# names.
LIKELIHOODS: dict[str, Callable[[Case, float, Any], Any]] = {
    "trajectory": by_trajectory,
    "weak": by_weak,
    "derivative": by_derivative,
}


def drawn(case: Case, noise: float, rng: Any) -> tuple[Any, Any]:
    """Parameters from the prior, and data from them."""
    system = case.system
    parameters = system.usual * np.exp(case.width * rng.standard_normal(system.n_parameters))
    start = system.start + case.start_width * np.abs(system.start) * rng.standard_normal(system.dim)
    sd = noise * sizes_of(case) * np.exp(NOISE_SPREAD * rng.standard_normal(system.dim))
    seed = int(rng.integers(2**31))
    return parameters, simulate(
        system, case.times, parameters=parameters, start=start, noise=sd, relative=False, seed=seed
    )


def rank_shares(case: Case, noise: float, build: Any, seed: int) -> tuple[Any, float, float]:
    """Share of posterior draws below the truth, of every parameter; least effective draws; largest R-hat."""
    rng = np.random.default_rng(seed)
    truth, data = drawn(case, noise, rng)
    return shares_below(build(case, noise, data), dict(zip(case.system.parameters, truth, strict=True)), seed)


LAWS = {"student": 0.05, "poisson": None, "negative_binomial": 0.1}  # errors → the median of sd / size, or dispersion


def law_shares(errors: str, seed: int) -> tuple[Any, float, float]:
    """``rank_shares`` of Lotka–Volterra with errors of another law; of its parameters and scales."""
    case, rng = CASES["Lotka–Volterra"], np.random.default_rng(seed)
    system, prior, truth = case.system, {}, {}
    scales = LAWS[errors] * (sizes_of(case) if errors == "student" else np.ones(2)) if LAWS[errors] else np.zeros(0)
    for name, usual in zip(system.parameters, system.usual, strict=True):
        prior[name] = priors.lognormal(float(np.log(usual)), case.width)
        truth[name] = usual * np.exp(case.width * rng.standard_normal())
    for state, median in zip(system.states, scales, strict=False):
        name = scale_name(errors, state)
        prior[name] = priors.lognormal(float(np.log(median)), NOISE_SPREAD)
        truth[name] = median * np.exp(NOISE_SPREAD * rng.standard_normal())
    start, first_priors = first_states(case, rng)
    states = solve(system, case.times, np.array([truth[p] for p in system.parameters]), start).states
    scale = np.array([truth[name] for name in list(truth)[system.n_parameters :]]) if scales.size else None
    data = Series(case.times, with_errors(states, scale, errors, 4.0, rng), system.states)
    problem = identify(data, system, likelihood=trajectory(errors=errors), prior=prior | first_priors("")).scaled()
    return shares_below(problem, truth, seed)


N_EXPERIMENTS = 3


def experiment_shares(seed: int) -> tuple[Any, float, float]:
    """``rank_shares`` of three experiments on Lotka–Volterra: the first parameter is each one's own, the last known."""
    case, rng = CASES["Lotka–Volterra"], np.random.default_rng(seed)
    system = case.system
    own, *shared, fixed = system.parameters
    usual = dict(zip(system.parameters, system.usual, strict=True))
    names = [f"{own}[{e}]" for e in range(N_EXPERIMENTS)] + shared
    medians = [usual[name.partition("[")[0]] for name in names]
    truth = {n: m * float(np.exp(case.width * rng.standard_normal())) for n, m in zip(names, medians, strict=True)}
    prior = {n: priors.lognormal(float(np.log(m)), case.width) for n, m in zip(names, medians, strict=True)}
    medians = 0.05 * sizes_of(case)
    sd = medians * np.exp(NOISE_SPREAD * rng.standard_normal(system.dim))
    for state, median in zip(system.states, medians, strict=True):
        prior[f"sd({state})"] = priors.lognormal(float(np.log(median)), NOISE_SPREAD)
    data, known = [], tuple(usual[fixed] * factor for factor in (0.8, 1.0, 1.2))
    for e in range(N_EXPERIMENTS):
        times = case.times[: 41 - 10 * e]
        start, first_priors = first_states(case, rng)
        parameters = np.array([truth[f"{own}[{e}]"], *[truth[name] for name in shared], known[e]])
        states = solve(system, times, parameters, start).states
        data.append(Series(times, with_errors(states, sd, "gaussian", 0.0, rng), system.states))
        prior |= first_priors(f"[{e}]")
    problem = identify(data, system, likelihood=trajectory(own=(own,), known={fixed: known}), prior=prior).scaled()
    return shares_below(problem, truth, seed)


def kinetics(t: float, x: Any, p: Any, u: Any) -> Any:
    """A drug in the gut and in the blood, which it leaves faster where u > 0."""
    return -p[0] * x[0], p[0] * x[0] - p[1] * (1.0 + u[0]) * x[1]


DRUG = systems.own(
    kinetics, states=["gut", "blood"], parameters=["ka", "ke", "volume"], usual=[1.0, 0.3, 3.0], start=[0.0, 0.0],
    inputs=["exercise"],
)  # fmt: skip
MEASURED = trajectory(
    start=[0.0, 0.0], observe={"concentration": lambda t, x, p: x[1] / p[2], "total": lambda t, x, p: x[0] + x[1]}
)
DRUG_SDS = {"sd(concentration)": 0.1, "sd(total)": 0.4}  # medians
DRUG_WIDTH = 0.2  # of the logarithms of the rates and of the volume


def driven_shares(seed: int) -> tuple[Any, float, float]:
    """``rank_shares`` of a system with an input and doses, of which functions of the states are measured."""
    rng = np.random.default_rng(seed)
    medians = dict(zip(DRUG.parameters, DRUG.usual.tolist(), strict=True)) | DRUG_SDS
    widths = [DRUG_WIDTH if name in DRUG.parameters else NOISE_SPREAD for name in medians]
    prior, truth = {}, {}
    for (name, median), width in zip(medians.items(), widths, strict=True):
        prior[name] = priors.lognormal(float(np.log(median)), width)
        truth[name] = median * float(np.exp(width * rng.standard_normal()))
    times = np.linspace(0.0, 24.0, 33)
    switched, doses = np.sort(rng.uniform(0.0, 24.0, 2)), np.sort(rng.uniform(0.0, 20.0, 2))
    given = Inputs(
        {"exercise": ([0.0, *switched], [0.0, 1.0, 0.0])}, held=["exercise"],
        doses={"gut": ([0.0, *doses], rng.uniform(5.0, 15.0, 3))},
    )  # fmt: skip
    ka, ke, volume, *sds = truth.values()
    states = solve(DRUG, times, [ka, ke, volume], inputs=given).states
    values = np.stack([states[:, 1] / volume, states.sum(axis=1)], axis=1)
    values += np.array(sds) * rng.standard_normal(values.shape)
    series = Series(times, values, ("concentration", "total"), inputs=given)
    problem = identify(series, DRUG, likelihood=MEASURED, prior=prior, n_searches=0).scaled()
    return shares_below(problem, truth, seed)


def first_states(case: Case, rng: Any) -> tuple[Any, Callable[[str], dict[str, Any]]]:
    """An initial state from its prior; and the priors, of names that end in a label."""
    usual, width = case.system.start, case.start_width * np.abs(case.system.start)

    def named(label: str) -> dict[str, Any]:
        return {
            f"{state}(0){label}": priors.gaussian(float(m), float(s))
            for state, m, s in zip(case.system.states, usual, width, strict=True)
        }

    return usual + width * rng.standard_normal(usual.size), named


def shares_below(problem: Any, truth: dict[str, float], seed: int) -> tuple[Any, float, float]:
    """Share of posterior draws below the truth, of each named in it; least effective draws; largest R-hat."""
    n_steps = LEAPS * N_DRAWS * 5 // 4
    run = sample(
        problem, samplers.hmc(STEP_SIZE, n_leapfrogs=LEAPS), n_steps=n_steps, n_chains=N_CHAINS,
        burn_in=n_steps - LEAPS * N_DRAWS, thin=LEAPS, seed=seed, init=problem.starts(N_CHAINS, seed=seed),
    )  # fmt: skip
    draws = problem.parameters(run)[..., [problem.names.index(name) for name in truth]]
    below = (draws < np.array(list(truth.values()))).mean(axis=(0, 1))
    return below, float(ess(draws).min()), float(r_hat(draws).max())


def evenness(shares: Any) -> float:
    """p value of the least even parameter's ranks, by χ² over ten bins, for as many parameters as there are."""
    n, k = shares.shape
    counts = np.stack([np.bincount(np.minimum((BINS * u).astype(int), BINS - 1), minlength=BINS) for u in shares.T])
    statistic = ((counts - n / BINS) ** 2 / (n / BINS)).sum(axis=1)
    return float(min(1.0, k * chi2.sf(statistic.max(), BINS - 1)))


def coverage(shares: Any, level: float) -> str:
    """How often central intervals of a level hold the truth, with the standard error over data sets."""
    mean, error = mean_and_error((np.abs(shares - 0.5) < 0.5 * level).mean(axis=1))
    return f"{mean:.3f} ± {error:.3f}"


def main(plan: Plan) -> None:
    """Print the table."""
    n = 40 if plan.is_small else 200
    print(
        f"{n} data sets a row; ± one standard error over data sets; p: least even ranks of a parameter, Bonferroni's."
    )
    table = Table(
        plan.folder, "calibration", "system", "likelihood", "noise, %", "50 %", "90 %", "p of ranks", "failed",
        "least ESS", "R-hat", "s a data set",
    )  # fmt: skip
    for name, case in CASES.items():
        for kind, build in LIKELIHOODS.items():
            for noise in NOISES:
                shares = functools.partial(rank_shares, case, noise, build)
                table.row(name, kind, 100 * noise, *cells_of(f"{name}, {kind}, {noise}", shares, n))
    for errors in LAWS:
        table.row("Lotka–Volterra", errors, "–", *cells_of(errors, functools.partial(law_shares, errors), n))
    table.row("Lotka–Volterra", "3 experiments", 5.0, *cells_of("experiments", experiment_shares, n))
    table.row("a drug", "input, doses, functions", "–", *cells_of("a drug", driven_shares, n))


def cells_of(what: str, shares_of: Callable[[int], tuple[Any, float, float]], n: int) -> tuple[Any, ...]:
    """A row, of n data sets; those that fail are told and counted."""
    started, results, failed = time.perf_counter(), [], 0
    for seed in range(n):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of curvatures that are not positive: counted by coverage
            try:
                results.append(shares_of(seed))
            except (ArithmeticError, ValueError) as error:
                failed += 1
                print(f"{what}, data set {seed}: {error}", file=sys.stderr)
    shares = np.array([below for below, _, _ in results])
    seconds = (time.perf_counter() - started) / n
    return (
        coverage(shares, 0.5), coverage(shares, 0.9), evenness(shares), failed,
        round(min(e for _, e, _ in results)), max(r for _, _, r in results), seconds,
    )  # fmt: skip
