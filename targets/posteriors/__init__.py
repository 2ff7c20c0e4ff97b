"""Posteriors of data, by all of them or by minibatches; the public face of the modules that hold them."""

from .linear import linear_regression
from .logistic import logistic_regression
from .user_likelihood import posterior

__all__ = ["linear_regression", "logistic_regression", "posterior"]
