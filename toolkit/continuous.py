"""Continuous tempering: a replica heats and cools itself by a variable ξ of its own that scales its energy by λ(ξ)."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .checks import check_choice, check_count, check_flag, check_number

Floats = NDArray[np.float64]
BIASES = ("none", "abf", "metadynamics")
ABF, METADYNAMICS = 1.0, 2.0

# Rows of a lane: its state, carried from step to step; what the engine reads after each step; scratch.
XI, MOMENTUM, THERMOSTAT, DEPOSITS, COUNTED, RENEWED, SLOPE, ROOT, FORCE, CONTINUOUS_ROWS = range(10)
DRIFT, INJECTED, KICKS = range(3)  # √h_ξ, and the deviation √(2 c_ξ T) of what is injected


@dataclass(frozen=True)
class ContinuousTempering:
    """Numbers of the tempering variable, as ``continuous_tempering`` explains them."""

    top_temperature: float
    plateau: float
    step_size: float | None
    friction: float
    inertia: float
    bias: str
    n_bins: int
    height: float
    thermostat: bool
    resample_every: int

    def __post_init__(self) -> None:
        check_number("top_temperature", self.top_temperature, at_least=1.0)
        check_number("plateau", self.plateau, above=0.0, below=1.0)
        if self.step_size is not None:
            check_number("step_size", self.step_size, above=0.0)
        check_number("friction", self.friction, at_least=0.0)
        check_number("inertia", self.inertia, above=0.0)
        check_choice("bias", self.bias, BIASES)
        check_count("n_bins", self.n_bins, at_least=2, below=100_001)
        check_number("height", self.height, above=0.0)
        check_flag("thermostat", self.thermostat)
        check_count("resample_every", self.resample_every, at_least=1)
        if self.friction * self.steepest**2 >= 1.0:
            limit = 1.0 / self.steepest**2
            raise ValueError(
                f"friction must be < {limit:g}, which is 1 / max λ'² at top_temperature={self.top_temperature} and "
                f"plateau={self.plateau}, or the momentum of ξ overshoots; got {self.friction}"
            )

    @property
    def growth(self) -> float:
        """The a of 1/λ = 1 + a (|ξ| − plateau)³."""
        return (self.top_temperature - 1.0) / (1.0 - self.plateau) ** 3

    @property
    def steepest(self) -> float:
        """The largest |λ'|: where a (|ξ| − plateau)³ = 1/2, or at the wall where that lies beyond it."""
        if self.growth == 0.0:
            return 0.0
        excess = min(1.0 / math.cbrt(2.0 * self.growth), 1.0 - self.plateau)
        return 3.0 * self.growth * excess**2 / (1.0 + self.growth * excess**3) ** 2

    def coupling(self, xi: Floats) -> tuple[Floats, Floats]:
        """λ and λ' at ``xi`` (any shape): a replica of temperature T has the effective temperature T / λ(ξ)."""
        excess = np.maximum(np.abs(xi) - self.plateau, 0.0)
        scale = 1.0 / (1.0 + self.growth * excess**3)
        return scale, -3.0 * self.growth * excess**2 * scale**2 * np.sign(xi)

    def parameters(self) -> Floats:
        """The numbers as ``temper_continuously`` takes them."""
        plateau = self.plateau if self.growth > 0.0 else 1.0  # without tempering λ is 1 everywhere
        numbers = (plateau, self.growth, self.step_size or 0.0, self.friction, self.inertia)
        return np.array((*numbers, BIASES.index(self.bias), self.height, self.thermostat, self.resample_every))

    def start(self, temperature: Floats, normals: Floats) -> tuple[Floats, Floats, Floats]:
        """Rows (CONTINUOUS_ROWS, lane), bias and visits (n_bins, lane) before the first step: ξ = 0, λ = 1, z = c.

        temperature, normals: (lane,); ξ's momentum starts as √T times its standard normal.
        """
        rows = np.zeros((CONTINUOUS_ROWS, temperature.size))
        rows[MOMENTUM] = np.sqrt(temperature) * normals
        rows[THERMOSTAT] = self.friction
        rows[COUNTED] = 1.0
        return rows, np.zeros((self.n_bins, temperature.size)), np.zeros((self.n_bins, temperature.size))


def continuous_tempering(
    *,
    top_temperature: float = 6.0,
    plateau: float = 0.1,
    step_size: float | None = None,
    friction: float = 0.05,
    inertia: float = 1.0,
    bias: str = "abf",
    n_bins: int = 20,
    height: float = 2e-3,
    thermostat: bool = True,
    resample_every: int = 50,
) -> ContinuousTempering:
    """Temper each replica by a variable ξ of its own: particle and ξ follow the Hamiltonian λ(ξ) U + p²/2 + p_ξ²/2.

    1/λ(ξ) is 1 for |ξ| ≤ plateau and 1 + a (|ξ| − plateau)³ beyond; walls at |ξ| = 1, off which ξ bounces.
    At fixed ξ the position's law is exp(−λ(ξ) U / T), so a draw counts (weight 1) only where λ(ξ) = 1, and has weight
    0 elsewhere. Once the bias has settled ξ is uniform on [−1, 1], and a share ``plateau`` of the draws counts.
    While a schedule holds the temperature at 0, ξ, its thermostat and its bias rest.

    top_temperature: the effective temperature 1/λ at the walls, ≥ 1, in units of the replica's own; 1: no tempering.
    plateau: in (0, 1).
    step_size: h_ξ > 0 of ξ ← ξ + √h_ξ p_ξ; None means that of the dynamics, in the paper's η (a squared time).
    friction: c_ξ ≥ 0, which injects noise of variance 2 c_ξ T λ'² a step; the start value of the thermostat.
    inertia: γ_ξ > 0. With energy noise of variance v the thermostat's law is N(c_ξ + h_ξ v / (2T), h_ξ T / γ_ξ), to
    first order in h_ξ. Friction must not overshoot: the thermostat times max λ'² has to stay well below 1 (max λ' =
    (4/3) (a/4)^⅓, 1.6 at the defaults), which noisy energies and a small inertia may break; p_ξ then diverges.
    bias: ``"abf"``, the running mean of λ'(ξ) Ũ in each bin; ``"metadynamics"``, a potential that grows where ξ has
    been, whose slope is the force; ``"none"``: ξ lingers where the free energy is low, which is far from the plateau.
    n_bins: bins of |ξ| in [0, 1]. λ is even, so bins at ξ and −ξ are one, which halves the variance of the mean.
    height: of a deposit in units of T; at the k-th it is min(height, n_bins / k), so that the potential settles. Each
    warms ξ a little, so keep it well below the friction.
    thermostat: False holds the friction at c_ξ, which is right only where energies have no noise.
    resample_every: steps after which the momenta of ξ and of the replica are drawn afresh where λ' = 0.

    Biased at finite step, to first order in h_ξ. A constant added to U is the bias's to cancel, but a large one costs.
    Source: TACT-HMC (2018), eqs. 5, 6, 10, 11 and algorithm 1, whose weight of 1/k is read as one over the visits of
    the bin, and "λ = 0" as λ' = 0; coupling, plateau and metadynamics as in the authors' code, which however uses the
    potential itself as the force. Raises TypeError or ValueError naming the argument where something is off.
    """
    return ContinuousTempering(
        top_temperature, plateau, step_size, friction, inertia, bias, n_bins, height, thermostat, resample_every
    )
