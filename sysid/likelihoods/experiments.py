"""Several experiments in one trajectory likelihood: what they share, their joint energy, and where it is lowest."""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from toolkit._compiler import HoldsFunctions, SharedCode, call_part, kernel, pack_arguments, set_recipe
from toolkit.errors import shown
from toolkit.maths.elementary import select

from ..arrays import Array, Bools, Integers
from ..data.series import Series, has_doses
from ..modes.local_noise import Fitted
from .error_laws import SCALE_WORDS, scale_name
from .interface import WITH_KERNEL, Experiment, Measured, link_with_kernel
from .start_search import SearchProgress, TrajectorySettings, is_finite, minimised
from .stiff_search import search_class
from .trajectory_kernel import Equations, TrajectoryEnergy, evaluated

# Numbers: how many experiments; the most parameters that one has; then where the block of each begins. A block: how
# many parameters the experiment has; for each its row of θ (−1 where known) and its value where known; the experiment's
# own numbers. Work rows: the experiment's θ, its slope, its energy, its own work rows.
N_EXPERIMENTS, MOST_PARAMETERS, N_HEAD = range(3)


@kernel
def gather(theta, table, own_theta):
    """An experiment's parameters from those of all, or at their known values."""
    for k in range(own_theta.shape[0]):
        row, value = int(table[2 * k]), table[2 * k + 1]
        for lane in range(own_theta.shape[1]):
            own_theta[k, lane] = theta[row, lane] if row >= 0 else value


@kernel
def scatter(own_slope, table, slope):
    """Add an experiment's slope to that of all."""
    for k in range(own_slope.shape[0]):
        row = int(table[2 * k])
        if row >= 0:
            for lane in range(own_slope.shape[1]):
                slope[row, lane] += own_slope[k, lane]


@kernel
def add_experiments(theta, energy, slope, numbers, work, shoot):
    """The sum of the energies of experiments, each by the kernel ``shoot`` of one."""
    for lane in range(energy.size):
        energy[lane] = 0.0
    for k in range(slope.shape[0]):
        for lane in range(energy.size):
            slope[k, lane] = 0.0
    most = int(numbers[MOST_PARAMETERS])
    for e in range(int(numbers[N_EXPERIMENTS])):
        block = int(numbers[N_HEAD + e])
        q = int(numbers[block])
        table, own_theta, own_slope = numbers[block + 1 :], work[:q], work[most : most + q]
        own_energy = work[2 * most]
        gather(theta, table, own_theta)
        given = (own_theta, own_energy, own_slope, numbers[block + 1 + 2 * q :], work[2 * most + 1 :])
        call_part(shoot, pack_arguments(shoot, given))
        for lane in range(energy.size):
            energy[lane] += own_energy[lane]
        scatter(own_slope, table, slope)
    for k in range(slope.shape[0]):
        for lane in range(energy.size):
            slope[k, lane] = select(energy[lane] < math.inf, slope[k, lane], 0.0)


ADD_EXPERIMENTS = SharedCode(add_experiments, WITH_KERNEL)


@functools.cache
def joint_kernel(shoot: Any) -> Any:
    """The kernel of a ``Prepared``: the sum of the energies of experiments, each by the kernel ``shoot`` of one."""

    @kernel
    def joint(theta, energy, slope, numbers, work):
        add_experiments(theta, energy, slope, numbers, work, shoot)

    link_with_kernel(joint.py_func, ADD_EXPERIMENTS, shoot)
    set_recipe(joint, joint_kernel, shoot)
    return joint


class Part(NamedTuple):
    """An experiment's energy; the rows of θ of its parameters (its q,), −1 where known, and the values there."""

    energy: TrajectoryEnergy
    rows: Integers
    known: Array


@dataclass(frozen=True, eq=False)
class JointEnergy(HoldsFunctions):
    """The energy of all experiments as a function of θ: parameters, then initial states, then standard deviations."""

    names: tuple[str, ...]
    positive: tuple[bool, ...]
    kernel: Any
    numbers: Array
    work_rows: int
    experiments: tuple[Experiment, ...]
    parts: tuple[Part, ...]

    def evaluate(self, theta: Array) -> tuple[Array, Array]:
        """Energy (n,) and dU/dθ (n, q) at ``theta`` (n, q)."""
        energy, slope, _ = evaluated(self.kernel, self.numbers, self.work_rows, theta)
        return energy, slope

    def fitted(self, theta: Array) -> tuple[Fitted, ...]:
        """The data beside the solutions at ``theta`` (q,), experiment by experiment."""
        return tuple(
            fit
            for energy, rows, known in self.parts
            for fit in energy.fitted(np.where(rows >= 0, theta[np.maximum(rows, 0)], known))
        )

    def measured(self) -> tuple[Measured, ...]:
        """What the values are, experiment by experiment."""
        return tuple(measured for part in self.parts for measured in part.energy.measured())

    def log_densities(self, theta: Array) -> Array:
        """Log densities (n, values), with all constants, at ``theta`` (n, q), experiment by experiment."""
        every = [
            energy.log_densities(np.where(rows >= 0, theta[:, np.maximum(rows, 0)], known))
            for energy, rows, known in self.parts
        ]
        return np.concatenate(every, axis=1)


class ParameterRows(NamedTuple):
    """Names of θ (q,), and for each experiment the row of θ (its q,) of each of its parameters, −1 where known."""

    names: tuple[str, ...]
    of: tuple[Integers, ...]


def labels_of(data: Sequence[Series]) -> list[str]:
    """What the names of an experiment's own parameters end in: its series' name, or its number; "" for one alone."""
    if len(data) == 1:
        return [""]
    names = [series.name for series in data]
    differ = len(set(names)) == len(names) and all(name.strip() for name in names)
    return [f"[{name}]" for name in (names if differ else range(len(names)))]


def rows_of_experiments(
    energies: Sequence[TrajectoryEnergy], labels: Sequence[str], equations: Equations, own: Sequence[str], known: Array
) -> ParameterRows:
    """Which parameters of experiments are the same. known: (experiments, n_parameters), nan where free."""
    scales = [f"{word}({name})" for word in SCALE_WORDS for name in equations.quantities]
    n = equations.system.n_parameters
    ordered, named = [], []
    for e, (energy, label) in enumerate(zip(energies, labels, strict=True)):
        named.append([""] * len(energy.names))
        for k, name in enumerate(energy.names):
            if k < n:
                if not np.isnan(known[e, k]):
                    continue
                place = (0, k, e)
            else:
                place = (2, scales.index(name), e) if name in scales else (1, e, k)
            named[e][k] = name + (label if place[0] == 1 or name in own else "")
            ordered.append((place, named[e][k]))
    names = tuple(dict.fromkeys(name for _, name in sorted(ordered)))
    row_of = {name: row for row, name in enumerate(names)} | {"": -1}
    return ParameterRows(names, tuple(np.array([row_of[name] for name in mine], np.int64) for mine in named))


def joint_energy(energies: Sequence[TrajectoryEnergy], rows: ParameterRows, known: Array) -> JointEnergy:
    """The sum of ``energies``, of experiments with the same kernel."""
    n, dim = known.shape[1], energies[0].dim
    positive = np.zeros(len(rows.names), np.bool_)
    begin, begins, blocks, experiments, parts = N_HEAD + len(energies), [], [], [], []
    for energy, row, values in zip(energies, rows.of, np.nan_to_num(known), strict=True):
        every = np.append(values, np.zeros(len(row) - n))
        table = np.stack([row, every], axis=1).ravel()
        block = np.concatenate([[len(row)], table, energy.numbers])
        begins.append(begin)
        blocks.append(block)
        parts.append(Part(energy, row, every))
        begin += block.size
        positive[row[row >= 0]] |= np.array(energy.positive)[row >= 0]
        is_fixed = energy.initial is not None
        experiments.append(
            Experiment(
                row[:n], values, np.full(dim, -1) if is_fixed else row[n : n + dim],
                np.array(energy.initial) if is_fixed else np.zeros(dim),
            )
        )  # fmt: skip
    most = max(map(len, rows.of))
    numbers = np.concatenate([[len(energies), most], begins, *blocks]).astype(np.float64)
    work_rows = 2 * most + 1 + max(energy.work_rows for energy in energies)
    kernel = joint_kernel(energies[0].kernel)
    positives = tuple(positive.tolist())
    return JointEnergy(rows.names, positives, kernel, numbers, work_rows, tuple(experiments), tuple(parts))


N_TRIED = 3  # candidates of lowest energy that are moved to a minimum
N_ITERATIONS = 200


class JointSearch:
    """A search for start values of several experiments: each alone, then shared parameters of some for all."""

    def __init__(
        self,
        settings: TrajectorySettings,
        equations: Equations,
        data: Sequence[Series],
        values: Sequence[Array],
        progress: SearchProgress,
    ) -> None:
        self.settings, self.equations, self.data, self.progress = settings, equations, data, progress
        self.values = values
        self.labels = labels_of(data)
        self.known = self._known_values()
        self._check_own()

    def run(self) -> tuple[JointEnergy, Array]:
        """The joint energy, and the θ (q,) of lowest energy that was found."""
        energies, thetas, limits = [], [], []
        is_dosed = any(has_doses(series) for series in self.data)  # one kernel serves all
        for e, (series, values) in enumerate(zip(self.data, self.values, strict=True)):
            what = f"experiment {series.name!r} ({e})" if len(self.data) > 1 else ""
            self.progress.begin_experiment(what)
            try:
                kind = search_class(self.settings.method, self.settings.step)
                search = kind(
                    self.settings, self.equations, series, values, self.progress, self.known[e], is_dosed=is_dosed
                )
                energy, theta = search.run()
            except ValueError as error:
                raise (ValueError(f"{what}: {error}") if what else error) from error
            energies.append(energy)
            thetas.append(theta)
            limits.append(search.lower_limits(theta.size))
        rows = rows_of_experiments(energies, self.labels, self.equations, self.settings.own, self.known)
        joint = joint_energy(energies, rows, self.known)
        self.progress.begin_experiment("")
        self.progress.begin_stage("all experiments together")
        floor = np.zeros(len(rows.names))
        for row, limit in zip(rows.of, limits, strict=True):
            np.maximum.at(floor, row[row >= 0], limit[row >= 0])
        return joint, self._lowest(joint, self._candidates(rows, thetas), floor)

    def _candidates(self, rows: ParameterRows, thetas: Sequence[Array]) -> list[Array]:
        """θ (q,) with what is shared from the experiments' medians and means, from each, or at its usual value.

        Standard deviations that are shared are root mean squares in all of them.
        """
        n, q = self.equations.system.n_parameters, len(rows.names)
        found = np.full((len(thetas), q), np.nan)
        is_parameter = np.zeros(q, np.bool_)
        usual = np.full(q, np.nan)
        for e, (row, theta) in enumerate(zip(rows.of, thetas, strict=True)):
            found[e, row[row >= 0]] = theta[row >= 0]
            free = row[:n] >= 0
            is_parameter[row[:n][free]] = True
            usual[row[:n][free]] = self.equations.system.usual[free]
        squares = np.sqrt(np.nanmean(found**2, axis=0))
        median, mean = np.nanmedian(found, axis=0), np.nanmean(found, axis=0)
        shared = is_parameter & ((~np.isnan(found)).sum(axis=0) > 1)
        base = np.where(is_parameter | ((~np.isnan(found)).sum(axis=0) == 1), median, squares)
        every = [median, mean, *np.where(np.isnan(found), median, found), usual]
        return [np.where(shared, one, base) for one in every]

    def _lowest(self, energy: JointEnergy, candidates: Sequence[Array], floor: Array) -> Array:
        """The θ of lowest energy near the best of the candidates."""
        finite = [one for one in candidates if is_finite(energy, one)]
        if not finite:
            raise ValueError(
                "data must be near solutions with what the experiments share, but none of the parameters found for "
                f"one experiment has solutions within ±{self.settings.limit:g} for all: name more parameters in own, "
                "or take more segments, or a higher limit"
            )
        values = energy.evaluate(np.array(finite))[0]
        self.progress.count(values)
        results = []
        for i in np.argsort(values, kind="stable")[:N_TRIED]:
            results.append(minimised(energy, finite[i], floor, n_iterations=N_ITERATIONS, progress=self.progress))
        return min(results, key=lambda result: result[1])[0]

    def _known_values(self) -> Array:
        """Known parameters (experiments, n_parameters), nan where free. Raises ValueError where they do not fit."""
        system, n = self.equations.system, len(self.data)
        known = np.full((n, system.n_parameters), np.nan)
        for name, numbers in self.settings.known:
            if name not in system.parameters:
                raise ValueError(f"known must name parameters ({', '.join(system.parameters)}), got {shown(name)}")
            if len(numbers) not in (1, n):
                raise ValueError(f"known[{name!r}] must be one number or {n}, one an experiment, got {len(numbers)}")
            known[:, system.parameters.index(name)] = numbers
        return known

    def _check_own(self) -> None:
        """Raise ValueError where ``own`` names what is no free parameter."""
        system = self.equations.system
        free: Bools = np.isnan(self.known[0])
        names = [name for name, is_free in zip(system.parameters, free, strict=True) if is_free]
        if self.settings.free_scale:
            measured = {state for series in self.data for state in series.states}
            names += [
                scale_name(self.settings.errors, state) for state in self.equations.quantities if state in measured
            ]
        for name in self.settings.own:
            if name not in names:
                raise ValueError(f"own must name free parameters ({', '.join(names)}), got {shown(name)}")
