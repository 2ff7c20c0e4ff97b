"""KL: the nine methods of r2SGLD figure 5 after 50,000 kept draws, as the figure's script computes them."""

import csv
import tempfile
from pathlib import Path

from figures import run_script
from figures.papers.r2sgld import fig5_flower

from .markdown import head, row


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        paths = run_script(fig5_flower.draw, Path(folder), quick=False)
        with paths[-1].open(encoding="utf-8") as file:
            rows = [line for line in csv.DictReader(file) if line["draws"] == "50000"]
    head("method", "KL, nats", "± 95 %", "of independent draws", "worth independent draws", "swap rate", "outside")
    for line in rows:
        values = (float(v) for k, v in line.items() if k not in ("method", "draws", "gradient_evaluations"))
        row(line["method"], *values)
