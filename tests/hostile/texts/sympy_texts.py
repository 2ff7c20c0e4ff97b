"""Text that would be code: in SymPy expressions, in names, and in terms of libraries."""

import ast
import inspect

from sysid import libraries, systems
from targets import from_sympy
from tests.hostile.texts.cases import Case

RUN = "__import__('pathlib').Path('{}/ran').touch()"
BREAKS = '"""\n    0\n{}\ndef other():\n    """'  # ends the docstring of generated code, and begins another


def with_sympy(make):
    """A call of ``make(sympy, x, text)``; text: code that leaves a file in the case's folder."""

    def call(folder):
        import sympy

        return make(sympy, sympy.Symbol("x"), RUN.format(folder))

    return call


def slope(sp, x, formula, **options):
    """The system dx/dt = formula."""
    return systems.from_sympy({x: formula}, **{"parameters": [], "usual": [], "start": [1.0]} | options)


def own_class(sp, base, text):
    """A class of one's own that prints ``text``."""
    body = {
        "__str__": lambda self: text,
        "__repr__": lambda self: text,
        "_sympystr": lambda self, printer: text,
        "is_number": True,
        "is_real": True,
        "is_finite": True,
        "__module__": "sympy.core.add",
    }
    return type("Add", (base,), body)


def bad_number(base, text):
    """A number that prints ``text``."""
    return type("number", (base,), {"__repr__": lambda self: text, "__str__": lambda self: text})(2)


def term(text):
    """A library of a term with this text, evaluated."""
    return libraries.Library(("x", "y"), (libraries.Term("t", text),)).evaluate([[1.0, 2.0]])


def is_clean(result):
    """Whether the generated code is one function that looks up nothing to run."""
    function = getattr(result, "energy_gradient", None) or result.rhs
    tree = ast.parse(inspect.getsource(getattr(function, "py_func", function)))
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return len(tree.body) == 1 and not any("import" in name or "Path" in name for name in names)


def nested(sp, x, n):
    """Sines of sines."""
    for _ in range(n):
        x = sp.sin(x) + 1
    return x


TYPE, VALUE = (TypeError,), (ValueError,)
SYSTEM, ENERGY = (r"expressions\[x\]",), ("energy",)
CASES = [
    *[
        Case(f"sympy system: {name}", with_sympy(make), TYPE, SYSTEM)
        for name, make in {
            "text": lambda sp, x, text: slope(sp, x, text),
            "text of a formula": lambda sp, x, text: slope(sp, x, "-x"),
            "a list of text": lambda sp, x, text: slope(sp, x, [text]),
            "a tuple": lambda sp, x, text: slope(sp, x, (text,)),
            "bytes": lambda sp, x, text: slope(sp, x, text.encode()),
            "a dict": lambda sp, x, text: slope(sp, x, {text: text}),
            "an object": lambda sp, x, text: slope(sp, x, bad_number(complex, text)),
            "a truth": lambda sp, x, text: slope(sp, x, True),
            "a matrix": lambda sp, x, text: slope(sp, x, sp.Matrix([x])),
            "a relation": lambda sp, x, text: slope(sp, x, x > 0),
            "None": lambda sp, x, text: slope(sp, x, None),
            "a subclass of str": lambda sp, x, text: slope(sp, x, type("s", (str,), {})(text)),
        }.items()
    ],
    *[
        Case(f"sympy system: {name}", with_sympy(make), VALUE, SYSTEM)
        for name, make in {
            "an Expr of one's own": lambda sp, x, text: slope(sp, x, x * own_class(sp, sp.Expr, text)()),
            "a function of one's own": lambda sp, x, text: slope(sp, x, own_class(sp, sp.Function, text)(x)),
            "a function called sin": lambda sp, x, text: slope(sp, x, sp.Function("sin")(x)),
            "nan": lambda sp, x, text: slope(sp, x, float("nan")),
            "an unknown symbol": lambda sp, x, text: slope(sp, x, x * sp.Symbol(text)),
        }.items()
    ],
    Case(
        "sympy system: a function of text",
        with_sympy(lambda sp, x, text: slope(sp, x, sp.Function(text)(x))),
        VALUE,
        ("expressions",),
    ),
    Case(
        "sympy system: beyond floats",
        with_sympy(lambda sp, x, text: slope(sp, x, sp.Integer(10) ** 400 * x)),
        VALUE,
        ("expressions",),
    ),
    Case(
        "sympy system: no mapping",
        with_sympy(lambda sp, x, text: systems.from_sympy(text, parameters=[], usual=[], start=[1.0])),
        TYPE,
        ("expressions",),
    ),
    Case(
        "sympy system: text for a state",
        with_sympy(lambda sp, x, text: systems.from_sympy({text: x}, parameters=[], usual=[], start=[1.0])),
        TYPE,
        ("states",),
    ),
    Case(
        "sympy system: text for parameters",
        with_sympy(lambda sp, x, text: slope(sp, x, x, parameters=text)),
        TYPE,
        ("parameters",),
    ),
    Case("sympy system: text for time", with_sympy(lambda sp, x, text: slope(sp, x, x, time=text)), TYPE, ("time",)),
    *[
        Case(f"sympy target: {name}", with_sympy(make), errors, says)
        for name, make, errors, says in (
            ("text", lambda sp, x, text: from_sympy(text, [x]), TYPE, ENERGY),
            ("text for symbols", lambda sp, x, text: from_sympy(x**2, text), TYPE, ("symbols",)),
            ("texts for symbols", lambda sp, x, text: from_sympy(x**2, [text]), TYPE, (r"symbols\[0\]",)),
            ("text for a parameter", lambda sp, x, text: from_sympy(x**2, [x], {text: 1.0}), TYPE, ("parameters",)),
            (
                "text for a number",
                lambda sp, x, text: from_sympy(x**2, [x], {sp.Symbol("k"): text}),
                TYPE,
                ("parameters",),
            ),
            (
                "a number beyond floats",
                lambda sp, x, text: from_sympy(x**2, [x], {sp.Symbol("k"): sp.Integer(10) ** 400}),
                VALUE,
                ("parameters",),
            ),
            (
                "an Expr of one's own",
                lambda sp, x, text: from_sympy(x**2 + own_class(sp, sp.Expr, text)(), [x]),
                VALUE,
                ENERGY,
            ),
            (
                "a function of one's own",
                lambda sp, x, text: from_sympy(x**2 + own_class(sp, sp.Function, text)(x), [x]),
                VALUE,
                ENERGY,
            ),
            ("a function of text", lambda sp, x, text: from_sympy(x**2 + sp.Function(text)(x), [x]), VALUE, ENERGY),
            ("a function called sin", lambda sp, x, text: from_sympy(x**2 + sp.Function("sin")(x), [x]), VALUE, ENERGY),
            (
                "a function called Heaviside",
                lambda sp, x, text: from_sympy(x**2 + sp.Function("Heaviside")(x), [x]),
                VALUE,
                ENERGY,
            ),
            ("an unknown symbol", lambda sp, x, text: from_sympy(x**2 * sp.Symbol(text), [x]), VALUE, ENERGY),
            ("an unknown Dummy", lambda sp, x, text: from_sympy(x**2 * sp.Dummy(text), [x]), VALUE, ENERGY),
            (
                "a sum of 10^9",
                lambda sp, x, text: from_sympy(sp.Sum(x**2 * sp.Symbol("k"), (sp.Symbol("k"), 1, 10**9)), [x]),
                VALUE,
                ENERGY,
            ),
            (
                "a product of 10^9",
                lambda sp, x, text: from_sympy(sp.Product(x**2 + sp.Symbol("k"), (sp.Symbol("k"), 1, 10**9)), [x]),
                VALUE,
                ENERGY,
            ),
            ("80 sines deep", lambda sp, x, text: from_sympy(nested(sp, x, 80), [x]), VALUE, ENERGY),
            ("an index of text", lambda sp, x, text: from_sympy(x**2 + sp.IndexedBase(text)[0], [x]), VALUE, ENERGY),
        )
    ],
    *[
        Case(f"sympy printed: {name}", with_sympy(make), holds=is_clean)
        for name, make in {
            "a symbol": lambda sp, x, text: from_sympy(sp.Symbol(f"x); {text} #") ** 2, [sp.Symbol(f"x); {text} #")]),
            "a symbol of lines": lambda sp, x, text: from_sympy(
                sp.Symbol(BREAKS.format(text)) ** 2, [sp.Symbol(BREAKS.format(text))]
            ),
            "a parameter": lambda sp, x, text: from_sympy(x**2 * sp.Symbol(text), [x], {sp.Symbol(text): 1.0}),
            "a symbol inside a root": lambda sp, x, text: from_sympy(
                x**2 * sp.CRootOf(sp.Symbol(BREAKS.format(text)) ** 5 - sp.Symbol(BREAKS.format(text)) + 3, 0), [x]
            ),
            "a Float of one's own": lambda sp, x, text: slope(sp, x, bad_number(float, text) * x),
            "a number that prints code": lambda sp, x, text: from_sympy(
                x**2 * sp.Symbol("k"), [x], {sp.Symbol("k"): bad_number(float, text)}
            ),
            "a name": lambda sp, x, text: from_sympy(x**2, [x], name=BREAKS.format(text)),
            "a state": lambda sp, x, text: systems.from_sympy(
                {sp.Symbol(BREAKS.format(text)): -x}, parameters=[x], usual=[1.0], start=[1.0], name=text
            ),
        }.items()
    ],
    *[
        Case(f"term: {name}", lambda folder, text=text: term(text.replace("RUN", RUN.format(folder))), says=("text",))
        for name, text in {
            "a call": "RUN",
            "a call in a sum": "x[0] + RUN",
            "an attribute": "().__class__.__base__",
            "sin's": "sin.__class__",
            "a lambda": "(lambda: 1)()",
            "a tower": "9**9**9**9",
            "a power of a power": "(x[0]**64)**64",
            "a list": "[x for x in x]",
            "a slice": "x[0:1]",
            "a star": "sin(*x)",
            "two lines": "x[0]\nRUN",
            "a statement": "x[0]; RUN",
            "nothing": "",
            "an assignment": "(y := 1)",
            "a conditional": "x[0] if 1 else 2",
            "a string": "'a'",
            "a key": "sin(x=1)",
            "brackets": "(" * 900,
            "10^6 characters": "1+" * 500_000 + "1",
            "900 digits": "9" * 900,
            "a NUL": "x[0]\0",
            "a surrogate": "x[0] + \ud800",
            "another name": "y",
            "an f-string": "f'{RUN}'",
            "await": "await x",
            "1e400": "1e400",
        }.items()
    ],
    Case("term: powers and another text", lambda folder: libraries.Term("t", "x[0]", powers=(0, 1)), says=("text",)),
    Case("term: 900 signs", lambda folder: term("-" * 900 + "x[0]"), holds=lambda v: v[0, 0] == 1.0),
]
