"""The plotting layer: each of its functions once, on small runs.

(a) `density`: draws of r2SGLD in the flower. (b) `trajectory`: a path of CSGLD on 25 modes in a box, coloured by the
factor on its gradient, which is negative where it climbs out of a mode. (c) `kl_curve`: reflected SGLD and r2SGLD in
the flower at equal cost, mean and 95 % interval over 8 chains; grey: what as many independent draws give.
(d) `posterior`: weighted draws of CSGLD from 0.4 N(−6, 1) + 0.6 N(4, 1), 8 chains thin, all together thick; grey: the
truth; dots: −6. (e) `phase_portrait`: three orbits of Lotka and Volterra's prey and predators over their field.
(f) `theta_spectrum`: what CSGLD learned in (d) of the probabilities of 56 bins of energy, mean and ± 2 standard
deviations over chains; grey: the truth. (g) `swaps`: four replicas on their way through four temperatures on cosine25,
blue up, orange down. (h) `traces`: SGNHT's thermostats in three chains on N(0, 1), under noise of gradients of standard
deviation 6, which they find out and balance.
"""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from figures import (
    Data,
    Study,
    density,
    kl_curve,
    phase_portrait,
    posterior,
    run_script,
    swaps,
    theta_spectrum,
    traces,
    trajectory,
)
from figures.plots import style
from figures.scripts.statistics import mean_and_error
from sysid import systems
from sysid.solvers import integrate
from targets import constrained, domains, mixtures, shapes
from toolkit import boundaries, samplers, tempering
from toolkit.diagnostics import cell_counts, energy_probabilities, expected_kl, kl_path

SEED = 5
SHAPE = shapes.flower(petals=5, offset=3.0, radius=2.0)
EDGES = np.linspace(-2.5, 2.5, 61)
NAMES = ("density", "trajectory", "kl_curve", "posterior", "phase_portrait", "theta_spectrum", "swaps", "traces")
BINS = tempering.Partition(1.3, 0.25, 56)


def measure(study: Study) -> dict[str, Any]:
    """The runs of all panels."""
    return flower(study) | contour(study) | path(study) | orbits() | exchange(study) | thermostats(study)


def flower(study: Study) -> dict[str, Any]:
    """Shares of cells of r2SGLD's draws, and KL (chain, checkpoint) of it and of SGLD, 20 gradients a draw."""
    problem, n = constrained(mixtures.cosine25(), SHAPE), study.size(20_000, 2_000)
    assert problem.truth is not None
    masses, at = problem.truth.cell_masses(EDGES, EDGES), np.geomspace(100, n, 12).astype(np.int64)
    made = {}
    for sampler, thin in ((samplers.r2sgld(), 10), (samplers.sgld(5e-4, boundary=boundaries.reflect()), 20)):
        made[sampler.name] = study.sample(
            f"(a, c) {sampler.name}", problem, sampler, n_steps=n * thin * 6 // 5, burn_in=n * thin // 5, thin=thin,
            n_chains=8, init=[0.0, 0.0],
        ).draws  # fmt: skip
    counts = cell_counts(made["r2sgld"].reshape(-1, 2), EDGES, EDGES)
    paths = {f"kl_{name}": kl_path(draws, masses, EDGES, EDGES, at) for name, draws in made.items()}
    return paths | {"cells": counts / counts.sum(), "at": at, "floor": [expected_kl(masses, int(k)) for k in at]}


def path(study: Study) -> dict[str, Any]:
    """Places (step, 2) of one chain of CSGLD after its burn-in, and the gradient's factors (step,)."""
    burn_in = study.size(50_000, 5_000)
    problem = constrained(mixtures.cosine25(), domains.box([-2.5, -2.5], [2.5, 2.5]))
    flat = samplers.csgld(3e-3, boundary=boundaries.reflect())
    run = study.sample("(b) csgld", problem, flat, n_steps=burn_in + 2_500, burn_in=burn_in, trace_every=1,
                       init=[0.0, 0.0])  # fmt: skip
    assert run.trace is not None
    return {"path": run.draws[0], "multiplier": run.trace.fields["multiplier"][0, 0, burn_in:]}


def contour(study: Study) -> dict[str, Any]:
    """Draws (chain, draw) of CSGLD on the unequal pair, their weights, its θ, and the bins' true probabilities."""
    n = study.size(1_000_000, 200_000)
    flat = samplers.csgld(0.02, partition=BINS, freezes=True)
    run = study.sample("(d, f) csgld", mixtures.unequal_pair(), flat, n_steps=n, burn_in=n // 2, thin=100, n_chains=8,
                       init=[0.0])  # fmt: skip
    true = energy_probabilities(run.problem.truth, BINS.edges)
    return {"draws": run.draws[..., 0], "weights": run.weights, "theta": run.theta, "probabilities": true / true.sum()}


def orbits() -> dict[str, Any]:
    """States (lane, time, 2) of Lotka and Volterra's system from three starts."""
    starts = [[10.0, 5.0], [14.0, 7.0], [18.0, 9.0]]
    return {"orbits": integrate.solve(systems.lotka_volterra(), np.linspace(0.0, 6.5, 300), start=starts).states}


def exchange(study: Study) -> dict[str, Any]:
    """Walkers (rung, step) of one chain on four temperatures."""
    ladder = samplers.resgld((1e-3, 2e-3, 4e-3, 8e-3), temperatures=(1.0, 2.0, 4.0, 8.0), swap_every=10)
    run = study.sample("(g) resgld", mixtures.cosine25(), ladder, n_steps=400, trace_every=1, init=[0.0, 0.0])
    assert run.trace is not None
    return {"walkers": run.trace.fields["walker"][0]}


def thermostats(study: Study) -> dict[str, Any]:
    """Steps (time,) and thermostats (chain, time) of SGNHT under noise of gradients."""
    noisy = samplers.sgnht(0.01, friction=0.05, inertia=20.0, gradient_noise=6.0)
    normal = mixtures.gaussian_mixture([[0.0]], 1.0)
    run = study.sample("(h) sgnht", normal, noisy, n_steps=4_000, n_chains=3, trace_every=10, init=[0.0])
    assert run.trace is not None
    return {"steps": run.trace.steps, "thermostats": run.trace.fields["thermostat"][:, 0]}


def pair(x: Any) -> Any:
    """The density that (d) is of."""
    return (0.4 * np.exp(-0.5 * (x + 6.0) ** 2) + 0.6 * np.exp(-0.5 * (x - 4.0) ** 2)) / np.sqrt(2.0 * np.pi)


def draw(data: Data) -> Figure:
    """Two rows of four panels, of square axes where both of them are places."""
    figure, panels = plt.subplots(2, 4, figsize=(style.WIDTH, 3.9))
    a, b, c, d, e, f, g, h = panels.flat
    density(data["cells"], a, x_edges=EDGES, y_edges=EDGES, shape=SHAPE)
    (lines,) = trajectory(data["path"], b, colours=data["multiplier"], cmap="cividis", linewidth=0.5)
    b.set(aspect="equal", xlim=(-2.5, 2.5), ylim=(-2.5, 2.5))
    below: dict[str, Any] = {"cax": b.inset_axes([0.0, -0.26, 1.0, 0.06]), "orientation": "horizontal"}
    figure.colorbar(lines, **below, label="factor on the gradient")
    for name, label, colour in (("sgld", "R-SGLD", style.LIGHT), ("r2sgld", "r2SGLD", style.MEDIUM)):
        kl_curve(data["at"], data[f"kl_{name}"], c, label=label, color=colour)
    c.plot(data["at"], data["floor"], label="independent", **style.TRUTH)
    c.set(xscale="log", yscale="log", xlabel="draws", ylabel="KL, nats")
    c.legend(loc="lower left", handlelength=1.2, borderaxespad=0.1)
    seen: dict[str, Any] = {"bandwidth": 0.25, "limits": (-11.0, 9.0), "truth": pair, "true_value": -6.0}
    posterior(data["draws"], d, weights=data["weights"], **seen, color=style.MEDIUM)
    d.set(xlabel="$x$", ylabel="density", ylim=(0.0, None))
    predators = systems.lotka_volterra()
    phase_portrait(data["orbits"], e, field=predators, limits=((0.0, 45.0), (0.0, 27.0)), color=style.MEDIUM)
    e.set(xlabel="prey", ylabel="predators")
    theta_spectrum(data["theta"], f, edges=BINS.edges, truth=data["probabilities"], color=style.MEDIUM)
    f.set(xlabel="energy $U$, nats", ylabel="probability of a bin")
    swaps(data["walkers"], g)
    g.set(xlabel="step", ylabel="rung, coldest first")
    traces(data["thermostats"], h, at=data["steps"])
    h.set(xlabel="step", ylabel="thermostat")
    for axes, letter, name in zip(panels.flat, "abcdefgh", NAMES, strict=True):
        axes.set_title(f"({letter}) {name}", loc="left")
    return figure


def table(data: Data) -> list[dict[str, Any]]:
    """What each panel shows, as a number with its standard error over chains."""
    shares = data["weights"] / data["weights"].sum(axis=1, keepdims=True)
    theta = data["theta"] / data["theta"].sum(axis=1, keepdims=True)
    rows = {
        "c: KL of r2SGLD over its floor": data["kl_r2sgld"][:, -1] / data["floor"][-1],
        "c: KL of reflected SGLD over its floor": data["kl_sgld"][:, -1] / data["floor"][-1],
        "d: weight of the left mode, 0.4 in truth": (shares * (data["draws"] < -1.0)).sum(axis=1),
        "f: sum of the differences from the truth": np.abs(theta - data["probabilities"]).sum(axis=1),
        "h: thermostat over the last half, 0.23 in theory": np.split(data["thermostats"], 2, axis=1)[1].mean(axis=1),
    }
    return [
        dict(zip(("panel and number", "ours", "error"), (name, *mean_and_error(row)), strict=True))
        for name, row in rows.items()
    ]


if __name__ == "__main__":
    run_script(__file__)
