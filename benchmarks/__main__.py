"""``python -m benchmarks --help`` lists the suites and their tables."""

import sys

from .runner.command_line import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
