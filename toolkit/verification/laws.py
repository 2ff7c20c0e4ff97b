"""Checks of laws: a sampler's draws compared with the problem's truth and Stein's identity.

Dynamics without a Metropolis test have a documented bias of their step size, so they run at h and at h/2, for the same
time (``law_runs``). A correct sampler that starts from exact draws stays exact, even if it has no time to mix.
"""

import math
import warnings
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import scipy
from numpy.typing import NDArray

from ..boundaries.rules import PENALTIES
from ..diagnostics.convergence import r_hat
from ..errors import DivergenceError
from ..problem.definition import Truth
from ..samplers.sampler import Sampler
from ..schedules import evaluate
from .bits import Verdict
from .law_runs import Measured, Plan, Setting, at_half_pace, halved, measure
from .law_statistics import Group, Unknown, stein_group, truth_groups

# One law: the estimates at step sizes h and h/2, the expected value, and errors.
#
# The two are extrapolated to step size 0, where a correct sampler is unbiased, up to ``REMAINS`` of the bias found.

Floats = NDArray[np.float64]

FALSE_ALARM = 1e-4  # probability for a correct sampler, for each check, all its comparisons together
REMAINS = 0.25  # of the bias between step sizes h and 0 may remain after extrapolation
SPARE = 1.5  # safety factor of the number of steps by the square root law
COARSE = 0.25  # with a larger allowed deviation, in standard deviations of the value, nothing is judged
STEEP = 0.5  # a bias of so many standard deviations of the value is too large for linear extrapolation
DRIFTS, BIASED = 3.0, 3.0  # standard errors from which a drift, or a bias, is reported


def judge(
    setting: Setting, group: Group, i: int, at_h: Measured, at_half: Measured | None, across: bool = False
) -> Verdict:
    """The verdict on one group of means; across: they depend on weights of modes between which chains do not move."""
    values = at_h.values[i]
    if not np.isfinite(values).all() or not np.isfinite(at_half.values[i] if at_half else 0.0).all():
        return Verdict(None, "not judged: some chains have no draw with a weight; give more steps", True)
    limit = values if at_half is None else 2.0 * at_half.values[i] - values
    bias = values.mean(axis=0) - limit.mean(axis=0)
    floor = smallest_error(group, setting, at_h)
    error_at_h = np.maximum(standard_error(values), floor)
    error = np.maximum(standard_error(limit), floor if at_half is None else np.sqrt(5.0) * floor)
    quantile = float(scipy.special.stdtrit(len(values) - 1, 1.0 - 0.5 * FALSE_ALARM / len(group.labels)))
    off = np.abs(limit.mean(axis=0) - group.expected)
    margin = REMAINS * np.abs(bias) + group.slack
    allowed = quantile * error + margin
    fails = (off > allowed) & (np.abs(without_skewness(limit, group.expected, margin, error)) > quantile)
    ratio = off / allowed
    worst = int(np.argmax(np.where(fails, ratio, 0.0) if fails.any() else ratio))
    text = f"{group.labels[worst]} is {limit[:, worst].mean():.5g} ± {error[worst]:.2g}"
    text += "" if at_half is None else " at step size → 0"
    text += f", and should be {group.expected[worst]:.5g}"
    if fails[worst]:
        text += (
            f": {off[worst] / error[worst]:.1f} standard errors off" if error[worst] > 0.0 else ", without any spread"
        )
        if abs(bias[worst]) > STEEP * group.scale[worst]:
            text += (
                f"; half the step size moves it by {-0.5 * bias[worst]:.2g}, too far to extrapolate: take smaller ones"
            )
        excuse = excuse_of(setting, [m.drifts[i][:, worst] for m in (at_h, at_half) if m], at_h.doubts)
        return Verdict(None, f"not judged: {text}, but {excuse}", True) if excuse else Verdict(False, text)
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
    parts = [f"{number} compared: {text}, the farthest" if number > 1 else text]
    parts += [in_words(group, values, error_at_h)] if at_half is not None else []
    return Verdict(True, "; ".join(part for part in (*parts, group.remark) if part))


def steps_for_hops(plan: Plan, hops: float) -> int:
    """Steps in which a chain changes its mode often enough, if it did ``hops`` times so far; 0 if unknown."""
    return rounded_up(2.0 * plan.n_steps / hops) if 0.0 < hops < 1.0 else 0


def rounded_up(number: float) -> int:
    """``number`` rounded up to two digits."""
    unit = 10.0 ** max(0, math.floor(math.log10(number)) - 1)
    return int(math.ceil(number / unit) * unit)


def without_skewness(values: Floats, expected: Floats, margin: Floats, error: Floats) -> Floats:
    """Deviations of the means of ``values`` (chain, label) beyond ``margin``, in standard errors, made normal.

    Values of chains that rarely change modes are skewed, so Student's t has a long tail on one side, which this
    transformation removes. Source: Hall (1992), On the removal of skewness by transformation, JRSS B 54.
    """
    means, n = values.mean(axis=0), len(values)
    with np.errstate(divide="ignore", invalid="ignore"):
        off = (means - expected) / error
        t = np.sign(off) * np.maximum(np.abs(off) - margin / error, 0.0)
        skewness = ((values - means) ** 3).mean(axis=0) / (n**2 * error**3)  # of the mean
        normal = t + skewness * (t**2 / 3.0 + 1.0 / 6.0) + skewness**2 * t**3 / 27.0
    return np.asarray(np.where(error > 0.0, normal, np.inf))


def smallest_error(group: Group, setting: Setting, measured: Measured) -> Floats:
    """The smallest possible standard error: of independent draws, or of as many modes as chains have visited."""
    independent = group.scale / np.sqrt(measured.n_draws)
    if group.name not in ("mode weights", "cells") or not np.isfinite(measured.hops):
        return np.asarray(independent)
    n_visited = len(setting.plan.init) * (1.0 + measured.hops)
    return np.asarray(np.maximum(independent, group.scale / np.sqrt(n_visited)))


def standard_error(values: Floats) -> Floats:
    """Standard error of the mean over chains."""
    return np.asarray(values.std(axis=0, ddof=1) / np.sqrt(len(values)))


def excuse_of(setting: Setting, drifts: Sequence[Floats], doubts: Sequence[str]) -> str:
    """Why a deviation is not a failure: contour's warnings, or a run that has not reached its law; else empty."""
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
    """Whether a run starts at its law in its whole state, so that a drift is a failure."""
    dynamics = setting.sampler.dynamics
    has_state = dynamics.has_momentum or any(not name.startswith("_") for name in dynamics.memory)  # "_…" is scratch
    has_more_state = has_state or setting.sampler.tempering is not None
    return setting.starts_exact and not has_more_state


def in_words(group: Group, values: Floats, error: Floats) -> str:
    """The largest significant bias at the step size itself, in words."""
    bias = values.mean(axis=0) - group.expected
    is_significant = np.abs(bias) > BIASED * error + group.slack
    if not is_significant.any():
        return "no bias of the step size stands out"
    k = int(np.argmax(np.where(is_significant, np.abs(bias) / group.scale, 0.0)))
    size, direction = abs(bias[k]), "large" if bias[k] > 0.0 else "small"
    if group.unit == "share" and group.expected[k] != 0.0:
        amount = f"{size / abs(group.expected[k]):.1%} too {direction}"
    elif group.unit == "probability":
        amount = f"{size:.2g} too {direction}"
    else:
        amount = f"{size / group.scale[k]:.2g} of the spread too {direction}"
    return f"at this step size {group.labels[k]} is {amount}"


MIXED = 1.1  # largest R-hat for which a run that did not start from exact draws is judged
BETWEEN = 0.01  # a value's mean depends on the modes' weights if this share of its variance is between modes
LIKELY = 10.0  # expected chains that must start in a mode for its weight to be judged


def check_laws(setting: Setting) -> Iterator[tuple[str, Verdict]]:
    """Name and verdict of every law, and of the domain's edge."""
    problem, sampler = setting.problem, setting.sampler
    if sampler.tempers.comes_to_rest:
        yield (
            "laws",
            Verdict(
                None,
                "not judged: Stein's particles come to rest and are no random draws; their law is the target's only as "
                "their number grows",
            ),
        )
        return
    truth, reason = truth_for(setting)
    made = () if truth is None else truth_groups(truth, problem, setting.exact)
    groups = [
        without_rare_modes(group, len(setting.plan.init)) if isinstance(group, Group) else group for group in made
    ]
    if truth is None:
        yield "truth", Verdict(None, f"not judged: {reason}")
    to_judge = [group for group in groups if isinstance(group, Group)]
    for group in groups:
        if isinstance(group, Unknown):
            yield group.name, Verdict(None, f"not judged: {group.reason}", group.needed)
    stein = stein_of(setting)
    if isinstance(stein, Group):
        to_judge.append(stein)
    else:
        yield stein.name, Verdict(None, f"not judged: {stein.reason}")
    if not to_judge:
        return
    memberships = truth.memberships if truth is not None and len(truth.modes.weights) > 1 else None
    try:
        at_h = measure(setting.given, problem, sampler, setting.plan, to_judge, memberships)
        exact = is_exact(sampler)
        at_half = (
            None
            if exact
            else measure(setting.given, problem, halved(sampler), at_half_pace(setting.plan), to_judge, memberships)
        )
    except DivergenceError as error:
        yield "laws", Verdict(False, f"a run diverged: {error}")
        return
    yield from domain_verdict(setting, at_h)
    if at_h.doubts:
        yield "weights", Verdict(None, "not to be trusted yet: " + "; ".join(dict.fromkeys(at_h.doubts)))
    reason = not_mixed_reason(setting, at_h, memberships is not None)
    for i, group in enumerate(to_judge):
        if reason and group is not stein:
            yield group.name, Verdict(None, f"not judged: {reason}", True, steps_for_hops(setting.plan, at_h.hops))
        else:
            across = memberships is not None and at_h.hops < 1.0 and differs_by_mode(group, setting, memberships)
            yield group.name, judge(setting, group, i, at_h, at_half, across)


def truth_for(setting: Setting) -> tuple[Truth | None, str]:
    """The truth of the law that the sampler samples; or None and the reason."""
    problem, sampler, plan = setting.problem, setting.sampler, setting.plan
    if (sampler.arrays["temperatures"][..., 0] != 1.0).any():
        coldest = np.unique(sampler.arrays["temperatures"][..., 0]).tolist()
        return None, f"the truth is that of temperature 1, and the sampler's is {', '.join(map(str, coldest))}"
    factors = evaluate(sampler.schedule, np.arange(plan.n_steps), plan.n_steps)
    if (factors.temperature[factors.keep] != 1.0).any():
        return None, "the schedule changes the temperature while draws are kept"
    if sampler.boundary.kind in PENALTIES:
        return None, "a penalty changes the law outside the domain, where the truth ends"
    truth = problem.truth
    if truth is None:
        return None, f"{problem.name!r} has no truth"
    if (factors.temperature == 0.0).any() and len(truth.modes.weights) > 1:
        return None, (
            "a schedule that explores begins each cycle in the mode it fell into, and the modes' weights are for "
            "cycles.combine_cycles to find; judge it on a target of one mode"
        )
    return truth, ""


def stein_of(setting: Setting) -> Group | Unknown:
    """Stein's identities at the sampler's temperature, where they hold."""
    problem, sampler, plan = setting.problem, setting.sampler, setting.plan
    name = "Stein's identity"
    if problem.domain is not None and sampler.boundary.kind != "ignore":
        return Unknown(name, "it needs a law that no domain bounds")
    temperatures = np.unique(sampler.arrays["temperatures"][..., 0])
    factors = evaluate(sampler.schedule, np.arange(plan.n_steps), plan.n_steps)
    if temperatures.size > 1 or (factors.temperature[factors.keep] != 1.0).any():
        return Unknown(name, "chains or draws have several temperatures")
    points = setting.exact if setting.exact is not None else plan.init.reshape(-1, plan.init.shape[2])
    spread = points.std(axis=0)
    return stein_group(points.mean(axis=0), np.where(spread > 0.0, spread, 1.0), float(temperatures[0]))


def is_exact(sampler: Sampler) -> bool:
    """Whether the sampler's law is that of the target at any step size."""
    return sampler.dynamics.leapfrogs > 0 and sampler.tempers.keeps_law


def without_rare_modes(group: Group, n_chains: int) -> Group | Unknown:
    """``group`` without modes in which too few chains start for their counts to be normal."""
    if group.name != "mode weights":
        return group
    kept = np.flatnonzero(group.expected * n_chains >= LIKELY)
    if not kept.size:
        return Unknown(
            group.name, f"fewer than {LIKELY:g} of {n_chains} chains begin in any mode; give more chains", True
        )
    values = group.values
    return group._replace(
        labels=[group.labels[i] for i in kept],
        expected=group.expected[kept],
        scale=group.scale[kept],
        slack=group.slack[kept],
        values=lambda x, u, g: values(x, u, g)[:, kept],
        remark=f"{group.expected.size - kept.size} modes left out, in which too few chains begin"
        if kept.size < group.expected.size
        else "",
    )


def not_mixed_reason(setting: Setting, measured: Measured, has_modes: bool) -> str:
    """Why a run that did not start from exact draws cannot be judged; empty if it can."""
    if setting.starts_exact:
        return ""
    if has_modes and measured.hops < 1.0:
        return (
            f"a chain changed its mode {measured.hops:.2g} times on average, so the modes' weights are those of the "
            "start; give more steps, or no init, to begin at exact draws"
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        worst = float(np.max(r_hat(measured.run.draws)))
    if not worst < MIXED:
        return f"R-hat is {worst:.3g}, and above {MIXED} chains have not mixed; give more steps or a longer burn_in"
    return ""


def differs_by_mode(group: Group, setting: Setting, memberships: Callable[[Floats], Floats]) -> bool:
    """Whether the mean of any value differs between modes, so that it can be judged only if chains mix."""
    if setting.exact is None:
        return True
    energies, gradients = setting.problem.target.evaluate(setting.exact)
    values, labels = group.values(setting.exact, energies, gradients), memberships(setting.exact).argmax(axis=1)
    between = np.zeros(values.shape[1])
    for label in np.unique(labels):
        own = values[labels == label]
        between += len(own) / len(values) * (own.mean(axis=0) - values.mean(axis=0)) ** 2
    return bool((between > BETWEEN * values.var(axis=0)).any())


def domain_verdict(setting: Setting, measured: Measured) -> Iterator[tuple[str, Verdict]]:
    """Whether draws stayed inside, and how often reflection failed."""
    kind = setting.sampler.boundary.kind
    if setting.given.domain is None:
        return
    n, outside = measured.n_places, measured.outside
    if kind in ("ignore", *PENALTIES):
        yield (
            "domain",
            Verdict(None, f"not checked: boundary {kind!r} lets draws leave, and {outside / n:.2%} are outside"),
        )
        return
    text = f"{outside} of {n} draws are outside the domain"
    if kind == "reflect":
        text += f"; reflection gave up and stayed {measured.fallbacks} times"
    yield "domain", Verdict(outside == 0, text)
