"""The contents of the report, in HTML and in Markdown: the figures that have been produced, their texts and tables."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from toolkit._compiler import environment

from ..scripts.cached_data import Measured, read
from ..scripts.claims import ORIGINS, VERDICTS, Claim
from ..scripts.runner import Script, names, script
from ..scripts.statistics import with_error

ABOUT = (
    "Every low-dimensional figure and table of five papers, computed by this project. A paper's number stands beside "
    "ours, which is given with one standard error.",
    "Numbers: 'equal within error' where the two differ by at most two standard errors of the difference, otherwise "
    "'better' or 'worse'. 'Another quantity' where they are not defined alike or not of the same target, data or "
    "settings. Theory: 'held' within two standard errors, otherwise 'missed', to either side.",
    "Claims in words, for example that one sampler is ahead of another: the bound that the words set stands in place "
    "of a printed number. 'As claimed' where ours is beyond it by more than two standard errors, 'contradicted' where "
    "it is on the other side by as much, otherwise 'not shown'; 'shown from' is then the value that as many chains or "
    "seeds would show in four of five studies. Chance alone gives one 'as claimed' in 44 claims. A claim about several "
    "targets or settings has a row for each.",
    "KL is KL(truth ‖ draws) in nats over cells whose probabilities come from quadrature.",
)
NOT_COMPARED = VERDICTS[-1:]  # numbers of ours beside which the papers have none
COMPARED = VERDICTS[:-1]
SHORT = dict(zip(ORIGINS, ("print", "words", "derived", "code", "theory"), strict=True))
SUMMARY_HEAD = ("the number beside ours is", "numbers", "verdicts")


class Entry(NamedTuple):
    """A figure that has been produced. current: by the present sources. small: quick, of too few draws for verdicts."""

    script: Script
    measured: Measured
    claims: list[Claim]
    picture: Path
    current: bool
    small: bool


class Contents(NamedTuple):
    """The contents of a report. missing: scripts that have not been run. machine: where the report was written."""

    entries: list[Entry]
    missing: list[str]
    machine: str

    def of_paper(self, paper: str) -> list[Entry]:
        """The entries of one paper."""
        return [entry for entry in self.entries if entry.script.paper == paper]

    @property
    def judged(self) -> list[Entry]:
        """The entries whose numbers get verdicts."""
        return [entry for entry in self.entries if not entry.small]

    @property
    def summary(self) -> list[tuple[str, ...]]:
        """How many numbers got each verdict, a row per origin of the compared number; none where none are judged."""
        found = [claim for entry in self.judged for claim in entry.claims if claim.verdict in COMPARED]
        rows = [(origin, [claim.verdict for claim in found if claim.comes_from == origin]) for origin in ORIGINS]
        counted = [(origin, str(len(own)), verdict_counts(own)) for origin, own in rows if own]
        return [*counted, ("all", str(len(found)), "")] if found else []


def verdict_counts(verdicts: Sequence[str]) -> str:
    """How often each verdict occurs, in words."""
    return ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in VERDICTS if verdict in verdicts)


def gather(folder: Path) -> Contents:
    """Read back what has been produced in ``folder``."""
    entries, missing = [], []
    for name in names():
        found, picture = read(folder / "data" / f"{name}.npz"), folder / f"{name}.png"
        if found is None or not picture.is_file():
            missing.append(name)
            continue
        found_script = script(name)
        key, measured = found
        current, small = key.split()[0] == found_script.digest, " quick=True " in key
        entries.append(
            Entry(found_script, measured, claims_of(found_script, measured, current), picture, current, small)
        )
    machine_facts = environment()
    machine = "Python {python}, NumPy {numpy}, Numba {numba}; {machine}".format_map(machine_facts)
    return Contents(entries, missing, machine)


def claims_of(known: Script, measured: Measured, current: bool) -> list[Claim]:
    """The papers' numbers beside ours; none of data that earlier sources made and today's cannot read."""
    try:
        return known.compare(measured.data)
    except (KeyError, IndexError, ValueError, TypeError):
        if current:
            raise
        return []


def number(value: float) -> str:
    """A number as a person writes it; a dash for nan."""
    return "–" if math.isnan(value) else f"{value:.4g}"


def printed(claim: Claim) -> str:
    """The paper's number, and where it is from."""
    if math.isnan(claim.printed):
        return "–"
    text = with_error(claim.printed, claim.printed_error)
    if claim.in_words:
        text = f"{'above' if claim.aim == 'higher' else 'below'} {text}"
    return text if claim.source == "printed" else f"{text} ({claim.source})"


def shown_from(claim: Claim) -> str:
    """From which value a claim in words that is not shown would have been."""
    if claim.verdict != "not shown":
        return ""
    return "all alike" if math.isnan(claim.shown_from) else number(claim.shown_from)


def cost(entry: Entry) -> str:
    """Time, evaluations and seed, in a sentence."""
    records = entry.measured.records
    seeds = sorted({record.seed for record in records})
    evaluations = sum(record.gradient_evaluations for record in records)
    noun = "run" if len(records) == 1 else "runs"
    runs = f", {len(records)} {noun}, {evaluations:,} gradient evaluations" if records else ""
    seed_text = f", seed {seeds[0]}" if len(seeds) == 1 else (f", seeds from {seeds[0]}" if seeds else "")
    return f"Measured in {entry.measured.seconds:.1f} s{runs}{seed_text}."


def settings(entry: Entry) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Head and rows of the table of runs."""
    head = ("run", "sampler", "target", "chains × replicas", "steps (burn-in, thin)", "gradient evaluations", "seconds")
    rows: list[tuple[str, ...]] = [
        (r.label, r.sampler, r.problem, f"{r.chains} × {r.replicas}", f"{r.steps:,} ({r.burn_in:,}, {r.thin})",
         f"{r.gradient_evaluations:,}", f"{r.seconds:.2f}")
        for r in entry.measured.records
    ]  # fmt: skip
    return head, rows


def comparison(
    entries: list[Entry], *, named: bool = False, verdicts: Sequence[str] = VERDICTS
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Head and rows of the table of numbers with one of ``verdicts``; ``named``: the figure's name in front.

    Numbers of quick versions stand there without a verdict.
    """
    head = ("number", "printed", "from", "ours ± standard error", "ratio", "verdict", "shown from", "why")
    rows = [
        (*((entry.script.name,) if named else ()), claim.what, printed(claim),
         SHORT[claim.comes_from] if claim.verdict in COMPARED else "", with_error(claim.ours, claim.error),
         number(claim.ratio), *(("", "", "") if entry.small else (claim.verdict, shown_from(claim), claim.why)))
        for entry in entries
        for claim in entry.claims
        if claim.verdict in verdicts
    ]  # fmt: skip
    return (("figure", *head) if named else head), rows


def notes(contents: Contents) -> list[str]:
    """Notes on figures that are stale, small or missing."""
    found = []
    stale = [entry.script.name for entry in contents.entries if not entry.current]
    if stale:
        found.append(f"Made by earlier sources than those of today: {', '.join(stale)}.")
    if any(entry.small for entry in contents.entries):
        found.append("Small versions, for a quick look: of too few draws to be judged, so that there are no verdicts.")
    if contents.missing:
        found.append(f"Not produced yet: {', '.join(contents.missing)}.")
    return found
