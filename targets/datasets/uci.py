"""Data sets for classification: the UCI files where a path is given, else stand-ins that say that they are such."""

import os
from typing import NamedTuple

import numpy as np

from toolkit.errors import optional

from ..arrays import Array, Integers
from . import synthetic
from .files import AUSTRALIAN, GERMAN, HEART, MUSHROOM_CODES, Layout, read_mushroom, read_numbers

PathLike = str | os.PathLike[str]


class DataSet(NamedTuple):
    """Features and classes; ``name`` says "stand-in" where the data are synthetic, for figures and tables to show.

    features: (rows, columns). labels: (rows,), 0 or 1. names: of the columns. source: the file, or how the data were
    made. is_stand_in: whether they were made.
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
    """A column of ones, then the standardised ``table``."""
    return np.column_stack([np.ones(len(table)), standardised(table)])


def australian(path: PathLike | None = None) -> DataSet:
    """Australian credit approval: 690 rows, an intercept and 14 standardised attributes; label 1: class 1 (307 rows).

    path: of ``australian.dat`` (Statlog); None: a stand-in of the same shape. Coded attributes are standardised like
    continuous ones. Raises FileNotFoundError, TypeError or ValueError naming file, line and column.
    """
    levels = (2, 0, 0, 3, 14, 9, 0, 2, 2, 0, 2, 3, 0, 0)
    return numeric_data_set("Australian", path, AUSTRALIAN, levels, 307, strength=3.5, seed=1)


def german(path: PathLike | None = None) -> DataSet:
    """German credit: 1000 rows, an intercept and 24 standardised attributes; label 1: class 2, bad (300 rows).

    path: of ``german.data-numeric`` (Statlog); None: a stand-in of the same shape. Raises as ``australian`` does.
    """
    levels = (4, 0, 5, 0, 5, 5, 4, 4, 0, 3, 4, 2, 2, 2, *(2,) * 10)
    return numeric_data_set("German", path, GERMAN, levels, 300, strength=1.5, seed=2)


def heart(path: PathLike | None = None) -> DataSet:
    """Heart disease: 270 rows, an intercept and 13 standardised attributes; label 1: class 2, presence (120 rows).

    path: of ``heart.dat`` (Statlog); None: a stand-in of the same shape. Raises as ``australian`` does.
    """
    levels = (0, 2, 4, 0, 0, 2, 3, 0, 2, 0, 3, 4, 3)
    return numeric_data_set("Heart", path, HEART, levels, 120, strength=2.5, seed=3)


def numeric_data_set(
    name: str, path: PathLike | None, layout: Layout, levels: tuple[int, ...], n_positive: int, *, strength: float,
    seed: int,
) -> DataSet:  # fmt: skip
    """The data of a file of numbers, or its stand-in, standardised and with an intercept."""
    names = ("intercept", *(f"A{i}" for i in range(1, layout.columns)))
    if path is not None:
        table, labels = read_numbers(path, layout)
        return DataSet(name, with_intercept(table), labels, names, os.fspath(path), is_stand_in=False)
    table, labels = synthetic.numbers(layout.rows, levels, n_positive, strength=strength, seed=seed)
    source = f"synthetic, of the shape of {layout.file}"
    return DataSet(f"{name} (stand-in)", with_intercept(table), labels, names, source, is_stand_in=True)


def mushroom(path: PathLike | None = None) -> DataSet:
    """Mushroom: 8124 rows, 117 columns of 0 and 1, one for each code of each attribute; label 1: poisonous (3916 rows).

    path: of ``agaricus-lepiota.data``; None: a stand-in of the same shape. The missing mark '?' of stalk-root (2480
    rows) is a code like any other. There is no intercept: the only code of veil-type makes a column of ones.
    Raises as ``australian`` does.
    """
    rows, labels = synthetic.mushroom() if path is None else read_mushroom(path)
    table = np.array([list(row) for row in rows])
    features = np.column_stack(
        [table[:, c] == code for c, codes in enumerate(MUSHROOM_CODES.values()) for code in codes]
    ).astype(np.float64)
    names = tuple(f"{name}={code}" for name, codes in MUSHROOM_CODES.items() for code in codes)
    if path is not None:
        return DataSet("Mushroom", features, labels, names, os.fspath(path), is_stand_in=False)
    source = "synthetic, of the shape of agaricus-lepiota.data"
    return DataSet("Mushroom (stand-in)", features, labels, names, source, is_stand_in=True)


def breast_cancer() -> DataSet:
    """Breast cancer Wisconsin (diagnostic): 569 rows, an intercept and 30 standardised features; label 1: benign (357).

    The file that scikit-learn carries. Raises ImportError where scikit-learn is missing.
    """
    found = optional("sklearn.datasets", "data").load_breast_cancer()
    names = ("intercept", *map(str, found.feature_names))
    features = with_intercept(np.asarray(found.data, np.float64))
    labels = np.asarray(found.target, np.int64)
    return DataSet("Breast cancer", features, labels, names, "scikit-learn's bundled copy", is_stand_in=False)
