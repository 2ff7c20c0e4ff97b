"""r2SGLD (2024), figure 7: Lorenz' system simulated from the modes of SGLD and cycSGLD, with and without reflection.

Parameters are the mean marginal modes of ten seeds (figure 6). Below, x(t) of the first times: on a chaotic system any
error of the parameters grows as e^(0.906 t), so that paths part soon, however good the posterior; the dotted line marks
where they are apart by 40 % of the states' RMS.
"""

from functools import partial

from figures import Claim, Data, run_script
from figures.papers.r2sgld.lorenz import draw_simulations, longer, measure_simulations, simulation_rows

SEED = 3407
DIFFERS = (
    "The paper simulates from one seed's modes and prints no number; what parts SGLD from the truth early is a σ "
    "that has not arrived, with and without reflection. r2SGLD's simulations (figure 3), which the paper sees nearest, "
    "stay with the truth no longer than those of cycSGLD and R-cycSGLD."
)
METHODS = ("SGLD", "R-SGLD", "cycSGLD", "R-cycSGLD")

measure = partial(measure_simulations, methods=METHODS, beside=("r2SGLD",))
draw = draw_simulations
table = simulation_rows


def compare(data: Data) -> list[Claim]:
    """What A.1 says of r2SGLD's simulation beside these four."""
    text = "A.1, “most closely replicates the true system dynamics”"
    return [longer(data, "r2SGLD", method, text) for method in METHODS]


if __name__ == "__main__":
    run_script(__file__)
