"""What depends on where the packages lie does not depend on how deep their files lie in them."""

import importlib.metadata
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import figures
import sysid
import targets
import toolkit
from toolkit._compiler import disk_cache
from toolkit._engine.cuda import refusals
from toolkit.errors import DISTRIBUTION, how_to_install, package_root

ROOT = Path(__file__).resolve().parents[2]
DEEP = "inner/deeper/part.py"


@pytest.mark.parametrize("package", [toolkit, targets, sysid, figures], ids=lambda package: package.__name__)
def test_a_package_is_found_from_any_depth(package):
    folder = Path(package.__file__).resolve().parent
    for module in (package.__name__, f"{package.__name__}.inner", f"{package.__name__}.inner.deeper.part"):
        assert package_root(module) == folder == disk_cache.package_folder(module)


@pytest.mark.parametrize("module", ["__main__", "nowhere.part", "this"])
def test_what_is_no_package_has_no_folder(module, monkeypatch):
    monkeypatch.setitem(sys.modules, "this", type(sys)("this"))
    assert disk_cache.package_folder(module) is None
    with pytest.raises(RuntimeError, match="is no package"):
        package_root(module)


@pytest.mark.slow
def test_the_stamp_is_of_every_file_at_any_depth(tmp_path):
    """Of a copy of the package, the stamp that a process of its own has: each edit of a subfolder's file changes it."""

    def stamp():
        script = (
            "import toolkit; from toolkit._compiler import disk_cache; print(toolkit.__file__, disk_cache.OWN_STAMP)"
        )
        made = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
        file, found = made.stdout.split()
        assert Path(file) == tmp_path / "toolkit" / "__init__.py"
        return found

    shutil.copytree(ROOT / "toolkit", tmp_path / "toolkit", ignore=shutil.ignore_patterns("__pycache__"))
    found = [stamp()]
    assert found == [disk_cache.OWN_STAMP]
    for text in ("FACTOR = 1.0\n", "FACTOR = 2.0\n"):
        file = tmp_path / "toolkit" / DEEP
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        found.append(stamp())
    assert len(set(found)) == 3
    for edited in ("philox.py", "disk_cache.py"):
        (file,) = (tmp_path / "toolkit").rglob(edited)
        file.write_text(file.read_text(encoding="utf-8") + "\n# another line\n", encoding="utf-8")
        found.append(stamp())
    assert len(set(found)) == 5


def test_files_of_every_depth_are_not_the_users(tmp_path):
    assert not refusals.is_users(str(ROOT / "toolkit" / DEEP))
    assert not refusals.is_users(str(ROOT / "toolkit" / "maths.py"))
    assert refusals.is_users(str(tmp_path / "mine.py"))


def test_tables_lie_in_their_packages(tmp_path):
    from figures.scripts.output import OUT, usual_folder
    from sysid.data import lynx_hare
    from targets.posteriors.logistic_truth import STORE

    assert ROOT / "figures" / "out" == OUT
    assert usual_folder(tmp_path / "figures") == Path("manymodes_figures"), "of an installed package"
    assert STORE.is_relative_to(ROOT / "targets")
    assert STORE.is_file()
    assert len(lynx_hare().times) == 21


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (None, 'pip install "manymodes[io]"'),
        ('{"url": "file:///home/a%20b/clone", "dir_info": {}}', 'pip install "/home/a b/clone[io]"'),
        (
            '{"url": "https://host.example/it", "vcs_info": {"vcs": "git", "commit_id": "0"}}',
            'pip install "manymodes[io] @ git+https://host.example/it"',
        ),
        ("torn", 'pip install "manymodes[io]"'),
    ],
)
def test_an_extra_is_installed_from_where_the_package_came(record, expected, tmp_path, monkeypatch):
    assert how_to_install("io") == f'pip install --editable "{ROOT}[io]"', "of a clone"
    monkeypatch.setattr("toolkit.errors.package_root", lambda module: tmp_path / "toolkit")

    class Found:
        def read_text(self, name):
            assert name == "direct_url.json"
            return record

    monkeypatch.setattr(importlib.metadata, "distribution", lambda name: Found() if name == DISTRIBUTION else None)
    assert how_to_install("io") == expected


HIDDEN = [
    (needed, command, kind)
    for needed, command in (
        ("targets", "import sysid"),
        ("targets", "import figures"),
        ("sysid", "import figures"),
        ("figures", "import toolkit; toolkit.Run.plot(None)"),
    )
    for kind in ("file", "folder")
]
# Every command finds the packages anew; only what they need themselves, as Numba, stays imported.
COMMANDS = """
import json
import sys

before = list(sys.path)
for first, command in json.loads(sys.argv[1]):
    sys.path[:] = [*first, *before]
    for name in [name for name in sys.modules if name.partition(".")[0] in ("toolkit", "targets", "sysid", "figures")]:
        del sys.modules[name]
    try:
        exec(command)
    except Exception as error:
        print(json.dumps(f"{type(error).__name__}: {error}"))
    else:
        print(json.dumps("none"))
"""


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """Of every file that hides a package: the file, and what a process says."""
    hiding, asked = {}, []
    for needed, command, kind in HIDDEN:
        folder = tmp_path_factory.mktemp("hiding")
        file = folder / f"{needed}.py" if kind == "file" else folder / needed / "__init__.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text("")
        hiding[needed, command, kind] = file
        asked.append(([str(folder), str(ROOT)], command))
    done = subprocess.run(
        [sys.executable, "-c", COMMANDS, json.dumps(asked)], cwd=folder, capture_output=True, text=True, check=True
    )
    return {case: (hiding[case], json.loads(line)) for case, line in zip(HIDDEN, done.stdout.splitlines(), strict=True)}


@pytest.mark.parametrize(("needed", "command", "kind"), HIDDEN)
def test_a_file_of_the_users_that_hides_a_package_is_named(needed, command, kind, said):
    """Its folder comes first, as a script's own does."""
    hiding, error = said[needed, command, kind]
    assert f"needs the package {needed} of manymodes, but Python finds another one first, {hiding}" in error


HIDE = "import numba.core.caching as caching; del caching.NullCache; import toolkit"


def test_a_numba_without_a_name_that_we_need_is_said_with_the_versions_that_were_tried():
    done = subprocess.run([sys.executable, "-c", HIDE], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert "ImportError: manymodes compiles with a name that Numba" in last
    assert "NullCache" in last
    assert "have been tried: pip install 'numba>=0.61,<=" in last
