"""Functions that compiled code calls are made for compiled code alone, until Python calls them too.

Numba gives every function that it meets on its way machine code of its own and a form that Python can call. Of a
function that another one takes in neither is ever used, and a block's state has hundreds of numbers to unpack.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher
from numba.core.sigutils import normalize_signature

UNWRAPPED = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


class InnerLibrary(JITCodeLibrary):  # type: ignore[misc]
    """A function in LLVM's language, to be taken in by others."""

    def _finalize_final_module(self) -> None:
        """As Numba's, less the machine code."""
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Raises RuntimeError: there is no machine code, and Numba's answer could be an address of 0."""
        raise RuntimeError(f"{name} was compiled to be taken in by other functions, and has no address")


class Inner(CPUDispatcher):  # type: ignore[misc]
    """A function that others call, compiled for each of their types; for Python when Python calls it."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._for_code: set[tuple[Any, ...]] = set()  # the types for which there is a form for compiled code alone

    def is_for_code(self, args: tuple[Any, ...]) -> bool:
        """Whether what was compiled for these types is for compiled code alone."""
        return args in self._for_code

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Numba's type of a call from compiled code, for which the function is compiled without a wrapper."""
        with global_compiler_lock, self._unwrapped():
            return super().get_call_template(args, kws)

    @contextmanager
    def _unwrapped(self) -> Iterator[None]:
        before = dict(self.targetoptions)
        self.targetoptions.update(UNWRAPPED)
        try:
            yield
        finally:
            self.targetoptions.clear()
            self.targetoptions.update(before)

    def _is_unwrapped(self) -> bool:
        return bool(UNWRAPPED.items() <= self.targetoptions.items())

    def compile(self, sig: Any) -> Any:
        """Compile for ``sig``, anew where there is a form for compiled code and this call is from Python."""
        with global_compiler_lock:
            args = tuple(normalize_signature(sig)[0])
            if self._is_unwrapped() or args not in self._for_code or not self._can_compile:
                return super().compile(sig)
            form = self.overloads.pop(args)
            try:
                return super().compile(sig)
            except BaseException:
                self.overloads[args] = form
                raise

    def get_compile_result(self, sig: Any) -> Any:
        """What was compiled for ``sig``, whose address is wanted."""
        with global_compiler_lock:
            if tuple(sig.args) in self._for_code:
                self.compile(sig)
            return super().get_compile_result(sig)

    def add_overload(self, cres: Any) -> None:
        """Keep what was compiled, and tell Numba of what Python can call."""
        args = tuple(cres.signature.args)
        if self._is_unwrapped():
            self._for_code.add(args)
            self.overloads[args] = cres
        else:
            self._for_code.discard(args)
            super().add_overload(cres)


def inner(pipeline_class: Any, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Decorator of functions that compiled code calls, as ``njit`` with these options."""

    def decorate(function: Callable[..., Any]) -> Any:
        return Inner(function, targetoptions={"nopython": True, **options}, pipeline_class=pipeline_class)

    return decorate
