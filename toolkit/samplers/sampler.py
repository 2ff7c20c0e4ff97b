"""A sampler: one point of dynamics × schedule × tempering × boundary × gradient noise, and which points make sense."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._compiler.binding import bound
from ..boundaries.rules import Boundary, ignore
from ..dynamics import Dynamics, langevin
from ..errors import (
    check_array,
    check_deviation,
    check_number,
    check_numbers,
    check_scale,
    check_text,
    entries,
    is_a,
    is_sequence,
    shown,
)
from ..maths.philox import MAX_REPLICAS
from ..problem.call_text import call_text, shows_call
from ..schedules import Schedule, constant
from ..tempering import ContinuousTempering, Contour, ReplicaExchange, Stein, Tempering
from ..tempering.interface import UNTEMPERED, no_tempering

Number = float | Sequence[float] | NDArray[np.float64]  # one value, or one for every chain
Values = Sequence[Any] | NDArray[np.float64]
STEP_ARGUMENTS = no_tempering.__code__.co_argcount


@dataclass(frozen=True)
class Sampler:
    """One point of the product. ``samplers`` has constructors for the named ones.

    step_sizes, temperatures: base values, one per replica (R,), or one per chain and replica (chain, R); a schedule
    multiplies them. Coldest first under replica exchange; otherwise a chain's replicas share one temperature.
    tempering: None (replicas are independent of each other), ``replica_exchange(...)``, ``contour(...)``,
    ``continuous_tempering(...)`` or ``stein(...)``.
    gradient_noise, energy_noise: standard deviations of normal noise added to each gradient coordinate and to each
    energy that tempering looks at. They stand for minibatches, and are unknown to the dynamics.
    scale: None, or the scale s of each coordinate, (dim,) positive numbers, of all replicas and chains: the sampler
    moves in z = x / s as it would without, with the gradient s ∂U, so that coordinates whose standard deviations are
    about s need one step size (a diagonal metric, or mass 1/s²). None is 1 everywhere. For any sampler:
    ``dataclasses.replace(samplers.hmc(0.3), scale=(1.0, 100.0))``. For HMC and MALA also a lower triangular matrix L,
    (dim, dim), with a positive diagonal: they move in z = L⁻¹ x, with the gradient Lᵀ ∂U, so that a target whose
    covariance is about L Lᵀ needs one step size in all directions (a dense metric, or mass (L Lᵀ)⁻¹). What is given in
    x stays so: draws, starts, the domain and the gradient noise. ``preconditioned_langevin`` and ``descent``, which
    scale steps themselves, have none, nor has a reflecting boundary where entries differ.
    A block function of one's own in ``dynamics`` is what it is when the sampler is made (see ``Target``).
    Raises TypeError or ValueError naming the argument where something is off, and where parts make no sense together.
    """

    name: str = "sampler"
    step_sizes: Values = ()
    temperatures: Values = (1.0,)
    dynamics: Dynamics = langevin()
    schedule: Schedule = constant()
    tempering: Tempering | None = None
    boundary: Boundary = ignore()
    gradient_noise: float = 0.0
    energy_noise: float = 0.0
    scale: Sequence[Any] | NDArray[np.float64] | None = None

    @shows_call
    def __repr__(self) -> str:
        """The call that made it, or what it is made of and is not by default."""
        return call_text("Sampler", signature(type(self)), {one.name: getattr(self, one.name) for one in fields(self)})

    def __post_init__(self) -> None:
        check_text("name", self.name)
        object.__setattr__(self, "step_sizes", check_values("step_sizes", self.step_sizes))
        object.__setattr__(self, "temperatures", check_values("temperatures", self.temperatures))
        check_deviation("gradient_noise", self.gradient_noise)
        check_deviation("energy_noise", self.energy_noise)
        if self.scale is not None:
            object.__setattr__(self, "scale", checked_scale(self.scale))
        for name, kind in (("dynamics", Dynamics), ("schedule", Schedule), ("boundary", Boundary)):
            value = getattr(self, name)
            if not isinstance(value, kind):
                raise TypeError(f"{name} must be a {kind.__name__}, got {shown(value)} of type {type(value).__name__}")
        if self.tempering is not None and not isinstance(self.tempering, Tempering):
            kinds = ", ".join(kind.__name__ for kind in (ContinuousTempering, Contour, ReplicaExchange, Stein))
            raise TypeError(f"tempering must be None or one of {kinds}, got {shown(self.tempering)}")
        if self.tempering is not None:
            check_tempering(self.tempering)
        for name, part in (("dynamics.move", self.dynamics.move), ("schedule.factors", self.schedule.factors)):
            if not callable(part):
                raise TypeError(f"{name} must be a function, got {shown(part)} of type {type(part).__name__}")
        check_replicas(self)
        check_parts(self)
        move = bound(self.dynamics.move)
        if move is not self.dynamics.move:
            object.__setattr__(self, "dynamics", self.dynamics._replace(move=move))

    @property
    def n_replicas(self) -> int:
        """Replicas per chain."""
        return int(self.arrays["temperatures"].shape[-1])

    @property
    def n_chains(self) -> int | None:
        """Chains that step sizes or temperatures are given for; None where they hold for any number."""
        given = [len(values) for values in self.arrays.values() if values.ndim == 2]
        return given[0] if given else None

    @property
    def tempers(self) -> Tempering:
        """The tempering, or what stands for None."""
        return UNTEMPERED if self.tempering is None else self.tempering

    @property
    def n_target_replicas(self) -> int:
        """Replicas, from the first, whose draws are the target's: one under replica exchange, otherwise all."""
        return 1 if self.tempers.swaps else self.n_replicas

    @property
    def is_weighted(self) -> bool:
        """Whether draws come with importance weights that differ."""
        return self.tempers.is_weighted

    @property
    def gradients_per_step(self) -> int:
        """Gradient evaluations per chain and step; the mean where trajectories have random lengths."""
        reuses_trajectory_end = (
            self.dynamics.leapfrogs > 0 and not self.is_weighted
        )  # as ``metropolis_step.reuses_trajectory_end``
        return (self.dynamics.gradients - reuses_trajectory_end) * self.n_replicas

    @property
    def correction(self) -> float:
        """The correction F of the swap before the first step; 0 without replica exchange."""
        return self.tempers.first_correction(self.energy_noise)

    @cached_property
    def arrays(self) -> dict[str, NDArray[np.float64]]:
        """``step_sizes`` and ``temperatures`` as arrays, (R,) or (chain, R)."""
        return {name: np.array(getattr(self, name), np.float64) for name in ("step_sizes", "temperatures")}

    def per_chain(self, name: str, chain: NDArray[np.int64], replica: NDArray[np.int64]) -> NDArray[np.float64]:
        """``step_sizes`` or ``temperatures`` of the lanes whose chains and replicas are given."""
        values = self.arrays[name]
        return np.asarray(values[replica] if values.ndim == 1 else values[chain, replica])


def coordinate_scales(sampler: Sampler, dim: int) -> NDArray[np.float64]:
    """The sampler's ``scale``, (dim,), or (dim²,) where it is a matrix; 1 where none is given."""
    return np.ones(dim) if sampler.scale is None else np.array(sampler.scale, np.float64).ravel()


def has_dense_scale(sampler: Sampler) -> bool:
    """Whether the sampler's ``scale`` is a matrix."""
    return sampler.scale is not None and isinstance(sampler.scale[0], tuple)


def scale_matrix(sampler: Sampler, dim: int) -> NDArray[np.float64]:
    """The matrix L, (dim, dim), with x = L z: diagonal where ``scale`` is one number for every coordinate."""
    scales = coordinate_scales(sampler, dim)
    return scales.reshape(dim, dim) if has_dense_scale(sampler) else np.diag(scales)


def checked_scale(scale: Any) -> tuple[Any, ...]:
    """``scale`` as numbers, one for each coordinate, or as the rows of a lower triangular matrix of two or more.

    Raises TypeError or ValueError.
    """
    first = scale[0] if type(scale) in (list, tuple) and scale else None
    has_rows = type(first) in (list, tuple) or (type(first) is np.ndarray and first.ndim > 0)
    is_matrix = has_rows or (type(scale) is np.ndarray and scale.ndim == 2)
    if not is_matrix:
        found = tuple(check_scale(f"scale[{d}]", s) for d, s in enumerate(entries("scale", scale)))
        if not found:
            raise ValueError(f"scale must have one number for every coordinate, got {shown(scale)}")
        return found
    matrix = check_array("scale", scale)
    dim = len(matrix)
    if matrix.shape != (dim, dim) or dim == 0:
        raise ValueError(f"scale must have shape (dim,), or (dim, dim) where it is a matrix, got {matrix.shape}")
    for d in range(dim):
        check_scale(f"scale[{d}, {d}]", float(matrix[d, d]))
    above = np.argwhere(np.triu(matrix, 1) != 0.0)
    if len(above):
        at = tuple(map(int, above[0]))
        raise ValueError(
            f"scale must be lower triangular where it is a matrix, such as the Cholesky factor of a covariance; got "
            f"{shown(float(matrix[at]))} at {at}"
        )
    if np.abs(matrix).max() > 1e100:
        raise ValueError(f"scale must have entries below 1e100, got {shown(float(np.abs(matrix).max()))}")
    if dim == 1:
        return (float(matrix[0, 0]),)
    return tuple(tuple(map(float, row)) for row in matrix)


def shared(name: str, value: Any, n_replicas: int = 1) -> Values:
    """One value for all replicas: (R,) of a number, (chain, R) of an array (chain,)."""
    if is_sequence(value) or (is_a(value, np.ndarray) and np.asarray(value).ndim > 0):
        numbers = check_numbers(name, value, above=0.0)
        if not numbers:
            raise ValueError(f"{name} must be a number, or one for every chain, got {shown(value)}")
        return tuple((v,) * n_replicas for v in numbers)
    return (check_number(name, value, above=0.0),) * n_replicas


def check_values(name: str, values: Any) -> tuple[Any, ...]:
    """Positive numbers (R,) as a tuple, or (chain, R) as a tuple of tuples. Raises otherwise."""
    rows = list(values) if isinstance(values, list | tuple) or (isinstance(values, np.ndarray) and values.ndim) else []
    if not rows or not all(is_sequence(row) or isinstance(row, np.ndarray) for row in rows):
        return check_numbers(name, values, above=0.0)
    table = tuple(check_numbers(f"{name}[{i}]", row, above=0.0) for i, row in enumerate(rows))
    if len({len(row) for row in table}) > 1:
        raise ValueError(f"{name} must have one value per replica in every chain, got {shown(values)}")
    return table


def check_tempering(tempering: Tempering) -> None:
    """Raise TypeError where a tempering is no dataclass, or its step no function of the arguments of a step."""
    name = type(tempering).__name__
    if not is_dataclass(tempering):
        raise TypeError(f"tempering must be a dataclass, so that its numbers can be saved; {name} is none")
    try:
        step = tempering.step
    except NotImplementedError as error:
        raise TypeError(f"tempering: {error}") from None
    code = getattr(step, "__code__", None)
    if not callable(step) or (code is not None and code.co_argcount != STEP_ARGUMENTS):
        given = shown(step) if code is None else f"a function of {code.co_argcount}"
        raise TypeError(
            f"tempering.step of {name} must be a function of {STEP_ARGUMENTS} arguments (state, numbers, parameters, "
            f"step, samples, changes), got {given}"
        )


def check_replicas(sampler: Sampler) -> None:
    """Raise ValueError where step sizes, temperatures and tempering do not speak of the same replicas."""
    if len(sampler.step_sizes) == 0:
        raise ValueError("step_sizes must have one value per replica, got none")
    steps, temperatures = sampler.arrays["step_sizes"], sampler.arrays["temperatures"]
    replicas = sampler.n_replicas
    if steps.shape[-1] != replicas:
        raise ValueError(
            f"step_sizes and temperatures must have one value per replica, got {steps.shape[-1]} step sizes "
            f"{sampler.step_sizes} and {replicas} temperatures {sampler.temperatures}"
        )
    if steps.ndim == temperatures.ndim == 2 and len(steps) != len(temperatures):
        raise ValueError(
            f"step_sizes and temperatures must be given for as many chains, got {len(steps)} and {len(temperatures)}"
        )
    if not 1 <= replicas < MAX_REPLICAS:
        raise ValueError(f"temperatures must have 1 to {MAX_REPLICAS - 1} values, got {replicas}")
    increase = np.diff(temperatures, axis=-1)
    if sampler.tempers.swaps:
        if replicas < 2:
            raise ValueError(
                f"tempering by replica exchange needs at least 2 temperatures, got temperatures={sampler.temperatures}"
            )
        if not (increase > 0).all():
            raise ValueError(f"temperatures must increase, coldest first, got {sampler.temperatures}")
    elif (increase != 0).any():
        raise ValueError(
            "several temperatures need tempering by replica exchange, which alone uses them; got "
            f"temperatures={sampler.temperatures} and tempering={sampler.tempering}"
        )


def check_parts(sampler: Sampler) -> None:
    """Raise ValueError where the parts make no sense together, and say why."""
    tempering, dynamics = sampler.tempering, sampler.dynamics
    if len(dynamics.memory) != len(dynamics.memory_start):
        raise ValueError(
            f"memory_start of dynamics {dynamics.name!r} must have one value for each of memory {dynamics.memory}, got "
            f"{dynamics.memory_start}"
        )
    exact = dynamics.leapfrogs > 0
    if sampler.energy_noise > 0 and not sampler.tempers.reads_energies:
        raise ValueError(
            f"energy_noise must be 0 without a tempering that looks at energies, got {sampler.energy_noise}"
        )
    if sampler.tempers.comes_to_rest == dynamics.draws_noise:
        raise ValueError(
            "tempering by stein and dynamics.descent() need each other: Stein's particles move without noise, and a "
            f"descent without their repulsion ends in a mode; got dynamics {dynamics.name!r} and tempering={tempering}"
        )
    if exact and sampler.gradient_noise > 0:
        raise ValueError(
            f"gradient_noise must be 0 for {dynamics.name!r}, whose Metropolis test is exact for exact gradients and "
            f"energies only; got {sampler.gradient_noise}"
        )
    sampler.tempers.check_noise(dynamics.name, sampler.energy_noise, has_test=exact)
    if exact and sampler.boundary.kind == "reflect":
        raise ValueError(
            f"boundary must not be 'reflect' for {dynamics.name!r}: its test is passed before the reflection and knows "
            "nothing of it; boundaries.reject() is exact"
        )
    if sampler.scale is not None:
        check_scales(sampler)
    if dynamics.check is not None:
        dynamics.check(dynamics.parameters, sampler.arrays["step_sizes"], sampler.arrays["temperatures"])


def check_scales(sampler: Sampler) -> None:
    """Raise ValueError where the parts cannot move in coordinates of the sampler's ``scale``."""
    if not sampler.dynamics.scales:
        raise ValueError(
            f"scale must be None for dynamics {sampler.dynamics.name!r}, whose move does not read it (a move that "
            f"uses lanes.scale says so by Dynamics(..., scales=True)); got {shown(sampler.scale)}"
        )
    if has_dense_scale(sampler) and sampler.dynamics.leapfrogs == 0:
        raise ValueError(
            f"scale must have one number for every coordinate with dynamics {sampler.dynamics.name!r}: a matrix is for "
            f"those with a Metropolis test, dynamics.hmc() and dynamics.mala(); got {shown(sampler.scale)}"
        )
    if sampler.boundary.kind == "reflect" and len(set(sampler.scale or ())) > 1:
        raise ValueError(
            "scale must be the same for all coordinates with boundary 'reflect', which mirrors at the edge's normal in "
            f"x, and that is another direction in x / scale; got {shown(sampler.scale)}. boundaries.reject() takes "
            "any scale"
        )
