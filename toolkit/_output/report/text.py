"""The report of a run: as text, and as HTML for notebooks."""

import html
import math

from ..._engine.run_record import RunRecord
from .short_chains import short_chain_line
from .table import MOST_ROWS, Coordinates, Table, lines_of, tables_of, with_unit
from .warnings import Comparison, compare_with_truth, warnings_of

COLUMNS = ("coordinate", "mean", "sd", "MCSE", "ESS", "R-hat")
NO_TABLE = "no draws of whole chains to make a table of"
MOST_TABLES = 10  # of settings
# Colours are inherited from the notebook, so that the table is readable on light and dark backgrounds.
TABLE = "border-collapse:collapse;margin:0.4em 0;color:inherit;font-size:inherit"  # not inherited in quirks mode
CELL = "padding:0.15em 0.8em;text-align:{};border:none;background:transparent;color:inherit;vertical-align:top"


def warnings_about(run: RunRecord) -> list[str]:
    """The warnings about the run, a sentence each."""
    tables = tables_of(run)
    return warnings_of(run, tables, compare_with_truth(run, tables))


def text_of(run: RunRecord) -> str:
    """The run in lines of text."""
    tables = tables_of(run)
    comparison = compare_with_truth(run, tables)
    lines = [*lines_of(run), *truth_line(comparison), *short_chain_line(run, tables)]
    width = max(len(label) for label, _ in lines)
    out = [title(run), *(f"  {label:<{width}}  {text}" for label, text in lines), ""]
    if len(tables) > MOST_TABLES:
        out += [f"  {too_many_settings(tables)}"]
    else:
        for table in tables:
            out += [f"  {heading(table)}"] if table.words else []
            out += text_of_table(run, table.coordinates)
            out += [""] if table is not tables[-1] else []
    warnings = warnings_of(run, tables, comparison)
    out += ["", *(f"  ! {sentence}" for sentence in warnings)] if warnings else []
    return "\n".join(out)


def text_of_table(run: RunRecord, coordinates: Coordinates | None) -> list[str]:
    """The table of one setting."""
    if coordinates is None:
        return [f"  {NO_TABLE}"]
    rows = [COLUMNS, *rows_of(coordinates)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(COLUMNS))]
    out = ["  " + "  ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=True)) for row in rows]
    return out + [f"  ({note})" for note in notes(run, coordinates)]


def html_of(run: RunRecord) -> str:
    """The run as one self-contained HTML element."""
    tables = tables_of(run)
    comparison = compare_with_truth(run, tables)
    lines = [*lines_of(run), *truth_line(comparison), *short_chain_line(run, tables)]
    out = [f"<div><strong>{html.escape(title(run))}</strong>"]
    facts = "".join(row((label, text), ("left", "left")) for label, text in lines)
    out.append(f'<table style="{TABLE}"><tbody>{facts}</tbody></table>')
    if len(tables) > MOST_TABLES:
        out.append(f"<p>{html.escape(too_many_settings(tables))}</p>")
    else:
        for table in tables:
            out += [f"<p><strong>{html.escape(heading(table))}</strong></p>"] if table.words else []
            out += html_of_table(run, table.coordinates)
    items = "".join(f"<li>{html.escape(sentence)}</li>" for sentence in warnings_of(run, tables, comparison))
    out += [f'<ul style="border-left:0.25em solid #d08700;margin:0.4em 0">{items}</ul>'] if items else []
    return "".join([*out, "</div>"])


def html_of_table(run: RunRecord, coordinates: Coordinates | None) -> list[str]:
    """The table of one setting."""
    if coordinates is None:
        return [f"<p>{NO_TABLE}</p>"]
    sides = ("right",) * len(COLUMNS)
    body = "".join(row(cells, sides) for cells in rows_of(coordinates))
    out = [f'<table style="{TABLE}"><thead>{row(COLUMNS, sides, "th")}</thead><tbody>{body}</tbody></table>']
    return out + [f"<p><em>{html.escape(note)}</em></p>" for note in notes(run, coordinates)]


def truth_line(comparison: Comparison | None) -> list[tuple[str, str]]:
    """The line that compares the run with the truth, if the truth is available."""
    return [("truth", comparison.words)] if comparison is not None and comparison.words else []


def heading(table: Table) -> str:
    """The heading of a setting's table."""
    return f"{table.words} ({with_unit(table.chains.size, 'chain')})"


def too_many_settings(tables: list[Table]) -> str:
    """The sentence that replaces the tables of too many settings."""
    return f"{len(tables):,} settings of the chains, too many for a table of each; run.draws[chains] has those of one"


def row(cells: tuple[str, ...], sides: tuple[str, ...], tag: str = "td") -> str:
    """A row of an HTML table."""
    styled = (
        f'<{tag} style="{CELL.format(side)}">{html.escape(c)}</{tag}>' for c, side in zip(cells, sides, strict=True)
    )
    return f"<tr>{''.join(styled)}</tr>"


def title(run: RunRecord) -> str:
    """The first line."""
    return f"{run.sampler.name} on {run.problem.name}{', interrupted' if run.interrupted else ''}"


def rows_of(coordinates: Coordinates) -> list[tuple[str, ...]]:
    """The table's cells; the mean has as many digits as its error justifies."""
    rows: list[tuple[str, ...]] = []
    for name, mean, sd, mcse, ess, r_hat in zip(coordinates.names, *coordinates[:5], strict=True):
        error = mcse if math.isfinite(mcse) and mcse > 0.0 else sd
        has_error = math.isfinite(error) and error > 0.0
        digits = min(12, max(0, 1 - math.floor(math.log10(error)))) if has_error else 4
        centre = f"{mean:z.{digits}f}" if abs(mean) < 1e9 else f"{mean:.6g}"
        ess_text = f"{ess:,.0f}" if math.isfinite(ess) else "–"
        r_hat_text = f"{r_hat:.4f}" if math.isfinite(r_hat) else ("∞" if math.isinf(r_hat) else "–")
        rows.append(
            (name, centre, f"{sd:.4g}", f"{mcse:.{digits}f}" if math.isfinite(mcse) else "–", ess_text, r_hat_text)
        )
    return rows


def notes(run: RunRecord, coordinates: Coordinates) -> list[str]:
    """What the table was computed from, if not from everything."""
    dim = run.problem.target.dim
    lines = [f"of {coordinates.source}"] if coordinates.source else []
    return lines + ([f"the first {MOST_ROWS} of {dim} coordinates"] if dim > MOST_ROWS else [])
