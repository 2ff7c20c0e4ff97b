"""The examples in the docstrings of public names run, and give what stands below them."""

import doctest
import inspect
import runpy
from pathlib import Path

import pytest

CONF = runpy.run_path(str(Path(__file__).resolve().parents[2] / "docs" / "conf.py"))
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
HAVE = {
    "toolkit.sample", "toolkit.tune", "toolkit.target", "toolkit.check_gradient", "toolkit.samplers.sgld",
    "toolkit.samplers.csgld", "toolkit.samplers.r2sgld", "targets.constrained", "targets.mixtures.cosine25",
    "targets.shapes.flower", "sysid.discover", "sysid.identify",
}  # fmt: skip


def examples():
    """The examples by public name; methods are found with their class."""
    found = {}
    for place, module in CONF["public_modules"]().items():
        for name in module.__all__:
            value = getattr(module, name)
            is_its_own = inspect.isclass(value) or inspect.isfunction(value)
            if is_its_own and not CONF["is_elsewhere"](name, module):
                tests = doctest.DocTestFinder(recurse=True).find(value, f"{place}.{name}", globs={})
                found |= {test.name: test for test in tests if test.examples}
    return found


EXAMPLES = examples()


def test_the_functions_that_are_used_most_have_one():
    assert set(EXAMPLES) >= HAVE


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_an_example_gives_what_it_says(name):
    said = []
    results = doctest.DocTestRunner(optionflags=OPTIONS).run(EXAMPLES[name], out=said.append)
    assert results.attempted > 0
    assert results.failed == 0, "".join(said)
