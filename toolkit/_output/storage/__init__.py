"""Runs and checkpoints on disk: their contents and formats, and the comparisons on reading."""
