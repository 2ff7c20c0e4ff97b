"""Data sets for classification: UCI files where a path is given, else synthetic stand-ins of the same shape."""

from .uci import DataSet, australian, breast_cancer, german, heart, mushroom

__all__ = ["DataSet", "australian", "breast_cancer", "german", "heart", "mushroom"]
