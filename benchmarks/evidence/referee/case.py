"""One input with its right answer, and how the package's answer to it is classified."""

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

RIGHT, REFUSED, WARNED, SILENT = "right", "refused", "warned", "SILENT"
LONGEST = 160  # characters of an outcome that are printed


class Outcome(NamedTuple):
    """kind: one of RIGHT, REFUSED, WARNED, SILENT. shown: the number or the message that decided."""

    kind: str
    shown: str


class Case(NamedTuple):
    """An input whose right answer is known.

    point: its number in the referee's report. posed: "others" where somebody who had not written the code posed the
    input, "ours" for a sibling with other numbers. right: the right answer, and where it comes from. run: computes the
    outcome.
    """

    point: int
    name: str
    posed: str
    right: str
    run: Callable[[], Outcome]


def classified(call: Callable[[], Any], is_right: Callable[[Any], bool], *, refusal: str = "") -> Outcome:
    """The outcome of ``call()``.

    Parameters
    ----------
    call
        Runs the input and returns the answer.
    is_right
        Judges the answer.
    refusal
        A part of the message by which the input may be refused. Any other exception is as wrong as a wrong answer,
        and counts as silent: it names a cause that is not there.

    Returns
    -------
    Outcome
        RIGHT where ``is_right(answer)``; REFUSED where an exception names ``refusal``; WARNED where the answer is wrong
        and a warning was issued; SILENT otherwise.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            answer = call()
        except Exception as error:  # whatever is raised is an outcome
            kind = REFUSED if refusal and refusal in str(error) else SILENT
            return Outcome(kind, f"{type(error).__name__}: {error}")
    said = [str(warning.message) for warning in caught]
    if is_right(answer):
        return Outcome(RIGHT, str(answer))
    return Outcome(WARNED, f"{answer}; {said[0]}") if said else Outcome(SILENT, str(answer))
