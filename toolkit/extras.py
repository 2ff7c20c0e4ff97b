"""Where packages lie, and packages that are not needed for sampling, imported where they are used."""

import importlib
import sys
from pathlib import Path
from typing import Any


def package_root(module: str) -> Path:
    """The folder of the top-level package of ``module``, as ``__name__`` has it, however deep the module's file lies.

    Raises RuntimeError where that is a script, a notebook or a lone module.
    """
    name = module.partition(".")[0]
    package = sys.modules.get(name)
    file = getattr(package, "__file__", None)
    if not file or not hasattr(package, "__path__"):
        raise RuntimeError(f"{name} is no package with a folder of its own")
    return Path(file).resolve().parent


def optional(package: str, extra: str) -> Any:
    """The module ``package``. Raises ImportError that names the extra of this distribution which brings it."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise ImportError(f'{package} is needed for this: pip install "manymodes[{extra}]"', name=package) from error
