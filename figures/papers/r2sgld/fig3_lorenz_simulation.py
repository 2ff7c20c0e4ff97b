"""r2SGLD (2024), figure 3: Lorenz' system simulated from the modes of reSGLD and r2SGLD, beside the truth.

Parameters are the mean marginal modes of ten seeds (figure 4). Below, x(t) of the first times: on a chaotic system any
error of the parameters grows as e^(0.906 t), so that paths part soon, however good the posterior; the dotted line marks
where they are apart by 40 % of the states' RMS.
"""

from functools import partial

from figures import Claim, Data, run_script
from figures.papers.r2sgld.lorenz import draw_simulations, longer, measure_simulations, simulation_rows

SEED = 3407
DIFFERS = (
    "The paper simulates from one seed's modes and prints no number; these are the mean modes of ten seeds, and the "
    "two methods part from the truth equally soon."
)
METHODS = ("reSGLD", "r2SGLD")

measure = partial(measure_simulations, methods=METHODS)
draw = draw_simulations
table = simulation_rows


def compare(data: Data) -> list[Claim]:
    """What section 4.1 says of the two simulations."""
    return [longer(data, "r2SGLD", "reSGLD", "4.1, “slightly improved results over extended … periods”")]


if __name__ == "__main__":
    run_script(__file__)
