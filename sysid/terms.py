"""The terms of a system that is linear in its parameters: what they may be, and whether they are its function's."""

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolkit.checks import check_number, check_text

Array = NDArray[np.float64]
Terms = Mapping[str, Mapping[str, float | str | Mapping[str, float]]]
SPREAD = 0.1  # of the points compared, about a start and usual parameters
N_POINTS = 4
AGREEMENT = 1e-4  # of the terms' sizes: names of waves have six digits of their frequency


def check_terms(terms: Any, states: tuple[str, ...], parameters: tuple[str, ...]) -> None:
    """Raise TypeError or ValueError where ``terms`` are no mapping as ``System`` has it, of these names."""
    for state, row in mapping("terms", terms).items():
        if state not in states:
            raise ValueError(f"terms must name states ({', '.join(states)}), got {state!r}")
        for label, coefficient in mapping(f"terms[{state!r}]", row).items():
            where = f"terms[{state!r}][{check_text(f'a name in terms[{state!r}]', label)!r}]"
            for name, factor in factors_of(coefficient).items():
                if name not in ("", *parameters):
                    raise ValueError(f"{where} must name parameters ({', '.join(parameters)}), got {name!r}")
                check_number(where, factor)


def mapping(name: str, value: Any) -> Mapping[Any, Any]:
    """``value`` where it is a mapping. Raises TypeError otherwise."""
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} must be a mapping, got {value!r:.200} of type {type(value).__name__}")
    return value


def factors_of(coefficient: Any) -> Mapping[str, Any]:
    """A term's coefficient as parameter → factor, "" for 1."""
    if isinstance(coefficient, Mapping):
        return coefficient
    return {coefficient: 1.0} if isinstance(coefficient, str) else {"": coefficient}


def check_equations(system: Any, slopes: Callable[..., Any]) -> None:
    """Raise ValueError where a state's terms are not its slope, at the start and points about it, at several times.

    slopes: function of (system, states and parameters, time). Equations with terms of a user's own are left out, as are
    points where the function is not finite.
    """
    draws = np.random.default_rng(0)
    usual = np.concatenate([system.start, system.usual])
    for k in range(N_POINTS):
        point = usual + (SPREAD * np.maximum(np.abs(usual), 1.0) * draws.standard_normal(usual.size) if k else 0.0)
        x, p = point[: system.dim], dict(zip(system.parameters, point[system.dim :], strict=True))
        found = slopes(system, point, float(k))
        for state, slope in zip(system.states, found, strict=True):
            values = [value_of(label, system.states, x) for label in system.terms.get(state, {})]
            if None in values or not np.isfinite(slope):
                continue
            parts = [
                value * sum(factor * p.get(name, 1.0) for name, factor in factors_of(coefficient).items())
                for value, coefficient in zip(values, system.terms.get(state, {}).values(), strict=True)
            ]
            if not abs(sum(parts) - slope) <= AGREEMENT * (np.abs(parts).sum() + abs(slope)):
                raise ValueError(
                    f"terms must be those of function, but d{state}/dt is {sum(parts):.6g} by terms and {slope:.6g} by "
                    f"function, {sum(parts) - slope:+.3g}, at t = {k}, x = {x.tolist()}, p = {list(p.values())}"
                )


def value_of(label: str, states: tuple[str, ...], x: Array) -> float | None:
    """A monomial or wave of ``libraries`` at a state (dim,), by its name; None for other names."""
    if label == "1":
        return 1.0
    factors = list(label) if all(len(state) == 1 for state in states) else label.split(" ")
    if factors and all(factor in states for factor in factors):
        return float(np.prod([x[states.index(factor)] for factor in factors]))
    wave = re.fullmatch(r"(sin|cos)\((?:([0-9.e+-]+) )?(.*)\)", label)
    if wave and wave[3] in states:
        angle = float(wave[2] or 1.0) * x[states.index(wave[3])]
        return float(np.sin(angle) if wave[1] == "sin" else np.cos(angle))
    return None
