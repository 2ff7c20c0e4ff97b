"""Settings of the samplers, found anew: ``python -m benchmarks quality search [PROBLEM …]``.

Every sampler gets the same effort on a problem: ``TRIALS`` runs of as many gradient evaluations as the case says, all
with one seed that the table does not use. One knob after the other is multiplied and divided by its factor, the better
is kept, and factors shrink to their roots where nothing is better. Where the first values diverge, the first knob (the
step size) is lowered until they do not.
"""

import argparse
import json
import sys
import textwrap
from collections.abc import Callable

import numpy as np

from .problems import CASES, Case
from .runs import measure
from .samplers import FAMILIES, Knob, Values

TRIALS, SEED = 16, 77


def search(loss: Callable[[Values], float], knobs: dict[str, Knob], trials: int) -> Values:
    """The best of ``trials`` different values of the knobs."""
    tried: dict[tuple[float, ...], float] = {}

    def lossy(values: Values) -> float:
        key = tuple(float(f"{value:.3g}") for value in values.values())
        if key not in tried:
            tried[key] = loss(values)
        return tried[key]

    best: Values = {name: knob.start for name, knob in knobs.items()}
    first, knob = next(iter(knobs.items()))
    while lossy(best) == np.inf and len(tried) < trials // 2 and best[first] > knob.low:
        best = {**best, first: max(best[first] / knob.factor, knob.low)}
    stride, rounds = 1.0, 0
    while len(tried) < trials and rounds < 8 * trials:
        before, rounds = best, rounds + 1
        for name, knob in knobs.items():
            for way in (1.0, -1.0):
                moved = float(np.clip(best[name] * knob.factor ** (way * stride), knob.low, knob.high))
                if len(tried) < trials and lossy({**best, name: moved}) < lossy(best):
                    best = {**best, name: moved}
                    break
        stride = stride if best is not before else 0.5 * stride
    return best


def found(case: Case, family: str) -> Values:
    """Settings of a sampler for a problem, to three digits. Raises ValueError where it refuses those it begins with."""
    knobs = FAMILIES[family].knobs
    FAMILIES[family].make(case, {name: knob.start for name, knob in knobs.items()})

    def loss(values: Values) -> float:
        try:
            return measure(case, family, values, case.tuned_for, SEED).error
        except ValueError:  # numbers that make no sense together
            return np.inf

    best = search(loss, knobs, TRIALS)
    if loss(best) == np.inf:
        raise ValueError("it refuses, or diverges with all settings tried")
    return {name: float(f"{value:.3g}") for name, value in best.items()}


def block(name: str, settings: dict[str, tuple[float, ...]]) -> str:
    """A problem's entry in ``settings``."""
    entries = (f"{json.dumps(family, ensure_ascii=False)}: {values}," for family, values in settings.items())
    words = " ".join(entry.replace(" ", "~") for entry in entries)
    lines = textwrap.fill(words, 110, initial_indent=" " * 8, subsequent_indent=" " * 8, break_on_hyphens=False)
    return f'    "{name}": {{\n' + lines.replace("~", " ") + "\n    },"


def main(arguments: list[str]) -> None:
    """Print the entries of ``settings``; a sampler that refuses a problem, or diverges on it, is left out."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks quality search", description=__doc__)
    parser.add_argument("problems", nargs="*", metavar="PROBLEM", help=f"of {', '.join(CASES)}; none: all")
    given = parser.parse_args(arguments)
    if unknown := sorted(set(given.problems) - set(CASES)):
        parser.error(f"problems must be of {', '.join(CASES)}, got {unknown}")
    for name in given.problems or CASES:
        settings = {}
        for family in FAMILIES:
            try:
                settings[family] = tuple(found(CASES[name], family).values())
            except (TypeError, ValueError) as error:
                print(f"{name}, {family}: {error}", file=sys.stderr)
        print(block(name, settings), flush=True)
