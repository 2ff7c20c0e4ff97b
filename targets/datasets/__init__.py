"""Data sets for classification: UCI files where a path is given, else synthetic stand-ins of the same shape."""

from .mnist import mnist_5k
from .uci import DataSet, australian, breast_cancer, german, heart, mushroom

__all__ = ["DataSet", "australian", "breast_cancer", "german", "heart", "mnist_5k", "mushroom"]
