"""PySINDy's fits of one series with the library of all quadratic terms; they return Ξ (terms, states)."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pysindy as ps

RIDGE, N_MODELS, DOMAINS = 0.05, 20, 200  # PySINDy's own; twice its usual domains, as its examples take


def fitted(times: Any, values: Any, optimizer: Any, library: Any) -> Any:
    """A fitted SINDy, velocities by smoothed differences where it needs them."""
    model = ps.SINDy(optimizer=optimizer, feature_library=library, differentiation_method=ps.SmoothedFiniteDifference())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(values, t=times[1] - times[0])
    return model


def stlsq(times: Any, values: Any, threshold: float) -> Callable[[], Any]:
    """Sequentially thresholded least squares."""
    t, x = np.asarray(times), np.asarray(values)

    def run() -> Any:
        model = fitted(t, x, ps.STLSQ(threshold=threshold, alpha=RIDGE), ps.PolynomialLibrary(2))
        return np.asarray(model.coefficients()).T.tolist()

    return run


def ensemble(times: Any, values: Any, threshold: float) -> Callable[[], Any]:
    """Medians of such fits to resampled rows."""
    t, x = np.asarray(times), np.asarray(values)

    def run() -> Any:
        np.random.seed(0)
        one = ps.STLSQ(threshold=threshold, alpha=RIDGE)
        optimizer = ps.EnsembleOptimizer(one, bagging=True, n_models=N_MODELS)
        fitted(t, x, optimizer, ps.PolynomialLibrary(2))
        return np.median(np.array(optimizer.coef_list), axis=0).T.tolist()

    return run


def weak(times: Any, values: Any, threshold: float) -> Callable[[], Any]:
    """Thresholded least squares of integrals against polynomial bumps."""
    t, x = np.asarray(times), np.asarray(values)

    def run() -> Any:
        np.random.seed(0)
        inner = ps.PolynomialLibrary(2, include_bias=True)
        library = ps.WeakPDELibrary(inner, spatiotemporal_grid=t, K=DOMAINS, p=4)
        model = fitted(t, x, ps.STLSQ(threshold=threshold, alpha=1e-5), library)
        return np.asarray(model.coefficients()).T.tolist()

    return run


CASES = {"stlsq": stlsq, "ensemble": ensemble, "weak": weak}
