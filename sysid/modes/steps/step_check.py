"""Whether the steps of a trajectory likelihood are short enough for a solution, and for its energy.

A step that suits one solution is too long for a faster one. A step multiplies a component of rate λ by R(hλ). Where R
is not monotone, a fast rate gives the same solution as a slow one, and the posterior has a mode that the equations do
not have.
"""

from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np

from ...arrays import Array, Bools
from ...solvers.implicit import IMPLICIT_ORDERS
from ...solvers.step_length import MAX_STEPS


class SolutionEnergy(Protocol):
    """The energy of one series, or of several experiments, under solutions by steps."""

    @property
    def n_steps(self) -> int:
        """Steps of one solution."""

    @property
    def method(self) -> str:
        """The method of the steps."""

    @property
    def n_states(self) -> int:
        """Numbers that are in memory for one solution."""

    @property
    def kernel(self) -> Any:
        """The kernel of a ``Prepared``."""

    @property
    def numbers(self) -> Array:
        """The kernel's numbers."""

    @property
    def work_rows(self) -> int:
        """The kernel's work rows."""

    def evaluate(self, theta: Array) -> tuple[Array, Array]:
        """Energy (n,) and dU/dθ (n, q) at ``theta`` (n, q)."""

    def with_steps(self, factor: int) -> "SolutionEnergy":
        """The same energy with ``factor`` steps for each step."""

    def judged_at(self, theta: Array) -> "SolutionEnergy":
        """The same energy, infinite where a step is too long for the solution, in units of that at ``theta`` (q,)."""

    def unresolved(self, theta: Array, at: Array) -> Bools:
        """Whether a step is too long, (n,), for solutions at ``theta`` (n, q), in units of those at ``at`` (q,)."""


SAME_ENERGY = 0.1  # nats that half the step may change the energy by
# Weights exp(Δ) of draws whose energies change by Δ with standard deviation s leave an effective size of 1/(1 + s²):
# 0.95 for s = 0.23. The largest of 256 changes is about 2.7 s from their mean.
WARNED_ENERGY = 0.6  # nats
GHOST = 3.0  # nats: where half the step changes the lowest energy by more, the search begins anew
MAX_FACTOR = 1024  # by which a search's step is made shorter
MAX_ROUNDS = 6  # of searches with shorter steps
N_ITERATIONS = 60


def step_factors(energy: SolutionEnergy) -> Iterator[int]:
    """1, 2, 4, … as long as half of the steps are no more than MAX_STEPS."""
    factor = 1
    while factor <= MAX_FACTOR and 2 * factor * energy.n_steps <= MAX_STEPS:
        yield factor
        factor *= 2


def factor_where_same(energy: SolutionEnergy, theta: Array) -> int:
    """By how much steps must be shorter at ``theta`` (q,): then half of them changes the energy little.

    Raises ValueError that names the solver to take where no such factor is found.
    """
    if 2 * energy.n_steps > MAX_STEPS:
        return 1  # nothing finer is solved, which ``step_refinement`` says
    now, change, n_steps, factor = energy_at(energy, theta), np.inf, energy.n_steps, 1
    for factor in step_factors(energy):
        half = energy_at(energy.with_steps(2 * factor), theta)
        now, change, n_steps = half, abs(now - half), 2 * factor * energy.n_steps
        if change <= SAME_ENERGY and not energy.with_steps(factor).unresolved(theta[None], theta)[0]:
            return factor
    if change <= WARNED_ENERGY and not energy.with_steps(factor).unresolved(theta[None], theta)[0]:
        return factor
    solver = "" if energy.method in IMPLICIT_ORDERS else "method='sdirk4', or "
    raise ValueError(
        f"trajectory: method={energy.method!r} does not converge at the parameters found: from {n_steps // 2} to "
        f"{n_steps} steps the energy changes by {change:.3g} nats. Take {solver}usual parameters nearer to the data's, "
        "or give a step"
    )


def energy_at(energy: SolutionEnergy, theta: Array) -> float:
    """The energy at ``theta`` (q,)."""
    return float(energy.evaluate(theta[None])[0][0])


class SearchByStep(Protocol):
    """What is used of a ``StartSearch``."""

    step: float

    def searched(self) -> tuple[Any, Array]:
        """The energy with steps of at most ``step``, and the θ (q,) of lowest energy that was found."""

    def _minimised(self, energy_function: Any, theta: Array, n_iterations: int) -> tuple[Array, float]:
        """θ of lower energy, and that energy."""


def searched_with_short_steps(search: SearchByStep) -> tuple[Any, Array]:
    """What a search finds with steps so short that half of them changes the energy there by less than SAME_ENERGY.

    Where half of them changes it by more than GHOST, or where a step is too long for the solution, the search begins
    anew with shorter steps: what it found may be a solution of the long steps alone.
    """
    energy, theta = search.searched()
    for _ in range(MAX_ROUNDS):
        factor = factor_where_same(energy, theta)
        if factor == 1:
            return energy, theta
        finer = energy.with_steps(factor)
        moved = search._minimised(finer, theta, N_ITERATIONS)
        is_ghost = abs(energy_at(energy, theta) - energy_at(finer, theta)) > GHOST
        search.step /= factor
        if is_ghost or energy.unresolved(theta[None], theta)[0]:
            energy, theta = search.searched()
            if moved[1] < energy_at(energy, theta):
                theta = moved[0]
        else:
            energy, theta = finer, moved[0]
    return energy, theta


def settled_with_short_steps(
    energy: Any, theta: Array, minimise: Callable[[Any, Array, int], tuple[Array, float]]
) -> tuple[Any, Array]:
    """The energy with steps of which half change it by less than SAME_ENERGY, and a minimum near ``theta``.

    Raises ValueError that names the solver to take where no such steps are found.
    """
    for _ in range(MAX_ROUNDS):
        factor = factor_where_same(energy, theta)
        if factor == 1:
            break
        energy = energy.with_steps(factor)
        theta, _ = minimise(energy, theta, N_ITERATIONS)
    return energy, theta
