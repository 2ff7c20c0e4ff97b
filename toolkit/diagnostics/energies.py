"""Energies: histogram of weighted draws, probabilities by a truth, and errors of contour's θ."""

from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from .._engine.run_record import check_run
from ..accumulators.grid_kl import cell_numbers
from ..errors import check_array, check_edges, shown
from ..tempering.contour_tempering import Contour
from ..weighting import batch_numbers, cell_sums, check_draw_weights, ratio

Array = NDArray[np.float64]

TAIL = np.geomspace(1e-12, 3e-3, 48)
SHARES = np.concatenate([TAIL, np.linspace(0.0, 1.0, 259)[1:-1], 1.0 - TAIL[::-1]])


class EnergyHistogram(NamedTuple):
    """Shares of the draws in bins of energy.

    shares, standard_errors: (bin,), of all chains together, errors by batch means. expected: (bin,), the truth's
    probabilities; None without one. below, above: the shares beyond the edges.
    """

    shares: Array
    standard_errors: Array
    expected: Array | None
    below: float
    above: float


def energy_histogram(energies: Any, edges: Any, *, weights: Any = None, truth: Any = None) -> EnergyHistogram:
    """Shares of the draws in the bins of energy between ``edges``, with their errors, beside the truth's.

    energies: (chain, draw), in nats, as ``run.energies[:, 0]``; weights: of the same shape, up to a factor of each
    chain, as ``run.replica_weights[:, 0]``. edges: (bin + 1,), increasing. truth: with ``energy_quantiles``.
    Standard errors are by 20 batches a chain, at most 200, and too small where energies are remembered for longer than
    a batch. The energy of a mode says nothing of its place: a chain in one of several equal modes has the right
    histogram. Law: of n independent draws each share has the truth's mean p and the variance p (1 − p) / n.
    Raises TypeError or ValueError where shapes do not fit.
    """
    values = check_array("energies", energies)
    if values.ndim != 2 or values.size == 0:
        raise ValueError(f"energies must have shape (chain, draw), got {values.shape}")
    bounds = check_edges("edges", edges)
    scale = check_draw_weights(weights, values[..., None])
    flat = values.reshape(-1, 1)
    cells = cell_numbers(flat, [bounds])
    cells[flat[:, 0] < bounds[0]] = bounds.size  # one more cell, for those below
    draw_weights = np.ones(len(flat)) if scale is None else scale.ravel()
    shares, variances = ratio(cell_sums(cells, bounds.size + 1, draw_weights, batch_numbers(*values.shape)))
    expected = None if truth is None else energy_probabilities(truth, bounds)
    return EnergyHistogram(shares[:-2], np.sqrt(variances[:-2]), expected, float(shares[-1]), float(shares[-2]))


def energy_probabilities(truth: Any, edges: Any) -> Array:
    """Probabilities of the bins of energy between ``edges``, (bin,).

    By a truth's ``energy_tails`` where it has them, each bin from the smaller tail, to the truth's ``energy_accuracy``;
    else by inverting its ``energy_quantiles``: from a table of 353 probabilities, with a monotone cubic in between, to
    1e-4, and to 1e-3 of a share beside a jump of the density of energies. Raises TypeError or ValueError where there
    are no quantiles or edges do not increase.
    """
    bounds = check_edges("edges", edges)
    if not hasattr(truth, "energy_quantiles"):
        raise TypeError(f"truth must have energy_quantiles, as a problem's truth, got {shown(truth)}")
    tails = getattr(truth, "energy_tails", None)
    if tails is not None:
        below, above = tails(bounds)
        upper = above[:-1] <= 0.5
        middle = 1.0 - below[:-1] - above[1:]
        return np.asarray(np.where(below[1:] <= 0.5, np.diff(below), np.where(upper, -np.diff(above), middle)))
    levels, first = np.unique(truth.energy_quantiles(SHARES), return_index=True)
    if levels.size < 2:
        bin_of_all = cell_numbers(levels[:, None], [bounds])
        return np.asarray(np.arange(bounds.size - 1) == bin_of_all, np.float64)
    cumulative = scipy.interpolate.PchipInterpolator(levels, SHARES[first])(np.clip(bounds, levels[0], levels[-1]))
    cumulative = np.where(bounds < levels[0], 0.0, np.where(bounds > levels[-1], 1.0, cumulative))
    return np.asarray(np.diff(cumulative))


class ThetaError(NamedTuple):
    """Contour's θ against the truth.

    estimated: (chain, bin), the probabilities of the bins that θ stands for. true: (bin,), given an energy inside the
    partition. l1: (chain,), Σ |estimated − true|. pooled: of the mean over the chains.
    """

    estimated: Array
    true: Array
    l1: Array
    pooled: float


def theta_error(run: Any, *, truth: Any = None) -> ThetaError:
    """How far contour's θ at the end of ``run`` is from the probabilities of its bins of energy.

    θ itself estimates them under field 'theta_zeta', θ^ζ up to a factor under field 'theta'; both given an energy
    inside the partition. truth: with ``energy_quantiles``; None for that of the run's problem.
    Law: with steps ω of the stochastic approximation θ does not settle but varies by order √ω, less between P replicas;
    l1 shrinks as ω does, down to the bias of the sampler's step size. A bin never visited has θ = 0 and costs its
    probability. Raises ValueError for a run without contour, at a temperature other than 1, of noisy energies, which
    bins are then of, or under field 'theta' with ζ = 0, whose θ says nothing; TypeError where it is no run.
    """
    check_run(run)
    tempering: Any = run.sampler.tempering
    if run.partition is None or not run.theta.size:
        raise ValueError(f"run must have contour tempering, got sampler {run.sampler.name!r}")
    if (run.sampler.arrays["temperatures"] != 1.0).any():
        raise ValueError(f"run must be at temperature 1, as its truth is, got {run.sampler.temperatures}")
    if run.sampler.energy_noise > 0.0 or run.problem.target.stochastic:
        raise ValueError("run must have exact energies, as its truth has, got noisy ones")
    masses = theta_masses("run", tempering, run.theta)
    estimated = masses / masses.sum(axis=1, keepdims=True)
    true = energy_probabilities(run.problem.truth if truth is None else truth, tempering.partition.edges)
    if true.sum() <= 0.0:
        raise ValueError(f"run must have a partition where the truth has energies, got {shown(tempering.partition)}")
    true = true / true.sum()
    pooled = float(np.abs(estimated.mean(axis=0) - true).sum())
    return ThetaError(estimated, true, np.abs(estimated - true).sum(axis=1), pooled)


def theta_masses(name: str, tempering: Contour, theta: Array) -> Array:
    """Probabilities (chain, bin), up to a factor, that θ estimates. Raises ValueError where it estimates none."""
    power = tempering.zeta if tempering.field == "theta" else 1.0
    if power == 0.0:
        raise ValueError(f"{name} must have ζ > 0 under field 'theta', got zeta=0: its θ says nothing of probabilities")
    return np.where(theta > 0.0, np.maximum(theta, 1e-300) ** power, 0.0)
