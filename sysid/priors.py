"""Priors of the parameters: Gaussian, log-normal, Laplace, and two that shrink to few terms.

Each is a law of one parameter, in its units; ``identify`` takes one for all, or a mapping from names to laws. Energies
are −log densities up to constants. Constructors raise TypeError or ValueError where a number is not finite, or a width
is not > 0.
"""

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from toolkit._compiler import kernel
from toolkit.errors import (
    check_array,
    check_count,
    check_instance,
    check_number,
    check_numbers,
    check_room,
    check_scale,
    is_a,
    plain_float,
    shown,
)
from toolkit.maths.elementary import exp_share, fma, log, select

from .arrays import Array

__all__ = ["Prior", "flat", "gaussian", "horseshoe", "laplace", "lognormal", "spike_and_slab"]

# The table of ``add_priors`` has a row per parameter: the kind of law, location, 1/scale², index of the first part of
# its mixture, and number of parts. After the rows come the mixtures' parts: log(weight / scale) and 1/scale².
N_KINDS = 5
FLAT, GAUSSIAN, LOG_NORMAL, LAPLACE, MIXTURE = range(N_KINDS)
KIND, LOCATION, PRECISION, FIRST, PARTS, WIDTH = range(6)


@kernel
def add_priors(theta, energy, slope, table):
    """Add every prior's −log density, up to a constant, and its derivative to those of the likelihood."""
    for k in range(theta.shape[0]):
        kind, location = table[WIDTH * k + KIND], table[WIDTH * k + LOCATION]
        precision = table[WIDTH * k + PRECISION]
        if kind == GAUSSIAN:
            add_gaussian(theta[k], energy, slope[k], location, precision)
        elif kind == LOG_NORMAL:
            add_log_normal(theta[k], energy, slope[k], location, precision)
        elif kind == LAPLACE:
            add_laplace(theta[k], energy, slope[k], location, precision)
        elif kind == MIXTURE:
            first, parts = int(table[WIDTH * k + FIRST]), int(table[WIDTH * k + PARTS])
            add_mixture(theta[k], energy, slope[k], table[first : first + 2 * parts])


@kernel
def add_gaussian(x, energy, slope, mean, precision):
    """½ (x − mean)² / sd²."""
    for lane in range(x.size):
        slope[lane] = fma(precision, x[lane] - mean, slope[lane])
        energy[lane] = fma(0.5 * precision * (x[lane] - mean), x[lane] - mean, energy[lane])


@kernel
def add_log_normal(x, energy, slope, mu, precision):
    """½ (log x − μ)² / σ² + log x for x > 0; else an energy of inf."""
    for lane in range(x.size):
        inside = x[lane] > 0.0
        value = select(inside, x[lane], 1.0)
        logarithm = log(value)
        derivative = fma(precision, logarithm - mu, 1.0) / value
        slope[lane] = select(inside, slope[lane] + derivative, 0.0)
        increase = fma(0.5 * precision * (logarithm - mu), logarithm - mu, logarithm)
        energy[lane] = select(inside, energy[lane] + increase, math.inf)


@kernel
def add_laplace(x, energy, slope, mean, precision):
    """|x − mean| / scale; at the kink the mean of both slopes."""
    rate = math.sqrt(precision)
    for lane in range(x.size):
        gap = x[lane] - mean
        slope[lane] += select(gap > 0.0, rate, select(gap < 0.0, -rate, 0.0))
        energy[lane] = fma(rate, abs(gap), energy[lane])


@kernel
def add_mixture(x, energy, slope, parts):
    """−log Σ_j w_j N(x; 0, s_j²), of (log(w_j / s_j), 1/s_j²) in ``parts``."""
    n = parts.size // 2
    for lane in range(x.size):
        square = x[lane] * x[lane]
        largest = -math.inf
        for j in range(n):
            exponent = fma(-0.5 * parts[2 * j + 1], square, parts[2 * j])
            largest = select(exponent > largest, exponent, largest)
        total, weighted_precision = 0.0, 0.0
        for j in range(n):
            share = exp_share(fma(-0.5 * parts[2 * j + 1], square, parts[2 * j]) - largest)
            total += share
            weighted_precision = fma(share, parts[2 * j + 1], weighted_precision)
        energy[lane] -= largest + log(total)
        slope[lane] = fma(weighted_precision / total, x[lane], slope[lane])


HORSESHOE_PARTS = 40
MIN_HORSESHOE_SCALE = 1e-4  # of the scale: the narrowest part of the mixture


@dataclass(frozen=True)
class Prior:
    """A law of one parameter: its kind, location and scale; for mixtures the parts' weights and scales, widest last.

    spikes: how many of the narrowest parts stand for "this term is absent". Raises TypeError or ValueError for an
    unknown kind and for numbers that are no law of that kind; a flat prior and a mixture have no location and scale.
    """

    kind: int
    location: float = 0.0
    scale: float = 1.0
    weights: tuple[float, ...] = ()
    scales: tuple[float, ...] = ()
    spikes: int = 0

    def __post_init__(self) -> None:
        check_count("kind", self.kind, at_least=0, below=N_KINDS)
        check_scale("scale", self.scale)
        limits = {"above": -600.0, "below": 600.0} if self.kind == LOG_NORMAL else {}
        check_number("location", self.location, **limits)
        object.__setattr__(self, "weights", check_numbers("weights", self.weights, above=0.0))
        object.__setattr__(self, "scales", check_numbers("scales", self.scales, above=1e-150, below=1e150))
        if self.kind in (FLAT, MIXTURE) and (self.location, self.scale) != (0.0, 1.0):
            what = "a flat prior" if self.kind == FLAT else "a mixture"
            raise ValueError(
                f"location and scale must be 0 and 1 for {what}, which has none, got {self.location:g} and "
                f"{self.scale:g}"
            )
        n = len(self.weights)
        if len(self.scales) != n or (n > 0) != (self.kind == MIXTURE):
            raise ValueError(
                f"weights and scales must be one of each part of a mixture, and none for others, got {n} weights and "
                f"{len(self.scales)} scales for kind {self.kind}"
            )
        if any(after <= before for before, after in itertools.pairwise(self.scales)):
            raise ValueError(f"scales must increase, got {shown(self.scales)}")
        check_count("spikes", self.spikes, at_least=0, below=max(n, 1))

    @property
    def is_positive(self) -> bool:
        """Whether it holds for positive parameters only."""
        return self.kind == LOG_NORMAL

    @property
    def is_flat(self) -> bool:
        """Whether it is flat."""
        return self.kind == FLAT

    @property
    def is_quadratic(self) -> bool:
        """Whether its energy is quadratic, or flat."""
        return self.kind in (FLAT, GAUSSIAN)

    @property
    def constant(self) -> float:
        """−log density less the energy that samplers see, in nats. Raises ValueError for a flat one, which has none."""
        if self.kind == FLAT:
            raise ValueError("a flat prior has no density")
        if self.kind == LAPLACE:
            return math.log(2.0 * self.scale)
        scale = sum(self.weights) if self.kind == MIXTURE else self.scale
        return 0.5 * math.log(2.0 * math.pi) + math.log(scale)

    def draws(self, n: int, rng: np.random.Generator) -> Array:
        """Independent draws (n,). Raises TypeError or ValueError for a flat one, or no count or generator."""
        n = check_count("n", n, at_least=0)
        check_instance("rng", rng, np.random.Generator)
        check_room("n", n, 8.0 * n * (4 if self.kind == MIXTURE else 2))
        if self.kind == FLAT:
            raise ValueError("a flat prior cannot be drawn from")
        if self.kind == LAPLACE:
            return rng.laplace(self.location, self.scale, n)
        normals = rng.standard_normal(n)
        if self.kind == MIXTURE:
            parts = rng.choice(len(self.weights), size=n, p=np.array(self.weights) / sum(self.weights))
            return np.asarray(np.array(self.scales)[parts] * normals)
        values = self.location + self.scale * normals
        return np.asarray(np.exp(values) if self.kind == LOG_NORMAL else values)

    def inclusion(self, values: Any) -> Array:
        """Probability that the term is present given its coefficient: of any shape. Ones where it has no spike."""
        x = check_array("values", values)
        if not self.spikes:
            return np.ones(x.shape)
        scales = np.array(self.scales)
        exponents = np.log(np.array(self.weights) / scales) - 0.5 * (x[..., None] / scales) ** 2
        return np.asarray(
            np.exp(
                scipy.special.logsumexp(exponents[..., self.spikes :], axis=-1)
                - scipy.special.logsumexp(exponents, axis=-1)
            )
        )


def flat() -> Prior:
    """A flat, improper prior: the data must determine the parameter."""
    return Prior(FLAT)


def gaussian(mean: float = 0.0, sd: float = 1.0) -> Prior:
    """N(mean, sd²)."""
    return Prior(GAUSSIAN, check_number("mean", mean), check_scale("sd", sd))


def lognormal(mu: float = 0.0, sigma: float = 1.0) -> Prior:
    """exp N(mu, sigma²): of a positive parameter, sampled as its logarithm by ``identify``'s default."""
    return Prior(LOG_NORMAL, check_number("mu", mu, above=-600.0, below=600.0), check_scale("sigma", sigma))


def laplace(mean: float = 0.0, scale: float = 1.0) -> Prior:
    """Density exp(−|x − mean| / scale) / (2 scale)."""
    return Prior(LAPLACE, check_number("mean", mean), check_scale("scale", scale))


def spike_and_slab(spike: float, slab: float, *, inclusion: float = 0.5) -> Prior:
    """(1 − inclusion) N(0, spike²) + inclusion N(0, slab²), spike < slab: absent terms are those small as ``spike``.

    The probability that a term is present is the mean, over draws, of the slab's share at its coefficient
    (``Identification.inclusion``). Source: George & McCulloch (1993).
    Raises ValueError unless 0 < spike < slab and 0 < inclusion < 1.
    """
    wide = check_scale("slab", slab)
    narrow = check_number("spike", check_scale("spike", spike), below=wide)
    share = check_number("inclusion", inclusion, above=0.0, below=1.0)
    return Prior(MIXTURE, weights=(1.0 - share, share), scales=(narrow, wide), spikes=1)


def horseshoe(scale: float, *, slab: float = math.inf) -> Prior:
    """x ~ N(0, scale² λ²) with λ half-Cauchy: most coefficients near 0, a few free.

    slab: a width that no part exceeds (the regularised horseshoe); scale: the size below which coefficients shrink.
    It is a mixture of 40 normals, λ in equal steps of log λ from 1e-4 to 1e4: the density is right to 1 % for |x| from
    1e-3 to 100 scales, finite at 0, where the horseshoe's is not, and without its tail beyond 1e4 scales. A part
    narrower than ``scale`` counts as absence.
    Source: Carvalho, Polson & Scott (2010); Piironen & Vehtari (2017).
    """
    width = check_scale("scale", scale)
    if not (is_a(slab, float | np.floating) and plain_float(slab) == math.inf):
        slab = check_number("slab", check_scale("slab", slab), above=width)
    edges = np.geomspace(MIN_HORSESHOE_SCALE, 1.0 / MIN_HORSESHOE_SCALE, HORSESHOE_PARTS + 1)
    below = np.arctan(edges) * 2.0 / np.pi
    below[0], below[-1] = 0.0, 1.0
    local = np.sqrt(edges[1:] * edges[:-1])
    scales = width * local if slab == math.inf else width * local / np.sqrt(1.0 + (width * local / slab) ** 2)
    weights = tuple(np.diff(below).tolist())
    return Prior(MIXTURE, weights=weights, scales=tuple(scales.tolist()), spikes=int((local < 1.0).sum()))


def check_priors(prior: Any, names: tuple[str, ...]) -> tuple[Prior, ...]:
    """One prior per name: the given one for all, or those of a mapping, others flat. Raises where a name is unknown."""
    if prior is None:
        return (flat(),) * len(names)
    if is_a(prior, Prior):
        return (prior,) * len(names)
    if not is_a(prior, Mapping):
        raise TypeError(f"prior must be None, a Prior or a mapping from names to priors, got {shown(prior)}")
    for name, law in prior.items():
        if not is_a(name, str) or name not in names:
            raise ValueError(f"prior must name parameters ({', '.join(names)}), got {shown(name)}")
        if not is_a(law, Prior):
            raise TypeError(f"prior[{shown(name)}] must be a Prior (see sysid.priors), got {shown(law)}")
    return tuple(prior.get(name, flat()) for name in names)


def prior_table(priors: tuple[Prior, ...]) -> Array:
    """The table of ``add_priors``."""
    rows, parts = np.zeros((len(priors), WIDTH)), []
    first = rows.size
    for row, law in zip(rows, priors, strict=True):
        row[:] = law.kind, law.location, law.scale**-2, first, len(law.weights)
        for weight, scale in zip(law.weights, law.scales, strict=True):
            parts += [math.log(weight / scale), scale**-2]
        first += 2 * len(law.weights)
    return np.concatenate([rows.ravel(), parts])
