"""Scripts side by side: small ones, which a program of its own runs, as its children must find them too."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
# The children of a program import it again, and so find the same scripts.
PROGRAM = """
import importlib
import os
import sys
from pathlib import Path

import figures.__main__ as command_line
from figures import script

HERE = Path(__file__).parent / "figures"
runner = sys.modules[script.__module__]
runner.HERE, runner.digest = HERE, lambda module, function: f"digest of {module}"
importlib.import_module("figures").__path__.insert(0, str(HERE))

if __name__ == "__main__":
    sys.exit(command_line.main(sys.argv[1:]))
"""
SCRIPT = '''"""Small figure {name}."""
import os
import sys
import time
import warnings
from pathlib import Path

import matplotlib.pyplot as plt

SEED = 5
ALONE = {alone}


def measure(study):
    note({log!r}, "{name} begins")
    {body}
    note({log!r}, "{name} ends")
    return {{"x": [float(study.seed)]}}


def note(log, text):
    with open(log, "a") as file:
        print(text, os.getpid(), len(os.sched_getaffinity(0)), file=file)


def wait_for(text):
    while text not in Path({log!r}).read_text():
        time.sleep(0.01)


def draw(data):
    return plt.figure(figsize=(0.2, 0.1 * len(data["x"])))


def table(data):
    return [{{"x": float(data["x"][0])}}]
'''
pytestmark = pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="scripts say which cores they have")


class Scripts:
    """Small scripts in a folder of their own, and a program that runs them."""

    def __init__(self, folder):
        self.folder, self.log, self.out = folder, folder / "log", folder / "out"
        (folder / "figures").mkdir()
        (folder / "program.py").write_text(PROGRAM)
        self.log.touch()

    def add(self, name, body="pass", *, alone=False):
        text = SCRIPT.format(name=name, body=body, alone=alone, log=str(self.log))
        (self.folder / "figures" / f"{name}.py").write_text(text)

    def start(self, *arguments):
        command = [sys.executable, str(self.folder / "program.py"), "run", *arguments, "--out", str(self.out)]
        environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"}
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                encoding="utf-8", start_new_session=True)  # fmt: skip

    def run(self, *arguments):
        process = self.start(*arguments)
        out, err = process.communicate(timeout=120)
        return process.returncode, out.splitlines(), err.splitlines()

    def notes(self):
        return [line.split() for line in self.log.read_text().splitlines()]


@pytest.fixture
def scripts(tmp_path):
    return Scripts(tmp_path)


def is_running(pid):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False


def test_the_command_of_the_readme_runs_scripts_side_by_side(tmp_path):
    """Run as a module, whose functions no child process can import; the other tests run a program of their own."""
    chosen = ["csgmcmc_fig1", "r2sgld_fig13_deo_paths"]
    command = [sys.executable, "-m", "figures", "run", *chosen, "--jobs", "2", "--quick", "--out", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [line.split(":")[0] for line in done.stdout.splitlines() if "measured and drawn" in line] == chosen
    assert "2 of 2 figures are in" in done.stdout
    assert {path.stem for path in tmp_path.glob("*/*.png")} | {path.stem for path in tmp_path.glob("*.png")} == {
        *chosen
    }


def test_lines_come_in_order_and_failures_at_the_end(scripts):
    """The first ends last; the second fails, the third's process dies, the fourth warns, the fifth shows seconds."""
    scripts.add("csgld_fig1", 'wait_for("csgld_fig4 ends")')
    scripts.add("csgld_fig2", "raise ValueError('no number')")
    scripts.add("csgld_fig3", "os._exit(7)")
    scripts.add("csgld_fig4", 'print("said"); warnings.warn("warned")')
    scripts.add("csgld_fig5", alone=True)
    scripts.add("gallery_all")
    order = ["csgld_fig1", "gallery_all", "csgld_fig2", "csgld_fig4", "csgld_fig3", "csgld_fig5"]
    status, out, err = scripts.run("--jobs", "2")
    assert status == 1
    assert [line for line in out if " of 6: " in line] == [f"{k + 1} of 6: {name}" for k, name in enumerate(order)]
    ends = [line.split()[0].rstrip(":") for line in out if " measured and drawn in " in line or " failed" in line]
    assert ends == order
    assert out.index("said") < next(k for k, line in enumerate(out) if line.startswith("csgld_fig4: measured"))
    assert any("warned" in line for line in out)
    assert any("Traceback" in line for line in out)
    assert err == [
        "csgld_fig2: ValueError: no number", "csgld_fig3: its process ended with exit status 7",
        "failed: csgld_fig2, csgld_fig3",
    ]  # fmt: skip
    notes = scripts.notes()
    assert [note[:2] for note in notes[-2:]] == [["csgld_fig5", "begins"], ["csgld_fig5", "ends"]]
    cores = len(os.sched_getaffinity(0))
    shares = {name: int(n) for name, _, _, n in notes}
    assert shares["csgld_fig5"] == cores
    if cores > 1:
        assert shares["csgld_fig1"] + shares["csgld_fig4"] == cores
    assert len({pid for _, _, pid, _ in notes}) <= 3  # two, and one in place of the one that died
    assert not any(is_running(int(pid)) for _, _, pid, _ in notes)


@pytest.mark.slow
def test_files_are_those_of_one_after_another(scripts):
    for k in range(1, 4):
        scripts.add(f"csgld_fig{k}")
    assert scripts.run("--jobs", "3")[0] == 0
    first = {path.name: path.read_bytes() for path in scripts.out.glob("csgld*")}
    assert len({pid for _, _, pid, _ in scripts.notes()}) > 1
    scripts.log.write_text("")
    assert scripts.run("--jobs", "1", "--fresh")[0] == 0
    assert len({pid for _, _, pid, _ in scripts.notes()}) == 1
    assert first == {path.name: path.read_bytes() for path in scripts.out.glob("csgld*")}
    assert len(first) == 9


def wait_until(condition):
    last = time.monotonic() + 60.0
    while not condition():
        assert time.monotonic() < last
        time.sleep(0.02)


@pytest.mark.parametrize("to_all", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_ctrl_c_ends_all_without_a_word_from_the_children(scripts, to_all):
    """A terminal sends it to all processes of the group, and `kill -INT` to one; a partial file is removed."""
    body = 'try:\n        Path("{}").touch(); time.sleep(100)\n    finally:\n        os.remove("{}")'
    partial = [scripts.folder / "partial1", scripts.folder / "partial2"]
    for name, path in zip(("csgld_fig1", "csgld_fig3"), partial, strict=True):  # those that begin
        scripts.add(name, body.format(path, path))
    scripts.add("csgld_fig2")
    process = scripts.start("--jobs", "2")
    wait_until(lambda: all(path.exists() for path in partial))
    children = [int(pid) for _, _, pid, _ in scripts.notes()]
    (os.killpg if to_all else os.kill)(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert out.splitlines() == ["1 of 3: csgld_fig1", "2 of 3: csgld_fig3"]
    assert err == "interrupted: figures that were finished are kept, and are not measured again\n"
    assert len(children) == 2
    assert not any(map(is_running, children))
    assert not any(path.exists() for path in partial)


@pytest.mark.slow
def test_children_do_not_outlive_a_parent_that_is_killed(scripts):
    for k in (1, 2):
        scripts.add(f"csgld_fig{k}", "time.sleep(100)")
    process = scripts.start("--jobs", "2")
    wait_until(lambda: len(scripts.notes()) == 2)
    process.kill()
    process.communicate(timeout=30)
    wait_until(lambda: not any(is_running(int(pid)) for _, _, pid, _ in scripts.notes()))
