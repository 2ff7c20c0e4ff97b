"""Point 1: posteriors of the solver in place of the equations, held to solutions in closed form."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.optimize import least_squares

import toolkit
from sysid import Series, identify, likelihoods, priors, systems

from .case import Case, Outcome, classified

POINT = 1
REFUSAL = "sdirk4"
MOST_OFF = 0.5  # standard deviations between the posterior's mean and the closed form's
FEW_NUMBERS = 0.3  # relative, between the standard deviations

relax = lambda times, k, level: level * (1.0 - np.exp(-k * times))  # noqa: E731
oral = lambda times, ka, ke: 10.0 * ka / (ka - ke) * (np.exp(-ke * times) - np.exp(-ka * times))  # noqa: E731
decay = lambda times, k: 10.0 * np.exp(-k * times)  # noqa: E731
swing = lambda times, w: np.cos(w * times)  # noqa: E731


def logistic(times: Any, rate: float, capacity: float) -> Any:
    """A population that starts at 1."""
    return capacity / (1.0 + (capacity - 1.0) * np.exp(-rate * times))


def exchange(times: Any, out: float, to: float, back: float) -> Any:
    """The amount in the first of two compartments that starts with 10."""
    total, product = out + to + back, out * back
    root = np.sqrt(total**2 - 4.0 * product)
    fast, slow = 0.5 * (total + root), 0.5 * (total - root)
    return 10.0 * ((fast - back) * np.exp(-fast * times) + (back - slow) * np.exp(-slow * times)) / (fast - slow)


def relaxing(usual: Sequence[float]) -> Any:
    """x′ = k (A − x)."""
    return systems.own(
        lambda t, x, p: (p[0] * (p[1] - x[0]),), states=["x"], parameters=["k", "A"], usual=usual, start=[0.0]
    )


def decaying(usual: Sequence[float]) -> Any:
    """x′ = −k x."""
    return systems.own(lambda t, x, p: (-p[0] * x[0],), states=["x"], parameters=["k"], usual=usual, start=[10.0])


def absorbing(usual: Sequence[float]) -> Any:
    """A drug taken by mouth."""
    return systems.own(
        lambda t, x, p: (-p[0] * x[0], p[0] * x[0] - p[1] * x[1]),
        states=["gut", "x"], parameters=["ka", "ke"], usual=usual, start=[10.0, 0.0],
    )  # fmt: skip


def growing(usual: Sequence[float]) -> Any:
    """Logistic growth."""
    return systems.own(
        lambda t, x, p: (p[0] * x[0] * (1.0 - x[0] / p[1]),),
        states=["x"], parameters=["r", "K"], usual=usual, start=[1.0],
    )  # fmt: skip


def swinging(usual: Sequence[float]) -> Any:
    """x″ = −w² x."""
    return systems.own(
        lambda t, x, p: (x[1], -p[0] * p[0] * x[0]), states=["x", "v"], parameters=["w"], usual=usual, start=[1.0, 0.0]
    )


def exchanging(usual: Sequence[float]) -> Any:
    """Two compartments."""
    return systems.own(
        lambda t, x, p: (-(p[0] + p[1]) * x[0] + p[2] * x[1], p[1] * x[0] - p[2] * x[1]),
        states=["x", "y"], parameters=["out", "to", "back"], usual=usual, start=[10.0, 0.0],
    )  # fmt: skip


def made(
    solution: Callable[..., Any], truth: Sequence[float], times: Any, noise: float, seed: int, *, logarithmic: bool
) -> Any:
    """Values at ``times`` with errors."""
    errors = noise * np.random.default_rng(seed).standard_normal(times.size)
    clean = solution(times, *truth)
    return clean * np.exp(errors) if logarithmic else clean + errors


def fitted(solution: Callable[..., Any], truth: Sequence[float], times: Any, values: Any, change: Any) -> Any:
    """Least-squares estimates of the closed form for all of ``values``, and their standard deviations."""
    found = least_squares(
        lambda q: np.concatenate([change(solution(times, *q)) - change(of) for of in values]), list(truth)
    )
    variance = (found.fun @ found.fun) / (found.fun.size - len(truth))
    return found.x, np.sqrt(variance * np.diag(np.linalg.inv(found.jac.T @ found.jac)))


def moments(problem: Any, n: int) -> tuple[Any, Any]:
    """Means and standard deviations of the first parameters, over all modes that were found."""
    values, sds, weights = problem.modes.parameters[:, :n], problem.modes.sd[:, :n], problem.modes.weights[:, None]
    mean = (weights * values).sum(axis=0)
    return mean, np.sqrt((weights * (sds**2 + (values - mean) ** 2)).sum(axis=0))


def outcome(
    solution: Callable[..., Any],
    system: Callable[..., Any],
    truth: Sequence[float],
    usual: Sequence[float],
    times: Any,
    *,
    noise: float = 0.1,
    seed: int = 0,
    prior: Any = None,
    experiments: int = 1,
    **options: Any,
) -> Outcome:
    """What ``identify`` finds from data of ``truth``, beside the closed form."""
    logarithmic = options.get("errors") == "lognormal"
    values = [made(solution, truth, times, noise, seed + k, logarithmic=logarithmic) for k in range(experiments)]
    model = system(usual)
    series = [Series(times, of[:, None], ("x",), name=f"e{k}") for k, of in enumerate(values)]
    best, sd = fitted(solution, truth, times, values, np.log if logarithmic else np.asarray)

    def call() -> Any:
        law = likelihoods.trajectory(start=list(model.start), **options)
        problem = identify(series if experiments > 1 else series[0], model, likelihood=law, prior=prior)
        mean, width = moments(problem, len(truth))
        return Answer(mean, width, best, sd)

    return classified(call, Answer.is_right, refusal=REFUSAL)


class Answer:
    """Means and standard deviations of a posterior, beside those of the closed form."""

    def __init__(self, mean: Any, width: Any, best: Any, sd: Any) -> None:
        self.mean, self.width, self.best, self.sd = mean, width, best, sd

    def is_right(self) -> bool:
        """Whether both agree."""
        near = np.abs(self.mean - self.best) <= MOST_OFF * self.sd
        return bool((near & (np.abs(self.width / self.sd - 1.0) <= FEW_NUMBERS)).all())

    def __str__(self) -> str:
        """Both, in a line."""
        pairs = zip(self.mean, self.width, self.best, self.sd, strict=True)
        return ", ".join(f"{m:.4g} ± {w:.2g} (closed form {b:.4g} ± {s:.2g})" for m, w, b, s in pairs)


def drawn(wide: Any, seed: int) -> Outcome:
    """The share of draws of k beyond 5 where the closed form has none."""
    times = np.linspace(0.0, 8.0, 81)
    values = decay(times, 0.5) + 0.3 * np.random.default_rng(seed).standard_normal(81)

    def call() -> str:
        law = likelihoods.trajectory(noise=0.3, start=[10.0])
        problem = identify(Series(times, values[:, None], ("x",)), decaying([1.0]), likelihood=law, prior={"k": wide})
        run = toolkit.sample(problem, seed=seed)
        k = np.asarray(problem.parameters(run))[..., 0]
        return f"P(k > 5) = {(k > 5.0).mean():.3f}, mean {k.mean():.3f}"

    return classified(call, lambda answer: "P(k > 5) = 0.000" in answer, refusal=REFUSAL)


def drawn_by_hmc() -> Outcome:
    """What HMC draws from a wide prior about a guess that is ten times too small."""
    times, rng = np.arange(0.0, 13.0), np.random.default_rng(5)
    rng.standard_normal(13)  # the noise of another input, which was drawn first
    values = relax(times, 2.0, 10.0) + 0.1 * rng.standard_normal(13)

    def call() -> str:
        law = likelihoods.trajectory(start=[0.0])
        series = Series(times, values[:, None], ("x",))
        problem = identify(
            series, relaxing([0.2, 8.0]), likelihood=law, prior={"k": priors.lognormal(np.log(0.2), 1.5)}
        )
        problem = problem.scaled()
        sampler = toolkit.samplers.hmc(0.3, n_leapfrogs=6)
        run = toolkit.sample(problem, sampler, n_steps=800, burn_in=200, n_chains=8, seed=0)
        k = problem.parameters(run).reshape(-1, 3)[:, 0]
        problem.estimates(run)
        return f"P(k > 3) = {(k > 3.0).mean():.3f}"

    return classified(call, lambda answer: answer == "P(k > 3) = 0.000", refusal=REFUSAL)


HOURS = np.arange(0.0, 13.0)
WIDE_ORAL = {"ka": priors.lognormal(0.0, 2.0), "ke": priors.lognormal(-1.5, 2.0)}
GUESSES = (0.01, 0.1, 10.0, 100.0)


def case(name: str, posed: str, run: Callable[[], Outcome]) -> Case:
    """A case held to its closed form."""
    return Case(POINT, name, posed, "the closed form's mean and standard deviation", run)


def relaxing_cases() -> list[Case]:
    """x′ = k (A − x), k = 2, hourly."""
    found = [
        case(
            f"relaxation, usual k {usual:g}", "others",
            functools.partial(outcome, relax, relaxing, (2.0, 10.0), (usual, 8.0), HOURS, seed=2),
        )
        for usual in (0.05, 0.2, 1.0, 2.0)
    ]  # fmt: skip
    variants: dict[str, dict[str, Any]] = {
        "two experiments": {"experiments": 2}, "rk5": {"method": "rk5"}, "segments=2": {"segments": 2, "gap": 1e-3},
    }  # fmt: skip
    for label, options in variants.items():
        run = functools.partial(outcome, relax, relaxing, (2.0, 10.0), (0.05, 8.0), HOURS, seed=5, **options)
        found.append(case(f"relaxation, {label}", "others", run))
    return found


def guessed_cases() -> list[Case]:
    """Guesses from a hundredth to a hundred times the truth, by every solver."""
    found = []
    for factor in GUESSES:
        for method in ("rk4", "rk5", "sdirk4"):
            run = functools.partial(
                outcome, relax, relaxing, (1.3, 4.0), (1.3 * factor, 3.0), HOURS, noise=0.05, seed=11, method=method
            )
            found.append(case(f"relaxation, guess × {factor:g}, {method}", "ours", run))
        run = functools.partial(
            outcome, oral, absorbing, (1.8, 0.3), (1.8 * factor, 0.3 * factor), HOURS, noise=0.05, seed=12,
            prior=WIDE_ORAL,
        )  # fmt: skip
        found.append(case(f"oral dose, guess × {factor:g}", "ours", run))
        run = functools.partial(
            outcome, logistic, growing, (1.2, 20.0), (1.2 * factor, 20.0), HOURS, noise=0.1, seed=13, errors="lognormal"
        )
        found.append(case(f"growth with log-normal errors, guess × {factor:g}", "ours", run))
        run = functools.partial(outcome, decay, decaying, (1.1,), (1.1 * factor,), HOURS, noise=0.1, seed=14)
        found.append(case(f"decay, guess × {factor:g}", "ours", run))
        run = functools.partial(
            outcome, exchange, exchanging, (0.4, 0.9, 0.5), np.multiply((0.4, 0.9, 0.5), factor), HOURS, noise=0.05,
            seed=15, prior=priors.lognormal(-0.5, 1.5),
        )  # fmt: skip
        found.append(case(f"two compartments, guess × {factor:g}", "ours", run))
    return found


CASES = (
    Case(
        POINT, "decay with prior N(0, 50²)", "others", "P(k > 5) = 0 by quadrature",
        functools.partial(drawn, priors.gaussian(0.0, 50.0), 0),
    ),
    *relaxing_cases(),
    case(
        "oral dose hourly", "others",
        functools.partial(
            outcome, oral, absorbing, (2.5, 0.25), (0.1, 0.02), HOURS, noise=0.05, seed=5, prior=WIDE_ORAL
        ),
    ),
    Case(POINT, "relaxation, HMC's draws", "others", "P(k > 3) = 0 by the closed form", drawn_by_hmc),
    Case(
        POINT, "decay with a log-normal prior of sd 3", "ours", "P(k > 5) = 0 by quadrature",
        functools.partial(drawn, priors.lognormal(1.0, 3.0), 3),
    ),
    Case(
        POINT, "decay with a Laplace prior of scale 40", "ours", "P(k > 5) = 0 by quadrature",
        functools.partial(drawn, priors.laplace(0.0, 40.0), 4),
    ),
    case(
        "relaxation, a coarse step given", "ours",
        functools.partial(outcome, relax, relaxing, (1.6, 5.0), (1.0, 5.0), HOURS, noise=0.05, seed=16, step=1.0),
    ),
    case(
        "oscillator with samples 0.2 apart", "ours",
        functools.partial(outcome, swing, swinging, (1.7,), (1.2,), np.arange(0.0, 8.0, 0.2), noise=0.1, seed=17),
    ),
    *guessed_cases(),
)  # fmt: skip
