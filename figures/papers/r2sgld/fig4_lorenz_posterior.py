"""r2SGLD (2024), figure 4: posteriors of Lorenz' σ, ρ and β by reSGLD and r2SGLD, ten seeds each.

Settings and our choices: figures/papers/r2sgld/identification.py. The posterior is Gaussian in closed form, so that
what a sampler has reached can be seen; curves of single seeds are divided by their number. Above the panels: mean
± standard deviation of the seeds' modes. Reflection moves the start, from 0 to 2 and 2, and acts no more once σ
has passed 4.
"""

from functools import partial

from figures import Claim, Data, run_script
from figures.papers.r2sgld.identification import NO_WALLS, farther, rows_of
from figures.papers.r2sgld.lorenz import draw_posteriors, measure_posteriors, mode_claims, peaks
from figures.scripts.claims import said_above
from figures.scripts.statistics import mean_and_error

SEED = 3407
DIFFERS = (
    "The paper shows one seed; a mode scatters over seeds as much as the printed ones of the two methods differ, "
    "and reflection changes nothing once a chain has left the walls: r2SGLD's modes are not shown to be nearer."
)
METHODS = ("reSGLD", "r2SGLD")
LIMITS = ((8.5, 11.2), (27.2, 28.8), (2.48, 2.86))


measure = partial(measure_posteriors, methods=METHODS, limits=LIMITS)
draw = partial(draw_posteriors, height=3.7)
table = rows_of


def compare(data: Data) -> list[Claim]:
    """The printed modes; that r2SGLD's are nearer to the truth, and that reSGLD's posterior alone has two peaks."""
    more = mean_and_error(peaks(data, "reSGLD") - peaks(data, "r2SGLD"))
    return [
        *mode_claims(data),
        farther(data, "reSGLD", "r2SGLD", "4.1, “align more closely with the true parameters”", why=NO_WALLS),
        said_above("peaks of a seed's posterior, mean over the parameters: reSGLD's less r2SGLD's", 0.0, more,
                   "4.1, “dual peaks” and “a singular peak”", "The law is one Gaussian: further peaks are noise."),
    ]  # fmt: skip


if __name__ == "__main__":
    run_script(__file__)
