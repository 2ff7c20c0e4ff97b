"""Functions that treat hostile input badly, each in its own way, to show that the tests find them out."""

import ctypes
import math
import time
from pathlib import Path

from tests.hostile.tables.call import Call
from tests.hostile.values import number


def is_good(number):
    """Whether it is the one good value."""
    return isinstance(number, float) and number == 1.0


def indexes(number):
    """Trips."""
    return [1.0][0 if is_good(number) else 1]


def is_vague(number):
    """Names nothing."""
    if not is_good(number):
        raise ValueError("got something wrong")


def takes_all(number):
    """Checks nothing."""
    return 1.0


def borrows(number):
    """Lets Python complain."""
    return 1 if is_good(number) else int("number")


def says_nothing(number):
    """Shows no value."""
    if not is_good(number):
        raise ValueError("number must be a number")


def names_in_passing(number):
    """Has the argument's name in what it was given only."""
    if not is_good(number):
        raise ValueError("it must be 1.0, got 'number'")


def gives_nan(number):
    """Goes on where it cannot."""
    if not isinstance(number, float) or not 0.0 < number < math.inf:
        raise ValueError(f"number must be a float > 0, got {number!r}")
    return 1.0 if is_good(number) else math.nan


def hangs(number):
    """Does not come back."""
    if not is_good(number):
        time.sleep(100.0)


def crashes(number):
    """Takes Python with it."""
    if not is_good(number):
        ctypes.string_at(0)


def writes(number):
    """Leaves a file."""
    if not is_good(number):
        Path("left_behind").touch()
        raise ValueError(f"number must be 1, got {number!r}")


CALLS = [
    Call(function.__name__, function, {"number": 1.0}, {"number": number(0.0)})
    for function in (
        indexes,
        is_vague,
        takes_all,
        borrows,
        says_nothing,
        names_in_passing,
        gives_nan,
        hangs,
        crashes,
        writes,
    )
]
