"""Tables to the screen and, row by row, to a folder as Markdown and CSV: a command cut short leaves its rows."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np


class Table:
    """A table that grows; ``folder`` None: on the screen alone. Floats are shown with four significant digits."""

    def __init__(self, folder: Path | None, name: str, *columns: str) -> None:
        self._folder, self._name = folder, name
        self._write(line(columns) + "\n|" + " --- |" * len(columns), columns, "w")

    def row(self, *cells: Any) -> None:
        """One line."""
        self._write(line(cells), cells, "a")

    def _write(self, text: str, cells: Sequence[Any], mode: str) -> None:
        """To the screen, and to both files."""
        print(text, flush=True)
        if self._folder is not None:
            self._folder.mkdir(parents=True, exist_ok=True)
            with open(self._folder / f"{self._name}.md", mode, encoding="utf-8") as file:
                file.write(text + "\n")
            with open(self._folder / f"{self._name}.csv", mode, encoding="utf-8", newline="") as file:
                csv.writer(file).writerow(cells)


def line(cells: Sequence[Any]) -> str:
    """One line of Markdown."""
    return "| " + " | ".join(f"{c:.4g}" if isinstance(c, float) else str(c) for c in cells) + " |"


def ratio_cells(ours: Sequence[float], others: Sequence[float]) -> tuple[str, str]:
    """Median of the ratios of interleaved rounds, and the smallest and largest; dashes where one is missing."""
    if not ours or not others:
        return "–", "–"
    ratios = np.divide(ours, others)
    return f"{np.median(ratios):.3g}", f"{ratios.min():.3g} – {ratios.max():.3g}"


def rate_cell(rates: Sequence[float]) -> str:
    """Median of chain-steps per second, in 10⁶."""
    return f"{np.median(rates) / 1e6:.4g}" if len(rates) else "–"


def mean_and_error(values: Any) -> tuple[float, float]:
    """Mean of independent values, and its standard error."""
    return float(np.mean(values)), float(np.std(values, ddof=1) / np.sqrt(np.size(values)))
