"""Sums over data as energies, U(x) = prior(x) + Σ_i u_i(x): of all data, or of minibatches drawn by replica and step.

A family of targets gives four kernels, ``evaluator`` makes one of them, and the family's block function calls that:

    use_all    (position, energy, gradient, parameters, work)  writes energy and gradient of all data and the prior
    use_prior  (position, energy, gradient, parameters)        writes those of the prior alone, and of constants
    move_prior (position, anchor, energy, gradient, parameters) adds the prior's change from ``anchor``
    add_data   (position, anchor, energy, gradient, parameters, pick, subtracts)
               adds N/n times the part of datum ``pick`` (lane), less that at ``anchor`` where ``subtracts``
"""

from typing import Any

from toolkit._compiler import COUNTER_ROWS, MODE, STEP, kernel
from toolkit.errors import check_array, check_count
from toolkit.maths.elementary import fma
from toolkit.problem import draw_pair

from ..arrays import Array

# The parameters of every family begin with: number of data, number drawn for a minibatch (0: all data), steps from one
# anchor to the next (0: no anchor), 1/σ² of a normal prior, and a constant that is added to the energy.
N_DATA, N_DRAWN, REFRESH_EVERY, PRIOR_PRECISION, CONSTANT, N_SHARED = range(6)


def check_table(features: Any, name: str, values: Any) -> tuple[Array, Array]:
    """``features`` as (data, dim), not empty, and ``values``, called ``name``, as (data,). Raises otherwise."""
    matrix, column = check_array("features", features), check_array(name, values)
    if matrix.ndim != 2 or matrix.size == 0:
        raise ValueError(f"features must have shape (data, dim) and not be empty, got {matrix.shape}")
    if column.shape != matrix.shape[:1]:
        raise ValueError(f"{name} must have shape (data,) = {matrix.shape[:1]}, got {column.shape}")
    return matrix, column


def check_batch(batch_size: Any, refresh_every: Any) -> tuple[int, int]:
    """The number of data drawn at a step, and of steps from one anchor to the next; 0 for None.

    Raises TypeError or ValueError naming the argument, also for an anchor without minibatches.
    """
    n_drawn = 0 if batch_size is None else check_count("batch_size", batch_size, at_least=1, below=2**17)
    refresh = 0 if refresh_every is None else check_count("refresh_every", refresh_every, at_least=1)
    if refresh and not n_drawn:
        raise ValueError(f"refresh_every needs a batch_size, got refresh_every={refresh} and batch_size=None")
    return n_drawn, refresh


def shared_numbers(
    n_data: int, n_drawn: int, refresh: int, prior_precision: float = 0.0, constant: float = 0.0
) -> list[float]:
    """The numbers with which the parameters of every family begin."""
    return [float(n_data), float(n_drawn), float(refresh), prior_precision, constant]


def batch_rows(dim: int, n_drawn: int, refresh: int) -> int:
    """Rows of scratch that minibatches take: the engine's counters, two draws, and the anchor with its gradient."""
    return (COUNTER_ROWS + 2 + (2 * dim + 1 if refresh else 0)) if n_drawn else 0


def evaluator(use_all: Any, use_prior: Any, move_prior: Any, add_data: Any, compiled: Any = kernel) -> Any:
    """The kernel (position, energy, gradient, parameters, scratch, work) of a family's four, behind a decorator."""

    @compiled
    def evaluate(position, energy, gradient, parameters, scratch, work):
        dim = position.shape[0]
        refresh = int(parameters[REFRESH_EVERY])
        if parameters[N_DRAWN] == 0.0 or scratch[MODE, 0] == 0.0:
            use_all(position, energy, gradient, parameters, work)
            return
        if refresh == 0:
            use_prior(position, energy, gradient, parameters)
            add_batch(position, position, energy, gradient, parameters, scratch, False)
            return
        anchor = scratch[COUNTER_ROWS + 2 : COUNTER_ROWS + 2 + dim]
        slope = scratch[COUNTER_ROWS + 2 + dim : COUNTER_ROWS + 2 + 2 * dim]
        level = scratch[COUNTER_ROWS + 2 + 2 * dim]
        if scratch[MODE, 0] == 1.0 and int(scratch[STEP, 0]) % refresh == 0:
            for d in range(dim):
                for lane in range(energy.size):
                    anchor[d, lane] = position[d, lane]
            use_all(anchor, level, slope, parameters, work)
        for lane in range(energy.size):
            energy[lane] = level[lane]
        for d in range(dim):
            for lane in range(energy.size):
                gradient[d, lane] = slope[d, lane]
        move_prior(position, anchor, energy, gradient, parameters)
        add_batch(position, anchor, energy, gradient, parameters, scratch, True)

    @compiled
    def add_batch(position, anchor, energy, gradient, parameters, scratch, subtracts):
        n_data, n_drawn = int(parameters[N_DATA]), int(parameters[N_DRAWN])
        picks = scratch[COUNTER_ROWS : COUNTER_ROWS + 2]
        for pair in range((n_drawn + 1) // 2):
            draw_pair(picks, scratch, pair, n_data)
            for i in range(min(2, n_drawn - 2 * pair)):
                add_data(position, anchor, energy, gradient, parameters, picks[i], subtracts)

    return evaluate


@kernel
def use_normal_prior(position, energy, gradient, parameters):
    """CONSTANT + ½ PRIOR_PRECISION ‖x‖² and its gradient."""
    precision = parameters[PRIOR_PRECISION]
    for lane in range(energy.size):
        energy[lane] = parameters[CONSTANT]
    for d in range(position.shape[0]):
        for lane in range(energy.size):
            x = position[d, lane]
            gradient[d, lane] = precision * x
            energy[lane] = fma(0.5 * precision * x, x, energy[lane])


@kernel
def move_normal_prior(position, anchor, energy, gradient, parameters):
    """Add the change of ½ PRIOR_PRECISION ‖x‖² and of its gradient since ``anchor``."""
    precision = parameters[PRIOR_PRECISION]
    for d in range(position.shape[0]):
        for lane in range(energy.size):
            x, a = position[d, lane], anchor[d, lane]
            gradient[d, lane] = fma(precision, x - a, gradient[d, lane])
            energy[lane] = fma(0.5 * precision * (x - a), x + a, energy[lane])
