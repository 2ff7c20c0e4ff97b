"""Real processes killed by SIGKILL, at random moments and at every operation on the files: the bits stay the same."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")


def outcome(*arguments):
    """What the killing script prints."""
    paths = os.pathsep.join([str(HERE.parents[1]), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": paths}
    command = [sys.executable, str(HERE / "checkpoint_killing.py"), *arguments]
    said = subprocess.run(command, capture_output=True, text=True, check=False, timeout=400, env=environment)
    assert said.returncode == 0, said.stderr
    return json.loads(said.stdout)


def check_random(found, n_kills):
    """Killed so often, several times in a write; each life began where a save stood, and the end is the whole run's."""
    assert found["equal"], found["said"]
    assert found["kills"] == n_kills
    assert found["writing"] >= n_kills // 10
    began = [step for step in found["restored"] if step]
    assert began == sorted(began)
    assert len(set(began)) >= n_kills // 5 - 1  # each fifth life was left to save three times
    assert 0 < found["last"] < 20_000 * n_kills


def test_fifty_kills_at_random_moments_change_no_bit():
    check_random(outcome("random", "50"), 50)


@pytest.mark.slow
def test_five_hundred_kills_at_random_moments_change_no_bit():
    check_random(outcome("random", "500"), 500)


def test_a_kill_at_any_operation_loses_no_more_than_the_save_under_way():
    """Before, in the middle of and after each write, and around each change of a name: four saves, and the head."""
    found = outcome("everywhere")
    assert found["whole"]
    assert found["operations"] == len(found["results"]) > 4 * 8
    for saving, restored, equal, said in found["results"]:
        assert equal, said
        assert restored in (saving - 10, saving) or restored == saving == 0
    assert {restored for _, restored, _, _ in found["results"]} == {0, 10, 20, 30, 40}
