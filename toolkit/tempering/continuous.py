"""Continuous tempering: a replica heats and cools itself by a variable ξ of its own that scales its energy by λ(ξ)."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numba import uint64
from numpy.typing import NDArray

from .._compiler.block_rows import CONTINUOUS, FIRST_NORMAL, LAMBDA, NOISY_ENERGY, STEP_SIZE, TEMPERATURE
from .._compiler.decorators import inlined, kernel
from ..errors import check_choice, check_count, check_flag, check_number
from ..maths.elementary import fma, select, smaller
from ..maths.philox import COUPLING, REFRESH, fill_normals
from .interface import Tempering, scale_gradients

Floats = NDArray[np.float64]
BIASES = ("none", "abf", "metadynamics")
ABF, METADYNAMICS = 1.0, 2.0

# Rows of a lane: its state, carried from step to step; what the engine reads after each step; scratch.
XI, MOMENTUM, THERMOSTAT, DEPOSITS, COUNTED, RENEWED, SLOPE, ROOT, FORCE, CONTINUOUS_ROWS = range(10)
DRIFT, INJECTED, KICKS = range(3)  # √h_ξ, and the deviation √(2 c_ξ T) of what is injected


@dataclass(frozen=True)
class ContinuousTempering(Tempering):
    """Numbers of the tempering variable, as ``continuous_tempering`` explains them."""

    kind = CONTINUOUS
    reads_energies = True
    is_weighted = True
    couples = True
    keeps_law = False
    scratch_rows = KICKS

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

    @property
    def step(self) -> Callable[..., None]:
        """The block function of one step."""
        return temper_by_coupling

    def parameters(self, burn_in: int = 0, energy_noise: float = 0.0) -> Floats:
        """The numbers as ``temper_continuously`` takes them."""
        plateau = self.plateau if self.growth > 0.0 else 1.0  # without tempering λ is 1 everywhere
        numbers = (plateau, self.growth, self.step_size or 0.0, self.friction, self.inertia)
        return np.array((*numbers, BIASES.index(self.bias), self.height, self.thermostat, self.resample_every))

    def with_half_step(self) -> "ContinuousTempering":
        """The same with half the step size of ξ, where it has one of its own."""
        return self if self.step_size is None else replace(self, step_size=0.5 * self.step_size)

    def words(self, n_replicas: int) -> str:
        """The top temperature and the bias."""
        return f"continuous tempering to temperature {self.top_temperature:g} ({self.bias})"

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


@inlined
def coupling(xi, plateau, growth):
    """λ(ξ) and λ'(ξ)."""
    excess = select(abs(xi) > plateau, abs(xi) - plateau, 0.0)
    scale = 1.0 / fma(growth * excess * excess, excess, 1.0)
    slope = 3.0 * growth * excess * excess * scale * scale
    return scale, select(xi > 0.0, -slope, slope)


@kernel
def find_kicks(kicks, step_size, temperature, parameters):
    """kicks (KICKS, lane) ← what step sizes and temperatures give, for ``temper_continuously``."""
    for lane in range(temperature.size):
        h = select(parameters[2] > 0.0, parameters[2], step_size[lane])
        kicks[DRIFT, lane] = math.sqrt(h)
        kicks[INJECTED, lane] = math.sqrt(2.0 * parameters[3] * temperature[lane])


@kernel
def temper_continuously(state, kicks, noisy_energy, temperature, scale, normals, parameters, step):
    """One step of ξ in every lane; true where momenta were due to be drawn afresh, and were where RENEWED is not 0.

    state: rows, bias and visits of ξ. scale: (lane,), set to λ at the ξ where the step begins. normals: (2, lane), for
    the kick and for fresh momenta. COUNTED is set by the ξ where it ends, which belongs to the position that the move
    to come will reach.
    """
    rows, noise, fresh = state.rows, normals[0], normals[1]
    plateau, growth, inertia = parameters[0], parameters[1], parameters[4]
    lanes = scale.size
    xi, momentum, thermostat, weight, slope = rows[XI], rows[MOMENTUM], rows[THERMOSTAT], rows[COUNTED], rows[SLOPE]
    root, force, renewed, drift, injected = rows[ROOT], rows[FORCE], rows[RENEWED], kicks[DRIFT], kicks[INJECTED]
    for lane in range(lanes):
        scale[lane], slope[lane] = coupling(xi[lane], plateau, growth)
    for lane in range(lanes):
        moves = (temperature[lane] > 0.0) & (noisy_energy[lane] - noisy_energy[lane] == 0.0)
        root[lane] = select(moves, drift[lane], 0.0)

    due = step % np.int64(parameters[8]) == 0
    if due:
        for lane in range(lanes):
            renews = (slope[lane] == 0.0) & (root[lane] > 0.0)
            renewed[lane] = select(renews, 1.0, 0.0)
            momentum[lane] = select(renews, math.sqrt(temperature[lane]) * fresh[lane], momentum[lane])
    if parameters[7] != 0.0:
        for lane in range(lanes):
            rate = slope[lane] * root[lane]
            share = 1.0 - 0.5 * slope[lane] * slope[lane] * thermostat[lane]  # as in Nosé–Hoover dynamics
            heat = fma(share * momentum[lane], momentum[lane], -temperature[lane])
            thermostat[lane] += select(root[lane] > 0.0, rate * rate * heat / inertia, 0.0)
    push_and_learn(rows, state.bias, state.visits, noisy_energy, temperature, parameters[5], parameters[6])
    for lane in range(lanes):
        kick = slope[lane] * fma(injected[lane], noise[lane], -root[lane] * noisy_energy[lane])
        damping = slope[lane] * slope[lane] * thermostat[lane]
        kicked = fma(-damping, momentum[lane], momentum[lane]) + fma(root[lane], force[lane], kick)
        momentum[lane] = select(root[lane] > 0.0, kicked, momentum[lane])
    for lane in range(lanes):
        moved = fma(root[lane], momentum[lane], xi[lane])
        inside = abs(moved) <= 1.0  # false for nan, so that ξ always lies in a bin
        xi[lane] = select(inside, moved, xi[lane])
        momentum[lane] = select(inside, momentum[lane], -momentum[lane])
        weight[lane] = select(abs(xi[lane]) <= plateau, 1.0, 0.0)
    return due


@kernel
def push_and_learn(rows, bias, visits, noisy_energy, temperature, kind, height):
    """Read the bias's force on ξ at every lane into FORCE, then learn from this step; lane by lane, for its tables."""
    xi, slope, root, force, deposits = rows[XI], rows[SLOPE], rows[ROOT], rows[FORCE], rows[DEPOSITS]
    n_bins = bias.shape[0]
    for lane in range(force.size):
        place = abs(xi[lane]) * n_bins
        side = select(xi[lane] < 0.0, -1.0, 1.0)
        moves = root[lane] > 0.0
        here = min(np.int64(place), n_bins - 1)
        force[lane] = 0.0
        if moves:
            visits[here, lane] += 1.0
        if kind == ABF:
            force[lane] = side * bias[here, lane]
            if moves:
                bias[here, lane] += (side * slope[lane] * noisy_energy[lane] - bias[here, lane]) / visits[here, lane]
        elif kind == METADYNAMICS:  # linear between the bins' centres, and flat beyond the first and the last
            centre = math.floor(place - 0.5)
            lower, upper = max(np.int64(centre), 0), min(np.int64(centre) + 1, n_bins - 1)
            force[lane] = -side * (bias[upper, lane] - bias[lower, lane]) * n_bins
            if moves:
                deposits[lane] += 1.0
                added = temperature[lane] * smaller(height, n_bins / deposits[lane])
                share = place - 0.5 - centre
                bias[lower, lane] += (1.0 - share) * added
                bias[upper, lane] += share * added


def temper_by_coupling(state, numbers, parameters, step, samples, changes):
    """Move the tempering variables, and multiply the gradients by λ where the step began."""
    rows = state.rows
    if changes > 1:
        find_kicks(state.masses, rows[STEP_SIZE], rows[TEMPERATURE], parameters)
    normals = rows[FIRST_NORMAL : FIRST_NORMAL + 2]
    fill_normals(normals, numbers.seed, state.chain, state.replica, uint64(step), uint64(COUPLING))
    due = temper_continuously(
        state.continuous, state.masses, rows[NOISY_ENERGY], rows[TEMPERATURE], rows[LAMBDA], normals,
        parameters, step,
    )  # fmt: skip
    if due:
        renew_momenta(state, numbers, step)
    scale_gradients(state, rows[LAMBDA])


@kernel
def renew_momenta(state, numbers, step):
    """Draw momenta afresh in the lanes whose tempering variable has just had its own renewed."""
    renewed, temperature = state.continuous.rows[RENEWED], state.rows[TEMPERATURE]
    fill_normals(state.noise, numbers.seed, state.chain, state.replica, uint64(step), uint64(REFRESH))
    for d in range(state.momentum.shape[0]):
        for lane in range(temperature.size):
            fresh = math.sqrt(temperature[lane]) * state.noise[d, lane]
            state.momentum[d, lane] = select(renewed[lane] != 0.0, fresh, state.momentum[d, lane])
