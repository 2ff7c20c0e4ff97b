"""Places that are not as they should be: settings of Numba, a working directory that is gone."""

import os
import subprocess
import sys

import pytest

RUN = """
from targets import mixtures
from toolkit import sample, samplers

run = sample(mixtures.cosine25(), samplers.sgld(0.01), n_steps=20, seed=0, progress=False)
print(run.draws.sum())
"""
GONE = """
import os, tempfile
from pathlib import Path
from targets import mixtures
from toolkit import load, sample, samplers, target

problem, sampler = mixtures.cosine25(), samplers.sgld(0.01)
folder = tempfile.mkdtemp()
os.chdir(folder)
run = sample(problem, sampler, n_steps=20, seed=0, progress=False)
os.rmdir(folder)
calls = {
    "checkpoint": lambda: sample(problem, sampler, n_steps=20, seed=0, progress=False, checkpoint="run.ckpt"),
    "save": lambda: run.save("run.npz"),
    "target": lambda: target(lambda x: (x[0] ** 2, (2.0 * x[0],)), dim=1),
    "load": lambda: load("run.npz"),
    "sample": lambda: print("as ever", sample(problem, sampler, n_steps=20, seed=0, progress=False).draws.sum()),
}
for name, call in calls.items():
    try:
        call()
    except OSError as error:
        print(name, type(error).__name__, error)
"""


def output_of(code, **settings):
    """What a process of its own prints, and its last line of errors."""
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **settings}, capture_output=True, text=True, check=False
    )
    return done.stdout, done.stderr.strip().rpartition("\n")[2]


def test_without_a_compiler_it_says_what_to_unset():
    said = "RuntimeError: NUMBA_DISABLE_JIT is set, and parts run as machine code alone: unset it to sample"
    assert output_of(RUN, NUMBA_DISABLE_JIT="1") == ("", said)


@pytest.mark.slow
def test_code_with_debug_information_gives_the_same_draws(tmp_path):
    expected, _ = output_of(RUN)
    assert output_of(RUN, NUMBA_DEBUGINFO="1", NUMBA_CACHE_DIR=str(tmp_path))[0] == expected != ""


@pytest.mark.skipif(os.name == "nt", reason="does not remove the working directory of a process")
def test_a_working_directory_that_is_gone_is_named():
    words = "FileNotFoundError the working directory of this process was removed: change to a folder that is there"
    lines = output_of(GONE)[0].splitlines()
    assert [line.partition(",")[0] for line in lines[:3]] == [
        f"{name} {words}" for name in ("checkpoint", "save", "target")
    ]
    assert lines[3].startswith("load FileNotFoundError path must be a saved run")
    assert lines[4].startswith("as ever ")
