"""Start values of the trajectory likelihood of stiff systems, with implicit steps on a grid of unequal steps.

The parameters are fitted to the first data, then to more and more; each time the grid is made anew, from an adaptive
solution at the parameters found so far.
"""

import numpy as np

from ..arrays import Array, Integers
from ..modes.guess_fit import Guesses
from ..modes.laplace import curvature_at, in_batches
from ..solvers.implicit import IMPLICIT_ORDERS
from .error_laws import ErrorModel
from .start_search import StartSearch, is_finite
from .step_grid import Changes, fast_changes, graded_times, jumps_of, on_grid, step_lengths, up_to
from .trajectory_kernel import Segments, TrajectoryEnergy, trajectory_energy

FIRST_ROWS, GROWTH = 8, 1.4  # data of the first fit, at least; how many times more each next fit has
N_GUESSES, N_FITTED = 96, 3  # parameters that are tried on the first data, and how many of them are fitted
DECADES = 2.0  # of the parameters tried, about the usual ones
N_ITERATIONS = 30  # on each grid
N_GRIDS = 6  # at most, for all data; for fewer a third of them
SAME_ENERGY = 0.02  # nats, between a grid and the next: then it is kept; for fewer data NEARLY_SAME
NEARLY_SAME = 0.5
GRID_TOLERANCE = 1e-4  # of the states' spread: the change of nine of ten states at the data with half the steps
GRID_NATS = 0.01  # the change of the energy with half the steps
MAX_FINENESS, SEARCH_FINENESS = 32.0, 2.0  # how many times more steps than the adaptive solution: at last, and before
HALO_SDS = 5.0  # standard deviations of the time of a fast change, within which the last grid is fine
SCREENING_STEPS = 8  # between two data, for parameters that are tried
POLISH = np.concatenate([-np.geomspace(1e-4, 0.1, 10), np.geomspace(1e-4, 0.1, 10)])  # of one parameter, relative


class StiffStartSearch(StartSearch):
    """A search for start values as ``StartSearch``, of data that grow from the first, each on a grid of its own."""

    grid: Array
    n_rows: int
    fineness: float

    def run(self) -> tuple[TrajectoryEnergy, Array]:
        """The energy asked for on its grid, and the θ (q,) of lowest energy that was found."""
        rows = np.flatnonzero(self.is_of_data)
        every = len(rows)
        sizes = [min(every, max(FIRST_ROWS, every // 8))]
        while sizes[-1] < every:
            sizes.append(min(every, max(sizes[-1] + 1, int(GROWTH * sizes[-1]))))
        theta, self.fineness = np.zeros(0), 1.0
        for k, n_data in enumerate(sizes, 1):
            self.progress.begin_stage(f"stage {k} of {len(sizes)} ({n_data} of {every} times)")
            self.n_rows = int(rows[n_data - 1]) + 1
            theta = self._fit(self._extended(theta)) if k > 1 else self._first_fit()
        energy_function = self._energy_at(theta)
        if is_finite(energy_function, theta):
            energy_function, theta = self._settled(energy_function, theta)
        if not is_finite(energy_function, theta):
            raise ValueError(
                "data must be near a solution from some parameters, but those found "
                f"({', '.join(f'{v:.3g}' for v in theta[: self.system.n_parameters])}) give none within "
                f"±{self.limit:g}: give usual parameters nearer to the data's, more segments, or a higher "
                "limit"
            )
        return energy_function, theta

    def stand_in(self) -> tuple[TrajectoryEnergy, Array]:
        """The energy of all data on a grid for the usual parameters, and θ with these and starts at the data."""
        self.n_rows, theta = len(self.times), self._usual_thetas()[-1]
        return self._energy_at(theta), theta

    def guesses(self) -> Guesses:
        """The usual parameters with starts at the data where states are measured, on a grid for these."""
        self.progress.begin_stage("the fit from the usual parameters")
        energy_function, theta = self.stand_in()
        thetas = [theta] if is_finite(energy_function, theta) else []
        return Guesses(energy_function, thetas, self.lower_limits(theta.size))

    def settled(self, guesses: Guesses, theta: Array) -> tuple[TrajectoryEnergy, Array]:
        """θ fitted on grids of its own, and the energy on the last and finest of them."""
        self.n_rows = len(self.times)
        theta = self._fit(theta)
        return self._settled(self._energy_at(theta), theta)

    def energy_for(self, theta: Array) -> TrajectoryEnergy:
        """The energy of all data on a fine grid for θ."""
        self.n_rows = len(self.times)
        return self._energy_at(theta, self._halos(self._energy_at(theta), theta), MAX_FINENESS)

    def _converged_step(self) -> float:
        """Nothing is chosen before the search: grids belong to parameters."""
        return np.inf

    def _rows(self) -> Integers:
        """The rows at which segments begin, of the data that are fitted now."""
        rows = self._first_rows(self.settings.segments)
        return np.asarray(rows[rows < max(self.n_rows - 1, 1)])

    def _parts(self, theta: Array) -> tuple[Array, Array, Array]:
        """Parameters, starts (segments, dim) and scales of the errors, of θ."""
        q, dim = self.system.n_parameters, self.system.dim
        n = len(self._rows()) - (self.initial is not None)
        starts = theta[q : q + n * dim].reshape(n, dim)
        if self.initial is not None:
            starts = np.concatenate([self.initial[None], starts])
        return theta[:q], starts, theta[q + n * dim :]

    def _extended(self, theta: Array) -> Array:
        """θ with smoothed states at the starts of further segments."""
        q, dim = self.system.n_parameters, self.system.dim
        n_scales = int(self.observed.sum()) if self.settings.free_scale else 0
        known = theta[: theta.size - n_scales]
        n_known = (known.size - q) // dim + (self.initial is not None)
        return np.concatenate([known, self.states[self._rows()[n_known:]].ravel(), theta[theta.size - n_scales :]])

    def _first_fit(self) -> Array:
        """θ fitted to the first data, from the best of many parameters."""
        rows, times = self._rows(), self.times[: self.n_rows]
        parts = np.arange((self.n_rows - 1) * SCREENING_STEPS + 1) / SCREENING_STEPS
        even = np.interp(parts, np.arange(self.n_rows), times)
        jumps = np.append(True, jumps_of(self.schedule)[1 : self.n_rows - 1])
        first = np.diff(times)[jumps, None] / SCREENING_STEPS * np.geomspace(1e-6, 1.0, 24)[:-1]
        self.grid = np.unique(np.concatenate([even, (times[:-1][jumps, None] + first).ravel(), times]))
        energy_function = self._energy_on_grid()
        starts = self.states[rows[int(self.initial is not None) :]].ravel()
        noise = np.maximum(self._guessed_noise(), 1e-2 * self._unit(self.scale))[self.observed]
        others = np.concatenate([starts, self._guessed_scales(noise) if self.settings.free_scale else []])
        rng = np.random.default_rng(0)
        usual = self._with_known(self.system.usual)
        moves = 10.0 ** (DECADES * rng.uniform(-1.0, 1.0, (N_GUESSES, usual.size)))
        guesses = np.concatenate([[self.parameters, usual], self._with_known(usual * moves)])
        thetas = np.concatenate([guesses, np.tile(others, (len(guesses), 1))], axis=1)
        energies = np.array([energy_or_infinity(energy_function, theta) for theta in thetas])
        self.progress.count(energies)
        best = np.argsort(np.where(np.isfinite(energies), energies, np.inf), kind="stable")[:N_FITTED]
        fitted = [self._fit(thetas[k]) for k in best]
        energies = np.array([self._energy_at(theta).evaluate(theta)[0][0] for theta in fitted])
        return np.asarray(fitted[int(np.argmin(np.where(np.isfinite(energies), energies, np.inf)))])

    def _fit(self, theta: Array) -> Array:
        """θ of lower energy, with a new grid for it as long as the energy changes with the grid."""
        energy_function = self._energy_at(theta)
        for _ in range(N_GRIDS // 3):
            theta, energy = self._minimised(energy_function, self._polished(energy_function, theta), N_ITERATIONS)
            energy_function = self._energy_at(theta)
            if abs(energy_function.evaluate(theta)[0][0] - energy) < NEARLY_SAME:
                break
        return theta

    def _polished(self, energy_function: TrajectoryEnergy, theta: Array) -> Array:
        """The θ of lowest energy among those with one parameter a little larger or smaller."""
        free = np.flatnonzero(np.isnan(self.known))
        trials = np.tile(theta, (free.size * POLISH.size + 1, 1))
        for k, parameter in enumerate(free):
            trials[1 + k * POLISH.size : 1 + (k + 1) * POLISH.size, parameter] *= 1.0 + POLISH
        energies = energy_function.evaluate(trials)[0]
        self.progress.count(energies)
        return np.asarray(trials[int(np.argmin(np.where(np.isfinite(energies), energies, np.inf)))])

    def _settled(self, energy_function: TrajectoryEnergy, theta: Array) -> tuple[TrajectoryEnergy, Array]:
        """The energy on a fine grid, and θ at its minimum: steps are short where fast changes may be, by their sds."""
        halos = None
        for _ in range(N_GRIDS):
            if halos is None or halos.size != self._changes(theta).places.size:
                halos = self._halos(energy_function, theta)
            energy_function = self._energy_at(theta, halos, MAX_FINENESS)
            found, energy = self._minimised(energy_function, theta, N_ITERATIONS)
            change = energy_function.evaluate(theta)[0][0] - energy
            theta = found
            if change < SAME_ENERGY and halos is not None:
                break
        return energy_function, theta

    def _halos(self, energy_function: TrajectoryEnergy, theta: Array) -> Array | None:
        """By how much the times of fast changes may differ (n_changes,), for what the data leave open of θ.

        From solutions at θ moved by HALO_SDS along the columns of a root of Laplace's covariance; at most an interval
        of the data. None, which is that interval too, where the energy is not finite about θ.
        """
        changes = self._changes(theta)
        if not len(changes.events):
            return np.zeros(0)
        curvature = curvature_at(in_batches(energy_function.evaluate), theta, 1e-6 * np.maximum(np.abs(theta), 1e-6))
        if curvature is None:
            return None
        directions = curvature.scale[:, None] * curvature.vectors / np.sqrt(curvature.sizes)
        directions[: self.known.size][~np.isnan(self.known)] = 0.0
        n_moving = theta.size - self._parts(theta)[2].size  # the scales of the errors move no solution
        root = np.asarray(np.linalg.qr(directions[:n_moving].T, mode="r")).T
        places = changes.places
        squares, longest = np.zeros(len(places)), np.diff(self.times).max()
        for direction in root.T:
            moved = np.append(theta[:n_moving] + HALO_SDS * direction, theta[n_moving:])
            squares += np.abs(places[:, None] - self._changes(moved).places).min(axis=1, initial=longest) ** 2
        return np.asarray(np.minimum(np.sqrt(squares), longest))

    def _changes(self, theta: Array) -> Changes:
        """Where the solution for θ changes fast."""
        parameters, starts, _ = self._parts(theta)
        return fast_changes(
            self.system, parameters, starts, up_to(self.schedule, self.n_rows), self._rows(), self.spread,
            self.limit,
        )  # fmt: skip

    def _energy_at(self, theta: Array, halos: Array | None = None, most: float = SEARCH_FINENESS) -> TrajectoryEnergy:
        """The energy on a grid for θ, refined until half the steps change little, at most to ``most``."""
        times = self.times[: self.n_rows]
        nodes, lengths = step_lengths(self._changes(theta), times, halos)
        before, energy_before, fineness = None, np.inf, 0.5
        while True:
            self.grid = graded_times(times, nodes, lengths, fineness)
            energy_function = self._energy_on_grid()
            energy, _, path = energy_function.evaluate_with_path(theta)
            at = np.searchsorted(self.grid, times)
            at = at + np.searchsorted(self._rows(), np.arange(len(times)), "right") - 1  # a row for each start too,
            at[1:] += np.cumsum(self.schedule.is_dosed[: len(times) - 1])  # and for each dose
            states = path[0, at]
            if before is not None and np.isfinite(energy[0]):
                change = np.quantile(np.abs(states - before) / self.spread, 0.9, axis=0)
                is_same = abs(energy[0] - energy_before) < GRID_NATS
                if is_same and (change[self.observed[: self.system.dim]] < GRID_TOLERANCE).all():
                    break
            if fineness >= most:
                break
            before, energy_before, fineness = states, energy[0], 2.0 * fineness
        self.fineness = fineness
        return energy_function

    def _energy_on_grid(self) -> TrajectoryEnergy:
        """The energy of the data that are fitted now, with one step from each time of the grid to the next."""
        rows = self._rows()
        kicks = np.full(len(self.spread), self.settings.gap) * self._unit(self.spread)
        errors: ErrorModel = self.settings.error_model(self.sd, self.settings.free_scale, self.observed)
        places = np.searchsorted(self.grid, self.times[: self.n_rows])
        values = np.full((len(self.grid), self.values.shape[1]), np.nan)
        values[places] = self.values[: self.n_rows]
        return trajectory_energy(
            self.equations, on_grid(self.schedule, self.grid), values, errors,
            Segments(places[rows], kicks, self.initial, self.signed), method=self.settings.method, step=np.inf,
            limit=self.limit, is_dosed=self.is_dosed,
        )  # fmt: skip


def energy_or_infinity(energy_function: TrajectoryEnergy, theta: Array) -> float:
    """The energy, infinite where the right-hand side divides by a complex 0, at which Numba raises."""
    try:
        return float(energy_function.evaluate(theta)[0][0])
    except ZeroDivisionError:
        return np.inf


def search_class(method: str, step: float | None) -> type[StartSearch]:
    """The search for a method: with grids for implicit methods, unless the user gives the step."""
    return StiffStartSearch if method in IMPLICIT_ORDERS and step is None else StartSearch
