"""PySINDy's methods on the same data, beside the sparse posterior of the weak likelihood, in one table."""

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from toolkit.errors import check_array, check_choice, check_count, check_instance, is_sequence, optional, shown

from ..arrays import Array, Bools
from ..data.series import Series, check_series
from ..libraries import Library, polynomial
from ..likelihoods.weak_form import weak
from ..model import all_free
from .sparse_fit import Settings, sparse_fit

__all__ = ["Comparison", "Row", "compare_pysindy"]

Found = tuple[Array, Array | None]  # coefficients (terms, states) and 90 % intervals (2, terms, states)
RIDGE = 0.05  # PySINDy's default
DOMAINS = 200  # of the weak form; the default is 100, PySINDy's examples take more
N_MODELS = 20  # PySINDy's default
HELD_OUT = 0.2  # the last part of the data, which chooses a threshold where the truth is not known
TIE_FACTOR = 1.02  # held-out errors up to this factor of the least are ties: the largest threshold is taken


class Trial(NamedTuple):
    """The data and settings with which PySINDy's methods run."""

    data: Series
    library: Library
    truth: Array | None
    thresholds: tuple[float, ...]
    samples: int
    seed: int
    pysindy: Any


def seed_global_state(seed: int) -> None:
    """Seed NumPy's global state, which PySINDy draws from, with all 64 bits; seeds below 2³² as NumPy does."""
    np.random.seed(seed if seed < 2**32 else [seed % 2**32, seed >> 32])


def fitted(trial: Trial, data: tuple[Array, Array], optimizer: Any, terms: Any = None) -> Any:
    """A fitted SINDy; its coefficients are (states, terms)."""
    ps = trial.pysindy
    terms = ps.PolynomialLibrary(degree_of(trial.library)) if terms is None else terms
    model = ps.SINDy(optimizer=optimizer, feature_library=terms, differentiation_method=ps.SmoothedFiniteDifference())
    times, values = data
    model.fit(values, t=times[1] - times[0])
    return model


def degree_of(library: Library) -> int:
    """Highest degree of a library's monomials."""
    return max(sum(term.powers or ()) for term in library.terms)


def best_threshold(trial: Trial, attempt: Callable[[tuple[Array, Array], float], Found]) -> Found:
    """The result of ``attempt`` with the best threshold: by the truth, or else by held-out data."""
    times, values = trial.data.times, trial.data.values
    all_data = (times, values)
    if trial.truth is not None:
        found = list(attempts(trial, attempt, all_data))
        return found[int(np.argmin([np.linalg.norm(c - trial.truth) for c, _ in found]))]
    n_train = int((1.0 - HELD_OUT) * len(times))
    candidates = [c for c, _ in attempts(trial, attempt, (times[:n_train], values[:n_train]))]
    velocities = trial.pysindy.SmoothedFiniteDifference()._differentiate(values, times)[n_train:]
    speed = np.sqrt(np.mean(velocities**2, axis=0))
    terms = trial.library.evaluate(values[n_train:])
    misfits = np.array([np.mean(((terms @ c - velocities) / speed) ** 2) for c in candidates])
    chosen = trial.thresholds[int(np.flatnonzero(misfits <= TIE_FACTOR * misfits.min())[-1])]
    return attempt(all_data, chosen)


def attempts(trial: Trial, attempt: Callable[..., Found], data: tuple[Array, Array]) -> Iterator[Found]:
    """The result of every threshold, in rising order."""
    for threshold in sorted(trial.thresholds):
        yield attempt(data, threshold)


def stlsq(trial: Trial) -> Found:
    """Sequentially thresholded least squares."""

    def attempt(data: tuple[Array, Array], threshold: float) -> Found:
        model = fitted(trial, data, trial.pysindy.STLSQ(threshold=threshold, alpha=RIDGE))
        return np.asarray(model.coefficients(), np.float64).T, None

    return best_threshold(trial, attempt)


def ensemble(trial: Trial) -> Found:
    """The median of STLSQ fits to resampled rows, and their 90 % intervals."""

    def attempt(data: tuple[Array, Array], threshold: float) -> Found:
        ps = trial.pysindy
        optimizer = ps.EnsembleOptimizer(ps.STLSQ(threshold=threshold, alpha=RIDGE), bagging=True, n_models=N_MODELS)
        fitted(trial, data, optimizer)
        drawn = np.array(optimizer.coef_list).transpose(0, 2, 1)
        return np.median(drawn, axis=0), np.quantile(drawn, [0.05, 0.95], axis=0)

    return best_threshold(trial, attempt)


def weak_form(trial: Trial) -> Found:
    """Thresholded least squares of integrals against polynomial bumps."""

    def attempt(data: tuple[Array, Array], threshold: float) -> Found:
        ps = trial.pysindy
        seed_global_state(trial.seed)
        inner = ps.PolynomialLibrary(degree_of(trial.library), include_bias=True)
        terms = ps.WeakPDELibrary(inner, spatiotemporal_grid=data[0], K=DOMAINS, p=4)
        model = fitted(trial, data, ps.STLSQ(threshold=threshold, alpha=1e-5), terms)
        return np.asarray(model.coefficients(), np.float64).T, None

    return best_threshold(trial, attempt)


def sbr(trial: Trial) -> Found:
    """Sparse Bayesian regression with a regularised horseshoe, by NUTS."""
    optimizer = trial.pysindy.optimizers.SBR(
        num_warmup=trial.samples, num_samples=trial.samples, mcmc_kwargs={"progress_bar": False}
    )
    fitted(trial, (trial.data.times, trial.data.values), optimizer)
    drawn = np.asarray(optimizer.mcmc_.get_samples()["beta"], np.float64).transpose(0, 2, 1)
    return np.median(drawn, axis=0), np.quantile(drawn, [0.05, 0.95], axis=0)


RUNNERS = {"stlsq": stlsq, "ensemble": ensemble, "weak": weak_form, "sbr": sbr}


METHODS = ("stlsq", "ensemble", "weak", "sbr")
THRESHOLDS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.8)


class Row(NamedTuple):
    """What a method found: coefficients (terms, states), present (terms, states), 90 % intervals (2, terms, states)."""

    method: str
    coefficients: Array
    present: Bools
    intervals: Array | None
    seconds: float


@dataclass(frozen=True, eq=False)
class Comparison:
    """Methods on one series; printed, a Markdown table. truth: (terms, states), where known."""

    library: Library
    rows: tuple[Row, ...]
    truth: Array | None = None

    def error(self, row: Row) -> float:
        """‖Ξ̂ − Ξ‖ / ‖Ξ‖; nan without truth. Raises TypeError for what is no Row."""
        check_instance("row", row, Row)
        if self.truth is None:
            return float("nan")
        return float(np.linalg.norm(row.coefficients - self.truth) / np.linalg.norm(self.truth))

    def is_right(self, row: Row) -> bool:
        """Whether the terms found are those of the truth. Raises ValueError without truth, TypeError for no Row."""
        check_instance("row", row, Row)
        if self.truth is None:
            raise ValueError("truth must be given to compare_pysindy for that")
        return bool(np.array_equal(row.present, self.truth != 0.0))

    def covered(self, row: Row) -> float:
        """Share of the truth's terms, those that are not 0, inside the 90 % intervals; nan without either.

        Raises TypeError for what is no Row.
        """
        check_instance("row", row, Row)
        if self.truth is None or row.intervals is None:
            return float("nan")
        inside = (row.intervals[0] <= self.truth) & (self.truth <= row.intervals[1])
        return float(inside[self.truth != 0.0].mean())

    def __str__(self) -> str:
        lines = ["| method | relative error | terms | terms right | inside 90 % | seconds |", "|" + " --- |" * 6]
        for row in self.rows:
            known = self.truth is not None
            right = ("yes" if self.is_right(row) else "no") if known else "–"
            inside = f"{self.covered(row):.0%}" if known and row.intervals is not None else "–"
            error = f"{self.error(row):.2g}" if known else "–"
            lines.append(
                f"| {row.method} | {error} | {int(row.present.sum())} | {right} | {inside} | {row.seconds:.2g} |"
            )
        return "\n".join(lines)


def compare_pysindy(
    data: Series,
    degree: int = 2,
    *,
    truth: Any = None,
    methods: Sequence[str] = METHODS,
    thresholds: Sequence[float] = THRESHOLDS,
    samples: int = 1000,
    seed: int = 0,
) -> Comparison:
    """PySINDy's methods and ours on one series, with a polynomial library of a degree and all coefficients free.

    truth: Ξ (terms, states), for errors. methods: "stlsq", "ensemble" (20 bags of rows), "weak" (200 domains), "sbr"
    (regularised horseshoe by NUTS: needs NumPyro); velocities where they are needed are PySINDy's smoothed differences.
    thresholds: tried for the first three. With a truth the one of least error is taken: better than anyone could do
    without; else the largest whose velocities on the last fifth of the data, fitted without it, are within 2 % of the
    best. samples: NUTS draws, after as many to warm up. Terms present: those that are not 0; for "sbr", whose 90 %
    interval leaves 0 out. Ours is ``discover`` with ``weak``: medians, terms of probability ≥ ½.
    seconds: with all thresholds. Needs the extra ``compare`` of this package. Raises ValueError where values are
    missing or times uneven, which PySINDy does not take.
    """
    check_series("data", data)
    if data.inputs is not None:
        raise ValueError(f"data must be without inputs, got {shown(data)}")
    library = polynomial(data.states, check_count("degree", degree, at_least=1, below=8))
    if not is_sequence(methods):
        raise TypeError(f"methods must be a sequence of names, got {shown(methods)}")
    for method in methods:
        check_choice("methods", method, METHODS)
    grid = check_array("thresholds", thresholds)
    if grid.ndim != 1 or not grid.size or (grid < 0.0).any():
        raise ValueError(f"thresholds must be one or more numbers ≥ 0, got {shown(thresholds)}")
    samples = check_count("samples", samples, at_least=10, below=10**7)
    seed = check_count("seed", seed, at_least=0, below=2**64)
    if truth is not None:
        truth = check_array("truth", truth)
        if truth.shape != (len(library), len(data.states)):
            raise ValueError(f"truth must have shape {(len(library), len(data.states))}, got {truth.shape}")
    if methods:
        gaps = np.diff(data.times)
        if not data.is_complete or np.ptp(gaps) > 1e-6 * gaps.min():
            raise ValueError("data must be complete and at even times: PySINDy takes no others")
    rows = [weak_posterior_row(data, library, seed)]
    trial = Trial(
        data, library, truth, tuple(grid.tolist()), samples, seed, optional("pysindy", "compare") if methods else None
    )
    rows += [pysindy_row(f"PySINDy {method}", trial, RUNNERS[method]) for method in methods]
    return Comparison(library, tuple(rows), truth)


def weak_posterior_row(data: Series, library: Library, seed: int) -> Row:
    """The sparse posterior of the weak likelihood."""
    start = time.perf_counter()
    sparse = sparse_fit(weak(), [data], all_free(library), Settings(seed=seed)).sparse
    shape = (len(data.states), len(library))
    low, high = (bound.reshape(shape).T for bound in sparse.intervals(0.9))
    present = (sparse.inclusion >= 0.5).reshape(shape).T
    seconds = time.perf_counter() - start
    return Row("weak posterior (ours)", sparse.median.reshape(shape).T, present, np.stack([low, high]), seconds)


def pysindy_row(name: str, trial: Trial, runner: Callable[[Trial], Found]) -> Row:
    """The row of a PySINDy method; its warnings are silenced, and NumPy's global random state is restored."""
    state = np.random.get_state()
    start = time.perf_counter()
    try:
        seed_global_state(trial.seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            coefficients, intervals = runner(trial)
    finally:
        np.random.set_state(state)
    present = coefficients != 0.0
    if runner is sbr and intervals is not None:
        present = (intervals[0] > 0.0) | (intervals[1] < 0.0)
    return Row(name, coefficients, present, intervals, time.perf_counter() - start)
