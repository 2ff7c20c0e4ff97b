"""Laws of the samplers: measured beside theory, in standard errors; and what a wrong law gives.

SGLD on N(0, 1) has variance T / (1 − h/2); a swap between N(0, T₁ I) and N(0, T₂ I) has an acceptance in closed form.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, ndtr

from benchmarks.runner.plan import Plan
from benchmarks.runner.tables import Table, mean_and_error
from targets import mixtures
from toolkit import ContourWarning, Run, Sampler, diagnostics, dynamics, sample, samplers, tempering
from toolkit.diagnostics import thermostats
from toolkit.problem.definition import as_problem

Array = NDArray[np.float64]
CHAINS = 200_000
NORMAL = mixtures.gaussian_mixture([[0.0]], 1.0)
PAIR = mixtures.gaussian_mixture([[-6.0], [4.0]], 1.0, [0.4, 0.6])
TRIPLE = mixtures.gaussian_mixture([[-8.0], [0.0], [8.0]], 1.0, [0.3, 0.5, 0.2])


LAW_COLUMNS = (
    "measured", "standard error", "theory", "off by, σ", "wrong law", "off the wrong law by, σ", "which is",
)  # fmt: skip


def add_law(table: Table, name: str, by_chain: Array, law: float, wrong: float, of: str) -> None:
    """A row: mean over chains, the law, and the deviations in standard errors from it and from a wrong one."""
    mean, error = mean_and_error(by_chain)
    table.row(name, mean, error, law, (mean - law) / error, wrong, (mean - wrong) / error, of)


def from_origin(target: Any, sampler: Sampler, **options: Any) -> Run:
    """``sample`` from the origin, unless ``options`` say otherwise."""
    return sample(target, sampler, **{"init": np.zeros(as_problem(target).target.dim)} | options)


def second_moment(
    target: object, sampler: Sampler, function: Callable[[Array], Array] = np.square, **options: object
) -> Array:
    """Weighted mean of ``function`` of the first coordinate, per chain."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ContourWarning)
        run = from_origin(target, sampler, **options)
    return np.asarray((run.weights * function(run.draws[..., 0])).sum(axis=1) / run.weights.sum(axis=1))


def report_sgld(plan: Plan, n_chains: int) -> None:
    """The variance of SGLD at many temperatures and step sizes."""
    start = np.random.default_rng(1).standard_normal((n_chains, 1))
    columns = ("T", "h", "variance", "T/(1 − h/2)", "off by, σ", "with half the noise: off by, σ")
    table = Table(plan.folder, "laws_sgld", *columns)
    seed = 1
    for temperature in (0.25, 1.0, 4.0):
        for h in (0.05, 0.2, 1.0, 1.5):
            n_steps = int(np.ceil(12 / h))
            sampler = samplers.sgld(h, temperature=temperature)
            seed += 1
            run = sample(NORMAL, sampler, n_steps=n_steps, thin=n_steps, n_chains=n_chains, init=start, seed=seed)
            law, variance, error = temperature / (1 - h / 2), float(run.draws.var()), np.sqrt(2 / n_chains)
            off, wrong = ((variance / value - 1) / error for value in (law, law / 2))
            table.row(temperature, h, variance, law, float(off), float(wrong))


def report_swaps(plan: Plan, n_chains: int) -> None:
    """The acceptance of swaps."""
    print()
    columns = ("dimension", "T₁", "T₂", "acceptance", "closed form", "off by, σ", "with the sign reversed")
    table = Table(plan.folder, "laws_swaps", *columns)
    for dim, cold, hot in ((1, 1.0, 1.5), (1, 1.0, 10.0), (2, 1.0, 10.0), (5, 0.25, 1.0)):
        target = mixtures.gaussian_mixture([[0.0] * dim], 1.0)
        z = np.random.default_rng(3).standard_normal((n_chains, 2, dim)) * np.sqrt([[cold], [hot]])
        sampler = samplers.resgld((1e-3 * cold, 1e-3 * hot), temperatures=(cold, hot))
        rates = sample(target, sampler, n_steps=20, thin=20, n_chains=n_chains, init=z, seed=4).swap_rates[:, 0]
        law = float(2 * betainc(dim / 2, dim / 2, cold / (cold + hot)))
        energy = 0.5 * (z**2).sum(axis=2)
        wrong = np.minimum(1.0, np.exp((1 / cold - 1 / hot) * (energy[:, 1] - energy[:, 0]))).mean()
        off = (rates.mean() - law) / (rates.std() / np.sqrt(n_chains))
        table.row(dim, cold, hot, float(rates.mean()), law, float(off), float(wrong))


def report_moments(plan: Plan) -> None:
    """Moments of every dynamics, and of contour."""
    table, fewer = Table(plan.folder, "laws_moments", "law", *LAW_COLUMNS), 20 if plan.is_small else 1
    long = {"n_steps": 6000, "burn_in": 1000, "thin": 10, "n_chains": 2000 // fewer, "seed": 1}
    h, eta, s = 0.2, 0.3, 1.5
    for temperature in (0.25, 1.0, 4.0):
        long["seed"] += 1
        kept = second_moment(NORMAL, samplers.sghmc(h, friction=eta, temperature=temperature), **long)
        law = temperature / (1 - h / (4 - 2 * eta))
        add_law(table, f"sghmc E x², T = {temperature}", kept, law, law / 2, "half the noise")
    noisy = samplers.sghmc(h, friction=eta, gradient_noise=s)
    law = (1 + h * s**2 / (2 * eta)) / (1 - h / (4 - 2 * eta))
    add_law(
        table,
        "sghmc E x², unknown noise 1.5",
        second_moment(NORMAL, noisy, **long),
        law,
        1 / (1 - h / (4 - 2 * eta)),
        "no heating",
    )
    known = samplers.sghmc(h, friction=eta, gradient_noise=s, noise_estimate=s)
    add_law(
        table,
        "sghmc E x², known noise 1.5",
        second_moment(NORMAL, known, **long),
        1 / (1 - h / (4 - 2 * eta)),
        law,
        "heated",
    )
    heated = samplers.sgld(0.05, gradient_noise=4.0)
    add_law(
        table,
        "sgld E x², noise 4",
        second_moment(NORMAL, heated, **long),
        (1 + 0.025 * 16) / 0.975,
        1 / 0.975,
        "no heating",
    )
    neutral = Sampler("sgnht", (2e-3,), dynamics=dynamics.nose_hoover(friction=0.02), gradient_noise=10.0)
    longer = {"n_steps": 40_000, "burn_in": 10_000, "thin": 20, "n_chains": 500 // fewer, "seed": 2}
    run = from_origin(NORMAL, neutral, trace_every=20, **longer)
    after = run.trace.steps >= run.burn_in
    z = run.trace.fields["thermostat"][:, 0][:, after]
    theory = thermostats.thermostat_law(neutral, 1)
    add_law(
        table,
        "sgnht E z, noise 10, c + h s²/2 − Var z",
        z.mean(axis=1),
        theory.mean - theory.deviation**2,
        0.02,
        "c: not taken up",
    )
    add_law(
        table,
        "sgnht sd z, to first order",
        z.std(axis=1),
        theory.deviation,
        theory.deviation * 2**0.5,
        "twice the variance",
    )
    x = (run.draws[..., 0] ** 2).mean(axis=1)
    add_law(table, "sgnht E x², noise 10", x, 1.0, 1 - theory.mean / 2, "the printed thermostat's")
    flat = samplers.psgld(0.02, decay=0.97, floor=1.0)
    add_law(table, "psgld E x², α = 0.97, λ = 1", second_moment(NORMAL, flat, **longer), 1.0, 1.27, "without Γ")
    for name, exact in (("mala h = 1", samplers.mala(1.0)), ("hmc ε = 0.9, L = 3", samplers.hmc(0.9, n_leapfrogs=3))):
        add_law(table, f"{name} E x²", second_moment(NORMAL, exact, **long), 1.0, 2.0, "sgld's at h = 1")

    chains = {"n_steps": 400_000 // fewer, "burn_in": 50_000 // fewer, "thin": 10, "n_chains": 24, "seed": 3}
    bins = tempering.Partition(0.9189, 0.5, 24)  # the energy of N(0, 1) begins at ½ log 2π
    for zeta in (0.5, 0.75, 1.0):
        flat = samplers.csgld(0.02, zeta=zeta, partition=bins)
        add_law(table, f"csgld E x², ζ = {zeta}", second_moment(NORMAL, flat, **chains), 0.996, 0.87, "printed weights")
    for name, flat in (("csgld", samplers.csgld(0.1)), ("icsgld", samplers.icsgld(0.1))):
        left = second_moment(PAIR, flat, lambda x: x < -1.042, **chains)
        add_law(table, f"{name}: left weight", left, 0.4, 0.5, "one half")
    chains |= {"burn_in": 150_000 // fewer, "n_chains": 48}
    for name, flat in (
        ("icsgld", samplers.icsgld(1e-3)),
        ("csgld", samplers.csgld(1e-3)),
        ("csgld, freezes", samplers.csgld(1e-3, freezes=True)),
    ):
        square = second_moment(mixtures.cosine25(), flat, **chains)
        add_law(table, f"{name}, on cosine25: E x₁²", square, 4.7005 / 2, 2.0, "one mode in five left out")


def report_round_trips(plan: Plan) -> None:
    """Round trips of ladders under both schemes of swaps."""
    print()
    table = Table(plan.folder, "laws_round_trips", "exchange", *LAW_COLUMNS)
    for rungs in (4, 8, 16):
        ladder = tuple(np.geomspace(1.0, 30.0, rungs))
        counts = {}
        for scheme in ("deo", "seo"):
            sampler = samplers.resgld((1.0,) * rungs, temperatures=ladder, scheme=scheme)  # h = 1 forgets each step
            run = from_origin(
                NORMAL, sampler, n_steps=6000, burn_in=1000, n_chains=25 if plan.is_small else 500, seed=4
            )
            rates = run.swap_rates.mean(axis=0)
            law = float(diagnostics.expected_round_trips(rates, 5000, scheme=scheme))
            counts[scheme] = law, run.round_trips
        add_law(
            table,
            f"round trips in 5,000 attempts, {rungs} rungs, deo",
            counts["deo"][1],
            counts["deo"][0],
            counts["seo"][0],
            "seo's",
        )
        fewer = counts["deo"][1].mean() / counts["seo"][1].mean()
        add_law(
            table, f"the same, seo: {fewer:.2f} times fewer", counts["seo"][1], counts["seo"][0], counts["deo"][0],
            "deo's",
        )  # fmt: skip


def report_variance_ratio(plan: Plan) -> None:
    """ICSGLD with P = 10 beside CSGLD with ten times the steps."""
    print()
    columns = ("θ's variance: CSGLD × T10 over ICSGLD × P10", "measured", "± 1 σ", "P ω(Pk)/ω(k)")
    table = Table(plan.folder, "laws_variance_ratio", *columns)
    bins = tempering.Partition(0.9189, 1.0, 8)
    n, chains = 10_000, 60 if plan.is_small else 600
    for name, decay, law in (
        ("ω = k^−0.6", tempering.step_decay(offset=0.0, cap=0.1), 10**0.4),
        ("ω = 1/(k^0.6 + 100)", tempering.step_decay(cap=1.0), 10 * (n**0.6 + 100) / ((10 * n) ** 0.6 + 100)),
    ):
        spread = []
        for replicas, steps in ((1, 10 * n), (10, n)):
            sampler = Sampler(
                "contour", (0.1,) * replicas, (1.0,) * replicas,
                tempering=tempering.contour(partition=bins, field="theta_zeta", decay=decay),
            )  # fmt: skip
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ContourWarning)
                theta = from_origin(NORMAL, sampler, n_steps=steps, thin=steps, n_chains=chains, seed=5).theta
            spread.append(float(theta.var(axis=0, ddof=1).sum()))
        ratio = spread[0] / spread[1]
        table.row(name, ratio, ratio * np.sqrt(4.0 / (chains - 1)), law)


def report_tact(plan: Plan) -> None:
    """TACT-HMC and its ablations on three modes under gradient noise: worst deviation over nine quantiles."""
    print()
    columns = ("worst quantile off by, σ", "share of draws at T = 1", "mode changes per chain")
    table = Table(plan.folder, "laws_tact", "three modes, gradient noise 10", *columns)
    coupling = tempering.continuous_tempering(top_temperature=10.0, friction=0.02, inertia=4.0)
    still = tempering.continuous_tempering(top_temperature=10.0, friction=0.02, inertia=4.0, thermostat=False)
    moves, fixed = dynamics.nose_hoover(friction=0.02), dynamics.underdamped_langevin(friction=0.02)
    grid = np.linspace(-14.0, 14.0, 200_001)
    for name, move, temper in (
        ("TACT-HMC", moves, coupling), ("without thermostats", fixed, still), ("without tempering", moves, None),
    ):  # fmt: skip
        noise = 3.0 if temper else 0.0
        sampler = Sampler(name, (2e-3,), dynamics=move, tempering=temper, gradient_noise=10.0, energy_noise=noise)
        run = sample(
            TRIPLE,
            sampler,
            n_steps=120_000,
            burn_in=40_000,
            thin=10,
            n_chains=8 if plan.is_small else 64,
            init=[-8.0],
            seed=6,
        )
        cdf = sum(w * ndtr(grid - m) for w, m in zip((0.3, 0.5, 0.2), (-8.0, 0.0, 8.0), strict=True))
        x, weights = run.draws[..., 0], run.weights
        total, worst = weights.sum(axis=1), 0.0
        for p in (0.02, 0.1, 0.25, 0.35, 0.5, 0.65, 0.75, 0.9, 0.98):
            below = (weights * (x <= np.interp(p, cdf, grid))).sum(axis=1)
            error = np.sqrt(((below - total * p) ** 2).sum())
            worst = max(worst, abs((below - total * p).sum()) / max(error, 1e-12))
        mode = np.digitize(x, [-4.0, 4.0])
        table.row(name, float(worst), float(weights.mean()), float((np.diff(mode, axis=1) != 0).sum(axis=1).mean()))


def main(plan: Plan) -> None:
    """Print the tables."""
    n_chains = CHAINS // 20 if plan.is_small else CHAINS
    report_sgld(plan, n_chains)
    report_swaps(plan, n_chains)
    print()
    report_moments(plan)
    report_round_trips(plan)
    report_variance_ratio(plan)
    report_tact(plan)
