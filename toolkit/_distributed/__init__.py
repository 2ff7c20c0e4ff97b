"""Runs divided among machines: parts of a run's chains as tasks of Dask; no result depends on the division."""
