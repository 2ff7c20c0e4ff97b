"""Measurements, as opposed to tests: speed, start-up, memory, and the tables that show the laws hold.

`python -m benchmarks` prints all of them as Markdown; `python -m benchmarks speed layout` only those named.
"""
