"""Packages that are not needed for sampling, imported where they are used."""

import importlib
from typing import Any


def optional(package: str, extra: str) -> Any:
    """The module ``package``. Raises ImportError that names the extra of this distribution which brings it."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise ImportError(f'{package} is needed for this: pip install "manymodes[{extra}]"', name=package) from error
