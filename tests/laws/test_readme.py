"""The code of the README, the tour and the pages beside it runs as written, in order, and says what is true."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WRITTEN = {"reference/index", "gallery/index"}  # by the site's build
SITE_ONLY = {"index", "guide", "explanations", "contributing", "changelog"}
PAGES = {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / "README.md", *(ROOT / "docs").glob("*.md"))}


def blocks_of(page):
    """The page's code."""
    return re.findall(r"```python\n(.*?)```", PAGES[page], re.S)


def test_the_readmes_code_runs_twice_in_a_folder(capsys, tmp_path, monkeypatch):
    """The second time from what the first has kept, which its first block alone does."""
    monkeypatch.chdir(tmp_path)
    first, *others = blocks_of("README")
    names = {}
    exec(compile(first, "README.md", "exec"), names)
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    for block in others:
        exec(compile(block, "README.md", "exec"), names)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == kept
    again = {}
    exec(compile(first, "README.md", "exec"), again)
    for ran in (names, again):
        assert not ran["run"].warnings
        assert not ran["good"].warnings
    assert (names["run"].draws == again["run"].draws).all()
    assert names["run"].draws.shape == (10, 40_000, 2)
    assert names["mine"].draws.shape[-1] == 2
    assert set(names["found"].sparse.support) == {"dx:x", "dx:y", "dy:x", "dy:y", "dy:xz", "dz:z", "dz:xy"}
    assert capsys.readouterr().out.count("agrees with differences at 16 points") == 1


@pytest.mark.slow_cases("speed")  # it compiles an engine of its own for one call, as tests of fused engines make it
@pytest.mark.parametrize("page", ["guarantees", "speed"])
def test_the_code_of_a_page_runs_as_written(page, capsys):
    names = {}
    for block in blocks_of(page):
        exec(compile(block, f"{page}.md", "exec"), names)
    assert names["report"].passed if page == "guarantees" else names["alone"].draws.shape == (1, 10_000, 2)


def test_the_tours_code_runs_as_written(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # it writes files
    blocks = blocks_of("tour")
    assert len(blocks) == 19
    names = {}
    for block in blocks:
        exec(compile(block, "tour.md", "exec"), names)
    run = names["run"]
    assert run.draws.shape == (10, 40_000, 2)
    for same in (names["whole"], names["again"]):
        assert (same.draws == run.draws).all()
    assert names["tree"]["posterior"]["x"].shape == run.draws.shape
    assert (names["gathered"].accumulated["kl"].kl[:, 1] < names["gathered"].accumulated["kl"].kl[:, 0]).all()
    assert names["problem"].contains(run.draws.reshape(-1, 2)).all()
    assert names["problem"].contains(names["walls"].draws.reshape(-1, 2)).all()
    assert 20_000 < names["worth"] < 40_000
    assert abs(names["mean"]).max() < 4
    assert abs(names["second_moment"] - 2.35).max() < 0.4
    assert names["points"].shape == names["flat"].draws.shape
    shares = names["truth"].memberships(names["exact"]).mean(axis=0)
    assert shares == pytest.approx(names["truth"].modes.weights, abs=0.06)
    quarter = names["quarter"].truth
    assert (names["inside"].draws >= 0.0).all()
    assert names["inside"].draws.mean(axis=(0, 1)) == pytest.approx(quarter.mean, abs=0.05)
    assert [door.name for door in names["doors"]] == ["ring", "ring by a block", "ring by SymPy", "ring_of_arrays"]
    lorenz = names["identified"].estimates(names["found"])
    assert (abs(lorenz.mean - [10.0, 28.0, 8 / 3]) < 5.0 * lorenz.sd).all()
    assert (names["low"] <= names["high"]).all()
    pelts = dict(zip(names["table"].names, names["table"].mean, strict=True))
    assert pelts["alpha"] == pytest.approx(0.547, abs=0.02)
    assert pelts["sd(lynx)"] == pytest.approx(0.251, abs=0.02)
    printed = capsys.readouterr().out
    assert printed.count("agrees with differences at 16 points") == 4
    assert "\nThe gradient has the wrong sign: a step along −gradient raises the energy." in printed


@pytest.mark.parametrize("page", sorted(PAGES))
def test_links_lead_to_files(page):
    folder = ROOT if page == "README" else ROOT / "docs"
    for name in re.findall(r"\bfigures/\w+\.py", PAGES[page]):
        assert (ROOT / name).exists(), name
    for name in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", PAGES[page]):
        assert (folder / name).exists() or name.removesuffix(".md") in WRITTEN, name


def test_the_readme_is_short_and_leads_to_every_page():
    assert PAGES["README"].count("\n") <= 150
    reached = {page: set(re.findall(r"\]\((?:docs/)?(\w+)\.md", text)) for page, text in PAGES.items()}
    found, left = {"README"}, ["README"]
    while left:
        new = (reached[left.pop()] & PAGES.keys()) - found
        found |= new
        left += new
    assert found == PAGES.keys() - SITE_ONLY


def test_the_site_has_every_page():
    trees = [tree for page in PAGES.values() for tree in re.findall(r"```{toctree}\n(.*?)```", page, re.S)]
    listed = re.findall(r"^([\w/]+)$", "\n".join(trees), re.M)
    assert sorted(listed) == sorted({*PAGES.keys() - {"README", "index"}, *WRITTEN, "tutorials/index"})


def test_the_reference_has_every_public_name():
    """Each name once: with its module, or with the package where that names it, too."""
    conf = runpy.run_path(str(ROOT / "docs" / "conf.py"))
    modules = conf["public_modules"]()
    text = "".join(conf["page_of"](name, module) for name, module in modules.items())
    shown = re.findall(r"^\.\. auto(?:class|exception|function|data):: (\S+)$", text, re.M)
    named = (ROOT / "benchmarks" / "measured" / "public_names.txt").read_text(encoding="utf-8").split()
    assert len(set(shown)) == len(shown)
    last = {name.rpartition(".")[2] for name in (*shown, *modules)}
    assert {name.rpartition(".")[2] for name in named} <= last
