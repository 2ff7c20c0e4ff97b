"""The site beside the tour: tutorials and pages run and are reached, figures have pages, and it builds and shows."""

import importlib.util
import re
import runpy
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

from figures.scripts.runner import names, script

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
TUTORIALS = {path.stem: path.read_text(encoding="utf-8") for path in (DOCS / "tutorials").glob("*.md")}
INDEX = TUTORIALS.pop("index")
QUICK = {"long_runs", "own_model"}  # the others take some seconds more


def near(value, expected, within):
    """Whether all numbers are near what is expected."""
    return bool((np.abs(np.asarray(value) - np.asarray(expected)) < within).all())


def says(run, text):
    """Whether a warning of the run has the text."""
    return any(text in sentence for sentence in run.warnings)


HOLDS = {  # what the text says of each tutorial's numbers
    "first_posterior": lambda it: (
        it["run"].warnings == []
        and near(it["shares"], [0.5, 0.3, 0.2], 0.03)
        and says(it["stuck"], "2 of 3 modes of the truth have no draws")
        and says(it["stuck"], "began at one point")
    ),
    "walls": lambda it: (
        it["problem"].contains(it["reflecting"].draws.reshape(-1, 2)).all()
        and not it["problem"].contains(it["ignoring"].draws.reshape(-1, 2)).all()
        and 0.0 < it["reflecting"].reflections.mean() / it["reflecting"].n_steps < 0.1
        and says(it["coarse"], "meets the wall")
    ),
    "minibatches": lambda it: (
        it["noisy"].sampler.name == "sghmc"
        and near(np.median(it["widths"](it["noisy"])), 1.0, 0.05)
        and np.median(it["widths"](it["runs"]["SGLD 1e-2, plain"])) > 1.3
        and "BIASED" in str(it["report"])
    ),
    "which_sampler": lambda it: (
        it["diagnostics"].r_hat(it["runs"]["SGLD"].draws).max() > 1.5
        and all(near(run.gradient_evaluations, 960_000, 50_000) for run in it["runs"].values())
    ),
    "contour": lambda it: (
        near(it["left_mode"].mean(), 0.4, 0.08)
        and (it["weighted_ess"](it["run"].weights) > 750).all()
        and says(it["bad"], "lie above the partition")
    ),
    "own_model": lambda it: (
        near((it["run"].draws[..., 0] > 0.0).mean(), 0.5, 0.1) and it["by_callable"].name == "product_of_arrays"
    ),
    "ode_from_csv": lambda it: (
        set(it["found"].sparse.support)
        == {"dprey:prey", "dprey:prey predator", "dpredator:predator", "dpredator:prey predator"}
        and any("intervals may be too narrow" in str(one.message) for one in it["caught"])
        and it["low"][-1, 0] < it["middle"][-1, 0] < it["high"][-1, 0]
    ),
    "long_runs": lambda it: (
        (it["longer"].draws == it["at_once"].draws).all()
        and (it["again"].draws == it["longer"].draws).all()
        and it["gathered"].stopping.satisfied
    ),
}


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in sorted(TUTORIALS)]
)
def test_the_cells_of_a_tutorial_run_and_its_text_is_true(name, capsys):
    it = {}
    for cell in re.findall(r"```{code-cell} ipython3\n(?::[^\n]*\n+)*(.*?)```", TUTORIALS[name], re.S):
        exec(compile(cell, f"{name}.md", "exec"), it)
    plt.close("all")
    assert HOLDS[name](it)
    assert capsys.readouterr().out


def test_the_tutorials_are_listed():
    tree = re.search(r"```{toctree}\n:hidden:\n\n(.*?)```", INDEX, re.S)[1].split()
    assert sorted(tree) == sorted(TUTORIALS) == sorted(HOLDS)
    assert re.findall(r"^\| \[.*\]\((\w+)\.md\) \|", INDEX, re.M) == tree


@pytest.mark.parametrize("name", sorted(TUTORIALS))
def test_a_tutorial_is_short_and_its_links_lead_to_files(name):
    text = TUTORIALS[name]
    assert "**Question.**" in text
    assert "## What goes wrong" in text
    for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        assert (DOCS / "tutorials" / link).exists(), link


def test_our_code_for_those_who_come_from_elsewhere_runs(capsys):
    text = (DOCS / "coming_from.md").read_text(encoding="utf-8")
    it = {}
    for block in re.findall(r"```python\n(.*?)```", text, re.S):
        exec(compile(block, "coming_from.md", "exec"), it)
    assert near(it["positive"], 0.5, 0.1)
    assert set(it["found"].sparse.support) == {"dx:x", "dx:y", "dy:x", "dy:y", "dy:xz", "dz:z", "dz:xy"}
    for block in re.findall(r"```python \w+\n(.*?)```", text, re.S):
        compile(block, "coming_from.md", "exec")


def test_the_version_to_cite_is_this_one():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"version = {{{version}}}" in (DOCS / "cite.md").read_text(encoding="utf-8")


def test_every_figure_has_a_page():
    page_of = runpy.run_path(str(DOCS / "_extensions" / "figure_pages.py"))["page_of"]
    for name in names():
        page = page_of(script(name), "")
        (source,) = re.findall(r"^```{literalinclude} \.\./\.\./(\S+)$", page, re.M)
        assert (ROOT / source).exists()
        assert f"-m figures run {name}\n" in page


def python_of_docs():
    """A Python that can build the site, or None."""
    own = ROOT / ".venv-docs" / "bin" / "python"
    if own.exists():
        return str(own)
    needed = ("sphinx", "myst_nb", "pydata_sphinx_theme", "sphinx_copybutton")
    return sys.executable if all(importlib.util.find_spec(one) for one in needed) else None


@pytest.mark.slow
def test_the_site_builds_without_a_warning_and_shows(tmp_path):
    python = python_of_docs()
    if python is None:
        pytest.skip("the extra docs is not installed")
    command = [python, "-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet", "docs", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    chromium = next(
        (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
    )
    if chromium is None or subprocess.run([python, "-c", "import playwright"], capture_output=True).returncode != 0:
        pytest.skip("the site is built, but there is no Chromium, or no Playwright, to look at it")
    look = [python, str(ROOT / "tests" / "laws" / "look_at_site.py"), str(tmp_path / "site"), chromium]
    done = subprocess.run(look, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stdout + done.stderr
