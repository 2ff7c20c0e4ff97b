"""The tables of ``make bench``: what is fast, beside what users would take instead, measured in one run."""
