"""One law judged: what chains found at step sizes h and h/2, beside what it should be, its error and its excuses.

The two are extrapolated to step size 0, where a right sampler is unbiased; what remains there may be ``REMAINS`` of the
bias so found.
"""

import math
from collections.abc import Sequence

import numpy as np
import scipy
from numpy.typing import NDArray

from .bit_checks import Verdict
from .law_runs import Measured, Plan, Setting
from .law_statistics import Group

Floats = NDArray[np.float64]

FALSE_ALARM = 1e-4  # of a right sampler, for each check, its comparisons together
REMAINS = 0.25  # of the bias between step sizes h and 0 may be left by the extrapolation
SPARE = 1.5  # as many steps as the square root law asks for
COARSE = 0.25  # an allowed deviation of so many standard deviations of the value says too little
STEEP = 0.5  # a bias of so many standard deviations of the value is beyond a straight line
DRIFTS, BIASED = 3.0, 3.0  # standard errors from which a drift, or a bias, is spoken of


def judge(
    setting: Setting, group: Group, i: int, at_h: Measured, at_half: Measured | None, across: bool = False
) -> Verdict:
    """The verdict on one group of means; across: whether they depend on modes that chains do not change between."""
    values = at_h.values[i]
    if not np.isfinite(values).all() or not np.isfinite(at_half.values[i] if at_half else 0.0).all():
        return Verdict(None, "not judged: some chains have no draw with a weight; give more steps", True)
    limit = values if at_half is None else 2.0 * at_half.values[i] - values
    bias = values.mean(axis=0) - limit.mean(axis=0)
    floor = floor_of(group, setting, at_h)
    error_at_h = np.maximum(error_of(values), floor)
    error = np.maximum(error_of(limit), floor if at_half is None else np.sqrt(5.0) * floor)
    quantile = float(scipy.special.stdtrit(len(values) - 1, 1.0 - 0.5 * FALSE_ALARM / len(group.labels)))
    away = np.abs(limit.mean(axis=0) - group.expected)
    margin = REMAINS * np.abs(bias) + group.slack
    allowed = quantile * error + margin
    fails = (away > allowed) & (np.abs(without_skewness(limit, group.expected, margin, error)) > quantile)
    ratio = away / allowed
    worst = int(np.argmax(np.where(fails, ratio, 0.0) if fails.any() else ratio))
    said = f"{group.labels[worst]} is {limit[:, worst].mean():.5g} ± {error[worst]:.2g}"
    said += "" if at_half is None else " at step size → 0"
    said += f", and should be {group.expected[worst]:.5g}"
    if fails[worst]:
        said += (
            f": {away[worst] / error[worst]:.1f} standard errors off" if error[worst] > 0.0 else ", without any spread"
        )
        if abs(bias[worst]) > STEEP * group.scale[worst]:
            said += (
                f"; half the step size moves it by {-0.5 * bias[worst]:.2g}, too far to extrapolate: take smaller ones"
            )
        excuse = excuse_of(setting, [m.drifts[i][:, worst] for m in (at_h, at_half) if m], at_h.doubts)
        return Verdict(None, f"not judged: {said}, but {excuse}", True) if excuse else Verdict(False, said)
    if across:
        return Verdict(
            None,
            f"not judged: a chain changed its mode {at_h.hops:.2g} times on average, and the weights are those of the "
            "exact draws it began at; give more steps, or tempering",
            True,
            steps_for_hops(setting.plan, at_h.hops),
        )
    coarse = float(np.max(quantile * error / group.scale))
    if coarse > COARSE:
        k = int(np.argmax(quantile * error / group.scale))
        return Verdict(
            None,
            f"not judged: too few effective draws, {group.labels[k]} is known to ± {error[k]:.2g} alone; give more "
            "steps or chains",
            True,
            rounded_up(SPARE * setting.plan.n_steps * (coarse / COARSE) ** 2),
        )
    number = len(group.labels)
    parts = [f"{number} compared: {said}, the farthest" if number > 1 else said]
    parts += [in_words(group, values, error_at_h)] if at_half is not None else []
    return Verdict(True, "; ".join(part for part in (*parts, group.remark) if part))


def steps_for_hops(plan: Plan, hops: float) -> int:
    """Steps in which a chain changes its mode often enough, after it did ``hops`` times; 0 where nothing tells."""
    return rounded_up(2.0 * plan.n_steps / hops) if 0.0 < hops < 1.0 else 0


def rounded_up(number: float) -> int:
    """``number`` with two digits."""
    unit = 10.0 ** max(0, math.floor(math.log10(number)) - 1)
    return int(math.ceil(number / unit) * unit)


def without_skewness(values: Floats, expected: Floats, margin: Floats, error: Floats) -> Floats:
    """Standard errors by which the means of ``values`` (chain, label) are off by more than ``margin``, as normal ones.

    The values of chains that seldom leave are skewed, and Student's t then has a long tail on one side, which this
    transformation takes away. Source: Hall (1992), On the removal of skewness by transformation, JRSS B 54.
    """
    means, n = values.mean(axis=0), len(values)
    with np.errstate(divide="ignore", invalid="ignore"):
        off = (means - expected) / error
        t = np.sign(off) * np.maximum(np.abs(off) - margin / error, 0.0)
        skewness = ((values - means) ** 3).mean(axis=0) / (n**2 * error**3)  # of the mean
        normal = t + skewness * (t**2 / 3.0 + 1.0 / 6.0) + skewness**2 * t**3 / 27.0
    return np.asarray(np.where(error > 0.0, normal, np.inf))


def floor_of(group: Group, setting: Setting, measured: Measured) -> Floats:
    """The least standard error: that of independent draws, or of as many modes as chains have met."""
    independent = group.scale / np.sqrt(measured.n_draws)
    if group.name not in ("mode weights", "cells") or not np.isfinite(measured.hops):
        return np.asarray(independent)
    met = len(setting.plan.init) * (1.0 + measured.hops)
    return np.asarray(np.maximum(independent, group.scale / np.sqrt(met)))


def error_of(values: Floats) -> Floats:
    """Standard error of the mean over chains."""
    return np.asarray(values.std(axis=0, ddof=1) / np.sqrt(len(values)))


def excuse_of(setting: Setting, drifts: Sequence[Floats], doubts: Sequence[str]) -> str:
    """Why a deviation is no failure: contour's own doubts, or a run that was not at its law yet; else nothing."""
    if doubts:
        return "contour's weights are not to be trusted yet"
    for drift in drifts if not stays_exact(setting) else ():
        if abs(drift.mean()) > DRIFTS * drift.std(ddof=1) / np.sqrt(len(drift)):
            return (
                f"it still moves, by {-drift.mean():.2g} from the first half of the draws to the second; give a longer "
                "burn_in or more steps"
            )
    return ""


def stays_exact(setting: Setting) -> bool:
    """Whether a run begins at its law in all it remembers, so that nothing excuses a drift."""
    dynamics = setting.sampler.dynamics
    has_state = dynamics.has_momentum or any(not name.startswith("_") for name in dynamics.memory)  # "_…" is scratch
    remembers = has_state or setting.sampler.tempering is not None
    return setting.starts_exact and not remembers


def in_words(group: Group, values: Floats, error: Floats) -> str:
    """The largest bias at the step size itself that stands out of the noise."""
    bias = values.mean(axis=0) - group.expected
    sure = np.abs(bias) > BIASED * error + group.slack
    if not sure.any():
        return "no bias of the step size stands out"
    k = int(np.argmax(np.where(sure, np.abs(bias) / group.scale, 0.0)))
    size, direction = abs(bias[k]), "large" if bias[k] > 0.0 else "small"
    if group.unit == "share" and group.expected[k] != 0.0:
        amount = f"{size / abs(group.expected[k]):.1%} too {direction}"
    elif group.unit == "probability":
        amount = f"{size:.2g} too {direction}"
    else:
        amount = f"{size / group.scale[k]:.2g} of the spread too {direction}"
    return f"at this step size {group.labels[k]} is {amount}"
