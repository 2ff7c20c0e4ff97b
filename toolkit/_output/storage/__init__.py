"""Runs and checkpoints on disk: what is stored, in which formats, and what is compared on reading."""
