"""Hostile constraints."""

import numpy as np

from sysid.constraints import Coordinates, region_of
from tests.hostile.texts.cases import Case

NAMES = ("sigma", "rho", "beta")
NONE = np.zeros(3, np.bool_)


def region(*texts):
    """The region of these constraints."""
    return region_of(list(texts), NAMES, Coordinates(NONE, np.zeros(3), np.eye(3)), NONE)


REFUSED = {
    "400 digits": ("sigma > " + "9" * 400, "finite, got inf", "column 9"),
    "5,000 digits": ("sigma > " + "9" * 5000, "finite, got inf", "column 9"),
    "a number beyond floats": ("sigma > 1e400", "finite, got inf", "column 9"),
    "too many signs": ("sigma > " + "-" * 20_000 + "1", "at most 10000 characters"),
    "20,000 sums": ("sigma > " + "1+" * 20_000 + "1", "at most 10000 characters"),
    "a million characters": ("sigma > 1" + " " * 10**6, "at most 10000 characters"),
    "a lone surrogate": ("sigma > \ud800", "got", "column 9"),
    "51 brackets": ("sigma > " + "(" * 51 + "1" + ")" * 51, "at most 50 deep", "column 59"),
    "4,000 brackets": ("sigma > " + "(" * 4000 + "1" + ")" * 4000, "at most 50 deep", "column"),
    "brackets that do not close": ("sigma > (1", "close the bracket", "column 11"),
    "brackets that do not open": ("sigma > 1)", "inequalities", "column 10"),
    "a tower of powers": ("sigma > 9**9**9", "column 11"),
    "digits of another script": ("sigma > \u0661\u0662", "column 9"),
    "wide digits": ("sigma > \uff11", "column 9"),
    "a superscript": ("sigma > 2\u00b2", "column 9"),
    "a NUL": ("sigma > 1\0", "column 10"),
    "a NUL first": ("\0sigma > 1", "column 1"),
    "nothing": ("", "column 1"),
    "spaces": (" " * 9000, "inequalities", "column"),
    "no comparison": ("sigma", "inequalities", "column 6"),
    "equality": ("sigma == 1", "column 7"),
    "an assignment": ("sigma = 1", "column 7"),
    "chained wrong": ("sigma > 1 >", "column 12"),
    "a comment": ("sigma > 1 # 2", "must not hold '#'", "column 11"),
    "two lines": ("sigma > 1\nrho > 2", "column 10"),
    "a line that goes on": ("sigma > 1\n+ 5", "column 10"),
    "a semicolon": ("sigma > 1; rho > 1", "column 10"),
    "a call": ("sigma > __import__('os').getpid()", "'__import__'", "column 9"),
    "a lambda": ("sigma > (lambda: 1)()", "'lambda'", "column 10"),
    "a conditional": ("sigma > 1 if True else 2", "'if'", "column 11"),
    "an attribute": ("sigma.real > 1", "column 6"),
    "an index": ("sigma[0] > 1", "column 6"),
    "a string": ("sigma > 'a'", "column 9"),
    "an imaginary number": ("sigma > 1j", "column 9"),
    "a hexadecimal number": ("sigma > 0x10", "column 9"),
    "an unknown name": ("sigma > omega", "got 'omega'", "column 9"),
    "a name of wide letters": ("\uff53igma > 1", "column 1"),
    "not linear": ("sigma*rho > 1", "linear", "column 6"),
    "division by a parameter": ("1/sigma > 1", "linear", "column 2"),
    "division by zero": ("sigma/0 > 1", "divide by 0", "column 6"),
    "division by a difference of 0": ("sigma/(1-1) > 1", "divide by 0", "column 6"),
    "coefficients beyond floats": ("1e300*1e300*sigma > 1", "finite", "column"),
    "a difference of infinities": ("sigma > 1e308*10 - 1e308*10", "finite", "column"),
    "a coefficient that is lost": ("1e-300*1e-300*sigma > 1", "hold a parameter", "column"),
    "no parameter": ("1 > 0", "hold a parameter", "column 3"),
    "a parameter that cancels": ("sigma - sigma > 1", "hold a parameter", "column 15"),
    "an operator alone": ("sigma > *", "column 9"),
    "two operators": ("sigma > 1 * / 2", "column 13"),
    "floor division": ("sigma > 3 // 2", "column 12"),
    "an unclosed number": ("sigma > 1e", "column 9"),
    "two points": ("sigma > 1.2.3", "column 12"),
}
CASES = [
    Case(name, lambda folder, text=text: region(text), says=("constraints", *says))
    for name, (text, *says) in REFUSED.items()
]
CASES += [
    Case("5,000 signs", lambda folder: region("sigma > " + "-" * 5000 + "1"), holds=lambda r: r.lower[0] == 1.0),
    Case("4,001 signs", lambda folder: region("sigma > " + "-" * 4001 + "1"), holds=lambda r: r.lower[0] == -1.0),
    Case("4,000 sums", lambda folder: region("sigma > " + "1+" * 4000 + "1"), holds=lambda r: r.lower[0] == 4001.0),
    Case("50 brackets", lambda folder: region("sigma > " + "(" * 50 + "2" + ")" * 50), holds=lambda r: r.lower[0] == 2),
    Case("bytes", lambda folder: region(b"sigma > 1"), (TypeError,), ("constraints",)),
]
