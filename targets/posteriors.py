"""Posteriors of data, by all of them or by minibatches; the public face of the modules that hold them."""

from .logistic import logistic_regression
from .per_datum import posterior
from .regression import linear_regression

__all__ = ["linear_regression", "logistic_regression", "posterior"]
