"""Malformed targets, data and domains, and what they are told.

Each row is tried; one that is taken without a word says so, and ``tests/test_malformed.py`` fails.
"""

import re
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from targets import catalogue, classics, constrained, datasets, mixtures, posteriors, shapes

from .malformed_doors import DOORS
from .malformed_regions import REGIONS
from .markdown import head, row

Malformed = tuple[str, Callable[[], object]]
GOOD_ROW = "0 " * 13 + "1\n"


def heart_file(text: str) -> Callable[[], object]:
    """Load ``text`` as the Heart data, from a file that is gone afterwards."""

    def load() -> object:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "heart.dat"
            path.write_text(text, encoding="utf-8")
            return datasets.heart(path)

    return load


FEATURES, LABELS = np.ones((4, 2)), np.array([0, 1, 0, 1])
TARGETS: list[Malformed] = [
    ("mixture: weights that sum to 1.1", lambda: mixtures.gaussian_mixture([[0.0], [1.0]], 1.0, [0.5, 0.6])),
    ("mixture: covariance not positive definite", lambda: mixtures.gaussian_mixture([[0.0, 0.0]], [[1, 2], [2, 1]])),
    ("mixture: means without components", lambda: mixtures.gaussian_mixture([0.0, 1.0], 1.0)),
    ("ring: no radius", lambda: classics.ring(radius=0.0)),
    ("funnel: a word for the dimension", lambda: classics.funnel(dim="ten")),
    ("double well: one well only", lambda: classics.double_well(barrier=1.0, tilt=2.0)),
    ("correlated Gaussian: correlation 1", lambda: classics.correlated_gaussian(correlation=1.0)),
    ("Student-t: no degrees of freedom", lambda: classics.student_mixture([[0.0]], 1.0, 0.0)),
    ("truth: decreasing edges", lambda: mixtures.cosine25().truth.cell_masses([1.0, 0.0], [0.0, 1.0])),
    ("truth: probability 1.5", lambda: mixtures.cosine25().truth.energy_quantiles([0.5, 1.5])),
    ("constrained: no target", lambda: constrained("cosine25", shapes.flower())),
    ("truth: no seed", lambda: catalogue()[0].truth.independent_draws(10, seed=None)),
]
POSTERIORS: list[Malformed] = [
    ("logistic regression: labels 1 and 2", lambda: posteriors.logistic_regression(FEATURES, LABELS + 1)),
    ("logistic regression: too few labels", lambda: posteriors.logistic_regression(FEATURES, LABELS[:3])),
    ("linear regression: no noise", lambda: posteriors.linear_regression(FEATURES, LABELS, noise=0.0, prior=1.0)),
    (
        "linear regression: anchor without minibatches",
        lambda: posteriors.linear_regression(FEATURES, LABELS, noise=1.0, prior=1.0, refresh_every=5),
    ),
    ("posterior: datum is no function", lambda: posteriors.posterior("normal", FEATURES, 2)),
    ("posterior: datum returns an energy only", lambda: posteriors.posterior(lambda x, row: x[0], FEATURES, 2)),
    ("data: no such file", lambda: datasets.german("nowhere/german.data-numeric")),
    ("data: a word in line 2", heart_file(GOOD_ROW + GOOD_ROW.replace("0 0", "0 zero", 1))),
    ("data: a missing mark", heart_file(GOOD_ROW + "?" + GOOD_ROW[1:])),
    ("data: 13 columns", heart_file(GOOD_ROW + GOOD_ROW[2:])),
    ("data: class 3", heart_file(GOOD_ROW[:-2] + "3\n")),
    ("data: two rows", heart_file(2 * GOOD_ROW)),
    ("data: nothing in it", heart_file("")),
]


def message_of(thunk: Callable[[], object]) -> str | None:
    """What a malformed input is told; None where it is taken."""
    try:
        thunk()
    except Exception as error:
        return re.sub(r"\S*[/\\](?=heart\.dat)", "", f"{type(error).__name__}: {error}")
    return None


def main() -> None:
    """Print the table."""
    head("input", "what it is told")
    for what, thunk in [*DOORS, *TARGETS, *POSTERIORS, *REGIONS]:
        row(what, (message_of(thunk) or "nothing: it is taken").replace("|", "¦").replace("\n", " "))
