"""Data sets for classification: files of the UCI repository, shipped or a user's own, and stand-ins asked for by name.

Credit and licence of the files: ``uci_files/ATTRIBUTION.md``.
"""

import os
from typing import NamedTuple

import numpy as np

from toolkit.errors import check_choice, check_flag, optional

from ..arrays import Array, Integers
from . import synthetic
from .files import (
    AUSTRALIAN,
    DIGITS_DOI,
    DIGITS_FILE,
    GERMAN,
    HEART,
    MUSHROOM_CODES,
    MUSHROOM_DOI,
    MUSHROOM_FILE,
    Layout,
    read_digits,
    read_mushroom,
    read_numbers,
    source_of,
)

PathLike = str | os.PathLike[str]


class DataSet(NamedTuple):
    """Features and classes; ``name`` says "stand-in" where the data are synthetic, for figures and tables to show.

    features: (rows, columns). labels: (rows,), 0 or 1, of ``digits`` 0 to 9. names: of the columns. source: the user's
    file, the shipped one with its doi, or how the data were made. is_stand_in: whether they were made.
    """

    name: str
    features: Array
    labels: Integers
    names: tuple[str, ...]
    source: str
    is_stand_in: bool


def standardised(table: Array) -> Array:
    """Columns less their mean, over their standard deviation (divisor n); constant columns are left as they are."""
    spread = table.std(axis=0)
    constant = np.ptp(table, axis=0) == 0.0
    return np.asarray(np.where(constant, table, (table - table.mean(axis=0)) / np.where(constant, 1.0, spread)))


def with_intercept(table: Array) -> Array:
    """A column of ones, then ``table``."""
    return np.column_stack([np.ones(len(table)), table])


def australian(path: PathLike | None = None, *, standardise: bool = True) -> DataSet:
    """Australian credit approval: 690 rows, an intercept and 14 attributes; label 1: class 1 (307 rows).

    path: of another ``australian.dat``; None: the shipped file. standardise: every attribute, coded ones too, to mean 0
    and deviation 1; False leaves the columns as they are in the file. Raises FileNotFoundError, TypeError or ValueError
    naming file, line and column, or the argument. Source: R. Quinlan, Statlog, doi 10.24432/C59012.
    """
    return numeric_data_set(path, AUSTRALIAN, standardise)


def german(path: PathLike | None = None, *, standardise: bool = True) -> DataSet:
    """German credit: 1000 rows, an intercept and 24 attributes; label 1: class 2, bad (300 rows).

    path: of another ``german.data-numeric``; None: the shipped file. standardise and what is raised: as ``australian``.
    Source: H. Hofmann, Statlog, doi 10.24432/C5NC77.
    """
    return numeric_data_set(path, GERMAN, standardise)


def heart(path: PathLike | None = None, *, standardise: bool = True) -> DataSet:
    """Heart disease: 270 rows, an intercept and 13 attributes; label 1: class 2, presence (120 rows).

    path: of another ``heart.dat``; None: the shipped file. standardise and what is raised: as ``australian``.
    Source: Statlog, doi 10.24432/C57303.
    """
    return numeric_data_set(path, HEART, standardise)


def numeric_data_set(path: PathLike | None, layout: Layout, standardise: bool) -> DataSet:
    """The data of a file of numbers, with an intercept."""
    standardise = check_flag("standardise", standardise)
    table, labels = read_numbers(path, layout)
    features = with_intercept(standardised(table) if standardise else table)
    source = source_of(layout.file, layout.title, layout.doi, path)
    return DataSet(layout.name, features, labels, column_names(layout), source, is_stand_in=False)


def column_names(layout: Layout) -> tuple[str, ...]:
    """The intercept, then A1, A2, … as the documentation of the files numbers the attributes."""
    return ("intercept", *(f"A{i}" for i in range(1, layout.columns)))


def mushroom(path: PathLike | None = None) -> DataSet:
    """Mushroom: 8124 rows, 117 columns of 0 and 1, one for each code of each attribute; label 1: poisonous (3916 rows).

    path: of another ``agaricus-lepiota.data``; None: the shipped file. The missing mark '?' of stalk-root (2480 rows)
    is a code like any other. There is no intercept: the only code of veil-type makes a column of ones.
    Raises as ``australian`` does. Source: J. Schlimmer, doi 10.24432/C5959T.
    """
    rows, labels = read_mushroom(path)
    source = source_of(MUSHROOM_FILE, "Mushroom", MUSHROOM_DOI, path)
    return DataSet("Mushroom", *indicators(rows, labels), source, is_stand_in=False)


def indicators(rows: list[str], labels: Integers) -> tuple[Array, Integers, tuple[str, ...]]:
    """Features, labels and names of mushrooms: a column of 0 and 1 for each code."""
    table = np.array([list(row) for row in rows])
    columns = [table[:, c] == code for c, codes in enumerate(MUSHROOM_CODES.values()) for code in codes]
    names = tuple(f"{name}={code}" for name, codes in MUSHROOM_CODES.items() for code in codes)
    return np.column_stack(columns).astype(np.float64), labels, names


def digits() -> DataSet:
    """Handwritten digits: 1797 rows, the 64 grey levels of 8 × 8 pixels from 0 to 1, row by row; labels 0 to 9.

    The file's levels, 0 to 16, are divided by 16; there is no intercept. Source: E. Alpaydin and C. Kaynak, Optical
    Recognition of Handwritten Digits, test part, doi 10.24432/C50P49.
    """
    levels, labels = read_digits()
    names = tuple(f"pixel {row}, {column}" for row in range(8) for column in range(8))
    source = source_of(DIGITS_FILE, "Optical Recognition of Handwritten Digits, test part", DIGITS_DOI, None)
    return DataSet("Digits", levels / 16.0, labels, names, source, is_stand_in=False)


# Levels of each attribute (0: continuous), rows of class 1, strength of the score, seed.
NUMERIC_STAND_INS = {
    "australian": (AUSTRALIAN, (2, 0, 0, 3, 14, 9, 0, 2, 2, 0, 2, 3, 0, 0), 307, 3.5, 1),
    "german": (GERMAN, (4, 0, 5, 0, 5, 5, 4, 4, 0, 3, 4, 2, 2, 2, *(2,) * 10), 300, 1.5, 2),
    "heart": (HEART, (0, 2, 4, 0, 0, 2, 3, 0, 2, 0, 3, 4, 3), 120, 2.5, 3),
}


def stand_in(name: str) -> DataSet:
    """Synthetic data with rows, columns, class counts and standardisation of a UCI file, and nothing else of it.

    name: 'australian', 'german', 'heart' or 'mushroom'. Columns are correlated, and the labels follow a linear score
    with noise. Raises ValueError for another name.
    """
    name = check_choice("name", name, (*NUMERIC_STAND_INS, "mushroom"))
    if name == "mushroom":
        source = f"synthetic, of the shape of {MUSHROOM_FILE}"
        return DataSet("Mushroom (stand-in)", *indicators(*synthetic.mushroom()), source, is_stand_in=True)
    layout, levels, n_positive, strength, seed = NUMERIC_STAND_INS[name]
    table, labels = synthetic.numbers(layout.rows, levels, n_positive, strength=strength, seed=seed)
    source = f"synthetic, of the shape of {layout.file}"
    return DataSet(f"{layout.name} (stand-in)", with_intercept(standardised(table)), labels, column_names(layout),
                   source, is_stand_in=True)  # fmt: skip


def breast_cancer() -> DataSet:
    """Breast cancer Wisconsin (diagnostic): 569 rows, an intercept and 30 standardised features; label 1: benign (357).

    The file that scikit-learn carries. Raises ImportError where scikit-learn is missing.
    """
    found = optional("sklearn.datasets", "data").load_breast_cancer()
    names = ("intercept", *map(str, found.feature_names))
    features = with_intercept(standardised(np.asarray(found.data, np.float64)))
    labels = np.asarray(found.target, np.int64)
    return DataSet("Breast cancer", features, labels, names, "scikit-learn's bundled copy", is_stand_in=False)
