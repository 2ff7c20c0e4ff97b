"""PySINDy's methods, each with the threshold that serves it best."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .libraries import Library
from .series import Series

Array = NDArray[np.float64]
Found = tuple[Array, Array | None]  # coefficients (terms, states) and 90 % intervals (2, terms, states)
RIDGE = 0.05  # PySINDy's own
DOMAINS = 200  # of the weak form: more than its usual 100, as its examples take
N_MODELS = 20  # PySINDy's own
HELD_OUT = 0.2  # of the data, the last, by which a threshold is chosen where the truth is not known
AS_GOOD = 1.02  # held-out errors this near the least count as it: the largest threshold of them is taken


class Trial(NamedTuple):
    """What PySINDy's methods are tried on."""

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


def best(trial: Trial, attempt: Callable[[tuple[Array, Array], float], Found]) -> Found:
    """What an attempt finds with the threshold that is chosen for it."""
    times, values = trial.data.times, trial.data.values
    whole = (times, values)
    if trial.truth is not None:
        found = list(attempts(trial, attempt, whole))
        return found[int(np.argmin([np.linalg.norm(c - trial.truth) for c, _ in found]))]
    cut = int((1.0 - HELD_OUT) * len(times))
    tried = [c for c, _ in attempts(trial, attempt, (times[:cut], values[:cut]))]
    velocities = trial.pysindy.SmoothedFiniteDifference()._differentiate(values, times)[cut:]
    speed = np.sqrt(np.mean(velocities**2, axis=0))
    terms = trial.library.evaluate(values[cut:])
    misfits = np.array([np.mean(((terms @ c - velocities) / speed) ** 2) for c in tried])
    chosen = trial.thresholds[int(np.flatnonzero(misfits <= AS_GOOD * misfits.min())[-1])]
    return attempt(whole, chosen)


def attempts(trial: Trial, attempt: Callable[..., Found], data: tuple[Array, Array]) -> Iterator[Found]:
    """One for each threshold, in rising order."""
    for threshold in sorted(trial.thresholds):
        yield attempt(data, threshold)


def stlsq(trial: Trial) -> Found:
    """Sequentially thresholded least squares."""

    def attempt(data: tuple[Array, Array], threshold: float) -> Found:
        model = fitted(trial, data, trial.pysindy.STLSQ(threshold=threshold, alpha=RIDGE))
        return np.asarray(model.coefficients(), np.float64).T, None

    return best(trial, attempt)


def ensemble(trial: Trial) -> Found:
    """The median of such fits to resampled rows, and their spread."""

    def attempt(data: tuple[Array, Array], threshold: float) -> Found:
        ps = trial.pysindy
        optimizer = ps.EnsembleOptimizer(ps.STLSQ(threshold=threshold, alpha=RIDGE), bagging=True, n_models=N_MODELS)
        fitted(trial, data, optimizer)
        drawn = np.array(optimizer.coef_list).transpose(0, 2, 1)
        return np.median(drawn, axis=0), np.quantile(drawn, [0.05, 0.95], axis=0)

    return best(trial, attempt)


def weak_form(trial: Trial) -> Found:
    """Thresholded least squares of integrals against polynomial bumps."""

    def attempt(data: tuple[Array, Array], threshold: float) -> Found:
        ps = trial.pysindy
        seed_global_state(trial.seed)
        inner = ps.PolynomialLibrary(degree_of(trial.library), include_bias=True)
        terms = ps.WeakPDELibrary(inner, spatiotemporal_grid=data[0], K=DOMAINS, p=4)
        model = fitted(trial, data, ps.STLSQ(threshold=threshold, alpha=1e-5), terms)
        return np.asarray(model.coefficients(), np.float64).T, None

    return best(trial, attempt)


def sbr(trial: Trial) -> Found:
    """Sparse Bayesian regression with a regularised horseshoe, by NUTS."""
    optimizer = trial.pysindy.optimizers.SBR(
        num_warmup=trial.samples, num_samples=trial.samples, mcmc_kwargs={"progress_bar": False}
    )
    fitted(trial, (trial.data.times, trial.data.values), optimizer)
    drawn = np.asarray(optimizer.mcmc_.get_samples()["beta"], np.float64).transpose(0, 2, 1)
    return np.median(drawn, axis=0), np.quantile(drawn, [0.05, 0.95], axis=0)


RUNNERS = {"stlsq": stlsq, "ensemble": ensemble, "weak": weak_form, "sbr": sbr}
