"""Hostile values: for every kind of argument those that are wrong for it, and odd ones that may be right."""

import datetime
import decimal
import fractions
import itertools
import math
import pathlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

HUGE = st.sampled_from([2**31, 2**32, 2**53 + 1, 2**62, 2**63 - 1, 2**63, 2**64, 10**30, 10**400, -(10**400)])


class Kind(NamedTuple):
    """What an argument may be: ``wrong`` values must be refused; ``odd`` ones, where there are any, may be taken."""

    takes: Callable[[Any], bool]
    wrong: st.SearchStrategy[Any]
    odd: st.SearchStrategy[Any] | None = None


class Awkward:
    """An object whose conversions all fail, or answer nonsense."""

    def __float__(self):
        raise RuntimeError("no float")

    def __index__(self):
        return "one"

    def __len__(self):
        return -1

    def __array__(self, dtype=None, copy=None):
        return np.array("text")

    def __repr__(self):
        return "<awkward>"


def recursive() -> list:
    """A list that holds itself."""
    inner: list = [1.0]
    inner.append(inner)
    return inner


ERRORS = (RuntimeError, KeyError, AttributeError, ZeroDivisionError, RecursionError, MemoryError, AssertionError,
    StopIteration, UserWarning, UnicodeError, TypeError, ValueError, OSError)  # fmt: skip
METHODS = ("__repr__", "__str__", "__array__", "__len__", "__iter__", "__getitem__", "__eq__", "__bool__", "__hash__",
    "__index__", "__float__", "__int__", "__complex__", "__fspath__", "__contains__", "__getattr__", "__lt__", "__ge__",
    "__array_function__", "__array_ufunc__", "__format__", "__next__")  # fmt: skip
PROPERTIES = ("__class__", "__array_interface__", "__array_struct__", "__name__", "ndim", "shape", "dtype", "draws")
BASES: dict[type, tuple[Any, ...]] = {int: (-7,), float: (math.nan,), str: ("non sense",), list: ([None, "x"],),
    tuple: ((None, "x"),), dict: ({1: "x"},), np.ndarray: ((2,), "U3"), bytes: (b"x",), set: ({1},)}  # fmt: skip


class Holds:
    """An object with one attribute of its class."""

    def __init__(self, name: str, value: Any) -> None:
        self.__class__ = type("Holds", (Holds,), {name: value})


def raising(names: tuple[str, ...], error: type[Exception], base: type = object) -> Any:
    """An object, or a wrong number, text or list, of which these methods and properties raise ``error``."""

    def fails(*arguments: Any, **options: Any) -> Any:
        if error is UnicodeError:
            raise UnicodeDecodeError("utf-8", b"x", 0, 1, "raised by the object itself")
        raise error("raised by the object itself")

    methods = {name: property(fails) if name in PROPERTIES else fails for name in names}
    return type("Raising", (base,), methods)(*BASES.get(base, ()))


def failing_generator() -> Any:
    """A generator that raises after one number."""
    yield 1.0
    raise RuntimeError("raised by the object itself")


class Endless:
    """A sequence that goes on beyond its length."""

    def __len__(self):
        return 2

    def __getitem__(self, place):
        return 1.0


NAMES = st.lists(st.sampled_from(METHODS + PROPERTIES), min_size=1, max_size=3).map(tuple)
RAISING = st.one_of(
    st.builds(raising, NAMES, st.sampled_from(ERRORS), st.sampled_from([object, object, *BASES])),
    st.builds(raising, st.just(METHODS), st.sampled_from(ERRORS), st.sampled_from([object, *BASES])),
    st.builds(failing_generator), st.builds(lambda: itertools.repeat(1.0)),
    st.builds(Holds, st.sampled_from(["__array_interface__", "__array_struct__", "__array__", "shape", "ndim",
        "prepare", "draws", "quadratic", "__fspath__", "__len__"]),
        st.sampled_from([None, 3, {}, {"version": 3, "shape": (-1,), "typestr": "<f8"}, "text", [], (2,), math.nan])),
    st.builds(lambda: [None] * 100_000), st.builds(lambda: "9" * 100_000),
    st.builds(np.datetime64, st.just("NaT")),
    st.builds(lambda make: make(), st.sampled_from([lambda: np.timedelta64(3, "s"), lambda: np.timedelta64(3),
        lambda: np.timedelta64("NaT"), lambda: np.timedelta64(0, "D"), lambda: [np.timedelta64(1, "s")],
        lambda: (np.timedelta64(1), 2), lambda: 10**5000, lambda: -(10**5000)])),
    st.builds(lambda: np.array([1, 2], "m8[s]")),
)  # fmt: skip


SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), HUGE, st.floats(), st.complex_numbers(), st.text(max_size=8),
    st.binary(max_size=8), st.sampled_from([math.nan, math.inf, -math.inf, -0.0, 5e-324, -1.0, 0, -1, "nan", "0.1"]),
    st.sampled_from([fractions.Fraction(1, 3), decimal.Decimal("0.5"), datetime.date(2000, 1, 1)]),
    st.sampled_from([np.float32(0.5), np.int8(-3), np.uint64(2**64 - 1), np.bool_(True), np.complex128(1j),
        np.str_("a")]),
    st.sampled_from([np.datetime64("2000-01-01"), np.float64("nan"), np.longdouble(1) / 3, np.void(b"ab")]),
)  # fmt: skip
OBJECTS = st.one_of(
    st.builds(object), st.builds(Awkward), st.builds(recursive), st.builds(itertools.count),
    st.sampled_from([int, float, dict, Awkward, len, math, Ellipsis, NotImplemented, print]),
    st.builds(lambda: lambda *a: None), st.builds(lambda: (i for i in range(2))), st.builds(range, st.integers(0, 3)),
    st.builds(pathlib.Path, st.sampled_from(["", ".", "nowhere/x", "/dev/null"])), st.builds(ValueError),
    st.builds(memoryview, st.binary(max_size=4)),
)  # fmt: skip
DTYPES = st.sampled_from([np.float64, np.int32, np.bool_, np.complex128, np.float16, "U3", object, "M8[D]", "V4", "f4"])
ARRAYS = DTYPES.flatmap(
    lambda kind: st.builds(np.zeros, hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=3), st.just(kind))
)
HIDDEN = st.sampled_from([np.ma.masked, np.ma.masked_equal([1.0, 2.0], 2.0), np.ma.masked_all((2, 2)),
    np.ma.masked_all(()), np.ma.masked_all((2, 3, 1)), [1.0, np.ma.masked], [np.ma.masked_all(2), [1.0, 2.0]],
    np.array([1.0 + 1e-300j]), np.array([None, 1.0])])  # fmt: skip
CONTAINERS = st.one_of(
    st.lists(SCALARS, max_size=3), st.lists(st.lists(SCALARS, max_size=2), max_size=3), st.tuples(SCALARS, SCALARS),
    st.dictionaries(st.text(max_size=2), SCALARS, max_size=2), st.sets(st.integers(), max_size=3),
    st.lists(RAISING, min_size=1, max_size=2), st.tuples(st.sampled_from([0.5, 1, "x"]), RAISING),
    st.dictionaries(st.sampled_from(["x", "sigma"]), RAISING, min_size=1),
)  # fmt: skip
ANYTHING = st.one_of(
    SCALARS, SCALARS, OBJECTS, CONTAINERS, ARRAYS, HIDDEN, RAISING, st.one_of(RAISING, st.builds(Endless))
)


def kind(
    takes: Callable[[Any], bool], *more: st.SearchStrategy[Any], odd: st.SearchStrategy[Any] | None = None
) -> Kind:
    """Whatever ``takes`` does not take, out of anything and of ``more``; odd: what it takes of ``odd``."""

    def fits(value: Any) -> bool:
        """Whether it is taken; what cannot even be asked is not."""
        try:
            return not issubclass(type(value), Endless) and bool(takes(value))  # NumPy would read it for ever
        except Exception:
            return False

    # Built: a filter of the union itself would be made, and checked, anew for each of its many parts.
    wrong = st.builds(lambda value: value, st.one_of(ANYTHING, *more, *more)).filter(lambda value: not fits(value))
    return Kind(fits, wrong, None if odd is None else odd.filter(fits))


def or_none(one: Kind) -> Kind:
    """The same, but None is right."""
    return Kind(lambda v: v is None or one.takes(v), one.wrong.filter(lambda v: v is not None), one.odd)


def is_whole(value: Any) -> bool:
    """Whether it is an integer, and no bool and no time."""
    kind = type(value)  # its ``__class__`` may raise
    return issubclass(kind, int | np.integer) and not issubclass(kind, bool | np.bool_ | np.timedelta64)


def plain(value: Any) -> Any:
    """A number of a subclass of int or float as one of that, whatever methods it has."""
    return (
        int.__int__(value)
        if issubclass(type(value), int)
        else float.__float__(value)
        if issubclass(type(value), float)
        else value
    )


def is_real(value: Any) -> bool:
    """Whether it is a finite real number, and no bool and no time."""
    if not is_whole(value) and not issubclass(type(value), float | np.floating):
        return False
    try:
        return math.isfinite(float(plain(value)))
    except OverflowError:
        return False


def count(at_least: int = 0, below: int = 2**63, *, idle: bool = True) -> Kind:
    """An integer from ``at_least`` to below ``below``; not ``idle``: a huge one means work, and must be refused."""
    around = st.one_of(st.integers(max_value=at_least - 1), st.integers(min_value=below), HUGE, st.floats())
    least = at_least if idle else max(at_least, 2**40)
    inside = st.one_of(st.integers(least, below - 1), HUGE) if least < below else None
    return kind(lambda v: is_whole(v) and at_least <= plain(v) < below, around, odd=inside)


def number(above: float = -math.inf, below: float = math.inf, *, ends: str = "") -> Kind:
    """A finite number between the ends; ``ends`` holds '[' or ']' where that end itself is right."""

    def takes(value: Any) -> bool:
        if not is_real(value):
            return False
        x = float(plain(value))  # as half precision it would overflow beside the ends
        return above < x < below or ("[" in ends and x == above) or ("]" in ends and x == below)

    reach = st.sampled_from([5e-324, 1e-300, 1e-12, 1e12, 1e300, -1e300, above, below])
    return kind(takes, st.floats(), reach, odd=st.one_of(st.floats(allow_nan=False), reach))


def numbers(one: Kind, *, nested: bool = False, single: bool = False) -> Kind:
    """A sequence of such; ``nested``: or of sequences of one length; ``single``: or one alone."""

    def takes(value: Any) -> bool:
        if single and one.takes(value):
            return True
        if (
            isinstance(value, str | bytes)
            or not isinstance(value, list | tuple | np.ndarray)
            or (isinstance(value, np.ndarray) and value.ndim == 0)
        ):
            return False
        rows = list(value)
        if rows and all(one.takes(v) for v in rows):
            return True
        return nested and bool(rows) and all(isinstance(r, list | tuple | np.ndarray) and takes_flat(r) for r in rows)

    def takes_flat(row: Any) -> bool:
        return not (isinstance(row, np.ndarray) and row.ndim != 1) and len(row) > 0 and all(one.takes(v) for v in row)

    good = st.sampled_from([0.5, 1.0])
    rows = st.lists(st.one_of(good, one.wrong), min_size=1, max_size=4)
    return kind(takes, rows, st.lists(rows, min_size=1, max_size=3))


def array(good: Any, fits: Callable[[np.ndarray], bool], *, finite: bool = True) -> Kind:
    """An array for which ``fits`` is true, as ``good`` is; wrong ones are anything, and ``good`` spoiled."""
    sound = np.asarray(good)

    def takes(value: Any) -> bool:
        if isinstance(value, Endless):
            return False
        try:
            given = np.asarray(value)
        except Exception:
            return False
        if given.dtype.kind not in "iuf":
            return False
        if finite and not np.isfinite(given).all():
            return False
        try:
            doubles = given.astype(np.float64) if given.dtype.kind == "f" else given  # float32 has lower limits
            return bool(fits(doubles))
        except Exception:
            return False

    return kind(takes, spoiled(sound))


@st.composite
def spoiled(draw: Any, sound: np.ndarray) -> Any:
    """A copy of an array with one thing wrong."""
    values = np.array(sound)
    way = draw(
        st.sampled_from(["entry", "kind", "axis", "axes", "longer", "shorter", "empty", "ragged", "scale", "list"])
    )
    if way == "entry" and values.size:
        values = values.astype(np.float64)
        place = draw(st.integers(0, values.size - 1))
        values.flat[place] = draw(st.sampled_from([math.nan, math.inf, -math.inf, -1.0, 1e308, -1e308, 0.5]))
    elif way == "kind":
        values = values.astype(draw(st.sampled_from([np.complex128, object, "U8", "S8", np.bool_, "M8[s]"])))
    elif way == "axis":
        values = values[None] if draw(st.booleans()) else values[..., None]
    elif way == "axes" and values.ndim:
        values = values[0] if draw(st.booleans()) else values.ravel()
    elif way in ("longer", "shorter") and values.ndim:
        axis = draw(st.integers(0, values.ndim - 1))
        size = values.shape[axis]
        values = (
            np.take(values, range(size + 1) if way == "longer" else range(size - 1), axis, mode="wrap")
            if size
            else values
        )
    elif way == "empty":
        values = values[:0] if values.ndim else np.zeros(0)
    elif way == "ragged":
        return [*values.tolist(), [[1.0]]] if values.ndim else [1.0, [2.0]]
    elif way == "scale":
        with np.errstate(over="ignore"):
            values = values * draw(st.sampled_from([1e308, -1.0, 0.0, 1e-320]))
    elif way == "list":
        return draw(st.sampled_from([values.tolist(), str(values), values.tobytes(), {0: values}, iter([values])]))
    return values


def choice(*allowed: str) -> Kind:
    """One of these words."""
    near = st.sampled_from([w for a in allowed for w in (a.upper(), a + " ", a[:-1], a.encode(), [a], a + "\0")])
    return kind(lambda v: isinstance(v, str) and v in allowed, near, st.text(max_size=6))


def flag() -> Kind:
    """True or False."""
    return kind(lambda v: isinstance(v, bool | np.bool_), st.sampled_from([0, 1, "True", "no", None, [True], 1.0]))


def instance(*classes: type) -> Kind:
    """An object of one of the classes; near misses are the classes themselves, their names, and lists of one."""
    near = st.sampled_from([n for c in classes for n in (c, c.__name__, [c])])
    return kind(lambda v: isinstance(v, classes), near)


def text() -> Kind:
    """A str."""
    return kind(lambda v: isinstance(v, str), odd=st.text(max_size=30))


def function() -> Kind:
    """Something that can be called."""
    return kind(callable)
