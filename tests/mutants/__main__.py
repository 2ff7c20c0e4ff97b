"""Run the faults whose names are given, or all."""

import sys

from . import MUTANTS
from .runner import main

if __name__ == "__main__":
    sys.exit(main(MUTANTS, sys.argv[1:]))
