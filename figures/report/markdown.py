"""The report as Markdown, its pictures beside it."""

from collections.abc import Sequence

from ..scripts.claims import VERDICTS
from ..scripts.runner import PAPERS
from .contents import ABOUT, Contents, Entry, comparison, cost, notes, settings


def markdown(contents: Contents) -> str:
    """The whole text."""
    parts = [
        "# Five papers, printed and computed",
        ABOUT,
        *notes(contents),
        f"{contents.machine}.",
        "## All numbers",
        contents.verdicts,
        table(*comparison(contents.judged, named=True, verdicts=VERDICTS[:-1])),
        "Numbers of ours that the papers do not print:",
        table(*comparison(contents.judged, named=True, verdicts=VERDICTS[-1:])),
    ]
    for paper, title in PAPERS.items():
        entries = contents.of_paper(paper)
        parts += [f"## {title}", *map(figure, entries)] if entries else []
    return "\n\n".join(part for part in parts if part) + "\n"


def figure(entry: Entry) -> str:
    """One figure."""
    known = entry.script
    parts = [f"### {known.title}", f"![{known.title}]({entry.picture.name})", known.caption]
    parts += [f"> {known.differs}"] if known.differs else []
    parts += [table(*comparison([entry]))] if entry.claims else []
    parts += [cost(entry)]
    parts += [table(*settings(entry))] if entry.measured.records else []
    return "\n\n".join(part for part in parts if part)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table; a column without entries is left out."""
    used = [i for i, _ in enumerate(head) if any(row[i] for row in rows)]
    lines = [[head[i] for i in used], ["---"] * len(used), *([row[i] for i in used] for row in rows)]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
