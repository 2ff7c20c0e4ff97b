"""r2SGLD (2024), figure 5: nine samplers on 25 modes in a flower, their densities and KL(truth ‖ draws).

Equal cost: every method makes 20 gradient evaluations per kept draw, after the same number of them for burn-in.
From the paper and its released code: step sizes 5e-4 (SGLD), 1e-3 in 5 cycles with floor 1e-4 and noise always on
(cycSGLD), 5e-4 and 1.5e-3 at temperatures 1 and 10 (reSGLD); gradient and energy noise 0.05. Our choices: chains
start at uniform random points of the flower; penalty λ = 10, as the paper gives none; swaps by u < S with the
correction that fits the noise. The released rule (swap wherever S ≥ 3e-4, correction 9.5) is one more curve. Being
biased towards a flatter law, it fills rare cells sooner than independent draws of the right one, lies below their
curve at first, and then stays where its bias is.
"""

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from figures import density, kl_curve, run_script, save, style
from figures.kl_curve import interval
from targets import constrained, mixtures, shapes
from toolkit import boundaries, sample, samplers
from toolkit.boundaries import Boundary
from toolkit.diagnostics import equivalent_draws, expected_kl, kl_path
from toolkit.samplers import Sampler

SEED = 2024
COLOURS = {"SGLD": style.LIGHT, "cycSGLD": style.MEDIUM, "reSGLD": style.DARK, "released": style.FOURTH}
DRAWN = {"ignore": (0, (1, 1.2)), "penalise": (0, (4, 1.5)), "reflect": "-", "released": (0, (6, 1, 1, 1))}
BOUNDARIES = {"": boundaries.ignore(), "P-": boundaries.penalise(10.0), "R-": boundaries.reflect()}


def methods(boundary: Boundary) -> dict[str, Sampler]:
    """The three samplers with one boundary, by the paper's names."""
    noise: dict[str, Any] = {"boundary": boundary, "gradient_noise": 0.05}
    return {
        "SGLD": samplers.sgld(5e-4, **noise),
        "cycSGLD": samplers.cyclical_sgld(1e-3, n_cycles=5, exploration=0.0, floor=0.1, **noise),
        "reSGLD": samplers.r2sgld(energy_noise=0.05, **noise),
    }


def draw(out: Path, quick: bool) -> list[Path]:
    """Run all methods, draw the figure, write the table."""
    n_draws, n_chains = (2_000, 4) if quick else (50_000, 10)
    shape = shapes.flower(petals=5, offset=3.0, radius=2.0)
    problem = constrained(mixtures.cosine25(), shape)
    truth = problem.truth
    assert truth is not None
    edges = np.linspace(-2.5, 2.5, 101)
    masses = truth.cell_masses(edges, edges)
    checkpoints = np.unique(np.geomspace(n_draws / 100, n_draws, 25).astype(int))
    start = shape.uniform_draws(n_chains, seed=SEED)

    runs = {
        ("r2SGLD" if (prefix, name) == ("R-", "reSGLD") else prefix + name): (name, sampler)
        for prefix, boundary in BOUNDARIES.items()
        for name, sampler in methods(boundary).items()
    }
    released = samplers.r2sgld(correction=9.5, swap_threshold=3e-4, gradient_noise=0.05, energy_noise=0.05)
    runs["r2SGLD (released swap)"] = ("released", released)

    figure = plt.figure(figsize=(style.WIDTH, 5.4))
    grid = figure.add_gridspec(2, 4, height_ratios=[1.0, 1.7])
    panels = [figure.add_subplot(grid[0, i]) for i in range(4)]
    highest = float(masses.max()) / (edges[1] - edges[0]) ** 2  # of the truth; draws above it are shown in its colour
    grids = {"x_edges": edges, "y_edges": edges, "shape": shape, "highest": highest}
    image = density(masses, panels[0], **grids)
    panels[0].set_title("(a) truth\n")
    shown = {
        "R-SGLD": "(b) R-SGLD",
        "R-cycSGLD": "(c) R-cycSGLD",
        "r2SGLD": "(d) r2SGLD",
    }
    curves = figure.add_subplot(grid[1, :])
    results = []
    for method, (family, sampler) in runs.items():
        thin = 20 // sampler.n_replicas
        run = sample(
            problem, sampler, n_steps=6 * thin * n_draws // 5, burn_in=thin * n_draws // 5, thin=thin,
            n_chains=n_chains, init=start, seed=SEED,
        )  # fmt: skip
        path = kl_path(run.draws, masses, edges, edges, checkpoints)
        colour, dashes = COLOURS[family], DRAWN["released" if family == "released" else sampler.boundary.kind]
        kl_curve(20 * checkpoints, path, curves, label=method, color=colour, linestyle=dashes)
        if method in shown:
            panel = panels[1 + list(shown).index(method)]
            density(run.draws[0], panel, **grids)
            panel.set_title(f"{shown[method]}\none chain")
        inside = problem.contains(run.draws.reshape(-1, 2)).mean()
        swap_rate = float(run.swap_rates.mean()) if sampler.tempering else np.nan
        results.append((method, path, swap_rate, float(1.0 - inside)))

    exact = np.stack([truth.independent_draws(n_draws, seed=SEED + i) for i in range(n_chains)])
    path = kl_path(exact, masses, edges, edges, checkpoints)
    kl_curve(20 * checkpoints, path, curves, label="independent draws", color="0.6", linewidth=2.5, zorder=0)
    results.append(("independent draws", path, np.nan, 0.0))

    for panel in panels:
        panel.set(xlabel="$x_1$", xticks=[-2, 0, 2], yticks=[-2, 0, 2])
        panel.tick_params(labelleft=panel is panels[0])
    panels[0].set_ylabel("$x_2$")
    figure.colorbar(image, ax=panels, label="density", shrink=0.85, pad=0.01, extend="max")
    curves.set(xscale="log", yscale="log", xlim=(20 * checkpoints[0], 20 * checkpoints[-1]))
    curves.set_xlabel("gradient evaluations per chain after burn-in (one draw kept per 20)")
    curves.set_ylabel("KL(truth ‖ draws), nats")
    curves.set_title(f"(e) mean and 95 % interval over {n_chains} chains", loc="left")
    handles, labels = curves.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, handlelength=3.5)
    return save(figure, table(results, checkpoints, masses), out, "r2sgld_fig5_flower")


def table(
    results: list[tuple[str, np.ndarray, float, float]], checkpoints: np.ndarray, masses: np.ndarray
) -> list[dict[str, object]]:
    """One row per method and checkpoint: mean KL, its interval, the floor, and what the draws are worth."""
    floor = [expected_kl(masses, int(n)) for n in checkpoints]
    means, half_widths = zip(*(interval(path) for _, path, _, _ in results), strict=True)
    worth = equivalent_draws(np.array(means), masses)
    return [
        {
            "method": method,
            "draws": int(checkpoints[i]),
            "gradient_evaluations": 20 * int(checkpoints[i]),
            "kl_nats": float(means[m][i]),
            "kl_half_width_95": float(half_widths[m][i]),
            "kl_of_independent_draws": floor[i],
            "worth_independent_draws": float(worth[m, i]),
            "swap_rate": swap_rate,
            "share_outside": outside,
        }
        for m, (method, _, swap_rate, outside) in enumerate(results)
        for i in range(len(checkpoints))
    ]


if __name__ == "__main__":
    run_script(draw)
