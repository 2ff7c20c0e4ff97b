"""Contour's θ over the energy, as probabilities of its bins, beside the truth's."""

from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.lines import Line2D

from toolkit import Run
from toolkit.diagnostics import energy_probabilities
from toolkit.diagnostics.energies import theta_masses
from toolkit.errors import check_array, check_edges, check_instance, is_a, shown
from toolkit.tempering import Contour

from ..arrays import Array
from .style import TRUTH


class SpectrumArtists(NamedTuple):
    """What ``theta_spectrum`` drew: the line of the mean, the band of ± 2 standard deviations, the truth's line."""

    mean: Line2D
    band: PolyCollection | None
    truth: Line2D | None


def theta_spectrum(source: Any, axes: Any, *, edges: Any = None, truth: Any = None, **line: Any) -> SpectrumArtists:
    """Draw the probabilities of the bins of energy that θ stands for into ``axes``, on a log scale; the artists.

    source: a Run of a contour sampler, whose θ is that at its end (θ^ζ under field 'theta'), or θ (repeat, bin), each
    row divided by its sum. edges: (bin + 1,), increasing, in nats; None for a Run, which has its own.
    Line: mean over chains at the bins' middles, with a gap where no chain has been. Band: ± 2 standard deviations over
    chains, of one chain and not of their mean; None for one chain; where it reaches 0, it ends at the foot of the axes.
    truth: with ``energy_quantiles``, as ``run.problem.truth``, or probabilities (bin,); given an energy in the bins.
    ``line``: settings of the line. Raises TypeError or ValueError naming the argument where something is off.
    Picture: docs/plots.png, (f).
    """
    check_instance("axes", axes, Axes)
    if is_a(source, Run):
        if edges is not None:
            raise ValueError(f"edges must be None for a Run, which has its own, got {shown(edges)}")
        theta, bounds = masses_of(source)
    else:
        theta, bounds = check_array("source", source), check_edges("edges", edges)
    if theta.ndim != 2 or len(theta) == 0 or theta.shape[1] != bounds.size - 1:
        raise ValueError(f"source must be θ (repeat, bin) of {bounds.size - 1} bins by edges, got {theta.shape}")
    shares = normalised("source", theta)
    true = None if truth is None else true_shares(truth, bounds)
    mean, middles = shares.mean(axis=0), 0.5 * (bounds[1:] + bounds[:-1])
    lower_limit = 0.3 * min(row[row > 0.0].min() for row in (mean, mean if true is None else true))
    (drawn,) = axes.plot(middles, np.where(mean > 0.0, mean, np.nan), **({"linestyle": "-"} | line))
    band = None
    if len(shares) > 1:
        low, high = (np.maximum(mean + side * shares.std(axis=0, ddof=1), lower_limit) for side in (-2.0, 2.0))
        band = axes.fill_between(middles, low, high, color=drawn.get_color(), alpha=0.18, linewidth=0.0)
    curve = None
    if true is not None:
        (curve,) = axes.plot(middles, np.where(true > 0.0, true, np.nan), **TRUTH)
    axes.set_yscale("log")
    return SpectrumArtists(drawn, band, curve)


def masses_of(run: Run) -> tuple[Array, Array]:
    """Probabilities up to a factor (chain, bin) that a run's θ stands for, and its edges."""
    tempering = run.sampler.tempering
    if not isinstance(tempering, Contour) or tempering.partition is None or not run.theta.size:
        raise ValueError(f"source must be a Run of a contour sampler, got one of {run.sampler.name!r}")
    return check_array("source", theta_masses("source", tempering, run.theta)), tempering.partition.edges


def normalised(name: str, masses: Array) -> Array:
    """``masses`` (row, bin) ≥ 0 as shares of their row's sum."""
    largest = masses.max(axis=1, keepdims=True)
    if (masses < 0.0).any() or (largest == 0.0).any():
        raise ValueError(f"{name} must be ≥ 0 in every bin and above 0 in one, got {masses.min()} to {masses.max()}")
    scaled = masses / largest  # first, or the sum of large ones is inf
    return np.asarray(scaled / scaled.sum(axis=1, keepdims=True))


def true_shares(truth: Any, bounds: Array) -> Array:
    """The truth's probabilities (bin,), given an energy between the ends."""
    known = energy_probabilities(truth, bounds) if hasattr(truth, "energy_quantiles") else check_array("truth", truth)
    if known.shape != (bounds.size - 1,):
        raise ValueError(f"truth must have energy_quantiles or shape ({bounds.size - 1},), got {shown(truth)}")
    return np.asarray(normalised("truth", known[None])[0])
