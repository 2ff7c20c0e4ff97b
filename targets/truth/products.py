"""The truth of a product of equal laws, one for each coordinate, from the truth of one."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from toolkit.problem import EnergyAccuracy, Modes, check_finite_points

from ..arrays import Array
from .energy_levels import EnergyLaw, EnergyTable, WithEnergyLaw
from .quantiles import checked_edges
from .rejection import check_draws
from .window import WindowTruth

N_ATOMS = 1 << 17  # of equal probability, in place of the law of one coordinate's energy
N_BINS = 1 << 20  # of the sum's energies
MAX_MODES = 1 << 12


@dataclass(frozen=True, eq=False)
class ProductTruth(WithEnergyLaw):
    """Truth of ``dim`` ≥ 2 independent coordinates that each have the one-dimensional truth ``line``.

    The energy's law is the convolution of the coordinates': each atom divided between the two nearest bins, so that
    means are kept, and a power of their Fourier transform; to 1e-4 in probability. In two dimensions it is by
    ``energy_levels``, to 1e-6 of the smaller tail. accuracy: of the rest.
    """

    line: WindowTruth
    dim: int

    @property
    def accuracy(self) -> float:
        """That of one coordinate, times their number."""
        return self.dim * self.line.accuracy

    @property
    def log_normaliser(self) -> float:
        """log ∫ exp(−U)."""
        return self.dim * self.line.log_normaliser

    @property
    def mean(self) -> Array:
        """Mean (dim,)."""
        return np.full(self.dim, self.line.mean[0])

    @property
    def covariance(self) -> Array:
        """Covariance (dim, dim)."""
        return np.asarray(np.eye(self.dim) * self.line.covariance[0, 0])

    @cached_property
    def modes(self) -> Modes:
        """All combinations of the coordinates' modes, the last's changing fastest. Raises ValueError above 4,096."""
        one = self.line.modes
        self._check_modes()
        which = np.indices((len(one.weights),) * self.dim).reshape(self.dim, -1).T
        return Modes(one.centres[which, 0], one.weights[which].prod(axis=1))

    def memberships(self, points: Any) -> Array:
        """Products of the coordinates' memberships, (n, modes). Raises ValueError above 4,096 modes."""
        points = check_finite_points(points, self.dim)
        self._check_modes()
        products = np.ones((len(points), 1))
        for d in range(self.dim):
            shares = self.line.memberships(points[:, d : d + 1])
            products = (products[:, :, None] * shares[:, None, :]).reshape(
                len(points), products.shape[1] * shares.shape[1]
            )
        return products

    def _check_modes(self) -> None:
        """Raise ValueError where the modes are too many to be listed."""
        each = len(self.line.modes.weights)
        if each**self.dim > MAX_MODES:
            raise ValueError(
                f"{each}^{self.dim} modes are too many to list, and at most {MAX_MODES} are: the coordinates are "
                f"independent, so look at one with dim=1"
            )

    @cached_property
    def law_of_energy(self) -> EnergyLaw | EnergyTable:
        """In two dimensions by quadrature over level sets, from the energy of one coordinate; else by convolution."""
        line = self.line.law_of_energy
        if self.dim != 2 or not isinstance(line, EnergyLaw):
            return self._convolution

        def energies(points: Array) -> Array:
            return np.asarray(line.energies(points[:, :1]) + line.energies(points[:, 1:]))

        low, high = line.axes[0][[0, -1]]
        return EnergyLaw.within(energies, [low] * 2, [high] * 2, [self.line.breaks[0]] * 2)

    @cached_property
    def _convolution(self) -> EnergyTable:
        """Energies, and the probability up to each; from the table of one coordinate's, for its quantiles are many."""
        atoms = self.line.energy_table.quantiles((np.arange(N_ATOMS) + 0.5) / N_ATOMS)
        lowest, spread = atoms[0], float(np.std(atoms))
        highest = self.dim * (atoms.mean() - lowest) + 12.0 * np.sqrt(self.dim) * spread + 1.5 * (atoms[-1] - lowest)
        width = highest / N_BINS
        places = (atoms - lowest) / width
        left = np.floor(places).astype(np.int64)
        share = places - left
        masses = np.bincount(left, 1.0 - share, N_BINS) + np.bincount(left + 1, share, N_BINS)
        total = np.fft.irfft(np.fft.rfft(masses / N_ATOMS) ** self.dim, N_BINS)
        below = np.maximum.accumulate(np.cumsum(total) - 0.5 * total)
        return EnergyTable(self.dim * lowest + width * np.arange(N_BINS), below, EnergyAccuracy(0.0, 1e-4))

    def cell_masses(self, x_edges: Any, y_edges: Any = None) -> Array:
        """Probability of each cell in the first two coordinates, shape (nx, ny)."""
        x_edges, y_edges = checked_edges(x_edges, y_edges, 2)
        return np.outer(self.line.cell_masses(x_edges), self.line.cell_masses(y_edges))

    def independent_draws(self, n: int, *, seed: int) -> Array:
        """Exact draws (n, dim)."""
        n = check_draws(n, self.dim)
        return self.line.independent_draws(n * self.dim, seed=seed).reshape(n, self.dim)
