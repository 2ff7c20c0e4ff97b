"""Laws: what a sampler's draws say of a problem, judged against its truth and Stein's identity.

Dynamics without a Metropolis test are biased by their step size, and documented to be, so they run at h and at h/2, for
the same time (``law_verdicts``). From exact draws a right sampler stays exact, whether or not it has time to mix.
"""

import warnings
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from .bit_checks import Verdict
from .boundaries import PENALTIES
from .convergence import r_hat
from .errors import DivergenceError
from .law_runs import Measured, Setting, at_half_pace, halved, measure
from .law_statistics import Group, Unknown, stein_group, truth_groups
from .law_verdicts import judge, steps_for_hops
from .problem import Truth
from .sampler import Sampler
from .schedule import evaluate
from .tempering import ContinuousTempering, Contour, Stein

Floats = NDArray[np.float64]

MIXED = 1.1  # R-hat above which a run from other than exact draws is not judged
BETWEEN = 0.01  # share of a value's variance that lies between modes, from which its mean depends on their weights
LIKELY = 10.0  # chains that must begin in a mode, on average, for its weight to be judged


def check_laws(setting: Setting) -> Iterator[tuple[str, Verdict]]:
    """Name and verdict of every law, and of what the runs met at the domain's edge."""
    problem, sampler = setting.problem, setting.sampler
    if isinstance(sampler.tempering, Stein):
        yield (
            "laws",
            Verdict(
                None,
                "not judged: Stein's particles come to rest and are no random draws; their law is the target's only as "
                "their number grows",
            ),
        )
        return
    truth, against = truth_for(setting)
    told = () if truth is None else truth_groups(truth, problem, setting.exact)
    groups = [likely(group, len(setting.plan.init)) if isinstance(group, Group) else group for group in told]
    if truth is None:
        yield "truth", Verdict(None, f"not judged: {against}")
    known = [group for group in groups if isinstance(group, Group)]
    for group in groups:
        if isinstance(group, Unknown):
            yield group.name, Verdict(None, f"not judged: {group.reason}", group.needed)
    stein = stein_of(setting)
    if isinstance(stein, Group):
        known.append(stein)
    else:
        yield stein.name, Verdict(None, f"not judged: {stein.reason}")
    if not known:
        return
    hopping = truth.memberships if truth is not None and len(truth.modes.weights) > 1 else None
    try:
        at_h = measure(setting.given, problem, sampler, setting.plan, known, hopping)
        exact = is_exact(sampler)
        at_half = (
            None
            if exact
            else measure(setting.given, problem, halved(sampler), at_half_pace(setting.plan), known, hopping)
        )
    except DivergenceError as error:
        yield "laws", Verdict(False, f"a run diverged: {error}")
        return
    yield from edge_verdicts(setting, at_h)
    if at_h.doubts:
        yield "weights", Verdict(None, "not to be trusted yet: " + "; ".join(dict.fromkeys(at_h.doubts)))
    against = too_little(setting, at_h, hopping is not None)
    for i, group in enumerate(known):
        if against and group is not stein:
            yield group.name, Verdict(None, f"not judged: {against}", True, steps_for_hops(setting.plan, at_h.hops))
        else:
            across = hopping is not None and at_h.hops < 1.0 and differs_by_mode(group, setting, hopping)
            yield group.name, judge(setting, group, i, at_h, at_half, across)


def truth_for(setting: Setting) -> tuple[Truth | None, str]:
    """The truth of what the sampler draws from; or None and the reason."""
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
    return sampler.dynamics.leapfrogs > 0 and not isinstance(sampler.tempering, Contour | ContinuousTempering)


def likely(group: Group, n_chains: int) -> Group | Unknown:
    """``group`` without the modes in which hardly a chain begins, whose counts have no normal law."""
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


def too_little(setting: Setting, measured: Measured, has_modes: bool) -> str:
    """Why a run that did not begin at exact draws says nothing of the truth; empty where it does."""
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
    """Whether the mean of any value differs between modes, by independent draws: only mixing tells its mean then."""
    if setting.exact is None:
        return True
    energies, gradients = setting.problem.target.evaluate(setting.exact)
    values, labels = group.values(setting.exact, energies, gradients), memberships(setting.exact).argmax(axis=1)
    between = np.zeros(values.shape[1])
    for label in np.unique(labels):
        own = values[labels == label]
        between += len(own) / len(values) * (own.mean(axis=0) - values.mean(axis=0)) ** 2
    return bool((between > BETWEEN * values.var(axis=0)).any())


def edge_verdicts(setting: Setting, measured: Measured) -> Iterator[tuple[str, Verdict]]:
    """Whether draws stayed inside, and how often reflection gave up."""
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
    said = f"{outside} of {n} draws are outside the domain"
    if kind == "reflect":
        said += f"; reflection gave up and stayed {measured.fallbacks} times"
    yield "domain", Verdict(outside == 0, said)
