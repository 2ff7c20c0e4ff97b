"""Stamps of functions of scripts: functions that differ in one thing have different ones, and equal ones the same."""

import functools
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from toolkit._compiler.disk_cache import content_stamp

ROOT = Path(__file__).resolve().parents[3]
INTRINSIC = """
def made_intrinsic(factor):
    @intrinsic
    def scaled(typing_context, x):
        def generate(context, builder, signature, args):
            return builder.fmul(args[0], context.get_constant(types.float64, factor))

        return x(x), generate

    return scaled
"""
SCRIPT = (
    """
import collections
import enum
import functools
import math
import types as python_types
from typing import NamedTuple

import numpy as np
from numba import njit, types
from numba.extending import intrinsic

from toolkit._compiler.decorators import inlined, kernel
from toolkit.maths.elementary import exp

GLOBAL = 4.0
TABLE = np.array([1.0, 2.0, 3.0])
NUMBERS = (1.0, (2, 3.0))
SPACE = python_types.SimpleNamespace
module = python_types.ModuleType("somebodys_other_module")
module.constant = 0.5


class Point(NamedTuple):
    x: float
    y: float

    @property
    def tilt(self):
        return 1.0


class Colour(enum.IntEnum):
    RED = 1
    BLUE = 2


ORIGIN = Point(1.0, 2.0)


LONG = (1.0,) * 70
tilt = 0.125


def deepest(x):
    return x * 1.5


def slope_of(slope):
    @njit
    def line(x):
        return slope * x

    return line


@njit
def deeper(x):
    return deepest(x) + 1.0


@njit(error_model="numpy", fastmath=False)
def deep(x):
    return deeper(x) / 3.0


@njit(locals={"y": types.float64})
def with_local(x):
    y = x + 1
    return y


# It compiles for every changed script, so without what Python itself would call.
@njit(["float64(float64)"], no_cpython_wrapper=True, no_cfunc_wrapper=True)
def declared(x):
    return x + 1


library = math
one, other = slope_of(0.5), slope_of(0.25)
which = njit(one.py_func)
RECORDS = np.zeros(1001, [("a", float)])
ROW = np.zeros(1, [("row", float, 1001)])[0]


@njit
@functools.wraps(np.linalg.norm)
def norm(x):
    return 1.25 * x


"""
    + INTRINSIC
    + """

def constant_of(factor):
    @intrinsic
    def constant(typing_context):
        def generate(context, builder, signature, args):
            return context.get_constant(types.float64, factor)

        return types.float64(), generate

    return constant


def multiplied(factor, integer, array, scale, constant, callee, first, second):
    def inner(x):
        return scale(x) * factor + integer

    def target(x, tilt=0.5, *, lean=0.25):
        def nested(y):
            return y + 7.0

        point = Point(x, tilt)
        words = "words"
        return (
            inner(x) + array[0] + callee(x) + GLOBAL + TABLE[1] + NUMBERS[0] + module.constant + exp(x) + math.sqrt(x)
            + nested(point.x) + deep(x) + with_local(x) + declared(x) + lean + constant() + ORIGIN.x + Colour.BLUE
            + len(words) + LONG[0] + first(x) + second(x) + point.tilt + library.exp(x) + one(x) + other(x) + which(x)
            + RECORDS[0].a + ROW.row[0] + norm(x)
        )

    return target


def function():
    array = np.array([1.0, 2.0, 3.0])
    return multiplied(2.0, 3, array, made_intrinsic(1.25), constant_of(8.0), deepest, slope_of(1.0), slope_of(2.0))
"""
)
CHANGES = {
    "a constant": ("y + 7.0", "y + 7.5"),
    "an int for a float": ("y + 7.0", "y + 7"),
    "an operator": ("y + 7.0", "y - 7.0"),
    "a string": ('"words"', '"word"'),
    "a closed-over float": ("multiplied(2.0, 3,", "multiplied(2.5, 3,"),
    "a closed-over int for a float": ("multiplied(2.0, 3,", "multiplied(2, 3,"),
    "a closed-over float for an int": ("multiplied(2.0, 3,", "multiplied(2.0, 3.0,"),
    "a closed-over bool for an int": ("multiplied(2.0, 3,", "multiplied(2.0, True,"),
    "a closed-over scalar's type": ("multiplied(2.0, 3,", "multiplied(np.float64(2.0), 3,"),
    "an entry of a closed-over array": ("array = np.array([1.0, 2.0, 3.0])", "array = np.array([1.0, 2.0, 4.0])"),
    "the dtype of a closed-over array": ("array = np.array([1.0, 2.0, 3.0])", "array = np.array([1, 2, 3])"),
    "the shape of a closed-over array": ("array = np.array([1.0, 2.0, 3.0])", "array = np.array([[1.0, 2.0, 3.0]])"),
    "the order of a closed-over array": (
        "array = np.array([1.0, 2.0, 3.0])",
        "array = np.array([9.0, 1.0, 9.0, 2.0, 9.0, 3.0])[1::2]",
    ),
    "a closed-over array that is read only": (
        "array = np.array([1.0, 2.0, 3.0])",
        "array = np.array([1.0, 2.0, 3.0]); array.flags.writeable = False",
    ),
    "a number in an intrinsic of a closure": ("made_intrinsic(1.25)", "made_intrinsic(1.5)"),
    "a number in another intrinsic": ("constant_of(8.0)", "constant_of(9.0)"),
    "the code of an intrinsic": ("builder.fmul(", "builder.fadd("),
    "which function is called": ("constant_of(8.0), deepest,", "constant_of(8.0), deeper,"),
    "the first of two functions of one factory": ("slope_of(1.0), slope_of(2.0)", "slope_of(3.0), slope_of(2.0)"),
    "the second of two functions of one factory": ("slope_of(1.0), slope_of(2.0)", "slope_of(1.0), slope_of(3.0)"),
    "the order of two functions of one factory": ("slope_of(1.0), slope_of(2.0)", "slope_of(2.0), slope_of(1.0)"),
    "a type in a long tuple": ("(1.0,) * 70", "(1.0,) * 69 + (1,)"),
    "a global with the name of an argument": ("tilt = 0.125", "tilt = 0.25"),
    "a global": ("GLOBAL = 4.0", "GLOBAL = 5.0"),
    "a global's type": ("GLOBAL = 4.0", "GLOBAL = 4"),
    "a global array": ("TABLE = np.array([1.0, 2.0", "TABLE = np.array([1.0, 2.5"),
    "a global tuple": ("(1.0, (2, 3.0))", "(1.0, (2, 3.5))"),
    "a type in a global tuple": ("(1.0, (2, 3.0))", "(1.0, (2.0, 3.0))"),
    "a member of a module": ("module.constant = 0.5", "module.constant = 0.75"),
    "a function two calls down": ("return x * 1.5", "return x * 1.75"),
    "flags of a function down there": ("fastmath=False", "fastmath=True"),
    "the error model of a function down there": ('error_model="numpy"', 'error_model="python"'),
    "the type of a local": ('{"y": types.float64}', '{"y": types.float32}'),
    "a declared signature": ("float64(float64)", "float32(float32)"),
    "a declared type of the result": ("float64(float64)", "float32(float64)"),
    "a module for another": ("library = math", "library = np"),
    "the function in a compiled one": ("njit(one.py_func)", "njit(other.py_func)"),
    "a function that says it is NumPy's": ("1.25 * x", "1.75 * x"),
    "an entry of an array of records": ("RECORDS = np.zeros(1001,", "RECORDS = np.ones(1001,"),
    "an entry in a long record": ("ROW = np.zeros(1,", "ROW = np.ones(1,"),
    "the kind of an enumeration": ("class Colour(enum.IntEnum)", "class Colour(enum.Enum)"),
    "a default": ("tilt=0.5", "tilt=0.75"),
    "a keyword's default": ("lean=0.25", "lean=0.5"),
    "the order of a named tuple's fields": ("    x: float\n    y: float\n", "    y: float\n    x: float\n"),
    "a named tuple's default": ("    y: float\n", "    y: float = 1.0\n"),
    "a value in a named tuple": ("Point(1.0, 2.0)", "Point(1.0, 2.5)"),
    "a member of an enumeration": ("BLUE = 2", "BLUE = 3"),
    "a library's function": ("exp(x) + math.sqrt(x)", "exp(x) + math.log(x)"),
    "a function of ours": ("import exp\n", "import log as exp\n"),
    "a kernel of ours for an inlined one": ("@njit\ndef deeper", "@kernel\ndef deeper"),
    "an inlined one for a plain one": ("@njit\ndef deeper", "@inlined\ndef deeper"),
    "the order of arguments": ("def multiplied(factor, integer,", "def multiplied(integer, factor,"),
}


def made(source, name="somebodys_script"):
    """The function that a script of ``source`` makes, whose classes are found by their names meanwhile."""
    module = sys.modules[name] = ModuleType(name)
    exec(compile(source, "script.py", "exec"), vars(module))
    return module.function()


def changed(what):
    """The script with one thing changed."""
    before, after = CHANGES[what]
    assert SCRIPT.count(before) == 1, what
    return SCRIPT.replace(before, after)


@functools.cache
def stamps():
    """Of the script and of all changed ones, by what was changed."""
    return {what: content_stamp(made(changed(what) if what else SCRIPT)) for what in ("", *CHANGES)}


def test_functions_that_differ_in_one_thing_have_different_stamps():
    found = stamps()
    assert None not in found.values()
    again = content_stamp(made(SCRIPT))
    assert again == found[""]
    same = [what for what in CHANGES if found[what] == again]
    assert not same
    assert len(set(found.values())) == len(found)


def test_another_process_finds_the_same_stamps():
    program = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n" + (
        "from test_content_stamp import stamps\nprint(*stamps().values())"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "7"}
    printed = subprocess.run(
        [sys.executable, "-c", program], env=environment, check=True, text=True, capture_output=True
    ).stdout
    assert printed.split() == list(stamps().values())


OURS = (
    """
from numba import types
from numba.extending import intrinsic


"""
    + INTRINSIC
    + """

def made_block(scaled, default):
    def block(x, times=default):
        return scaled(x) + times(x)

    return block


def function():
    return made_block(made_intrinsic({factor}), made_intrinsic({default}))
"""
)


@pytest.mark.parametrize("change", [{"factor": "2.0"}, {"default": "2.0"}])
def test_functions_that_ours_make_count_with_their_intrinsics(change):
    """A function of this distribution is known by its source, but not what a factory has put into its closure."""
    usual = {"factor": "1.0", "default": "1.0"}
    texts = [OURS.format(**usual), OURS.format(**(usual | change)), OURS.format(**usual)]
    one, other, same = (content_stamp(made(text, "sysid.somewhere")) for text in texts)
    assert one == same
    assert None not in (one, other)
    assert one != other


OVERLOADED = """
from numba.extending import overload


def made_block(factor):
    def scaled(x):
        pass

    @overload(scaled)
    def scaled_compiled(x):
        return lambda x: factor * x

    def block(x):
        return scaled(x)

    return block


def function():
    return made_block({factor})
"""
WRITTEN = """
import numpy as np


def function():
    space = {{"__name__": __name__, "row": np.array([{factor}])}}
    exec("def block(x):\\n    return row[0] * x", space)
    return space["block"]
"""


@pytest.mark.parametrize("text", [OVERLOADED, WRITTEN], ids=["overloads", "texts"])
def test_functions_that_ours_make_count_with_what_they_are_made_of(text):
    texts = [text.format(factor=factor) for factor in (1.0, 2.0, 1.0)]
    one, other, same = (content_stamp(made(text, "sysid.somewhere")) for text in texts)
    assert one == same
    assert None not in (one, other)
    assert one != other


UNKNOWN = {
    "an object": "class Opaque: pass\nthing = Opaque()",
    "an array of objects": "import numpy as np\nthing = np.array([object()])",
    "a class": "class Opaque: pass\nthing = Opaque",
    "a function that is overloaded": (
        "from numba.extending import overload\ndef thing(x): return x\n@overload(thing)\ndef own(x): return lambda x: x"
    ),
    "an intrinsic that closes over an object": (
        "from numba.extending import intrinsic\ndef make(o):\n"
        "    @intrinsic\n    def own(context, x):\n        return x(x), lambda c, b, s, a: o.generate(a[0])\n"
        "    return own\nclass Opaque: pass\nthing = make(Opaque())"
    ),
    "an intrinsic that imports": (
        "from numba.extending import intrinsic\n@intrinsic\ndef thing(context, x):\n    import math\n"
        "    return x(x), lambda c, b, s, a: math.pi"
    ),
    "a module that makes its members": (
        "import types\nthing = types.ModuleType('lazy')\nthing.__getattr__ = lambda name: 1.0"
    ),
    "a C function by its address": "import ctypes\nthing = ctypes.CFUNCTYPE(ctypes.c_double)(lambda: 1.0)",
    "a function pointer": "from numba import cfunc\n@cfunc('float64(float64)')\ndef thing(x): return x",
    "a typed list": "from numba.typed import List\nthing = List([1.0, 2.0])",
    "a generator": "thing = (x for x in [1])",
    "a ufunc of one's own": "from numba import vectorize\n@vectorize(['float64(float64)'])\ndef thing(x): return x",
    "an int that is written as it likes": "class Own(int):\n    def __repr__(self): return '1'\nthing = Own(2)",
    "a set of objects": "thing = {object()}",
    "an open file": "import io\nthing = io.StringIO('x')",
}


KNOWN_BY_SOURCE = (  # where they are ours
    "a class", "a function that is overloaded", "a ufunc of one's own",
    "an intrinsic that imports",
)  # fmt: skip


@pytest.mark.parametrize("where", ["global", "closure", "default", "in a tuple", "of ours"])
@pytest.mark.parametrize("what", UNKNOWN)
def test_what_cannot_be_described_has_no_stamp(what, where):
    holders = {
        "global": "def function():\n    def target(x): return thing\n    return target",
        "closure": (
            "def make(own):\n    def target(x): return own\n    return target\ndef function(): return make(thing)"
        ),
        "default": "def function():\n    def target(x, own=thing): return own\n    return target",
        "in a tuple": "pair = (1.0, (thing, 2))\ndef function():\n    def target(x): return pair\n    return target",
    }
    holders["of ours"] = holders["closure"]
    source = f"{UNKNOWN[what]}\n{holders[where]}\n"
    name = "sysid.somewhere" if where == "of ours" else "somebodys_script"
    assert (content_stamp(made(source, name)) is None) == (where != "of ours" or what not in KNOWN_BY_SOURCE)
