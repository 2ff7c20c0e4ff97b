"""``discover``: from time series to equations, with the probability that each term is there and its coefficient."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from toolkit.errors import (
    check_choice,
    check_count,
    check_instance,
    check_number,
    check_progress,
    is_a,
    shown,
    warn_user,
)
from toolkit.maths.seeds import STARTS, derived_seed

from .. import likelihoods
from ..arrays import Array
from ..data.gaps import cut_text, gaps_of, left_out_text, part_of, rows_of_parts
from ..data.labels import check_labels
from ..data.measured_input import is_of_pandas
from ..data.residuals import ResidualCheck, ResidualPart, residual_check
from ..data.series import Series, with_inputs
from ..data.sources import from_dataframe
from ..estimates import Estimates, estimate
from ..forecasts import Ensemble, simulate, times_of_dates
from ..identification import doubts_told
from ..libraries import Library, polynomial
from ..likelihoods.path_fit import StateOfPath
from ..likelihoods.smoothing import smooth
from ..likelihoods.start_search import TIME_LIMIT, progress_of_paths
from ..likelihoods.trajectories import Trajectory
from ..likelihoods.velocity import check_data
from ..model import Model, all_free, in_latex, in_text, model_of
from ..priors import Prior
from ..solvers.integrate import check_times
from ..sparsity import Sparse, check_sweeps
from ..systems.dates import dates_of
from ..systems.inputs import Inputs, on_clock
from .fit_power import Power, power_of
from .forecast_check import ForecastCheck, forecast_check
from .sparse_fit import PRESENT, Law, Path, Settings, sparse_fit

IN_TABLE = 0.05  # probability from which a term is in the printed table
LITTLE_POWER = 0.5  # of the test of residuals: below it they say little of the library
IN_SIMULATIONS = 0.01  # probability from which a term is in simulations


@dataclass(frozen=True, eq=False)
class Discovery:
    """Equations found by ``discover``; printed, they with a table of the terms.

    data: the series. library: the candidate terms. full: the model with all coefficients free. sparse: draws of its
    posterior (n, q), their supports and inclusion probabilities. noise: (dim,) standard deviations of the states'
    errors as the weak likelihood has them; None of others. level: of the intervals. parts: residuals about its path.
    likelihood, settings: what it was found with.
    """

    data: tuple[Series, ...]
    library: Library
    full: Model
    sparse: Sparse
    priors: tuple[Prior, ...]
    law: Law
    path: Path
    noise: Array | None
    level: float
    parts: tuple[ResidualPart, ...] = ()
    likelihood: Any = "weak"
    settings: Settings = Settings()

    def __repr__(self) -> str:
        """How many terms were found."""
        return f"<Discovery of {len(self.sparse.support)} of {len(self.sparse.names)} terms of {self.data[0].name!r}>"

    def __str__(self) -> str:
        """The equations, how well they fit, and a table of the terms that may be there.

        Before them stands what the probabilities depend on: that errors are independent, where the residuals contradict
        it; the library, where the residuals would hardly tell that it lacks the truth.
        """
        return "\n".join([*self._heading(), self.equations(), "", *self._summary(), "", *self._table()])

    def _heading(self) -> list[str]:
        """A line on what the probabilities depend on; none where the residuals speak for it."""
        if self.noise is None:
            return ["Given this library, which nothing here tests (likelihood='weak' does):"]
        if self.residual_check is None or self.power is None:
            return []
        if self.residual_check.has_memory.any():
            told = self.residual_check.memory_in_words()
            return [f"Given independent errors and this library, which the residuals contradict: {told}."]
        if self.power.probability < LITTLE_POWER:
            return [
                f"Given this library (power of the test of residuals {self.power.probability:.0%}, see below; "
                "forecast_check() tests it by held-out data):"
            ]
        return []

    @cached_property
    def residual_check(self) -> ResidualCheck | None:
        """The test of the residuals about the path of the equations: whether they are correlated in time, and outliers.

        Returns
        -------
        ResidualCheck or None
            Correlations, probabilities and outliers, with ``doubts()`` in words; None with ``derivative``, which has no
            path, and for data without errors. Each test warns of 1 in 1,000 right fits.
        """
        is_measured = any(np.isfinite(part.scores).any() for part in self.parts)
        return residual_check(self.library.states, self.parts) if is_measured else None

    @cached_property
    def power(self) -> Power | None:
        """How probably the residuals would tell that the library lacks the truth, were that the smoothed data.

        Returns
        -------
        Power or None
            The probability, how far the smoothed data are from the equations, and how far they would have to be for a
            probability of one half; None where there is no ``residual_check``. It is computed when first asked for, by
            100 simulations of data.
        """
        if self.residual_check is None or self.noise is None:
            return None
        return power_of(self.parts, self.data, self.noise)

    @cached_property
    def estimates(self) -> Estimates:
        """Mean, sd, median, interval, mode and inclusion probability of every coefficient, absent ones too."""
        found = estimate(self.sparse.names, self.sparse.draws, None, self.priors, level=self.level)
        return found._replace(inclusion=self.sparse.inclusion)

    @cached_property
    def model(self) -> Model:
        """The terms of inclusion ≥ ½ as a model, all of them free: for ``identify`` with any likelihood.

        Raises ValueError where no term is.
        """
        support = self.sparse.support
        if not support:
            raise ValueError(f"no term of {self.data[0].name!r} has an inclusion probability ≥ {PRESENT}: no model")
        used = {label.partition(":")[2] for label in support}
        return model_of(
            self.library.subset([name for name in self.library.names if name in used]), free=support,
            name=f"discovered from {self.data[0].name}",
        )  # fmt: skip

    @property
    def coefficients(self) -> Array:
        """Ξ (terms, states): of each term of inclusion ≥ ½ the median of the draws that have it; 0 for the others."""
        return self._by_term(self._where_present[0])

    @cached_property
    def _where_present(self) -> tuple[Array, Array]:
        """Medians and standard deviations (q,) of the terms of inclusion ≥ ½, of draws that have them; 0 for others."""
        medians, sds = np.zeros(len(self.sparse.names)), np.zeros(len(self.sparse.names))
        for k in np.flatnonzero(self.sparse.inclusion >= PRESENT):
            has_it = self.sparse.present[:, k]
            drawn = self.sparse.draws[has_it if has_it.any() else slice(None), k]
            medians[k], sds[k] = np.median(drawn), drawn.std()
        return medians, sds

    def _by_term(self, values: Array) -> Array:
        """Numbers (q,) of all coefficients as (terms, states)."""
        return values.reshape(len(self.library.states), len(self.library)).T

    def equations(self, *, style: str = "text") -> str:
        """The terms of inclusion ≥ ½: median ± standard deviation of the draws that have it, and the probability of it.

        style: "text", a line per state, broken at about 100 columns, with the probability in brackets; "latex", an
        ``aligned`` environment without it. Raises ValueError for another style.
        """
        check_choice("style", style, ("text", "latex"))
        sds = self._by_term(self._where_present[1])
        if style == "latex":
            return in_latex(self.library, self.coefficients, sds, 4)
        notes = [[f" [{share:.0%}]" for share in row] for row in self._by_term(self.sparse.inclusion).tolist()]
        return in_text(self.library, self.coefficients, sds, 4, notes)

    def latex(self) -> str:
        """``equations`` in LaTeX, for between dollar signs."""
        return self.equations(style="latex")

    def sympy(self) -> dict[Any, Any]:
        """State → slope of ``coefficients``, as SymPy's Symbol and expression; needs the extra ``symbolic``.

        Raises ImportError without it, ValueError where no term was found.
        """
        median = dict(zip(self.sparse.names, self._where_present[0].tolist(), strict=True))
        return self.model.sympy_equations([median[name] for name in self.model.parameters])

    def simulate(
        self,
        times: Any = None,
        *,
        start: Any = None,
        n_draws: int | None = 200,
        noise: Any = None,
        seed: int = 0,
        method: str = "dopri5",
        step: float | None = None,
        inputs: Inputs | None = None,
    ) -> Ensemble:
        """Trajectories of ``n_draws`` posterior draws, or where None of all; ``bands()`` of them are the posterior's.

        times: None: those of the first series. start: the state at times[0]; None: the first series' first state,
        without noise, drawn for each draw's coefficients as in ``forecast``, from whose time it is solved up to
        times[0]. noise: standard deviations of errors to add to the states, as for ``sysid.simulate``; ``noise`` of
        this has the data's. Terms whose inclusion probability is below 1 % are left out. method, step: as for
        ``sysid.simulate``. inputs: those known; None: those of the first series.
        Raises TypeError or ValueError naming the argument where something is off.
        """
        times = self.data[0].times if times is None else self._times(times)
        return self._trajectories(
            times, start, self.path.first, seed, inputs, n_draws=n_draws, noise=noise, method=method, step=step
        )

    def forecast(
        self,
        times: Any,
        *,
        n_draws: int | None = 200,
        noise: Any = None,
        seed: int = 0,
        inputs: Inputs | None = None,
    ) -> Ensemble:
        """Trajectories of ``n_draws`` posterior draws at ``times`` after the first series, from its last state.

        That state is without noise, as the likelihood's path ends, for each draw's coefficients. What it may be off by
        is in the bands with the weak likelihood; with ``derivative`` it is the smoothed state, the same for all draws.
        The rest: as in ``simulate``. Raises as that does, and where times begin before the last of the data.
        """
        return self._trajectories(self._times(times), None, self.path.last, seed, inputs, n_draws=n_draws, noise=noise)

    def _times(self, times: Any) -> Array:
        """Times as the first series has them; dates where its times were dates."""
        clock = dates_of("times", times)
        return check_times(times if clock is None else times_of_dates(clock, self.data[0]))

    def forecast_check(
        self,
        fraction: float = 0.2,
        *,
        n_draws: int | None = 200,
        seed: int = 0,
        progress: bool | None = None,
        time_limit: float = TIME_LIMIT,
    ) -> ForecastCheck:
        """Find the equations anew without the end of the data, and compare their forecast with it.

        A library that lacks the truth can follow the data and still not foretell them: this test takes no law of the
        errors for granted, and sees what the residuals do not.

        Parameters
        ----------
        fraction
            Part of the first series' rows that is held out, its last, within (0, 1). Other series are used whole.
        n_draws
            Posterior draws of the forecast, or None for all.
        seed
            Seed of the forecast; the equations are found with the seed of ``discover``.
        progress
            Whether ``discover`` shows a bar on stderr; None: only on a terminal.
        time_limit
            Seconds > 0 of its search, as of ``discover``.

        Returns
        -------
        ForecastCheck
            Held-out values and their intervals of probability ``level``, with errors of the data; ``coverage`` is the
            share of values inside.

        Raises
        ------
        TypeError, ValueError
            Where an argument is out of range, fewer than 8 rows are left, or none is held out of a state.

        Notes
        -----
        Neighbouring errors of a forecast are alike, so that a coverage far from ``level`` is no surprise in a few
        rows. With ``derivative`` intervals have no errors of the data.
        """
        fraction = check_number("fraction", fraction, above=0.0, below=1.0)
        seed = check_count("seed", seed, at_least=0, below=2**64)
        likelihood, settings = self.likelihood, self.settings

        def refit(data: list[Series]) -> Discovery:
            return discover(
                data, self.library, likelihood=likelihood, level=self.level, inclusion=settings.inclusion,
                sweeps=settings.sweeps, seed=settings.seed, progress=progress, time_limit=time_limit,
            )  # fmt: skip

        return forecast_check(self.data, fraction, self.level, refit, n_draws=n_draws, seed=seed)

    def _trajectories(
        self, times: Array, start: Any, end: StateOfPath, seed: Any, inputs: Inputs | None, **options: Any
    ) -> Ensemble:
        """Trajectories at ``times`` from ``start`` at the first of them, or from an end of the path."""
        seed = check_count("seed", seed, at_least=0, below=2**64)
        kept = self.sparse.inclusion >= IN_SIMULATIONS
        if not kept.any():
            raise ValueError(f"no term of {self.data[0].name!r} has an inclusion probability ≥ {IN_SIMULATIONS}")
        names = [name for name, keep in zip(self.sparse.names, kept, strict=True) if keep]
        system = model_of(self.library, free=names, name=f"discovered from {self.data[0].name}").system
        draws = np.where(self.sparse.present & kept, self.sparse.draws, 0.0)
        series = self.data[0]
        if inputs is not None and is_a(inputs, Inputs):
            inputs = on_clock(inputs, f"the series {series.name!r}", series.time_unit, series.origin)
        options |= {"problem": system, "seed": seed, "inputs": series.inputs if inputs is None else inputs}
        if start is not None:
            return simulate(draws[:, kept], times, start=start, **options)
        if times[0] < end.time:
            raise ValueError(f"times must not begin before {end.time:.10g}, the time of the state, got {times[0]:.10g}")
        normals = np.random.default_rng(derived_seed(seed, STARTS)).standard_normal((len(draws), system.dim))
        states = end.draws(draws, normals)
        if times[0] == end.time:
            return simulate(draws[:, kept], times, start=states, **options)
        found = simulate(draws[:, kept], np.append(end.time, times), start=states, **options)
        return replace(found, times=times, states=found.states[:, 1:], observed=found.observed[:, 1:])

    def residuals(self, series: Any = None) -> Array:
        """Velocities of the smoothed ``series`` minus those of the equations there, (n, dim), in states per time.

        nan in gaps, at which series are cut.

        series: a Series, a DataFrame as for ``discover``, or several, one below the other; None: the data.
        Raises TypeError or ValueError for what is no Series, or one of other states.
        """
        return self._residuals_and_velocities(series)[0]

    def score(self, series: Any = None) -> Array:
        """R² (dim,) of each state's velocity: 1 − Σ residual² / Σ (velocity − its mean)², of the smoothed ``series``.

        1 where the equations explain all of it; 0 where no more than its mean does. Noise that smoothing leaves lowers
        it. series, and what raises: as for ``residuals``; nan for a state whose velocity does not vary.
        """
        rest, velocities = self._residuals_and_velocities(series)
        known = ~np.isnan(velocities).any(axis=1)
        rest, velocities = rest[known], velocities[known]
        around = ((velocities - velocities.mean(axis=0)) ** 2).sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(around > 0.0, 1.0 - (rest**2).sum(axis=0) / around, np.nan)

    def _residuals_and_velocities(self, series: Any) -> tuple[Array, Array]:
        """Residuals and velocities (n, dim) of all series."""
        given = list(self.data) if series is None else check_data(as_series("series", series), self.full)
        check_labels(["the data", *["series"] * len(given)], [self.data[0], *given])
        inputs, found = self.library.inputs, []
        for one in given:
            both = np.full((2, *one.values.shape), np.nan)  # where a gap is, or a part is too short
            for rows in rows_of_parts(one, gaps_of(one)) or [slice(0, len(one))]:
                part = part_of(one, rows)
                path, both[1, rows] = smooth(part, part.times)
                slopes = self.library.evaluate(with_inputs(part, inputs, part.times, path)) @ self.coefficients
                both[0, rows] = both[1, rows] - slopes
            found.append(both)
        rest, velocities = np.concatenate(found, axis=1)
        return rest, velocities

    def _summary(self) -> list[str]:
        """Lines on the number of terms, the fit and the noise."""
        states = self.library.states
        scores = ", ".join(f"{state} {share:.4f}" for state, share in zip(states, self.score(), strict=True))
        lines = [
            f"{len(self.sparse.support)} of {len(self.sparse.names)} terms, of inclusion probability ≥ {PRESENT}.",
            f"R² of the smoothed data's velocities: {scores}.",
        ]
        gaps = [gap for series in self.data for gap in gaps_of(series)]
        if gaps:
            left_out = [text for series in self.data if (text := left_out_text(series, gaps_of(series)))]
            lines.append(f"Cut at {cut_text(gaps)}: {'; '.join(['each part is followed by itself', *left_out])}.")
        if self.noise is not None:
            units = [f" {unit}" if unit else "" for unit in self.data[0].units]
            sds = ", ".join(f"{s} {sd:.3g}{unit}" for s, sd, unit in zip(states, self.noise, units, strict=True))
            lines.append(f"Noise, standard deviations: {sds}.")
        return [*lines, *self._tests()]

    def _tests(self) -> list[str]:
        """Lines on the test of the residuals and its power."""
        if self.residual_check is None or self.power is None:
            return []
        pairs = zip(self.library.states, self.residual_check.correlation, strict=True)
        probability, departure, noticed = self.power
        return [
            f"Residuals, correlation of neighbours: {', '.join(f'{state} {r:.2f}' for state, r in pairs)}.",
            f"Power of their test: {probability:.0%}, were the smoothed data the truth ({departure:.2g} sd of the "
            f"noise from these equations, RMS); one half, were they {noticed:.2g} sd from them.",
        ]

    def _table(self) -> list[str]:
        """Lines of the table of terms that may be there."""
        low, high = self.sparse.intervals(self.level)
        rows = [
            (name, f"{median:.5g}", f"{a:.5g}", f"{b:.5g}", f"{share:.1%}")
            for name, median, a, b, share in zip(
                self.sparse.names, self.sparse.median, low, high, self.sparse.inclusion, strict=True
            )
            if share >= IN_TABLE
        ]
        head = ("term", "median", f"{self.level:.0%} from", "to", "inclusion")
        widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
        lines = [
            "  ".join([row[0].ljust(widths[0]), *(w.rjust(n) for w, n in zip(row[1:], widths[1:], strict=True))])
            for row in (head, *rows)
        ]
        n_others = len(self.sparse.names) - len(rows)
        return [*lines, *([f"The other {n_others} terms: inclusion below {IN_TABLE:.0%}."] if n_others else [])]


def as_series(name: str, given: Any) -> list[Series]:
    """``given``, a Series, a table of pandas with its times as the index, or several of either, as series."""
    if is_of_pandas(given) and getattr(given, "ndim", 0) == 2:
        return [from_dataframe(given)]
    if is_a(given, Series):
        return [given]
    if not is_a(given, Sequence) or is_a(given, str | bytes):
        raise TypeError(
            f"{name} must be a Series, a DataFrame or several, got {shown(given)} of type {type(given).__name__}"
        )
    several = [one for k, each in enumerate(given) for one in as_series(f"{name}[{k}]", each)]
    if not several:
        raise ValueError(f"{name} must be a Series, a DataFrame or several, got none")
    return several


def discover(
    series: Any,
    library: Library | None = None,
    *,
    degree: int = 2,
    likelihood: Any = "weak",
    level: float = 0.9,
    inclusion: float | None = None,
    sweeps: int = 1000,
    seed: int = 0,
    progress: bool | None = None,
    time_limit: float = TIME_LIMIT,
) -> Discovery:
    """Equations of ``series`` from many candidate terms: which are there, with what coefficients, and how sure that is.

    series: a ``Series``; a DataFrame of pandas with the times as its index, numbers or dates (others:
    ``data.from_dataframe``); or several of these, of one system. library: the candidates in each state's equation;
    None: all monomials of the states and inputs up to ``degree``, from 1 to 7. likelihood: "weak",
    "derivative", or one of these with options. level: of the intervals, within (0, 1). inclusion: prior probability of
    each term, within (0, 1); None: unknown and uniform, one for all terms of each degree, so that data in which few of
    many quadratic terms are there ask for more evidence of another. sweeps, seed, progress: of ``sparse_posterior``;
    progress also of the search for paths, which has a line of its own. time_limit: seconds > 0 of the weak likelihood's
    search; after it the equations are those found so far, with a warning, or TimeoutError says how far it has come.
    With "derivative" it is ``prepared = derivative().prepare(series, library)``, ``scales = natural_scales(series,
    library)`` and ``sparse_posterior(prepared, sparse_prior(prepared, scales), groups=term_degrees(library))``, with
    their laws. With "weak" the likelihood's quadratic is the one at the mean of this posterior, in as few pieces of the
    series as draws of it ask for: found in rounds, the first of which is at the most probable coefficients with all
    terms free.
    A series is cut at gaps, rows of nan or left out, that are longer than its states can be interpolated over: its
    parts are followed as so many series, and the printed summary says where.
    Law: as ``weak``, where the posterior is (docs/identification_weak.md: 79 chaotic systems, and where it ends).
    Warns of what ``data.check`` finds in the data, as the likelihood does, and where the data leave a combination of
    coefficients open, of which terms the prior then decides. With "weak" also where the residuals contradict
    independent errors, or some are outliers (``Discovery.residual_check``): each 1 in 1,000 of right fits.
    Raises TypeError or ValueError naming what is off: also where terms are 0 throughout, or no path of the candidates
    is near the data.

    >>> import numpy as np
    >>> import sysid
    >>> predators = sysid.systems.lotka_volterra()
    >>> series = sysid.data.simulate(predators, np.linspace(0.0, 10.0, 101), noise=0.01, seed=0)
    >>> found = sysid.discover(series)
    >>> sorted(found.sparse.support)  # the terms of probability ½ or more
    ['dpredator:predator', 'dpredator:prey predator', 'dprey:prey', 'dprey:prey predator']
    """
    given = as_series("series", series)
    if library is None:
        inputs = () if given[0].inputs is None else tuple(given[0].inputs.values)
        library = polynomial(given[0].states, check_count("degree", degree, at_least=1, below=8), inputs=inputs)
    check_instance("library", library, Library)
    level = check_number("level", level, above=0.0, below=1.0)
    if inclusion is not None:
        inclusion = check_number("inclusion", inclusion, above=0.0, below=1.0)
    sweeps = check_sweeps(sweeps)
    check_progress(progress)
    time_limit = check_number("time_limit", time_limit, above=0.0)
    chosen = likelihoods.of(likelihood)
    if isinstance(chosen, Trajectory):
        raise ValueError(
            f"likelihood must be 'weak' or 'derivative', or one of these with options, got {shown(chosen)}"
        )
    full = all_free(library)
    data = check_data(given, full)
    settings = Settings(inclusion, sweeps, seed, progress)
    with doubts_told("discover", data):
        search = progress_of_paths(progress, time_limit)
        with search.display():
            fit = sparse_fit(chosen, data, full, settings._replace(search=search))
    ordered = tuple(fit.priors[name] for name in full.parameters)
    found = Discovery(
        tuple(data), library, full, fit.sparse, ordered, fit.law, fit.path, fit.noise, level,
        parts=fit.parts, likelihood=chosen, settings=settings,
    )  # fmt: skip
    if found.residual_check is not None:
        for doubt in found.residual_check.doubts():
            warn_user(f"discover: {doubt}")
    return found
