"""The output folder, and how figures and tables are written."""

import csv
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from toolkit.errors import check_flag, check_instance, check_text, is_sequence, package_root, shown


def usual_folder(package: Path) -> Path:
    """``out`` in the package's own folder in a clone; of an installed package, a folder where the user is."""
    return package / "out" if (package.parent / "pyproject.toml").is_file() else Path("manymodes_figures")


OUT = usual_folder(package_root(__name__))
QUICK = os.environ.get("QUICK", "0") not in ("", "0")


def folder_of(out: Path | None, quick: bool) -> Path:
    """``out``, or where it is None ``OUT``, and for quick versions, which never replace full ones, quick in it."""
    return out or (OUT / "quick" if quick else OUT)


def save(figure: Any, table: Sequence[dict[str, Any]], out: Path, name: str, *, pdf: bool = True) -> list[Path]:
    """Write ``figure`` as ``name``.png and .pdf and ``table``, one dict per row, as ``name``.csv; the paths.

    pdf=False leaves the PDF out. The same numbers give the same bytes: no date goes into the files. Raises TypeError
    or ValueError naming the argument where something is off.
    """
    check_instance("figure", figure, Figure)
    check_flag("pdf", pdf)
    check_instance("out", out, Path)
    if check_text("name", name)[:1] in ("", ".") or Path(name).name != name or "\0" in name or len(name) > 200:
        raise ValueError(f"name must be the name of a file, without folders, got {shown(name)}")
    if (
        not is_sequence(table)
        or not table
        or not all(isinstance(row, dict) and row.keys() == table[0].keys() for row in table)
    ):
        raise ValueError(f"table must be a sequence of dicts with the same keys, got {shown(table)}")
    out.mkdir(parents=True, exist_ok=True)
    paths = [out / f"{name}.{kind}" for kind in (("png", "pdf", "csv") if pdf else ("png", "csv"))]
    fix_layout(figure)
    figure.savefig(paths[0], metadata={"Software": None})
    if pdf:
        figure.savefig(paths[1], metadata={"CreationDate": None, "Creator": None, "Producer": None})
    plt.close(figure)
    with paths[-1].open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(table[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows({key: f"{v:.6g}" if isinstance(v, float) else v for key, v in row.items()} for row in table)
    return paths


def fix_layout(figure: Figure) -> None:
    """Compute the layout once, for all files, and round it.

    The solver of Matplotlib's constrained layout adds in the order of addresses in memory, so that its last digits are
    others in every process, and now and then a coordinate of a PDF.
    """
    if plt.rcParams["savefig.dpi"] != "figure":
        figure.set_dpi(plt.rcParams["savefig.dpi"])
    layout = figure.get_layout_engine()
    if layout is not None and figure.axes:
        layout.execute(figure)
    figure.set_layout_engine("none")
    parts: list[Any] = list(figure.subfigs)
    for part in parts:
        part.bbox_relative.set_points(part.bbox_relative.get_points().round(9))
        parts += part.subfigs
    for axes in figure.axes:
        axes.set_position(Bbox(axes.get_position(original=True).get_points().round(9)), which="original")
