"""Chaotic systems that nobody here chose: ``discover`` beside PySINDy on all polynomial flows of a catalogue.

``polynomial_systems.json``: coefficients, initial states, periods and Lyapunov exponents of the 66 quadratic and 13
cubic autonomous flows among the 135 systems of dysts 0.96 (W. Gilpin, arXiv 2110.05266; its catalogue is Apache-2.0).
Sampling follows one rule for all: 1,001 rows, so far apart that the fastest state moves by a tenth of its standard
deviation (RMS) from one to the next. Noise: Gaussian, in % of each state's RMS. Library: all terms up to the system's
degree, and for quadratic systems of three states all cubic ones, too, on fewer seeds; all coefficients free.
Of a fit: ‖Ξ̂ − Ξ‖ / ‖Ξ‖ of posterior medians, whether the terms are exactly right, the share of true terms inside
90 % intervals, the truth's squared distance over the number of coefficients, by the likelihood's quadratic where the
posterior is (1 is expected), and whether the data tell: whether the true coefficients are ≥ 4 standard deviations from
0 for one who knows which terms there are. PySINDy's thresholds are chosen on held-out data, as a user can.
Fits of benchmarks/measured/field_fits.csv are not made again; a run that is cut short leaves its rows.
"""

import csv
import importlib.util
import json
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

from benchmarks.runner.plan import Plan
from benchmarks.runner.suites import FOLDER
from benchmarks.runner.tables import Table
from sysid import discover
from sysid.data.series import Series
from sysid.discovery.compare import compare_pysindy
from sysid.libraries import Library, polynomial

Array = NDArray[np.float64]

CATALOGUE = Path(__file__).with_name("polynomial_systems.json")
N_ROWS = 1001
STEP = 0.1  # standard deviations of the fastest state, RMS, from row to row
PILOT_PERIODS = 6.0  # over which speeds and spreads are measured
LEVELS = (0.01, 0.05, 0.10, 0.20)
SEEDS = 10
EVERY, FEWER_SEEDS = 3, 3  # with cubic terms, every third quadratic system has all seeds, the others have fewer
METHODS = ("stlsq", "ensemble", "weak")  # of PySINDy, on the first seed
TOLD = 4.0  # standard deviations
FACTOR = 1.3  # of the distance: more is too much
FITS_TABLE = "field_fits"
KEPT = FOLDER / "measured" / f"{FITS_TABLE}.csv"


class Flow(NamedTuple):
    """dx/dt = Θ(x) Ξ, and a path of it without noise. coefficients: Ξ (terms, states)."""

    name: str
    library: Library
    coefficients: Array
    times: Array
    states: Array


def degree_of(entry: dict[str, Any]) -> int:
    """The degree of a system of the catalogue."""
    return max(sum(powers) for _, powers, _ in entry["terms"])


def flow_of(name: str, entry: dict[str, Any], degree: int) -> Flow:
    """A system of the catalogue, sampled by the rule, and the terms up to a degree."""
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


class Key(NamedTuple):
    """One fit."""

    seed: int
    degree: int  # of the library
    noise: float
    system: str


class Result(NamedTuple):
    """What is measured of a fit; answered: 0 where it was refused, and the others are nan."""

    answered: float
    error: float = float("nan")
    right: float = float("nan")
    inside: float = float("nan")
    distance: float = float("nan")
    told: float = float("nan")
    seconds: float = float("nan")


def fitted(flow: Flow, series: Series) -> Result:
    """Ours on one series."""
    started = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what is warned of is in the table
            found = discover(series, flow.library, progress=False)
    except ValueError:
        return Result(0.0)
    seconds = time.perf_counter() - started
    sparse, (mean, precision, _) = found.sparse, found.law.quadratic
    target = flow.coefficients.T.ravel()
    there = target != 0.0
    low, high = sparse.intervals(0.9)
    apart = mean - target
    size = 1.0 / np.sqrt(np.diag(precision)[there])
    scaled = precision[np.ix_(there, there)] * size * size[:, None]
    known = size * np.sqrt(np.diag(np.linalg.inv(scaled + 1e-12 * np.eye(len(size)))))  # where the terms are known
    return Result(
        1.0,
        float(np.linalg.norm(sparse.median - target) / np.linalg.norm(target)),
        float(np.array_equal(sparse.inclusion >= 0.5, there)),
        float(((low <= target) & (target <= high))[there].mean()),
        float(apart @ precision @ apart / len(mean)),
        float((np.abs(target[there]) >= TOLD * known).all()),
        seconds,
    )


def keys(catalogue: dict[str, Any]) -> Iterator[Key]:
    """All fits, so that a run that is cut short has most of all systems."""
    cubic = [name for name, entry in catalogue.items() if degree_of(entry) == 2 and len(entry["start"]) == 3]
    seeds_of = {name: FEWER_SEEDS if k % EVERY else SEEDS for k, name in enumerate(cubic)}
    for seed in range(SEEDS):
        for more in (0, 1):
            for noise in LEVELS:
                for name, entry in catalogue.items():
                    degree = degree_of(entry) + more
                    if not more or seed < seeds_of.get(name, 0):
                        yield Key(seed, degree, noise, name)


def kept_fits() -> dict[Key, Result]:
    """Fits that were measured before."""
    if not KEPT.exists():
        return {}
    with open(KEPT, encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))[1:]
    return {Key(int(a), int(b), float(c), d): Result(*map(float, rest)) for a, b, c, d, *rest in rows}


def print_summary(plan: Plan, fits: dict[Key, Result], catalogue: dict[str, Any]) -> None:
    """The table of fits by noise, of the systems' own degrees and of cubic terms of quadratic systems."""
    table = Table(
        plan.folder, "field", "library", "noise", "systems", "fits", "answered", "terms right", "where the data tell",
        "median error", "inside 90 %", "distance", f"systems above {FACTOR}", "seconds each, median",
    )  # fmt: skip
    for more, label in enumerate(("of the system's degree", "cubic, of quadratic systems")):
        for noise in LEVELS:
            some = {
                k: v for k, v in fits.items() if k.noise == noise and k.degree == degree_of(catalogue[k.system]) + more
            }
            if not any(value.answered for value in some.values()):
                continue
            there = np.array([value for value in some.values() if value.answered])
            _, error, right, inside, distance, told, seconds = there.T
            systems = sorted({k.system for k in some})
            of_systems = [[v.distance for k, v in some.items() if k.system == one and v.answered] for one in systems]
            means = [np.mean(distances) for distances in of_systems if distances]
            known = told == 1.0
            table.row(
                label, f"{noise:.0%}", len(systems), len(some), len(there), f"{right.mean():.1%}",
                f"{int(right[known].sum())} of {int(known.sum())}", float(np.median(error)), f"{inside.mean():.1%}",
                float(distance.mean()), int(np.sum(np.array(means) > FACTOR)), float(np.median(seconds)),
            )  # fmt: skip


def print_beside_pysindy(plan: Plan, fits: dict[Key, Result], catalogue: dict[str, Any]) -> None:
    """The tables of PySINDy's methods on the first seed, beside ours: errors by system, and by noise."""
    by_system = Table(plan.folder, "field_pysindy", "system", "noise", "ours", *(f"PySINDy {m}" for m in METHODS))
    rows: dict[float, list[list[float]]] = {}  # errors, then whether the terms are right, of ours and the methods
    for key, ours in fits.items():
        if key.seed == 0 and key.degree == degree_of(catalogue[key.system]) and ours.answered:
            flow = flow_of(key.system, catalogue[key.system], key.degree)
            compared = compare_pysindy(noisy(flow, key.noise, 0), key.degree, methods=METHODS).rows[1:]
            norm = np.linalg.norm(flow.coefficients)
            apart = [float(np.linalg.norm(row.coefficients - flow.coefficients) / norm) for row in compared]
            by_system.row(key.system, f"{key.noise:.0%}", ours.error, *apart)
            right = [float(np.array_equal(row.present, flow.coefficients != 0.0)) for row in compared]
            rows.setdefault(key.noise, []).append([ours.error, *apart, ours.right, *right])
    print()
    names = ("ours", *METHODS)
    table = Table(
        plan.folder, "field_pysindy_summary", "noise", "systems", *(f"median error, {name}" for name in names),
        *(f"terms right, {name}" for name in names), "ours below the best of the three",
    )  # fmt: skip
    for noise, values in rows.items():
        errors, right = np.split(np.array(values), 2, axis=1)
        below = int((errors[:, 0] < errors[:, 1:].min(axis=1)).sum())
        counts = right.sum(axis=0).astype(int)
        table.row(f"{noise:.0%}", len(values), *map(float, np.median(errors, axis=0)), *map(int, counts), below)


def main(plan: Plan) -> None:
    """Make the fits that are missing, and print the tables of all."""
    catalogue = json.loads(CATALOGUE.read_text(encoding="utf-8"))
    if plan.is_small:
        catalogue = {name: catalogue[name] for name in ("Lorenz", "SprottB")}
    fits = {} if plan.is_small else kept_fits()
    missing = [key for key in keys(catalogue) if key not in fits]
    table = Table(plan.folder, FITS_TABLE, *Key._fields, *Result._fields)
    for key, result in fits.items():
        table.row(*key, *result)
    for key in missing[:2] if plan.is_small else missing:
        flow = flow_of(key.system, catalogue[key.system], key.degree)
        fits[key] = fitted(flow, noisy(flow, key.noise, key.seed))
        table.row(*key, *fits[key])
    print()
    print_summary(plan, fits, catalogue)
    print()
    if importlib.util.find_spec("pysindy") is None:
        print("PySINDy is not installed (extra compare)")
    else:
        print_beside_pysindy(plan, fits, catalogue)
