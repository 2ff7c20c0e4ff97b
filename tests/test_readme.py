"""The README's code runs as written, in order, and says what is true."""

import re
from pathlib import Path

README = (Path(__file__).resolve().parents[1] / "README.md").read_text(encoding="utf-8")


def test_the_code_runs_as_written():
    blocks = re.findall(r"```python\n(.*?)```", README, re.S)
    assert len(blocks) == 6
    names = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
    run = names["run"]
    assert run.draws.shape == (10, 40_000, 2)
    assert names["problem"].contains(run.draws.reshape(-1, 2)).all()
    assert names["problem"].contains(names["walls"].draws.reshape(-1, 2)).all()
    assert 20_000 < names["worth"] < 40_000
    assert abs(names["mean"]).max() < 4
    assert abs(names["second_moment"] - 2.35).max() < 0.4
    assert names["points"].shape == names["flat"].draws.shape
    wells = names["wells"].draws
    assert 0.7 < abs(wells).mean() < 1.1


def test_files_it_names_exist():
    root = Path(__file__).resolve().parents[1]
    for name in re.findall(r"\]\((docs/[^)]+)\)", README) + re.findall(r"(figures/\w+\.py)", README):
        assert (root / name).exists(), name
