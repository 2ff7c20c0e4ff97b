"""Faults that the tests must find, a file of them for each room of the code; see ``runner``."""

import importlib
import pkgutil

from .runner import Mutant

ROOMS = sorted(module.name for module in pkgutil.iter_modules(__path__) if module.name not in ("runner", "__main__"))
MUTANTS: list[Mutant] = [m for room in ROOMS for m in importlib.import_module(f"{__name__}.{room}").MUTANTS]
