"""The report: every figure that has been produced, the papers' numbers beside ours, and what each run cost."""

from pathlib import Path

from .contents import gather
from .html import page
from .markdown import markdown


def write_report(folder: Path) -> list[Path]:
    """Write report.html, with all pictures inside, and report.md, beside the pictures, into ``folder``; the paths.

    Raises FileNotFoundError where no figure has been produced there.
    """
    contents = gather(folder)
    if not contents.entries:
        raise FileNotFoundError(f"no figure has been produced in {folder}; `python -m figures` does it")
    paths = [folder / "report.html", folder / "report.md"]
    for path, text in zip(paths, (page(contents), markdown(contents)), strict=True):
        path.write_text(text, encoding="utf-8", newline="\n")
    return paths
