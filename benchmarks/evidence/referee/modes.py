"""Points 3, 7, 10 and parts of 8: improper posteriors, unknown frequencies, symmetries, causes that are not there."""

import warnings
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

from sysid import Series, identify, likelihoods, priors, systems

from .case import Case, Outcome, classified

BOD_TIMES = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 7.0])
BOD = np.array([np.nan, 8.3, 10.3, 19.0, 16.0, 15.6, 19.8])  # Bates & Watts (1988), A1.4
DECAY_TIMES = np.linspace(0.0, 8.0, 41)


def values_of(problem: Any) -> dict[str, float]:
    """The weightiest mode by name; nan where there is none."""
    try:
        values = problem.modes.parameters[0].round(4).tolist()
    except ValueError:
        values = [float("nan")] * len(problem.names)
    return dict(zip(problem.names, values, strict=True))


def near(found: dict[str, float], right: dict[str, float], tolerance: float) -> bool:
    """Whether every named value is right to a relative tolerance."""
    return all(abs(found[name] - value) <= tolerance * abs(value) for name, value in right.items())


def solved(rates: Any, parameters: tuple[float, ...], times: np.ndarray, start: list[float]) -> np.ndarray:
    """A reference solution (n, dim)."""
    asked = {"t_eval": times, "rtol": 1e-10, "atol": 1e-10}
    return np.asarray(solve_ivp(lambda t, x: rates(t, x, parameters), (times[0], times[-1]), start, **asked).y.T)


# Point 8: causes that are not there


def drive(t: Any, x: Any, p: Any) -> Any:
    """A damped oscillator with a drive F cos wt."""
    return (x[1], -4.0 * x[0] - 0.3 * x[1] + p[0] * np.cos(p[1] * t))


def driven(seed: int, truth: tuple[float, float] = (1.5, 3.1), **asked: Any) -> dict[str, float]:
    """An oscillator with a drive of unknown amplitude and frequency."""
    times = np.linspace(0.0, 40.0, 401)
    states = solved(drive, truth, times, [0.0, 0.0])
    data = states + 0.05 * np.random.default_rng(seed).normal(size=states.shape)
    system = systems.own(drive, states=("x", "v"), parameters=("F", "w"), usual=[1.0, 1.0], start=[0.0, 0.0])
    problem = identify(Series(times, data, ("x", "v")), system, likelihood="trajectory", progress=False, **asked)
    return values_of(problem)


def driven_with_priors(seed: int) -> Outcome:
    """The start's mode weighs exp(−1000) of the other."""
    prior = {"w": priors.gaussian(3.0, 1.0), "F": priors.gaussian(0.0, 3.0)}
    return classified(lambda: driven(seed, prior=prior), lambda found: near(found, {"F": 1.5, "w": 3.1}, 0.02))


def spring(t: Any, x: Any, p: Any) -> Any:
    """x″ = −w² x."""
    return (x[1], -(p[0] ** 2) * x[0])


def oscillator(omega: float, usual: float, seed: int) -> Outcome:
    """A search that begins at another frequency."""

    def call() -> dict[str, float]:
        times = np.linspace(0.0, 20.0, 201)
        values = np.cos(omega * times) + 0.01 * np.random.default_rng(seed).standard_normal(times.size)
        system = systems.own(spring, states=["x", "v"], parameters=["w"], usual=[usual], start=[1.0, 0.0])
        found = values_of(
            identify(Series(times, values[:, None], ["x"]), system, likelihood="trajectory", progress=False)
        )
        return found | {"w": abs(found["w"])}

    return classified(call, lambda found: near(found, {"w": omega}, 0.002))


def hill(exponent: float, start: float, *, refusal: str = "") -> Outcome:
    """A repression with a free exponent, from a state at 0."""

    def rates(t: Any, x: Any, p: Any) -> Any:
        return (-x[0] + p[0] / (1.0 + x[1] ** p[1]), x[0] - x[1])

    def call() -> dict[str, float]:
        times = np.linspace(0.0, 10.0, 41)
        states = solved(rates, (10.0, exponent), times, [0.1, max(start, 1e-12)])
        data = Series(times, states + 0.03 * np.random.default_rng(0).standard_normal(states.shape), ["m", "p"])
        system = systems.own(
            rates, states=["m", "p"], parameters=["alpha", "n"], usual=[8.0, 1.2 * exponent], start=[0.1, start]
        )
        likelihood = likelihoods.trajectory(start=[0.1, start])
        return values_of(identify(data, system, likelihood=likelihood, progress=False))

    return classified(call, lambda found: near(found, {"alpha": 10.0, "n": exponent}, 0.1), refusal=refusal)


def sir(recovered: float, start: list[float], errors: str) -> Outcome:
    """Infected counted, nobody recovered at first."""

    def rates(t: Any, x: Any, p: Any) -> Any:
        return (-p[0] * x[0] * x[1] / 1e5, p[0] * x[0] * x[1] / 1e5 - p[1] * x[1], p[1] * x[1])

    def call() -> dict[str, float]:
        times = np.arange(0.0, 80.0)
        truth = solved(rates, (0.4, 0.15), times, [1e5 - 10.0, 10.0, 0.0])
        counted = np.maximum(np.random.default_rng(0).poisson(truth[:, 1]), 1.0)[:, None]
        first = [1e5 - 10.0, 10.0, recovered]
        system = systems.own(rates, states=("S", "I", "R"), parameters=("beta", "gamma"), usual=[0.5, 0.2], start=first)
        likelihood = likelihoods.trajectory(errors=errors, start=start)
        return values_of(identify(Series(times, counted, ("I",)), system, likelihood=likelihood, progress=False))

    return classified(call, lambda found: near(found, {"beta": 0.4, "gamma": 0.15}, 0.02))


def two_compartments(errors: str) -> Outcome:
    """A dose into the central compartment; the peripheral one is empty at first and never measured."""

    def rates(t: Any, x: Any, p: Any) -> Any:
        return (-(p[0] + p[1]) * x[0] + 0.3 * x[1], p[1] * x[0] - 0.3 * x[1])

    def call() -> dict[str, float]:
        times = np.linspace(0.0, 12.0, 25)
        truth = solved(rates, (0.5, 0.8), times, [100.0, 0.0])[:, 0]
        values = truth * np.exp(0.05 * np.random.default_rng(1).standard_normal(25))
        system = systems.own(
            rates, states=("central", "peripheral"), parameters=("k", "k12"), usual=[0.3, 0.5], start=[100.0, 0.0]
        )
        likelihood = likelihoods.trajectory(errors=errors, start=[100.0, 0.0])
        data = Series(times, values[:, None], ("central",))
        return values_of(identify(data, system, likelihood=likelihood, progress=False))

    return classified(call, lambda found: near(found, {"k": 0.5, "k12": 0.8}, 0.15))


# Point 3: improper posteriors. An answer is right where nothing is said of a proper one; an improper one has none.


def said_of(call: Any, words: str) -> list[str]:
    """The warnings of ``call()`` that have ``words``."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(warning.message) for warning in caught if words in str(warning.message)]


def told(call: Any, words: str, *, wanted: bool) -> Outcome:
    """Whether a warning with ``words`` comes where it is wanted, and only there."""
    try:
        said = said_of(call, words)
    except Exception as error:
        return Outcome("SILENT", f"{type(error).__name__}: {error}")
    if not wanted:
        return Outcome("SILENT", f"a false alarm: {said[0]}") if said else Outcome("right", "nothing is said")
    return Outcome("warned", said[0]) if said else Outcome("SILENT", "nothing is said")


def bod(*, scale: float = 1.0, prior: Any = None) -> Any:
    """Oxygen demand A (1 − exp(−kt)) from six values."""
    system = systems.own(
        lambda t, x, p: (p[0] * (p[1] - x[0]),), states=["d"], parameters=["k", "A"], usual=[0.3, 15.0 * scale],
        start=[0.0],
    )  # fmt: skip
    likelihood = likelihoods.trajectory(start=[0.0], step=0.05)
    data = Series(BOD_TIMES, scale * BOD[:, None], ["d"])
    return identify(data, system, likelihood=likelihood, prior=prior, progress=False)


def decay(rates: Any, names: list[str], usual: list[float], *, prior: Any = None, seed: int = 0) -> Any:
    """A decay 2 exp(−t/2) whose rate is a function of several parameters."""
    values = 2.0 * np.exp(-0.5 * DECAY_TIMES) + 0.03 * np.random.default_rng(seed).standard_normal(41)
    system = systems.own(rates, states=["x"], parameters=names, usual=usual, start=[1.5])
    data = Series(DECAY_TIMES, values[:, None], ["x"])
    return identify(data, system, likelihood="trajectory", prior=prior, progress=False)


def ridge(t: Any, x: Any, p: Any) -> Any:
    """x′ = −a b x."""
    return (-p[0] * p[1] * x[0],)


def quotient(t: Any, x: Any, p: Any) -> Any:
    """x′ = −(a / b) x."""
    return (-p[0] / p[1] * x[0],)


def square(t: Any, x: Any, p: Any) -> Any:
    """x′ = −c² x."""
    return (-(p[0] ** 2) * x[0],)


def saturation(low: float, *, prior: Any = None) -> Any:
    """Michaelis–Menten far below its constant: only V/K is known."""
    times = np.linspace(0.0, 10.0, 26)
    rates = lambda t, x, p: (-p[0] * x[0] / (p[1] + x[0]),)  # noqa: E731
    truth = solved(rates, (1.0, 20.0), times, [low])[:, 0]
    values = truth + 0.02 * low * np.random.default_rng(3).standard_normal(26)
    system = systems.own(rates, states=["x"], parameters=["V", "K"], usual=[1.0, 10.0], start=[low])
    data = Series(times, values[:, None], ["x"])
    return identify(data, system, likelihood="trajectory", prior=prior, progress=False)


PROPER = {"k": priors.lognormal(-1.0, 0.5), "A": priors.lognormal(3.0, 0.5)}
FACTORS = {"a": priors.lognormal(0.0, 0.5)}
IMPROPER = "improper"

# Point 10: symmetries


def exponentials(seed: int) -> Outcome:
    """The sum of two decays, which may be exchanged."""

    def call() -> str:
        values = 3.0 * np.exp(-0.3 * DECAY_TIMES) + 2.0 * np.exp(-2.0 * DECAY_TIMES)
        values += 0.02 * np.random.default_rng(seed).standard_normal(41)
        system = systems.own(
            lambda t, x, p: (-p[0] * x[0], -p[1] * x[1]), states=["u", "v"], parameters=["k1", "k2"], usual=[0.2, 1.0],
            start=[1.0, 1.0],
        )  # fmt: skip
        likelihood = likelihoods.trajectory(observe={"sum": lambda t, x, p: x[0] + x[1]})
        problem = identify(Series(DECAY_TIMES, values[:, None], ["sum"]), system, likelihood=likelihood, progress=False)
        return f"weights {np.sort(problem.modes.weights).round(3).tolist()}"

    return classified(call, lambda found: found == "weights [0.5, 0.5]")


def hidden_sign() -> str:
    """A hidden state with its gain: both may change their sign together."""
    times = np.linspace(0.0, 10.0, 51)
    rates = lambda t, x, p: (p[0] * x[1] - 0.5 * x[0], -0.3 * x[1])  # noqa: E731
    truth = solved(rates, (0.8,), times, [0.0, 2.0])[:, 0]
    values = truth + 0.02 * np.random.default_rng(0).standard_normal(51)
    system = systems.own(rates, states=["x", "h"], parameters=["gain"], usual=[1.0], start=[0.0, 1.0])
    prior = {"gain": priors.gaussian(0.0, 1.0), "h(0)": priors.gaussian(0.0, 5.0)}
    data = Series(times, values[:, None], ["x"])
    problem = identify(data, system, likelihood="trajectory", prior=prior, progress=False)
    return f"weights {np.sort(problem.modes.weights).round(3).tolist()}"


def intermediate(seed: int, **asked: Any) -> Outcome:
    """A → B → C with B measured: the rates may be swapped, and priors tell how probable either order is."""

    def call() -> list[float]:
        times = np.linspace(0.0, 10.0, 31)
        values = 0.9 * 2.0 / (0.35 - 0.9) * (np.exp(-0.9 * times) - np.exp(-0.35 * times))
        values += 0.03 * np.random.default_rng(seed).standard_normal(31)
        rates = lambda t, x, p: (-p[0] * x[0], p[0] * x[0] - p[1] * x[1])  # noqa: E731
        system = systems.own(rates, states=["A", "B"], parameters=["k1", "k2"], usual=[0.9, 0.3], start=[2.0, 0.0])
        prior = {
            "k1": priors.lognormal(0.0, 0.6), "k2": priors.lognormal(-0.7, 0.6),
            "A(0)": priors.lognormal(np.log(2.0), 0.8),
        } | asked  # fmt: skip
        data = Series(times, values[:, None], ["B"])
        found = identify(data, system, likelihood="trajectory", prior=prior, progress=False)
        return found.modes.weights.round(3).tolist()

    return classified(call, lambda weights: len(weights) == 2 and 0.02 < weights[1] < 0.5)


def signs(seed: int, location: float) -> Outcome:
    """c² with a prior that prefers one sign weakly: the odds of the signs are those of the prior."""

    def call() -> list[float]:
        modes = decay(square, ["c"], [1.0], prior={"c": priors.gaussian(location, 0.5)}, seed=seed).modes
        return [*modes.weights.round(3).tolist(), abs(float(modes.parameters[0, 0]))]

    def is_right(found: list[float]) -> bool:
        odds = np.exp(-2.0 * abs(location) * found[-1] / 0.25)
        return len(found) == 3 and abs(found[1] - odds / (1.0 + odds)) < 0.02

    return classified(call, is_right)


def phased(rates: Any, names: list[str], usual: list[float]) -> Any:
    """A drive 1.5 sin(1.3 t + 0.8), integrated."""
    times = np.linspace(0.0, 10.0, 41)
    values = 1.5 / 1.3 * (np.cos(0.8) - np.cos(1.3 * times + 0.8))
    values += 0.05 * np.random.default_rng(1).standard_normal(41)
    system = systems.own(rates, states=["x"], parameters=names, usual=usual, start=[0.0])
    return identify(Series(times, values[:, None], ["x"]), system, likelihood="trajectory", progress=False)


def phase(t: Any, x: Any, p: Any) -> Any:
    """x′ = a sin(1.3 t + φ)."""
    return (p[0] * np.sin(1.3 * t + p[1]),)


def delay(t: Any, x: Any, p: Any) -> Any:
    """x′ = a sin(w (t − τ))."""
    return (p[0] * np.sin(p[2] * (t - p[1])),)


POSITIVE = {"c": priors.lognormal(0.0, 1.0)}
AT_TRUTH = {"F": 1.5, "w": 3.1}
CASES = (
    Case(8, "r02: a mode without weight", "others", "F 1.5, w 3.1", lambda: driven_with_priors(0)),
    Case(8, "sysid_b1_boxes", "others", "w 6", lambda: oscillator(6.0, 4.0, 1)),
    Case(8, "another oscillator from afar", "ours", "w 7.3", lambda: oscillator(7.3, 5.0, 2)),
    Case(8, "a mode without weight, another seed", "ours", "F 1.5, w 3.1", lambda: driven_with_priors(5)),
    Case(8, "sysid_hill: exponent 2.1 at 0", "others", "alpha 10, n 2.1", lambda: hill(2.1, 0.0)),
    Case(8, "a Hill term, exponent 1.6 at 0", "ours", "alpha 10, n 1.6", lambda: hill(1.6, 0.0)),
    Case(8, "a Hill term, exponent 3 at 1e-9", "ours", "alpha 10, n 3", lambda: hill(3.0, 1e-9)),
    Case(
        8, "a Hill term, exponent 0.7 at 0", "ours", "refused: the derivative at 0 is infinite",
        lambda: hill(0.7, 0.0, refusal="Let start be inside"),
    ),
    Case(
        8, "r09: counts, R(0) = 0", "others", "beta 0.4, gamma 0.15",
        lambda: sir(0.0, [1e5 - 10.0, 10.0, 0.0], "poisson"),
    ),
    Case(
        8, "r09: counts, start says R(0) = 1", "others", "beta 0.4, gamma 0.15",
        lambda: sir(0.0, [1e5 - 10.0, 10.0, 1.0], "poisson"),
    ),
    Case(
        8, "r09: log-normal, R(0) = 0", "others", "beta 0.4, gamma 0.15",
        lambda: sir(0.0, [1e5 - 10.0, 10.0, 0.0], "lognormal"),
    ),
    Case(
        8, "negative binomial counts, R(0) = 0", "ours", "beta 0.4, gamma 0.15",
        lambda: sir(0.0, [1e5 - 10.0, 10.0, 0.0], "negative_binomial"),
    ),
    Case(8, "an empty compartment, log-normal", "ours", "k 0.5, k12 0.8", lambda: two_compartments("lognormal")),
    Case(3, "sysid_improper: BOD", "others", "told by name", lambda: told(bod, IMPROPER, wanted=True)),
    Case(
        3, "sysid_improper: ridge a b", "others", "told by name",
        lambda: told(lambda: decay(ridge, ["a", "b"], [1.0, 0.4]), IMPROPER, wanted=True),
    ),
    Case(3, "BOD in other units", "ours", "told", lambda: told(lambda: bod(scale=1e-3), IMPROPER, wanted=True)),
    Case(
        3, "ridge a / b", "ours", "told by name",
        lambda: told(lambda: decay(quotient, ["a", "b"], [1.0, 1.5], seed=4), IMPROPER, wanted=True),
    ),
    Case(3, "V / K alone", "ours", "told by name", lambda: told(lambda: saturation(1.0), IMPROPER, wanted=True)),
    Case(
        3, "BOD with proper priors", "ours", "nothing to say",
        lambda: told(lambda: bod(prior=PROPER), IMPROPER, wanted=False),
    ),
    Case(
        3, "ridge a b, a with a prior", "ours", "nothing to say",
        lambda: told(lambda: decay(ridge, ["a", "b"], [1.0, 0.4], prior=FACTORS), IMPROPER, wanted=False),
    ),
    *(
        Case(
            7, f"r03: a drive of unknown frequency, seed {seed}", "others", "F 1.5, w 3.1",
            lambda seed=seed: classified(lambda: driven(seed), lambda found: near(found, AT_TRUTH, 0.02)),
        )
        for seed in range(3)
    ),
    Case(
        7, "a faster drive", "ours", "|F| 6, w 7.7",
        lambda: classified(
            lambda: {name: abs(value) for name, value in driven(4, (6.0, 7.7)).items()},
            lambda found: near(found, {"F": 6.0, "w": 7.7}, 0.05),
        ),
    ),
    Case(
        7, "a slower drive", "ours", "|F| 0.8, w 0.9",
        lambda: classified(
            lambda: {name: abs(value) for name, value in driven(6, (0.8, 0.9)).items()},
            lambda found: near(found, {"F": 0.8, "w": 0.9}, 0.05),
        ),
    ),
    Case(
        10, "the sign of c²", "others", "told",
        lambda: told(lambda: decay(square, ["c"], [1.0]), "unchanged by c → −c", wanted=True),
    ),
    Case(10, "two exponentials", "others", "two modes of 0.5, or told", lambda: exponentials(5)),
    Case(10, "two exponentials, another seed", "ours", "two modes of 0.5, or told", lambda: exponentials(8)),
    Case(
        10, "a hidden state and its gain", "ours", "two modes of 0.5, or told",
        lambda: classified(hidden_sign, lambda found: found == "weights [0.5, 0.5]"),
    ),
    Case(
        10, "c² with c > 0", "ours", "nothing to say",
        lambda: told(lambda: decay(square, ["c"], [1.0], prior=POSITIVE), "unchanged", wanted=False),
    ),
    *(
        Case(
            10, f"A → B → C with two priors, seed {seed}", "ours", "two modes, the rates swapped",
            lambda seed=seed: intermediate(seed),
        )
        for seed in (0, 3)
    ),
    Case(10, "c² and a prior, seed 4", "ours", "weights by the prior at ±c", lambda: signs(4, 0.15)),
    Case(10, "c² and a prior, seed 6", "ours", "weights by the prior at ±c", lambda: signs(6, -0.2)),
    Case(
        10, "the phase of a drive", "ours", "told",
        lambda: told(lambda: phased(phase, ["a", "phi"], [1.0, 0.5]), "phi and phi + 6.283", wanted=True),
    ),
    Case(
        10, "the delay of a drive", "ours", "told",
        lambda: told(lambda: phased(delay, ["a", "tau", "w"], [1.0, 0.5, 1.2]), "which is 6.283/w", wanted=True),
    ),
)  # fmt: skip
