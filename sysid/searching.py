"""From data to the start of a trajectory's sampler, by way of shots that are ever more like the one wanted."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .guessing import matched_parameters, polished, smoothed_states
from .own_systems import check_analytic
from .search_progress import SearchProgress
from .series import Series
from .shots import Equations, Errors, Segments, Shot, shot_of, steps_between

Array = NDArray[np.float64]
AGREEMENT = 1e-6  # of a step and half of it, over one interval, in units of the states' spread
LEAST_NOISE = 1e-6  # of a guess, in the same units
FIRST_NOISE = 3e4  # in units of the least
GUESSED_SEGMENTS = 10
CHECKED = 24  # rows of the data at which derivatives are compared with differences


@dataclass(frozen=True)
class TrajectorySettings:
    """How states become data, and how a solution is computed: the arguments of ``trajectory``, checked."""

    errors: str
    noise: str | tuple[float, ...]
    start: str | tuple[float, ...]
    method: str
    step: float | None
    segments: int
    gap: float
    limit: float


class Search:
    """The way from data to a shot and a start: smoothed states, matched parameters, a step, ever fewer segments."""

    def __init__(
        self, law: TrajectorySettings, equations: Equations, data: Series, values: Array, progress: SearchProgress
    ) -> None:
        self.progress = progress
        self.law, self.equations, self.times = law, equations, data.times
        self.system = equations.system
        self.observed: NDArray[np.bool_] = np.asarray(~np.isnan(values).all(axis=0))
        self.logarithmic = law.errors == "lognormal"
        self.first = self._first_state(values)
        self.values = np.array(values)
        if law.start == "fixed":
            self.values[0] = np.nan  # what is taken for exact is no datum
        self.states, between = smoothed_states(self.times, values, self.system.start, logarithmic=self.logarithmic)
        self.spread = np.maximum(self.states.std(axis=0), 1e-3 * np.abs(self.states).max(axis=0))
        self.spread = np.where(self.spread > 0.0, self.spread, 1.0)
        self.sd = self._known_deviations(data)
        if equations.model is not None and self.observed.all():
            self.parameters = matched_parameters(equations.model, self.times, between)
        else:
            self.parameters = self.system.usual
        self._check_derivatives()
        self.step = self._agreeing_step() if law.step is None else law.step

    def shot(self) -> tuple[Shot, Array]:
        """The shot, and where the way ends."""
        # Few data may be smoothed to lie on their curve; from too small a noise the way down is a long one.
        least = self._least_noise()
        parameters, noise = self.parameters, np.maximum(self._guessed_noise(), FIRST_NOISE * least)[self.observed]
        free = self.law.noise == "free"
        count, theta = 0, np.zeros(0)
        stages = self._stages()
        for k, (segments, gap) in enumerate(stages, 1):
            self.progress.enter(f"stage {k} of {len(stages)} ({segments} segment{'s' * (segments > 1)})")
            shot, rows = self._shot(segments, gap)
            if segments != count:
                starts = self.states[rows[self.first is not None :]].ravel()
                theta = self._first_finite(shot, parameters, np.concatenate([starts, noise if free else []]))
            count = segments
            floor = np.zeros(theta.size)
            if free:
                floor[-noise.size :] = least[self.observed]
            theta, energy = polished(shot, theta, floor, n_iterations=60, progress=self.progress)
            if not np.isfinite(energy):
                raise ValueError(
                    "data must be near a solution from some parameters, but those found from the data's smoothed "
                    f"slopes ({', '.join(f'{v:.3g}' for v in parameters)}) give none within ±{self.law.limit:g}: take "
                    "more segments, or a higher limit"
                )
            parameters = theta[: self.system.n_parameters]
        return shot, theta

    def _check_derivatives(self) -> None:
        """Raise ValueError where a user's function is not analytic at the data, which would look like bad data."""
        model = self.equations.model
        if model is not None and all(term.own is None for term in model.library.terms):
            return
        rows = np.unique(np.linspace(0.0, len(self.times) - 1, CHECKED).round().astype(np.int64))
        points = np.concatenate([self.states[rows], np.tile(self.parameters, (len(rows), 1))], axis=1)
        check_analytic(self.system, points[np.isfinite(points).all(axis=1)])

    def _first_finite(self, shot: Shot, parameters: Array, rest: Array) -> Array:
        """A θ of finite energy with ``parameters`` or else others that are to hand; where none has it, the first."""
        guesses = (parameters, self.parameters, self.system.usual, np.zeros(parameters.size))
        places = [np.concatenate([guess, rest]) for guess in guesses]
        return next((place for place in places if is_finite(shot, place)), places[0])

    def _stages(self) -> list[tuple[int, float | None]]:
        """Segments and gaps, from many and wide (None: as wide as the noise) to those asked for."""
        few, gap = self.law.segments, self.law.gap
        stages: list[tuple[int, float | None]] = [(min(max(few, GUESSED_SEGMENTS), len(self.times) - 1), None)]
        if few > 1:
            narrower = [10.0**-k for k in range(2, 12) if 10.0**-k > 1.5 * gap]
            stages += [(few, width) for width in narrower]
        return [*stages, (few, gap)]

    def _shot(self, segments: int, gap: float | None) -> tuple[Shot, NDArray[np.int64]]:
        """The shot by ``segments``, and the rows they begin at."""
        rows = np.linspace(0.0, len(self.times) - 1, segments + 1)[:-1].round().astype(np.int64)
        kicks = np.full(len(self.spread), gap or self.law.gap) * (1.0 if self.logarithmic else self.spread)
        errors = Errors(self.logarithmic, self.sd, self.law.noise == "free", self.observed)
        if gap is None:
            kicks = np.maximum(kicks, self._guessed_noise())
        return self._shot_by(rows, kicks, errors, self.step, self.first), rows

    def _shot_by(self, rows: NDArray[np.int64], kicks: Array, errors: Errors, step: float, first: Array | None) -> Shot:
        """The shot of segments that begin at ``rows``."""
        segments = Segments(rows, kicks, first)
        return shot_of(
            self.equations, self.times, self.values, errors, segments, method=self.law.method, step=step,
            limit=self.law.limit,
        )  # fmt: skip

    def _first_state(self, values: Array) -> Array | None:
        """The initial state where it is fixed."""
        if self.law.start == "free":
            return None
        if self.law.start == "fixed":
            if np.isnan(values[0]).any():
                raise ValueError("data must have all states in the first row for start='fixed', but one is missing")
            return np.array(values[0])
        first = np.array(self.law.start)
        if first.shape != (self.system.dim,):
            raise ValueError(f"start must have {self.system.dim} states, got {first.size}")
        return first

    def _known_deviations(self, data: Series) -> Array:
        """The errors' standard deviations where they are known, else ones."""
        dim, noise = self.system.dim, self.law.noise
        if noise == "free":
            return np.ones(dim)
        if noise == "known":
            if data.noise is None or not (data.noise > 0.0).all():
                raise ValueError(f"noise='known' needs data with noise > 0, got {data.noise}")
            sd = np.ones(dim)
            sd[[self.system.states.index(name) for name in data.states]] = data.noise
            return sd
        given = np.array(noise)
        if given.size not in (1, dim):
            raise ValueError(f"noise must be one number or {dim}, one for each state, got {given.size}")
        return np.broadcast_to(given, (dim,)).copy()

    def _guessed_noise(self) -> Array:
        """The data's deviations from the smoothed states, as standard deviations (dim,)."""
        change = np.log if self.logarithmic else np.asarray
        there = ~np.isnan(self.values)
        left = np.where(there, change(self.values) - change(self.states), 0.0)
        return np.asarray(
            np.maximum(np.sqrt((left**2).sum(axis=0) / np.maximum(there.sum(axis=0), 1)), self._least_noise())
        )

    def _least_noise(self) -> Array:
        """Standard deviations (dim,) below which no guess goes, though the data lie on a solution."""
        return np.full(len(self.spread), LEAST_NOISE) * (1.0 if self.logarithmic else self.spread)

    def _agreeing_step(self) -> float:
        """A step so short that half of it changes the solutions from one datum to the next by less than AGREEMENT."""
        rows = np.arange(len(self.times) - 1)
        errors = Errors(self.logarithmic, np.ones(self.system.dim), False, self.observed)
        theta = np.concatenate([self.parameters, self.states[:-1].ravel()])
        step, ends = float(np.diff(self.times).max()), None
        self.progress.enter("the choice of a step")
        for _ in range(14):
            shot = self._shot_by(rows, self.spread, errors, step, None)
            energy, _, path = shot.follow(theta)
            self.progress.count(energy)
            last = np.cumsum(steps_between(self.times, step)[:-1] + 1) - 1
            before, ends = ends, path[0, last]
            if before is not None and np.isfinite(energy[0]) and (abs(ends - before) < AGREEMENT * self.spread).all():
                return 2.0 * step
            step *= 0.5
        return float(np.diff(self.times).min()) / 10.0


def is_finite(shot: Shot, theta: Array) -> bool:
    """Whether the energy is finite; not where the right-hand side divides by a complex 0, at which Numba raises."""
    try:
        return bool(np.isfinite(shot.evaluate(theta)[0][0]))
    except ZeroDivisionError:
        return False
