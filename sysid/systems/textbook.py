"""Systems of the textbooks, with their usual numbers."""

from typing import Any

import numpy as np

from ..arrays import Array
from .system import System


def lorenz_rhs(t: Any, x: Any, p: Any) -> Any:
    """Convection in three modes."""
    return p[0] * (x[1] - x[0]), x[0] * (p[1] - x[2]) - x[1], x[0] * x[1] - p[2] * x[2]


def lorenz() -> System:
    """ẋ = σ (y − x), ẏ = x (ρ − z) − y, ż = x y − β z; chaotic at σ, ρ, β = 10, 28, 8/3.

    Source: Lorenz (1963); largest Lyapunov exponent 0.9056 of Sprott (2003), Chaos and Time-Series Analysis.
    """
    return System(
        "lorenz", ("x", "y", "z"), ("sigma", "rho", "beta"), lorenz_rhs, np.array([10.0, 28.0, 8.0 / 3.0]),
        np.array([-8.0, 7.0, 27.0]),
        terms={
            "x": {"x": {"sigma": -1.0}, "y": {"sigma": 1.0}},
            "y": {"x": "rho", "y": -1.0, "xz": -1.0},
            "z": {"z": {"beta": -1.0}, "xy": 1.0},
        },
        lyapunov=0.9056,
        source="Lorenz (1963), J. Atmos. Sci. 20, 130; exponent: Sprott (2003)",
    )  # fmt: skip


def lotka_volterra_rhs(t: Any, x: Any, p: Any) -> Any:
    """Prey that grows and is eaten, and predators."""
    return p[0] * x[0] - p[1] * x[0] * x[1], p[2] * x[0] * x[1] - p[3] * x[1]


def lotka_volterra_invariant(states: Array, parameters: Array) -> Array:
    """δ prey − γ log prey + β predator − α log predator."""
    alpha, beta, delta, gamma = parameters
    prey, predator = np.asarray(states).T
    return np.asarray(delta * prey - gamma * np.log(prey) + beta * predator - alpha * np.log(predator))


def lotka_volterra() -> System:
    """ẋ = α x − β x y, ẏ = δ x y − γ y, of prey x and predators y: closed orbits about (γ/δ, α/β).

    Source: Lotka (1925), Volterra (1926).
    """
    return System(
        "lotka_volterra", ("prey", "predator"), ("alpha", "beta", "delta", "gamma"), lotka_volterra_rhs,
        np.array([1.0, 0.1, 0.075, 1.5]), np.array([10.0, 5.0]),
        terms={
            "prey": {"prey": "alpha", "prey predator": {"beta": -1.0}},
            "predator": {"prey predator": "delta", "predator": {"gamma": -1.0}},
        },
        invariant=lotka_volterra_invariant,
        lyapunov=0.0,
        source="Lotka (1925); Volterra (1926), Nature 118, 558; exponent: its orbits are closed",
    )  # fmt: skip


def rossler_rhs(t: Any, x: Any, p: Any) -> Any:
    """A spiral that folds."""
    return -x[1] - x[2], x[0] + p[0] * x[1], p[1] + x[2] * (x[0] - p[2])


def rossler() -> System:
    """ẋ = −y − z, ẏ = x + a y, ż = b + z (x − c); chaotic at a, b, c = 0.2, 0.2, 5.7.

    Source: Rössler (1976); largest Lyapunov exponent 0.0714 of Sprott (2003), Chaos and Time-Series Analysis.
    """
    return System(
        "rossler", ("x", "y", "z"), ("a", "b", "c"), rossler_rhs, np.array([0.2, 0.2, 5.7]), np.array([1.0, 1.0, 1.0]),
        terms={
            "x": {"y": -1.0, "z": -1.0},
            "y": {"x": 1.0, "y": "a"},
            "z": {"1": "b", "z": {"c": -1.0}, "xz": 1.0},
        },
        lyapunov=0.0714,
        source="Rössler (1976), Phys. Lett. A 57, 397; exponent: Sprott (2003)",
    )  # fmt: skip


def van_der_pol_rhs(t: Any, x: Any, p: Any) -> Any:
    """An oscillator whose damping changes its sign with the amplitude."""
    return x[1], p[0] * (1.0 - x[0] * x[0]) * x[1] - x[0]


def van_der_pol() -> System:
    """ẋ = y, ẏ = μ (1 − x²) y − x: one limit cycle for every μ > 0; stiff for large μ.

    Source: van der Pol (1926).
    """
    return System(
        "van_der_pol", ("x", "y"), ("mu",), van_der_pol_rhs, np.array([1.0]), np.array([2.0, 0.0]),
        terms={"x": {"y": 1.0}, "y": {"x": -1.0, "y": "mu", "xxy": {"mu": -1.0}}},
        lyapunov=0.0,
        source="van der Pol (1926), Phil. Mag. 2, 978; exponent: it has a limit cycle",
    )  # fmt: skip


def fitzhugh_nagumo_rhs(t: Any, x: Any, p: Any) -> Any:
    """A membrane that fires, and its recovery."""
    return x[0] - x[0] * x[0] * x[0] / 3.0 - x[1] + p[3], (x[0] + p[0] - p[1] * x[1]) / p[2]


def fitzhugh_nagumo() -> System:
    """v̇ = v − v³/3 − w + I, ẇ = (v + a − b w)/τ: fires again and again at a, b, τ, I = 0.7, 0.8, 12.5, 0.5.

    Not linear in its parameters. Source: FitzHugh (1961), Nagumo et al. (1962).
    """
    return System(
        "fitzhugh_nagumo", ("voltage", "recovery"), ("a", "b", "tau", "current"), fitzhugh_nagumo_rhs,
        np.array([0.7, 0.8, 12.5, 0.5]), np.array([-1.0, 1.0]),
        lyapunov=0.0,
        source="FitzHugh (1961), Biophys. J. 1, 445; Nagumo et al. (1962); exponent: it has a limit cycle",
    )  # fmt: skip


def sir_rhs(t: Any, x: Any, p: Any) -> Any:
    """Infections by contact, and recoveries."""
    infections, recoveries = p[0] * x[0] * x[1], p[1] * x[1]
    return -infections, infections - recoveries, recoveries


def sir_total(states: Array, parameters: Array) -> Array:
    """The whole population."""
    return np.asarray(np.asarray(states).sum(axis=1))


def sir() -> System:
    """Ṡ = −β S I, İ = β S I − γ I, Ṙ = γ I, in shares of a population: an epidemic where β S > γ.

    Source: Kermack & McKendrick (1927).
    """
    return System(
        "sir", ("susceptible", "infected", "recovered"), ("beta", "gamma"), sir_rhs, np.array([0.3, 0.1]),
        np.array([0.99, 0.01, 0.0]),
        time_unit="day",
        units=("share",) * 3,
        terms={
            "susceptible": {"susceptible infected": {"beta": -1.0}},
            "infected": {"infected": {"gamma": -1.0}, "susceptible infected": "beta"},
            "recovered": {"infected": "gamma"},
        },
        invariant=sir_total,
        source="Kermack & McKendrick (1927), Proc. R. Soc. A 115, 700",
    )  # fmt: skip


def damped_pendulum_rhs(t: Any, x: Any, p: Any) -> Any:
    """A pendulum of any amplitude, with friction in proportion to its speed."""
    return x[1], -p[0] * x[1] - p[1] * np.sin(x[0])


def damped_pendulum() -> System:
    """θ̇ = ω, ω̇ = −b ω − k sin θ, with damping b and k = gravity over length: its energy ω²/2 − k cos θ falls by b ω².

    Linear in its parameters, with the term "sin(angle)" of ``libraries.fourier``. Source: textbooks of mechanics.
    """
    return System(
        "damped_pendulum", ("angle", "velocity"), ("damping", "stiffness"), damped_pendulum_rhs,
        np.array([0.1, 9.81]), np.array([2.0, 0.0]),
        time_unit="s",
        units=("rad", "rad/s"),
        terms={
            "angle": {"velocity": 1.0},
            "velocity": {"velocity": {"damping": -1.0}, "sin(angle)": {"stiffness": -1.0}},
        },
        source="Newton's second law; g = 9.81 m/s² and a length of 1 m",
    )  # fmt: skip


def catalogue() -> dict[str, System]:
    """All of these systems, by name."""
    made = (lorenz(), lotka_volterra(), rossler(), van_der_pol(), fitzhugh_nagumo(), sir(), damped_pendulum())
    return {system.name: system for system in made}
