"""The mutants still apply: each fault's line is there, once, and the tests that are to kill it exist."""

import argparse
import os
import re
import subprocess
import sys

import pytest
from _pytest.mark import KeywordMatcher, MarkMatcher
from _pytest.mark.expression import Expression

from tests.mutants import MUTANTS
from tests.mutants.runner import ROOT


def test_there_are_as_many_mutants_as_the_readme_says_and_no_name_twice():
    told = re.findall(r"`make mutants` puts over (\d+) faults", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert told
    assert all(int(number) < len(MUTANTS) for number in told)
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_applies(mutant):
    source = (ROOT / mutant.file).read_text(encoding="utf-8")
    assert source.count(mutant.old) == 1
    assert mutant.old != mutant.new
    compile(source.replace(mutant.old, mutant.new), mutant.file, "exec")
    assert all((ROOT / name).exists() for name in mutant.tests.split() if name.startswith("tests/"))


ARGUMENTS = argparse.ArgumentParser()  # those of pytest that mutants use
ARGUMENTS.add_argument("files", nargs="+")
ARGUMENTS.add_argument("-k", default="")
ARGUMENTS.add_argument("-m", default="not slow and not cuda")  # as in pyproject.toml
SHOWS = """
import sys
import pytest
from tests.laws.test_mutants import Selection
sys.exit(pytest.main(["--collect-only", "-q", "-m", "", "-p", "no:xdist", *sys.argv[1:]], plugins=[Selection()]))
"""


class Selection:
    """A plugin that prints the mutants whose commands select none of the tests collected."""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items):
        idle = [mutant.name for mutant in MUTANTS if not any(is_run(item, mutant.tests) for item in items)]
        print(f"\n{len(MUTANTS)} mutants; without a test: {idle}")


def is_run(item, command):
    """Whether pytest would run this test, given the arguments in ``command``."""
    given = ARGUMENTS.parse_args(command.split())
    return (
        any(item.nodeid.startswith(name) for name in given.files)
        and (not given.k or Expression.compile(given.k).evaluate(KeywordMatcher.from_item(item)))
        and Expression.compile(given.m).evaluate(MarkMatcher.from_markers(item.iter_markers()))
    )


@pytest.mark.slow
def test_the_command_of_each_mutant_runs_a_test():
    """Pytest fails where it selects none, which is no sign that the fault is found."""
    pytest.importorskip("numba_cuda")
    files = sorted({name for mutant in MUTANTS for name in ARGUMENTS.parse_args(mutant.tests.split()).files})
    command = [sys.executable, "-c", SHOWS, *files]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "ALL_CASES": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=environment)
    assert f"{len(MUTANTS)} mutants; without a test: []" in done.stdout, done.stdout[-3000:] + done.stderr[-3000:]
