"""Several experiments in one trajectory likelihood: what they share, their joint energy, and where it is lowest."""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from toolkit._compiler import HoldsFunctions, SharedCode, call_part, kernel, pack_arguments, set_recipe
from toolkit.errors import shown
from toolkit.maths.elementary import select

from ..arrays import Array, Bools, Integers
from ..data.series import Series, has_doses
from ..modes.guess_fit import Guesses
from ..modes.local_noise import Fitted
from ..modes.steps.step_check import settled_with_short_steps
from ..solvers.implicit import IMPLICIT_ORDERS
from .error_laws import SCALE_WORDS, scale_name
from .interface import WITH_KERNEL, Experiment, Measured, link_with_kernel
from .start_search import SearchProgress, StartSearch, TrajectorySettings, is_finite, minimised
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

    def parameters(self, theta: Array) -> Array:
        """The experiment's own θ (n, its q) from that of all (n, q)."""
        return np.where(self.rows >= 0, theta[:, np.maximum(self.rows, 0)], self.known)


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
        return tuple(fit for part in self.parts for fit in part.energy.fitted(part.parameters(theta[None])[0]))

    def measured(self) -> tuple[Measured, ...]:
        """What the values are, experiment by experiment."""
        return tuple(measured for part in self.parts for measured in part.energy.measured())

    @property
    def scale_rows(self) -> Integers | None:
        """The row of θ with the standard deviation of each value (values,), −1 where known; None: no residuals."""
        every = [(part, part.energy.scale_rows) for part in self.parts]
        found = [np.where(own >= 0, part.rows[own], -1) for part, own in every if own is not None]
        return np.concatenate(found) if len(found) == len(every) else None

    def residuals(self, theta: Array) -> Array:
        """Residuals (n, values) in standard deviations at ``theta`` (n, q), nan where there is no solution."""
        return np.concatenate([part.energy.residuals(part.parameters(theta)) for part in self.parts], axis=1)

    def log_densities(self, theta: Array) -> Array:
        """Log densities (n, values), with all constants, at ``theta`` (n, q), experiment by experiment."""
        return np.concatenate([part.energy.log_densities(part.parameters(theta)) for part in self.parts], axis=1)

    @property
    def n_steps(self) -> int:
        """Steps of the experiment that has most."""
        return max(part.energy.n_steps for part in self.parts)

    @property
    def n_states(self) -> int:
        """Numbers that are in memory for one solution."""
        return max(part.energy.n_states for part in self.parts)

    @property
    def method(self) -> str:
        """The method of the steps."""
        return self.parts[0].energy.method

    def unresolved(self, theta: Array, at: Array) -> Bools:
        """Whether a step of a solution is too long, (n,), as ``TrajectoryEnergy.unresolved``."""
        every = [part.energy.unresolved(part.parameters(theta), part.parameters(at[None])[0]) for part in self.parts]
        return np.asarray(np.any(every, axis=0))

    def with_steps(self, factor: int) -> "JointEnergy":
        """The same energy with ``factor`` steps for each step."""
        return self._with(tuple(part._replace(energy=part.energy.with_steps(factor)) for part in self.parts))

    def judged_at(self, theta: Array) -> "JointEnergy":
        """The same energy, infinite where a step is too long for a solution, as ``TrajectoryEnergy.judged_at``."""
        return self._with(
            tuple(part._replace(energy=part.energy.judged_at(part.parameters(theta[None])[0])) for part in self.parts)
        )

    def _with(self, parts: tuple[Part, ...]) -> "JointEnergy":
        """The same experiments with other energies."""
        kernel, numbers, work_rows = joined(parts)
        return replace(self, kernel=kernel, numbers=numbers, work_rows=work_rows, parts=parts)

    def normal_scores(self, theta: Array) -> Array:
        """Residuals (n, values) at ``theta`` (n, q), experiment by experiment."""
        return np.concatenate([part.energy.normal_scores(part.parameters(theta)) for part in self.parts], axis=1)


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


def joined(parts: Sequence[Part]) -> tuple[Any, Array, int]:
    """The kernel, the numbers and how many work rows of the sum of ``parts``, which have the same kernel."""
    begin, begins, blocks = N_HEAD + len(parts), [], []
    for energy, row, every in parts:
        table = np.stack([row, every], axis=1).ravel()
        block = np.concatenate([[len(row)], table, energy.numbers])
        begins.append(begin)
        blocks.append(block)
        begin += block.size
    most = max(len(part.rows) for part in parts)
    numbers = np.concatenate([[len(parts), most], begins, *blocks]).astype(np.float64)
    work_rows = 2 * most + 1 + max(part.energy.work_rows for part in parts)
    return joint_kernel(parts[0].energy.kernel), numbers, work_rows


def joint_energy(energies: Sequence[TrajectoryEnergy], rows: ParameterRows, known: Array) -> JointEnergy:
    """The sum of ``energies``, of experiments with the same kernel."""
    n, dim = known.shape[1], energies[0].dim
    positive = np.zeros(len(rows.names), np.bool_)
    experiments, parts = [], []
    for energy, row, values in zip(energies, rows.of, np.nan_to_num(known), strict=True):
        parts.append(Part(energy, row, np.append(values, np.zeros(len(row) - n))))
        positive[row[row >= 0]] |= np.array(energy.positive)[row >= 0]
        is_fixed = energy.initial is not None
        experiments.append(
            Experiment(
                row[:n], values, np.full(dim, -1) if is_fixed else row[n : n + dim],
                np.array(energy.initial) if is_fixed else np.zeros(dim),
            )
        )  # fmt: skip
    positives = tuple(positive.tolist())
    return JointEnergy(rows.names, positives, *joined(parts), tuple(experiments), tuple(parts))


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
        self.searches = self._searches()

    def run(self) -> tuple[JointEnergy, Array]:
        """The joint energy, and the θ (q,) of lowest energy that was found.

        An experiment whose own search fails has the others' parameters; it fails for all where every search does.
        """
        energies, thetas, failures = [], [], []
        n = self.equations.system.n_parameters
        for e, search in enumerate(self.searches):
            self.progress.begin_experiment(self._what(e))
            try:
                energy, theta = search.run()
            except ValueError as error:
                failures.append(self._labelled(e, error))
                energy, theta = search.stand_in()
                is_own = np.isin(self.equations.system.parameters, self.settings.own)
                theta[:n] = np.where(is_own, theta[:n], np.nan)
            energies.append(energy)
            thetas.append(theta)
        if len(failures) == len(thetas):
            raise failures[0]
        joint, rows, floor = self._joined(energies, thetas)
        self.progress.begin_experiment("")
        self.progress.begin_stage("all experiments together")
        return joint, self._lowest(joint, self._candidates(rows, thetas), floor)

    def guesses(self) -> Guesses:
        """The usual parameters in all experiments with the system's start, and with starts at the data."""
        self.progress.begin_stage("the fit from the usual parameters")
        each = [search.guesses() for search in self.searches]
        if not all(guesses.thetas for guesses in each):
            return Guesses(None, [], np.zeros(0))
        several = len({len(guesses.thetas) for guesses in each}) == 1
        joint, rows, floor = self._joined([guesses.energy for guesses in each], [guesses.thetas[0] for guesses in each])
        chosen = zip(*[guesses.thetas for guesses in each], strict=True) if several else [[g.thetas[-1] for g in each]]
        return Guesses(joint, [self._candidates(rows, list(thetas))[0] for thetas in chosen], floor)

    def settled(self, guesses: Guesses, theta: Array) -> tuple[JointEnergy, Array]:
        """The energy with steps that suit θ, where none is given, and θ at its minimum."""
        if self.settings.step is not None:
            return guesses.energy, theta

        def minimise(energy: JointEnergy, theta: Array, n_iterations: int) -> tuple[Array, float]:
            return minimised(energy, theta, guesses.floor, n_iterations=n_iterations, progress=self.progress)

        if self.settings.method in IMPLICIT_ORDERS:  # on grids for θ
            each = [part.parameters(theta[None])[0] for part in guesses.energy.parts]
            energies = [search.energy_for(own) for search, own in zip(self.searches, each, strict=True)]
            joint, _, _ = self._joined(energies, each)
            return joint, minimise(joint, theta, N_ITERATIONS)[0]
        return settled_with_short_steps(guesses.energy, theta, minimise)

    def _searches(self) -> list[StartSearch]:
        """The search for each experiment alone.

        An experiment whose own slopes give parameters that cannot be solved begins at the usual ones, as long as
        others do not fail so.
        """
        searches: list[StartSearch | None] = []
        failures: dict[int, ValueError] = {}
        for e in range(len(self.data)):
            try:
                searches.append(self._search(e, self.equations))
            except ValueError as error:
                failures[e] = self._labelled(e, error)
                searches.append(None)
        if len(failures) == len(searches):
            raise failures[0]
        for e, failure in failures.items():
            try:
                searches[e] = self._search(e, self.equations._replace(model=None))
            except ValueError:
                raise failure from None
        self.progress.begin_experiment("")
        return [search for search in searches if search is not None]

    def _search(self, e: int, equations: Equations) -> StartSearch:
        """The search for one experiment."""
        self.progress.begin_experiment(self._what(e))
        kind = search_class(self.settings.method, self.settings.step)
        is_dosed = any(has_doses(series) for series in self.data)  # one kernel serves all
        return kind(
            self.settings, equations, self.data[e], self.values[e], self.progress, self.known[e], is_dosed=is_dosed
        )

    def _what(self, e: int) -> str:
        """What an experiment is called, where there are several."""
        return f"experiment {self.data[e].name!r} ({e})" if len(self.data) > 1 else ""

    def _labelled(self, e: int, error: ValueError) -> ValueError:
        """``error`` with the experiment's name before it."""
        return ValueError(f"{self._what(e)}: {error}") if self._what(e) else error

    def _joined(
        self, energies: Sequence[TrajectoryEnergy], thetas: Sequence[Array]
    ) -> tuple[JointEnergy, ParameterRows, Array]:
        """The joint energy, which parameters are shared, and soft lower limits (q,) of θ."""
        rows = rows_of_experiments(energies, self.labels, self.equations, self.settings.own, self.known)
        floor = np.zeros(len(rows.names))
        for row, search, theta in zip(rows.of, self.searches, thetas, strict=True):
            np.maximum.at(floor, row[row >= 0], search.lower_limits(theta.size)[row >= 0])
        return joint_energy(energies, rows, self.known), rows, floor

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
        unknown = np.isnan(found).all(axis=0)  # where the searches of all that have it failed
        found[:, unknown] = usual[unknown]
        n_having = np.bincount(np.concatenate([row[row >= 0] for row in rows.of]), minlength=q)
        squares = np.sqrt(np.nanmean(found**2, axis=0))
        median, mean = np.nanmedian(found, axis=0), np.nanmean(found, axis=0)
        shared = is_parameter & (n_having > 1)
        base = np.where(is_parameter | (n_having == 1), median, squares)
        every = [median, mean, *np.where(np.isnan(found), median, found), usual]
        return [np.where(shared, one, base) for one in every]

    def _lowest(self, energy: JointEnergy, candidates: Sequence[Array], floor: Array) -> Array:
        """The θ of lowest energy near the best of the candidates."""
        finite = [one for one in candidates if is_finite(energy, one)]
        if not finite:
            limit = max(search.limit for search in self.searches)
            raise ValueError(
                "data must be near solutions with what the experiments share, but none of the parameters found for "
                f"one experiment has solutions within ±{limit:g} for all: name more parameters in own, "
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
