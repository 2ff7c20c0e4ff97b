"""Which cases of long tests run every time, by the marks ``cases`` and ``slow_cases``; what workers do but once."""

import gc
import os
import signal
import tempfile
from collections import defaultdict
from pathlib import Path

import pytest

from tests.warm_up import compile_in_turn, import_in_turn


def pytest_configure(config):
    """Let Ctrl-C interrupt, which a shell that starts a command in the background has it ignore."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if not hasattr(config, "workerinput"):
        config.warm_up = tempfile.TemporaryDirectory()
        config.add_cleanup(config.warm_up.cleanup)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node):
    """Tell a worker of pytest-xdist the folder by which workers share what they compile first."""
    node.workerinput["warm_up"] = node.config.warm_up.name


@pytest.hookimpl(wrapper=True)
def pytest_collection(session):
    """Compile first what most files need, shared among workers; let the garbage collector leave out what is imported.

    It would go through a million objects again and again, which takes a sixth of the time of collecting tests.
    Then it runs less often than by default: compiling makes many objects that stay, and takes 5 % less time so.
    """
    gc.disable()
    try:
        if hasattr(session.config, "workerinput"):
            folder = Path(session.config.workerinput["warm_up"])
            compile_in_turn(folder)
            import_in_turn(folder, [Path(asked.partition("::")[0]).resolve() for asked in session.config.args])
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(10_000, 10, 10)
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup():
    """Forget which rules other tests have registered with Numba for functions of their own: nothing would be kept."""
    from toolkit._compiler.disk_cache import has_others_rules

    has_others_rules.forget()


@pytest.fixture
def nothing_kept(tmp_path, monkeypatch):
    """A folder without machine code for that which is kept on disk: what the test asks for is compiled."""
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path / "machine_code"))


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
