"""Cyclical SG-MCMC (2020), figure 5: 25 Gaussians by a single chain of SGLD and of cSGLD, 50,000 steps.

Paper's settings: SGLD with steps 0.05 k^−0.55; cSGLD with α₀ = 0.09, 30 cycles and β = 1/4, gradient descent without
noise in the first quarter of each cycle, which is not kept. Dashed in (e): those of the released code, 0.043 for 500
steps and then 0.043 (k − 500)^−0.55; 0.07, noise always on, 50 steps of each cycle not kept. Our choices: start
uniform in [−10, 10]², as the released code; one more sampler, r2SGLD: two replicas at temperatures 1 and 12 with steps
0.005 and 0.03, reflected in the square of the starts, 25,000 steps, hence as many gradient evaluations. KL over cells
of 0.25 with half a draw added to each; its floor is that of as many independent draws as there are evaluations.
"""

from typing import Any

from figures import Claim, Data, Study, run_script
from figures.papers.csgmcmc.gaussian_grid import draw_group, measure_group, table_group
from figures.scripts.claims import said_above
from figures.scripts.statistics import difference, mean_and_error

SEED = 25
DIFFERS = (
    "The paper gives no start; the numbers are means over 40 chains, of which it shows one; KL and r2SGLD are ours."
)


def measure(study: Study) -> dict[str, Any]:
    """Each repeat is one chain."""
    return measure_group(study, 1)


draw, table = draw_group, table_group


def compare(data: Data) -> list[Claim]:
    """Modes covered at the end."""
    found = [mean_and_error(values) for values in (*data["modes"], *data["kl"][:, :, -1])]
    nan = float("nan")
    return [
        Claim("modes of 25, one chain of SGLD", 1.0, *found[0], "higher"),
        said_above("modes of 25, one chain of cSGLD less one of SGLD", 0.0, difference(*data["modes"][1::-1]),
                   "figure 5, “significantly more of the distribution”"),
        Claim("modes of 25, one chain of cSGLD", nan, *found[1], "higher"),
        Claim("modes of 25, r2SGLD at the single chain's budget (aim: 25)", nan, *found[4], "higher"),
        Claim("KL of one chain of cSGLD, nats", nan, *found[6], "lower"),
        Claim("KL of r2SGLD at the single chain's budget, nats", nan, *found[9], "lower"),
    ]  # fmt: skip


if __name__ == "__main__":
    run_script(__file__)
