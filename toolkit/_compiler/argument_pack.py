"""How the engine calls a part: with a pointer to a struct of its arguments, packed once per call of the engine.

Numba passes an array as seven or nine numbers and a block's state as hundreds, so a call by value would cost more than
a step of one chain. Only the plain numbers at the end of a part's arguments are passed by value. On a device, where all
calls are inlined, and in its simulator, a part is a function and its packed arguments are a tuple.
"""

from typing import Any

from llvmlite import ir
from numba import typeof, types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic

from ..errors import shown
from .lowering import WIDTH, WideLower, compiler_with
from .numba_private import impl_ret_borrowed

POINTER = ir.IntType(8).as_pointer()


def n_packed(arguments: tuple[Any, ...]) -> int:
    """How many arguments are packed: all up to the last one that is not a plain number."""
    is_number = [isinstance(kind, types.Number | types.Boolean) for kind in arguments]
    return len(is_number) - (is_number[::-1].index(False) if False in is_number else len(is_number))


def packed_name(described: Any) -> str:
    """The symbol of a function's entry point that takes a pointer to its packed arguments."""
    return f"packed.{described.llvm_func_name}"


class PackedLower(WideLower):
    """Lower a part, and add the entry point that the engine calls."""

    def create_cfunc_wrapper(self) -> None:
        """Load the packed arguments and call the function, inlined so that they are not passed a second time."""
        module = self.context.create_module("packed")
        define_packed(self.context, module, self.fndesc)
        self.library.add_ir_module(module)


def define_packed(context: Any, module: Any, described: Any, otherwise: Any = None) -> Any:
    """Define the entry point of a function that takes a pointer to its packed arguments, in a module of LLVM IR.

    otherwise: a function with the same arguments that is called where this one raises; None: the exception is written
    to standard error, as no caller can catch it.
    """
    kinds = [context.get_value_type(kind) for kind in described.argtypes]
    n_first = n_packed(described.argtypes)
    callee = context.declare_function(module, described)
    own_type = ir.FunctionType(ir.VoidType(), [POINTER, *kinds[n_first:]])
    function = ir.Function(module, own_type, packed_name(described))
    set.add(function.attributes, WIDTH)
    builder = ir.IRBuilder(function.append_basic_block())
    struct = builder.bitcast(function.args[0], ir.LiteralStructType(kinds[:n_first]).as_pointer())
    loaded = [builder.load(cgutils.gep_inbounds(builder, struct, 0, i)) for i in range(n_first)]
    status, _ = context.call_conv.call_function(
        builder, callee, described.restype, described.argtypes, [*loaded, *function.args[1:]], attrs=("alwaysinline",)
    )
    if otherwise is None:
        report_error(context, builder, status, described.qualname)
    else:
        with builder.if_then(status.is_error, likely=False):
            instead = context.declare_function(module, otherwise)
            context.call_conv.call_function(
                builder, instead, otherwise.restype, otherwise.argtypes, [*loaded, *function.args[1:]]
            )
    builder.ret_void()
    return function


def report_error(context: Any, builder: Any, status: Any, where: str) -> None:
    """Write the exception of a call to standard error: no caller can catch it."""
    with builder.if_then(status.is_error, likely=False):
        python = context.get_python_api(builder)
        lock = python.gil_ensure()
        context.call_conv.raise_error(builder, python, status)
        text = python.string_from_string(context.insert_const_string(builder.module, where))
        python.err_write_unraisable(text)
        python.decref(text)
        python.gil_release(lock)


PackedCompiler = compiler_with(PackedLower)


def packed_address(compiled: Any) -> int:
    """The address of the packed entry point of a function that ``PackedCompiler`` compiled for one signature."""
    (result,) = compiled.overloads.values()
    return address_in(result, packed_name(result.fndesc))


def address_in(result: Any, name: str) -> int:
    """The address of an entry point of a compiled function. Raises TypeError where it was compiled without it."""
    address = int(result.library.get_pointer_to_function(name))
    if address == 0:
        form = name.partition(".")[0]
        raise TypeError(f"{result.fndesc.qualname} must be compiled to be called so: there is no {shown(form)}")
    return address


@intrinsic
def call_part(typing_context, part, address, *numbers):
    """Call ``part`` with the arguments packed at ``address``, and ``numbers`` by value.

    It is an intrinsic because a function between the two would take the whole state once more, number by number.
    """
    numbers = tuple(map(types.unliteral, numbers))
    if isinstance(part, types.FunctionType):
        generate = generate_call_by_address(typing_context, part, numbers)
    else:
        generate = generate_call(part, typing_context.resolve_function_type(part, (*address.types, *numbers), {}))
    return types.void(part, address, types.StarArgTuple(numbers)), generate


def generate_call_by_address(typing_context: Any, part: Any, numbers: tuple[Any, ...]) -> Any:
    """How ``call_part`` calls the function whose address ``part`` begins with."""
    expected = part.signature.args[n_packed(part.signature.args) :]
    check_types(typing_context, expected, numbers, "numbers")

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kinds = [context.get_value_type(kind) for kind in expected]
        kind_of_call = ir.FunctionType(ir.VoidType(), [POINTER, *kinds]).as_pointer()
        address = builder.bitcast(builder.extract_value(args[0], 0), kind_of_call)
        builder.call(address, [args[1], *converted(context, builder, args[2], numbers, expected)])
        return context.get_dummy_value()

    return generate


def generate_call(part: Any, resolved: Any) -> Any:
    """How ``call_part`` calls a function that is compiled with its caller."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        packed = signature.args[1].types
        values = converted(context, builder, args[1], packed, resolved.args[: len(packed)])
        values += converted(context, builder, args[2], signature.args[2].types, resolved.args[len(packed) :])
        function = context.get_function(part, resolved)
        context.add_linking_libs(getattr(function, "libs", ()))
        function(builder, values)
        return context.get_dummy_value()

    return generate


def converted(context: Any, builder: Any, values: Any, own: Any, expected: Any) -> list[Any]:
    """The items of a tuple of types ``own``, as values of types ``expected``."""
    return [
        context.cast(builder, builder.extract_value(values, i), kind, wanted)
        for i, (kind, wanted) in enumerate(zip(own, expected, strict=True))
    ]


def with_address(context: Any, builder: Any, kind: types.FunctionType, address: Any) -> Any:
    """The function pointer of type ``kind`` to an ``address``."""
    return builder.insert_value(cgutils.get_null_value(context.get_value_type(kind)), address, 0)


def tuple_by_address(kind: types.BaseTuple) -> Any:
    """An intrinsic: the tuple of type ``kind``, of int64 and parts, by an array of the numbers and addresses.

    An array is passed quickly; of objects that stand for parts, Numba would ask type and address by Python at every
    call. What is no array, as where parts are compiled with their caller, stays as it is.
    """

    @intrinsic
    def unpacked(typing_context, given):
        if not isinstance(given, types.Array):
            return given(given), lambda context, builder, signature, args: impl_ret_borrowed(
                context, builder, given, args[0]
            )

        def generate(context, builder, signature, args):
            data, items = context.make_array(given)(context, builder, args[0]).data, []
            for i, one in enumerate(kind.types):
                number = builder.load(cgutils.gep_inbounds(builder, data, i))
                if isinstance(one, types.FunctionType):
                    number = with_address(context, builder, one, builder.inttoptr(number, POINTER))
                items.append(number)
            return impl_ret_borrowed(context, builder, kind, context.make_tuple(builder, kind, items))

        return kind(given), generate

    return unpacked


@intrinsic
def without_last(typing_context, address):
    """What is packed at ``address``, less the last of the packed arguments: for a part that takes the others alone.

    It is the same address, as a struct begins with its first fields.
    """
    if not isinstance(address, types.BaseTuple):
        return address(address), lambda context, builder, signature, args: args[0]
    kind = types.Tuple(address.types[:-1])

    def generate(context, builder, signature, args):
        items = [builder.extract_value(args[0], i) for i in range(len(kind))]
        return impl_ret_borrowed(context, builder, kind, context.make_tuple(builder, kind, items))

    return kind(address), generate


def check_types(typing_context: Any, expected: Any, received: Any, what: str) -> None:
    """Raise TypingError where arguments do not match a part's signature: it would read the wrong bytes."""
    if len(expected) != len(received):
        raise TypingError(f"a part of {len(expected)} {what} is given {len(received)}")
    for kind, own in zip(expected, received, strict=True):
        if typing_context.can_convert(own, kind) is None:
            raise TypingError(f"a part whose {what} include {kind} is given {own}")


@intrinsic
def pack_arguments(typing_context, part, arguments):
    """Pack ``arguments``, a tuple, for ``part``: a pointer to a struct on the caller's stack, or the tuple itself.

    It is an intrinsic because stack variables of an inlined function do not outlive that function.
    """
    if not isinstance(part, types.FunctionType):
        return arguments(part, arguments), (
            lambda context, builder, signature, args: impl_ret_borrowed(context, builder, arguments, args[1])
        )
    expected = part.signature.args[: n_packed(part.signature.args)]
    check_types(typing_context, expected, arguments, "packed arguments")

    def generate(context, builder, signature, args):
        kinds = [context.get_value_type(kind) for kind in expected]
        struct = cgutils.alloca_once(builder, ir.LiteralStructType(kinds))
        for i, value in enumerate(converted(context, builder, args[1], signature.args[1].types, expected)):
            builder.store(value, cgutils.gep_inbounds(builder, struct, 0, i))
        return builder.bitcast(struct, POINTER)

    return types.voidptr(part, arguments), generate


def call_reporting(part: Any) -> Any:
    """An intrinsic that calls ``part`` directly; as a call by address does, it reports exceptions without raising."""

    @intrinsic
    def call_and_report(typing_context, arguments):
        signature = typing_context.resolve_function_type(typeof(part), tuple(arguments), {})

        def generate(context, builder, _, args):
            result = part.overloads[signature.args]
            context.active_code_library.add_linking_library(result.library)
            values = [builder.extract_value(args[0], i) for i in range(len(arguments))]
            status, _ = context.call_internal_no_propagate(builder, result.fndesc, signature, values)
            report_error(context, builder, status, result.fndesc.qualname)
            return context.get_dummy_value()

        return types.void(arguments), generate

    return call_and_report
