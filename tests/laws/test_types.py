"""Types that a checker reads: results are known to it, and a wrong argument or keyword is refused."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("mypy", reason="needs the lint extra")
SCRIPT = """\
from targets import constrained, mixtures, shapes
from toolkit import sample, samplers, target


@target(dim=2)
def own(x: tuple[float, ...]) -> tuple[float, tuple[float, ...]]:
    return 0.5 * x[0] ** 2 + 0.5 * x[1] ** 2, (x[0], x[1])


reveal_type(own)
run = sample(constrained(mixtures.cosine25(), shapes.flower()), samplers.sgld(0.1), n_steps=10, seed=0)
reveal_type(run.draws)
reveal_type(run.warnings)
sample(3, n_steps=3, seed=0)
sample(own, samplers.sgld(0.1), n_step=3, seed=0)
samplers.sgld("a")
"""
EXPECTED = [
    'Revealed type is "toolkit.problem.definition.Target"',
    "numpy.dtype[numpy.float64]",
    'Revealed type is "list[str]"',
    'Argument 1 to "sample" has incompatible type "int"; expected "Problem | Target"',
    'Unexpected keyword argument "n_step" for "sample"; did you mean "n_steps"?',
    'Argument 1 to "sgld" has incompatible type "str"',
]


@pytest.mark.slow
def test_a_checker_knows_results_and_refuses_what_is_wrong(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, "-m", "mypy", "--follow-imports", "silent", "--cache-dir", str(tmp_path), "script.py"]
    # Without a path to our packages: a checker finds them by their installation, which may be editable.
    environment = {name: value for name, value in os.environ.items() if name not in ("MYPYPATH", "PYTHONPATH")}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    said = [line for line in done.stdout.splitlines() if ": error: " in line or "Revealed type" in line]
    assert len(said) == len(EXPECTED), done.stdout
    for line, expected in zip(said, EXPECTED, strict=True):
        assert expected in line
