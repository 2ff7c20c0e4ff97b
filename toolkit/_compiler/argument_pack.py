"""How the engine calls a part: with a pointer to its arguments, which are laid down once and serve every step.

An array is handed over as seven or nine numbers and a block's state as hundreds, so that a call by value costs more
than a step of one chain. What a part is given by value are the plain numbers at the end of its arguments. On a device,
where all calls are inlined, and in its simulator, a part is a function, and its arguments are a tuple.
"""

from typing import Any

from llvmlite import ir
from numba import typeof, types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic, overload

from .lowering import WIDTH, WideLower, compiler_with

INLINE = {"forceinline": True, "error_model": "numpy", "_nrt": False}
POINTER = ir.IntType(8).as_pointer()


def lasting(arguments: tuple[Any, ...]) -> int:
    """How many arguments are laid down: all from the first to the last that is no plain number."""
    numbers = [isinstance(kind, types.Number | types.Boolean) for kind in arguments]
    return len(numbers) - (numbers[::-1].index(False) if False in numbers else len(numbers))


def handed_name(described: Any) -> str:
    """What the linker calls the form of a function that takes its arguments by a pointer."""
    return f"handed.{described.llvm_func_name}"


class HandedLower(WideLower):
    """A part's translation, and beside it the form that the engine calls."""

    def create_cfunc_wrapper(self) -> None:
        """Load the arguments, and do what the function does: inlined, or they would be handed over once more."""
        context, described = self.context, self.fndesc
        module = context.create_module("handed")
        kinds = [context.get_value_type(kind) for kind in described.argtypes]
        n_lasting = lasting(described.argtypes)
        callee_type = context.call_conv.get_function_type(described.restype, described.argtypes)
        callee = ir.Function(module, callee_type, described.llvm_func_name)
        own_type = ir.FunctionType(ir.VoidType(), [POINTER, *kinds[n_lasting:]])
        function = ir.Function(module, own_type, handed_name(described))
        set.add(function.attributes, WIDTH)
        builder = ir.IRBuilder(function.append_basic_block())
        room = builder.bitcast(function.args[0], ir.LiteralStructType(kinds[:n_lasting]).as_pointer())
        given = [builder.load(cgutils.gep_inbounds(builder, room, 0, i)) for i in range(n_lasting)]
        status, _ = context.call_conv.call_function(
            builder, callee, described.restype, described.argtypes, [*given, *function.args[1:]],
            attrs=("alwaysinline",),
        )  # fmt: skip
        tell_error(context, builder, status, described.qualname)
        builder.ret_void()
        self.library.add_ir_module(module)


def tell_error(context: Any, builder: Any, status: Any, where: str) -> None:
    """Where a call ended with an exception, write it to standard error, as no one is there to catch it."""
    with builder.if_then(status.is_error, likely=False):
        python = context.get_python_api(builder)
        lock = python.gil_ensure()
        context.call_conv.raise_error(builder, python, status)
        place = python.string_from_string(context.insert_const_string(builder.module, where))
        python.err_write_unraisable(place)
        python.decref(place)
        python.gil_release(lock)


HandedCompiler = compiler_with(HandedLower)


def handed_address(compiled: Any) -> int:
    """The address of that form of a function compiled by ``HandedCompiler`` for one signature."""
    (result,) = compiled.overloads.values()
    return address_in(result, handed_name(result.fndesc))


def address_in(result: Any, name: str) -> int:
    """The address of a form of a compiled function. Raises TypeError where it was compiled without it."""
    address = int(result.library.get_pointer_to_function(name))
    if address == 0:
        form = name.partition(".")[0]
        raise TypeError(f"{result.fndesc.qualname} must be compiled to be called so: there is no {form!r}")
    return address


def call(part, place, *numbers):
    """Call ``part`` with what is laid down at ``place``, and numbers by value."""
    part(*place, *numbers)


@overload(call, jit_options=INLINE)
def call_compiled(part, place, *numbers):
    """A call by address, or on a device of a function."""
    if isinstance(part, types.FunctionType):
        return lambda part, place, *numbers: call_at(part, place, numbers)
    return lambda part, place, *numbers: part(*place, *numbers)


def check_types(typing_context: Any, wanted: Any, given: Any, what: str) -> None:
    """Raise TypingError where a part is not given what its signature says: the wrong bytes would be read."""
    if len(wanted) != len(given):
        raise TypingError(f"a part of {len(wanted)} {what} is given {len(given)}")
    for kind, own in zip(wanted, given, strict=True):
        if typing_context.can_convert(own, kind) is None:
            raise TypingError(f"a part whose {what} include {kind} is given {own}")


@intrinsic
def laid_down(typing_context, part, arguments):
    """Where ``part`` finds its lasting ``arguments``, a tuple: a pointer to the caller's stack, or the tuple itself.

    An intrinsic, as what a function that is inlined puts on the stack goes with it.
    """
    if not isinstance(part, types.FunctionType):
        return arguments(part, arguments), lambda context, builder, signature, given: given[1]
    wanted = part.signature.args[: lasting(part.signature.args)]
    check_types(typing_context, wanted, arguments, "lasting arguments")

    def generate(context, builder, signature, given):
        kinds = [context.get_value_type(kind) for kind in wanted]
        room = cgutils.alloca_once(builder, ir.LiteralStructType(kinds))
        for i, (kind, own) in enumerate(zip(wanted, signature.args[1], strict=True)):
            value = context.cast(builder, builder.extract_value(given[1], i), own, kind)
            builder.store(value, cgutils.gep_inbounds(builder, room, 0, i))
        return builder.bitcast(room, POINTER)

    return types.voidptr(part, arguments), generate


@intrinsic
def call_at(typing_context, part, place, numbers):
    """Call the function whose address ``part`` begins with."""
    wanted = part.signature.args[lasting(part.signature.args) :]
    check_types(typing_context, wanted, numbers, "numbers")

    def generate(context, builder, signature, given):
        kinds = [context.get_value_type(kind) for kind in wanted]
        kind_of_call = ir.FunctionType(ir.VoidType(), [POINTER, *kinds]).as_pointer()
        address = builder.bitcast(builder.extract_value(given[0], 0), kind_of_call)
        values = [
            context.cast(builder, builder.extract_value(given[2], i), own, kind)
            for i, (kind, own) in enumerate(zip(wanted, signature.args[2], strict=True))
        ]
        builder.call(address, [given[1], *values])
        return context.get_dummy_value()

    return types.void(part, place, numbers), generate


def told(part: Any) -> Any:
    """An intrinsic that takes ``part`` in, and calls it as by its address: what it raises is told, and not raised."""

    @intrinsic
    def call_told(typing_context, arguments):
        signature = typing_context.resolve_function_type(typeof(part), tuple(arguments), {})

        def generate(context, builder, _, given):
            result = part.overloads[signature.args]
            context.active_code_library.add_linking_library(result.library)
            values = [builder.extract_value(given[0], i) for i in range(len(arguments))]
            status, _ = context.call_internal_no_propagate(builder, result.fndesc, signature, values)
            tell_error(context, builder, status, result.fndesc.qualname)
            return context.get_dummy_value()

        return types.void(arguments), generate

    return call_told
