"""The lowest versions that pyproject.toml allows: a run, its checks, files, figures and device code work with them."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
OF_THE_HOST = (
    "toolkit/test_sampling.py", "toolkit/verification", "toolkit/storage", "toolkit/diagnostics", "toolkit/compiler",
    "toolkit/engine/test_fused.py", "figures/plots", "targets/symbolic", "targets/shapes", "targets/datasets",
    "sysid/data", "sysid/test_identification_runs.py",
)  # fmt: skip
OF_A_DEVICE = ("cuda", "toolkit/engine/test_fused.py")
FLOOR = re.compile(r"(?P<name>[\w.-]+(\[[\w,]+\])?)>=(?P<version>[\d.]+)(,<[\d.]+)?")


def lowest_versions(extras):
    """The requirements of the core and of ``extras``, each at the newest patch of its lowest version."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = project["dependencies"] + [line for extra in extras for line in project["optional-dependencies"][extra]]
    floors = [FLOOR.fullmatch(line) for line in wanted]
    assert all(floors), f"each requirement must be a name and a floor, and one of {wanted} is not"
    versions = {floor["name"]: floor["version"] for floor in floors}  # an extra's own floor is the higher one
    return [f"{name}=={version}.*" for name, version in versions.items()]


def test_every_requirement_has_a_floor():
    names = {line.split("==")[0] for line in lowest_versions(("cuda", "symbolic", "shapes", "data", "io"))}
    assert {"numba", "numpy", "scipy", "matplotlib", "tqdm", "numba-cuda[cu13]", "zarr"} <= names


def test_what_they_are_tried_on_is_there():
    assert all((ROOT / "tests" / name).exists() for name in OF_THE_HOST + OF_A_DEVICE)


@pytest.mark.slow
@pytest.mark.skipif(sys.version_info >= (3, 13), reason="the lowest versions have no wheels for Python 3.13")
@pytest.mark.parametrize(
    ("extras", "tested"),
    [(("symbolic", "shapes", "data", "io"), OF_THE_HOST), (("cuda", "symbolic"), OF_A_DEVICE)],
    ids=["on the host", "for a device"],
)
def test_the_lowest_versions_pass(tmp_path, extras, tested):
    """Half a gigabyte to install, then some minutes; oracles of the tests come in any version."""
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*install, *lowest_versions(extras), "pytest>=8", "mpmath>=1.3", "hypothesis>=6.100"], check=True)
    files = [f"tests/{name}" for name in tested]
    done = subprocess.run(
        [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "default", *files],
        cwd=ROOT,
        env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=3000,
    )
    assert done.returncode == 0, done.stdout[-5000:]
