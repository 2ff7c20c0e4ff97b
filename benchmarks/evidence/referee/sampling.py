"""Point 15: precision of arguments, constants, energies without a law, short chains, words, columns, bands."""

import re
import warnings
from collections.abc import Callable
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import scipy

import figures
import toolkit
from targets import classics, constrained, domains, mixtures, posteriors
from toolkit import Run, Spread, check_gradient, from_callable, sample, samplers, target, tune
from toolkit.diagnostics import r_hat

from .case import REFUSED, RIGHT, SILENT, WARNED, Case, Outcome, classified

Energy = Callable[[Any], tuple[Any, Any]]


def judged(run: Run, words: str) -> Outcome:
    """WARNED where a warning of the run has these words; else SILENT, with the first warning there is."""
    found = [sentence for sentence in run.warnings if re.search(words, sentence)]
    return Outcome(WARNED, found[0]) if found else Outcome(SILENT, "; ".join(run.warnings[:1]) or "no warning")


def made(function: Energy, dim: int = 2) -> toolkit.Target:
    """A target of a Python function."""
    return from_callable(function, dim=dim, name="mine")


# Numbers of other precision.


def shows(call: Callable[[], Any], text: str) -> Callable[[], Outcome]:
    """A case that is right where the object made by ``call`` prints as ``text``."""
    return lambda: classified(lambda: repr(call()), lambda found: found == text, refusal="must be")


PRECISIONS = (
    ("sgld, a longdouble", "others", lambda: samplers.sgld(np.longdouble(0.5)), "samplers.sgld(0.5)"),
    ("box, longdouble ends", "others", lambda: domains.box(np.zeros(1, np.longdouble), np.ones(1, np.longdouble)),
     "domains.box([0.0], [1.0])"),
    ("ball, a longdouble radius", "others", lambda: domains.ball(np.zeros(2), np.longdouble(1)),
     "domains.ball([0.0, 0.0], 1.0)"),
    ("mixture, longdouble centres", "others",
     lambda: mixtures.gaussian_mixture(np.zeros((1, 2), np.longdouble), 0.5),
     "mixtures.gaussian_mixture([[0.0, 0.0]], 0.5)"),
    ("hmc, longdouble in a list", "ours", lambda: samplers.hmc([np.longdouble(0.25)]), "samplers.hmc([0.25])"),
    ("double well, a longdouble barrier", "ours", lambda: classics.double_well(barrier=np.longdouble(2)),
     "classics.double_well(barrier=2.0)"),
    ("box, ends that are objects", "ours", lambda: domains.box(np.zeros(1, object), np.ones(1)), ""),
)  # fmt: skip


# A network's energy.


def network_constant(n: int, noise: float, outputs: int) -> Outcome:
    """Energies of N(f, noise²) labels against SciPy's log density."""
    rng = np.random.default_rng(n)
    features, labels = rng.normal(size=(n, 3)), rng.normal(size=(n, outputs))
    made = posteriors.network(features, labels, hidden=(), likelihood="normal", noise=noise, prior=2.0)
    weights = rng.normal(size=(1, made.dim))
    logs = scipy.stats.norm.logpdf(labels, posteriors.predict(made, weights, features)[0], noise).sum()
    off = float(made.evaluate(weights)[0][0] - (0.125 * (weights**2).sum() - logs))
    return Outcome(RIGHT if abs(off) < 1e-8 * abs(logs) else SILENT, f"energy off by {off:.4g} nats")


# Gradients in open regions.


def checked(region: Any, factor: float) -> Outcome:
    """``check_gradient`` of a normal target without a truth, whose gradient is ``factor`` times the slope."""
    problem = constrained(made(lambda x: (0.5 * (x**2).sum(axis=1), factor * x), region.dim), region)
    if factor == 1.0:
        return classified(lambda: check_gradient(problem), lambda report: report.compared > 0)
    return classified(lambda: check_gradient(problem), lambda report: False, refusal=f"{factor:g} times the slope")


# Energies without a law, or without resolution.


@target(dim=2)
def angle(x: Any) -> Any:
    """An angle with a peak at 0, and a normal coordinate."""
    return -3.0 * np.cos(x[0]) + 0.5 * x[1] ** 2, (3.0 * np.sin(x[0]), x[1])


@target(dim=2)
def log_density(x: Any) -> Any:
    """The log density of a normal law, given for the energy."""
    return -0.5 * (x[0] ** 2 + 4.0 * x[1] ** 2), (-x[0], -4.0 * x[1])


@target(dim=2)
def shifted(x: Any) -> Any:
    """A normal law with a constant of 1e17 in its energy."""
    return 1e17 + 0.5 * (x[0] ** 2 + x[1] ** 2), (x[0], x[1])


def student_log_density(x: Any) -> Any:
    """The log density of a Student law in the plane."""
    square = (x**2).sum(axis=1)
    return -2.5 * np.log1p(square / 3.0), -5.0 / 3.0 * x / (1.0 + square / 3.0)[:, None]


def degrees(x: Any) -> Any:
    """An angle in degrees."""
    turn = np.deg2rad(x[:, 0])
    return 2.0 * np.sin(turn) + 0.5 * x[:, 1] ** 2, np.stack([2.0 * np.deg2rad(np.cos(turn)), x[:, 1]], axis=1)


def one_sign_wrong(x: Any) -> Any:
    """A normal law of which one term has the wrong sign."""
    return 0.5 * (x[:, 0] ** 2 - x[:, 1] ** 2), x * [1.0, -1.0]


def run_of(problem: Any, sampler: Any, words: str, **options: Any) -> Outcome:
    """A run whose warnings, or whose error, must have ``words``; without a sampler the default run."""
    length = {} if sampler is None else {"n_steps": 4_000, "n_chains": 8}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return judged(sample(problem, sampler, seed=0, **length, **options), words)
        except Exception as error:
            return Outcome(REFUSED if re.search(words, str(error)) else SILENT, f"{type(error).__name__}: {error}")


def proper(problem: Any) -> Outcome:
    """A good law is not called bad."""
    run = sample(problem, samplers.mala(0.5), seed=0, n_steps=4_000, n_chains=8)
    wrong = [sentence for sentence in run.warnings if re.search("integral|float64|log density", sentence)]
    return Outcome(SILENT, wrong[0]) if wrong else Outcome(RIGHT, "no warning about the energy")


# Many short chains.


def short_chains(n_chains: int, step_size: float, burn_in: int, kept: int, forgotten: bool) -> Outcome:
    """Chains too short for R-hat, of a normal law; forgotten: whether the burn-in is long enough."""
    law = mixtures.gaussian_mixture([[0.6]], 1.7)
    run = sample(
        law, samplers.mala(step_size), n_steps=burn_in + kept, burn_in=burn_in, n_chains=n_chains, seed=0,
        init=Spread(8.0, 4.0),
    )  # fmt: skip
    wrong = [sentence for sentence in run.warnings if "R-hat" in sentence]
    shown = (
        f"mean {run.draws.mean():.4f}, R-hat {r_hat(run.draws[:1000])[0]:.3f}; {(run.warnings or ['no warning'])[0]}"
    )
    if forgotten:
        return Outcome(SILENT if wrong else RIGHT, shown)
    return Outcome(WARNED if run.warnings else SILENT, shown)


# Words, seeds, columns.


def without_draws(n_chains: int, stop: int) -> Outcome:
    """Ctrl-C in a run with keep_draws=False: the warning must not say "of 0 draws"."""
    calls = []

    def function(x: Any) -> Any:
        calls.append(len(x))
        if len(calls) == stop:
            raise KeyboardInterrupt
        return 0.5 * (x**2).sum(axis=1), x

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sample(made(function), samplers.sgld(0.1), n_steps=5_000, n_chains=n_chains, seed=0, keep_draws=False)
    said = str(caught[0].message)
    return Outcome(SILENT if re.search(r"holds \d+ of 0 draws", said) else RIGHT, said)


def printed_seed(seed: int) -> Outcome:
    """The seed that a run prints which was tuned twice."""
    run = sample(angle, seed=seed)
    shown = str(re.search(r"seed (\d+)", str(run))[1])  # type: ignore[index]
    return Outcome(RIGHT if int(shown) == seed else SILENT, f"seed {shown} printed, {seed} given")


def columns(n_seeds: int) -> Outcome:
    """Ctrl-C before a first run of a sweep ends: the table must have the columns of a whole one."""

    def stopped(run: Run) -> Any:
        raise KeyboardInterrupt

    grid = toolkit.grid(samplers.sgld, {"step_size": [0.02, 0.05]})
    law, options = mixtures.gaussian_mixture([[0.5]], 1.0), {"n_steps": 60, "seeds": range(n_seeds), "n_chains": 3}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        part, whole = (toolkit.sweep(law, grid, measure=measure, threads=1, **options) for measure in (stopped, None))
    missing = sorted(set(whole) - set(part))
    return Outcome(SILENT if missing else RIGHT, f"missing: {', '.join(map(str, missing)) or 'none'}")


def lost_mode(compiled: Any, side: float) -> Outcome:
    """A run of a Python function that has lost the modes on one side, which its tuning had been in."""
    from toolkit.tuning import tuned_run  # there is no public way to make a run lose a mode

    found = tune(compiled, seed=1, progress=False)
    run = sample(compiled, found, seed=3, n_steps=40_000, thin=20, progress=False)
    draws, function = run.replica_draws.copy(), made(compiled.evaluate)
    draws[side * draws[..., 0] > 0.9] = [-side, 0.0]
    parts = {name: getattr(run, name) for name in run.__dataclass_fields__}
    problem = toolkit.Problem(function)
    lost = Run(**{**parts, "replica_draws": draws, "problem": problem, "tuning": None})
    return judged(tuned_run.with_tuning(lost, found), "have no draw near")


# A picture.


def band(n_chains: int) -> Outcome:
    """The lowest edge of the band of a KL that falls at another time in each chain."""
    at = np.geomspace(10.0, 1e4, 40)
    path = np.where(at < np.geomspace(100.0, 6000.0, n_chains)[:, None], 1.5, 0.02)
    figure, axes = plt.subplots()
    _, drawn = figures.kl_curve(at, path, axes, label="KL")
    plt.close(figure)
    lowest = float(drawn.get_paths()[0].vertices[:, 1].min())
    return Outcome(RIGHT if lowest > 1e-6 else SILENT, f"from {lowest:.3g}, where no chain is below 0.02")


OPEN = domains.box([0.0, 0.0], [np.inf, np.inf])
TILTED = domains.half_spaces([[1.0, 1.0]], [-30.0])
NO_LAW, NEGATIVE = "no finite integral", "Did you return the log density"
CASES = (
    *(
        Case(15, name, posed, text or "refused by name", shows(call, text))
        for name, posed, call, text in PRECISIONS
    ),
    Case(15, "network, normal labels", "others", "−log p by SciPy", lambda: network_constant(40, 0.5, 1)),
    Case(15, "network, two outputs", "ours", "−log p by SciPy", lambda: network_constant(25, 3.0, 2)),
    Case(15, "network, little noise", "ours", "−log p by SciPy", lambda: network_constant(60, 0.01, 1)),
    Case(15, "gradient in an open box", "others", "agrees", lambda: checked(OPEN, 1.0)),
    Case(15, "gradient in a half-plane", "ours", "agrees", lambda: checked(TILTED, 1.0)),
    Case(15, "wrong gradient in an open box", "ours", "1.5 times the slope", lambda: checked(OPEN, 1.5)),
    Case(15, "constant of 1e17, default run", "others", "said", lambda: run_of(shifted, None, "nats apart")),
    Case(15, "constant of 1e17, MALA", "ours", "said", lambda: run_of(shifted, samplers.mala(0.5), "nats apart")),
    Case(15, "constant of -1e15, MALA", "ours", "said", lambda: run_of(
        made(lambda x: (0.5 * (x**2).sum(axis=1) - 1e15, x)), samplers.mala(0.5), "nats apart")),
    Case(15, "log density, default run", "others", "named", lambda: run_of(log_density, None, NEGATIVE)),
    Case(15, "log density, SGLD", "ours", "named", lambda: run_of(log_density, samplers.sgld(0.5), NEGATIVE)),
    Case(15, "log density of a Student law", "ours", "named", lambda: run_of(
        made(student_log_density), samplers.mala(0.1), NEGATIVE)),
    Case(15, "one sign wrong", "ours", "named", lambda: run_of(made(one_sign_wrong), samplers.mala(0.01), NO_LAW)),
    Case(15, "angle without a box, default run", "others", "named", lambda: run_of(angle, None, NO_LAW)),
    Case(15, "angle without a box, SGLD", "ours", "named", lambda: run_of(angle, samplers.sgld(0.1), NO_LAW)),
    Case(15, "angle in degrees", "ours", "named", lambda: run_of(made(degrees), samplers.mala(0.3), NO_LAW)),
    Case(15, "a normal law is not named", "ours", "no warning", lambda: proper(
        made(lambda x: (0.5 * (x**2).sum(axis=1), x)))),
    Case(15, "a mixture is not named", "ours", "no warning", lambda: proper(mixtures.five_spots())),
    Case(15, "100,000 chains of 100", "others", "mean 0.6", lambda: short_chains(100_000, 0.3, 100, 100, True)),
    Case(15, "3,000 chains of 40", "ours", "mean 0.6", lambda: short_chains(3_000, 0.5, 80, 40, True)),
    Case(15, "3,000 chains, no burn-in", "ours", "warned", lambda: short_chains(3_000, 0.1, 0, 60, False)),
    Case(15, "interrupted without draws", "others", "no number of 0 draws", lambda: without_draws(4, 200)),
    Case(15, "interrupted without draws, 1 chain", "ours", "no number of 0 draws", lambda: without_draws(1, 50)),
    Case(15, "seed of a run tuned twice", "others", "the seed given", lambda: printed_seed(0)),
    Case(15, "seed of a run tuned twice, 7", "ours", "the seed given", lambda: printed_seed(7)),
    Case(15, "Ctrl-C in a sweep", "others", "all columns", lambda: columns(2)),
    Case(15, "Ctrl-C in a sweep, one seed", "ours", "all columns", lambda: columns(1)),
    Case(15, "lost modes of a Python function", "others", "said", lambda: lost_mode(mixtures.cosine25(), 1.0)),
    Case(15, "lost modes, the other side", "ours", "said", lambda: lost_mode(mixtures.cosine25(), -1.0)),
    Case(15, "band of KL, 8 chains", "others", "above 1e-6", lambda: band(8)),
    Case(15, "band of KL, 4 chains", "ours", "above 1e-6", lambda: band(4)),
)  # fmt: skip
