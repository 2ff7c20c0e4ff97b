"""Posteriors of data: linear and logistic regression, and any likelihood of a user; from all data or minibatches."""

from .linear import linear_regression
from .logistic import logistic_regression
from .neural_network import network, predict
from .python_models import from_jax, from_torch
from .user_likelihood import posterior

__all__ = [
    "from_jax", "from_torch", "linear_regression", "logistic_regression", "network", "posterior", "predict",
]  # fmt: skip
