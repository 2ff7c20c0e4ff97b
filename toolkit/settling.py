"""Warnings about a contour run whose weights should not be trusted yet."""

import warnings

import numpy as np
from numpy.typing import NDArray

from .contour import Contour, Partition
from .errors import ContourWarning
from .result import RunRecord

UNSETTLED, STEEPEST, RARE_CONTOUR = 0.3, 10.0, 0.01
BELOW, ABOVE = 0.1, 0.25
STILL = 0.02  # share of accepted moves


def warn_about(run: RunRecord, stacklevel: int) -> None:
    """Warn where contour's θ has not settled, its multipliers are extreme, or energies lie outside its partition."""
    for message in doubts(run):
        warnings.warn(message, ContourWarning, stacklevel=stacklevel + 1)


def doubts(run: RunRecord) -> list[str]:
    """What speaks against the weights of ``run``, a sentence each.

    Thresholds, from runs with known truth: θ at a quarter to half of the way differs by 0.01 to 0.2 in L1 where it is
    right; the largest multiplier of a right run was 5, and 36 to 660 where it had run away.
    """
    contour = run.sampler.tempering
    if not isinstance(contour, Contour) or contour.partition is None or run.sampling_steps == 0:
        return []
    found = []
    moved = float(np.abs(run.counts.theta - run.counts.earlier_theta).sum(axis=1).mean())
    if moved > UNSETTLED and run.counts.earlier_theta.any():
        found.append(
            f"θ has not settled: in the last half or more of the steps after burn-in it moved by {moved:.2f} in L1, "
            f"and more than {UNSETTLED} is too much to trust the weights; give more steps or a longer burn-in"
        )
    steepest = largest_multiplier(run, contour.zeta, contour.partition)
    if steepest > STEEPEST:
        tests = run.sampler.dynamics.leapfrogs > 0
        where = f"by up to {steepest:.0f} in bins with {RARE_CONTOUR:.0%} of the visits or more"
        found.append(
            f"the gradient is to be multiplied {where}; proposals that would then be rejected follow the gradient as "
            "it is, and θ is slow to settle: give smaller steps or wider bins"
            if tests
            else f"the gradient is multiplied {where}; steps overshoot there and θ settles on a wrong value: give "
            "smaller steps or wider bins"
        )
    if run.sampler.dynamics.leapfrogs > 0:
        still = int((run.acceptance < STILL).any(axis=1).sum())
        if still:
            found.append(
                f"{still} of {run.n_chains} chains accept less than {STILL:.0%} of their moves, and hardly move: give "
                "smaller steps or wider bins"
            )
    below, above = shares_outside(run)
    for share, limit, side, bound in (
        (below, BELOW, "below", contour.partition.u_min),
        (above, ABOVE, "above", contour.partition.u_max),
    ):
        if share > limit:
            found.append(
                f"{share:.0%} of the energies lie {side} the partition, which has its end at {bound:.6g}; "
                "nothing is flattened there: give a partition that covers them"
            )
    return found


def shares_outside(run: RunRecord) -> tuple[float, float]:
    """Shares of the energies below and above the partition, of the chains at the temperature that has the most."""
    temperature = chain_temperatures(run)
    groups = np.array([run.counts.outside[temperature == t].sum(axis=0) for t in np.unique(temperature)])
    below, above = (groups[:, :2] / np.maximum(groups[:, 2:], 1)).max(axis=0)
    return float(below), float(above)


def chain_temperatures(run: RunRecord) -> NDArray[np.float64]:
    """The temperature that all replicas of a chain share, (chain,)."""
    return run.sampler.per_chain("temperatures", np.arange(run.n_chains), np.zeros(run.n_chains, np.int64))


def largest_multiplier(run: RunRecord, zeta: float, partition: Partition) -> float:
    """Largest |1 + ζ T (log θ(i) − log θ(i−1)) / Δu| over bins with enough visits, and over chains."""
    visits, theta = run.counts.visits, run.counts.theta
    often = visits[:, 1:] >= RARE_CONTOUR * visits.sum(axis=1, keepdims=True)
    often &= visits[:, :-1] > 0
    temperature = chain_temperatures(run)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        multiplier = np.abs(1.0 + zeta * temperature * np.diff(np.log(theta), axis=1) / partition.width)
    return float(multiplier[often].max(initial=1.0))
