"""Sweeps: every setting on every problem with every seed, `grid` and `sweep`; cells, their journal and the table."""
