"""The table of first draws: its stages, and whose modules an import's time goes to."""

import subprocess
import sys

import pytest

from benchmarks.speed.first_draw import OURS, Stage, against, process, shares, to_first_draw

TOLD = """import time: self [us] | cumulative | imported package
import time:       100 |        100 |     numpy.linalg
import time:       200 |        300 |   numpy
import time:       500 |        800 | toolkit.maths
import time:       200 |        200 | json.decoder
"""


def test_shares_are_of_each_module_s_own_time():
    assert shares(TOLD) == "toolkit 50, numpy 30, Python 20"


def test_a_first_draw_counts_its_import():
    stages = {"import": Stage(1.0, 0.5, 0), "first draw": Stage(2.0, 1.5, 3), "again": Stage(0.1, 0.1, 0)}
    assert to_first_draw(stages) == {"import to first draw": Stage(3.0, 2.0, 3), "again": Stage(0.1, 0.1, 0)}


def test_a_peer_that_takes_longer_has_a_ratio_above_one():
    seen = {"ours": [Stage(1.0, 1.0, 0)], "JAX": [Stage(3.0, 3.0, None)], "BlackJAX": []}
    assert against(seen, "JAX")[0] == "3"
    assert against(seen, "BlackJAX") == against(seen, "emcee") == ("–", "–")


def test_a_process_that_fails_says_so(tmp_path):
    with pytest.raises(subprocess.CalledProcessError) as caught:
        process(sys.executable, OURS, "no such case", tmp_path, tmp_path)
    assert "KeyError" in caught.value.stderr
