"""KL against a truth at given steps, of draws as they come."""

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .checks import check_array, check_count, check_number, is_sequence
from .gathering import Gathering, Gathers
from .grids import Histogram, histogram
from .kl import expected_kl, kl_divergence

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class KlSoFar(NamedTuple):
    """KL(truth ‖ draws) of each chain after given numbers of steps, in nats.

    at: (time,), numbers of steps. draws: (chain, time), how many there were by then. kl: (chain, time); nan where the
    run has not come so far, or a chain has no weight. expected: (chain, time), the mean KL of as many independent draws
    of equal weight.
    """

    at: Integers
    draws: Integers
    kl: Floats
    expected: Floats


@dataclass(frozen=True, eq=False)
class Kl(Gathers):
    """The accumulator of ``kl``."""

    grid: Histogram
    masses: Floats
    at: Integers
    pseudo_count: float

    needs_energies = False

    def start(self, problem: Any, n_chains: int) -> dict[str, NDArray[Any]]:
        """No draws in any cell, and no step reached. Raises ValueError where the problem lacks the coordinates."""
        shape = (n_chains, self.at.size)
        return {
            **self.grid.start(problem, n_chains),
            "reached": np.zeros(n_chains, np.int64),
            "draws_at": np.zeros(shape, np.int64),
            "kl": np.full(shape, np.nan),
        }

    def is_possible(self, state: dict[str, NDArray[Any]]) -> bool:
        """Whether a saved state has come to one of the steps of ``at``, or to none or all."""
        return bool(((state["reached"] >= 0) & (state["reached"] <= self.at.size)).all())

    def gathering(self, dim: int) -> Gathering:
        """Draws go to their cells."""
        return self.grid.gathering(dim)

    def parts(self, state: dict[str, NDArray[Any]], steps: Integers) -> Iterator[tuple[int, int, bool]]:
        """Up to each step of ``at`` that has come, where the cells are looked at."""
        begin = 0
        while begin < steps.size:
            i = int(state["reached"][0])
            end = steps.size if i == self.at.size else int(np.searchsorted(steps, self.at[i]))
            looks = i < self.at.size and bool(steps[-1] >= self.at[i] - 1)
            yield begin, end, looks
            if looks:
                self._look(state, i)
            begin = end

    def come_to(self, state: dict[str, NDArray[Any]], step: int) -> None:
        """Look at the cells for each time of ``at`` up to ``step``, the last draw before which has come."""
        for i in range(int(state["reached"][0]), int(np.searchsorted(self.at, step, side="right"))):
            self._look(state, i)

    def _look(self, state: dict[str, NDArray[Any]], i: int) -> None:
        """Write down the KL of every chain at time ``i``."""
        for c, (counts, beyond, n) in enumerate(zip(state["counts"], state["beyond"], state["draws"], strict=True)):
            weight = counts.sum() + beyond
            if weight > 0.0:
                cells = (counts * (n / weight)).reshape(self.masses.shape)
                total = max(float(n), cells.sum())
                state["kl"][c, i] = kl_divergence(cells, self.masses, total=total, pseudo_count=self.pseudo_count)
        state["draws_at"][:, i] = state["draws"]
        state["reached"][:] = i + 1

    def result(self, state: dict[str, NDArray[Any]]) -> KlSoFar:
        """The KL at all steps that have come."""
        draws = state["draws_at"].copy()
        expected = np.full(draws.shape, np.nan)
        for n in np.unique(draws[draws > 0]):
            expected[draws == n] = expected_of(self, int(n))
        return KlSoFar(self.at.copy(), draws, state["kl"].copy(), expected)


@functools.lru_cache(maxsize=1024)
def expected_of(accumulator: Kl, n_draws: int) -> float:
    """``expected_kl``, which takes longer than a chunk of a stream may."""
    return expected_kl(accumulator.masses, n_draws, pseudo_count=accumulator.pseudo_count)


def kl(
    truth: Any, x_edges: Any, y_edges: Any = None, *, at: Any, coordinates: Any = (0, 1), pseudo_count: float = 0.5
) -> Kl:
    """``diagnostics.kl_divergence`` of each chain's draws on a grid, after given numbers of steps: ``KlSoFar``.

    truth: a problem's truth, whose ``cell_masses`` are taken, or the masses themselves, of the grid's shape. x_edges,
    y_edges, coordinates: as in ``histogram``; a truth has masses for its one coordinate, or the first two: for another
    one, or for one of several, give masses. at: increasing numbers of steps ≥ 1, burn-in included; the KL at n is that
    of all draws whose ``run.steps`` are < n, which is known once the run has done n steps, whether it keeps the last of
    them or not. pseudo_count: that of ``kl_divergence``, > 0.
    Weights are scaled to sum to the number of draws, as in ``diagnostics.kl_path``, whose numbers of stored draws these
    are: to rounding, and without weights bit for bit.
    Raises TypeError or ValueError where these are wrong, before anything runs.
    """
    grid = histogram(x_edges, y_edges, coordinates=coordinates)
    steps = check_steps(at)
    check_number("pseudo_count", pseudo_count, above=0.0)
    if hasattr(truth, "cell_masses"):
        if grid.coordinates[: len(grid.shape)] != (0, 1)[: len(grid.shape)]:
            raise ValueError(
                f"coordinates must be (0, 1), for which a truth has masses, or give masses; got {coordinates!r}"
            )
        truth = (
            truth.cell_masses(grid.x_edges) if grid.y_edges is None else truth.cell_masses(grid.x_edges, grid.y_edges)
        )
    masses = np.array(check_array("truth", truth))
    if masses.shape != grid.shape:
        raise ValueError(f"truth must have masses of the grid's shape {grid.shape}, got {masses.shape}")
    kl_divergence(np.zeros(masses.shape), masses)  # which says what masses must be
    return Kl(grid, masses, steps, pseudo_count)


def check_steps(values: Any) -> Integers:
    """``values`` as numbers of steps. Raises TypeError or ValueError where they are no increasing integers ≥ 1."""
    is_row = is_sequence(values) or (isinstance(values, np.ndarray) and values.ndim == 1)
    if not is_row or len(values) == 0:
        raise TypeError(f"at must be a sequence of numbers of steps, got {values!r}")
    steps = np.array([check_count(f"at[{i}]", value, at_least=1) for i, value in enumerate(values)])
    if (np.diff(steps) <= 0).any():
        raise ValueError(f"at must increase, got {values!r}")
    return steps
