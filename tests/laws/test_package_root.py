"""What depends on where the packages lie does not depend on how deep their files lie in them."""

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
from toolkit.errors import package_root

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
