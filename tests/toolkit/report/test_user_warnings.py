"""``warn_user`` points at the line by which a user called the library, whatever stands between."""

import contextlib
import types
import warnings

import pytest

from toolkit.errors import LIBRARIES, warn_user

LIBRARY = """
import contextlib
from toolkit.errors import warn_user

def shallow(): warn_user("shallow")

def deep(n):
    if n == 0: warn_user("deep", RuntimeWarning)
    else: deep(n - 1)

@contextlib.contextmanager
def held():
    yield
    warn_user("at the end of with")

def pieces():
    warn_user("where the next piece is asked for")
    yield 1

def calls(function): function()
"""


@pytest.fixture
def library(monkeypatch):
    """A package above the toolkit, which has told its name."""
    monkeypatch.setattr("toolkit.errors.LIBRARIES", LIBRARIES | {"above"})
    module = types.ModuleType("above.room")
    exec(compile(LIBRARY, "above/room.py", "exec"), vars(module))
    return module


def line_of(function):
    """The file and line at which the only warning in a call points."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        function()
    (warning,) = told
    return warning.filename, warning.lineno


def test_the_line_is_the_users(library):
    def uses_with():
        with library.held():
            pass

    for function in (library.shallow, lambda: library.deep(30), lambda: list(library.pieces())):
        assert line_of(lambda function=function: function())[0] == __file__
    first = uses_with.__code__.co_firstlineno
    assert line_of(uses_with) == (__file__, first + 1)


def test_a_users_function_that_the_library_calls_is_the_users(library):
    def own():
        library.shallow()

    assert line_of(lambda: library.calls(own)) == (__file__, own.__code__.co_firstlineno + 1)


def test_a_module_of_another_package_is_no_library(library):
    library.__name__ = vars(library)["__name__"] = "elsewhere.room"
    assert line_of(library.shallow)[0] == "above/room.py"


def test_the_category_is_that_which_is_given():
    with pytest.warns(RuntimeWarning, match="text"), contextlib.nullcontext():
        warn_user("text", RuntimeWarning)
    with pytest.warns(UserWarning, match="text"):
        warn_user("text")
