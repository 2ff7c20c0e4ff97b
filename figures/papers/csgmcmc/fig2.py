"""Cyclical SG-MCMC (2020), figure 2: 25 Gaussians by four parallel chains of SGLD and of cSGLD, 50,000 steps each.

Settings of figure 5; the draws of four chains are taken together. In (e) the gradient evaluations are those of all four
chains, and of both replicas where there are two. SGLD's KL rises with the draws: it counts half a draw in each
empty cell, which weighs less and less beside those in the modes it is in.
"""

from typing import Any

from figures import Claim, Data, Study, run_script
from figures.papers.csgmcmc.gaussian_grid import CHAINS_PER_GROUP, draw_group, measure_group, table_group
from figures.scripts.claims import said_above
from figures.scripts.statistics import difference, mean_and_error

SEED = 2
DIFFERS = (
    "The paper gives no start; the numbers are means over 10 groups of four chains, of which it shows one; KL and "
    "r2SGLD are ours."
)


def measure(study: Study) -> dict[str, Any]:
    """Each repeat is four chains."""
    return measure_group(study, CHAINS_PER_GROUP)


draw, table = draw_group, table_group


def compare(data: Data) -> list[Claim]:
    """Modes covered at the end, and KL."""
    found = [mean_and_error(values) for values in (*data["modes"], *data["kl"][:, :, -1])]
    nan = float("nan")
    return [
        Claim("modes of 25, four chains of SGLD", 4.0, *found[0], "higher",
              why="Each chain stays in the mode it starts near, and two of four start near the same one now and then."),
        Claim("modes of 25, four chains of cSGLD", 25.0, *found[1], "higher"),
        said_above("modes of 25, four chains of cSGLD less four of SGLD", 0.0, difference(*data["modes"][1::-1]),
                   "figure 2, “able to find … all modes”"),
        Claim("KL of four chains of cSGLD, nats", nan, *found[6], "lower"),
        Claim("KL of four chains of r2SGLD at the same budget, nats", nan, *found[9], "lower"),
    ]  # fmt: skip


if __name__ == "__main__":
    run_script(__file__)
