"""The README's code runs as written, in order, and says what is true."""

import re
from pathlib import Path

import pytest

README = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")


def test_the_code_runs_as_written(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # it writes files
    blocks = re.findall(r"```python\n(.*?)```", README, re.S)
    assert len(blocks) == 21
    names = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
    run = names["run"]
    assert run.draws.shape == (10, 40_000, 2)
    for same in (names["whole"], names["again"]):
        assert (same.draws == run.draws).all()
    assert names["part"].draws.shape == (10, 10_000, 2)
    assert names["tree"]["posterior"]["x"].shape == run.draws.shape
    assert (names["gathered"].accumulated["kl"].kl[:, 1] < names["gathered"].accumulated["kl"].kl[:, 0]).all()
    assert names["report"].passed
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
    assert names["alone"].draws.shape == (1, 10_000, 2)
    printed = capsys.readouterr().out
    assert printed.count("agrees with differences at 16 points") == 5
    assert "\nThe gradient has the wrong sign: a step along −gradient raises the energy." in printed


def test_files_it_names_exist():
    root = Path(__file__).resolve().parents[2]
    for name in re.findall(r"\]\((docs/[^)]+)\)", README) + re.findall(r"(figures/\w+\.py)", README):
        assert (root / name).exists(), name
