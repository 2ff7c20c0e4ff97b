"""Vector–Jacobian products of right-hand sides and of Runge–Kutta steps, for gradients through solutions."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from toolkit._compiler import inlined, set_recipe
from toolkit.maths.elementary import fma
from toolkit.maths.special import cos, sin

from ..libraries import Term, monomial_text
from ..model import Model
from ..systems.inputs import driven, inputs_text
from ..systems.system import System, analytic, compiled_function, tuple_text
from .runge_kutta import TABLEAUS, built, slope_of, step_text, weighted

KEPT_PULLBACKS = 16  # so that the places of one problem share one function
TINY, HUGE = 1e-40, 1e40  # of complex steps: far below rounding, far above the smallest number


@functools.lru_cache(maxsize=KEPT_PULLBACKS)
def pullback_of_system(system: System) -> Any:
    """``pull(t, x, p, w)`` → (Σ_e w_e ∂f_e/∂x, Σ_e w_e ∂f_e/∂p), by complex steps of the right-hand side: exact.

    Where the system has inputs, p is that of ``driven``; slopes are those in the parameters alone.
    """
    plain, dim = driven(system), system.dim
    pull = pullback_by_complex_steps(plain.rhs, dim, system.n_parameters, plain.n_parameters, dim)
    set_recipe(pull, pullback_of_system, system)
    return pull


def pullback_by_complex_steps(
    function: Callable[..., Any], dim: int, n_parameters: int, n_numbers: int, n_values: int
) -> Any:
    """``pull(t, x, p, w)`` of a function (t, x, p) → ``n_values`` numbers; p has ``n_numbers``, parameters first."""
    every = [f"x[{d}]" for d in range(dim)] + [f"p[{k}]" for k in range(n_numbers)]
    lines, pulls = ["def pull(t, x, p, w):"], []
    for k in range(dim + n_parameters):
        at = [f"{v} + {TINY if i == k else 0.0!r}j" for i, v in enumerate(every)]
        lines.append(f"    f{k} = rhs(t, {tuple_text(at[:dim])}, {tuple_text(at[dim:])})")
        pulls.append(summed([(f"f{k}[{e}].imag*{HUGE!r}", f"w[{e}]") for e in range(n_values)]))
    lines.append(f"    return {tuple_text(pulls[:dim])}, {tuple_text(pulls[dim:])}")
    return inlined(built("pull", "\n".join(lines), rhs=analytic(function), fma=fma))


@functools.lru_cache(maxsize=KEPT_PULLBACKS)
def pullback_of_model(model: Model) -> Any:
    """The same for a model linear in its parameters, as generated code; it costs about two right-hand sides."""
    dim, n = len(model.states), len(model.parameters)
    space: dict[str, Any] = {"sin": sin, "cos": cos, "fma": fma}
    used = np.flatnonzero(model.constant.any(axis=1) | model.directions.any(axis=(0, 2)))
    lines, n_inputs = ["def pull(t, x, p, w):"], len(model.library.inputs)
    if n_inputs:
        states, inputs = (f"y[{d}]" for d in range(dim)), inputs_text(n, n_inputs)
        lines = ["def pull(t, y, p, w):", f"    u = {inputs}"]
        lines.append(f"    x = {tuple_text([*states, *(f'u[{k}]' for k in range(n_inputs))])}")
    state_pulls: list[list[tuple[str, str]]] = [[] for _ in range(dim)]
    parameter_pulls: list[list[tuple[str, str]]] = [[] for _ in range(n)]
    for k in used.tolist():
        term = model.library.terms[k]
        if term.own is not None:
            space |= {f"own{k}": compiled_function(term.own), f"analytic{k}": analytic(term.own)}
        lines.append(f"    v{k} = {term.text.replace('own(', f'own{k}(')}")
        coefficients = []
        for e in range(dim):
            parts = [(repr(c), f"p[{j}]") for j, c in enumerate(model.directions[:, k, e].tolist()) if c]
            if parts or model.constant[k, e]:
                coefficients.append((summed(parts, repr(model.constant[k, e].item())), f"w[{e}]"))
        lines.append(f"    g{k} = {summed(coefficients)}")
        for d, slope in enumerate(slopes_of(term, k, dim, n_inputs)):
            if slope:
                state_pulls[d].append((f"g{k}", slope))
        for j in range(n):
            pushed = [(repr(c), f"w[{e}]") for e, c in enumerate(model.directions[j, k].tolist()) if c]
            if pushed:
                parameter_pulls[j].append((f"v{k}", summed(pushed)))
    pulls = (tuple_text([summed(rows) for rows in pulls]) for pulls in (state_pulls, parameter_pulls))
    lines.append(f"    return {', '.join(pulls)}")
    pull = inlined(built("pull", "\n".join(lines), **space))
    set_recipe(pull, pullback_of_model, model)
    return pull


def slopes_of(term: Term, k: int, dim: int, n_inputs: int) -> list[str]:
    """The texts of a term's derivatives in every state; empty where it has none."""
    if term.powers is not None:
        fallen = [tuple(q - (d == e) for e, q in enumerate(term.powers)) for d in range(dim)]
        return [f"{float(q)!r}*{monomial_text(fallen[d])}" if q else "" for d, q in enumerate(term.powers[:dim])]
    if term.own is not None:
        every = range(dim + n_inputs)
        points = [tuple_text([f"x[{e}] + {TINY if e == d else 0.0!r}j" for e in every]) for d in range(dim)]
        return [f"complex(analytic{k}({point})).imag*{HUGE!r}" for point in points]
    factor, state = term.text[len("sin(") : -1].split("*x")  # as ``fourier`` writes it
    wave = "cos" if term.text.startswith("sin") else "-sin"
    return [f"{factor}*{wave}({factor}*x[{d}])" if state == f"[{d}]" else "" for d in range(dim)]


def summed(products: list[tuple[str, str]], constant: str = "0.0") -> str:
    """The text of constant + Σ a b, by fused multiply-adds; a factor of one is left out."""
    text = constant
    for a, b in products:
        if text == "0.0":
            text = b if a == "1.0" else f"{a}*{b}"
        else:
            text = f"({text} + {b})" if a == "1.0" else f"fma({a}, {b}, {text})"
    return text


@functools.cache
def backward_step(rhs: Callable[..., Any], pull: Any, method: str, dim: int) -> Any:
    """``back(t, h, x, p, w, s)`` → slopes in x, and s plus slopes in p, of Σ_d w_d x_d(t + h), for a step from x.

    w: slopes (dim,) in the state after the step. Exact to rounding. Source: the discrete adjoint, Hager (2000).
    """
    stages, weights = TABLEAUS[method]
    lines = ["def back(t, h, x, p, w, s):", "    k0 = slope(t, x, p)", "    x0 = x"]
    for i, (node, row) in enumerate(stages, 1):
        lines.append(f"    x{i} = {step_text(row)}")
        if i < len(stages):
            lines.append(f"    k{i} = slope(t + {node!r}*h, x{i}, p)")
    zeros = tuple_text(["0.0"] * dim)
    for i in range(len(stages), -1, -1):
        later = [(row[i], f"y{j}") for j, (_, row) in enumerate(stages, 1) if i < len(row) and row[i]]
        pairs = [(weights[i], "w")] * bool(weights[i]) + later
        factors, tuples = "".join(f"{a!r}*h, " for a, _ in pairs), "".join(f"{name}, " for _, name in pairs)
        time = f"t + {stages[i - 1][0]!r}*h" if i else "t"
        lines.append(f"    y{i}, q{i} = pull({time}, x{i}, p, weighted({zeros}, ({factors}), ({tuples})))")
    ones = "1.0, " * len(weights)
    states, parameters = (", ".join(f"{name}{i}" for i in range(len(weights))) for name in "yq")
    lines.append(f"    return weighted(w, ({ones}), ({states},)), weighted(s, ({ones}), ({parameters},))")
    return inlined(built("back", "\n".join(lines), slope=slope_of(rhs), pull=pull, weighted=weighted))
