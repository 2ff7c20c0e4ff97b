"""Statements of a block function from lowered expressions: products into fused multiply-adds, powers by squaring."""

from typing import Any

MAX_EXPRESSION = 70  # characters of an expression that is given a name, so that source stays legible and nests little

COMPARISONS = {"less": "<", "at_most": "<=", "equal": "==", "unequal": "!="}


def write_block(
    formula: str,
    coordinates: list[Any],
    parameters: list[Any],
    fixed: list[tuple[Any, Any]],
    expressions: dict[Any, Any],
    pairs: list[tuple[tuple[Any, Any], str, Any]],
    outputs: list[Any],
) -> str:
    """Source of the function that writes ``outputs``, energy and then gradient, of every lane.

    fixed: (symbol, expression) set before the loop. expressions: symbol → expression in it. pairs: symbols of sines and
    cosines, with the call and its argument.
    """
    before, within = Writer(), Writer()
    dim = len(coordinates)
    before.lines += [f"{p} = parameters[{p.name[1:]}]" for p in parameters]
    for symbol, value in fixed:
        before.lines.append(f"{symbol} = {before.text(value)}")
    within.lines.append(f"{', '.join(f'x{d}' for d in range(dim))}, = load(position, lane)")
    order_statements(within, expressions, pairs, outputs)
    value, *slopes = [within.text(e) for e in outputs]
    within.lines += [f"slope{d} = {text}" for d, text in enumerate(slopes)]
    names = "".join(f"slope{d}, " for d in range(dim)).rstrip()
    within.lines.append(f"store(energy, gradient, lane, {value}, ({names}))")
    body = [*before.lines, "for lane in range(energy.size):", *[f"    {line}" for line in within.lines]]
    head = "def energy_and_gradient(position, energy, gradient, parameters, scratch):"
    is_plain = formula.isprintable() and not set('"\\\\') & set(
        formula
    )  # as formulas are, but names in them may not be
    docstring = f'"""{formula}"""' if is_plain else repr(str.__str__(formula))
    return "\n".join([head, f"    {docstring}", *[f"    {line}" for line in body], ""])


def order_statements(writer: "Writer", expressions: dict[Any, Any], pairs: list[Any], outputs: list[Any]) -> None:
    """Write what ``outputs`` need, each symbol after those that it needs itself."""
    of_pair = {name: pair for pair in pairs for name in pair[0]}
    done: set[Any] = set()
    stack = [(s, False) for e in reversed(outputs) for s in sorted(e.free_symbols, key=str, reverse=True)]
    while stack:
        symbol, ready = stack.pop()
        if symbol in done or (symbol not in of_pair and symbol not in expressions):
            continue
        names, function, value = of_pair.get(symbol, ((symbol,), "", expressions.get(symbol)))
        if ready:
            text = writer.text(value)
            if function or not text.isidentifier():
                call = f"{function}({text})" if function else text
                writer.lines.append(f"{', '.join(map(str, names))} = {call}")
            else:
                writer.same[symbol] = text
            done.update(names)
        else:
            stack.append((symbol, True))
            stack += [(s, False) for s in sorted(value.free_symbols, key=str, reverse=True)]


class Writer:
    """Expressions as text, and the statements that must come before."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names = 0
        self.powers: dict[tuple[str, int], str] = {}
        self.same: dict[Any, str] = {}  # symbols whose value has another name already

    def name(self, text: str) -> str:
        """A new name for ``text``."""
        self.names += 1
        self.lines.append(f"u{self.names} = {text}")
        return f"u{self.names}"

    def text(self, e: Any) -> str:
        """``e`` as an expression."""
        if e.is_Symbol:
            name = self.same.get(e, str(e))
            assert name.isidentifier(), "all symbols are our own"
            return name
        if e.is_Rational:
            return repr(int(e.p) / int(e.q))
        if e.is_Number:
            return repr(float(e))
        if e.is_Add:
            return self.sum(e)
        if e.is_Mul:
            return self.product(list(e.args))
        if e.is_Pow:
            return self.product([e])
        return self.call(e)

    def factor(self, e: Any) -> str:
        """``e`` as an operand: in brackets where it needs them."""
        text = self.text(e)
        if e.is_Number:
            return text
        return f"({text})" if text.startswith("-") or " " in text.split("(")[0] or e.is_Mul else text

    def call(self, e: Any) -> str:
        """A call of the maths, or a comparison."""
        kind, arguments = type(e).__name__, [self.text(a) for a in e.args]
        if kind in COMPARISONS:
            return f"{arguments[0]} {COMPARISONS[kind]} {arguments[1]}"
        if kind in ("both", "either"):
            return (" & " if kind == "both" else " | ").join(f"({a})" for a in arguments)
        if kind == "negated":
            return f"not ({arguments[0]})"
        if kind == "undefined":
            return "math.nan"
        if kind == "sqrt":
            return f"math.sqrt({arguments[0]})"
        text = f"{kind}({', '.join(arguments)})"
        return self.name(text) if len(text) > MAX_EXPRESSION else text

    def product(self, factors: list[Any]) -> str:
        """A product, with one division by all that is below the line."""
        numerator = [f for f in factors if not (f.is_Pow and f.exp < 0)]
        denominator = [1 / f for f in factors if f.is_Pow and f.exp < 0]
        negative = bool(numerator) and numerator[0] == -1
        texts = [self.powered(f) for f in (numerator[1:] if negative else numerator)]
        text = " * ".join(texts) or "1.0"
        if denominator:
            divisor = " * ".join(self.powered(f) for f in denominator)
            text += f" / ({divisor})" if len(denominator) > 1 else f" / {divisor}"
        return f"-{text}" if negative else text

    def powered(self, e: Any) -> str:
        """A factor, an integer power by repeated squaring."""
        if not e.is_Pow:
            return self.factor(e)
        return self.power(self.base(e.base), int(e.exp))

    def base(self, e: Any) -> str:
        """A name for the base of a power."""
        text = self.text(e)
        if (text, 1) not in self.powers:
            self.powers[text, 1] = text if text.isidentifier() else self.name(text)
        return self.powers[text, 1]

    def power(self, base: str, n: int) -> str:
        """``base`` to the n ≥ 1, under a name where n > 1."""
        if n == 1:
            return base
        if (base, n) not in self.powers:
            half = self.power(base, n // 2) if n % 2 == 0 else self.power(base, n - 1)
            self.powers[base, n] = self.name(f"{half} * {half}" if n % 2 == 0 else f"{half} * {base}")
        return self.powers[base, n]

    def sum(self, e: Any) -> str:
        """A sum, from the first term that is no product, by fused multiply-adds."""
        terms = sorted(e.args, key=lambda t: t.is_Mul or t.is_Pow)  # stable: plain ones first
        total = self.text(terms[0])
        for term in terms[1:]:
            split = self.split(term)
            if term.is_Mul and len(term.args) == 2 and term.args[0] == -1:
                total = f"{total} - {self.factor(term.args[1])}"
            elif split is None:
                total = f"{total} + {self.factor(term)}"
            else:
                total = f"fma({split[0]}, {split[1]}, {total})"
            if len(total) > MAX_EXPRESSION:
                total = self.name(total)
        return total

    def split(self, term: Any) -> tuple[str, str] | None:
        """Two factors whose product is ``term``; None where it is no product, or a quotient."""
        factors = list(term.args) if term.is_Mul else [term]
        if any(f.is_Pow and f.exp < 0 for f in factors) or not (term.is_Mul or term.is_Pow):
            return None
        if len(factors) == 1:
            base, n = self.base(term.base), int(term.exp)
            return self.power(base, n // 2), self.power(base, n - n // 2)
        negative = factors[0] == -1
        factors = factors[1:] if negative else factors
        first, others = self.product(factors[:1]), self.product(factors[1:])
        return f"-{first}" if negative else first, others or "1.0"
