"""The report: one page with everything inside, the papers' numbers beside ours, and what speaks against it."""

import base64
import math
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from figures.report import MARK, write_report
from figures.report.contents import Contents, Entry, gather
from figures.report.html import page
from figures.report.markdown import anchor, markdown
from figures.scripts.cached_data import Measured, store
from figures.scripts.claims import THEORY, Claim
from figures.scripts.runner import Script, names, script
from figures.scripts.statistics import with_error
from figures.scripts.study import Record, Study

PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII=")
VOID = {"meta", "img", "br"}


class Page(HTMLParser):
    """Balance of tags, and what the page links and loads."""

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.links, self.sources, self.text, self.rows = [], [], [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.ids += [found["id"]] if "id" in found else []
        self.links += [found["href"]] if "href" in found else []
        self.sources += [found["src"]] if "src" in found else []
        self.rows += [[]] if tag == "tr" else []
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)
        if self.open[-1:] in (["td"], ["th"]) or "td" in self.open[-2:]:
            self.rows[-1][-1] += data


@pytest.fixture
def contents(tmp_path):
    picture = tmp_path / "r2sgld_fig99.png"
    picture.write_bytes(PNG)
    module = ModuleType("r2sgld_fig99")
    module.__doc__ = """r2SGLD (2024), figure 99: A < B & "C".\n\nFirst paragraph,\ncontinued.\n\nSecond | one.\n"""
    module.DIFFERS = "We differ, as <b>said</b>."
    claims = [
        Claim("KL of r2SGLD, nats", 0.5, 0.25, 0.01, "lower"),
        Claim("σ of Lorenz", 9.92, 10.02, 0.15, 10.0, why="seed noise | no more"),
        Claim("modes", 18.0, 17.0, 0.1, "higher", printed_error=0.2, source="table 4", why="because"),
        Claim("ESS", math.nan, 21_234.0, 310.0, "higher"),
        Claim("KL of A over B's", 1.0, 0.8, 0.02, "higher", source="the text", in_words=True),
        Claim("KL of C over B's", 1.0, 1.1, 0.1, "higher", source="the text", in_words=True),
        Claim("modes visited, less SGLD's", 0.0, 0.0, 0.0, "higher", source="the text", in_words=True),
        Claim("variance ratio", 2.512, 2.86, 0.15, "higher", source="corollary 2", origin=THEORY),
        Claim("ratio of ESS", 0.602, 1495.0, 97.0, "higher", is_same=False),
    ]
    record = Record("R-SGLD", "sgld", "cosine25 in flower", 10, 1, 60_000, 10_000, 20, 7, 600_000, 1.25)
    measured = Measured({}, [record, record._replace(label="r2SGLD", gradient_evaluations=34_000)], 2.5)
    return Contents(
        [Entry(Script("r2sgld_fig99", module), measured, claims, picture, False, True)], ["csgld_fig1"], "M"
    )


def test_the_page_is_whole_and_loads_nothing(contents):
    text = page(contents)
    found = Page(text)
    assert found.open == []
    assert found.sources == [f"data:image/png;base64,{base64.b64encode(PNG).decode()}"]
    assert {link[1:] for link in found.links} <= set(found.ids)
    assert all(link.startswith("#") for link in found.links)
    assert "http" not in text
    assert "<b>said</b>" not in text
    assert 'A < B & "C"' in "".join(found.text)
    assert "width=device-width" in text


def in_full(contents):
    """The same, of full versions."""
    return contents._replace(entries=[entry._replace(small=False) for entry in contents.entries])


def test_numbers_of_quick_versions_are_shown_without_a_verdict(contents):
    for text in (page(contents), markdown(contents)):
        assert not any(
            word in text for word in ("▲ better", "▼ worse", "1 better", "| worse", "? not shown", "| not shown")
        )
        assert text.count("0.250 ± 0.010") == 2  # with the figure, and in the table of all numbers
    assert "▼ worse" in page(in_full(contents))


def test_numbers_stand_beside_each_other(contents):
    contents = in_full(contents)
    rows = Page(page(contents)).rows
    numbers = [row for row in rows if row[:1] in (["figure"], ["r2sgld_fig99"])]
    head = ["figure", "number", "printed", "from", "ours ± standard error", "ratio", "verdict", "shown from", "why"]
    assert numbers[0] == head
    assert numbers[1][2:7] == ["0.5", "print", "0.250 ± 0.010", "0.5", "▲ better"]
    assert numbers[2][2:7] == ["9.92", "print", "10.02 ± 0.15", "1.01", "= equal within error"]
    assert numbers[3][2:7] == ["18.00 ± 0.20 (table 4)", "print", "17.00 ± 0.10", "0.9444", "▼ worse"]
    assert numbers[3][8] == "because"
    assert numbers[4][2:8] == ["above 1 (the text)", "words", "0.800 ± 0.020", "–", "✗ contradicted", ""]
    assert numbers[5][2:8] == ["above 1 (the text)", "words", "1.10 ± 0.10", "–", "? not shown", "1.284"]
    assert numbers[6][2:8] == ["above 0 (the text)", "words", "0", "–", "? not shown", "all alike"]
    assert numbers[7][2:7] == ["2.512 (corollary 2)", "theory", "2.86 ± 0.15", "1.139", "✗ missed"]
    assert numbers[8][2:7] == ["0.602", "print", "1495 ± 97", "2483", "≠ another quantity"]
    assert numbers[10][1:6] == ["ESS", "–", "21234 ± 310", "–", "not printed"]
    assert len(numbers) == 11  # two tables: those compared, and ours alone
    assert "2 runs, 634,000 gradient evaluations, seed 7" in page(contents)


def test_the_summary_counts_by_where_the_number_comes_from(contents):
    expected = [
        ["the number beside ours is", "numbers", "verdicts"],
        ["printed by the paper", "4", "1 better, 1 equal within error, 1 worse, 1 another quantity"],
        ["claimed in words", "3", "2 not shown, 1 contradicted"],
        ["from theory", "1", "1 missed"],
        ["all", "8", ""],
    ]
    assert Page(page(in_full(contents))).rows[:5] == expected
    assert [list(row) for row in in_full(contents).summary] == expected[1:]
    assert contents.summary == []


def test_contents_come_first_and_long_tables_last(contents):
    text = page(in_full(contents))
    places = [text.index(part) for part in ("claimed in words", "Contents", "<img", "All numbers</h2>")]
    assert places == sorted(places)
    lines = markdown(in_full(contents)).splitlines()
    heads = [line for line in lines if line.startswith("#")]
    places = [lines.index(head) for head in ("## Contents", "## All numbers", "## All runs")]
    assert places == sorted(places)
    assert heads[-2:] == ["## All numbers", "## All runs"]
    for line in lines:
        if line.startswith("- ["):
            assert line.rpartition("(#")[2][:-1] in {anchor(head.lstrip("# ")) for head in heads}


def test_tables_of_numbers_are_written_into_a_page_of_the_docs(tmp_path, monkeypatch, contents):
    monkeypatch.setattr("figures.report.gather", lambda folder: in_full(contents))
    file = tmp_path / "numbers.md"
    file.write_text(f"# Words\n\n{MARK}\n\nold\n", encoding="utf-8")
    assert file in write_report(tmp_path, file)
    text = file.read_text(encoding="utf-8")
    assert text.startswith(f"# Words\n\n{MARK}\n\n| the number beside ours is |")
    assert "| r2sgld_fig99 | KL of r2SGLD, nats |" in text
    assert "old" not in text
    assert write_report(tmp_path, file)
    assert file.read_text(encoding="utf-8") == text
    file.write_text("no mark", encoding="utf-8")
    with pytest.raises(ValueError, match="must have a line <!--"):
        write_report(tmp_path, file)


def test_both_say_what_is_old_small_or_missing(contents):
    for text in (page(contents), markdown(contents)):
        assert "earlier sources than those of today: r2sgld_fig99" in text
        assert "Small versions" in text
        assert "Not produced yet: csgld_fig1" in text
        assert "We differ, as" in text
    fresh = Contents([entry._replace(current=True, small=False) for entry in contents.entries], [], "M")
    assert "earlier sources" not in page(fresh)
    assert "Small versions" not in page(fresh)


def test_tables_of_markdown_are_rectangular(contents):
    lines = [line.replace("\\|", "") for line in markdown(in_full(contents)).splitlines()]
    widths = {line.count("|") for line in lines if line.startswith("|")}
    assert widths == {4, 8, 7, 9, 10}  # the summary, runs, ours alone, a figure's numbers, all numbers
    assert "![r2SGLD (2024), figure 99: A < B" in markdown(contents)


@pytest.mark.parametrize(
    ("value", "error", "said"),
    [
        (9.987, 0.148, "9.99 ± 0.15"),
        (21096.4, 312.0, "21096 ± 312"),
        (0.000123, 0.0000045, "0.0001230 ± 0.0000045"),
        (4.2e-7, 1.3e-8, "(4.20 ± 0.13)·10^-7"),
        (3.0, 0.0, "3"),
        (-0.5, 0.25, "-0.50 ± 0.25"),
        (0.0, 0.02, "0.000 ± 0.020"),
        (3.0, 1e-43, "3"),
    ],
)
def test_errors_keep_two_digits(value, error, said):
    assert with_error(value, error) == said


def test_a_folder_is_read_back(tmp_path):
    """Data of today's sources are current, others not; a picture or data alone are no figure."""
    for name, key in ((names()[0], "other quick=False seed=0 backend=cpu python=3.11"), (names()[1], None)):
        known = script(name)
        key = key or known.key(Study(quick=True))
        store(tmp_path / "data" / f"{name}.npz", key, Measured({"a": np.zeros(2)}, [], 1.0))
        if name == names()[0]:
            continue
        (tmp_path / f"{name}.png").write_bytes(PNG)
    known = script(names()[1])
    known.module.compare, had = (lambda data: []), getattr(known.module, "compare", None)
    try:
        found = gather(tmp_path)
    finally:
        if had is None:
            del known.module.compare
        else:
            known.module.compare = had
    assert [entry.script.name for entry in found.entries] == [names()[1]]
    assert (found.entries[0].current, found.entries[0].small) == (True, True)
    assert names()[0] in found.missing


def test_nothing_to_report_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError, match="no figure has been produced"):
        write_report(tmp_path)


def test_the_page_of_figures_names_every_script():
    page = (Path(__file__).resolve().parents[3] / "docs" / "figures.md").read_text(encoding="utf-8")
    assert [name for name in names() if f"`{name}`" not in page] == []
