"""ICSGLD (2022), figure 5: the rugged target, its contours and a view in three dimensions.

Density ∝ exp(−U) in the box [−2.5, 2.5]², U = 0.2 ‖x‖² − 2 (cos 2πx₁ + cos 2πx₂); the term ‖x‖² − 20 beyond ‖x‖² = 20
(D.2) begins outside the picture. Crosses are the minima of U. Everything here is exact; nothing is sampled.
"""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from figures import Claim, Data, Study, run_script
from figures.papers.icsgld.rugged_box import BOXED, FREE
from figures.plots import style
from figures.scripts.claims import DERIVED

SEED = 0
TRUTH: Any = BOXED.truth
FREE_TRUTH: Any = FREE.truth
DIFFERS = "The density is normalised over the box, which the paper's text does not mention and its code has."


def measure(study: Study) -> dict[str, Any]:
    """Energies on a grid (x, y) with the log normaliser, and the modes with their weights and the barrier."""
    line = np.linspace(-2.5, 2.5, study.size(251, 101))
    grid = np.stack(np.meshgrid(line, line, indexing="ij"), axis=-1)
    path = np.stack([np.linspace(0.0, 1.0, 10_001), np.zeros(10_001)], axis=1)  # from the deepest mode to the next
    along = FREE.evaluate(path)[0]
    modes = TRUTH.modes
    return {
        "line": line,
        "energy": FREE.evaluate(grid.reshape(-1, 2))[0].reshape(line.size, line.size),
        "log_normaliser": TRUTH.log_normaliser,
        "centres": modes.centres,
        "weights": modes.weights,
        "depths": FREE.evaluate(modes.centres)[0],
        "barrier": along.max() - along.min(),
        "outside": 1.0 - np.exp(TRUTH.log_normaliser - FREE_TRUTH.log_normaliser),
    }


def heights(data: Data) -> Any:
    """The density on the grid."""
    return np.exp(-data["energy"] - data["log_normaliser"])


def draw(data: Data) -> Figure:
    """Contours on the left, the surface on the right."""
    figure = plt.figure(figsize=(style.WIDTH, 3.1))
    grid = figure.add_gridspec(1, 3, width_ratios=(1.0, 1.15, 0.1))  # the last is for the label of z
    flat, line = figure.add_subplot(grid[0]), data["line"]
    levels = flat.contourf(line, line, heights(data).T, levels=np.linspace(0.0, heights(data).max(), 13))
    flat.contour(line, line, heights(data).T, levels=levels.levels[1::2], colors="white", linewidths=0.3)
    flat.plot(*data["centres"].T, "x", color=style.DARK, markersize=3, markeredgewidth=0.7)
    flat.set(aspect="equal", xlabel="$x_1$", ylabel="$x_2$", title="(a) contours and minima of $U$")
    figure.colorbar(levels, ax=flat, label="density", shrink=0.85, format="%.2f")
    solid: Any = figure.add_subplot(grid[1], projection="3d")
    x, y = np.meshgrid(line, line, indexing="ij")
    solid.plot_surface(x, y, heights(data), cmap="cividis", rcount=125, ccount=125, linewidth=0, antialiased=False,
                       rasterized=True)  # fmt: skip
    solid.set(xlabel="$x_1$", ylabel="$x_2$", zlabel="density", title="(b) the density as a surface")
    solid.set_zticks([0.0, 0.2, 0.4, 0.6, 0.8])
    solid.zaxis.labelpad = -2
    solid.set_box_aspect((1.0, 1.0, 0.6), zoom=1.0)
    solid.view_init(elev=35.0, azim=-60.0)
    return figure


def table(data: Data) -> list[dict[str, Any]]:
    """One row per mode."""
    order = np.argsort(-data["weights"], kind="stable")
    return [
        {
            "x1": float(data["centres"][i, 0]),
            "x2": float(data["centres"][i, 1]),
            "energy": float(data["depths"][i]),
            "weight_in_the_box": float(data["weights"][i]),
        }
        for i in order
    ]


def compare(data: Data) -> list[Claim]:
    """The modes the text counts, and what it leaves unsaid."""
    accuracy = TRUTH.accuracy
    by_us: Any = ("quadrature", "", False, DERIVED)
    return [
        Claim("modes in the box", 25.0, float(len(data["weights"])), 0.0, 25.0),
        Claim("weight of the heaviest over that of the lightest mode", 4.89,
              float(data["weights"].max() / data["weights"].min()), 4.89 * accuracy, 4.89, 0.005, *by_us),
        Claim("barrier between the deepest and the next mode, nats", 4.05, float(data["barrier"]), 1e-7, 4.05, 0.005,
              *by_us),
        Claim("probability outside the box, without it", 0.195, float(data["outside"]), accuracy, 0.195, 5e-4, *by_us),
    ]  # fmt: skip


if __name__ == "__main__":
    run_script(__file__)
