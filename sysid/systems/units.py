"""Labels of units: which are equal, which units of time are known, and the error where two differ."""

from collections.abc import Mapping, Sequence
from typing import Any

from toolkit.errors import check_number, shown

SECONDS_IN = {
    "ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "second": 1.0, "seconds": 1.0, "min": 60.0, "minute": 60.0,
    "minutes": 60.0, "h": 3600.0, "hour": 3600.0, "hours": 3600.0, "d": 86400.0, "day": 86400.0, "days": 86400.0,
    "week": 604800.0, "weeks": 604800.0, "year": 31557600.0, "years": 31557600.0,
}  # fmt: skip
SYNONYMS = {
    "nanosecond": "ns", "nanoseconds": "ns", "microsecond": "us", "microseconds": "us", "µs": "us", "μs": "us",
    "millisecond": "ms", "milliseconds": "ms", "msec": "ms", "sec": "s", "secs": "s", "second": "s", "seconds": "s",
    "mins": "min", "minute": "min", "minutes": "min", "hr": "h", "hrs": "h", "hour": "h", "hours": "h", "d": "day",
    "days": "day", "wk": "week", "wks": "week", "weeks": "week", "months": "month", "mo": "month", "yr": "year",
    "yrs": "year", "years": "year",
}  # fmt: skip


def time_label(label: str) -> str:
    """One word for all synonyms of a unit of time; other labels without spaces around them and in lower case."""
    exact = label.strip()
    word = exact.lower()
    if word in ("ms", "us", "ns") and exact != word:  # Ms are megaseconds
        return exact
    return SYNONYMS.get(word, word)


def unit_label(label: str) -> str:
    """The label of a state's unit without the spaces in it, and with one of the two characters for micro."""
    return "".join(label.split()).replace("\u00b5", "\u03bc")


def seconds_of(time_unit: str) -> float:
    """Seconds in a unit of time; 1 of "". Raises ValueError for another word."""
    word = time_label(time_unit) or "s"
    if word not in SECONDS_IN:
        raise ValueError(
            f"time_unit must be one of {', '.join(map(repr, SECONDS_IN))} where times are dates, got {shown(time_unit)}"
        )
    return SECONDS_IN[word]


def factor_between(old: str, new: str) -> float | None:
    """By what times in the unit ``old`` are multiplied to be in ``new``; None where one of them is not known."""
    known = [SECONDS_IN.get(time_label(unit)) for unit in (old, new)]
    return None if known[0] is None or known[1] is None else known[0] / known[1]


def time_factor(old: str, new: str, factor: Any) -> float:
    """The factor of ``with_time_unit``. Raises ValueError where it must be given, or contradicts a known one."""
    known = 1.0 if old and time_label(old) == time_label(new) else factor_between(old, new)
    if factor is None:
        if known is None:
            raise ValueError(
                f"factor must be given for times in {shown(old)} that are wanted in {shown(new)}: what a time is "
                "multiplied by (1 to write a unit beside times that have it)"
            )
        return known
    given = check_number("factor", factor, above=0.0)
    if known is not None and abs(given - known) > 1e-9 * known:
        raise ValueError(f"factor must be {known:.15g} from {old!r} to {new!r}, or left out, got {given:.15g}")
    return given


def check_time_units(first: tuple[str, str], second: tuple[str, str], remedy: str) -> None:
    """Raise ValueError where two labels of units of time differ; an empty label is equal to any.

    first, second: what has the label, in words, and the label. remedy: what to do, in words.
    """
    (whose, label), (other, other_label) = first, second
    if not label.strip() or not other_label.strip() or time_label(label) == time_label(other_label):
        return
    factor = factor_between(label, other_label)
    known = ""
    if factor is not None:
        long, short = (label, other_label) if factor > 1.0 else (other_label, label)
        known = f", 1 {long} being {max(factor, 1.0 / factor):.10g} {short}"
    raise ValueError(
        f"time_unit must be the same wherever times meet, got {label!r} of {whose} and {other_label!r} of "
        f"{other}{known}: {remedy}"
    )


def check_state_units(first: tuple[str, Mapping[str, str]], second: tuple[str, Mapping[str, str]], remedy: str) -> None:
    """Raise ValueError where the labels of a state's unit differ; an empty label is equal to any.

    first, second: what has the labels, in words, and state → label. remedy: what to do, in words.
    """
    (whose, labels), (other, other_labels) = first, second
    for state, label in labels.items():
        other_label = other_labels.get(state, "")
        if unit_label(label) and unit_label(other_label) and unit_label(label) != unit_label(other_label):
            raise ValueError(
                f"units of {state!r} must be the same wherever data meet, got {label!r} of {whose} and {other_label!r} "
                f"of {other}: {remedy.format(state=state, unit=label)}"
            )


def units_by_state(states: Sequence[str], units: Sequence[str]) -> dict[str, str]:
    """State → label."""
    return dict(zip(states, units, strict=False))
