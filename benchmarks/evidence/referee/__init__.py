"""Inputs on which the package was once wrong without a word: right, refused, warned or silent, before and now.

``python -m benchmarks evidence referee [POINT …]`` runs the cases of these points, or all, and prints a row for each.
``--write FILE`` writes the outcomes as CSV; the outcomes of the commit before the repairs, by the same cases, stand in
``benchmarks/measured/referee_before.csv``.
"""
