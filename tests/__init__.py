"""Tests, in rooms that mirror the code: ``toolkit/dynamics`` is tested in ``tests/toolkit/dynamics``.

``python -m pytest tests/toolkit/dynamics`` runs one room. Beside the packages' rooms:

- ``laws``: what cuts across rooms: the product of all parts, equivalences, bits, seeds, layers, the README, mutants;
- ``hostile``: bad, malformed and masked input, and calls made up by Hypothesis;
- ``kills``: processes killed while they write; ``cuda``: the device, in the simulator and on a GPU;
- ``mutants``: faults put into the code one by one; ``support``: what several rooms use; ``data``: stored files.

A test marked ``slow`` runs with ``make test-slow`` alone. ``cases(n)`` leaves all but n cases of a test to it, and
``slow_cases(id, …)`` those with the given ids.
"""

import os

# As many workers run as there are cores: threads of a BLAS of their own would wait for one another. And large arrays
# take memory again that others have left, instead of new pages of the system's, to be filled with zeros (glibc).
FOR_WORKERS = {
    "OPENBLAS_NUM_THREADS": "1", "MALLOC_MMAP_THRESHOLD_": str(2**25), "MALLOC_TRIM_THRESHOLD_": str(2**30),
}  # fmt: skip
for name, value in FOR_WORKERS.items():
    os.environ.setdefault(name, value)
