"""Grids of settings: a sampler's constructor, axes of values for some of its arguments, and its fixed arguments."""

import inspect
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import check_count, check_room, entries, is_a, is_integer, shown
from ...samplers.sampler import Sampler

# Names of dimensions and variables of a sweep's Dataset, which no axis may have.
DIMENSIONS = ("problem", "seed", "coordinate")
STATISTICS = ("mean", "sd", "mcse", "ess", "r_hat")  # of each coordinate
COUNTS = ("acceptance", "swap_rate", "diverged", "gradient_evaluations")
OVER_SEEDS, STANDARD_ERROR = "_over_seeds", "_standard_error"  # endings of the names of means over seeds
BYTES_OF_SETTING = 2000.0


@dataclass(frozen=True, eq=False, repr=False)
class Grid:
    """Settings of a sampler: every combination of the axes' values, with the fixed arguments; ``grid`` makes one.

    constructor: of ``samplers``, or a function of one's own that returns a ``Sampler``. axes: name of an argument →
    its values, numbers, strings, tuples or parts, all distinct; the first axis varies slowest. fixed: other arguments.
    Raises TypeError or ValueError, naming the setting, where an axis or one of the combinations is refused.
    """

    constructor: Callable[..., Sampler]
    axes: Mapping[str, Any]
    fixed: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not callable(self.constructor):
            raise TypeError(f"constructor must be a function that returns a Sampler, got {shown(self.constructor)}")
        for name in ("axes", "fixed"):
            if not is_a(getattr(self, name), Mapping):
                raise TypeError(f"{name} must be a mapping of arguments' names, got {shown(getattr(self, name))}")
        object.__setattr__(self, "fixed", dict(self.fixed))
        object.__setattr__(self, "axes", {name: plain_values(name, values) for name, values in self.axes.items()})
        check_names(self)
        object.__setattr__(self, "_labels", {name: labels_of(name, values) for name, values in self.axes.items()})
        check_room("axes", f"{self.n_settings:,} settings", BYTES_OF_SETTING * self.n_settings)
        object.__setattr__(self, "_samplers", {})
        for index in range(self.n_settings):
            self.sampler(index)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_samplers": {}}  # made again where they are needed

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)

    def __repr__(self) -> str:
        """The constructor, and the length of each axis."""
        lengths = " × ".join(f"{len(values)} {name}" for name, values in self.axes.items())
        return f"Grid({name_of(self.constructor)}: {lengths or 'one setting'})"

    def __len__(self) -> int:
        return self.n_settings

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of each axis."""
        return tuple(len(values) for values in self.axes.values())

    @property
    def n_settings(self) -> int:
        """How many settings there are; 1 without axes."""
        return math.prod(self.shape)

    @property
    def labels(self) -> dict[str, NDArray[Any]]:
        """Each axis' coordinate: its numbers, or texts where a value is none."""
        return dict(vars(self)["_labels"])

    def setting(self, index: int) -> dict[str, Any]:
        """The arguments of setting ``index``, counted with the last axis fastest."""
        index = check_count("index", index, at_least=0, below=self.n_settings)
        places = np.unravel_index(index, self.shape) if self.axes else ()
        own = {name: values[int(i)] for (name, values), i in zip(self.axes.items(), places, strict=True)}
        return {**own, **self.fixed}

    def sampler(self, index: int) -> Sampler:
        """The sampler of setting ``index``. Raises what the constructor raises, with the setting in its message."""
        made: dict[int, Sampler] = vars(self)["_samplers"]
        index = check_count("index", index, at_least=0, below=self.n_settings)
        if index not in made:
            made[index] = self._construct(index)
        return made[index]

    def _construct(self, index: int) -> Sampler:
        """The sampler of setting ``index``, checked to be one of a single law."""
        words = f"{name_of(self.constructor)}({self.words(index)})"
        try:
            sampler = self.constructor(**self.setting(index))
        except (TypeError, ValueError) as error:
            raise (TypeError if isinstance(error, TypeError) else ValueError)(f"{words}: {error}") from error
        except Exception as error:
            error.add_note(f"raised by {words}")
            raise
        if not is_a(sampler, Sampler):
            raise TypeError(f"constructor must return a Sampler, and {words} is {shown(sampler)}")
        if sampler.n_chains is not None:
            raise ValueError(
                f"{words} has step sizes or temperatures of each chain, which are several settings: make them an axis"
            )
        return sampler

    def words(self, index: int) -> str:
        """The arguments that the axes give to setting ``index``, as in a call."""
        setting = self.setting(index)
        return ", ".join(f"{name}={shown(setting[name])}" for name in self.axes)


def grid(constructor: Callable[..., Sampler], axes: Mapping[str, Any], /, **fixed: Any) -> Grid:
    """A grid of settings for ``sweep``: ``constructor`` with every combination of the values of ``axes``.

    axes: name of an argument → its values: numbers, strings, tuples or parts. fixed: arguments of all settings.

        toolkit.grid(samplers.sghmc, {"step_size": [0.01, 0.02, 0.05], "friction": [0.1, 0.5]}, temperature=1.0)

    Every combination is constructed at once. Raises TypeError or ValueError where an argument does not exist, is given
    twice or has no values or equal ones, and where the constructor refuses a setting, which is then named.
    """
    return Grid(constructor, axes, fixed)


def name_of(function: Any) -> str:
    """A short name of a constructor."""
    return str(getattr(function, "__name__", None) or type(function).__name__)


def plain_values(name: Any, values: Any) -> tuple[Any, ...]:
    """An axis' values as a tuple, of NumPy's numbers and arrays as Python's numbers and tuples."""
    if not is_a(name, str):
        raise TypeError(f"axes must have arguments' names as keys, got {shown(name)} of type {type(name).__name__}")
    given = (
        list(values) if is_a(values, np.ndarray) and values.ndim > 1 else entries(f"axes[{name!r}]", values, "values")
    )
    if not given:
        raise ValueError(f"axes[{name!r}] must have at least one value, got {shown(values)}")
    return tuple(plain_value(value) for value in given)


def plain_value(value: Any) -> Any:
    """``value``; a number of NumPy's as Python's, lists and arrays as tuples."""
    if is_a(value, np.generic | np.ndarray):
        value = value.tolist()
    return tuple(plain_value(entry) for entry in value) if type(value) in (list, tuple) else value


def check_names(given: Grid) -> None:
    """Raise TypeError or ValueError where an axis or a fixed argument is none of the constructor's."""
    for name in given.axes:
        if name in given.fixed:
            raise ValueError(f"{name} must be an axis or fixed, got it as both")
        if name in reserved_names() or name.endswith((OVER_SEEDS, STANDARD_ERROR)):
            raise ValueError(
                f"axes must not be named as a dimension or variable of the table ({', '.join(reserved_names())}), got "
                f"{name!r}; wrap the constructor in a function that names its argument otherwise"
            )
    try:
        parameters = inspect.signature(given.constructor).parameters.values()
    except (TypeError, ValueError):
        return  # a constructor in C, which then says itself what it refuses
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters):
        return
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    allowed = [parameter.name for parameter in parameters if parameter.kind in by_name]
    for kind, names in (("axes", given.axes), ("fixed", given.fixed)):
        for name in names:
            if name not in allowed:
                raise ValueError(
                    f"{kind} must name arguments of {name_of(given.constructor)}, which are {', '.join(allowed)}; got "
                    f"{shown(name)}"
                )


def reserved_names() -> tuple[str, ...]:
    """Names that neither an axis nor a measured number may have."""
    return (*DIMENSIONS, *STATISTICS, *COUNTS, "error")


def labels_of(name: str, values: tuple[Any, ...]) -> NDArray[Any]:
    """The coordinate of an axis: its numbers, truth values or, of any other values, their names.

    Raises ValueError where two are equal.
    """
    numbers = all(is_integer(value) or type(value) is float for value in values)
    labels: list[Any] = list(values)
    if not numbers and not all(type(value) is bool for value in values):
        labels = [label_of(value) for value in values]
        if len(set(labels)) < len(labels):
            labels = [value if type(value) is str else shown(value) for value in values]
    seen: set[Any] = set()
    for value, label in zip(values, labels, strict=True):
        if label in seen:
            alike = "" if type(label) is not str else f", which is shown as {label!r} too"
            raise ValueError(f"axes[{name!r}] must have distinct values, got {shown(value)} twice{alike}")
        seen.add(label)
    if numbers and any(abs(value) >= 2**63 for value in values):
        return np.array(values, np.float64)
    return np.array(labels)


def label_of(value: Any) -> str:
    """A text for a value that is no number: itself, the name of a part or function, or its ``repr``."""
    if type(value) is str:
        return value
    own = getattr(value, "name", None) or getattr(value, "__name__", None)
    return own if type(own) is str else shown(value)


def settings_of_groups(samplers: list[Sampler]) -> Iterator[tuple[int, Sampler]]:
    """For each sampler the number of its group, of those with equal parts, and the group's first sampler."""
    numbers: dict[Any, int] = {}
    firsts: list[Sampler] = []
    for sampler in samplers:
        key = parts_key(sampler)
        if key not in numbers:
            numbers[key] = len(firsts)
            firsts.append(sampler)
        yield numbers[key], firsts[numbers[key]]


PARTS = ("name", "dynamics", "schedule", "tempering", "boundary", "gradient_noise", "energy_noise", "scale")


def parts_key(sampler: Sampler) -> tuple[Any, ...]:
    """A key that is equal for samplers that differ in step sizes and temperatures alone; may differ for equal ones."""
    return (sampler.n_replicas, *(hashable(getattr(sampler, name)) for name in PARTS))


def hashable(part: Any) -> Any:
    """``part`` where it has a hash; else its identity, which lasts as long as the sampler that holds it."""
    try:
        hash(part)
    except TypeError:
        return id(part)
    return part
