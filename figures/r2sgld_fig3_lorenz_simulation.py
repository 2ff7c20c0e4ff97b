"""r2SGLD (2024), figure 3: Lorenz' system simulated from the modes of reSGLD and r2SGLD, beside the truth.

Parameters are the mean marginal modes of ten seeds (figure 4). Below, x(t) of the first times: on a chaotic system any
error of the parameters grows as e^(0.906 t), so that paths part soon, however good the posterior; the dotted line marks
where they are apart by 40 % of the states' RMS.
"""

from pathlib import Path

from figures import run_script, save
from figures.lorenz_drawings import lorenz_simulations

METHODS = ("reSGLD", "r2SGLD")


def draw(out: Path, quick: bool) -> list[Path]:
    """Run the samplers, solve from their modes, draw paths in space and in time."""
    figure, table = lorenz_simulations(METHODS, quick=quick)
    return save(figure, table, out, "r2sgld_fig3_lorenz_simulation")


if __name__ == "__main__":
    run_script(draw)
