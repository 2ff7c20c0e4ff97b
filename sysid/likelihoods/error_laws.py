"""Laws of errors: Student's t, and counts by Poisson's and the negative binomial law, as kernels over lanes.

The normal and log-normal laws are in ``trajectory_kernel``. Of each law: a datum's energy, added to that of the lanes,
with what its slope in the scale needs added to a sum; its slope in the state; and the end of a state's sum, which
becomes the slope in the scale. A scale is a standard deviation, or a dispersion; ``inverse`` is 1 over it.
"""

import functools
import math
from typing import Any, NamedTuple

import numpy as np
import scipy

from toolkit._compiler import kernel
from toolkit.maths.elementary import log, select
from toolkit.maths.special import log1p

from ..arrays import Array, Bools

NORMAL = "normal"  # of the values, or of their logarithms
ERRORS = ("gaussian", "lognormal", "student", "poisson", "negative_binomial")
COUNTS = ("poisson", "negative_binomial")
SCALE_WORDS = ("sd", "dispersion")


def scale_name(errors: str, state: str) -> str:
    """The name of a state's scale."""
    return f"{SCALE_WORDS[errors == 'negative_binomial']}({state})"


class ErrorModel(NamedTuple):
    """The law of the measurement errors.

    logarithmic: kicks, and errors of the normal law, are of logarithms. sd: standard deviations or dispersions
    (quantities,), where known; free: they are parameters. observed: which of them have data at all. dof: of "student".
    """

    logarithmic: bool
    sd: Array
    free: bool
    observed: Bools
    law: str = NORMAL
    dof: float = 4.0

    def scale_name(self, state: str) -> str:
        """The name of a state's scale."""
        return scale_name(self.law, state)


def constant_of(errors: ErrorModel, data: Array) -> float:
    """The part of −log density of ``data`` (n,) that no parameter changes."""
    if errors.law == "student":
        return student_constant(errors.dof) * data.size
    return float(scipy.special.gammaln(data + 1.0).sum())


def student_constant(dof: float) -> float:
    """What Student's t adds to −log density of each datum, but for log sd."""
    half = 0.5 * dof
    return -float(scipy.special.gammaln(half + 0.5) - scipy.special.gammaln(half) - 0.5 * np.log(np.pi * dof))


def constants_of_data(law: str, dof: float, data: Array, *, logarithmic: bool) -> Array:
    """The part of −log density of each of ``data`` (n,), logarithms of log-normal ones, that no parameter changes."""
    if law == NORMAL:
        return np.asarray(0.5 * np.log(2.0 * np.pi) + (data if logarithmic else np.zeros(data.shape)))
    if law == "student":
        return np.full(data.shape, student_constant(dof))
    return np.asarray(scipy.special.gammaln(data + 1.0))


def normal_scores(law: str, dof: float, data: Array, states: Array, scale: Array) -> Array:
    """Residuals (…, n) of ``data`` about ``states``, standard normal where the law of the errors is right.

    data, states: (…, n), logarithms for log-normal errors. scale: standard deviations or dispersions. Of counts, the
    middle of a value's step in the distribution function is taken.
    """
    if law == NORMAL:
        return np.asarray((data - states) / scale)
    if law == "student":
        distances = (data - states) / scale
        below = scipy.special.stdtr(dof, -np.abs(distances))
        return np.asarray(-np.sign(distances) * scipy.special.ndtri(below))
    if law == "poisson":
        upto, before = (scipy.special.pdtr(np.maximum(data - k, 0.0), states) for k in (0.0, 1.0))
        above = scipy.special.pdtrc(data, states)
    else:
        size, share = 1.0 / scale, 1.0 / (1.0 + scale * states)
        upto, before = (scipy.special.betainc(size, np.maximum(data + 1.0 - k, 1.0), share) for k in (0.0, 1.0))
        above = scipy.special.betainc(data + 1.0, size, 1.0 - share)
    step = upto - np.where(data > 0.0, before, 0.0)
    lower, upper = upto - 0.5 * step, above + 0.5 * step
    return np.asarray(np.where(lower < 0.5, scipy.special.ndtri(lower), -scipy.special.ndtri(upper)))


@functools.cache
def student(dof: float) -> tuple[Any, Any, Any]:
    """Student's t with ``dof`` degrees of freedom: (dof + 1)/2 log(1 + r²/dof) + log sd, and constants."""
    whole, share = dof + 1.0, 1.0 / dof

    @kernel
    def add_datum(path, energy, sums, inverse, value, logarithmic):
        for lane in range(energy.size):
            r = (path[lane] - value) * inverse[lane]
            relative = r * r * share
            energy[lane] += 0.5 * whole * log1p(relative)
            sums[lane] += whole * (relative / (1.0 + relative))

    @kernel
    def add_slope(path, pull, inverse, value, logarithmic):
        for lane in range(pull.size):
            r = (path[lane] - value) * inverse[lane]
            pull[lane] += whole * share * r / (1.0 + r * r * share) * inverse[lane]

    @kernel
    def finish(energy, sums, inverse, n):
        for lane in range(energy.size):
            energy[lane] -= n * log(inverse[lane])
            sums[lane] = (n - sums[lane]) * inverse[lane]

    return add_datum, add_slope, finish


@kernel
def add_poisson(path, energy, sums, inverse, value, logarithmic):
    """x − y log x; nan where x is not > 0, or for y = 0 where it is not ≥ 0."""
    if value > 0.0:
        for lane in range(energy.size):
            energy[lane] += path[lane] - value * log(path[lane])
    else:
        for lane in range(energy.size):
            energy[lane] += select(path[lane] >= 0.0, path[lane], math.nan)


@kernel
def add_poisson_slope(path, pull, inverse, value, logarithmic):
    """1 − y/x."""
    for lane in range(pull.size):
        pull[lane] += 1.0 - (value / path[lane] if value > 0.0 else 0.0)


@kernel
def finish_poisson(energy, sums, inverse, n):
    """Nothing: there is no scale."""


SHIFT = 10  # Γ and its derivative are taken so much farther up, where Stirling's series hold to 1e-12


@kernel
def stirling_rest(z):
    """log Γ(z) − (z − ½) log z + z − ½ log 2π, of z ≥ 10."""
    s = 1.0 / (z * z)
    return (1.0 / 12.0 - s * (1.0 / 360.0 - s * (1.0 / 1260.0 - s / 1680.0))) / z


@kernel
def digamma_rest(z):
    """ψ(z) − log z, of z ≥ 10."""
    s = 1.0 / (z * z)
    return -0.5 / z - s * (1.0 / 12.0 - s * (1.0 / 120.0 - s * (1.0 / 252.0 - s / 240.0)))


@kernel
def add_negative_binomial(path, energy, sums, inverse, value, logarithmic):
    """−log [Γ(y + n) / (Γ(n) nʸ)] + (y + n) log(1 + x/n) − y log x, of n = 1/dispersion; to sums its slope in n."""
    for lane in range(energy.size):
        x, n = path[lane], inverse[lane]
        product, fractions = 1.0, 0.0
        for i in range(SHIFT):
            product *= 1.0 + value / (n + i)
            fractions += value / ((n + i) * (n + value + i))
        far = n + SHIFT
        ratio = (far - 0.5) * log1p(value / far) + value * log1p((SHIFT + value) / n) - value
        ratio += stirling_rest(far + value) - stirling_rest(far) - log(product)
        slope = log1p(value / far) + digamma_rest(far + value) - digamma_rest(far) + fractions - value / n
        grown = log1p(x / n)
        kept = select(x >= 0.0, 0.0, math.nan) if value == 0.0 else value * log(x)
        energy[lane] += (value + n) * grown - ratio - kept
        sums[lane] += grown - (value + n) * x / (n * (n + x)) - slope


@kernel
def add_negative_binomial_slope(path, pull, inverse, value, logarithmic):
    """(y + n)/(n + x) − y/x."""
    for lane in range(pull.size):
        x, n = path[lane], inverse[lane]
        pull[lane] += (value + n) / (n + x) - (value / x if value > 0.0 else 0.0)


@kernel
def finish_negative_binomial(energy, sums, inverse, n):
    """From the slope in 1/dispersion to that in the dispersion."""
    for lane in range(energy.size):
        sums[lane] *= -inverse[lane] * inverse[lane]


LAWS: dict[str, Any] = {
    "student": student,
    "poisson": lambda dof: (add_poisson, add_poisson_slope, finish_poisson),
    "negative_binomial": lambda dof: (
        add_negative_binomial,
        add_negative_binomial_slope,
        finish_negative_binomial,
    ),
}


def with_errors(states: Array, scale: Any, errors: str, dof: float, generator: np.random.Generator) -> Array:
    """``states`` with errors of a law, of the scale given; counts are nan where a state is < 0 or not finite."""
    if errors in ("poisson", "negative_binomial"):
        valid = (states >= 0.0) & (states < 1e18)
        mean = np.where(valid, states, 1.0)
        if errors == "negative_binomial":
            a = np.broadcast_to(np.maximum(scale, 1e-12), states.shape)
            mean = mean * generator.gamma(1.0 / a) * a
        return np.where(valid, generator.poisson(np.minimum(mean, 1e18)), np.nan)
    if errors == "student":
        return np.asarray(states + scale * generator.standard_t(dof, states.shape))
    error = scale * generator.standard_normal(states.shape)
    return np.asarray(states * np.exp(error) if errors == "lognormal" else states + error)
