"""Data sets for classification; the public face of the module that reads or makes them."""

from .uci import DataSet, australian, breast_cancer, german, heart, mushroom

__all__ = ["DataSet", "australian", "breast_cancer", "german", "heart", "mushroom"]
