"""The report: every figure that has been produced, the papers' numbers beside ours, and what each run cost."""

from pathlib import Path

from .contents import gather
from .html import page
from .markdown import join, markdown, numbers, summary

MARK = "<!-- what follows is written by `python -m figures report --numbers` -->"


def write_report(folder: Path, numbers_in: Path | None = None) -> list[Path]:
    """Write report.html, with all pictures inside, and report.md, beside the pictures, into ``folder``.

    Parameters
    ----------
    folder : Path
        Where the figures have been produced.
    numbers_in : Path, optional
        A Markdown file whose text behind ``MARK`` becomes the tables of all numbers.

    Returns
    -------
    list of Path
        The files written.

    Raises
    ------
    FileNotFoundError
        Where no figure has been produced in ``folder``.
    ValueError
        Where ``numbers_in`` has no line ``MARK``.
    """
    contents = gather(folder)
    if not contents.entries:
        raise FileNotFoundError(f"no figure has been produced in {folder}; `python -m figures` does it")
    texts = {folder / "report.html": page(contents), folder / "report.md": markdown(contents)}
    if numbers_in is not None:
        before, mark, _ = numbers_in.read_text(encoding="utf-8").partition(MARK)
        if not mark:
            raise ValueError(f"{numbers_in} must have a line {MARK}")
        texts[numbers_in] = join([before + mark, *summary(contents), numbers(contents)])
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8", newline="\n")
    return list(texts)
