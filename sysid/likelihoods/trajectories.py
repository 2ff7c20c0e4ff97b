"""The trajectory likelihood: measured states are those of a solution, with independent errors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from toolkit.errors import check_array, check_choice, check_count, check_instance, check_number, check_text, is_a, shown

from ..arrays import Array
from ..data.labels import check_labels
from ..data.series import Series, check_series, has_doses
from ..libraries import Library
from ..model import Model, check_mapping
from ..modes.guess_fit import SearchFromGuess, lowest_start
from ..priors import check_priors
from ..solvers.implicit import STEP_METHODS
from ..systems.inputs import NO_INPUTS
from ..systems.system import System, check_names
from ..systems.user_systems import points_about
from .error_laws import ERRORS
from .experiments import JointEnergy, JointSearch
from .interface import Prepared
from .observations import check_observation, observation_of
from .start_search import SearchProgress, TrajectorySettings
from .stiff_search import search_class
from .trajectory_kernel import TrajectoryEnergy, equations_of, values_in_order

CHOICES = {"noise": ("free", "known"), "start": ("free", "fixed")}


@dataclass(frozen=True)
class Trajectory(TrajectorySettings):
    """What ``trajectory`` makes: how states become data."""

    def prepare(
        self,
        data: Series | Sequence[Series],
        model: System | Library | Model,
        progress: SearchProgress | None = None,
        prior: Any = None,
    ) -> Prepared:
        """The energy of ``data``, a Series or several, under solutions of ``model``, with a start found from the data.

        progress: of the search for the start; None: nothing is shown, and it ends after ten minutes. prior: as
        ``identify`` takes it, for the choice of the start alone; the energy has none.

        θ: parameters, then free initial states, "x(0)" of the first segment, "x(1)" of the next, then free standard
        deviations "sd(x)". Raises TypeError or ValueError naming what does not fit, TimeoutError where the search
        takes too long.
        """
        energy, theta = self.energy_and_start(data, model, progress, prior)
        prepared = Prepared(
            energy.names, energy.kernel, energy.numbers, energy.work_rows, energy.positive, theta,
            observation=self.observation, values=energy,
        )  # fmt: skip
        if isinstance(energy, JointEnergy):
            return prepared._replace(experiments=energy.experiments)
        return prepared._replace(initial=energy.initial)

    def energy_and_start(
        self,
        data: Series | Sequence[Series],
        model: System | Library | Model,
        progress: SearchProgress | None = None,
        prior: Any = None,
    ) -> tuple[TrajectoryEnergy | JointEnergy, Array]:
        """The energy, and a θ (q,) near its minimum."""
        given = list(data) if isinstance(data, list | tuple) else [data]
        if not given:
            raise ValueError("data must be a Series or several, got none")
        labels = [f"data[{i}]" for i in range(len(given))] if len(given) > 1 else ["data"]
        series = [check_series(label, one) for label, one in zip(labels, given, strict=True)]
        if not is_a(model, System | Library | Model):
            raise TypeError(f"model must be a System, Library or Model, got {shown(model)}")
        check_labels(labels, series, model if isinstance(model, System) else None)
        equations = equations_of(model)._replace(observation=self.observation)
        check_observation(equations.system, self.observation, points_about(equations.system))
        quantities = equations.quantities
        values = [self._checked_values(label, one, quantities) for label, one in zip(labels, series, strict=True)]
        if progress is None:
            progress = SearchProgress()
        check_instance("progress", progress, SearchProgress)
        with progress.display():
            search: SearchFromGuess
            if len(series) > 1 or self.own or self.known:
                search = JointSearch(self, equations, series, values, progress)
            else:
                kind = search_class(self.method, self.step)
                search = kind(self, equations, series[0], values[0], progress, is_dosed=has_doses(series[0]))
            return lowest_start(search, partial(check_priors, prior), progress.count)

    def _checked_values(self, label: str, data: Series, quantities: tuple[str, ...]) -> Array:
        """The data (n, quantities) in their order. Raises ValueError that names ``label``."""
        values = values_in_order(data, quantities)
        not_positive = np.argwhere(values <= 0.0)
        if self.start == "fixed":  # the first row is then no datum
            not_positive = not_positive[not_positive[:, 0] > 0]
        if self.errors == "lognormal" and not_positive.size:
            row, d = not_positive[0]
            raise ValueError(
                f"{label} must be > 0 for log-normal errors, got {values[row, d]:g} of {quantities[d]!r} at row {row}"
            )
        not_counts = np.argwhere((values < 0.0) | (values != np.round(values)) & ~np.isnan(values))
        if self.counts and not_counts.size:
            row, d = not_counts[0]
            raise ValueError(
                f"{label} must be whole numbers ≥ 0 for errors={self.errors!r}, got {values[row, d]:g} of "
                f"{quantities[d]!r} at row {row}"
            )
        for state, course in (data.inputs or NO_INPUTS).doses.items():
            if course.times[0] < data.times[0]:
                raise ValueError(
                    f"{label} must begin no later than its doses, got one to {state!r} at {course.times[0]:.10g} and "
                    f"the first time {data.times[0]:.10g}: add a row there, of nan where nothing was measured"
                )
        if self.segments >= len(data):
            raise ValueError(f"segments must be fewer than the {len(data)} times of the {label}, got {self.segments}")
        return values


def trajectory(
    *,
    errors: str = "gaussian",
    noise: Any = "free",
    start: Any = "free",
    method: str = "rk4",
    step: float | None = None,
    segments: int = 1,
    gap: float = 1e-2,
    limit: float | None = None,
    own: Sequence[str] = (),
    known: Mapping[str, Any] | None = None,
    dof: float = 4.0,
    observe: Mapping[str, Any] | None = None,
) -> Trajectory:
    """The likelihood of data that are states of a solution at their times, with independent errors.

    Of several Series, each is an experiment with a solution of its own; all must follow the same equations.

    errors: "gaussian", y ~ N(x, sd²); "lognormal", log y ~ N(log x, sd²); "student", (y − x)/sd ~ Student's t with
    ``dof`` degrees of freedom, for outliers; for counts, whole numbers ≥ 0 about states > 0 (≥ 0 for a count of 0),
    "poisson", y ~ Poisson(x), or "negative_binomial", of mean x and variance x + a x², with the dispersion a in place
    of sd: "dispersion(x)". Only measured states need to be > 0, but segments need it of all. y is left out where
    missing (nan). noise: the standard deviations of y or of log y: "free", one parameter a state; "known",
    those of the data; or numbers > 0, one or one a state; "poisson" has none. start: the state at the first time:
    "free", parameters; "fixed", the first row of the data, then taken for exact; or an array (dim,). method:
    "rk4" or "rk5"; or, for stiff systems, "sdirk4": implicit and L-stable, of order 4, in which Newton's method solves
    each stage; where it does not converge the energy is infinite. step: the longest, > 0; None: so short that half of
    it changes the solution from one datum to the next by less than 1e-6 of the spread of states, where the search
    begins, and shorter where the posterior needs it (see ``identify``). A step that is given is kept, and ``identify``
    warns where it is too long. For "sdirk4" None is a grid of unequal steps, made for the parameters at the end of the
    search for a start, and frozen unless the posterior needs a finer one: so short that half
    the steps change the energy there by less than 0.01 nats, and short too wherever fast changes of the solution may be
    within 5 standard deviations of Laplace's approximation. Far from these parameters energies are wrong or infinite.
    Steps end at all times of data, doses, and jumps or kinks of inputs; each experiment has a grid of its own.
    segments: 1: one solution. More: as many solutions, one after another, each from a free state of its own, with kicks
    where they meet, N(0, (gap × spread of the state)²), or for log-normal errors and counts N(0, gap²) on logarithms.
    Chaotic systems need it: the energy of one long solution has a minimum for each way to miss.
    limit: where a state leaves ±limit, the energy is infinite. None: 1000 times the largest value among an experiment's
    data and its usual or given initial state, and at least 1e6.
    own: names of parameters, or of standard deviations as "sd(x)", that each experiment has for itself; it shares the
    others with all experiments, but for its initial states, which are always its own. Names of what is its own end in
    the name of its series, "k[a]", "x(0)[a]", where all these differ, else in its number from 0, "k[0]".
    known: parameters of the system → their value, one number for all experiments, or one for each, as of doses.
    observe: names of columns of the data that are no states → functions (t, x, p) of time, states and parameters, or
    also inputs, (t, x, p, u), whose values they are, with errors of the same law: a sum of states, a
    state times an unknown scale, a logarithm. They must be analytic, as a system's right-hand side.
    Law: −log density of the data, with all constants; with segments that of data and states at their starts, under a
    system that is kicked there, which for gap → 0 leaves parameters and initial state the posterior of one solution.
    Its gradient is exact for the discretised solution. Source of multiple shooting: Bock (1983); of
    sdirk4: Hairer & Wanner (1996), Solving Ordinary Differential Equations II, table IV.6.5.
    Raises TypeError or ValueError naming the argument where something is off.
    """
    check_choice("errors", errors, ERRORS)
    if errors == "poisson" and not (is_a(noise, str) and noise == "free"):
        raise ValueError(f"noise must be left out for errors='poisson', which has none, got {shown(noise)}")
    if errors == "negative_binomial" and is_a(noise, str) and noise == "known":
        raise ValueError("noise must be 'free' or dispersions for errors='negative_binomial', got 'known'")
    check_choice("method", method, STEP_METHODS)
    return Trajectory(
        errors,
        word_or_numbers("noise", noise, above=0.0),
        word_or_numbers("start", start),
        method,
        None if step is None else check_number("step", step, above=0.0),
        check_count("segments", segments, at_least=1, below=2**16),
        check_number("gap", gap, above=0.0, below=1e6),
        None if limit is None else check_number("limit", limit, above=0.0, below=1e100),
        check_names("own", own, at_least=0),
        known_numbers(known),
        check_number("dof", dof, above=0.0, below=1e6),
        observation_of(observe),
    )


def known_numbers(known: Any) -> tuple[tuple[str, tuple[float, ...]], ...]:
    """``known`` as names with their values."""
    found = []
    for name, value in check_mapping("known", known).items():
        label = f"known[{check_text('a name in known', name)!r}]"
        numbers = check_array(label, value)
        if numbers.ndim > 1 or not numbers.size:
            raise ValueError(f"{label} must be a number, or one for each experiment, got {shown(value)}")
        found.append((name, tuple(numbers.ravel().tolist())))
    return tuple(found)


def word_or_numbers(name: str, value: Any, **limits: float) -> str | tuple[float, ...]:
    """``value`` as one of the words allowed for ``name``, or as numbers."""
    if is_a(value, str):
        return check_choice(name, value, CHOICES[name])
    given = check_array(name, value)
    if not given.size:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, CHOICES[name]))} or numbers, got {shown(value)}")
    numbers = tuple(given.ravel().tolist())
    return tuple(check_number(f"{name}[{i}]", number, **limits) for i, number in enumerate(numbers))
