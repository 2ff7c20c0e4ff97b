"""The report as one HTML page with everything inside."""

import base64
from collections.abc import Sequence
from html import escape

from ..scripts.runner import PAPERS
from .contents import ABOUT, COMPARED, NOT_COMPARED, SUMMARY_HEAD, Contents, Entry, comparison, cost, notes, settings

STYLE = """
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff; max-width: 74rem; margin: 0 auto;
  padding: 1rem; overflow-wrap: break-word; }
h1 { line-height: 1.2; } h2 { margin-top: 3rem; border-bottom: 2px solid #0072b2; } h3 { margin: 2.5rem 0 .5rem; }
a { color: #00578a; }
nav ul { columns: 22rem; padding-left: 1.2rem; margin: .3rem 0; } nav li { break-inside: avoid; font-size: .9rem; }
figure { margin: 0; } figure img { max-width: 100%; height: auto; display: block; margin: 0 auto; }
.scroll { overflow-x: auto; margin: .8rem 0; }
table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums; }
th, td { text-align: left; vertical-align: top; padding: .25rem .7rem .25rem 0; border-bottom: 1px solid #ddd; }
th { border-bottom: 1px solid #555; white-space: nowrap; } td.number { white-space: nowrap; }
td.what, td.why { min-width: 11rem; } td.printed { min-width: 7rem; }
.differs { border-left: 4px solid #e69f00; padding: .2rem .8rem; margin: .8rem 0; }
.cost, summary { color: #555; font-size: .85rem; }
.better, .equal, .worse, .as, .not, .contradicted, .held, .missed, .another { white-space: nowrap; font-weight: 600; }
.better, .as, .held { color: #00578a; } .equal, .not, .another { color: #1a1a1a; }
.worse, .contradicted, .missed { color: #a03c00; }
"""
MARKS = {
    "better": "▲ ", "equal within error": "= ", "worse": "▼ ", "as claimed": "✓ ", "not shown": "? ",
    "contradicted": "✗ ", "held": "✓ ", "missed": "✗ ", "another quantity": "≠ ",
}  # fmt: skip
LONG = 12  # rows; a figure's table with more is folded
NUMBERS = {"ours ± standard error", "ratio", "gradient evaluations", "seconds"}
WORDS = {"number": "what", "why": "why", "printed": "printed"}


def page(contents: Contents) -> str:
    """The whole page: summary and list of figures first, then the pictures, then the long tables."""
    parts = [paper_section(paper, contents) for paper in PAPERS if contents.of_paper(paper)]
    about = "".join(f"<p>{escape(paragraph)}</p>\n" for paragraph in ABOUT)
    note_texts = "".join(f"<p class='differs'>{escape(note)}</p>" for note in notes(contents))
    summary = table(SUMMARY_HEAD, contents.summary) if contents.summary else ""
    return (
        "<!DOCTYPE html>\n<html lang='en'>\n<head>\n<meta charset='utf-8'>\n"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>\n"
        f"<title>Five papers, printed and computed</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        f"<h1>Five papers, printed and computed</h1>\n{about}{note_texts}"
        f"<p class='cost'>{escape(contents.machine)}.</p>\n{summary}\n{navigation(contents)}\n"
        + "\n".join(parts)
        + f"\n{all_numbers(contents)}</body>\n</html>\n"
    )


def all_numbers(contents: Contents) -> str:
    """The numbers of all figures: those with one of a paper beside them, and, folded, ours alone."""
    compared, alone = (comparison(contents.entries, named=True, verdicts=kind) for kind in (COMPARED, NOT_COMPARED))
    ours = f"<details><summary>Numbers of ours beside which the papers have none</summary>{table(*alone)}</details>\n"
    return f"<h2 id='numbers'>All numbers</h2>\n{table(*compared)}\n{ours if alone[1] else ''}"


def navigation(contents: Contents) -> str:
    """Links to all figures, and to the numbers behind them."""
    items = [
        f"<p><b>{escape(title)}</b></p><ul>"
        + "".join(f"<li><a href='#{e.script.name}'>{escape(short(e.script.title))}</a></li>" for e in entries)
        + "</ul>"
        for paper, title in PAPERS.items()
        if (entries := contents.of_paper(paper))
    ]
    numbers = "<p><a href='#numbers'>All numbers, the papers' and ours</a></p>"
    return f"<nav><h2>Contents</h2>{''.join(items)}{numbers}</nav>"


def short(title: str) -> str:
    """A first line without the paper's name."""
    return title.partition("), ")[2] or title


def paper_section(paper: str, contents: Contents) -> str:
    """All figures of a paper."""
    return f"<h2>{escape(PAPERS[paper])}</h2>\n" + "\n".join(map(figure, contents.of_paper(paper)))


def figure(entry: Entry) -> str:
    """One figure: picture, caption, where we differ, numbers, settings."""
    found = entry.script
    source = base64.b64encode(entry.picture.read_bytes()).decode()
    caption = "".join(f"<p>{escape(paragraph)}</p>" for paragraph in found.caption.split("\n\n") if paragraph)
    differs = f"<p class='differs'>{escape(found.differs)}</p>" if found.differs else ""
    head, rows = settings(entry)
    runs = f"<details><summary>The runs</summary>{table(head, rows)}</details>" if rows else ""
    numbers = table(*comparison([entry])) if entry.claims else ""
    if len(entry.claims) > LONG:
        numbers = f"<details><summary>{len(entry.claims)} numbers</summary>{numbers}</details>"
    kinds = "" if entry.small else ".pdf, "
    return (
        f"<section id='{found.name}'>\n<h3>{escape(found.title)}</h3>\n"
        f"<figure><img alt='{escape(found.title, quote=True)}' src='data:image/png;base64,{source}'>"
        f"<figcaption>{caption}</figcaption></figure>\n{differs}{numbers}"
        f"<p class='cost'>{escape(cost(entry))} Files: {found.name}.png, {kinds}.csv.</p>{runs}\n</section>"
    )


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table that scrolls by itself where it is too wide; a column without entries is left out."""
    used = [i for i, name in enumerate(head) if any(row[i] for row in rows)]
    top = "".join(f"<th>{escape(head[i])}</th>" for i in used)
    body = "".join("<tr>" + "".join(cell(head[i], row[i]) for i in used) + "</tr>" for row in rows)
    return f"<div class='scroll'><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"


def cell(column: str, text: str) -> str:
    """One cell; verdicts have a mark beside their colour, and a figure's name is a link."""
    if column == "verdict" and text in MARKS:
        return f"<td class='{text.split()[0]}'>{MARKS[text]}{escape(text)}</td>"
    if column == "figure":
        return f"<td><a href='#{text}'>{escape(text)}</a></td>"
    kind = "number" if column in NUMBERS else WORDS.get(column, "")
    return f"<td class='{kind}'>{escape(text)}</td>" if kind else f"<td>{escape(text)}</td>"
