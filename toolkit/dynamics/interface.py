"""What a way to move is made of."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._compiler.binding import bound
from .._compiler.decorators import compile_part
from .._compiler.pickling import reduced
from .._compiler.signatures import DYNAMICS
from ..errors import check_count


class Knob(NamedTuple):
    """A number of a way to move that a tuning may change.

    name: that of the constructor's argument. place: among ``parameters``. highest: its largest value. starts_memory:
    whether the first entry of memory begins at it. is_for_noise: whether it is changed under noisy gradients, too. Less
    friction makes chains faster there, and hotter, which no race sees.
    """

    name: str
    place: int
    highest: float = math.inf
    starts_memory: bool = False
    is_for_noise: bool = False


class Heating(NamedTuple):
    """How gradient noise of variance s² widens a coordinate: by factor · h (s² − compensated)/(4 T), as a share.

    compensated: the variance that the moves take to be known.
    """

    factor: float
    compensated: float = 0.0


class Knowledge(NamedTuple):
    """What is known of a way to move besides its kernel. Tunings and diagnostics read it; no bit depends on it.

    knobs: numbers that may be tuned. heating: from ``parameters``; None where it is unknown, or where a thermostat
    takes up noise of any size. own_width: from ``parameters``, the share for each unit of step size and of curvature by
    which a step's own length makes a direction too wide, on a normal law and to first order; None: unknown.
    noise_in_thermostat: from the dynamics, the variances (dim,) of the noise over 4 T, and the share that is allowed:
    what stands for heating where a thermostat takes up noise. thermostat_law: the mean and standard deviation of the
    first memory entry (one for all coordinates, or one each where its name ends in ``[]``), from the dynamics, step
    size, temperature, mean variance of the noise, and dim. normalises: whether moves divide the gradient by its size.
    """

    knobs: tuple[Knob, ...] = ()
    heating: Callable[[tuple[float, ...]], Heating] | None = None
    own_width: Callable[[tuple[float, ...]], float] | None = None
    noise_in_thermostat: Callable[["Dynamics", NDArray[np.float64], float], float] | None = None
    thermostat_law: Callable[["Dynamics", float, float, float, int], tuple[float, float]] | None = None
    normalises: bool = False


FRICTION = Knob("friction", 0, highest=1.0)


def width_under_friction(parameters: tuple[float, ...]) -> float:
    """``own_width`` of underdamped dynamics with friction η as the first parameter: 1/(8 − 4 η)."""
    return 1.0 / (8.0 - 4.0 * min(1.0, parameters[0]))


class Dynamics(NamedTuple):
    """A way to move: its block function (``signatures.DYNAMICS``), its numbers, and what it needs from the engine.

    parameters: as the block function takes them; others do not recompile it. has_momentum: of the shape of the
    position. needs_curvature: the Hessian's diagonal, which the engine estimates from the gradient at one probe.
    draws_noise: whether a step takes normals.
    memory: names of what it keeps from step to step; one that ends in ``[]`` has one row per coordinate, any other
    one row in all. Each row begins at the value in ``memory_start``. Those that begin with ``_``, which come last, are
    scratch, and no trace shows them. gradients: gradient evaluations per step, with that where it begins.
    leapfrogs: 0, or the steps of a trajectory that ends in a Metropolis test; the engine itself then moves.
    random_length: whether these are drawn for each step, uniformly from 1 … 2 · leapfrogs − 1, for all chains alike.
    check: called with parameters, step sizes and temperatures, (R,) or (chain, R); raises ValueError where they do not
    go together. It changes no bit, so files do not name it.
    scales: whether the block function moves by ``lanes.scale`` (s: x ← x + s …, with the gradient s ∂U), as all of the
    toolkit's do but ``preconditioned_langevin`` and ``descent``. A sampler's ``scale`` is refused for others. Files do
    not name it either.
    friction_rows: how many entries of ``memory``, from the first, are the friction z of the momenta as it is now, so
    that momenta at temperature T have variance T/(1 − z/2); an entry with ``[]`` is one of each coordinate. Swaps of
    replica exchange then rescale momenta by that law, as for ``nose_hoover``; with 0 by the temperatures alone. Names
    of entries do not matter.
    friction_parameter: the place among ``parameters`` of the momenta's friction; −1: there is none, or it is unknown.
    Warnings read it. It changes no bit, so files do not name it.
    langevin_step: whether the step size is that of Langevin dynamics, h = ε²/2 for leapfrogs of length ε, as for
    ``mala``; else ε itself, as for ``hmc``. Of trajectories alone.
    known: what is known of it for tunings and diagnostics. Files do not name it.
    """

    name: str
    move: Callable[..., Any]
    parameters: tuple[float, ...] = ()
    has_momentum: bool = False
    memory: tuple[str, ...] = ()
    memory_start: tuple[float, ...] = ()
    needs_curvature: bool = False
    gradients: int = 1
    leapfrogs: int = 0
    draws_noise: bool = True
    random_length: bool = False
    check: Callable[..., None] | None = None
    scales: bool = False
    friction_rows: int = 0
    friction_parameter: int = -1
    langevin_step: bool = False
    known: Knowledge = Knowledge()

    def __repr__(self) -> str:
        """Its name and numbers."""
        numbers = f" with {', '.join(f'{number:g}' for number in self.parameters)}" if self.parameters else ""
        return f"<Dynamics {self.name!r}{numbers}>"

    def __reduce__(self) -> Any:
        return reduced(self)

    def compiled(self) -> Any:
        """The block function compiled for the engine. Raises TypeError where it takes other arguments."""
        check_move(self)
        return compile_part(bound(self.move), DYNAMICS, packed=True, from_python=False)

    def memory_sizes(self, dim: int) -> list[tuple[str, int]]:
        """The entries of ``memory``, and how many rows each has in ``dim`` dimensions."""
        return [(name, dim if name.endswith("[]") else 1) for name in self.memory]

    def n_traced_memory(self, dim: int) -> int:
        """How many rows of memory a trace shows."""
        return sum(size for name, size in self.memory_sizes(dim) if not name.startswith("_"))

    def n_friction_rows(self, dim: int) -> int:
        """How many rows of memory, from the first, are frictions. Raises ValueError where there are fewer."""
        entries = check_count("friction_rows", self.friction_rows, at_least=0, below=len(self.memory) + 1)
        return sum(size for _, size in self.memory_sizes(dim)[:entries])

    def friction(self) -> float:
        """The friction of momenta; 1 for Langevin dynamics without momenta; nan where it is unknown."""
        if self.leapfrogs > 0:
            return math.nan
        if self.has_momentum:
            return self.parameters[self.friction_parameter] if self.friction_parameter >= 0 else math.nan
        return 1.0 if self.draws_noise and self.scales else math.nan

    def in_words(self) -> str:
        """Its name and numbers, for reports."""
        if self.has_path_length:
            return f"{self.name}, {self.leapfrogs} leapfrogs" + (" on average" if self.random_length else "")
        numbered = ", ".join(f"{value:.4g}" for value in self.parameters)
        return f"{self.name} ({numbered})" if numbered else self.name

    @property
    def has_path_length(self) -> bool:
        """Whether the number of leapfrogs is free."""
        return self.leapfrogs > 0 and not self.langevin_step

    def with_leapfrogs(self, n: int) -> "Dynamics":
        """The same trajectories with ``n`` leapfrogs, on average, of random number."""
        return self._replace(gradients=self.gradients - self.leapfrogs + n, leapfrogs=n, random_length=True)

    def with_knob(self, knob: Knob, value: float) -> "Dynamics":
        """The same way to move with another value of a number."""
        parameters = (*self.parameters[: knob.place], value, *self.parameters[knob.place + 1 :])
        starts = (value, *self.memory_start[1:]) if knob.starts_memory else self.memory_start
        return self._replace(parameters=parameters, memory_start=starts)

    def memory_names(self, dim: int) -> list[str]:
        """The name of every row of memory."""
        rows = []
        for name, size in self.memory_sizes(dim):
            rows += [f"{name[:-2]}[{d}]" for d in range(size)] if name.endswith("[]") else [name]
        return rows

    def memory_starts(self, dim: int) -> NDArray[np.float64]:
        """The first value of every row of memory."""
        entries = zip(self.memory_sizes(dim), self.memory_start, strict=True)
        return np.concatenate([np.zeros(0), *(np.full(size, start) for (_, size), start in entries)])


def check_move(dynamics: Dynamics) -> None:
    """Raise TypeError where the block function takes other arguments than the engine gives.

    Raises ValueError where ``friction_parameter`` is no place among the parameters.
    """
    check_count("friction_parameter", dynamics.friction_parameter, at_least=-1, below=len(dynamics.parameters))
    takes, given = len(DYNAMICS.args), getattr(dynamics.move, "__code__", None)
    if given is not None and given.co_argcount != takes:
        raise TypeError(
            f"move of dynamics {dynamics.name!r} must take the {takes} arguments of signatures.DYNAMICS, the last of "
            f"them `changes`; it takes {given.co_argcount}"
        )
