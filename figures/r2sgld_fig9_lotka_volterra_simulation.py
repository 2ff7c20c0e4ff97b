"""r2SGLD (2024), figure 9: Lotka–Volterra from day 100 to 200, simulated from the modes of three reflected samplers.

Parameters are the mean marginal modes of ten seeds (figure 8). The data are of the first 100 days. A wrong period shows
as a phase that drifts: an error of √2 of the RMS about the mean is that of a random phase.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from figures import run_script, save, style
from figures.identification_panels import rows_of, simulations
from figures.r2sgld_identification import result_of, system_of

METHODS = ("R-SGLD", "R-cycSGLD", "r2SGLD")


def draw(out: Path, quick: bool) -> list[Path]:
    """Run the samplers, solve from their modes, draw both populations."""
    results = [result_of("lotka_volterra", method, quick=quick) for method in METHODS]
    times = np.linspace(0.0, 200.0, 4001)
    system = system_of("lotka_volterra")
    states = simulations("lotka_volterra", results, times)
    late = times >= 100.0
    figure, panels = plt.subplots(3, 2, figsize=(style.WIDTH, 4.6), sharex=True, sharey="col")
    rows = rows_of(results)
    for line, result, path in zip(panels, results, states[1:], strict=True):
        error = float(np.sqrt(np.mean((path - states[0])[late] ** 2) / np.mean(states[0][late] ** 2)))
        for d, axes in enumerate(line):
            axes.plot(times[late], states[0, late, d], color=style.DARK, linewidth=0.8, label="truth")
            axes.plot(times[late], path[late, d], color=style.LIGHT, linestyle=(0, (4, 1.2)), label="from the modes")
            axes.set(xlim=(100.0, 200.0), ylim=(0.0, 1.15 * states[0, late, d].max()))
            axes.set_ylabel(f"{system.states[d]}, individuals")
        line[0].set_title(f"{result.method}: error {error:.2f} of the RMS", loc="left")
        for row in rows:
            if row["method"] == result.method:
                row["relative_error_of_simulation"] = error
    for axes in panels[2]:
        axes.set_xlabel("time, days")
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return save(figure, rows, out, "r2sgld_fig9_lotka_volterra_simulation")


if __name__ == "__main__":
    run_script(draw)
