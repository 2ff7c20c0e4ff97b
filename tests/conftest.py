"""Which cases of long tests run every time, by the marks ``cases`` and ``slow_cases`` at the tests; in which order."""

import os
import signal
from collections import Counter, defaultdict

import pytest

# Files that take half a minute or more, and some of few tests that take ten seconds, which would come last. Two workers
# begin with the first two: one compiles the general engine, the other needs none, where else both would compile it.
SLOWEST = (
    "tests/toolkit/engine/test_fused.py",
    "tests/targets/truth/test_energy_levels.py",
    "tests/cuda/test_simulator.py",
    "tests/laws/test_readme.py",
    "tests/toolkit/compiler/test_binding.py",
    "tests/hostile/test_hostile_input.py",
    "tests/laws/test_pickles.py",
    "tests/targets/classics/test_wells.py",
    "tests/toolkit/compiler/test_disk_cache.py",
    "tests/toolkit/samplers/test_scale.py",
    "tests/cuda/test_compiling.py",
    "tests/kills/test_checkpoint_kills.py",
    "tests/sysid/test_lynx_hare.py",
)


def pytest_configure(config):
    """Let Ctrl-C interrupt, which a shell that starts a command in the background has it ignore.

    And let pytest-xdist take files in the order of ``pytest_collection_modifyitems``; by itself it begins with those of
    the most tests, and a slow file of two comes last, when the other workers are done.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    config.option.loadscopereorder = False


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(items):
    """Leave out the slow cases, and for workers of pytest-xdist put ``SLOWEST`` first, then files of many tests."""
    mark_slow(items)
    result = yield
    if "PYTEST_XDIST_WORKER" in os.environ:
        sizes = Counter(item.location[0] for item in items)
        places = {file: place for place, file in enumerate(SLOWEST)}
        items.sort(key=lambda item: (places.get(item.location[0], len(places)), -sizes[item.location[0]]))
    return result


def mark_slow(items):
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
