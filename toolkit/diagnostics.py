"""Diagnostics: how good draws are, against a truth."""
