"""Langevin dynamics with momenta whose friction is a thermostat (Nosé–Hoover)."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._compiler.decorators import inlined
from ..errors import check_flag, check_number
from ..maths.elementary import fma, select
from .interface import FRICTION, Dynamics, Knowledge, width_under_friction
from .underdamped import kick_and_drift


@inlined
def advance_thermostat(momentum, thermostat, total, gain, temperature, coupling):
    """Half a step of z ← z + λ²h ((1 − λ²z/2) |p|²/D − T)/γ in every lane; ``total`` (lane,) is scratch."""
    dim, lanes = momentum.shape
    for lane in range(lanes):
        total[lane] = momentum[0, lane] * momentum[0, lane]
    for d in range(1, dim):
        for lane in range(lanes):
            total[lane] = fma(momentum[d, lane], momentum[d, lane], total[lane])
    if dim & (dim - 1) == 0:  # a power of two, by which to multiply is as exact as to divide, and quicker
        update_thermostat(thermostat, total, gain, temperature, coupling, float(dim), True)
    else:
        update_thermostat(thermostat, total, gain, temperature, coupling, float(dim), False)


@inlined
def update_thermostat(thermostat, total, gain, temperature, coupling, dim, by_share):
    """z ← z + gain ((1 − λ²z/2) total/D − T), but where T is 0; by_share: by multiplying by 1/D."""
    share = 1.0 / dim
    for lane in range(thermostat.size):
        square = coupling[lane] * coupling[lane]
        damped = (1.0 - 0.5 * square * thermostat[lane]) * total[lane]
        heat = damped * share if by_share else damped / dim
        moved = fma(gain[lane], heat - temperature[lane], thermostat[lane])
        thermostat[lane] = select(temperature[lane] > 0.0, moved, thermostat[lane])


class Rows(NamedTuple):
    """The rows of memory that a step reads, (lane,): √h, 1 − λ²z, λ √(2cT), √(2cT) and λ²h/(2γ)."""

    root: Any
    keep: Any
    kick: Any
    strength: Any
    gain: Any


@inlined
def update_rows(lanes, rows, parameters, changes):
    """root ← √h, strength ← √(2cT), kick ← λ strength and gain ← λ²h/(2γ), those that ``changes`` concerns."""
    root, kick, strength, gain = rows.root, rows.kick, rows.strength, rows.gain
    step_size, temperature, coupling = lanes.step_size, lanes.temperature, lanes.coupling
    friction, inertia = parameters[0], parameters[1]
    if changes > 1:
        for lane in range(root.size):
            root[lane] = math.sqrt(step_size[lane])
            strength[lane] = math.sqrt(2.0 * friction * temperature[lane])
    if changes > 0:
        for lane in range(root.size):
            kick[lane] = coupling[lane] * strength[lane]
            gain[lane] = 0.5 * (coupling[lane] * coupling[lane]) * step_size[lane] / inertia


@inlined
def set_keep(keep, thermostat, temperature, coupling, friction):
    """keep ← 1 − λ²z, with the friction for z where T is 0."""
    for lane in range(keep.size):
        drag = select(temperature[lane] > 0.0, thermostat[lane], friction)
        keep[lane] = fma(-coupling[lane] * coupling[lane], drag, 1.0)


def move_nose_hoover(lanes, memory, parameters, changes):
    """z by ``advance_thermostat``, p ← (1 − λ²z) p − √h s λ∂U + λ √(2cT) ξ, x ← x + √h s p, and z again."""
    thermostat, rows = memory[0], Rows(memory[1], memory[2], memory[3], memory[4], memory[5])
    momentum, temperature, coupling = lanes.momentum, lanes.temperature, lanes.coupling
    update_rows(lanes, rows, parameters, changes)
    advance_thermostat(momentum, thermostat, rows.keep, rows.gain, temperature, coupling)
    set_keep(rows.keep, thermostat, temperature, coupling, parameters[0])
    kick_and_drift(
        lanes.position, momentum, lanes.gradient, lanes.noise, lanes.scale, rows.root, rows.keep, rows.kick
    )  # fmt: skip
    advance_thermostat(momentum, thermostat, rows.keep, rows.gain, temperature, coupling)


def move_nose_hoover_by_coordinate(lanes, memory, parameters, changes):
    """As ``move_nose_hoover``, with a thermostat z_d per coordinate, which sees p_d² alone."""
    dim = lanes.position.shape[0]
    rows = Rows(memory[dim], memory[dim + 1], memory[dim + 2], memory[dim + 3], memory[dim + 4])
    temperature, coupling = lanes.temperature, lanes.coupling
    update_rows(lanes, rows, parameters, changes)
    for d in range(dim):
        row, thermostat = slice(d, d + 1), memory[d]
        momentum = lanes.momentum[row]
        advance_thermostat(momentum, thermostat, rows.keep, rows.gain, temperature, coupling)
        set_keep(rows.keep, thermostat, temperature, coupling, parameters[0])
        kick_and_drift(
            lanes.position[row], momentum, lanes.gradient[row], lanes.noise[row], lanes.scale[row], rows.root,
            rows.keep, rows.kick,
        )  # fmt: skip
        advance_thermostat(momentum, thermostat, rows.keep, rows.gain, temperature, coupling)


MOST_FRICTION = 0.1  # that noise may add to a thermostat of each coordinate


def noise_in_thermostat(dynamics: Dynamics, widths: NDArray[np.float64], bias: float) -> float:
    """The heating of a thermostat: none as long as its friction h s²/(2 T) is at most ``MOST_FRICTION``.

    widths: s²/(4 T) of each coordinate, (dim,). One thermostat for all coordinates also leaves the difference of their
    noise, over 4 c T. bias: the share that is allowed.
    """
    takes_all = bias * 2.0 * float(widths.max()) / MOST_FRICTION
    if dynamics.memory[0].endswith("[]"):
        return takes_all
    uneven = float(np.abs(widths - widths.mean()).max()) / dynamics.parameters[0]
    return max(takes_all, uneven)


def stationary_thermostat(
    dynamics: Dynamics, step_size: float, temperature: float, noise: float, dim: int
) -> tuple[float, float]:
    """Mean c + h s²/(2T) and standard deviation √(hT/(γD)) of z, to first order in h; s²: ``noise``, D: ``dim``."""
    friction, inertia = dynamics.parameters
    mean = friction + 0.5 * step_size * noise / temperature
    return mean, math.sqrt(step_size * temperature / (inertia * dim))


KNOWN = Knowledge(
    knobs=(FRICTION._replace(starts_memory=True),), own_width=width_under_friction,
    noise_in_thermostat=noise_in_thermostat, thermostat_law=stationary_thermostat,
)  # fmt: skip


def nose_hoover(*, friction: float = 0.1, inertia: float = 1.0, by_coordinate: bool = False) -> Dynamics:
    """Nosé–Hoover dynamics: the friction z grows while |p|²/D exceeds T, and so takes up gradient noise of any size.

    z ← z + h ((1 − z/2) |p|²/D − T)/(2γ), before and again after p ← (1 − z) p − √h ∇U + √(2cT) ξ; x ← x + √h p.
    friction: c > 0, the level of injected noise, and where z begins. inertia: γ > 0. by_coordinate: a thermostat per
    coordinate, for noise that differs between them; γ counts for each. While the temperature is 0 the thermostat
    rests and the friction is c.
    Law: with gradient noise of standard deviation s, unknown to it, z is N(c + h s²/(2T), hT/(γD)) and x has the law
    at temperature T, both up to O(h) (TACT-HMC 2018, theorem 1, in these variables). A common thermostat holds the sum
    over coordinates: under strong noise stiff ones come out warmer than soft ones, by some per cent.
    Departures from print, each needed: the printed z grows with |p|²/D − T. But a step of friction z leaves momenta of
    variance T/(1 − z/2) where x has temperature T, so it makes x too cold by a share of z/2, at any h: E x² of N(0, 1)
    is 0.947 at c = 0.1, exactly c / (1 − √(1 − 2c)). And z moves in halves, which is the same on its own; in one piece
    z and |p|² are correlated between steps, which swaps of replicas cut: z then wanders off, and diverges.
    Source: Ding et al. (2014), algorithm 2; TACT-HMC (2018), algorithm 1 with λ = 1, r = √h p. Raises ValueError where
    out of range.
    """
    check_number("friction", friction, above=0.0)
    check_number("inertia", inertia, above=0.0)
    by_coordinate = check_flag("by_coordinate", by_coordinate)
    return Dynamics(
        "nose_hoover",
        move_nose_hoover_by_coordinate if by_coordinate else move_nose_hoover,
        (friction, inertia),
        has_momentum=True,
        memory=("thermostat[]" if by_coordinate else "thermostat", "_root", "_keep", "_kick", "_strength", "_gain"),
        memory_start=(friction, 0.0, 0.0, 0.0, 0.0, 0.0),
        scales=True,
        friction_rows=1,
        friction_parameter=0,
        known=KNOWN,
    )
