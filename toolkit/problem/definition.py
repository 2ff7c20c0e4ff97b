"""A problem: the target to be sampled, its domain if there is one, and its truth."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numba.core.errors import NumbaError
from numpy.typing import NDArray

from .._compiler.binding import bound
from .._compiler.block_rows import COUNTER_ROWS
from .._compiler.decorators import compile_part
from .._compiler.per_function import cached_per_function
from .._compiler.pickling import HoldsFunctions, reduced
from .._compiler.signatures import DOMAIN, TARGET
from ..errors import check_array, check_count, check_flag, check_instance, check_real_array, check_text, is_a, shown
from ..maths.philox import MAX_DIM
from .call_text import shows_call
from .math_substitution import raises
from .thumbnail import html_of


class Domain(NamedTuple):
    """A region of R^dim for the engine: a compiled function with signature ``signatures.DOMAIN``, and its tables.

    nearest: an uncompiled function with the same signature, whose mirror_point is the point of the domain nearest to
    the lane; None where that is not known.
    """

    name: str
    dim: int
    locate: Any
    float_table: NDArray[np.float64]
    int_table: NDArray[np.int32]
    nearest: Callable[..., None] | None = None

    def __reduce__(self) -> Any:
        return reduced(self)

    def compiled(self) -> "Domain":
        """The domain with its function compiled for the engine."""
        return self._replace(locate=compile_part(bound(self.locate), DOMAIN, packed=True))

    def locate_for(self, boundary: str) -> Callable[..., None]:
        """The uncompiled function that a boundary of this kind needs: ``nearest`` for 'penalise', else ``locate``."""
        locate: Callable[..., None] = self.locate.py_func
        return locate if boundary != "penalise" or self.nearest is None else self.nearest


def is_inside(domain: Domain, points: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether each of ``points`` (n, dim) is finite and inside the domain or on its boundary, as the engine sees it."""
    position = np.array(points.T, order="C")
    outside = np.ones(position.shape[1])
    domain.locate(position, np.empty_like(position), outside, domain.float_table, domain.int_table)
    return np.asarray(np.isfinite(position).all(axis=0) & (outside == 0.0))


Array = NDArray[np.float64]

LONGEST = 1e300  # half a side of a box, so that its ends do not overflow
CHUNK = 2**15  # numbers that `Target.evaluate` works on at a time
PLASTIC = 1.324717957244746  # x³ = x + 1; multiples of its powers modulo 1 are evenly spread


class Modes(NamedTuple):
    """The modes of a target, or the components of a mixture."""

    centres: Array  # (modes, dim)
    weights: Array  # (modes,), probabilities that sum to 1


class EnergyAccuracy(NamedTuple):
    """What energy quantiles hold: P(U ≤ u) is p to ``relative`` · min(p, 1 − p) + ``absolute``, both ≥ 1e-9."""

    relative: float
    absolute: float


@dataclass(frozen=True, eq=False)
class Spread:
    """A box in which starts are drawn, uniformly: center ± scale in every coordinate; or several boxes.

    scale: a number > 0, or one for every coordinate (dim,). center: likewise, of any sign; or (boxes, dim), one of each
    box, and then scale may be so too. weights: share of the chains that start in each box (boxes,), > 0, up to a
    factor; None: equal. Chain and replica alone decide on the box. For ``init`` of ``sample``,
    or for a target that knows where its mass is; wider than that, so that R-hat sees chains that do not come together.
    Raises TypeError or ValueError naming the argument. Source of the default, ±2: Stan's (Carpenter et al. 2017).
    """

    scale: Any = 2.0
    center: Any = 0.0
    weights: Any = None

    def __post_init__(self) -> None:
        for name in ("scale", "center"):
            values = check_array(name, getattr(self, name))
            object.__setattr__(self, name, values)
        boxes = self.center.shape if self.center.ndim == 2 and self.center.size else None
        for name in ("scale", "center"):
            shape = getattr(self, name).shape
            if shape != boxes and (len(shape) > 1 or shape == (0,)):
                several = "" if boxes is None else f", or that of center, {boxes}"
                raise ValueError(f"{name} must be a number or have shape (dim,){several}, got shape {shape}")
        if not ((self.scale > 0.0) & (self.scale < LONGEST)).all():
            raise ValueError(f"scale must be > 0 and < {LONGEST:g}, got {self.scale.tolist()}")
        if not (np.abs(self.center) < LONGEST).all():
            raise ValueError(f"center must be within ±{LONGEST:g}, got {self.center.tolist()}")
        if self.weights is not None:
            shares = check_array("weights", self.weights)
            if shares.shape != (self.n_boxes,) or not (shares > 0.0).all():
                raise ValueError(f"weights must be > 0, one for each of {self.n_boxes} boxes, got {shares.tolist()}")
            object.__setattr__(self, "weights", shares)

    def __repr__(self) -> str:
        """Its numbers."""
        weights = "" if self.weights is None else f", weights={self.weights.tolist()}"
        return f"Spread(scale={self.scale.tolist()}, center={self.center.tolist()}{weights})"

    @property
    def n_boxes(self) -> int:
        """Number of boxes."""
        return len(self.center) if self.center.ndim == 2 else 1

    @property
    def numbers(self) -> dict[str, Array]:
        """Its arguments by name, weights where they are given."""
        given = {} if self.weights is None else {"weights": self.weights}
        return {"scale": self.scale, "center": self.center, **given}

    @classmethod
    def around(cls, points: Any, reach: Any) -> "Spread":
        """The box that holds ``points`` (n, dim) and what is within ``reach``, a number or of that shape, of each."""
        lower, upper = (points - reach).min(axis=0), (points + reach).max(axis=0)
        return cls(0.5 * (upper - lower), 0.5 * (upper + lower))

    def box_of(self, chain: Any, replica: Any) -> NDArray[np.int64]:
        """The box of chains and replicas, integers of one shape (n,): the first n share the boxes nearly by weights.

        Source: the R₂ low-discrepancy sequence (Roberts 2018).
        """
        weights = np.ones(self.n_boxes) if self.weights is None else self.weights
        ends = np.cumsum(weights) / weights.sum()
        place = (0.5 + np.asarray(chain) / PLASTIC + np.asarray(replica) / PLASTIC**2) % 1.0
        return np.asarray(np.minimum(np.searchsorted(ends, place, side="right"), self.n_boxes - 1))

    def ends(self, dim: int) -> tuple[Array, Array]:
        """Lower and upper corner, each (dim,); of several boxes (boxes, dim).

        Raises ValueError where its numbers are of another dimension.
        """
        for name, values in (("scale", self.scale), ("center", self.center)):
            if values.shape[-1:] not in ((), (dim,)):
                raise ValueError(f"{name} must be a number or have shape ({dim},), got shape {values.shape}")
        shape = (*self.center.shape[:-1], dim)
        middle, reach = np.broadcast_to(self.center, shape), np.broadcast_to(self.scale, shape)
        return middle - reach, middle + reach


class Truth(Protocol):
    """What is known of a problem without sampling it.

    One may know more of its energies: ``energy_tails(energies)``, P(U ≤ u) and P(U > u) of each, and
    ``energy_accuracy``, an ``EnergyAccuracy`` of these and of its quantiles. All of ``targets`` have the latter.
    """

    @property
    def accuracy(self) -> float:
        """Largest error of its probabilities, and relative error of its other numbers; 0: closed form, to rounding.

        Of energies, ``energy_accuracy`` says what holds.
        """

    @property
    def log_normaliser(self) -> float:
        """Logarithm of ∫ exp(−U), in nats."""

    @property
    def mean(self) -> Array:
        """Mean (dim,)."""

    @property
    def covariance(self) -> Array:
        """Covariance (dim, dim); inf where there is none."""

    @property
    def modes(self) -> Modes:
        """Centres and probabilities of the modes."""

    def memberships(self, points: Any) -> Array:
        """How much each of ``points`` (n, dim) belongs to each mode, shape (n, modes); their mean is the weights.

        Raises ValueError where a point is not finite.
        """

    def energy_quantiles(self, probabilities: Any) -> Array:
        """Energies u with P(U ≤ u) = p, for each p of ``probabilities``."""

    def cell_masses(self, x_edges: Any, y_edges: Any = None) -> Array:
        """Probability of each cell in the first two coordinates, shape (nx, ny); in one dimension (nx,)."""

    def independent_draws(self, n: int, *, seed: int) -> Array:
        """Exact independent draws, shape (n, dim)."""


@cached_per_function
def compile_block(function: Callable[..., None]) -> Any:
    """A target's block function, compiled without reference counts on arrays if possible."""
    try:
        return compile_part(function, TARGET, packed=True)
    except NumbaError:
        return compile_part(function, TARGET, allocates=True, packed=True)


def check_points(points: Any, dim: int, *, copies: bool = True) -> Array:
    """``points`` as floats of shape (n, dim), nan and inf included. Raises TypeError or ValueError otherwise.

    copies: as ``check_real_array`` has it.
    """
    array = check_real_array("points", points, copies=copies)
    if array.ndim != 2 or array.shape[1] != dim:
        raise ValueError(f"points must have shape (n, {dim}), got {array.shape}")
    return array


def check_finite_points(points: Any, dim: int) -> Array:
    """As ``check_points``, and raise ValueError where they are not finite."""
    return check_array("points", check_points(points, dim), copies=False)


def check_truth(truth: Any) -> None:
    """Raise TypeError where ``truth`` is neither None nor has the methods of a ``Truth``."""
    methods = ("memberships", "energy_quantiles", "cell_masses", "independent_draws")
    missing = [name for name in methods if truth is not None and not callable(getattr(truth, name, None))]
    if missing:
        raise TypeError(f"truth must be None or a Truth, got {shown(truth)}, which has no method {missing[0]}")


def check_names(names: Any, dim: int) -> tuple[str, ...]:
    """Names of the coordinates. Raises TypeError or ValueError where they are not one string for each."""
    if is_a(names, str) or not is_a(names, Sequence) or not all(is_a(name, str) for name in names):
        raise TypeError(f"names must be a sequence of strings, got {shown(names)}")
    if len(names) != dim or len(set(names)) != dim:
        raise ValueError(f"names must be {dim} different ones, one for each coordinate, got {shown(list(names))}")
    return tuple(map(str, names))


@dataclass(frozen=True, eq=False)
class Target(HoldsFunctions):
    """An energy U = −log density + constant in nats, with its gradient, as one block function.

    energy_gradient: a function behind ``signatures.TARGET``, uncompiled. parameters: its numbers; other numbers
    never recompile it. scratch_rows: rows (of one float per lane) it needs to itself, kept from step to step. truth:
    where it is known. stochastic: it draws minibatches, and finds in the first rows of its scratch what to draw them
    by (``block_rows.COUNTER_ROWS``); where these are 0 it uses all data. callback: the Python function that the block
    function calls, where it does (``from_callable``). spread: where chains start that are given no start, unless a
    domain says so; None: within ±2. lane_by_lane: it does one lane after another, on a CPU, and keeps nothing in
    its scratch: blocks then have no idle lanes, and backend "cuda" is refused. names: of the coordinates, for tables,
    trees, files and pictures; None: 0, 1, ….

    A target is what its function is when the target is made: the numbers, arrays and functions that it reads are those
    of that moment, in all engines and descriptions, and a change of one of them is seen by the next target of the
    function. Names that have no value yet are looked up, with all others, when it is first compiled. The function of
    ``from_callable``, which Python runs, reads what is there when it is called.
    """

    name: str
    dim: int
    energy_gradient: Callable[..., None]
    parameters: Array = field(default_factory=lambda: np.zeros(0))
    scratch_rows: int = 0
    truth: Truth | None = None
    stochastic: bool = False
    callback: Any = None
    spread: Spread | None = None
    lane_by_lane: bool = False
    names: Sequence[str] | None = None

    @shows_call
    def __repr__(self) -> str:
        """The call that made it, or its name and dimension."""
        return f"<Target {self.name!r} of dimension {self.dim}>"

    def _repr_html_(self) -> str | None:
        """The same for notebooks, in the plane with a picture of the density."""
        return html_of(Problem(self, truth=self.truth), repr(self))

    def __post_init__(self) -> None:
        check_text("name", self.name)
        check_count("dim", self.dim, at_least=1, below=MAX_DIM)
        if not callable(self.energy_gradient):
            raise TypeError(f"energy_gradient must be a block function, got {shown(self.energy_gradient)}")
        if raises(getattr(self.energy_gradient, "__code__", None)):
            raise TypeError(
                f"energy_gradient of target {self.name!r} must not raise or assert, which the engine cannot pass on; "
                "where there is no density, write an energy of math.inf"
            )
        check_flag("stochastic", self.stochastic)
        check_flag("lane_by_lane", self.lane_by_lane)
        check_count("scratch_rows", self.scratch_rows, at_least=COUNTER_ROWS if self.stochastic else 0, below=2**31)
        if self.callback is not None and not hasattr(type(self.callback), "for_run"):
            raise TypeError(f"callback must be None or what from_callable makes, got {shown(self.callback)}")
        check_truth(self.truth)
        if self.spread is not None:
            check_instance("spread", self.spread, Spread)
            self.spread.ends(self.dim)
        if self.names is not None:
            object.__setattr__(self, "names", check_names(self.names, self.dim))
        object.__setattr__(self, "parameters", check_array("parameters", self.parameters).ravel())
        object.__setattr__(self, "energy_gradient", bound(self.energy_gradient, waits=True))

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if self.callback is not None:
            object.__setattr__(self, "parameters", self.callback.parameters)  # its handle in this process

    def compiled(self) -> Any:
        """The block function compiled for the engine; one that allocates works too, if more slowly.

        Raises TypeError where it does not take the five arguments or does not compile, with Numba's reason.
        """
        try:
            return compile_block(bound(self.energy_gradient))
        except (NumbaError, TypeError) as error:
            raise TypeError(
                f"energy_gradient of target {self.name!r} must be a function (position, energy, gradient, parameters, "
                f"scratch) that Numba can compile: {error}"
            ) from error

    def evaluate(self, points: Array) -> tuple[Array, Array]:
        """Energy (n,) and gradient (n, dim) at ``points`` (n, dim). Raises ValueError for another shape."""
        points = check_points(points, self.dim, copies=False)
        if self.callback is not None:
            return self.callback.evaluate(points)  # type: ignore[no-any-return]
        width = max(64, CHUNK // (2 * self.dim + 1 + self.scratch_rows))
        if len(points) > width:
            return self._evaluate_in_chunks(points, width)
        energy, gradient = np.full(len(points), np.nan), np.full((self.dim, len(points)), np.nan)
        scratch = np.zeros((self.scratch_rows, len(points)))
        self.compiled()(np.array(points.T, order="C"), energy, gradient, self.parameters, scratch)
        return energy, np.ascontiguousarray(gradient.T)

    def _evaluate_in_chunks(self, points: Array, width: int) -> tuple[Array, Array]:
        """``evaluate`` of ``width`` points at a time, so that what the block works on stays in a processor's cache."""
        block, energy, gradient = self.compiled(), np.full(len(points), np.nan), np.empty((len(points), self.dim))
        for first in range(0, len(points), width):
            lanes = np.array(points[first : first + width].T, order="C")
            slope, scratch = np.full(lanes.shape, np.nan), np.zeros((self.scratch_rows, lanes.shape[1]))
            block(lanes, energy[first : first + width], slope, self.parameters, scratch)
            gradient[first : first + width] = slope.T
        return energy, gradient


class Named(NamedTuple):
    """What the coordinates of draws are for the reader.

    names: one for each coordinate. values: a function from positions (…, dim) to what these stand for, (…, dim), which
    have the names; None: positions themselves.
    """

    names: tuple[str, ...]
    values: Callable[[Array], Array] | None


@dataclass(frozen=True, eq=False)
class Problem(HoldsFunctions):
    """A target, the domain it is constrained to (None: all of space), and the truth of both together."""

    target: Target
    domain: Domain | None = None
    truth: Truth | None = None

    @shows_call
    def __repr__(self) -> str:
        """The call that made it, or its target and its domain's name."""
        where = "" if self.domain is None else f" in {self.domain.name!r}"
        return f"<Problem {self.target!r}{where}>"

    def _repr_html_(self) -> str | None:
        """The same for notebooks, in the plane with a picture of the density."""
        return html_of(self, repr(self))

    def __post_init__(self) -> None:
        if not isinstance(self.target, Target):
            raise TypeError(f"target must be a Target, got {shown(self.target)} of type {type(self.target).__name__}")
        if self.domain is not None and not isinstance(self.domain, Domain):
            raise TypeError(
                f"domain must be None or a Domain, got {shown(self.domain)} of type {type(self.domain).__name__}"
            )
        check_truth(self.truth)
        if self.domain is not None and self.domain.dim != self.target.dim:
            raise ValueError(f"domain has dimension {self.domain.dim}, but the target has {self.target.dim}")

    @property
    def name(self) -> str:
        """The target's name, and the domain's."""
        return self.target.name if self.domain is None else f"{self.target.name} in {self.domain.name}"

    def _named(self) -> Named | None:
        """What tables, trees and files of runs call the coordinates; None: they have no names."""
        return None if self.target.names is None else Named(tuple(self.target.names), None)

    def contains(self, points: Array) -> NDArray[np.bool_]:
        """Whether each of ``points`` (n, dim) is finite and inside the domain, where there is one; shape (n,)."""
        places = check_points(points, self.target.dim)
        return np.asarray(np.isfinite(places).all(axis=1)) if self.domain is None else is_inside(self.domain, places)


def as_problem(problem: Any) -> Problem:
    """``problem`` itself, or the unconstrained problem of a bare target. Raises TypeError for anything else."""
    if is_a(problem, Target):
        return Problem(problem, truth=problem.truth)
    if not is_a(problem, Problem):
        raise TypeError(f"problem must be a Problem or a Target, got {shown(problem)} of type {type(problem).__name__}")
    return problem  # type: ignore[no-any-return]
