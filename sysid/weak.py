"""The weak likelihood: noisy states of a path that obeys the equations in integral form, the path taken out."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from targets.quadratic import quadratic_numbers, use_quadratic
from toolkit.checks import check_array, check_count

from .derivative import check_data
from .model import Model, as_model
from .prepared import Prepared
from .series import Series
from .tracking import MOST_NODES, Fit, first_guess, most_likely, refined

__all__ = ["Weak", "weak"]

Array = NDArray[np.float64]
SETTLED = 0.1  # of a standard deviation: what halving the steps may change
MOST_SUBSTEPS = 64
DROWNED = 0.85  # of a state's spread: noise that leaves no more than a quarter of its variance


@dataclass(frozen=True)
class Weak:
    """See ``weak``."""

    noise: tuple[float, ...] | None
    substeps: int | None
    iterations: int

    def prepare(self, data: Any, model: Any) -> Prepared:
        """The Gaussian likelihood of the coefficients of ``model``, a System, Library or Model, at ``data``."""
        model = as_model(model)
        given = check_data(data, model)
        fit = self.fit(given, model)
        mean, precision = fit.parameters, fit.precision
        numbers = quadratic_numbers(mean, precision, fit.lowest)
        quadratic = (mean, precision, fit.lowest)
        return Prepared(model.parameters, use_quadratic, numbers, 0, (False,) * len(mean), mean, quadratic=quadratic)

    def fit(self, data: list[Series], model: Model) -> Fit:
        """The most likely coefficients and paths, with steps between samples halved until they change no more."""
        known = self._known(data)
        substeps = 1 if self.substeps is None else self.substeps
        fit = most_likely(first_guess(data, model, substeps, known), model, known, self.iterations)
        while self.substeps is None and substeps < MOST_SUBSTEPS:
            substeps *= 2
            if max(len(s) for s in data) * substeps * len(model.states) > MOST_NODES:
                break
            guess = [refined(tracked, substeps, model, fit.parameters) for tracked in fit.tracked]
            coarse, fit = fit, most_likely((guess, fit.parameters, fit.noise), model, known, self.iterations)
            change = fit.parameters - coarse.parameters
            if change @ fit.precision @ change <= SETTLED**2 * len(change):
                break
        if known is None:
            warn_of_noise(fit, data)
        return fit

    def _known(self, data: list[Series]) -> Array | None:
        """Standard deviations of the noise (dim,), where they are given."""
        if self.noise is not None:
            dim = len(data[0].states)
            if len(self.noise) not in (1, dim):
                raise ValueError(f"noise must be one or one per state, {dim}, got {len(self.noise)}")
            return np.resize(np.array(self.noise), dim)
        noises = [series.noise for series in data if series.noise is not None]
        return np.sqrt(np.mean(np.square(noises), axis=0)) if len(noises) == len(data) else None


def warn_of_noise(fit: Fit, data: list[Series]) -> None:
    """Warn where the path found tells next to nothing of a state: a wrong one, or noise that drowns it."""
    spread = np.nanstd(np.concatenate([series.values for series in data]), axis=0)
    lost = np.flatnonzero((fit.noise > DROWNED * spread) & (spread > 0.0))
    if lost.size:
        state = data[0].states[lost[0]]
        warnings.warn(
            f"weak: noise of {state!r} is estimated as {fit.noise[lost[0]]:.3g}, of a spread of {spread[lost[0]]:.3g}: "
            "the path found is not the data's, or noise drowns them. Give noise, closer samples or another model",
            stacklevel=4,
        )


def weak(*, noise: float | Sequence[float] | None = None, substeps: int | None = None, iterations: int = 40) -> Weak:
    """States with independent Gaussian errors of a path that obeys the integrated equations in every window.

    The equations are asked in weak form, against a box and a Haar step on each window of three nodes (``windows``), so
    that no data are differentiated. Path and coefficients are found together, by Gauss–Newton steps on
    Σ (y − x)² / (2 noise²) under all conditions, and the path is taken out to first order: its covariance under the
    conditions weighs the coefficients, and no term is evaluated at noisy states, so that nothing is left to debias.
    noise: standard deviation of the states' errors, one or one per state; None: ``Series.noise``, else estimated from
    the residuals, by which it is plugged in. substeps: steps between two samples, a power of 2; None: as many as it
    takes that halving them moves the mean by less than 0.1 standard deviations. iterations: at most so many steps.
    Missing values and uneven times are no approximation: a missing value weighs 0. Several series share coefficients
    and noise.
    Law: the quadratic of the profile likelihood at its maximum; exact for exact quadrature, as noise → 0.
    Lorenz, 5,001 samples, all 30 coefficients free: 90 % intervals hold 88 to 90 % of them at 1, 5 and 10 % noise
    (docs/identification_weak.md, with what holds and where it ends). Test functions on noisy states, as WENDy has them,
    need a correction of bias and lose what is between the windows.
    Warns where the noise found leaves next to nothing of a state.
    Raises ValueError naming terms that the data cannot tell apart, or where no path of the model is near the data.
    Source: errors in variables as in Bortz, Messenger & Dukic (2023); collocation as in Ramsay et al. (2007).
    """
    if noise is not None:
        sds = check_array("noise", noise)
        if sds.ndim > 1 or sds.size == 0 or (sds <= 0.0).any():
            raise ValueError(f"noise must be one or one per state, each > 0, got {noise!r:.200}")
        noise = tuple(sds.ravel().tolist())
    if substeps is not None:
        substeps = check_count("substeps", substeps, at_least=1, below=2**12)
        if substeps & (substeps - 1):
            raise ValueError(f"substeps must be a power of 2, got {substeps}")
    return Weak(noise, substeps, check_count("iterations", iterations, at_least=1, below=10**4))
