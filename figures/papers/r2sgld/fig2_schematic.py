"""r2SGLD (2024), figure 2: how a system is identified, from measured states to a posterior and back to simulations.

A schematic; its paths are computed: Lorenz' system, and both replicas of one chain of r2SGLD in the plane of σ and ρ,
whose walls σ = 1 + β and ρ = 1 are drawn at β = 8/3; where β is still less, a path may be left of it. 3,000 steps
at 10 times the paper's step sizes, so that the way to the posterior and its width are in one picture.
"""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch

from figures import Data, Study, run_script
from figures.papers.r2sgld.identification import portrait, problem_of, reflected_origin
from figures.plots import style
from sysid import systems
from sysid.model import model_of_system
from sysid.solvers.integrate import solve
from toolkit import samplers

SEED = 5
DIFFERS = "The paper draws a sketch; every path and matrix here is computed, at ten times the paper's step sizes."
TERMS = ("x", "y", "z", "xy", "xz")


def matrix(axes: Any, values: np.ndarray, title: str, columns: tuple[str, ...], rows: tuple[str, ...] = ()) -> None:
    """A matrix as grey cells, its columns and rows named."""
    size = np.abs(values).max(axis=0, keepdims=True)
    axes.imshow(values / np.where(size > 0.0, size, 1.0), cmap="RdBu_r", vmin=-1.6, vmax=1.6, aspect="auto")
    axes.set_title(title, pad=16)
    axes.set_xticks(range(len(columns)), columns, fontsize=7)
    axes.set_yticks(range(len(rows)), rows, fontsize=7)
    axes.tick_params(top=True, labeltop=True, bottom=False, labelbottom=False, length=0)
    for side in axes.spines.values():
        side.set_visible(True)


def measure(study: Study) -> dict[str, Any]:
    """Solve, sample one chain, and solve from its mean."""
    system = systems.lorenz()
    times = np.linspace(0.0, 25.0, 5001)
    problem = problem_of("lorenz", reflected=True)
    sampler = samplers.r2sgld((2e-5, 2e-4), temperatures=(1.0, 10.0), correction=0.0)
    run = study.sample("r2SGLD", problem, sampler, n_steps=3000, keep_replicas=True, init=reflected_origin(problem))
    mean = problem.parameters(run).reshape(-1, 3)[1500:].mean(axis=0)
    return {
        "states": solve(system, times).states,
        "theta": problem.parameters(run.replica_draws[0])[:, ::5],
        "mean": mean,
        "simulated": solve(system, times, mean).states,
        "swaps": run.swaps.sum(),
        "reflections": run.reflections.sum(),
    }


def draw(data: Data) -> Figure:
    """The boxes, and the arrows between them."""
    system, states, theta = systems.lorenz(), data["states"], data["theta"]
    model = model_of_system(system)
    terms, coefficients = model.library.evaluate(states[0:240:20]), model.coefficients(system.usual)
    velocities = terms @ coefficients

    figure = plt.figure(figsize=(style.WIDTH, 4.3))
    figure.set_layout_engine("none")
    place = {
        "data": (0.00, 0.50, 0.27, 0.42), "speed": (0.33, 0.52, 0.10, 0.28), "terms": (0.50, 0.52, 0.16, 0.28),
        "beta": (0.75, 0.60, 0.12, 0.20), "chain": (0.34, 0.08, 0.30, 0.30), "end": (0.70, 0.00, 0.29, 0.40),
    }  # fmt: skip
    portrait(figure.add_axes(place["data"], projection="3d"), states, "measured states X(t)")
    matrix(figure.add_axes(place["speed"]), velocities, "velocities", ("ẋ", "ẏ", "ż"))
    matrix(figure.add_axes(place["terms"]), terms, "library Θ(X)", TERMS)
    matrix(figure.add_axes(place["beta"]), coefficients, "coefficients Ξ", ("ẋ", "ẏ", "ż"), TERMS)
    figure.text(0.465, 0.655, "≈", ha="center", va="center", fontsize=14)
    figure.text(0.700, 0.655, "×", ha="center", va="center", fontsize=12)
    figure.text(0.42, 0.455, "U(Ξ) = ½ mean |ẋ − Θ(x) Ξ|², its gradient from a batch", ha="center", fontsize=8)
    steps = "every step, both replicas:\n\n1  swap them with probability S\n2  gradient of a new batch\n"
    figure.text(0.02, 0.22, f"{steps}3  move, with noise\n4  mirror at the walls", va="center", fontsize=8)

    chain = figure.add_axes(place["chain"])
    wall = 1.0 + float(system.usual[2])
    chain.fill_between([0.0, wall], 0.0, 32.0, color="0.88", linewidth=0.0)
    chain.fill_between([0.0, 14.0], 0.0, 1.0, color="0.88", linewidth=0.0)
    for r, (colour, label) in enumerate(((style.DARK, "T = 1"), (style.LIGHT, "T = 10"))):
        chain.plot(theta[r, :, 0], theta[r, :, 1], color=colour, linewidth=0.6, label=label, zorder=3 - r)
    chain.plot(*system.usual[:2], "+", color=style.FOURTH, markersize=8, markeredgewidth=1.5, label="truth", zorder=5)
    chain.set(xlim=(0.0, 14.0), ylim=(0.0, 32.0), xlabel="σ", ylabel="ρ")
    chain.text(0.3, 15.0, "reflected at\nσ = 1 + β", fontsize=6.5, rotation=90, va="center")
    chain.legend(loc="lower right", fontsize=6.5)
    chain.set_title("two replicas that swap", pad=3)
    end = figure.add_axes(place["end"], projection="3d")
    portrait(end, data["simulated"], "simulation from the posterior")
    arrows = [((0.27, 0.66), (0.32, 0.66)), ((0.49, 0.445), (0.49, 0.41)), ((0.645, 0.22), (0.70, 0.22))]
    for begin, finish in arrows:
        figure.add_artist(
            FancyArrowPatch(
                begin, finish, transform=figure.transFigure, arrowstyle="-|>", mutation_scale=11, color="0.3"
            )
        )
    return figure


def table(data: Data) -> list[dict[str, Any]]:
    """One row per parameter."""
    system = systems.lorenz()
    return [
        {"parameter": name, "truth": float(t), "mean_of_path": float(m), "swaps": int(data["swaps"]),
         "reflections": int(data["reflections"])}
        for name, t, m in zip(system.parameters, system.usual, data["mean"], strict=True)
    ]  # fmt: skip


if __name__ == "__main__":
    run_script(__file__)
