"""Figures are drawn once for all tests of them."""

import os

import pytest


@pytest.fixture(scope="session")
def produced(tmp_path_factory):
    """A script's name → its product, small, drawn once by this worker of data that any worker has measured."""
    from figures import produce, script

    out, products = tmp_path_factory.mktemp("figures"), {}
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = tmp_path_factory.getbasetemp().parent / "figures_data"
        shared.mkdir(exist_ok=True)
        (out / "data").symlink_to(shared, target_is_directory=True)

    def product(name):
        if name not in products:
            products[name] = produce(script(name), out=out, quick=True)
        return products[name]

    return product
