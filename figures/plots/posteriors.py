"""Marginal density of one coordinate: every chain, all together, and the truth."""

from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from toolkit import Run
from toolkit.diagnostics import weighted_ess
from toolkit.errors import (
    check_array,
    check_choice,
    check_count,
    check_flag,
    check_instance,
    check_number,
    check_numbers,
    is_a,
    shown,
)
from toolkit.weighting import check_weights

from ..arrays import Array
from .named_draws import names_of, number_of, parameters_of
from .style import TRUTH

N_POINTS = 400  # of a curve, whose kernel is no narrower than their distance
N_CELLS = 1 << 14  # of the grid that a kernel is summed on: at least 39 within a bandwidth
MAX_VALUE = 1e100  # of draws and limits


class PosteriorArtists(NamedTuple):
    """What ``posterior`` drew: the curve of all chains, those of each, the truth's, and the mark of the true value."""

    pooled: Line2D
    chains: list[Line2D]
    truth: Line2D | None
    mark: Line2D | None


def posterior(
    source: Any,
    axes: Any,
    *,
    coordinate: int | str = 0,
    weights: Any = None,
    method: str = "kernel",
    limits: Any = None,
    bins: int = 60,
    bandwidth: float | None = None,
    each_chain: bool = True,
    truth: Any = None,
    true_value: float | None = None,
    **line: Any,
) -> PosteriorArtists:
    """Draw the marginal density of one coordinate of ``source`` into ``axes``; the artists.

    source: a Run, whose weights are honoured, or draws (chain, draw) or (chain, draw, dim). Draws of a run of an
    ``Identification`` are drawn as the parameters they stand for, whatever positions were sampled; ``coordinate`` may
    then be a parameter's name, and an x-axis without a label gets it. weights: (chain, draw), up
    to a factor of each chain, in place of those. Every chain has the same share of the pooled density, which
    integrates to 1 over the whole line: draws beyond ``limits`` (low, high; None: those of the draws) count, unseen.
    method: 'kernel', Gaussian with ``bandwidth``, at least a 400th of the limits' distance (None: Silverman's
    0.9 min(sd, IQR / 1.34) n^(−1/5), n the worth of the weights, too wide for modes far narrower than the whole), or
    'histogram' of ``bins`` cells.
    each_chain: draw one thin curve per chain, too. truth: density as a function of points (n,), or points and densities
    (2, n). true_value: where to put a mark. ``line``: settings of the pooled curve.
    Raises TypeError or ValueError naming the argument where something is off.
    Picture: docs/plots.png, (d).
    Source: Silverman (1986), eq. 3.31.
    """
    check_instance("axes", axes, Axes)
    check_choice("method", method, ("kernel", "histogram"))
    check_flag("each_chain", each_chain)
    check_count("bins", bins, at_least=1, below=1 << 16)
    values, label = values_of(source, coordinate)
    shares = shares_of_draws(source, weights, values)
    low, high = limits_of(limits, values)
    if bandwidth is not None:
        check_number("bandwidth", bandwidth, at_least=(high - low) / N_POINTS)
    points, heights = curve_of(truth, low, high)
    if true_value is not None:
        check_number("true_value", true_value)
    edges = np.linspace(low, high, bins + 1)

    def curve(part: Array, part_shares: Array) -> tuple[Array, Array]:
        if method == "histogram":
            return steps(edges, binned(part, part_shares, edges) / np.diff(edges))
        return kernel_density(part, part_shares, low, high, bandwidth)

    if label and not axes.get_xlabel():
        axes.set_xlabel(label)
    (pooled,) = axes.plot(*curve(values, shares), **({"linestyle": "-"} | line))
    thin = {"color": pooled.get_color(), "linewidth": 0.4 * pooled.get_linewidth(), "alpha": 0.45, "linestyle": "-"}
    chain_numbers = range(len(values)) if each_chain and len(values) > 1 else range(0)
    chains = [axes.plot(*curve(values[i : i + 1], shares[i : i + 1]), **thin)[0] for i in chain_numbers]
    exact = axes.plot(points, heights, **TRUTH)[0] if truth is not None else None
    mark = axes.axvline(true_value, color="0.3", linestyle=(0, (1, 1.5)), zorder=1) if true_value is not None else None
    return PosteriorArtists(pooled, chains, exact, mark)


def values_of(source: Any, coordinate: Any) -> tuple[Array, str]:
    """The coordinate (chain, draw) of a run or of draws, and its name; "" where it has none."""
    draws = check_array("source", parameters_of(source, source.draws) if is_a(source, Run) else source)
    if draws.ndim not in (2, 3) or draws.size == 0:
        raise ValueError(f"source must be draws (chain, draw) or (chain, draw, dim), got an array of {draws.shape}")
    whole = draws.reshape(*draws.shape[:2], -1)
    names = names_of(source)
    number = number_of(coordinate, names, whole.shape[2])
    return np.asarray(whole[..., number]), names[number] if names else ""


def shares_of_draws(source: Any, weights: Any, values: Array) -> Array:
    """Weights (chain, draw) as shares of their chain's sum."""
    given = source.weights if weights is None and is_a(source, Run) else weights
    shares = check_weights(np.ones(values.shape) if given is None else given)
    if shares.shape != values.shape:
        raise ValueError(f"weights must have shape {values.shape}, one for each draw, got {shares.shape}")
    return shares


def limits_of(limits: Any, values: Array) -> tuple[float, float]:
    """The ends of the picture; by the draws, a tenth beyond, where they are None."""
    if limits is not None:
        ends = check_numbers("limits", limits, above=-MAX_VALUE, below=MAX_VALUE)
        if len(ends) != 2 or not ends[1] - ends[0] > 1e-9 * max(map(abs, ends)):
            raise ValueError(f"limits must be two increasing numbers, got {shown(limits)}")
        return ends[0], ends[1]
    low, high = float(values.min()), float(values.max())
    size = max(-low, high)
    if size >= MAX_VALUE:
        raise ValueError(f"source must be within ±{MAX_VALUE:g}, got {low} to {high}")
    varies = high - low > 1e-6 * size
    margin = 0.1 * (high - low) if varies else max(1e-3 * size, 1e-100) if size else 0.5
    return low - margin, high + margin


def curve_of(truth: Any, low: float, high: float) -> tuple[Array, Array]:
    """Points and densities of the truth; none where it is None."""
    if truth is None:
        return np.zeros(0), np.zeros(0)
    points = np.linspace(low, high, N_POINTS)
    table = check_array("truth", truth(points) if callable(truth) else truth)
    if callable(truth) and table.shape == points.shape:
        table = np.stack([points, table])
    if table.ndim != 2 or len(table) != 2 or (np.diff(table[0]) <= 0.0).any() or (table[1] < 0.0).any():
        raise ValueError(f"truth must be densities ≥ 0 at increasing points, (2, n), got an array of {table.shape}")
    return table[0], table[1]


def binned(values: Array, shares: Array, edges: Array) -> Array:
    """Mass (cell,) between ``edges``, chains having equal shares."""
    return np.asarray(np.histogram(values, edges, weights=shares)[0] / len(values))


def steps(edges: Array, heights: Array) -> tuple[Array, Array]:
    """Corners of a histogram's outline, from 0 to 0."""
    return np.repeat(edges, 2), np.concatenate([[0.0], np.repeat(heights, 2), [0.0]])


def silverman(values: Array, shares: Array) -> float:
    """Silverman's bandwidth of weighted draws."""
    loads, order = shares.ravel() / shares.sum(), np.argsort(values, axis=None)
    flat = values.ravel()
    sd = float(np.sqrt((loads * (flat - (loads * flat).sum()) ** 2).sum()))
    low, high = np.interp([0.25, 0.75], np.cumsum(loads[order]), flat[order])
    spread = min(sd, (high - low) / 1.34) or sd
    return float(0.9 * spread * weighted_ess(shares.reshape(1, -1))[0] ** -0.2)


def kernel_density(
    values: Array, shares: Array, low: float, high: float, bandwidth: float | None
) -> tuple[Array, Array]:
    """Points and Gaussian kernel density: draws in fine cells, smoothed by a product of Fourier transforms."""
    width = high - low
    wanted = silverman(values, shares) if bandwidth is None else float(bandwidth)
    h = max(wanted / width, 1.0 / N_POINTS)  # in units of the whole, from 0 to 1, as all that follows
    padded_width = 1.0 + 12.0 * h  # 6 h on either side, so that nothing comes round
    edges: Array = -6.0 * h + padded_width / N_CELLS * np.arange(N_CELLS + 1.0)
    transform = np.fft.rfft(binned((values - low) / width, shares, edges) * (N_CELLS / padded_width))
    damping = np.exp(-0.5 * (2.0 * np.pi * h / padded_width * np.arange(transform.size)) ** 2)
    smooth = np.fft.irfft(transform * damping, N_CELLS)
    points = np.linspace(0.0, 1.0, N_POINTS)
    heights = np.interp(points, 0.5 * (edges[1:] + edges[:-1]), smooth)
    return low + width * points, np.maximum(heights, 0.0) / width
