"""Points 11 to 14: modes in regions, windows, reflection at balls, names of rows of memory."""

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import scipy

from targets import constrained, domains, mixtures, shapes, with_truth
from tests.support.laws import gaussian
from toolkit import Sampler, boundaries, dynamics, sample, samplers, stopping, target, tempering
from toolkit._compiler import inlined
from toolkit.dynamics.baoab_splitting import move_baoab
from toolkit.problem import Problem, Spread

from .case import RIGHT, SILENT, WARNED, Case, Outcome, classified

UNKNOWN = "modes"  # a part of the message by which modes may be refused
BIAS = 0.02  # of E|x|², above which a run must warn


def well(k: float, q: float, tilt: float = 0.0) -> Any:
    """k (x² − 1)² + t x + q y², as a user writes it."""

    @target(dim=2)
    def quartic_well(x):  # type: ignore[no-untyped-def]
        g = x[0] ** 2 - 1.0
        return k * g * g + tilt * x[0] + q * x[1] ** 2, (4.0 * k * g * x[0] + tilt, 2.0 * q * x[1])

    return quartic_well


def ridge(precision: float, spread: float) -> Any:
    """N(0, 1) of x₀, and x₁ about x₀²."""

    @target(dim=2)
    def bent(x):  # type: ignore[no-untyped-def]
        a = x[1] - x[0] ** 2
        slope = x[0] - 2.0 * precision * a * x[0]
        return 0.5 * x[0] ** 2 + 0.5 * precision * a * a, (slope, precision * a)

    return replace(bent, spread=Spread(spread))


@target(dim=1)
def line_well(x):  # type: ignore[no-untyped-def]
    """Two wells of a line."""
    g = x[0] ** 2 - 1.0
    return 3.0 * g * g - 0.4 * x[0], (12.0 * g * x[0] - 0.4,)


def left_share(k: float, tilt: float, low: float, high: float) -> float:
    """The probability left of the top between the wells, from ``low`` to ``high``."""

    def density(x: float) -> float:
        return float(np.exp(-k * (x * x - 1.0) ** 2 - tilt * x))

    top = scipy.optimize.minimize_scalar(density, bounds=(-0.5, 0.5), method="bounded", options={"xatol": 1e-12}).x
    left = scipy.integrate.quad(density, low, top, epsabs=0.0, epsrel=1e-11)[0]
    return float(left / (left + scipy.integrate.quad(density, top, high, epsabs=0.0, epsrel=1e-11)[0]))


def modes_in(own: Any, region: Any, k: float, tilt: float) -> Outcome:
    """Weights of two wells in a region that reaches over ±2."""
    right = np.sort([left_share(k, tilt, -2.0, 2.0), 1.0 - left_share(k, tilt, -2.0, 2.0)])
    return classified(
        lambda: constrained(own, region).truth.modes.weights,  # type: ignore[union-attr]
        lambda weights: len(weights) == 2 and np.abs(np.sort(weights) - right).max() < 1e-5,
        refusal=UNKNOWN,
    )


def stops(own: Any, region: Any) -> Outcome:
    """All chains in one well: a condition on the modes must not be met."""

    def run() -> str:
        done = sample(
            constrained(own, region), samplers.sgld(2e-4, boundary=boundaries.reflect()), n_chains=4, n_steps=4_000,
            init=[1.0, 0.0], seed=0, until=stopping.mcse(0.2, of="modes"), progress=False,
        )  # fmt: skip
        assert done.stopping is not None
        return f"{'met' if done.stopping.conditions[0].met else 'not met'} after {done.n_steps} steps"

    return classified(run, lambda found: found.startswith("not met"), refusal=UNKNOWN)


def window_of(own: Any, log_normaliser: float, modes: int, **given: Any) -> Outcome:
    """log Z to 1e-6, and the number of modes."""

    def run() -> tuple[float, int]:
        truth: Any = with_truth(own, **given).truth
        return truth.log_normaliser - log_normaliser, len(truth.modes.weights)

    return classified(run, lambda found: abs(found[0]) < 1e-6 and found[1] == modes)


def log_normaliser_of_well(k: float, q: float) -> float:
    """log ∫ exp(−U) of ``well``."""
    one = scipy.integrate.quad(
        lambda x: np.exp(-k * (x * x - 1.0) ** 2), -8.0, 8.0, epsabs=0.0, epsrel=1e-12, limit=500, points=[-1, 0, 1]
    )[0]
    return float(np.log(one) + 0.5 * np.log(np.pi / q))


def basin_weight(k: float, tilt: float) -> Outcome:
    """The weight of the deeper well is what lies on its side of the top."""
    right = left_share(k, tilt, -8.0, 8.0)
    return classified(
        lambda: float(with_truth(well(k, 0.5, tilt), window=(-8.0, 8.0, -12.0, 12.0)).truth.modes.weights[0]),  # type: ignore[union-attr]
        lambda weight: abs(weight - right) < 2e-6,
    )


def second_moment(nu: float) -> Outcome:
    """The variance of Student's t to the stated accuracy."""

    @target(dim=1)
    def student(x):  # type: ignore[no-untyped-def]
        return 0.5 * (nu + 1.0) * np.log(1.0 + x[0] ** 2 / nu), ((nu + 1.0) * x[0] / (nu + x[0] ** 2),)

    def run() -> tuple[float, float]:
        truth: Any = with_truth(student).truth
        return float(truth.covariance[0, 0]) * (nu - 2.0) / nu - 1.0, truth.accuracy

    return classified(run, lambda found: abs(found[0]) <= found[1], refusal="second moment")


def in_a_ball(dim: int, step_size: float, friction: float) -> Outcome:
    """Reflected SGHMC of a flat energy in the unit ball: right to 5 % in E|x|², or warned."""
    move = dynamics.underdamped_langevin(friction=friction)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = sample(
            Problem(gaussian(1e-6 * np.eye(dim)), domains.ball([0.0] * dim, 1.0).domain),  # type: ignore[no-untyped-call]
            Sampler("sghmc", (step_size,), dynamics=move, boundary=boundaries.reflect()),
            n_steps=6_000, burn_in=2_000, n_chains=64, thin=4, init=[0.0] * dim, seed=1, progress=False,
        )  # fmt: skip
    squared = (run.draws**2).sum(axis=2)
    second, sixth = squared.mean() * (dim + 2.0) / dim - 1.0, (squared**3).mean() * (dim + 6.0) / dim - 1.0
    said = [sentence for sentence in run.warnings if "too small: steps of" in sentence]
    shown = f"E|x|² {second:+.1%}, E|x|⁶ {sixth:+.1%}; {said[0] if said else 'no warning'}"
    if abs(second) > BIAS:
        return Outcome(WARNED if said else SILENT, shown)
    return Outcome(RIGHT, shown)


move_rest = inlined(move_baoab)


def move_with_log(lanes: Any, memory: Any, parameters: Any, changes: Any) -> None:
    """BAOAB, with a first row of memory that nothing reads."""
    for lane in range(lanes.step_size.size):
        memory[0, lane] = 10.0 * lanes.step_size[lane]
    move_rest(lanes, memory[1:], parameters, changes)


def names_of_rows(name: str) -> Outcome:
    """Draws must not depend on the name of a row of memory."""

    def draws(row: str) -> Any:
        base = dynamics.baoab(friction=0.5)
        own = base._replace(
            name="mine", memory=(row, *base.memory), memory_start=(1.0, *base.memory_start), move=move_with_log
        )
        sampler = Sampler("mine", (0.02, 0.05), (1.0, 4.0), dynamics=own, tempering=tempering.replica_exchange())
        run = sample(
            mixtures.cosine25(), sampler, n_steps=400, n_chains=4, seed=1, keep_replicas=True, progress=False, threads=1
        )
        return run.replica_draws

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        equal = bool(np.array_equal(draws(name), draws("other")))
    return Outcome(RIGHT if equal else SILENT, f"draws are {'equal' if equal else 'different'}")


BOX = domains.box([-2.0, -2.0], [2.0, 2.0])
SQUARE = shapes.polygon_of("square", [[-2, -2], [2, -2], [2, 2], [-2, 2]])
OTHERS = well(8.0, 2.0, 0.1)

CASES = (
    Case(11, "modes in a box", "others", "0.54848, 0.45152", lambda: modes_in(OTHERS, BOX, 8.0, 0.1)),
    Case(11, "modes in a polygon", "others", "0.54848, 0.45152", lambda: modes_in(OTHERS, SQUARE, 8.0, 0.1)),
    Case(11, "until mcse of modes", "others", "not met", lambda: stops(OTHERS, BOX)),
    Case(11, "a lower barrier", "ours", "quad on either side", lambda: modes_in(well(3.0, 1.0, -0.4), BOX, 3.0, -0.4)),
    Case(11, "a line", "ours", "quad", lambda: modes_in(line_well, domains.box([-2.0], [2.0]), 3.0, -0.4)),
    Case(11, "until in a polygon", "ours", "not met", lambda: stops(well(12.0, 1.0), SQUARE)),
    *(
        Case(
            12, f"with_truth, k {k:g}, q {q:g}", "others" if k in (1.0, 2.0, 8.0) else "ours", "log Z, two modes",
            lambda k=k, q=q: window_of(well(k, q), log_normaliser_of_well(k, q), 2),
        )
        for k, q in [*((k, q) for k in (1.0, 2.0, 8.0) for q in (0.5, 2.0)), (20.0, 0.1), (3.0, 1e-3)]
    ),
    *(
        Case(
            12, f"bent ridge, {precision:g}, Spread({spread:g})", posed, "log Z to 1e-6, one mode",
            lambda p=precision, s=spread: window_of(ridge(p, s), float(np.log(2.0 * np.pi / np.sqrt(p))), 1),
        )
        for precision, spread, posed in ((100.0, 4.0, "others"), (10.0, 4.0, "ours"), (400.0, 4.0, "ours"))
    ),
    Case(
        12, "window=[[a, b], [c, d]]", "others", "taken",
        lambda: window_of(well(2.0, 1.0), log_normaliser_of_well(2.0, 1.0), 2, window=[[-3.0, 3.0], [-7.0, 7.0]]),
    ),
    Case(12, "weights at the barrier", "others", "quad on either side", lambda: basin_weight(2.0, 0.8)),
    Case(12, "weights, lower barrier", "ours", "quad on either side", lambda: basin_weight(1.2, 0.5)),
    Case(12, "Student's t, 3 dof", "ours", "variance 3", lambda: second_moment(3.0)),
    Case(12, "Student's t, 2.1 dof", "ours", "refused", lambda: second_moment(2.1)),
    *(
        Case(
            13, f"SGHMC in a ball of {dim}, h {h:g}, friction {c:g}", posed, "E|x|² d/(d + 2) to 2 %, or warned",
            lambda dim=dim, h=h, c=c: in_a_ball(dim, h, c),
        )
        for dim, h, c, posed in (
            (6, 4e-3, 0.1, "others"), (6, 1e-3, 0.1, "others"), (6, 2.5e-4, 0.1, "others"), (10, 2e-3, 0.1, "ours"),
            (3, 1e-2, 0.1, "ours"), (6, 1e-3, 0.02, "ours"), (6, 1e-3, 0.5, "ours"),
        )
    ),
    Case(14, "a row called thermostat", "others", "equal draws", lambda: names_of_rows("thermostat")),
    Case(14, "rows called thermostat_log", "ours", "equal draws", lambda: names_of_rows("thermostat_log")),
)  # fmt: skip
