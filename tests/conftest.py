"""Which cases of long tests run every time, by the marks ``cases`` and ``slow_cases`` at the tests."""

import os
import signal
from collections import defaultdict

import pytest


def pytest_configure():
    """Let Ctrl-C interrupt, which a shell that starts a command in the background has it ignore."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark as slow what the marks ``cases`` and ``slow_cases`` leave to ``make test-slow``.

    Nothing where ALL_CASES is set, as by the mutants' runner: every case may be the one that finds a fault.
    """
    if os.environ.get("ALL_CASES"):
        return
    shortened = defaultdict(list)
    for item in items:
        named, some = item.get_closest_marker("slow_cases"), item.get_closest_marker("cases")
        if named and item.callspec.id in named.args:
            item.add_marker(pytest.mark.slow)
        elif some and not item.get_closest_marker("slow"):
            shortened[item.nodeid.partition("[")[0], some.args[0]].append(item)
    for (_, kept), cases in shortened.items():
        for number, item in enumerate(cases):
            if number * kept // len(cases) == (number + 1) * kept // len(cases):
                item.add_marker(pytest.mark.slow)
