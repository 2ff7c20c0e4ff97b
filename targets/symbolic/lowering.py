"""SymPy expressions lowered to sums, products, integer powers and calls of the kernels' functions."""

import functools
import math
from typing import Any

CHOICES = ("Larger", "Smaller")


@functools.cache
def choices() -> tuple[Any, Any]:
    """SymPy functions for the larger and the smaller of two arguments.

    The derivative of SymPy's Max of n arguments has a Max of n − 1 in every term; theirs has not.
    """
    import sympy

    def slope(self: Any, argindex: int = 1) -> Any:
        a, b = self.args
        first = sympy.Heaviside(a - b if type(self).__name__ == "Larger" else b - a)  # a half where they are equal
        return first if argindex == 1 else 1 - first

    made = [type(n, (sympy.Function,), {"nargs": 2, "is_extended_real": True, "fdiff": slope}) for n in CHOICES]
    return made[0], made[1]


def pairwise_choices(e: Any) -> Any:
    """``e`` with every Max and Min as nested ``choices``, so that its gradient grows linearly with their arguments."""
    import sympy

    for function, pair in zip((sympy.Max, sympy.Min), choices(), strict=True):
        e = e.replace(function, lambda *args, p=pair: functools.reduce(p, sorted(args, key=sympy.default_sort_key)))
    return e


# Functions that SymPy and the kernels both call by this name.
DIRECT = (
    *("exp", "log", "log1p", "expm1", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh"),
    *("asin", "acos", "atan", "atan2"),
)
WITH_ARGUMENTS = (*DIRECT, "Abs", "sign", "Heaviside", "Max", *CHOICES, "And", "Or", "Not")
FEW = 8  # exponents of a sum of exponentials that are compared with one another
RECIPROCALS = {"sec": "cos", "csc": "sin", "cot": "tan", "sech": "cosh", "csch": "sinh", "coth": "tanh"}


class Lowering:
    """Rewrites expressions to functions that the kernels have, and collects subexpressions that are computed once."""

    def __init__(self, coordinates: list[Any]) -> None:
        self.varying = set(coordinates)  # symbols that differ from lane to lane
        self.peaks: list[tuple[Any, Any]] = []  # (symbol, largest exponent of a sum of exponentials)
        self.shares: set[Any] = set()  # exponentials relative to a peak
        self.fixed: list[tuple[Any, Any]] = []  # (symbol, expression without coordinates), in order
        self.pairs: list[tuple[tuple[Any, Any], str, Any]] = []  # ((sine, cosine), call, argument)
        self.known: dict[Any, Any] = {}

    def stabilise(self, e: Any) -> Any:
        """log Σ a exp(b) as m + log Σ a exp(b − m) with m the largest b, which derivatives may hold constant."""
        import sympy

        if not e.args or not e.has(sympy.log):
            return e
        e = e.func(*[self.stabilise(a) for a in e.args])
        if not isinstance(e, sympy.log) or not e.args[0].is_Add or self.is_fixed(e):
            return e
        terms = [self.split_exponential(t) for t in e.args[0].args]
        exponents = list(dict.fromkeys(b for _, b in terms))
        if all(b == 0 for b in exponents):
            return e
        # Which of them never is the largest, SymPy finds by comparing all pairs: a second for 25.
        largest = sympy.Max(*exponents, evaluate=len(exponents) <= FEW)
        peak = next((p for p, known in self.peaks if known == largest), None)
        if peak is None:
            peak = sympy.Symbol(f"peak{len(self.peaks)}", real=True)
            self.varying.add(peak)
            self.peaks.append((peak, largest))
        self.shares |= {sympy.exp(b - peak) for b in exponents}
        return peak + sympy.log(sympy.Add(*[a * sympy.exp(b - peak) for a, b in terms]))

    def split_exponential(self, term: Any) -> tuple[Any, Any]:
        """(a, b) with term = a exp(b); b = 0 where no factor is an exponential that varies."""
        import sympy

        factors = sympy.Mul.make_args(term)
        powers = [f for f in factors if isinstance(f, sympy.exp) and not self.is_fixed(f)]
        rest = [f for f in factors if f not in powers]
        return sympy.Mul(*rest), sympy.Add(*[f.args[0] for f in powers])

    def is_fixed(self, e: Any) -> bool:
        """Whether an expression is the same in all lanes."""
        return not (e.free_symbols & self.varying)

    def lower(self, e: Any) -> Any:
        """``e`` rewritten, once."""
        if e not in self.known:
            self.known[e] = self.hoist(e) if self.is_fixed(e) and not e.is_Boolean else self.rewrite(e)
        return self.known[e]

    def hoist(self, e: Any) -> Any:
        """A number to full precision; an expression of parameters as a symbol that is set before the loop."""
        import sympy

        if e.is_Symbol or (e.is_Rational and math.isfinite(self.number(e))):
            return e
        if not e.free_symbols:
            return sympy.Float(self.number(e))
        if e.is_Mul and e.args[0] == -1:
            return sympy.Mul(-1, self.lower(-e))
        value = self.rewrite(e)
        symbol = sympy.Symbol(f"c{len(self.fixed)}", real=True)
        self.fixed.append((symbol, value))
        return symbol

    def number(self, e: Any) -> float:
        """``e``, which has no symbols, as a float. Raises ValueError where it is none."""
        value = complex(e.evalf(25))
        if not math.isfinite(value.real):
            raise ValueError(
                f"energy must hold numbers within the range of floats, but it or its gradient has {e.evalf(6)}"
            )
        if value.imag != 0.0:
            raise ValueError(f"energy must be real, but it or its gradient contains {e}, which is complex")
        return value.real

    def rewrite(self, e: Any) -> Any:
        """``e`` with its arguments lowered."""
        import sympy

        kind = type(e).__name__
        if e.is_Symbol or e.is_Number or e in (sympy.true, sympy.false):
            return e
        if e.is_Add or e.is_Mul:
            same = [a for a in e.args if self.is_fixed(a)]
            others = [self.lower(a) for a in e.args if not self.is_fixed(a)]
            if same and others:
                others.append(self.lower(e.func(*same)))
            elif same:
                others = [self.lower(a) for a in same]
            return factored_sum(others) if e.is_Add else sympy.Mul(*others)
        if e.is_Pow and not isinstance(e, sympy.exp):
            return self.rewrite_power(*e.args)
        if kind in ("sin", "cos", "tan"):
            sine, cosine = self.sine_and_cosine(e.args[0])
            return {"sin": sine, "cos": cosine, "tan": sine / cosine}[kind]
        if kind in RECIPROCALS:
            return 1 / self.lower(getattr(sympy, RECIPROCALS[kind])(*e.args))
        arguments = [self.lower(a) for a in e.args] if kind in WITH_ARGUMENTS or e.is_Relational else []
        if kind in DIRECT and len(arguments) == (2 if kind == "atan2" else 1):
            return call("exp_share" if e in self.shares else kind, *arguments)
        if kind == "Abs":
            return call("abs", *arguments)
        if kind in ("sign", "Heaviside"):
            low, middle = (-1, 0) if kind == "sign" else (0, arguments[1])
            positive, negative = call("less", sympy.S.Zero, arguments[0]), call("less", arguments[0], sympy.S.Zero)
            return call("select", positive, sympy.S.One, call("select", negative, low, middle))
        if kind in ("Max", *CHOICES):
            best, *others = sorted(arguments, key=sympy.default_sort_key)
            for other in others:
                better = call("less", other, best) if kind == "Smaller" else call("less", best, other)
                best = call("select", better, other, best)
            return best
        if kind == "Piecewise":
            chosen = call("undefined")
            for value, condition in reversed(e.args):
                piece = self.lower(value)
                chosen = piece if condition == sympy.true else call("select", self.lower(condition), piece, chosen)
            return chosen
        if e.is_Relational:
            a, b = arguments
            name = {"<": "less", ">": "less", "<=": "at_most", ">=": "at_most", "==": "equal", "!=": "unequal"}[
                e.rel_op
            ]
            return call(name, b, a) if e.rel_op in (">", ">=") else call(name, a, b)
        if kind in ("ITE", "Xor"):  # the first is what SymPy makes of a condition on a Piecewise
            return self.lower(e.to_nnf(simplify=False))
        if kind in ("And", "Or", "Not"):
            return call({"And": "both", "Or": "either", "Not": "negated"}[kind], *arguments)
        raise ValueError(
            f"energy or its gradient contains {e.func.__name__} in {e}, which has no vector maths here; known are "
            f"{', '.join(sorted([*DIRECT, *RECIPROCALS, 'sin', 'cos', 'tan', 'sqrt', 'Abs', 'sign', 'Heaviside']))}, "
            "Max, Min, Piecewise"
        )

    def rewrite_power(self, base: Any, exponent: Any) -> Any:
        """Integers and halves of them by multiplication and roots, else exp(exponent · log(base))."""
        import sympy

        if exponent.is_Float and float(2 * exponent).is_integer():
            exponent = sympy.Rational(int(2 * exponent), 2)
        b = self.lower(base)
        if exponent.is_Integer:
            return b**exponent
        if (2 * exponent).is_Integer:
            root = call("sqrt", b)
            size = root * b ** ((abs(2 * exponent) - 1) // 2)
            return size if exponent > 0 else 1 / size
        if self.is_fixed(base) and not self.is_fixed(exponent):
            return call("exp", self.lower(exponent) * self.lower(sympy.log(base)))
        return call("power", b, self.lower(exponent))

    def sine_and_cosine(self, angle: Any) -> tuple[Any, Any]:
        """Symbols of both, by one call; in turns where the angle is a multiple of π."""
        import sympy

        if self.is_fixed(angle):
            return call("sin", self.lower(angle)), call("cos", self.lower(angle))
        turns = (angle / (2 * sympy.pi)).expand()
        in_turns = angle.has(sympy.pi) and not turns.has(sympy.pi)
        name, argument = ("sincos_turns", self.lower(turns)) if in_turns else ("sincos", self.lower(angle))
        for names, other, known in self.pairs:
            if (other, known) == (name, argument):
                return names
        k = len(self.pairs)
        names = (sympy.Symbol(f"sin{k}", real=True), sympy.Symbol(f"cos{k}", real=True))
        self.pairs.append((names, name, argument))
        return names


def call(name: str, *arguments: Any) -> Any:
    """An application of a function that SymPy does not know and does not change."""
    import sympy

    return sympy.Function(name, real=True)(*arguments)


def factored_sum(terms: list[Any]) -> Any:
    """Sum of ``terms``, with terms of equal absolute coefficient factored."""
    import sympy

    groups: dict[Any, list[Any]] = {}
    for term in sympy.Add.make_args(sympy.Add(*terms)):
        coefficient, rest = term.as_coeff_Mul()
        groups.setdefault(abs(coefficient) if rest != 1 else None, []).append(
            term if rest == 1 else rest if coefficient > 0 else -rest
        )
    parts = []
    for coefficient, rests in groups.items():
        if coefficient is None or coefficient == 1:
            parts += rests
        elif len(rests) == 1:
            parts.append(coefficient * rests[0])
        else:
            parts.append(sympy.Mul(coefficient, sympy.Add(*rests), evaluate=False))
    return sympy.Add(*parts)
