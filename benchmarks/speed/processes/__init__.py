"""Processes of their own that tables run, each a script of one case."""
