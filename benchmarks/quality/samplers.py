"""The samplers: each a family over a few knobs, whose settings ``search`` finds for a problem."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from toolkit import boundaries, dynamics, samplers, tempering
from toolkit.ladders import geometric_ladder
from toolkit.samplers.sampler import Sampler

from .problems import Case

LANES = 64  # chains × replicas of a run

Values = Mapping[str, float]


class Knob(NamedTuple):
    """Where the search begins, the factor of its first strides, and between what it stays."""

    start: float
    factor: float
    low: float
    high: float


class Family(NamedTuple):
    """Samplers by values of the knobs. biased: by the step size, for want of a Metropolis test."""

    knobs: dict[str, Knob]
    make: Callable[[Case, Values], Sampler]
    biased: bool = True


STEP = Knob(0.2, 3.0, 1e-3, 3.0)  # step size over that at which the largest curvature is 1
FRICTION = Knob(0.3, 3.0, 0.01, 1.0)
CYCLES = Knob(10.0, 3.0, 1.0, 100.0)
FLOOR = Knob(0.1, 3.0, 1e-3, 1.0)
ZETA = Knob(0.75, 1.5, 0.1, 1.5)
TOP = Knob(8.0, 2.5, 1.3, 1000.0)
RUNGS = Knob(4.0, 1.6, 2.0, 16.0)
LEAPFROGS = Knob(6.0, 2.0, 1.0, 64.0)
PARTICLES = 64


def edge(case: Case, exact: bool = False) -> boundaries.Boundary:
    """What happens at the walls, where there are some."""
    if case.problem.domain is None:
        return boundaries.ignore()
    return boundaries.reject() if exact else boundaries.reflect()


def correction(case: Case) -> Any:
    """Of swaps: adapted to a rate where minibatches make the noise, whose variance nobody tells."""
    return tempering.adapted_correction(0.3) if case.problem.target.stochastic else None


def ladder(values: Values, step_size: float, power: float = 0.5) -> dict[str, Any]:
    """Temperatures by equal factors; step sizes that grow with a power of them."""
    temperatures = geometric_ladder(1.0, values["top"], round(values["rungs"]))
    return {"step_sizes": [step_size * t**power for t in temperatures], "temperatures": temperatures}


def plain(constructor: Any, *names: str, **fixed: Any) -> Callable[[Case, Values], Sampler]:
    """A constructor of a step size, with some knobs as arguments by their names."""

    def make(case: Case, values: Values) -> Sampler:
        arguments = {name: round(values[name]) if name == "n_cycles" else values[name] for name in names}
        return constructor(  # type: ignore[no-any-return]
            values["step"] / case.curvature, boundary=edge(case), **arguments, **fixed
        )

    return make


def psgld(case: Case, values: Values) -> Sampler:
    """Its step size and floor in units of the gradient's size, √curvature."""
    size = case.curvature**0.5
    step = values["step"] / size * (1.0 + values["floor"])
    return samplers.psgld(step, floor=values["floor"] * size, boundary=edge(case))


def contour(constructor: Any, *names: str) -> Callable[[Case, Values], Sampler]:
    """Interacting contour, with as many replicas as the rungs' knob says."""

    def make(case: Case, values: Values) -> Sampler:
        arguments = {name: values[name] for name in names}
        step = values["step"] / case.curvature
        return constructor(  # type: ignore[no-any-return]
            step, n_replicas=round(values["rungs"]), boundary=edge(case), **arguments
        )

    return make


def exchange(constructor: Any, *names: str) -> Callable[[Case, Values], Sampler]:
    """Replica exchange without a Metropolis test of moves; reflected at walls."""

    def make(case: Case, values: Values) -> Sampler:
        arguments = {name: values[name] for name in names}
        steps = ladder(values, values["step"] / case.curvature)
        return constructor(  # type: ignore[no-any-return]
            **steps, correction=correction(case), boundary=edge(case), **arguments
        )

    return make


def exact(move: Callable[[Values], dynamics.Dynamics], power: float) -> Callable[[Case, Values], Sampler]:
    """Metropolis-adjusted moves; with rungs, non-reversible parallel tempering over them (even–odd swaps)."""

    def make(case: Case, values: Values) -> Sampler:
        step = values["step"] / case.curvature if power == 0.5 else (values["step"] / case.curvature) ** 0.5
        tempered = "rungs" in values
        rungs = ladder(values, step, power) if tempered else {"step_sizes": (step,)}
        return Sampler(
            "exact", **rungs, dynamics=move(values), boundary=edge(case, exact=True),
            tempering=tempering.replica_exchange(scheme="deo") if tempered else None,
        )  # fmt: skip

    return make


def svgd(case: Case, values: Values) -> Sampler:
    """Its step size in units of the target's width."""
    return samplers.svgd(values["step"] * case.spread, n_replicas=PARTICLES, boundary=edge(case))


def hmc(values: Values) -> dynamics.Dynamics:
    """HMC with the knob's leapfrogs."""
    return dynamics.hmc(n_leapfrogs=round(values["leapfrogs"]), random_length=False)


FAMILIES = {
    "sgld": Family({"step": STEP}, plain(samplers.sgld)),
    "psgld": Family({"step": STEP, "floor": Knob(1.0, 3.0, 0.01, 10.0)}, psgld),
    "sghmc": Family({"step": STEP, "friction": FRICTION}, plain(samplers.sghmc, "friction")),
    "sgnht": Family({"step": STEP, "friction": FRICTION}, plain(samplers.sgnht, "friction")),
    "cyclical_sgld": Family(
        {"step": STEP, "n_cycles": CYCLES, "floor": FLOOR}, plain(samplers.cyclical_sgld, "n_cycles", "floor")
    ),
    "cyclical_sghmc": Family(
        {"step": STEP, "n_cycles": CYCLES, "floor": FLOOR, "friction": FRICTION},
        plain(samplers.cyclical_sghmc, "n_cycles", "floor", "friction"),
    ),
    "csgld": Family({"step": STEP, "zeta": ZETA}, plain(samplers.csgld, "zeta")),
    "icsgld": Family({"step": STEP, "zeta": ZETA, "rungs": RUNGS}, contour(samplers.icsgld, "zeta")),
    "icsghmc": Family(
        {"step": STEP, "zeta": ZETA, "rungs": RUNGS, "friction": FRICTION},
        contour(samplers.icsghmc, "zeta", "friction"),
    ),
    "resgld, r2sgld": Family({"step": STEP, "top": TOP, "rungs": RUNGS}, exchange(samplers.r2sgld)),
    "r2sghmc": Family(
        {"step": STEP, "top": TOP, "rungs": RUNGS, "friction": FRICTION}, exchange(samplers.r2sghmc, "friction")
    ),
    "tact_hmc": Family(
        {"step": STEP, "top_temperature": Knob(6.0, 2.0, 1.5, 100.0), "friction": Knob(0.05, 3.0, 0.003, 0.5)},
        plain(samplers.tact_hmc, "top_temperature", "friction"),
    ),
    "svgd": Family({"step": Knob(0.03, 3.0, 1e-4, 1.0)}, svgd),
    "mala": Family({"step": STEP}, exact(lambda values: dynamics.mala(), 0.5), biased=False),
    "hmc": Family({"step": STEP, "leapfrogs": LEAPFROGS}, exact(hmc, 0.25), biased=False),
    "mala × exchange": Family(
        {"step": STEP, "top": TOP, "rungs": RUNGS}, exact(lambda values: dynamics.mala(), 0.5), biased=False
    ),
    "hmc × exchange": Family(
        {"step": STEP, "leapfrogs": LEAPFROGS, "top": TOP, "rungs": RUNGS}, exact(hmc, 0.25), biased=False
    ),
}
