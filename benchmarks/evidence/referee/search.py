"""Searches with hidden states, modes that were ignored, subjects with few samples, and searches without a time limit.

The systems are those of the textbooks: the Michaelis–Menten mechanism (Briggs & Haldane 1925), a stirred tank reactor
(Seborg, Edgar & Mellichamp), a chain of five first-order steps, and a cascade of five activations.
"""

import contextlib
import functools
import io
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy

import sysid
from sysid import Series, identify, likelihoods, priors, systems

from .case import Case, Outcome, classified

Array = Any


def chain(t, x, p):
    """A feed, and five steps of first order one after another."""
    return (
        p[0] - p[1] * x[0], p[1] * x[0] - p[2] * x[1], p[2] * x[1] - p[3] * x[2], p[3] * x[2] - p[4] * x[3],
        p[4] * x[3] - p[5] * x[4],
    )  # fmt: skip


def cascade(t, x, p):
    """A signal that decays, and four proteins of which each activates the next."""
    return (
        -p[0] * x[0], p[1] * x[0] * (1.0 - x[1]) - p[2] * x[1], p[3] * x[1] * (1.0 - x[2]) - p[2] * x[2],
        p[4] * x[2] * (1.0 - x[3]) - p[2] * x[3], p[5] * x[3] - p[2] * x[4],
    )  # fmt: skip


def enzyme(t, x, p):
    """Substrate, complex and product of an enzyme whose total is 1."""
    bound = p[0] * x[0] * (1.0 - x[1])
    return (-bound + p[1] * x[1], bound - (p[1] + p[2]) * x[1], p[2] * x[1])


def free_enzyme(t, x, p):
    """Enzyme, substrate, complex and product."""
    bound = p[0] * x[0] * x[1]
    return (-bound + (p[1] + p[2]) * x[2], -bound + p[1] * x[2], bound - (p[1] + p[2]) * x[2], p[2] * x[2])


def reactor(t, x, p):
    """Concentration and temperature of a cooled, stirred tank with an exothermic reaction of first order."""
    rate = p[0] * 1e10 * np.exp(-p[1] / x[1]) * x[0]
    return (1.0 - x[0] - rate, 350.0 - x[1] + p[2] * rate + p[3] * (300.0 - x[1]))


class Known(NamedTuple):
    """A system with its true parameters and start, the times, and the states that are measured."""

    rhs: Callable[..., Any]
    states: tuple[str, ...]
    parameters: tuple[str, ...]
    truth: Array
    start: Array
    times: Array
    measured: tuple[str, ...]


CHAIN = ("k0", "k1", "k2", "k3", "k4", "k5")
ENZYME, REACTOR = ("on", "off", "cat"), ("k0", "E", "H", "U")
SYSTEMS = {
    "chain": Known(
        chain, tuple("abcde"), CHAIN, np.array([1.0, 0.9, 0.7, 0.6, 0.8, 0.5]), np.array([3.0, 1.0, 0.5, 0.2, 0.1]),
        np.linspace(0.0, 20.0, 41), ("a", "e"),
    ),
    "faster chain": Known(
        chain, tuple("abcde"), CHAIN, np.array([0.2, 1.5, 1.2, 2.0, 1.7, 0.4]), np.array([8.0, 0.1, 0.1, 0.1, 0.1]),
        np.linspace(0.0, 12.0, 61), ("a", "e"),
    ),
    "cascade": Known(
        cascade, tuple("abcde"), CHAIN, np.array([0.3, 1.2, 0.8, 2.0, 1.5, 1.0]), np.array([2.0, *[0.05] * 4]),
        np.linspace(0.0, 20.0, 41), ("a", "e"),
    ),
    "menten": Known(
        enzyme, ("S", "C", "P"), ENZYME, np.array([2.0, 0.5, 1.0]), np.array([5.0, 0.1, 0.1]),
        np.linspace(0.0, 12.0, 25), ("P",),
    ),
    "slower menten": Known(
        enzyme, ("S", "C", "P"), ENZYME, np.array([0.8, 0.3, 0.4]), np.array([8.0, 0.2, 0.05]),
        np.linspace(0.0, 30.0, 31), ("P",),
    ),
    "free enzyme": Known(
        free_enzyme, ("E", "S", "C", "P"), ENZYME, np.array([1.0, 0.5, 0.7]), np.array([1.0, 5.0, 0.1, 0.1]),
        np.linspace(0.0, 15.0, 31), ("S", "P"),
    ),
    "cstr": Known(
        reactor, ("CA", "T"), REACTOR, np.array([7.2, 8750.0, 209.2, 2.092]), np.array([0.5, 340.0]),
        np.linspace(0.0, 10.0, 51), ("T",),
    ),
    "hotter cstr": Known(
        reactor, ("CA", "T"), REACTOR, np.array([7.2, 8750.0, 209.2, 1.6]), np.array([0.9, 310.0]),
        np.linspace(0.0, 8.0, 41), ("T",),
    ),
}  # fmt: skip
NOISE = 0.05  # of a state's standard deviation


@functools.cache
def posed(name: str, seed: int, off: float) -> tuple[Any, float]:
    """The identification of a system from a guess that is ``off``, with priors about it, and the energy at the truth.

    off: the standard deviation of the guess's logarithms; of starts half of it; of the reactor's, which is
    exponentially sensitive, at most 0.1, and 0.02 of temperatures.
    """
    known, rng = SYSTEMS[name], np.random.default_rng([seed, 11])
    is_reactor = known.rhs is reactor
    scale = min(off, 0.1) if is_reactor else off
    guess = known.truth * np.exp(scale * rng.standard_normal(known.truth.size))
    start = known.start * np.exp(0.5 * off * rng.standard_normal(known.start.size))
    if is_reactor:
        guess[1] = known.truth[1] * np.exp(0.02 * rng.standard_normal())
        start[1] = known.start[1] * np.exp(0.02 * rng.standard_normal())
    columns = [known.states.index(state) for state in known.measured]
    exact = scipy.integrate.solve_ivp(
        lambda t, x: known.rhs(t, x, known.truth), (0.0, known.times[-1]), known.start, t_eval=known.times,
        method="LSODA", rtol=1e-9, atol=1e-11,
    ).y.T[:, columns]  # fmt: skip
    sds = NOISE * exact.std(axis=0)
    values = exact + sds * np.random.default_rng(seed).standard_normal(exact.shape)
    system = systems.own(
        known.rhs, states=known.states, parameters=known.parameters, usual=guess, start=start, name=name.split()[-1]
    )
    hidden = {f"{s}(0)": value for s, value in zip(known.states, start, strict=True) if s not in known.measured}
    law = {p: priors.lognormal(np.log(value), 1.0) for p, value in zip(known.parameters, guess, strict=True)}
    law |= {label: priors.lognormal(np.log(value), 0.5) for label, value in hidden.items()}
    problem = identify(
        Series(known.times, values, known.measured), system, likelihood="trajectory", prior=law, n_searches=2,
        time_limit=100.0, progress=False,
    )  # fmt: skip
    truth = dict(zip(known.parameters, known.truth, strict=True))
    truth |= {f"{s}(0)": value for s, value in zip(known.states, known.start, strict=True)}
    truth |= {f"sd({s})": value for s, value in zip(known.measured, sds, strict=True)}
    return problem, energy_at(problem, np.array([truth[label] for label in problem.names]))


def energy_at(problem: Any, theta: Array) -> float:
    """The energy of a problem that is not scaled, at parameters (q,)."""
    return float(problem.target.evaluate(problem.positions(np.atleast_2d(theta)))[0][0])


def at_start(name: str, seed: int, off: float) -> tuple[float, float]:
    """The energies at the start and at the truth."""
    problem, truth = posed(name, seed, off)
    return round(energy_at(problem, problem.usual_start()), 2), round(truth, 2)


def at_scaled_centre(name: str, seed: int, off: float) -> tuple[float, float]:
    """The energies at the centre of scaled positions and at the truth, with the start of chains as the worse."""
    problem, truth = posed(name, seed, off)
    scaled = problem.scaled()
    centre = scaled.parameters(np.zeros(scaled.dim))
    starts = problem.parameters(problem.starts(1, seed=0))[0]
    return round(max(energy_at(problem, centre), energy_at(problem, starts)), 2), round(truth, 2)


def at_mode(name: str, seed: int, off: float) -> tuple[float, float]:
    """The energies at the weightiest mode and at the truth; infinite where no mode is known."""
    problem, truth = posed(name, seed, off)
    return (round(float(problem.modes.energies[0]), 2) if problem.found else np.inf), round(truth, 2)


def is_no_higher(energies: tuple[float, float]) -> bool:
    """Whether the first energy is below the truth's, which a minimum near it is by ½ χ² of q degrees of freedom."""
    return bool(np.isfinite(energies[0]) and energies[0] <= energies[1])


def compared(point: int, what: str, energies: Callable[..., Any], posed_by: str, arguments: tuple[Any, ...]) -> Case:
    """A case whose answer is an energy no higher than the truth's."""
    name, seed, off = arguments
    label = f"{what}: {name}, seed {seed}, guess {100 * off:.0f} % off"
    run = functools.partial(classified, functools.partial(energies, *arguments), is_no_higher, refusal="no mode")
    return Case(point, label, posed_by, "an energy no higher than at the truth, of which the data were made", run)


def open_product() -> str:
    """What is said of x′ = −a b x, whose data tell the product alone."""
    times = np.linspace(0.0, 8.0, 41)
    values = 2.0 * np.exp(-0.5 * times) + 0.03 * np.random.default_rng(0).standard_normal(41)
    system = systems.own(
        lambda t, x, p: (-p[0] * p[1] * x[0],), states=["x"], parameters=["a", "b"], usual=[1.0, 0.4], start=[1.5]
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        identify(Series(times, values[:, None], ["x"]), system, likelihood="trajectory", progress=False).scaled()
    return " | ".join(str(warning.message) for warning in caught)


def subjects(n: int, seed: int) -> Array:
    """Prey and predators of ``n`` subjects with some eight samples each, 30 % missing: the four parameters in sds."""
    system, rng, group = sysid.systems.lotka_volterra(), np.random.default_rng(seed), []
    for k in range(n):
        times = np.sort(np.r_[0, rng.uniform(0, 8, 9)])
        clean = sysid.data.simulate(system, times, start=rng.uniform(4, 16, 2), seed=k)
        values = clean.values * np.exp(0.05 * rng.normal(size=clean.values.shape))
        values[rng.random(values.shape) < 0.3] = np.nan
        there = ~np.isnan(values).all(1)
        group.append(Series(times[there], values[there], system.states, name=f"s{k}"))
    problem = identify(
        group, system, likelihood=likelihoods.trajectory(errors="lognormal"), n_searches=1, progress=False
    )
    modes = problem.modes
    return np.abs((modes.parameters[0, :4] - system.usual) / modes.sd[0, :4]).round(2)


def predators(n: int) -> Series:
    """Prey and predators with 1 % noise at ``n`` times up to 20."""
    return sysid.data.simulate(sysid.systems.lotka_volterra(), np.linspace(0.0, 20.0, n), noise=0.01, seed=0)


def limited(call: Callable[..., Any]) -> str:
    """The kind of error, and its message, of a search that has no time."""
    try:
        call(time_limit=1e-9)
    except Exception as error:  # whatever is raised is the answer
        return f"{type(error).__name__}: {error}"
    return "no limit"


def shown(call: Callable[[], Any]) -> str:
    """What a search shows on stderr."""
    text = io.StringIO()
    with contextlib.redirect_stderr(text):
        call()
    return " ".join(text.getvalue().split())[:100]


def timed(label: str, call: Callable[..., Any], posed_by: str) -> Case:
    """A case of a search that must say that its time is up."""
    run = functools.partial(classified, functools.partial(limited, call), lambda said: "time_limit = " in said)
    return Case(9, f"time_limit: {label}", posed_by, "TimeoutError that says how far the search has come", run)


def barred(label: str, call: Callable[[], Any], posed_by: str) -> Case:
    """A case of a search that must show where it is."""
    run = functools.partial(classified, functools.partial(shown, call), lambda text: "evaluations" in text)
    return Case(9, f"progress: {label}", posed_by, "a line on stderr with the stage of the search", run)


def of_subjects(n: int, seed: int, posed_by: str) -> Case:
    """A case of subjects of which one alone does not tell the parameters."""

    def run() -> Outcome:
        return classified(lambda: subjects(n, seed), lambda sds: bool((sds < 4.0).all()))

    return Case(8, f"{n} subjects, seed {seed}", posed_by, "all four parameters within 4 sds of the truth", run)


CASES = (
    *[
        compared(4, "scaled() and starts()", at_scaled_centre, posed_by, arguments)
        for posed_by, arguments in (
            ("others", ("menten", 111, 0.3)),
            ("others", ("menten", 110, 0.3)),
            ("ours", ("slower menten", 0, 0.3)),
            ("ours", ("free enzyme", 3, 0.3)),
            ("ours", ("menten", 2, 0.3)),
        )
    ],
    *[
        compared(4, "modes, or a word", at_mode, posed_by, arguments)
        for posed_by, arguments in (
            ("others", ("cstr", 0, 0.3)),
            ("ours", ("cstr", 3, 0.3)),
            ("ours", ("hotter cstr", 0, 0.3)),
            ("ours", ("cascade", 1, 0.3)),
        )
    ],
    Case(
        4, "an open product of two parameters", "ours", "warnings name parameters, not coordinates",
        lambda: classified(open_product, lambda said: bool(said) and "coordinate " not in said),
    ),
    *[
        compared(9, "start", at_start, posed_by, arguments)
        for posed_by, arguments in (
            ("others", ("chain", 201, 0.05)),
            ("others", ("chain", 0, 0.3)),
            ("others", ("menten", 0, 0.3)),
            ("ours", ("faster chain", 1, 0.3)),
            ("ours", ("faster chain", 3, 0.3)),
            ("ours", ("cascade", 1, 0.3)),
            ("ours", ("cascade", 2, 0.3)),
            ("ours", ("free enzyme", 3, 0.3)),
        )
    ],
    timed("discover", lambda **limit: sysid.discover(predators(401), progress=False, **limit), "others"),
    timed(
        "identify(likelihood='weak')",
        lambda **limit: identify(predators(401), sysid.systems.lotka_volterra(), likelihood="weak", **limit), "ours",
    ),
    timed(
        "identify(likelihood='trajectory')",
        lambda **limit: identify(predators(41), sysid.systems.lotka_volterra(), likelihood="trajectory", **limit),
        "ours",
    ),
    barred(
        "weak of 10⁴ rows",
        lambda: identify(predators(10_001), sysid.systems.lotka_volterra(), likelihood="weak", progress=True), "others",
    ),
    barred("discover of 4,001 rows", lambda: sysid.discover(predators(4001), sweeps=50, progress=True), "ours"),
    of_subjects(12, 0, "others"), of_subjects(12, 1, "others"), of_subjects(12, 2, "others"),
    of_subjects(3, 2, "ours"), of_subjects(4, 7, "ours"),
)  # fmt: skip
