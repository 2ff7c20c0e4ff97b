"""Markdown tables, printed row by row as the numbers come."""

from typing import Any


def head(*columns: str) -> None:
    """The first two lines of a table."""
    print("| " + " | ".join(columns) + " |")
    print("|" + " --- |" * len(columns), flush=True)


def row(*cells: Any) -> None:
    """One line; floats with four significant digits."""
    print("| " + " | ".join(f"{c:.4g}" if isinstance(c, float) else str(c) for c in cells) + " |", flush=True)
