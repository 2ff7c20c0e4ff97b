"""The report as Markdown, its pictures beside it."""

import re
from collections.abc import Sequence

from ..scripts.runner import PAPERS
from .contents import ABOUT, COMPARED, NOT_COMPARED, SUMMARY_HEAD, Contents, Entry, comparison, cost, notes, settings


def markdown(contents: Contents) -> str:
    """The whole text: summary and list of figures first, then the pictures, then the long tables."""
    parts = [
        "# Five papers, printed and computed",
        *ABOUT,
        *notes(contents),
        f"{contents.machine}.",
        *summary(contents),
        "## Contents",
        list_of_figures(contents),
    ]
    for paper, title in PAPERS.items():
        entries = contents.of_paper(paper)
        parts += [f"## {title}", *map(figure, entries)] if entries else []
    runs = [part for entry in contents.entries for part in runs_of(entry)]
    parts += [numbers(contents), *(["## All runs", *runs] if runs else [])]
    return join(parts)


def join(parts: Sequence[str]) -> str:
    """Paragraphs as one text."""
    return "\n\n".join(part for part in parts if part) + "\n"


def summary(contents: Contents) -> list[str]:
    """How many numbers got each verdict, by where the number beside ours comes from."""
    return [table(SUMMARY_HEAD, contents.summary)] if contents.summary else []


def numbers(contents: Contents) -> str:
    """The numbers of all figures: those with one of a paper beside them, and ours alone."""
    compared, alone = (comparison(contents.entries, named=True, verdicts=kind) for kind in (COMPARED, NOT_COMPARED))
    parts = ["## All numbers", table(*compared) if compared[1] else ""]
    parts += ["Numbers of ours beside which the papers have none:", table(*alone)] if alone[1] else []
    return join(parts).rstrip("\n")


def list_of_figures(contents: Contents) -> str:
    """Links to all figures and to the tables at the end."""
    titles = [entry.script.title for paper in PAPERS for entry in contents.of_paper(paper)]
    return "\n".join(f"- [{title}](#{anchor(title)})" for title in [*titles, "All numbers"])


def anchor(title: str) -> str:
    """The anchor that Markdown renderers give a heading: lower case, without punctuation, dashes for spaces."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def figure(entry: Entry) -> str:
    """One figure."""
    known = entry.script
    parts = [f"### {known.title}", f"![{known.title}]({entry.picture.name})", known.caption]
    parts += [f"> {known.differs}"] if known.differs else []
    parts += [table(*comparison([entry]))] if entry.claims else []
    return join([*parts, cost(entry)]).rstrip("\n")


def runs_of(entry: Entry) -> list[str]:
    """The runs behind a figure."""
    return [f"{entry.script.title}:", table(*settings(entry))] if entry.measured.records else []


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table; a column without entries is left out."""
    used = [i for i, _ in enumerate(head) if any(row[i] for row in rows)]
    lines = [[head[i] for i in used], ["---"] * len(used), *([row[i] for i in used] for row in rows)]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
