"""What `sysid.discover` finds in noisy data of prey and predators: how it fits, and which terms are there.

Lotka and Volterra's equations, 161 times with errors of 10 % of each state's root mean square, a tenth of the values
missing; all twelve monomials up to degree 2 are candidates. Above, `figures.fit`: 200 posterior draws solved from
first states of their own, with errors as large as the data's; the band widens as the draws' periods drift apart. Below
each state: data minus the median. At the bottom, `figures.terms`: medians and 90 % intervals of all coefficients;
filled where the posterior probability that the term is there is ½ or more.
"""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from figures import Data, Study, fit, run_script, terms
from figures.plots import style
from sysid import Ensemble, Estimates, Series, discover, systems
from sysid import data as measured

SEED = 2
SYSTEM = systems.lotka_volterra()
TIMES, FINE = np.linspace(0.0, 20.0, 161), np.linspace(0.0, 20.0, 201)


def measure(study: Study) -> dict[str, Any]:
    """Data, trajectories of posterior draws, and estimates of all coefficients."""
    series = measured.simulate(SYSTEM, TIMES, noise=0.1, missing=0.1, seed=study.seed)
    found = discover(series, sweeps=study.size(4_000, 500), seed=study.seed, progress=False)
    paths = found.simulate(FINE, noise=found.noise, n_draws=study.size(200, 50), seed=study.seed)
    table = found.estimates
    return {
        "values": series.values, "states": paths.states, "observed": paths.observed, "status": paths.status,
        "reached": paths.reached, "names": np.array(table.names), "estimates": np.array(table[1:]),
    }  # fmt: skip


def draw(data: Data) -> Figure:
    """Fit above, terms below."""
    n = len(data["status"])
    series = Series(TIMES, data["values"], SYSTEM.states, units=("thousands", "thousands"), time_unit="years")
    paths = Ensemble(
        SYSTEM, FINE, data["states"], data["status"], data["reached"], np.tile(SYSTEM.usual, (n, 1)),
        data["states"][:, 0], data["observed"],
    )  # fmt: skip
    figure = plt.figure(figsize=(style.WIDTH, 5.4))
    above, below = figure.subfigures(2, 1, height_ratios=(1.35, 1.0))
    fit(series, paths, above)
    terms(estimates_of(data), below)
    return figure


def estimates_of(data: Data) -> Estimates:
    """Estimates of all coefficients."""
    return Estimates(tuple(data["names"].tolist()), *data["estimates"])


def table(data: Data) -> list[dict[str, Any]]:
    """Estimates beside the truth."""
    found = estimates_of(data)
    truth = {f"d{state}:{term}": c for state, row in (SYSTEM.terms or {}).items() for term, c in row.items()}
    usual = dict(zip(SYSTEM.parameters, SYSTEM.usual.tolist(), strict=True))
    return [
        {
            "term": name, "median": found.median[k], "5 %": found.lower[k], "95 %": found.upper[k],
            "probability": found.inclusion[k], "truth": number_of(truth.get(name, 0.0), usual),
        }
        for k, name in enumerate(found.names)
    ]  # fmt: skip


def number_of(coefficient: Any, usual: dict[str, float]) -> float:
    """A coefficient of the system's terms at the usual parameters."""
    if isinstance(coefficient, str):
        return usual[coefficient]
    if isinstance(coefficient, dict):
        return sum(factor * usual.get(name, 1.0) for name, factor in coefficient.items())
    return float(coefficient)


if __name__ == "__main__":
    run_script(__file__)
