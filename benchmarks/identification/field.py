"""Chaotic systems that nobody here chose: our weak posterior beside PySINDy on all polynomial flows of a catalogue.

``polynomial_systems.json``: coefficients, initial states, periods and Lyapunov exponents of the 66 quadratic and 13
cubic autonomous flows among the 135 systems of dysts 0.96 (W. Gilpin, arXiv 2110.05266; its catalogue is Apache-2.0).
Sampling follows one rule for all: 1,001 rows, so far apart that the fastest state moves by a tenth of its standard
deviation (RMS) from one to the next. Noise: Gaussian, in % of each state's RMS. Library: all terms up to the system's
degree, all coefficients free. A row of the table is a system at a level of noise, over seeds: the median error ‖Ξ̂ − Ξ‖
/ ‖Ξ‖ of posterior medians under the sparse prior, how often the terms are exactly right, the share of true terms inside
90 % intervals, the truth's squared distance over the number of coefficients (flat prior; 1 is expected), pieces,
refusals, seconds. PySINDy's thresholds are chosen on held-out data, as a user can.
"""

import importlib.util
import json
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

from benchmarks.runner.plan import Plan
from benchmarks.runner.tables import Table
from sysid.data.series import Series
from sysid.discovery.compare import compare_pysindy
from sysid.discovery.sparse_equations import Law
from sysid.libraries import Library, polynomial
from sysid.likelihoods.weak_form import weak
from sysid.model import as_model
from sysid.sparsity import natural_scales, sparse_posterior, sparse_prior

Array = NDArray[np.float64]

CATALOGUE = Path(__file__).with_name("polynomial_systems.json")
N_ROWS = 1001
STEP = 0.1  # standard deviations of the fastest state, RMS, from row to row
PILOT_PERIODS = 6.0  # over which speeds and spreads are measured
LEVELS = (0.01, 0.05, 0.10)
SEEDS = 10
SEEDS_OF_PYSINDY = 1
METHODS = ("stlsq", "ensemble", "weak")


class Flow(NamedTuple):
    """dx/dt = Θ(x) Ξ, and a path of it without noise. coefficients: Ξ (terms, states)."""

    name: str
    library: Library
    coefficients: Array
    times: Array
    states: Array


def flow_of(name: str, entry: dict[str, Any]) -> Flow:
    """A system of the catalogue, sampled by the rule."""
    degree = max(sum(powers) for _, powers, _ in entry["terms"])
    library = polynomial(tuple("xyzuvw"[: len(entry["start"])]), degree)
    index_of = {term.powers: k for k, term in enumerate(library.terms)}
    coefficients = np.zeros((len(library), len(library.states)))
    for equation, powers, value in entry["terms"]:
        coefficients[index_of[tuple(powers)], equation] = value
    powers = np.array([term.powers for term in library.terms])

    def slopes(_: float, x: Array) -> Array:
        return np.asarray(np.prod(x**powers, axis=1) @ coefficients)

    def path(times: Array) -> Array:
        ends = (0.0, float(times[-1]))
        return solve_ivp(slopes, ends, entry["start"], "DOP853", times, rtol=1e-11, atol=1e-11).y.T

    pilot = path(np.linspace(0.0, PILOT_PERIODS * entry["period"], 20_001))
    speeds = np.sqrt(np.mean(np.square([slopes(0.0, x) for x in pilot]), axis=0)) / pilot.std(axis=0)
    times = STEP / speeds.max() * np.arange(N_ROWS)
    return Flow(name, library, coefficients, times, path(times))


def noisy(flow: Flow, level: float, seed: int) -> Series:
    """The path with noise."""
    sds = level * np.sqrt(np.mean(flow.states**2, axis=0))
    noise = np.random.default_rng(1000 + seed).standard_normal(flow.states.shape)
    return Series(flow.times, flow.states + sds * noise, flow.library.states, name=flow.name)


class Result(NamedTuple):
    """Of one fit: error, terms right, share of true terms inside 90 %, d²/q, pieces, seconds."""

    error: float
    right: float
    inside: float
    distance: float
    pieces: float
    seconds: float


def fitted(flow: Flow, series: Series) -> Result:
    """Ours on one series. Raises ValueError where it is refused."""
    started = time.perf_counter()
    model = as_model(flow.library)
    fit = weak().fit([series], model)
    mean, precision = fit.parameters, fit.precision
    law = Law(model.parameters, (mean, precision, fit.lowest))
    sparse = sparse_posterior(law, sparse_prior(law, natural_scales(series, flow.library)), progress=False)
    seconds = time.perf_counter() - started
    target = flow.coefficients.T.ravel()
    there = target != 0.0
    low, high = sparse.intervals(0.9)
    apart = mean - target
    return Result(
        float(np.linalg.norm(sparse.median - target) / np.linalg.norm(target)),
        float(np.array_equal(sparse.inclusion >= 0.5, there)),
        float(((low <= target) & (target <= high))[there].mean()),
        float(apart @ precision @ apart / len(mean)),
        float(len(fit.paths)),
        seconds,
    )


def pysindy_errors(flow: Flow, series: Series) -> list[float]:
    """Errors of PySINDy's methods on one series."""
    compared = compare_pysindy(series, max(sum(t.powers or ()) for t in flow.library.terms), methods=METHODS)
    norm = np.linalg.norm(flow.coefficients)
    return [float(np.linalg.norm(row.coefficients - flow.coefficients) / norm) for row in compared.rows[1:]]


def main(plan: Plan) -> None:
    """Print the table of every system and level of noise."""
    with_pysindy = importlib.util.find_spec("pysindy") is not None
    table = Table(
        plan.folder, "field", "system", "degree", "noise", "seeds", "refused", "median error", "terms right",
        "inside 90 %", "distance", "pieces", "seconds each", *(f"PySINDy {m}" for m in METHODS),
    )  # fmt: skip
    catalogue = json.loads(CATALOGUE.read_text(encoding="utf-8"))
    names = ["Lorenz", "SprottB"] if plan.is_small else list(catalogue)
    for name in names:
        flow = flow_of(name, catalogue[name])
        degree = max(sum(powers) for _, powers, _ in catalogue[name]["terms"])
        for level in LEVELS[-1:] if plan.is_small else LEVELS:
            results, refused, theirs = [], 0, []
            for seed in range(1 if plan.is_small else SEEDS):
                series = noisy(flow, level, seed)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # what is warned of is in the table
                    try:
                        results.append(fitted(flow, series))
                    except ValueError:
                        refused += 1
                if with_pysindy and seed < SEEDS_OF_PYSINDY:
                    theirs.append(pysindy_errors(flow, series))
            means = np.mean(results, axis=0) if results else np.full(len(Result._fields), np.nan)
            median = float(np.median([one.error for one in results])) if results else float("nan")
            others = np.median(theirs, axis=0).tolist() if theirs else ["–"] * len(METHODS)
            shares = [f"{100.0 * share:.0f} %" for share in means[1:3]]
            table.row(
                name, degree, f"{level:.0%}", len(results) + refused, refused, median, *shares, float(means[3]),
                float(means[4]), float(means[5]), *others,
            )  # fmt: skip
    if not with_pysindy:
        print("\nPySINDy is not installed (extra compare)")
