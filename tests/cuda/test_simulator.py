"""In Numba's simulator of CUDA every sampler and every feature gives the CPU's bits, and a planted fault does not.

``python -m pytest -m "slow or not slow" tests/cuda/test_simulator.py`` runs all cases; ``test_on_gpu.py`` runs them
on a GPU.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.support.device_cases import CASES, CONSTRUCTORS, EVERY_TIME, FAULTS, Continued, arrays, what_differs

pytest.importorskip("numba_cuda")
ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.filterwarnings("ignore::toolkit.ContourWarning")  # runs too short for θ
EVERY_CASE = [pytest.param(name, marks=[pytest.mark.slow] * case.slow) for name, case in CASES.items()]


@pytest.fixture(scope="module")
def simulated(request, tmp_path_factory):
    """The arrays of every case that this session has chosen, and of every fault, made by one process."""
    here = [item for item in request.session.items if item.path == request.path and hasattr(item, "callspec")]
    asked = {item.callspec.params["name"] for item in here}
    names = [name for name in (*CASES, *FAULTS) if name in asked]
    folder = tmp_path_factory.mktemp("simulated")
    for name in names:
        if isinstance(CASES.get(name), Continued) and CASES[name].first == "cpu":
            CASES[name].begin(folder)
    environment = {
        **os.environ, "NUMBA_ENABLE_CUDASIM": "1", "NUMBA_OPT": "0", "NUMBA_CACHE_DIR": str(folder / "cache"),
        "PYTHONPATH": str(ROOT),
    }  # fmt: skip
    command = [sys.executable, "-m", "tests.support.simulator_worker", str(folder), *names]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    print(done.stdout)
    found = {}
    for number, name in enumerate(names):
        with np.load(folder / f"{number}.npz", allow_pickle=False) as file:
            found[name] = dict(file)
        if name == "continued by the cpu" and "error" not in found[name]:
            found[name] = CASES[name].end("cpu", folder)
    return found


def difference(simulated, name):
    """The first number of a case that differs from the CPU's."""
    assert "error" not in simulated[name], str(simulated[name]["error"])
    expected = arrays(name, "cpu")
    return what_differs(expected, simulated[name])


@pytest.mark.parametrize("name", EVERY_CASE)
def test_the_simulator_gives_the_cpus_bits(simulated, name):
    assert difference(simulated, name) is None


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(simulated, name):
    assert difference(simulated, name) is not None


def test_every_constructor_is_a_case():
    assert set(CONSTRUCTORS) <= CASES.keys()
    assert len([name for name in CONSTRUCTORS if not CASES[name].slow]) == len(EVERY_TIME)
