"""The comparison of ICSGLD (2022), section 5.2 and D.2: 25 modes of unequal weight, and the samplers at equal cost.

Step sizes, temperatures, ζ, partition and steps ω are the paper's; noise and starts are those of its released code,
which keeps CSGLD, ICSGLD and the truth, and no other method, in a box by rejection.
"""

import warnings
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from targets import constrained, domains, mixtures
from toolkit import ContourWarning, Run, Sampler, samplers
from toolkit.boundaries import Boundary
from toolkit.tempering import Partition

from ...arrays import Array
from ...scripts.study import Study

FREE = mixtures.cosine25()
BOXED = constrained(FREE, domains.box([-2.5, -2.5], [2.5, 2.5]))
CELLS = np.linspace(-2.5, 2.5, 26)
WIDE_CELLS = np.linspace(-4.9, 4.9, 50)  # the box is the 25 × 25 in the middle
PARTITION = Partition(-4.998, 0.125, 100)
NOISE = 0.25  # standard deviation of energies, and of each coordinate of gradients
FIVE = np.array([[0.0, -1.0], [0.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
CORNER, CENTRE = np.array([[2.0, 2.0]]), np.zeros((1, 2))
EVALUATIONS, BURN_IN, PER_DRAW = 400_000, 5_000, 20  # gradient evaluations of one repeat: all, burn-in, between draws


class Method(NamedTuple):
    """A sampler and where its replicas start, (replica, 2)."""

    sampler: Sampler
    start: Array


def methods(boundary: Boundary) -> dict[str, Method]:
    """The paper's samplers by its names, and two compositions of ours with momentum, friction 0.1."""
    plain: dict[str, Any] = {"boundary": boundary, "gradient_noise": NOISE}
    noisy: dict[str, Any] = plain | {"energy_noise": NOISE}
    contour: dict[str, Any] = noisy | {"partition": PARTITION}
    rungs = (1.0, 2.0, 3.0, 4.0, 5.0)
    return {
        "SGLD×P5": Method(Sampler("sgld", (3e-3,) * 5, (1.0,) * 5, **plain), FIVE),
        "cycSGLD×T5": Method(samplers.cyclical_sgld(1e-2, n_cycles=10, exploration=0.0, **plain), CENTRE),
        "reSGLD×P5": Method(samplers.resgld(tuple(1e-3 * t for t in rungs), temperatures=rungs, **noisy), FIVE),
        "CSGLD×T5": Method(samplers.csgld(3e-3, **contour), CORNER),
        "ICSGLD×P5": Method(samplers.icsgld(3e-3, **contour), FIVE),
        "ICSGHMC×P5": Method(samplers.icsghmc(1e-3, friction=0.1, **contour), FIVE),
        "reSGHMC×P2": Method(samplers.r2sghmc((1e-3, 5e-3), temperatures=(1.0, 5.0), friction=0.1, **noisy), FIVE[:2]),
    }


def box_masses(cells: Array) -> Array:
    """Probabilities in the box of the squares that ``cells``, from −2.5 to 2.5, cuts it into.

    By Gauss-Legendre along a line: in the box ‖x‖² < 20, where U is a sum over the coordinates.
    """
    nodes, weights = np.polynomial.legendre.leggauss(16)
    half = 0.5 * np.diff(cells)[:, None]
    x = 0.5 * (cells[1:] + cells[:-1])[:, None] + half * nodes
    line = (half * weights * np.exp(2.0 * np.cos(2.0 * np.pi * x) - 0.2 * x**2)).sum(axis=1)
    return np.outer(line, line) / line.sum() ** 2


def box_energies(edges: Array) -> Array:
    """Probabilities in the box of the bins of energy between ``edges``, to 3e-4, by a sum over points in a quarter."""
    middles = (np.arange(2_000) + 0.5) / 800.0
    along = 0.2 * middles**2 - 2.0 * np.cos(2.0 * np.pi * middles)
    energy = along[:, None] + along
    shares = np.exp(-energy)
    return np.asarray(np.histogram(energy, edges, weights=shares)[0] / shares.sum())


def with_step_sizes(method: Method, factors: Array) -> Method:
    """``method`` with all step sizes times ``factors`` (chain,), one for every chain."""
    steps, temperatures = np.array(method.sampler.step_sizes), method.sampler.temperatures
    table = tuple(tuple(map(float, row)) for row in np.outer(factors, steps))
    return Method(replace(method.sampler, step_sizes=table, temperatures=(temperatures,) * len(table)), method.start)


def run_method(
    study: Study, label: str, problem: Any, method: Method, n_chains: int, share: float = 1.0, **settings: Any
) -> Run:
    """``share`` of the comparison's cost, on one thread; one draw of the target is kept per 20 gradient evaluations."""
    sampler, start = method
    replicas = sampler.n_replicas
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ContourWarning)  # of steps too large for the multiplier: what the figures show
        return study.sample(
            label, problem, sampler, n_steps=round(share * EVALUATIONS) // replicas,
            burn_in=round(share * BURN_IN) // replicas, thin=PER_DRAW * sampler.n_target_replicas // replicas,
            n_chains=n_chains, init=np.broadcast_to(start, (n_chains, replicas, 2)), **{"threads": 1, **settings},
        )  # fmt: skip
