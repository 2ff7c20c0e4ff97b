"""The loops one would write first: plain scalar Numba, chain by chain, np.random.normal, math.exp and math.cos.

Targets are (x, y) → energy and slopes. Contour is as printed, without interpolation, with a pass over all bins a step.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from benchmarks.runner.rounds import processor_seconds


@njit
def cosine25(x, y):
    """Energy and gradient of the 25-mode cosine target."""
    squared = x * x + y * y
    energy = 0.2 * squared - 2.0 * (math.cos(2 * math.pi * x) + math.cos(2 * math.pi * y))
    slope_x = 0.4 * x + 4 * math.pi * math.sin(2 * math.pi * x)
    slope_y = 0.4 * y + 4 * math.pi * math.sin(2 * math.pi * y)
    if squared > 20.0:
        energy += squared - 20.0
        slope_x += 2.0 * x
        slope_y += 2.0 * y
    return energy, slope_x, slope_y


@njit
def comb(x):
    """Energy and slope of the 5-component mixture along one axis."""
    total, pull = 0.0, 0.0
    for k in range(5):
        away = x - (2.0 * k - 4.0)
        share = math.exp(-away * away / 0.06)
        total += share
        pull += share * away
    return -math.log(total), pull / total / 0.03


@njit
def gaussian_grid25(x, y):
    """Energy, up to a constant, and gradient of the 25 Gaussians as a product, 10 exponentials."""
    energy_x, slope_x = comb(x)
    energy_y, slope_y = comb(y)
    return energy_x + energy_y, slope_x, slope_y


TARGETS = {"cosine25": cosine25, "gaussian_grid25": gaussian_grid25}


@njit
def sgld(target, n_chains, n_steps, keeps, out, h):
    """SGLD."""
    kick = math.sqrt(2.0 * h)
    for c in range(n_chains):
        x, y = 0.0, 0.0
        for k in range(n_steps):
            _, slope_x, slope_y = target(x, y)
            x += -h * slope_x + kick * np.random.normal()
            y += -h * slope_y + kick * np.random.normal()
            if keeps or k == n_steps - 1:
                out[c, k * keeps, 0], out[c, k * keeps, 1] = x, y


@njit
def cyclical_sgld(target, n_chains, n_steps, keeps, out, h, cycles):
    """Cyclical SGLD, without noise in the first quarter of a cycle."""
    length = -(-n_steps // cycles)
    for c in range(n_chains):
        x, y = 0.0, 0.0
        for k in range(n_steps):
            turn = (k % length) / length
            size = 0.5 * h * (math.cos(math.pi * turn) + 1.0)
            _, slope_x, slope_y = target(x, y)
            x -= size * slope_x
            y -= size * slope_y
            if turn >= 0.25:
                kick = math.sqrt(2.0 * size)
                x += kick * np.random.normal()
                y += kick * np.random.normal()
            if keeps or k == n_steps - 1:
                out[c, k * keeps, 0], out[c, k * keeps, 1] = x, y


@njit
def sghmc(target, n_chains, n_steps, keeps, out, h, friction):
    """SGHMC with momenta of unit mass."""
    root, keep, kick = math.sqrt(h), 1.0 - friction, math.sqrt(2.0 * friction)
    for c in range(n_chains):
        x, y, p, q = 0.0, 0.0, 0.0, 0.0
        for k in range(n_steps):
            _, slope_x, slope_y = target(x, y)
            p = keep * p - root * slope_x + kick * np.random.normal()
            q = keep * q - root * slope_y + kick * np.random.normal()
            x += root * p
            y += root * q
            if keeps or k == n_steps - 1:
                out[c, k * keeps, 0], out[c, k * keeps, 1] = x, y


@njit
def sgnht(target, n_chains, n_steps, keeps, out, h, friction):
    """SGNHT with momenta of unit mass and one thermostat."""
    root, kick = math.sqrt(h), math.sqrt(2.0 * friction)
    for c in range(n_chains):
        x, y, p, q, z = 0.0, 0.0, 0.0, 0.0, friction
        for k in range(n_steps):
            _, slope_x, slope_y = target(x, y)
            p = (1.0 - z) * p - root * slope_x + kick * np.random.normal()
            q = (1.0 - z) * q - root * slope_y + kick * np.random.normal()
            x += root * p
            y += root * q
            z += h * (0.5 * (p * p + q * q) - 1.0)
            if keeps or k == n_steps - 1:
                out[c, k * keeps, 0], out[c, k * keeps, 1] = x, y


@njit
def resgld(target, n_chains, n_steps, keeps, out, sizes, temperatures):
    """Replica exchange SGLD: neighbours swap, pairs in even and odd turns, then all move."""
    count = sizes.size
    x, y, energy, slopes = np.zeros(count), np.zeros(count), np.zeros(count), np.zeros((count, 2))
    for c in range(n_chains):
        x[:], y[:] = 0.0, 0.0
        for k in range(n_steps):
            for r in range(count):
                energy[r], slopes[r, 0], slopes[r, 1] = target(x[r], y[r])
            for r in range(k % 2 if count > 2 else 0, count - 1, 2):
                gap = 1.0 / temperatures[r] - 1.0 / temperatures[r + 1]
                if np.random.random() < math.exp(gap * (energy[r] - energy[r + 1])):
                    x[r], x[r + 1] = x[r + 1], x[r]
                    y[r], y[r + 1] = y[r + 1], y[r]
                    for d in range(2):
                        slopes[r, d], slopes[r + 1, d] = slopes[r + 1, d], slopes[r, d]
            for r in range(count):
                kick = math.sqrt(2.0 * sizes[r] * temperatures[r])
                x[r] += -sizes[r] * slopes[r, 0] + kick * np.random.normal()
                y[r] += -sizes[r] * slopes[r, 1] + kick * np.random.normal()
            if keeps or k == n_steps - 1:
                out[c, k * keeps, 0], out[c, k * keeps, 1] = x[0], y[0]


@njit
def contour(target, n_chains, n_steps, keeps, out, h, replicas, u_min, width, bins):
    """Contour SGLD of replicas that share θ."""
    zeta, kick = 0.75, math.sqrt(2.0 * h)
    theta = np.full(bins, 1.0 / bins)
    x, y, shares, seen = np.zeros(replicas), np.zeros(replicas), np.zeros(replicas), np.zeros(replicas, np.int64)
    for c in range(n_chains):
        x[:], y[:] = 0.0, 0.0
        theta[:] = 1.0 / bins
        for k in range(n_steps):
            omega = min(1.0 / ((k + 1.0) ** 0.6 + 100.0), 3e-3) / replicas
            total = 0.0
            for r in range(replicas):
                energy, slope_x, slope_y = target(x[r], y[r])
                here = min(max(int((energy - u_min) / width), 0), bins - 1)
                rise = math.log(theta[here]) - math.log(theta[here - 1]) if here > 0 else 0.0
                factor = 1.0 + zeta * rise / width
                shares[r], seen[r] = omega * theta[here] ** zeta, here
                total += shares[r]
                x[r] += -h * factor * slope_x + kick * np.random.normal()
                y[r] += -h * factor * slope_y + kick * np.random.normal()
            theta *= 1.0 - total
            for r in range(replicas):
                theta[seen[r]] += shares[r]
            if keeps or k == n_steps - 1:
                out[c, k * keeps, 0], out[c, k * keeps, 1] = x[0], y[0]


@njit
def hmc(target, n_chains, n_steps, keeps, out, length, leapfrogs):
    """HMC with unit mass; of one leapfrog, MALA with h = length² / 2. The gradient at a step's start is kept."""
    for c in range(n_chains):
        x, y = 0.0, 0.0
        energy, slope_x, slope_y = target(x, y)
        for k in range(n_steps):
            p, q = np.random.normal(), np.random.normal()
            a, b, new, push_x, push_y = x, y, energy, slope_x, slope_y
            start = energy + 0.5 * (p * p + q * q)
            for _ in range(leapfrogs):
                p -= 0.5 * length * push_x
                q -= 0.5 * length * push_y
                a += length * p
                b += length * q
                new, push_x, push_y = target(a, b)
                p -= 0.5 * length * push_x
                q -= 0.5 * length * push_y
            if np.random.random() < math.exp(start - new - 0.5 * (p * p + q * q)):
                x, y, energy, slope_x, slope_y = a, b, new, push_x, push_y
            if keeps or k == n_steps - 1:
                out[c, k * keeps, 0], out[c, k * keeps, 1] = x, y


LOOPS = {
    "sgld": sgld,
    "cyclical_sgld": cyclical_sgld,
    "sghmc": sghmc,
    "sgnht": sgnht,
    "resgld": resgld,
    "contour": contour,
    "hmc": hmc,
}


def scalar_run(loop: str, target: str, *numbers: Any) -> Callable[..., float]:
    """(chains, steps, keeps=False) → processor seconds of the loop, compiled before."""
    compiled = LOOPS[loop]
    arguments = [np.asarray(one) if isinstance(one, tuple) else one for one in numbers]

    def seconds(n_chains: int, n_steps: int, keeps: bool = False) -> float:
        out = np.zeros((n_chains, n_steps if keeps else 1, 2))
        return processor_seconds(lambda: compiled(TARGETS[target], n_chains, n_steps, keeps, out, *arguments))

    seconds(1, 2)
    return seconds
