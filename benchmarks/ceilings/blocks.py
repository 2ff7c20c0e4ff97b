"""Energy and gradient of the two mixtures at one point, and blocks of chains, for the hand-fused kernels."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit, uint64
from numpy.typing import NDArray

from benchmarks.speed.chain_cases import H
from targets.mixtures.gaussian_grid import axis_mixture
from toolkit._compiler.decorators import inlined
from toolkit._compiler.lowering import WideCompiler
from toolkit.maths.elementary import fma, select, sincos_turns
from toolkit.maths.philox import box_muller, uniform_pair
from toolkit.schedules import Schedule, evaluate

Array = NDArray[np.float64]

SEED, WIDTH = np.uint64(1), 128

fused = njit(nogil=True, error_model="numpy", _nrt=False, pipeline_class=WideCompiler)


@inlined
def cosine25(x, y):
    """Energy and gradient of ``mixtures.cosine25``."""
    sin_x, cos_x = sincos_turns(x)
    sin_y, cos_y = sincos_turns(y)
    squared = fma(x, x, y * y)
    beyond = squared > 20.0
    energy = fma(0.2, squared, fma(-2.0, cos_x + cos_y, select(beyond, squared - 20.0, 0.0)))
    pull = select(beyond, 2.4, 0.4)
    return energy, fma(pull, x, 12.566370614359172 * sin_x), fma(pull, y, 12.566370614359172 * sin_y)


@inlined
def gaussian_grid25(x, y):
    """Energy and gradient of ``mixtures.gaussian_grid25``."""
    energy_x, slope_x = axis_mixture(x)
    energy_y, slope_y = axis_mixture(y)
    return energy_x + energy_y, slope_x, slope_y


POINTS: dict[str, Any] = {"cosine25": cosine25, "gaussian_grid25": gaussian_grid25}

# A kernel of one target, (room, lanes, first chain, steps, numbers), leaves the last positions of ``lanes`` chains in
# rows 0 and 1 of ``room``, whose rows are WIDTH long: LLVM sees that no two of them overlap.
Kernel = Callable[..., None]
Run = Callable[[int, int], Array]


def in_blocks(
    make: Callable[[Any], Kernel],
    rows: int,
    numbers: Callable[[int], Any] = float,
    width: int = WIDTH,
    packs: bool = False,
) -> dict[str, Run]:
    """For each target (n_chains, n_steps) → last positions (chain, 2), by blocks of up to ``width`` chains.

    make: a kernel of a target, which is compiled where it first runs. numbers: of n_steps, for the kernel.
    packs: fewer than 8 chains are not padded, as the kernel pads its lanes.
    """

    def run_of(point: Any) -> Run:
        kernel = functools.cache(lambda: make(point))

        def run(n_chains: int, n_steps: int) -> Array:
            given, last = numbers(n_steps), np.empty((n_chains, 2))
            for first in range(0, n_chains, width):
                room, used = np.zeros(rows * WIDTH), min(width, n_chains - first)
                lanes = used if packs and used < 8 else -(-used // 8) * 8
                kernel()(room, lanes, np.uint64(first), n_steps, given)
                last[first : first + used] = room[: 2 * WIDTH].reshape(2, WIDTH)[:, :used].T
            return last

        return run

    return {name: run_of(point) for name, point in POINTS.items()}


@inlined
def make_normal(room, row, lanes):
    """Standard normals in place of the uniforms in two rows."""
    for lane in range(lanes):
        room[row + lane], room[row + WIDTH + lane] = box_muller(room[row + lane], room[row + WIDTH + lane])


@fused
def fill_noise(room, row, lanes, first, replica, step, purpose):
    """Two rows of standard normals of one replica of ``lanes`` chains, from place ``row`` of ``room`` on."""
    for lane in range(lanes):
        room[row + lane], room[row + WIDTH + lane] = uniform_pair(
            SEED, first + uint64(lane), uint64(replica), uint64(step), uint64(purpose), uint64(0)
        )
    make_normal(room, row, lanes)


def schedule_of(schedule: Schedule) -> Callable[[int], Array]:
    """n_steps → step sizes and temperatures of each step, (2, steps), of base H and 1."""

    def numbers(n_steps: int) -> Array:
        factors = evaluate(schedule, np.arange(n_steps), n_steps)
        return np.stack([H * factors.step_size, factors.temperature])

    return numbers
