"""Print the named tables, or all; with ``--small``, those that know it with fewer runs."""

import importlib
import platform
import sys

import numba
import numpy as np

TABLES = [
    "bits", "laws", "sampler_laws", "outside", "domains", "truth", "kl", "speed", "catalogue",
    "doors", "samplers", "accumulators", "layout", "storage", "checkpoint",
    "diagnostics", "long", "verify", "weak", "calibration", "float32", "cuda",
]  # fmt: skip

BY_NAME_ONLY = ["ptx"]  # half an hour

wanted = [word for word in sys.argv[1:] if word != "--small"] or TABLES
if unknown := set(wanted) - {*TABLES, *BY_NAME_ONLY}:
    sys.exit(f"unknown tables {sorted(unknown)}; there are {', '.join(TABLES + BY_NAME_ONLY)}")
print(f"Python {platform.python_version()}, Numba {numba.__version__}, NumPy {np.__version__}, {platform.machine()}")
for name in wanted:
    module = importlib.import_module(f"benchmarks.{name}")
    print(f"\n## {module.__doc__.splitlines()[0]}\n", flush=True)
    module.main()
