"""Measurements, as opposed to tests: speed, quality and memory beside other packages, and evidence that laws hold.

``python -m benchmarks --help`` lists the suites and their tables; ``python -m benchmarks speed engine --small`` prints
one. ``measured`` holds the committed tables of ``make bench``.
"""
