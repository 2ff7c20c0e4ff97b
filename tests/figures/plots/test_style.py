"""Colours that differ in grey and to the colour-blind, fonts, bytes that repeat; and the page's code as written."""

import io
import itertools
import re
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgb

import figures
from figures.plots import style


def lightness(rgb):
    """CIE L* of linear RGB."""
    y = rgb @ [0.2126, 0.7152, 0.0722]
    return 116.0 * np.cbrt(y) - 16.0 if y > 0.008856 else 903.3 * y


def linear(colour):
    c = np.array(to_rgb(colour))
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    """CIE L*a*b* of linear RGB, white D65."""
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    t = np.clip(to_xyz @ rgb, 0.0, None) / [0.9505, 1.0, 1.089]
    f = np.where(t > 0.008856, np.cbrt(t), 7.787 * t + 16.0 / 116.0)
    return np.array([116.0 * f[1] - 16.0, 500.0 * (f[0] - f[1]), 200.0 * (f[1] - f[2])])


# What people without one kind of cone see, of linear RGB. Source: Machado, Oliveira & Fernandes (2009), severity 1.
SEEN = {
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def test_colours_differ_in_grey_and_to_the_colour_blind():
    colours = [linear(entry["color"]) for entry in style.STYLE["axes.prop_cycle"]]
    assert len(colours) == 5
    light = np.sort([lightness(c) for c in colours])
    assert np.diff(light).min() > 9.0  # L* goes from 0 to 100; 2.3 is just seen
    assert light.max() < 75.0  # and shows on white
    for matrix in SEEN.values():
        for a, b in itertools.combinations(colours, 2):
            assert np.hypot.reduce(lab(np.array(matrix) @ a) - lab(np.array(matrix) @ b)) > 15.0


def test_the_cycle_of_lines_has_dashes_of_its_own():
    entries = list(style.CYCLE)
    for five in (entries[:5], entries[5:]):
        assert len({str(entry["linestyle"]) for entry in five}) == len(five) == 5
        assert [entry["color"] for entry in five] == list(style.COLOURS)
    assert len({(entry["color"], str(entry["linestyle"])) for entry in entries}) == 10
    with figures.paper_style():
        axes = plt.subplots()[1]
        assert axes.plot([0, 1], color="red")[0].get_linestyle() == axes.plot([0, 1], color="red")[0].get_linestyle()
        axes.set_prop_cycle(style.CYCLE)
        lines = [figures.kl_curve([1, 2], np.arange(6.0).reshape(3, 2) + 1.0, axes, label="x")[0] for _ in range(5)]
    assert len({str(line._unscaled_dash_pattern) for line in lines}) == 5
    plt.close("all")


def written():
    """A PDF with text in two fonts."""
    with figures.paper_style():
        figure, axes = plt.subplots(figsize=(style.COLUMN, 2.0))
        axes.set(xticks=[], yticks=[], xlabel="θ, $U$")
        file = io.BytesIO()
        figure.savefig(file, format="pdf", metadata={"CreationDate": None})
        plt.close(figure)
    return file.getvalue()


def test_fonts_are_embedded_as_truetype_and_bytes_repeat():
    pdf = written()
    assert pdf.count(b"/FontFile2") == 2
    assert b"/Type3" not in pdf.replace(b" ", b"")
    assert written() == pdf


def test_style_leaves_settings_as_they_were():
    with mpl.rc_context({"font.size": 31.0, "lines.linewidth": 9.0, "axes.grid": True}):
        with figures.paper_style():
            assert (mpl.rcParams["font.size"], mpl.rcParams["axes.grid"]) == (8, False)
            assert mpl.rcParams["pdf.fonttype"] == mpl.rcParams["ps.fonttype"] == 42
        assert (mpl.rcParams["font.size"], mpl.rcParams["axes.grid"]) == (31.0, True)
    assert 2 * style.COLUMN < style.WIDTH == 6.75


def test_the_pages_code_runs_as_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # it writes a file
    page = (Path(__file__).resolve().parents[3] / "docs" / "plotting.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.S)
    names = {}
    for block in blocks:
        exec(compile(block, "docs/plotting.md", "exec"), names)
        plt.close("all")
    used = {name for name in figures.__all__ if f"figures.{name}(" in "".join(blocks)}
    pictures = {name for name in figures.__all__ if "docs/plots.png, (" in (getattr(figures, name).__doc__ or "")}
    assert pictures <= used
    assert len(pictures) == 8
    assert b"/Type3" not in (tmp_path / "flower.pdf").read_bytes().replace(b" ", b"")
    x, height = names["drawn"].pooled.get_data()
    left = height[x < -1.0].sum() * (x[1] - x[0])
    assert left == pytest.approx(0.4, abs=0.1)  # the gallery's error over 8 chains is 0.014
