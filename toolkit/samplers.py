"""Samplers: dynamics × schedule × tempering × boundary × gradient noise, and the named points of that product."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from .boundaries import Boundary, ignore, reflect
from .checks import check_number, check_numbers
from .dynamics import Dynamics, langevin
from .philox import MAX_REPLICAS
from .schedules import Schedule, constant, cosine_cycles
from .tempering import ReplicaExchange, replica_exchange


@dataclass(frozen=True)
class Sampler:
    """One point of the product. Constructors below give the named ones; every combination is valid.

    step_sizes, temperatures: base values, one per replica, coldest first; a schedule multiplies them.
    tempering: None for a single replica, ``replica_exchange(...)`` for several.
    gradient_noise, energy_noise: standard deviations of normal noise added to each gradient coordinate and to each
    energy that a swap looks at. They stand for minibatches, and are unknown to the dynamics.
    Raises TypeError or ValueError naming the argument where something is off.
    """

    name: str
    step_sizes: Sequence[float]
    temperatures: Sequence[float] = (1.0,)
    dynamics: Dynamics = langevin()
    schedule: Schedule = constant()
    tempering: ReplicaExchange | None = None
    boundary: Boundary = ignore()
    gradient_noise: float = 0.0
    energy_noise: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "step_sizes", check_numbers("step_sizes", self.step_sizes, above=0.0))
        object.__setattr__(self, "temperatures", check_numbers("temperatures", self.temperatures, above=0.0))
        check_number("gradient_noise", self.gradient_noise, at_least=0.0)
        check_number("energy_noise", self.energy_noise, at_least=0.0)
        if self.energy_noise > 0 and self.tempering is None:
            raise ValueError(
                f"energy_noise must be 0 without a tempering that looks at energies, got {self.energy_noise}"
            )
        for name, kind in (
            ("dynamics", Dynamics),
            ("schedule", Schedule),
            ("boundary", Boundary),
        ):
            value = getattr(self, name)
            if not isinstance(value, kind):
                raise TypeError(f"{name} must be a {kind.__name__}, got {value!r} of type {type(value).__name__}")
        if self.tempering is not None and not isinstance(self.tempering, ReplicaExchange):
            raise TypeError(f"tempering must be None or a ReplicaExchange, got {self.tempering!r}")
        replicas = len(self.temperatures)
        if len(self.step_sizes) != replicas:
            raise ValueError(
                f"step_sizes and temperatures must have one value per replica, got {len(self.step_sizes)} step sizes "
                f"{self.step_sizes} and {replicas} temperatures {self.temperatures}"
            )
        if not 1 <= replicas < MAX_REPLICAS:
            raise ValueError(f"temperatures must have 1 to {MAX_REPLICAS - 1} values, got {replicas}")
        if any(a >= b for a, b in zip(self.temperatures, self.temperatures[1:], strict=False)):
            raise ValueError(f"temperatures must increase, coldest first, got {self.temperatures}")
        if (self.tempering is None) != (replicas == 1):
            raise ValueError(
                f"tempering by replica exchange needs at least 2 temperatures, and several temperatures need it; got "
                f"temperatures={self.temperatures} and tempering={self.tempering}"
            )

    @property
    def n_replicas(self) -> int:
        """Replicas per chain, which is also gradient evaluations per chain and step."""
        return len(self.temperatures)

    @property
    def correction(self) -> float:
        """F of the swap (``tempering.replica_exchange``): the given one, or the one that fits the energy noise."""
        if self.tempering is None or self.tempering.correction is None:
            return float(self.energy_noise) * float(self.energy_noise)
        return float(self.tempering.correction)


def sgld(
    step_size: float,
    *,
    temperature: float = 1.0,
    schedule: Schedule = constant(),
    boundary: Boundary = ignore(),
    gradient_noise: float = 0.0,
) -> Sampler:
    """Stochastic gradient Langevin dynamics: Langevin × ``schedule``. With ``boundaries.reflect()``, R-SGLD.

    Law and bias: ``dynamics.langevin``. Source: Welling & Teh (2011), eq. 4.
    """
    check_number("step_size", step_size, above=0.0)
    check_number("temperature", temperature, above=0.0)
    return Sampler(
        "sgld",
        (step_size,),
        (temperature,),
        schedule=schedule,
        boundary=boundary,
        gradient_noise=gradient_noise,
    )


def cyclical_sgld(
    step_size: float,
    *,
    n_cycles: int = 30,
    exploration: float = 0.25,
    floor: float = 0.0,
    temperature: float = 1.0,
    boundary: Boundary = ignore(),
    gradient_noise: float = 0.0,
) -> Sampler:
    """Cyclical SGLD: Langevin × cosine cycles, with step size ``step_size`` at the start of each cycle.

    Defaults are those of cyclical SG-MCMC (2020), section 5.1: M = 30, β = 1/4. Draws are biased by the step size
    at which they are kept. Source: the same, algorithm 1.
    """
    check_number("step_size", step_size, above=0.0)
    check_number("temperature", temperature, above=0.0)
    return Sampler(
        "cyclical_sgld",
        (step_size,),
        (temperature,),
        schedule=cosine_cycles(n_cycles, exploration=exploration, floor=floor),
        boundary=boundary,
        gradient_noise=gradient_noise,
    )


def resgld(
    step_sizes: Sequence[float],
    *,
    temperatures: Sequence[float],
    correction: float | None = None,
    swap_every: int = 1,
    swap_threshold: float | None = None,
    schedule: Schedule = constant(),
    boundary: Boundary = ignore(),
    gradient_noise: float = 0.0,
    energy_noise: float = 0.0,
) -> Sampler:
    """Replica exchange SGLD: Langevin × replica exchange, one step size and temperature per replica.

    Law: swaps leave each temperature's law as it is (``tempering.replica_exchange``); the bias is that of the moves
    (``dynamics.langevin``). Draws are those of the coldest replica. A domain is ignored by default.
    Source: r2SGLD (2024), algorithm 1 without R(·); Deng et al. (2020).
    """
    return Sampler(
        "resgld",
        step_sizes,
        temperatures,
        schedule=schedule,
        tempering=replica_exchange(correction=correction, swap_every=swap_every, swap_threshold=swap_threshold),
        boundary=boundary,
        gradient_noise=gradient_noise,
        energy_noise=energy_noise,
    )


def r2sgld(
    step_sizes: Sequence[float] = (5e-4, 1.5e-3),
    *,
    temperatures: Sequence[float] = (1.0, 10.0),
    correction: float | None = None,
    swap_every: int = 1,
    swap_threshold: float | None = None,
    schedule: Schedule = constant(),
    boundary: Boundary = reflect(),
    gradient_noise: float = 0.0,
    energy_noise: float = 0.0,
) -> Sampler:
    """Reflected replica exchange SGLD: Langevin × replica exchange × reflect.

    Law and bias: ``resgld`` and ``boundaries.reflect``. Step sizes and temperatures default to those of r2SGLD (2024),
    A.3; its correction 9.5 and its swap without a random number do not (``swap_threshold``).
    Source: r2SGLD (2024), algorithm 1.
    """
    sampler = resgld(
        step_sizes,
        temperatures=temperatures,
        correction=correction,
        swap_every=swap_every,
        swap_threshold=swap_threshold,
        schedule=schedule,
        boundary=boundary,
        gradient_noise=gradient_noise,
        energy_noise=energy_noise,
    )
    return replace(sampler, name="r2sgld")
