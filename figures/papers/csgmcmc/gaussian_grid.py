"""The mixture of 25 Gaussians of cyclical SG-MCMC (2020): its samplers, the modes that draws cover, densities and KL.

The paper's settings and those of its released code. The latter adds N(0, I) to every gradient and takes its part,
h², from the variance 2h that it injects: together that is the law of SGLD without either, which is what runs here.
"""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from figures import Data, Study, density, kl_curve
from figures.arrays import Array, Integers
from figures.plots import style
from figures.plots.kl_curves import interval
from figures.scripts.statistics import mean_and_error
from targets import constrained, domains, mixtures
from toolkit import samplers, schedules
from toolkit.diagnostics import cell_counts, expected_kl, kl_path
from toolkit.samplers import Sampler
from toolkit.schedules import Schedule

EVALUATIONS = 50_000  # of the gradient, per chain
CYCLES = 30
CHAINS_PER_GROUP = 4  # chains of the parallel setting
RADIUS, THRESHOLD = 0.25, 100
HALF_WIDTH = 10.0  # of the square that chains start in, uniformly, and that the composition is reflected in
LABELS = ("SGLD", "cSGLD", "SGLD, released", "cSGLD, released", "r2SGLD", "cyclical r2SGLD")
SHOWN = LABELS[:5]  # in the pictures of densities
LINE_STYLES = {
    "SGLD": (style.LIGHT, "-"),
    "cSGLD": (style.MEDIUM, "-"),
    "SGLD, released": (style.LIGHT, (0, (2, 1.2))),
    "cSGLD, released": (style.MEDIUM, (0, (2, 1.2))),
    "r2SGLD": (style.DARK, "-"),
    "cyclical r2SGLD": (style.DARK, (0, (5, 1.5))),
}
FINE, COARSE = np.linspace(-5.0, 5.0, 101), np.linspace(-5.0, 5.0, 41)


def problem() -> Any:
    """The mixture in the square of the starts, which all but the reflected samplers ignore."""
    return constrained(mixtures.gaussian_grid25(), domains.box([-HALF_WIDTH] * 2, [HALF_WIDTH] * 2))


def released_cycles() -> Schedule:
    """Cosine cycles of the released code: K / M steps long, noise at every step, the first 50 of each not kept."""
    place = np.arange(EVALUATIONS) * CYCLES % EVALUATIONS / EVALUATIONS
    first_50 = place * EVALUATIONS < 50 * CYCLES
    return schedules.custom(0.5 * (np.cos(np.pi * place) + 1.0), keep=~first_50)


def methods() -> tuple[Sampler, ...]:
    """One for each of LABELS."""
    decay = schedules.polynomial_decay
    cycles = schedules.cosine_cycles(CYCLES, floor=0.1)
    return (
        samplers.sgld(0.05, schedule=decay(0.55)),
        samplers.cyclical_sgld(0.09, n_cycles=CYCLES, exploration=0.25),
        samplers.sgld(0.043, schedule=decay(0.55, start=500)),
        samplers.sgld(0.07, schedule=released_cycles()),
        samplers.r2sgld((0.005, 0.03), temperatures=(1.0, 12.0)),
        samplers.r2sgld((0.01, 0.05), temperatures=(1.0, 12.0), schedule=cycles),
    )


def starts(study: Study, n_chains: int) -> Array:
    """Uniform points (chain, 2) of the square."""
    return np.random.default_rng([study.seed, 25]).uniform(-HALF_WIDTH, HALF_WIDTH, (n_chains, 2))


def mode_counts(draws: Array) -> Integers:
    """Draws (chain, draw, 2) within RADIUS of each centre, (chain, 25), as ``mode_coverage`` counts them.

    The centres are the even integers from −4 to 4 in each coordinate, so that the nearest is found by rounding.
    """
    places = np.clip(np.rint(0.5 * draws), -2.0, 2.0)
    near = ((draws - 2.0 * places) ** 2).sum(axis=2) <= RADIUS * RADIUS
    numbers = (5.0 * places[..., 0] + places[..., 1] + 12.0).astype(np.int64)
    return np.stack([np.bincount(row[kept], minlength=25) for row, kept in zip(numbers, near, strict=True)])


def measure_group(study: Study, group: int) -> dict[str, Any]:
    """Density of the first ``group`` chains, KL as draws accumulate and modes covered, by method and group."""
    grid, repeats = problem(), study.size(40 // group, 4)
    truth = mixtures.gaussian_grid25().truth
    assert truth is not None
    masses = truth.cell_masses(COARSE, COARSE)
    evaluations = np.unique(np.geomspace(500, EVALUATIONS, study.size(24, 8)).astype(int))
    results: dict[str, list[Any]] = {"densities": [truth.cell_masses(FINE, FINE)], "kl": [], "modes": []}
    for label, sampler in zip(SHOWN, methods(), strict=False):
        run = study.sample(label, grid, sampler, n_steps=EVALUATIONS // sampler.n_replicas,
                           n_chains=repeats * group, init=starts(study, repeats * group))  # fmt: skip
        pooled = run.draws.reshape(repeats, group, -1, 2).swapaxes(1, 2).reshape(repeats, -1, 2)
        n_draws = group * np.searchsorted(run.steps, evaluations // sampler.n_replicas)
        ends, places = np.unique(n_draws, return_inverse=True)
        results["densities"].append(cell_counts(pooled[0], FINE, FINE) / len(pooled[0]))
        results["kl"].append(kl_path(pooled, masses, COARSE, COARSE, ends)[:, places])
        results["modes"].append((mode_counts(pooled) > THRESHOLD).sum(axis=1))
    floor = [expected_kl(masses, int(n)) for n in group * evaluations]
    return {**results, "evaluations": group * evaluations, "floor": floor}


def draw_group(data: Data) -> Figure:
    """Densities in a row: truth, SGLD, cSGLD, r2SGLD; KL against gradient evaluations below."""
    figure = plt.figure(figsize=(style.WIDTH, 4.9))
    grid = figure.add_gridspec(2, 4, height_ratios=[1.0, 1.5])
    panels = [figure.add_subplot(grid[0, i]) for i in range(4)]
    shown = {0: "truth", 1: "SGLD", 2: "cSGLD", 5: "r2SGLD (ours)"}
    highest = float(data["densities"][0].max()) / (FINE[1] - FINE[0]) ** 2
    for letter, panel, (i, name) in zip("abcd", panels, shown.items(), strict=True):
        image = density(data["densities"][i], panel, x_edges=FINE, y_edges=FINE, highest=highest)
        covered = f"{data['modes'][i - 1][0]} of 25 modes" if i else "25 modes"
        panel.set_title(f"({letter}) {name}\n{covered}")
        panel.set(xlabel="$x_1$", xticks=[-4, 0, 4], yticks=[-4, 0, 4])
        panel.tick_params(labelleft=panel is panels[0])
    panels[0].set_ylabel("$x_2$")
    figure.colorbar(image, ax=panels, label="density", shrink=0.85, pad=0.01, extend="max")
    curves = figure.add_subplot(grid[1, :])
    for label, path in zip(SHOWN, data["kl"], strict=True):
        colour, dashes = LINE_STYLES[label]
        kl_curve(data["evaluations"], path, curves, label=label, color=colour, linestyle=dashes)
    label = "independent draws, one per gradient evaluation"
    curves.plot(data["evaluations"], data["floor"], label=label, **style.TRUTH)
    curves.set(xscale="log", yscale="log", xlim=(data["evaluations"][0], data["evaluations"][-1]))
    curves.set(xlabel="gradient evaluations, all chains and replicas together", ylabel="KL(truth ‖ draws), nats")
    curves.set_title(f"(e) mean and 95 % interval over {len(data['kl'][0])} repeats", loc="left")
    figure.legend(*curves.get_legend_handles_labels(), loc="outside lower center", ncols=3, handlelength=3.5)
    return figure


def table_group(data: Data) -> list[dict[str, Any]]:
    """One row per method and checkpoint."""
    return [
        {
            "method": label,
            "gradient_evaluations": int(at),
            "kl_nats": float(mean),
            "kl_half_width_95": float(half_width),
            "kl_of_independent_draws": float(floor),
            "modes_at_the_end": mean_and_error(modes)[0],
            "modes_standard_error": mean_and_error(modes)[1],
        }
        for label, path, modes in zip(SHOWN, data["kl"], data["modes"], strict=True)
        for at, mean, half_width, floor in zip(data["evaluations"], *interval(path), data["floor"], strict=True)
    ]
