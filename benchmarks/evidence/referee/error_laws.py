"""Errors that are correlated, outliers, and libraries without the truth: points 2 and 5."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

from sysid import Series, discover, identify, systems
from sysid.data import simulate
from toolkit import sample, samplers

from .case import RIGHT, SILENT, WARNED, Case, Outcome

Array = NDArray[np.float64]
Slopes = Callable[[float, Any], list[Any]]
TOLD = ("independent errors", "outlier", "contradict")  # words of warnings of these faults
GIVEN = ("Given independent errors", "Given this library")  # headings of printed probabilities


def selkov(_: float, x: Any) -> list[Any]:
    """Sel'kov's glycolysis, a = 0.1, b = 0.6."""
    return [-x[0] + 0.1 * x[1] + x[0] ** 2 * x[1], 0.6 - 0.1 * x[1] - x[0] ** 2 * x[1]]


def predators(_: float, x: Any) -> list[Any]:
    """Lotka and Volterra's prey and predators."""
    return [x[0] - 0.1 * x[0] * x[1], -1.5 * x[1] + 0.075 * x[0] * x[1]]


def oscillator(_: float, x: Any) -> list[Any]:
    """Van der Pol's, μ = 1."""
    return [x[1], (1.0 - x[0] ** 2) * x[1] - x[0]]


def enzyme(_: float, x: Any) -> list[Any]:
    """Constant supply and Michaelis and Menten's consumption."""
    return [0.6 - 1.5 * x[0] / (0.3 + x[0])]


def sated(_: float, x: Any) -> list[Any]:
    """Prey, and predators that are sated."""
    eaten = x[0] * x[1] / (1.0 + x[0])
    return [x[0] * (1.0 - x[0] / 10.0) - eaten, 0.5 * eaten - 0.3 * x[1]]


def tumour(_: float, x: Any) -> list[Any]:
    """Gompertz's growth."""
    return [-0.8 * x[0] * np.log(x[0] / 5.0)]


def noisy(
    slopes: Slopes, start: list[float], end: float, n: int, noise: float, *, phi: float = 0.0, seed: int = 0
) -> Series:
    """Series with errors of ``noise`` times the states' spread, correlated by ``phi`` with those before."""
    times = np.linspace(0.0, end, n)
    path = solve_ivp(slopes, (0.0, end), start, "LSODA", times, rtol=1e-9, atol=1e-11).y.T
    errors = np.random.default_rng(seed).standard_normal(path.shape)
    for k in range(1, n):
        errors[k] = phi * errors[k - 1] + np.sqrt(1.0 - phi**2) * errors[k]
    return Series(times, path + noise * path.std(axis=0) * errors, ("x", "y")[: path.shape[1]])


def with_factors(series: Series, factors: dict[tuple[int, int], float]) -> Series:
    """The series with some of its values (row, state) multiplied."""
    values = series.values.copy()
    for place, factor in factors.items():
        values[place] *= factor
    return Series(series.times, values, series.states)


def classified(answer: str, is_right: bool, caught: list[Any], heading: str = "") -> Outcome:
    """RIGHT, or WARNED where a warning or the heading of the probabilities tells of it."""
    said = [str(one.message) for one in caught if any(word in str(one.message) for word in TOLD)]
    said += [heading] if heading.startswith(GIVEN) else []
    if is_right:
        return Outcome(RIGHT, answer)
    return Outcome(WARNED, f"{answer}; {said[0]}") if said else Outcome(SILENT, answer)


def terms(series: Series, truth: set[str], **options: Any) -> Outcome:
    """Whether ``discover`` finds the true terms, or tells what is wrong."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = discover(series, seed=0, progress=False, **options)
    support = set(found.sparse.support)
    wrong, lost = len(support - truth), len(truth - support)
    answer = f"{len(support)} terms, {wrong} of them wrong, {lost} lost"
    return classified(answer, not (wrong or lost), caught, str(found).split("\n")[0])


def quiet(series: Series, truth: set[str], **options: Any) -> Outcome:
    """Right data: the true terms, and no warning."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = discover(series, seed=0, progress=False, **options)
    is_right = set(found.sparse.support) == truth and not caught
    return Outcome(RIGHT if is_right else SILENT, f"{len(found.sparse.support)} terms, {len(caught)} warnings")


def estimates(series: Series, likelihood: str, *, is_right: bool = False) -> Outcome:
    """Whether ``estimates`` of prey and predators tells of the errors."""
    table = Series(series.times, series.values, ("prey", "predator"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        problem = identify(table, systems.lotka_volterra(), likelihood=likelihood).scaled()
        run = sample(problem, samplers.hmc(0.5, n_leapfrogs=3), n_steps=200, burn_in=20, n_chains=8, seed=1)
        found = problem.estimates(run)
    alpha = f"alpha {found.mean[0]:.4f} ± {found.sd[0]:.4f}"
    if is_right:
        told = [one for one in caught if any(word in str(one.message) for word in TOLD)]
        return Outcome(SILENT if told else RIGHT, alpha)
    return classified(alpha, False, caught)


SELKOV = {"dx:x", "dx:y", "dx:xxy", "dy:1", "dy:y", "dy:xxy"}
PREDATORS = {"dx:x", "dx:xy", "dy:y", "dy:xy"}
PREDATORS_BY_NAME = {"dprey:prey", "dprey:prey predator", "dpredator:predator", "dpredator:prey predator"}
OSCILLATOR = {"dx:y", "dy:x", "dy:y", "dy:xxy"}


def glycolysis(phi: float, seed: int, noise: float = 0.05) -> Series:
    """Sel'kov's, 400 rows."""
    return noisy(selkov, [1.0, 1.0], 40.0, 400, noise, phi=phi, seed=seed)


def prey(n: int = 201, *, phi: float = 0.0, noise: float = 0.05, seed: int = 0) -> Series:
    """Prey and predators over 20 units of time."""
    return noisy(predators, [10.0, 5.0], 20.0, n, noise, phi=phi, seed=seed)


def textbook_prey() -> Series:
    """The series of the reproduction with three outliers, before these."""
    made = simulate(systems.lotka_volterra(), np.linspace(0.0, 20.0, 201), seed=0)
    errors = np.random.default_rng(0).normal(size=made.values.shape) * [0.5, 0.4]
    return Series(made.times, made.values + errors, made.states)


THREE = {(20, 0): 6.0, (77, 1): 8.0, (130, 0): 5.0}
TRUE_TERMS = "the true terms, or a warning of correlated errors"
TRUE_OR_OUTLIER = "the true terms, or the outliers named"
NO_TRUTH = "no true terms are candidates: a warning, or probabilities headed 'given this library'"

CASES = (
    *(
        Case(2, f"Sel'kov, errors AR(1) 0.8, seed {seed}", "others", TRUE_TERMS,
             lambda seed=seed: terms(glycolysis(0.8, seed), SELKOV, degree=3))
        for seed in range(4)
    ),
    Case(2, "Sel'kov, errors AR(1) 0.95", "ours", TRUE_TERMS, lambda: terms(glycolysis(0.95, 5), SELKOV, degree=3)),
    Case(2, "Van der Pol, errors AR(1) 0.6", "ours", TRUE_TERMS,
         lambda: terms(noisy(oscillator, [2.0, 0.0], 20.0, 401, 0.1, phi=0.6, seed=1), OSCILLATOR, degree=3)),
    Case(2, "prey, errors AR(1) 0.8, estimates by weak", "ours", "a warning: the sd is three times too small",
         lambda: estimates(prey(phi=0.8, seed=2), "weak")),
    Case(2, "prey, errors AR(1) 0.8, estimates by trajectory", "ours", "a warning: the sd is three times too small",
         lambda: estimates(prey(phi=0.8, seed=2), "trajectory")),
    Case(2, "prey, independent errors, estimates by trajectory", "ours", "no warning",
         lambda: estimates(prey(seed=3), "trajectory", is_right=True)),
    Case(2, "prey, independent errors", "ours", "the true terms, no warning", lambda: quiet(prey(seed=3), PREDATORS)),
    Case(2, "Sel'kov, independent errors", "ours", "the true terms, no warning",
         lambda: quiet(glycolysis(0.0, 11, 0.02), SELKOV, degree=3)),
    Case(2, "three of 402 numbers × 6, 8, 5", "others", TRUE_OR_OUTLIER,
         lambda: terms(with_factors(textbook_prey(), THREE), PREDATORS_BY_NAME)),
    Case(2, "one number × 100", "others", TRUE_OR_OUTLIER,
         lambda: terms(with_factors(textbook_prey(), {(60, 0): 100.0}), PREDATORS_BY_NAME)),
    Case(2, "a reading of 0 and one × 10", "ours", TRUE_OR_OUTLIER,
         lambda: terms(with_factors(prey(seed=4), {(35, 1): 10.0, (161, 0): 0.0}), PREDATORS)),
    Case(2, "one number × 10, estimates by trajectory", "ours", "the outlier named",
         lambda: estimates(with_factors(prey(seed=5), {(60, 0): 10.0}), "trajectory")),
    Case(5, "enzyme in cubic terms, 100 rows", "others", NO_TRUTH,
         lambda: terms(noisy(enzyme, [2.0], 10.0, 100, 0.004), set(), degree=3)),
    Case(5, "enzyme in cubic terms, more noise", "ours", NO_TRUTH,
         lambda: terms(noisy(enzyme, [2.0], 10.0, 400, 0.05, seed=1), set(), degree=3)),
    Case(5, "sated predators in quadratic terms", "ours", NO_TRUTH,
         lambda: terms(noisy(sated, [4.0, 2.0], 60.0, 401, 0.03, seed=2), set(), degree=2)),
    Case(5, "Gompertz's growth in cubic terms", "ours", NO_TRUTH,
         lambda: terms(noisy(tumour, [0.1], 8.0, 120, 0.01, seed=3), set(), degree=3)),
)  # fmt: skip
