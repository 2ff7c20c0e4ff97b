"""Systems of a user's whose right-hand sides hold powers: derivatives at negative states, and what is learnt from data.

Duffing's oscillator, x'' = −k x³ − c x', and FitzHugh–Nagumo's, written with ** as in the textbooks. Each case runs in
a process of its own, which is given 60 seconds, or 180 where a sampler's engine may have to be compiled.
"""

import contextlib
import io
import multiprocessing
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

PATIENCE = 60.0  # s
TRUE = {"duffing": (1.0, 0.1), "fitzhugh_nagumo": (0.5, 0.7, 0.8, 0.08)}
NOISE = 0.05


def by_power(t: Any, x: Any, p: Any) -> Any:
    """Duffing's equation with a power."""
    return x[1], -p[0] * x[0] ** 3 - p[1] * x[1]


def by_product(t: Any, x: Any, p: Any) -> Any:
    """The same with a product."""
    return x[1], -p[0] * x[0] * x[0] * x[0] - p[1] * x[1]


def membrane(t: Any, x: Any, p: Any) -> Any:
    """FitzHugh's equations: x = (v, w), p = (I, a, b, ε)."""
    return x[0] - x[0] ** 3 / 3 - x[1] + p[0], p[3] * (x[0] + p[1] - p[2] * x[1])


def slope_at_minus_one() -> str:
    """The derivative of −x³ by the complex step of a system of a user's."""
    from sysid.systems.system import System
    from sysid.systems.user_systems import slopes_at

    system = System("cube", ("x",), ("k",), lambda t, x, p: (p[0] * x[0] ** 3,), np.ones(1), np.ones(1))
    return f"{slopes_at(system, np.array([-1.0 + 1e-40j, 1.0 + 0j])).imag[0] / 1e-40:.6g}"


def duffing(function: Callable[..., Any]) -> str:
    """k and c of a run, and the energy and its gradient at the truth."""
    import toolkit
    from sysid import Series, identify, systems
    from toolkit import sample, samplers

    names: dict[str, Any] = {"states": ("x", "v"), "parameters": ("k", "c")}
    system = systems.own(function, **names, usual=[0.5, 0.2], start=[1.0, 0.1])
    problem = identify(
        Series(*data_of(by_product, "duffing", (1.0, 0.0), 20.0), ("x", "v")), system, likelihood="trajectory"
    )
    scaled = problem.scaled()
    run = sample(
        scaled, samplers.mala(0.5), n_steps=4000, burn_in=1000, n_chains=8, init=scaled.starts(8, seed=0), seed=1
    )
    draws = scaled.parameters(run).reshape(-1, problem.dim)
    mean, sd = draws.mean(axis=0), draws.std(axis=0)
    truth = problem.positions(np.array([*TRUE["duffing"], 1.0, 0.0, NOISE, NOISE]))[None]
    energy = problem.target.evaluate(truth)[0][0]
    try:
        checked = str(toolkit.check_gradient(problem, points=truth)).split(":")[0]
    except Exception as error:
        checked = f"{error}"[:90]
    return (
        f"k = {mean[0]:.4f} ± {sd[0]:.2g}, c = {mean[1]:.4f} ± {sd[1]:.2g}, energy at the truth {energy:.2f}; {checked}"
    )


def fitzhugh_nagumo(start: tuple[float, float]) -> str:
    """The parameters found first, from a system whose ``start`` is this."""
    from sysid import Series, identify, systems

    system = systems.own(
        membrane, states=("v", "w"), parameters=("I", "a", "b", "eps"), usual=[0.4, 0.5, 0.5, 0.1], start=list(start)
    )
    series = Series(*data_of(membrane, "fitzhugh_nagumo", (-1.0, 1.0), 80.0), ("v", "w"))
    found = identify(series, system, likelihood="trajectory").prepared.start
    return f"I, a, b, eps = {', '.join(f'{value:.3f}' for value in found[:4])}"


def data_of(function: Callable[..., Any], name: str, start: tuple[float, float], until: float) -> Any:
    """Times and noisy states of a solution."""
    from sysid.solvers.integrate import solve
    from sysid.systems.system import System

    parameters = np.array(TRUE[name])
    labels = tuple(f"p{k}" for k in range(parameters.size))
    times = np.linspace(0.0, until, 101)
    states = solve(System(name, ("x", "y"), labels, function, parameters, np.array(start)), times).states
    return times, states + NOISE * np.random.default_rng(3).standard_normal(states.shape)


CASES: dict[str, tuple[Callable[..., str], tuple[Any, ...], str]] = {
    "slope of x**3 at -1 by the complex step": (slope_at_minus_one, (), "3"),
    "Duffing with x**3": (duffing, (by_power,), "as with x*x*x; k = 1, c = 0.1"),
    "Duffing with x*x*x": (duffing, (by_product,), "k = 1, c = 0.1"),
    "FitzHugh-Nagumo with v**3/3, start [-1, 1]": (fitzhugh_nagumo, ((-1.0, 1.0),), "0.5, 0.7, 0.8, 0.08"),
    "FitzHugh-Nagumo with v**3/3, start [1, 1]": (fitzhugh_nagumo, ((1.0, 1.0),), "0.5, 0.7, 0.8, 0.08"),
}


def told(function: Callable[..., str], arguments: tuple[Any, ...], answer: Any) -> None:
    """Send what a case gives, or what it raises."""
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        try:
            said = function(*arguments)
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
    answer.send(said)


def main() -> None:
    """Print each case's answer."""
    context = multiprocessing.get_context("fork")
    for what, (function, arguments, wanted) in CASES.items():
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=told, args=(function, arguments, theirs))
        process.start()
        patience = 3.0 * PATIENCE if function is duffing else PATIENCE
        said = ours.recv() if ours.poll(patience) else f"no answer within {patience:g} s"
        process.kill()
        process.join()
        print(f"{what}: {said} (wanted {wanted})")


if __name__ == "__main__":
    main()
