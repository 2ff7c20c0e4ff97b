"""Markdown tables, printed row by row as the numbers come."""

from collections.abc import Sequence
from typing import Any


def head(*columns: str) -> None:
    """Print the first two lines of a table."""
    print(head_lines(columns), flush=True)


def row(*cells: Any) -> None:
    """Print one line; floats with four significant digits."""
    print(line(cells), flush=True)


def head_lines(columns: Sequence[str]) -> str:
    """The first two lines of a table."""
    return line(columns) + "\n|" + " --- |" * len(columns)


def line(cells: Sequence[Any]) -> str:
    """One line; floats with four significant digits."""
    return "| " + " | ".join(f"{c:.4g}" if isinstance(c, float) else str(c) for c in cells) + " |"
