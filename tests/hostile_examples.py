"""Functions that treat hostile input badly, each in its own way, to show that the tests find them out."""

import ctypes
import math
import time
from pathlib import Path

from hostile_calls import Call
from hostile_values import number


def refuse(number):
    """A sound refusal."""
    if not isinstance(number, float) or not 0.0 < number < math.inf:
        raise ValueError(f"number must be a float > 0, got {number!r}")


def indexes(number):
    """Trips."""
    return [1.0][int(isinstance(number, str))]


def is_vague(number):
    """Names nothing."""
    raise ValueError("got something wrong")


def takes_all(number):
    """Checks nothing."""
    return 1.0


def borrows(number):
    """Lets Python complain."""
    return int("number")


def says_nothing(number):
    """Shows no value."""
    raise ValueError("number must be a number")


def gives_nan(number):
    """Goes on where it cannot."""
    refuse(number)
    return math.nan if number != 1.0 else 1.0


def hangs(number):
    """Does not come back."""
    if number != 1.0:
        time.sleep(100.0)


def crashes(number):
    """Takes Python with it."""
    if number != 1.0:
        ctypes.string_at(0)


def writes(number):
    """Leaves a file."""
    if number != 1.0:
        Path("left_behind").touch()
    refuse(number)


CALLS = [
    Call(function.__name__, function, {"number": 1.0}, {"number": number(0.0)})
    for function in (indexes, is_vague, takes_all, borrows, says_nothing, gives_nan, hangs, crashes, writes)
]
