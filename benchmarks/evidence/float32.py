"""What ``dtype="float32"`` loses: its elementary functions, single steps, and laws, beside float64 and theory."""

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, NamedTuple
from unittest import mock

import numpy as np
from numba import njit

from benchmarks.runner.plan import Plan
from benchmarks.runner.tables import Table, mean_and_error
from targets import constrained, mixtures, shapes
from toolkit import Sampler, sample, samplers, tempering
from toolkit._engine import driver, job
from toolkit._engine.cuda.compiling import interpreted
from toolkit._engine.cuda.float32 import twin
from toolkit._engine.cuda.kernel import INTERPRETED
from toolkit._engine.loop import advance
from toolkit._engine.settings import engine_numbers, parts_of, tempering_parameters
from toolkit._engine.state import Constants, Layout, Parts, Steps, make_blocks
from toolkit.boundaries.convex import no_domain
from toolkit.maths import elementary, special

from .laws import NORMAL, second_moment

Single = np.float32
KEPT = ("contour", "continuous", "masses")  # parts of a state that stay float64
NARROWED = ("gradient_noise", "energy_noise", "penalty")  # numbers of the engine that do not


class TwinEngine:
    """``CpuEngine`` in float32 by the device's functions, compiled for this processor: the same numbers, sooner."""

    counts_by_chunk = True
    may_have_diverged = True
    made_with: ClassVar[dict[str, str]] = {}
    threads = 1

    def __init__(self, asked: Any, wants_draws: bool, states: Any) -> None:
        problem, sampler = asked.problem, asked.sampler
        tempering = tempering_parameters(asked)
        target = problem.target
        own = lazily(target.energy_gradient) if target.stochastic else twin(target.energy_gradient)
        parts = parts_of(asked)
        # As in the simulator the loop and its phases are Python's, and only what they call is compiled, for seconds.
        phases = (interpreted(twin(phase), INTERPRETED) for phase in parts.phases)
        called = Parts(parts.tempering, own, twin(parts.move), lazily(parts.locate), twin(parts.temper), *phases)
        self._call = functools.partial(interpreted(twin(advance), INTERPRETED), called)
        domain = problem.domain or no_domain(target.dim)
        numbers = engine_numbers(asked)
        self._constants = Constants(
            numbers._replace(**{name: Single(getattr(numbers, name)) for name in NARROWED}),
            target.parameters if target.stochastic else target.parameters.astype(Single),
            np.array(sampler.dynamics.parameters, Single),
            tempering,
            domain.float_table,
            domain.int_table,
        )
        blocks = make_blocks(problem, sampler, asked.init, Layout(lanes=2**62), 1)
        kept = (
            *KEPT,
            *(["scratch"] if problem.target.stochastic else []),
            *(["mirror_point"] if problem.domain else []),
        )
        self.blocks = [block._replace(state=single(block.state, kept)) for block in blocks]

    def close(self) -> None:
        """There is nothing to release."""

    def fetch_accumulated(self) -> None:
        """Accumulators are the host's."""

    def run(self, pool: Any, first: int, factors: Any, slots: Any, trace_slots: Any, outputs: Any) -> None:
        """As ``CpuEngine.run``."""
        sizes, temperatures = factors.step_size.astype(Single), factors.temperature.astype(Single)
        for block in self.blocks:
            numbers = self._constants.numbers._replace(n_chains=block.last - block.first)
            own = outputs.of_chains(block.first, block.last)
            steps = Steps(first, sizes, temperatures, slots, trace_slots, own)
            self._call(block.state, self._constants._replace(numbers=numbers), steps)


@functools.cache
def lazily(function: Any) -> Any:
    """``function`` for arguments of any types."""
    return njit(error_model="numpy", _nrt=False)(function)


def single(state: Any, kept: tuple[str, ...]) -> Any:
    """``state`` with float32 in place of float64, but in the fields ``kept``."""
    values = {}
    for name, value in state._asdict().items():
        if isinstance(value, tuple):
            values[name] = value if name in kept else single(value, kept)
        else:
            with np.errstate(all="ignore"):  # scratch may hold anything
                values[name] = value.astype(Single) if value.dtype == np.float64 and name not in kept else value
    return type(state)(**values)


@contextlib.contextmanager
def twins_on_this_processor() -> Iterator[None]:
    """``sample(..., backend="cuda", dtype="float32")`` runs here meanwhile, in ``TwinEngine``."""
    with mock.patch.object(driver, "make_engine", TwinEngine), mock.patch.object(job, "check_backend"):
        yield


class Function(NamedTuple):
    """One of our functions of float32, what it should give, and the arguments for which it should."""

    name: str
    ours: Any
    exact: Callable[[Any], Any]
    low: float = -np.inf
    high: float = np.inf
    is_absolute: bool = False


def sine_of_turns(t: Any) -> Any:
    """sin 2πt."""
    return np.sin(2.0 * np.pi * (t - np.round(t)))


FUNCTIONS = (
    Function("exp", elementary.exp, np.exp),
    Function("exp_share", elementary.exp_share, np.exp, -86.0, 80.0),
    Function("log", elementary.log, np.log),
    Function("expm1", special.expm1, np.expm1),
    Function("log1p", special.log1p, np.log1p),
    Function("sinh", special.sinh, np.sinh, -88.7, 88.7),
    Function("cosh", special.cosh, np.cosh, -88.7, 88.7),
    Function("tanh", special.tanh, np.tanh),
    Function("asinh", special.asinh, np.arcsinh, -1.7e38, 1.7e38),
    Function("acosh", special.acosh, np.arccosh, -np.inf, 1.7e38),
    Function("atanh", special.atanh, np.arctanh),
    Function("atan", special.atan, np.arctan),
    Function("asin", special.asin, np.arcsin),
    Function("acos", special.acos, np.arccos),
    Function("sin", special.sin, np.sin, -(2.0**18), 2.0**18, True),
    Function("cos", special.cos, np.cos, -(2.0**18), 2.0**18, True),
    Function("sincos_turns, sine", elementary.sincos_turns, sine_of_turns, -(2.0**20), 2.0**20, True),
)


def every_float32(stride: int) -> Any:
    """Every ``stride``-th float32 by its bits, infinities and nans included."""
    return np.arange(0, 2**32, stride, dtype=np.uint64).astype(np.uint32).view(Single)


def error_of(function: Function, arguments: Any) -> float:
    """Largest error, in ulp of float32, or absolute in units of 2⁻²⁴; inf where an infinity or nan is wrong."""
    call, takes_first = twin(function.ours), function.ours is elementary.sincos_turns

    @njit(error_model="numpy")  # type: ignore[untyped-decorator]
    def loop(x):  # type: ignore[no-untyped-def]
        out = np.empty_like(x)
        for i in range(x.size):
            value = call(x[i])
            out[i] = value[0] if takes_first else value
        return out

    with np.errstate(all="ignore"):
        x = arguments[~((arguments < function.low) | (arguments > function.high))]
        found, wanted = loop(x), function.exact(x.astype(np.float64))
        rounded = wanted.astype(Single)
        size = np.spacing(np.maximum(np.abs(rounded), np.finfo(Single).tiny)).astype(np.float64)
        error = np.abs(found - wanted) / (2.0**-24 if function.is_absolute else size)
        finite = np.isfinite(rounded)
        right = (found == rounded) | (np.isnan(found) & np.isnan(rounded)) | (finite & np.isfinite(found))
    return float(error[finite].max()) if right.all() else float("inf")


FLOWER = constrained(mixtures.cosine25(), shapes.flower(petals=5, offset=3.0, radius=2.0))
SAMPLERS: dict[str, tuple[Any, Sampler]] = {
    "SGLD": (mixtures.cosine25(), samplers.sgld(1e-3)),
    "SGNHT": (mixtures.cosine25(), samplers.sgnht(1e-3)),
    "r2SGLD in the flower": (FLOWER, samplers.r2sgld(step_sizes=(1e-3, 3e-3), temperatures=(1.0, 10.0))),
    "ICSGLD": (mixtures.cosine25(), samplers.icsgld(1e-3, partition=tempering.Partition(-4.0, 0.5, 32))),
    "TACT-HMC": (mixtures.cosine25(), samplers.tact_hmc(1e-3)),
    "MALA": (mixtures.cosine25(), samplers.mala(5e-3)),
}


def in_float32(*arguments: Any, **options: Any) -> Any:
    """``sample`` in float32."""
    with twins_on_this_processor():
        return sample(*arguments, backend="cuda", dtype="float32", **options)


def starts(problem: Any, n_chains: int) -> Any:
    """Exact draws as float32, for both to begin at the same places."""
    return problem.truth.independent_draws(n_chains, seed=1).astype(Single).astype(np.float64)


def main(plan: Plan) -> None:
    """Print the tables."""
    fewer = 50 if plan.is_small else 1
    table = Table(plan.folder, "float32_functions", "function", "arguments", "largest error", "unit")
    arguments = every_float32(97 * fewer)
    for function in FUNCTIONS:
        unit = "2⁻²⁴, absolute" if function.is_absolute else "ulp"
        table.row(function.name, f"{function.low:g} … {function.high:g}", error_of(function, arguments), unit)

    print()
    columns = ("after 1 step: median", "largest", "after 100: median", "largest ")
    table = Table(plan.folder, "float32_steps", "sampler: relative distance from float64", *columns)
    for name, (problem, sampler) in SAMPLERS.items():
        n = 2000 // fewer
        options = {"n_steps": 100, "n_chains": n, "seed": 2, "init": starts(problem, n), "progress": False}
        runs = in_float32(problem, sampler, **options), sample(problem, sampler, **options)
        ours, theirs = (run.replica_draws[:, 0] for run in runs)
        apart = np.linalg.norm(ours - theirs, axis=2) / np.linalg.norm(theirs, axis=2)
        table.row(name, *(float(f(apart[:, i])) for i in (0, -1) for f in (np.median, np.max)))

    print()
    columns = ("float32", "standard error", "theory", "off by, σ", "float64", "float32 − float64", "its error")
    table = Table(plan.folder, "float32_laws", "law", *columns)
    for h, temperature in ((0.1, 1.0), (0.5, 1.0), (0.1, 0.01), (0.1, 100.0)):
        options = {"n_steps": 300, "burn_in": 299, "n_chains": 200_000 // fewer, "seed": 3}
        law, name = temperature / (1.0 - 0.5 * h), f"SGLD on N(0, 1), h = {h:g}, T = {temperature:g}: E x²"
        table.row(name, *compared(NORMAL, samplers.sgld(h, temperature=temperature), law, options))
    for name, (problem, sampler) in SAMPLERS.items():
        n = 2000 // fewer
        options = {"n_steps": 3000, "burn_in": 500, "thin": 5, "n_chains": n, "seed": 4, "init": starts(problem, n)}
        law = float(problem.truth.covariance[0, 0] + problem.truth.mean[0] ** 2)
        table.row(f"{name}: E x₁²", *compared(problem, sampler, law, options))


def compared(problem: Any, sampler: Sampler, law: float, options: dict[str, Any]) -> tuple[float, ...]:
    """A row of the table of laws."""
    with twins_on_this_processor():
        ours = second_moment(problem, sampler, backend="cuda", dtype="float32", progress=False, **options)
    theirs = second_moment(problem, sampler, **options)
    (mean, error), (difference, its_error) = mean_and_error(ours), mean_and_error(ours - theirs)
    return mean, error, law, (mean - law) / error, float(theirs.mean()), difference, its_error
