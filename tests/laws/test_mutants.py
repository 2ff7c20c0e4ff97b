"""The mutants still apply: each fault's line is there, once, and the tests that are to kill it exist."""

import re

import pytest

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
