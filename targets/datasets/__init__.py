"""Data sets for classification: files of the UCI repository, shipped or read from a path; stand-ins by name."""

from .mnist import mnist_5k
from .uci import DataSet, australian, breast_cancer, digits, german, heart, mushroom, stand_in

__all__ = [
    "DataSet", "australian", "breast_cancer", "digits", "german", "heart", "mnist_5k", "mushroom", "stand_in",
]  # fmt: skip
