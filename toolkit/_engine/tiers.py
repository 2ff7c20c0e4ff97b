"""Tiers: a long run starts with the general engine, and goes on with a fused one that another process compiles.

The other process can be killed at any time, which a thread inside LLVM cannot. It is started where the time left, by
the speed so far, is a multiple of what compiling takes, and it returns machine code, which this process loads between
two chunks. It imports the toolkit and installed packages alone, never a user's script; functions of scripts and
notebooks are sent by value. Both processes hash all that a compiler reads of the functions, and code of other
functions, as after an edit, is not loaded. Where anything fails the run stays with the general engine.
"""

import hashlib
import pickle
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar

from .._compiler.binding import bound
from .._compiler.disk_cache import MADE_BY, content_stamp
from .._compiler.lowering import holds_addresses, load_compiled, reduce_compiled
from .._compiler.numba_private import dumps
from .._compiler.other_process import OtherProcess, answering, has_idle_core, may_start_processes, program
from .._compiler.pickling import portable
from .fused import (
    FusedCompiler,
    Specification,
    cache_on_disk,
    compiled,
    dispatcher_of,
    engines_of,
    fused,
    fused_stamp,
    specifications,
)
from .loop import advance
from .state import Block, Numbers, Parts

if TYPE_CHECKING:
    from .job import Job

Engines = dict[int, Callable[..., None]]  # by the number of chains in a block
Specifications = dict[int, Specification]

# Seconds. Of sampling until the speed is known; and left of a run, from which on an engine is looked for on disk, and
# is compiled. `python -m benchmarks speed tiers`: looking takes 3 ms, loading 20 ms, compiling 4 to 9 s of one core.
MEASURED, LOADS, COMPILES = 0.25, 1.0, 12.0
COMPILES_WITHOUT_CORE = 600.0  # where no core is idle; 10 s of one are less than 2 % of it
MOST_BYTES = 2**26  # sent to the other process; functions can hold arrays


def known_engines(job: "Job", blocks: list[Block], numbers: Numbers) -> Engines | None:
    """The engines, where this process has compiled or loaded all of them before."""
    held = engines_of(bound(job.problem.target.energy_gradient))
    if not held:
        return None
    engines = {n_chains: held.get(one) for n_chains, one in specifications(job, blocks, numbers).items()}
    return None if None in engines.values() else engines


class Tiers:
    """Fused engines for a run that goes on with the general one, as soon as there are some and it lasts long enough.

    wanted: says which.
    """

    def __init__(self, job: "Job", wanted: Callable[[], Specifications], threads: int) -> None:
        self._job, self._wanted, self._threads = job, wanted, threads
        self._steps, self._seconds = 0, 0.0
        self._has_looked = False  # on disk
        self._has_started = False  # another process
        self._compilation: Compilation | None = None

    def note(self, steps: int, seconds: float) -> None:
        """The general engine took ``seconds`` for ``steps``."""
        self._steps += steps
        self._seconds += seconds

    def seconds_left(self, step: int) -> float:
        """Seconds that the run would last from ``step`` on; as long as so far where a condition may end it sooner."""
        if self._seconds < MEASURED or self._steps == 0:
            return 0.0
        left = (self._job.n_steps - step) * self._seconds / self._steps
        return min(left, self._seconds) if self._job.may_end_early else left

    def engines(self, step: int) -> Engines | None:
        """The fused engines for the steps from ``step`` on; None where there are none yet, or it is too late."""
        left = self.seconds_left(step)
        if left < LOADS:
            return None
        if not self._has_looked:
            self._has_looked = True
            return load_from_disk(self._wanted())
        if self._compilation is None:
            if not self._has_started and self._is_worth_compiling(left):
                self._has_started = True
                self._compilation = start_compilation(self._wanted())
            return None
        if self._compilation.is_running():
            return None
        delivered = self._compilation.result()
        self.close()
        return load_delivered(self._wanted(), delivered)

    def _is_worth_compiling(self, left: float) -> bool:
        """Whether ``left`` seconds are enough, and this process may start another."""
        least = COMPILES if has_idle_core(self._threads) else COMPILES_WITHOUT_CORE
        return left >= least and not self._job.is_part and may_start_processes()

    def close(self) -> None:
        """Kill the other process, if there is one."""
        if self._compilation is not None:
            self._compilation.close()
            self._compilation = None


# Loading.


class NotThereError(Exception):
    """A cache has no code for a function that must not be compiled."""


class OnlyLoads:
    """Numba's cache of one function that is not compiled where it cannot be loaded: ``NotThereError`` then."""

    def __init__(self, load: Callable[[Any, Any], Any]) -> None:
        self._load = load

    def load_overload(self, signature: Any, context: Any) -> Any:
        """The compiled function."""
        found = self._load(signature, context)
        if found is None:
            raise NotThereError
        return found


def load_from_disk(wanted: Specifications) -> Engines | None:
    """The engines, where all of them are on disk."""
    engines: Engines = {}
    for n_chains, one in wanted.items():
        function, (stamp, _) = fused(*one), fused_stamp(*one)
        cache = None if stamp is None else cache_on_disk(function, stamp)
        if cache is None:
            return None
        try:
            engines[n_chains] = dispatcher_of(function, FusedCompiler, OnlyLoads(cache.load_overload))
        except NotThereError:
            return None
    return held(wanted, engines)


def load_delivered(wanted: Specifications, delivered: list[Any]) -> Engines | None:
    """The engines of what the other process has delivered, in the order of ``wanted``."""
    engines: Engines = {}
    for (n_chains, one), code in zip(wanted.items(), delivered, strict=False):

        def load(signature: Any, context: Any, code: Any = code) -> Any:
            return load_compiled(context, code)

        engines[n_chains] = dispatcher_of(fused(*one), FusedCompiler, OnlyLoads(load))
    return held(wanted, engines) if len(engines) == len(wanted) else None


def held(wanted: Specifications, engines: Engines) -> Engines:
    """``engines``, which their target holds from now on."""
    for n_chains, one in wanted.items():
        engines_of(one.parts.target)[one] = engines[n_chains]
    return engines


# The other process, as seen from this one.


class Compilation(OtherProcess):
    """A process that compiles engines."""

    _failed: ClassVar[set[str]] = set()  # digests of engines that are not tried again

    def __init__(self, digest: str, request: bytes) -> None:
        self._digest = digest
        super().__init__(PROGRAM, request, in_background=True)

    @classmethod
    def has_failed(cls, digest: str) -> bool:
        """Whether these engines could not be compiled or delivered before."""
        return digest in cls._failed

    def result(self) -> list[Any]:
        """What an ended process has delivered; empty where it failed."""
        try:
            digest, delivered = pickle.loads(self.answer())  # of a file without a name, which no other process can open
        except Exception:  # pickle can raise nearly any exception
            digest, delivered = "", []
        if digest != self._digest:
            self._failed.add(self._digest)
            return []
        return list(delivered)


PROGRAM = program(__name__, "answer", in_background=True)


def start_compilation(wanted: Specifications) -> Compilation | None:
    """A process that compiles these engines; None where it cannot be sent what it needs, or cannot be started."""
    digest = digest_of(wanted.values())
    if digest is None or Compilation.has_failed(digest):
        return None
    parts = next(iter(wanted.values())).parts
    rest = [(one.shapes, one.constants) for one in wanted.values()]
    try:
        request = pickle.dumps((digest, (parts.tempering, *map(portable, parts.functions)), rest))
        return Compilation(digest, request) if len(request) <= MOST_BYTES else None
    except Exception:  # a function that cannot be pickled, for which pickle can raise nearly any exception; no process
        return None


def digest_of(wanted: Iterable[Specification]) -> str | None:
    """Hash of all that a compiler reads of these engines, as it is in memory; None where that cannot be known."""
    texts: list[Any] = [MADE_BY]
    for parts, shapes, constants in wanted:
        stamps = [content_stamp(part) for part in (*parts.functions, advance)]
        if None in stamps:
            return None
        texts.append((stamps, shapes, [float(number) for number in constants]))
    return hashlib.sha256(repr(texts).encode()).hexdigest()


# The other process itself.


def answer(parent: int) -> None:
    """Compile the engines asked for on stdin, and write their machine code to stdout. parent: who has asked."""
    with answering(parent) as output:
        digest, parts, rest = pickle.load(sys.stdin.buffer)
        wanted = [Specification(Parts(*parts), *one) for one in rest]
        if digest_of(wanted) == digest:
            engines = [compiled(*one) for one in wanted]
            output.write(dumps((digest, list(map(machine_code, engines)))))


def machine_code(engine: Any) -> Any:
    """What another process can load. Raises ValueError for code that holds addresses of this one."""
    (compiled_engine,) = engine.overloads.values()
    if holds_addresses(compiled_engine.library):
        raise ValueError("the code holds addresses of this process")
    return reduce_compiled(compiled_engine)
