"""The likelihood of velocities: least squares of Θ(X) Ξ against dX/dt, as the r2SGLD paper has it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from targets.quadratic import quadratic_numbers, use_quadratic
from toolkit.checks import check_array, check_choice, check_count

from .batches import FIRST_SUMS, row_width, use_batch
from .model import Model, as_model
from .normal_equations import Sums, batch_numbers, minimiser, misfits, normal_equations
from .prepared import Prepared
from .series import Series, check_series
from .velocities import METHODS, Moving, check_window, velocities_of

Array = NDArray[np.float64]

EXACT = 1e-9  # of a state's RMS velocity: residuals below it are taken for rounding


@dataclass(frozen=True)
class Derivative:
    """See ``derivative``."""

    velocities: str
    noise: str | tuple[float, ...]
    batch_size: int | None
    batches: str
    window: int | None

    def prepare(self, data: Any, model: Any) -> Prepared:
        """The least squares of ``data``, a Series or several, under ``model``, a System, Library or Model."""
        model = as_model(model)
        moving = [velocities_of(series, self.velocities, self.window) for series in check_data(data, model)]
        states, velocities = (np.concatenate([getattr(m, field) for m in moving]) for field in Moving._fields)
        if not len(states):
            raise ValueError("data must have rows without missing values, got none")
        sums = normal_equations(model, states, velocities)
        weights, constant = self._weights(sums, model, states, velocities)
        precision = np.einsum("e,ekl->kl", weights, sums.gram)
        mean = minimiser(precision, weights @ sums.pull)
        misfit = misfits(model, states, velocities, np.tile(mean, (len(weights), 1)))
        lowest = constant + 0.5 * float(weights @ misfit)
        numbers = quadratic_numbers(mean, precision, lowest)
        names, kernel, rows = model.parameters, use_quadratic, 0
        if self.batch_size is not None:
            if not np.isfinite(velocities).all():
                raise ValueError("batch_size needs data without missing values")
            extra = batch_numbers(
                model, states, velocities, weights, mean, constant, self.batch_size, self.batches == "windows"
            )
            kernel, rows = use_batch, FIRST_SUMS + row_width.py_func(len(mean))
            numbers = np.concatenate([numbers, extra])
        return Prepared(
            names,
            kernel,
            numbers,
            rows,
            (False,) * len(names),
            mean,
            self.batch_size is not None,
            (mean, precision, lowest),
        )

    def _weights(self, sums: Sums, model: Model, states: Array, velocities: Array) -> tuple[Array, float]:
        """1/noise² of each state's velocities, and what normalises them, in nats."""
        if self.noise == "mean":
            return np.ones(len(sums.rows)) / sums.rows.max(), 0.0
        if self.noise == "estimated":
            best = np.array([minimiser(gram, pull) for gram, pull in zip(sums.gram, sums.pull, strict=True)])
            free = sums.rows - [np.linalg.matrix_rank(gram) for gram in sums.gram]
            sds = np.sqrt(misfits(model, states, velocities, best) / np.maximum(free, 1.0))
            sds = np.maximum(sds, EXACT * np.sqrt(sums.speed))
        else:
            if len(self.noise) not in (1, len(sums.rows)):
                raise ValueError(f"noise must be one or one per state, {len(sums.rows)}, got {len(self.noise)}")
            sds = np.resize(np.array(self.noise, np.float64), len(sums.rows))
        still = np.flatnonzero(sds <= 0.0)
        if still.size:
            raise ValueError(
                f"velocities of {model.states[still[0]]!r} are all 0, so noise must be given, not estimated"
            )
        return sds**-2.0, float(sums.rows @ np.log(np.sqrt(2.0 * np.pi) * sds))


def derivative(
    *,
    velocities: str = "exact",
    noise: str | float | Sequence[float] = "estimated",
    batch_size: int | None = None,
    batches: str = "independent",
    window: int | None = None,
) -> Derivative:
    """Velocities are Θ(x) Ξ(β) plus independent Gaussian errors: U = Σ_e Σ_i (v_ie − Θ_i Ξ_e)² / (2 noise_e²).

    velocities: "exact" (``Series.velocities``), "finite_difference", "savitzky_golay" (cubic, under ``window`` samples,
    odd and ≥ 5, None: 11; of no effect on the others) or "spline"; the latter two smooth the states too.
    noise: standard deviation of the velocities' errors, one or one per state; "estimated": that of the least-squares
    residuals, state by state; "mean": no noise, but U = ½ mean_i |v_i − Θ_i Ξ|², the energy of the r2SGLD paper, whose
    gradient is divided by the batch length.
    batch_size: None: all data, in O(q²) from their normal equations, whatever their number. Else each replica draws so
    many anew at every step and has energy and gradient from them, scaled to all: unbiased. batches, if so:
    "independent": drawn with replacement; "windows": neighbours in a fixed random order, each datum as likely, in O(q²)
    from running sums.
    Errors in the states bias this likelihood, as Θ is taken for exact: for noisy states use ``weak`` or ``trajectory``.
    Law: Gaussian posterior in closed form, for all data and flat or Gaussian priors.
    Raises TypeError or ValueError naming the argument where something is off.
    Source: Brunton et al. (2016); r2SGLD (2024), eqs. (19) and (20).
    """
    check_choice("velocities", velocities, METHODS)
    check_choice("batches", batches, ("independent", "windows"))
    if isinstance(noise, str):
        check_choice("noise", noise, ("estimated", "mean"))
    else:
        sds = check_array("noise", noise)
        if sds.ndim > 1 or sds.size == 0 or (sds <= 0.0).any():
            raise ValueError(f"noise must be one or one per state, each > 0, got {noise!r:.200}")
        noise = tuple(sds.ravel().tolist())
    if batch_size is not None:
        batch_size = check_count("batch_size", batch_size, at_least=1, below=2**17)
    if window is not None:
        check_window(window)
    return Derivative(velocities, noise, batch_size, batches, window)


def check_data(data: Any, model: Model) -> list[Series]:
    """``data`` as a list of series of the model's states."""
    given = [data] if isinstance(data, Series) or not isinstance(data, Sequence) else list(data)
    if not given:
        raise ValueError("data must be a Series or several, got none")
    for i, series in enumerate(given):
        check_series("data" if len(given) == 1 else f"data[{i}]", series)
        if series.states != model.states:
            raise ValueError(f"data must have the model's states {model.states}, got {series.states}")
    return given
