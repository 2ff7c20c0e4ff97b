"""Compile kernels whose results are those of the CPU bit for bit: products and sums are fused only by our own ``fma``.

Options of the compiler say so, and its output is checked (``contracts``). In the simulator only the functions that a
kernel calls are compiled.
"""

import contextlib
import importlib.metadata
import re
from collections.abc import Callable, Iterator
from types import FunctionType, SimpleNamespace
from typing import Any, NamedTuple

from numba import types
from numba.core.errors import NumbaError

from ..._compiler.argument_pack import call_part, pack_arguments, without_last
from ..._compiler.decorators import inlined
from ..._compiler.disk_cache import CodeFile
from ..._compiler.function_digest import stored_name
from ..._compiler.numba_private import Dispatcher, _Intrinsic
from ..state import as_parts
from .device import SIMULATED, cuda

# Checks of compiled code: operations that may be fused, calls, CUDA's own functions.

CONTRACTIBLE = re.compile(r"\b(?:add|sub|mul)\.f(?:32|64)\b")  # without ".rn", so the assembler may fuse them
CALLED = re.compile(r"\bcall(?:\.uni)?\s+(?:\([^)]*\),\s*)?([^\s,;]+)")
LOCAL = re.compile(r"\b(?:ld|st)\.local\b")
OWN = re.compile(r"\bcall\b[^@\n]*@\"?__nv_(\w+)")
DEFINED = re.compile(r"^define [^\n]*(.*?)^}", re.M | re.S)
POWER = "int_power_impl"  # Numba's products for integer exponents, as on a CPU; only exponents above 65,536 use pow
# CUDA's functions with exactly rounded results, which equal a CPU's.
EXACT = frozenset(
    name + suffix
    for name in ("sqrt", "fabs", "floor", "ceil", "trunc", "rint", "fma", "copysign", "fmod", "isnan", "isinf",
                 "finite", "isfinited", "signbit", "abs", "llabs")
    for suffix in ("", "f", "d")
)  # fmt: skip

# Operations with float64 literals that do not fit into an instruction, which has room for a literal's high word.
WITH_LITERAL = re.compile(r"^\s*(?:fma|add|sub|mul)\.rn\.f64\b.*\b0d.*$", re.M)
LONG_LITERAL = re.compile(r"\b0d[0-9A-Fa-f]{8}(?!0{8})[0-9A-Fa-f]{8}\b")
HEADER = re.compile(r"^\.address_size 64$", re.M)


class Code(NamedTuple):
    """A kernel's PTX for one kind of device, and the CUDA functions that it calls."""

    ptx: str
    functions: tuple[str, ...]


def contracts(ptx: str) -> bool:
    """Whether the assembler may fuse operations of ``ptx``."""
    return CONTRACTIBLE.search(ptx) is not None


def with_constant_bank(ptx: str) -> str:
    """``ptx`` with long float64 literals read from constant memory, where an operation reads them by itself.

    The assembler moves a literal into registers by two instructions of its own, each time: a seventh of a step of SGLD.
    """
    places: dict[str, int] = {}

    def reads(operation: re.Match[str]) -> str:
        literals = list(dict.fromkeys(LONG_LITERAL.findall(operation[0])))
        if not literals:
            return operation[0]
        names = {literal: f"%literal{i}" for i, literal in enumerate(literals)}
        loads = [
            f"\t.reg .f64 {name};\n\tld.const.f64 {name}, [literals+{8 * places.setdefault(literal, len(places))}];"
            for literal, name in names.items()
        ]
        return "\n".join(["\t{", *loads, LONG_LITERAL.sub(lambda found: names[found[0]], operation[0]), "\t}"])

    body = WITH_LITERAL.sub(reads, ptx)
    declared = f".const .align 8 .f64 literals[{len(places)}] = {{{', '.join(places)}}};"
    return HEADER.sub(lambda header: f"{header[0]}\n{declared}", body, count=1) if places else ptx


def functions_called(ir: str) -> tuple[str, ...]:
    """CUDA's functions that ``ir`` calls and whose results may differ from a CPU's: all but the exact ones."""
    bodies = (match.group(1) for match in DEFINED.finditer(ir) if POWER not in match.group().partition("\n")[0])
    return tuple(sorted({name for body in bodies for name in OWN.findall(body)} - EXACT))


REFUSALS = (NumbaError, TypeError, ValueError, NotImplementedError)  # exceptions for what cannot be compiled


@contextlib.contextmanager
def without_fusion() -> Iterator[list[Any]]:
    """Compile kernels in this context without fusing products and sums, and with literals in constant memory.

    Numba has no option for either. Yields the list of the libraries compiled, in the order of completion: a kernel's
    comes after those it calls.
    """
    libraries: list[Any] = []
    modules = [module for module in (getattr(cuda, "dispatcher", None), getattr(cuda, "compiler", None)) if module]
    originals = {module: module.compile_cuda for module in modules if hasattr(module, "compile_cuda")}

    def unfused(compile_cuda: Callable[..., Any]) -> Callable[..., Any]:
        def compiled(*arguments: Any, **options: Any) -> Any:
            options["nvvm_options"] = {**(options.get("nvvm_options") or {}), "fma": False}
            result = compile_cuda(*arguments, **options)
            libraries.append(result.library)
            get_texts = result.library.get_asm_strs
            result.library.get_asm_strs = lambda cc=None: [with_constant_bank(ptx) for ptx in get_texts(cc)]
            return result

        return compiled

    for module, compile_cuda in originals.items():
        module.compile_cuda = unfused(compile_cuda)
    try:
        yield libraries
    finally:
        for module, compile_cuda in originals.items():
            module.compile_cuda = compile_cuda


def compile_kernel(
    function: Callable[..., Any], kinds: tuple[Any, ...], stamp: str | None = None, most_registers: int | None = None
) -> Any:
    """``function`` as a kernel, compiled for arguments of these types (``types_of``) unless simulated.

    stamp: a hash of all that it depends on, the key of its cache on disk; None: it is not cached. most_registers: of a
    thread; None: as many as the compiler takes.
    """
    if SIMULATED:
        return cuda.jit(function)
    # Link-time optimisation would fuse products and sums.
    kernel = cuda.jit(function, lto=False, max_registers=most_registers)
    with contextlib.suppress(RuntimeError):  # no folder to write the cache to
        if stamp is not None:
            kernel._cache = stamped_cache(function, f"{stamp}, {most_registers} registers")
    with without_fusion():
        kernel.compile(kinds)
    return kernel


def stamped_cache(function: Callable[..., Any], stamp: str) -> Any:
    """Numba's disk cache of a kernel, with key ``stamp``; Numba's key has addresses, which differ between processes."""
    base: Any = cuda.dispatcher.CUDACache

    class StampedCache(base):  # type: ignore[misc]
        """The cache of one kernel."""

        def _index_key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
            return (sig, codegen.magic_tuple(), importlib.metadata.version("numba-cuda"), stamp)

    cache = StampedCache(function)
    cache._cache_file = CodeFile(cache._cache_file)
    return cache


def types_of(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Numba's types of a kernel's arguments; none in the simulator, which compiles nothing."""
    if SIMULATED:
        return ()
    from ..._compiler.numba_private import Purpose, typeof

    return tuple(typeof(argument, Purpose.argument) for argument in arguments)


def ptx_of(function: Callable[..., Any], signature: Any, capability: tuple[int, int]) -> str:
    """``function`` as PTX for a device of ``capability``, such as (9, 0); no such device is needed."""
    return codes_of(function, signature, (capability,))[0].ptx


def codes_of(
    function: Callable[..., Any], signature: Any, capabilities: tuple[tuple[int, int], ...]
) -> tuple[Code, ...]:
    """``function`` as code for devices of ``capabilities``; none of them is needed. Numba compiles it once for all."""
    module: Any = cuda.dispatcher
    original = module.get_current_device
    module.get_current_device = lambda: SimpleNamespace(compute_capability=capabilities[0])
    try:
        with without_fusion() as libraries:
            cuda.compile_ptx(function, types.void(*signature), cc=capabilities[0])
    finally:
        module.get_current_device = original
    called = functions_called(libraries[-1].get_llvm_str())
    return tuple(Code("".join(libraries[-1].get_asm_strs(cc=capability)), called) for capability in capabilities)


def code_of(kernel: Any, kinds: tuple[Any, ...]) -> Code | None:
    """The code of a compiled kernel; None in the simulator, which has none."""
    if SIMULATED:
        return None
    library = kernel.overloads[kinds].library
    return Code(library.get_asm_str(), functions_called(library.get_llvm_str()))


def compile_error(function: Callable[..., Any], signature: Any) -> Exception | None:
    """Numba's exception where CUDA cannot compile the part ``function`` by itself; None where it can."""
    try:
        ptx_of(getattr(function, "py_func", function), signature, (8, 0))
    except REFUSALS as error:
        return error
    return None


def strided(n: int) -> Any:
    """Numba's type of a thread's view of an array of ``n`` dimensions whose last index is the chain."""
    return types.Array(types.float64, n, "A")


def device_function(function: Callable[..., Any]) -> Any:
    """A part as CUDA kernels can call it: not compiled for the CPU, so that each device compiles its own."""
    from numba import njit

    return njit(error_model="numpy", _nrt=False)(getattr(function, "py_func", function))


def interpreted(function: Callable[..., Any], inner: frozenset[str]) -> Any:
    """``function`` as plain Python, together with those it calls whose ``stored_name`` is in ``inner``.

    Other functions that they call are compiled. A function and its float32 twin have the same name.
    It is for the simulator, which runs Python: compiling the engine's loop for it would take a minute.
    """
    plain: Any = getattr(function, "py_func", function)
    read = {name: plain.__globals__[name] for name in plain.__code__.co_names if name in plain.__globals__}
    replacements = {name: interpreted(value, inner) for name, value in read.items() if is_one_of(value, inner)}
    intrinsics = {name: value for name, value in read.items() if isinstance(value, _Intrinsic)}
    replacements |= {name: BY_VALUE.get(value) or compiled_call(value) for name, value in intrinsics.items()}
    return FunctionType(plain.__code__, {**plain.__globals__, **replacements}, plain.__name__)


def is_one_of(value: Any, names: frozenset[str]) -> bool:
    """Whether ``value`` is a function, compiled or not, of one of these stored names."""
    return isinstance(value, Dispatcher | FunctionType) and stored_name(value) in names


# The functions of ``argument_pack`` in plain Python.
BY_VALUE: dict[Any, Callable[..., Any]] = {
    pack_arguments: lambda part, arguments: arguments,
    without_last: lambda arguments: arguments[:-1],
    call_part: lambda part, arguments, *numbers: part(*arguments, *numbers),
    as_parts: lambda parts: parts,
}


def compiled_call(function: Any) -> Any:
    """An intrinsic in a form that Python can call."""

    def call(*arguments: Any) -> Any:
        return function(*arguments)

    return device_function(call)


if SIMULATED:

    def raw_array(array: Any) -> Any:
        """The NumPy array kernel_helper a simulator's array, because compiled functions need it."""
        return array._item._ary

else:

    @inlined
    def raw_array(array: Any) -> Any:
        """The array itself; in the simulator, see above."""
        return array


def kernel_helper(function: Callable[..., Any]) -> Any:
    """``function`` as kernels call it: compiled with them, or plain Python in the simulator."""
    return function if SIMULATED else device_function(function)
