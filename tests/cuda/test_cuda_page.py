"""docs/cuda.md: its code runs as written, in the simulator; on the CPU every time."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.cuda.stages import STAGES

RESTS = "from tests.support.simulator_worker import mend; mend()\n"
ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "cuda.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.S)


def test_the_pages_code_runs_on_the_cpu():
    (block,) = BLOCKS
    names = {}
    exec(compile(block.replace('backend="cuda"', 'backend="cpu"'), "docs/cuda.md", "exec"), names)
    assert names["on_host"].draws.shape == (3, 30, 2)


def test_what_needs_a_device_is_python_and_says_so():
    blocks = re.findall(r"```(python[^\n]*)\n(.*?)```", PAGE, re.S)
    assert [head for head, _ in blocks] == ["python device", "python"]
    for head, block in blocks:
        compile(block, f"docs/cuda.md, {head}", "exec")


def test_every_stage_is_on_the_page():
    assert re.findall(r"^\| `(\w+)` \| ", PAGE.partition("## Measuring")[2], re.M) == list(STAGES)


@pytest.mark.slow
def test_the_pages_code_runs_as_written_in_the_simulator(tmp_path):
    pytest.importorskip("numba_cuda")
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1", "NUMBA_OPT": "0", "NUMBA_CACHE_DIR": str(tmp_path)}
    for block in BLOCKS:
        command = [sys.executable, "-c", RESTS + block]
        subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, timeout=600)
