"""Exceptions and warnings, and checks of arguments."""

import contextlib
import importlib
import importlib.metadata
import importlib.util
import itertools
import json
import math
import os
import stat
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import unquote, urlparse

import numpy as np
from numpy.typing import NDArray

# Checks of arguments: each raises with the argument's name, its value and the allowed values.

SHOWN = 200  # characters of a value in a message


def shown(value: Any) -> str:
    """A short text of any ``value`` for a message; its type alone where its own ``__repr__`` raises."""
    if type(value) in (str, bytes, list, tuple) and len(value) > SHOWN:
        value = value[:SHOWN]  # the rest would be cut anyway
    try:
        return repr(value)[:SHOWN]
    except Exception:
        if type(value) is int:  # Python prints no more than some 4300 digits
            return f"an integer of {value.bit_length()} bits"
        return f"<{type(value).__name__}, whose repr raises>"


MOST_LISTED, FIRST_LISTED = 20, 6  # coordinates in a message


def listed(values: Any) -> str:
    """The coordinates of one point for a message; of more than 20 the first 6."""
    numbers = np.ravel(values)
    if numbers.size <= MOST_LISTED:
        return str(numbers.tolist())
    return f"[{', '.join(map(repr, numbers[:FIRST_LISTED].tolist()))}, …]"


def is_a(value: Any, kinds: Any) -> bool:
    """``isinstance``; False where the value's own ``__class__`` raises."""
    try:
        return isinstance(value, kinds)
    except Exception:
        return False


def is_integer(value: Any) -> bool:
    """Whether ``value`` is an integer: no bool, and no time span, which NumPy derives from its integers."""
    return is_a(value, int | np.integer) and not is_a(value, bool | np.bool_ | np.timedelta64)


def plain_integer(value: Any) -> int:
    """An integer as an int, whatever methods a class of the user's has."""
    return int.__int__(value) if issubclass(type(value), int) else int(value)


def plain_float(value: Any) -> float:
    """A number as a float, likewise."""
    return (
        float.__float__(value)
        if issubclass(type(value), float)
        else float(plain_integer(value) if issubclass(type(value), int) else value)
    )


def check_count(name: str, value: Any, *, at_least: int, below: int = 2**63) -> int:
    """``value`` as an int. Raises TypeError where it is not an integer, ValueError where out of range."""
    if not is_integer(value):
        raise TypeError(f"{name} must be an integer, got {shown(value)} of type {type(value).__name__}")
    count = plain_integer(value)
    if not at_least <= count < below:
        limit = "" if below >= 2**20 and count < below else f" and < {below}"  # omits a large limit that is met
        raise ValueError(f"{name} must be ≥ {at_least}{limit}, got {shown(count)}")
    return count


def check_number(
    name: str,
    value: Any,
    *,
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
    at_most: float | None = None,
) -> float:
    """``value`` as a finite float. Raises TypeError where it is not a number, ValueError where out of range."""
    if not is_integer(value) and not is_a(value, float | np.floating):
        raise TypeError(f"{name} must be a number, got {shown(value)} of type {type(value).__name__}")
    try:
        number = plain_float(value)
    except OverflowError:
        number = math.inf
    allowed = ["finite"]
    valid = math.isfinite(number)
    if above is not None:
        allowed.append(f"> {above:g}")
        valid = valid and number > above
    if at_least is not None:
        allowed.append(f"≥ {at_least:g}")
        valid = valid and number >= at_least
    if below is not None:
        allowed.append(f"< {below:g}")
        valid = valid and number < below
    if at_most is not None:
        allowed.append(f"≤ {at_most:g}")
        valid = valid and number <= at_most
    if not valid:
        raise ValueError(f"{name} must be {' and '.join(allowed)}, got {shown(value)}")
    return number


def check_scale(name: str, value: Any) -> float:
    """``value`` as a length, a deviation or the like, > 0, whose square is a float too. Raises as ``check_number``."""
    return check_number(name, check_number(name, value, above=0.0), above=1e-100, below=1e100)


def check_deviation(name: str, value: Any) -> float:
    """``value`` as a standard deviation ≥ 0 whose square is a float too. Raises as ``check_number``."""
    return check_number(name, check_number(name, value, at_least=0.0), below=1e150)


def check_flag(name: str, value: Any, *, or_none: bool = False) -> bool:
    """``value`` where it is True or False. Raises TypeError otherwise. or_none: the caller takes None too."""
    if not is_a(value, bool | np.bool_):
        raise TypeError(f"{name} must be True{', False or None' if or_none else ' or False'}, got {shown(value)}")
    return bool(value)


def check_choice(name: str, value: Any, allowed: Sequence[str]) -> str:
    """``value`` where it is one of the ``allowed`` words. Raises ValueError otherwise."""
    word = str.__str__(value) if issubclass(type(value), str) else None
    if word is None or word not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {shown(value)}")
    return word


def check_text(name: str, value: Any) -> str:
    """``value`` where it is a str. Raises TypeError otherwise."""
    if not is_a(value, str):
        raise TypeError(f"{name} must be a str, got {shown(value)} of type {type(value).__name__}")
    return value  # type: ignore[no-any-return]


def check_instance(name: str, value: Any, kind: type) -> None:
    """Raise TypeError where ``value`` is not of the class ``kind``."""
    if not is_a(value, kind):
        raise TypeError(f"{name} must be a {kind.__name__}, got {shown(value)} of type {type(value).__name__}")


def is_sequence(values: Any) -> bool:
    """Whether ``values`` are a list, a tuple or similar: no text, no bytes, no array."""
    return is_a(values, Sequence) and not is_a(values, str | bytes | bytearray | memoryview)


def entries(name: str, values: Any, what: str = "numbers") -> list[Any]:
    """The entries of a sequence or an array (n,). Raises TypeError where it is neither, or its own methods raise."""
    if type(values) in (list, tuple):
        return list(values)
    if not is_sequence(values) and not is_a(values, np.ndarray):
        hint = f"; write ({shown(values)}, …), one for each" if is_a(values, float) else ""
        kind = type(values).__name__
        raise TypeError(f"{name} must be a sequence of {what}, got {shown(values)} of type {kind}{hint}")
    try:
        listed = list(values)
        flat = not is_a(values, np.ndarray) or values.ndim == 1
    except Exception as error:
        raise TypeError(
            f"{name} must be a sequence of {what}, got {shown(values)}, which raises {shown(error)}"
        ) from error
    if not flat:
        raise TypeError(f"{name} must be a sequence of {what}, got {shown(values)} of type {type(values).__name__}")
    return listed


def check_numbers(name: str, values: Any, **limits: float) -> tuple[float, ...]:
    """``values`` as a tuple of finite floats, each within ``limits``; the message names the invalid entry."""
    return tuple(check_number(f"{name}[{i}]", value, **limits) for i, value in enumerate(entries(name, values)))


def masked_entry(values: Any) -> tuple[int, ...] | None:
    """The index of the first masked entry of an array, or of nested sequences of arrays and numbers; None for none."""
    seen: set[int] = set()  # a sequence may contain itself

    def entry_of(part: Any) -> tuple[int, ...] | None:
        if isinstance(part, np.ma.MaskedArray):
            hidden = np.empty((0, 1)) if part.dtype.names else np.argwhere(np.ma.getmaskarray(part))
            return tuple(map(int, hidden[0])) if len(hidden) else None
        if not is_sequence(part) or isinstance(part, range) or id(part) in seen:
            return None
        seen.add(id(part))
        for i, item in enumerate(part):
            if type(item) is not float and type(item) is not int:  # skips most entries of long lists
                index = entry_of(item)
                if index is not None:
                    return (i, *index)
        return None

    return entry_of(values)


def has_unit(values: Any) -> bool:
    """Whether ``values`` are a quantity with a unit, as those of Astropy and Pint, which an array would lose."""
    kind = type(values)
    return any(all(hasattr(kind, name) for name in pair) for pair in (("unit", "to_value"), ("units", "magnitude")))


def is_endless(values: Any) -> bool:
    """Whether a sequence of a class of the user's own, which NumPy reads to its end, goes on beyond its length."""
    kind = type(values)
    if issubclass(kind, list | tuple | str | bytes | np.ndarray) or hasattr(kind, "__array__"):
        return False
    if not (hasattr(kind, "__len__") and hasattr(kind, "__getitem__")) or issubclass(kind, Mapping):
        return False
    return sum(1 for _ in itertools.islice(iter(values), len(values) + 1)) > len(values)


def plain_array(name: str, values: Any, what: str = "numbers") -> NDArray[Any]:
    """``values`` as an array of any kind, without loss of masks or units.

    Raises TypeError where they are no array or have a unit, ValueError where an entry is masked.
    """
    if type(values) is np.ndarray and values.dtype.kind != "O":
        return values
    try:
        if is_endless(values):
            raise TypeError("it goes on beyond its length")
        with_unit = has_unit(values) or (is_sequence(values) and len(values) > 0 and has_unit(values[0]))
        masked = None if with_unit else masked_entry(values)
        array = None if with_unit or masked is not None else np.asarray(values)
    except Exception as error:  # also one of the object's own methods
        raise TypeError(f"{name} must be an array of {what}, got {shown(values)}: {error}") from error
    if with_unit:
        raise TypeError(f"{name} must be {what} without a unit, got {shown(values)}: give them in the unit meant")
    if array is None:
        at = f" at [{', '.join(map(str, masked))}]" if masked else ""
        raise ValueError(f"{name} must have no masked entries, got one{at}: fill them in or leave them out")
    return array


def check_real_array(name: str, values: Any, *, copies: bool = True) -> NDArray[np.float64]:
    """``values`` as a float64 array, nan and inf included.

    copies=False: the array itself if it is float64, contiguous and writable already.
    Raises TypeError where they are no real numbers or have a unit, ValueError where an entry is masked.
    """
    array = plain_array(name, values)
    if array.dtype.kind not in "iuf":
        remedy = ": give 0 for False and 1 for True, by .astype(float)" if array.dtype.kind == "b" else ""
        raise TypeError(f"{name} must be an array of real numbers, got {shown(values)}{remedy}")
    with np.errstate(over="ignore"):  # a longdouble beyond float64 becomes inf, which check_array refuses by name
        return array.astype(np.float64, order="C", copy=copies or not array.flags.carray)


def check_measured(name: str, values: Any) -> NDArray[np.float64]:
    """``values`` as a float64 array, nan where missing: where they are nan, or masked in a masked array.

    Raises as ``check_real_array``.
    """
    if not isinstance(values, np.ma.MaskedArray):
        return check_real_array(name, values)
    return np.where(np.ma.getmaskarray(values), np.nan, check_real_array(name, np.ma.getdata(values)))


def check_integers(name: str, values: Any) -> NDArray[Any]:
    """``values`` as an array of integers. Raises TypeError otherwise, ValueError where an entry is masked."""
    array = plain_array(name, values, "integers")
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} must be integers, got {array.dtype}")
    return array


def check_array(name: str, values: Any, *, copies: bool = True) -> NDArray[np.float64]:
    """``values`` as a float64 array. Raises as ``check_real_array``, and ValueError where they are not finite."""
    array = check_real_array(name, values, copies=copies)
    if not np.isfinite(array).all():
        first = tuple(np.argwhere(~np.isfinite(array))[0])
        raise ValueError(f"{name} must be finite, got {array[first]} at [{', '.join(map(str, first))}]")
    return array


def check_edges(name: str, values: Any) -> NDArray[np.float64]:
    """``values`` as edges (cells + 1,). Raises as ``check_array``, and ValueError where they do not increase."""
    edges = check_array(name, values)
    if edges.ndim != 1 or edges.size < 2 or not (np.diff(edges) > 0.0).all():
        raise ValueError(f"{name} must be at least 2 numbers that increase, got {shown(values)}")
    return edges


def check_row(name: str, values: Any, length: int) -> NDArray[np.float64]:
    """``values`` as finite numbers (length,). Raises as ``check_array``, and ValueError for another shape."""
    row = check_array(name, values)
    if row.shape != (length,):
        raise ValueError(f"{name} must have shape ({length},), got {row.shape}")
    return row


def check_path(name: str, value: Any, what: str) -> str:
    """``value``, a str or a path, as a str. Raises TypeError where it is neither, or its own ``__fspath__`` raises."""
    path = None
    try:
        path = os.fspath(value) if is_a(value, str | os.PathLike) else None
        reason = f"of type {type(value).__name__}"
    except Exception as error:
        reason = f"which raises {shown(error)}"
    if not is_a(path, str):
        raise TypeError(f"{name} must be {what}, got {shown(value)} {reason}")
    return str(path)


def check_exists(name: str, path: str, what: str) -> bool:
    """Whether there is something at ``path``. Raises ValueError where no file system has such a path."""
    try:
        return Path(path).exists()
    except (OSError, ValueError) as error:  # too long, or with a null character
        raise ValueError(f"{name} must be {what}, got {shown(path)}: {shown(error)}") from error


@contextlib.contextmanager
def names_removed_folder() -> Iterator[None]:
    """Say so where something fails because the working directory was removed, which the system does not name."""
    try:
        yield
    except Exception as error:
        try:
            os.getcwd()
        except FileNotFoundError:
            raise FileNotFoundError(
                "the working directory of this process was removed: change to a folder that is there, with os.chdir"
            ) from error
        raise


FILE_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def check_regular(name: str, path: "str | os.PathLike[str]", mode: int) -> None:
    """Raise ValueError where ``mode``, the file's at ``path``, is not that of a regular file."""
    if not stat.S_ISREG(mode):
        kind = FILE_KINDS.get(stat.S_IFMT(mode), "none")
        raise ValueError(f"{name} must be a regular file, and {shown(os.fspath(path))} is {kind}")


def open_regular(name: str, path: "str | os.PathLike[str]") -> BinaryIO:
    """The regular file at ``path``, opened to read bytes; a FIFO is not waited for, and a device not touched.

    Raises ValueError where it is no regular file or no path at all, OSError where it cannot be opened.
    """
    try:
        mode = os.stat(path).st_mode
    except ValueError as error:  # a NUL, or a surrogate
        raise ValueError(f"{name} must be the path of a file, got {shown(os.fspath(path))}: {error}") from None
    check_regular(name, path, mode)
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0))
    try:
        check_regular(name, path, os.fstat(descriptor).st_mode)  # it may have been replaced since
    except ValueError:
        os.close(descriptor)
        raise
    return os.fdopen(descriptor, "rb")


def read_bytes(name: str, path: "str | os.PathLike[str]", *, at_most: int) -> bytes:
    """The content of the regular file at ``path``, of ``at_most`` bytes.

    Raises ValueError where it is no regular file or is larger, OSError where it cannot be read.
    """
    with open_regular(name, path) as stream:
        size = os.fstat(stream.fileno()).st_size
        content = stream.read(at_most + 1) if size <= at_most else b""
    if max(size, len(content)) > at_most:
        raise ValueError(f"{name} must be a file of at most {at_most} bytes, and {os.fspath(path)!r} has {size}")
    return content


def decoded(label: str, content: bytes, *, first_line: int = 1) -> str:
    """``content``, of which the first line has the number ``first_line``, as text.

    Raises ValueError that begins with ``label`` and names line and column where it is not UTF-8, or has a NUL.
    """
    try:
        text = content.decode("utf-8")
        at, what = content.find(b"\0"), "a NUL character"
    except UnicodeDecodeError as error:
        text, at, what = "", error.start, f"the byte 0x{content[error.start]:02x}"
    if at >= 0:
        before = content[:at].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        line, column = before.count(b"\n"), len(before) - before.rfind(b"\n")
        raise ValueError(
            f"{label}: is not a text file in UTF-8, got {what} in line {line + first_line}, column {column}"
        )
    return text


def check_progress(progress: Any) -> None:
    """Raise TypeError where ``progress`` is not None, True or False."""
    if progress is not None:
        check_flag("progress", progress)


def made_again(kind: type[Exception], arguments: tuple[Any, ...], fields: dict[str, Any]) -> Exception:
    """An exception with these arguments and attributes, which ``__reduce__`` gives."""
    error = kind.__new__(kind, *arguments)
    error.args = arguments
    vars(error).update(fields)
    return error


class DivergenceError(ArithmeticError):
    """A replica's position or energy stopped being finite.

    chain, replica, step: where, for the first lane that diverged; state: its last finite position, shape (dim,).
    run: the ``Run`` so far, all chains; draws of a diverged replica from that step on are nan. Where the energy alone
    is not finite, the draw before is the place itself.
    """

    def __init__(
        self, message: str, *, chain: int, replica: int, step: int, state: NDArray[np.float64], run: Any
    ) -> None:
        super().__init__(message)
        self.chain = chain
        self.replica = replica
        self.step = step
        self.state = state
        self.run = run

    def __reduce__(self) -> Any:
        return made_again, (type(self), self.args, vars(self))


class CheckpointError(ValueError):
    """A checkpoint is another run's, damaged beyond use, in use or nowhere to be written; the message says which."""


class CheckpointWarning(UserWarning):
    """A checkpoint could not be written, or the last one was damaged and the one before was used."""


class ClusterError(RuntimeError):
    """A cluster cannot run this, or was lost; the message says which.

    run: the ``Run`` or ``PooledRun`` of the chains that were done by then; None where there were none.
    """

    run: Any = None

    def __reduce__(self) -> Any:
        return made_again, (type(self), self.args, vars(self))


class ClusterWarning(UserWarning):
    """A run waits for workers of a cluster; the message says why."""


class CudaError(RuntimeError):
    """``backend="cuda"`` cannot run here; the message says what to install, or what to use."""


class InterruptedWarning(UserWarning):
    """A run was stopped by the keyboard and holds fewer draws than were asked for."""


class CudaWarning(UserWarning):
    """A run on a device may differ from a CPU's in its last bits; the message says why. Without it, bits are equal."""


class ContourWarning(UserWarning):
    """A contour run's weights should not be trusted yet; the message says why and what to do."""


class LoadError(ValueError):
    """A file does not hold a run as it was saved: it is torn, was edited, or never was one; the message says which."""


# Package folders, and optional packages.


def package_root(module: str) -> Path:
    """The folder of the top-level package of ``module``, as ``__name__`` has it, however deep the module's file lies.

    Raises RuntimeError where that is a script, a notebook or a lone module.
    """
    name = module.partition(".")[0]
    package = sys.modules.get(name)
    file = getattr(package, "__file__", None)
    if not file or not hasattr(package, "__path__"):
        raise RuntimeError(f"{name} is no package with a folder of its own")
    return Path(file).resolve().parent


# Packages whose frames stand between a warning and the user's line; those above this one add their names. Frames of
# ``contextlib`` stand between a context manager and what uses it.
LIBRARIES = {__name__.partition(".")[0], contextlib.__name__}


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning at the line by which the user called the library, however deep in it this is called."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] in LIBRARIES:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def on_demand(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """A package's ``__getattr__``, which imports what few users need when they first ask for it.

    modules: name → the module below the package that has it, or that it is.
    """

    def find(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = importlib.import_module(f"{package}.{modules[name]}")
        value = getattr(module, name, module)
        setattr(sys.modules[package], name, value)
        return value

    return find


def optional(package: str, extra: str) -> Any:
    """The module ``package``. Raises ImportError that names the extra of this distribution which brings it."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise ImportError(f"{package} is needed for this: {how_to_install(extra)}", name=package) from error


DISTRIBUTION = "manymodes"


def how_to_install(extra: str) -> str:
    """The command that adds an extra of this distribution, from where this copy of it came: a clone, or elsewhere."""
    clone = package_root(__name__).parent
    if (clone / "pyproject.toml").is_file():
        return f'pip install --editable "{clone}[{extra}]"'
    with contextlib.suppress(Exception):  # no record, or one of an installer that writes something else
        origin = json.loads(importlib.metadata.distribution(DISTRIBUTION).read_text("direct_url.json") or "")
        if origin["url"].startswith("file:"):
            return f'pip install "{unquote(urlparse(origin["url"]).path)}[{extra}]"'
        kind = origin.get("vcs_info", {}).get("vcs", "")
        return f'pip install "{DISTRIBUTION}[{extra}] @ {kind}{"+" if kind else ""}{origin["url"]}"'
    return f'pip install "{DISTRIBUTION}[{extra}]"'


def check_not_shadowed(needed: str, by: str) -> None:
    """Raise ImportError where ``needed``, a package beside this one, is another file or folder of the same name.

    by: the package that needs it.
    """
    found = importlib.util.find_spec(needed)
    ours = package_root(__name__).parent / needed / "__init__.py"
    if found is not None and found.origin is not None and Path(found.origin).resolve() != ours and ours.is_file():
        raise ImportError(
            f"{by} needs the package {needed} of {DISTRIBUTION}, but Python finds another one first, {found.origin}: "
            f"rename that, or start Python in another folder",
            name=needed,
        )


# Memory.

try:
    import resource
except ImportError:  # not on Windows
    resource = None  # type: ignore[assignment]

CONTROL_GROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
UNLIMITED = 2**60
FITS = 2**24  # bytes that need no look at what there is, which takes 0.1 ms


def available_memory() -> int:
    """Bytes of memory that this process may have: the machine's, or its control group's or address space's limit."""
    limits = [UNLIMITED]
    if hasattr(os, "sysconf"):
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for file in CONTROL_GROUPS:
        try:
            limits.append(int(Path(file).read_text(encoding="ascii")))
        except (OSError, ValueError):  # no such file, or the word "max"
            continue
    if resource is not None:
        limits.append(resource.getrlimit(resource.RLIMIT_AS)[0])
    return min(limit for limit in limits if limit > 0)


def check_room(name: str, value: Any, n_bytes: float, *, hint: str = "") -> None:
    """Raise ValueError where ``n_bytes``, needed for ``name`` = ``value``, are more than this process may have."""
    if n_bytes < FITS:
        return
    available = available_memory()
    if n_bytes > available:
        raise ValueError(
            f"{name} must fit into memory, got {value}, which takes {n_bytes / 1e9:.4g} GB where there are "
            f"{available / 1e9:.4g} GB{hint}"
        )


# Functions of loaded runs.


class UnavailableError(RuntimeError):
    """Something of a loaded run was called that its file names but does not hold: the code of a user's function."""


class Unavailable:
    """Placeholder of a function without code; ``description`` is that of ``function_digest.describe_function``.

    Calling or compiling it raises UnavailableError.
    """

    def __init__(self, what: str, description: dict[str, Any]) -> None:
        self.what = what
        self.description = description

    def __call__(self, *arguments: Any) -> Any:
        """Raise UnavailableError."""
        raise UnavailableError(
            f"the file holds the name of {self.what}, {self.description.get('function')!r}, but not its code: "
            "it was loaded without it and cannot be evaluated"
        )

    def __repr__(self) -> str:
        return f"<unavailable {self.description.get('function')!r}>"
