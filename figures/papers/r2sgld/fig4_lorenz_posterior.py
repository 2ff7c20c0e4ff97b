"""r2SGLD (2024), figure 4: posteriors of Lorenz' σ, ρ and β by reSGLD and r2SGLD, ten seeds each.

Settings and our choices: figures/papers/r2sgld/identification.py. The posterior is Gaussian in closed form, so that
what a sampler has reached can be seen; curves of single seeds are divided by their number. Above the panels: mean
± standard deviation of the seeds' modes. Reflection moves the start, from 0 to 2 and 2, and acts no more once σ
has passed 4.
"""

from functools import partial

from figures import run_script
from figures.papers.r2sgld.identification import rows_of
from figures.papers.r2sgld.lorenz import draw_posteriors, measure_posteriors, mode_claims

SEED = 3407
DIFFERS = (
    "The paper shows one seed; a mode scatters over seeds as much as the printed ones of the two methods differ, "
    "and reflection changes nothing once a chain has left the walls."
)
METHODS = ("reSGLD", "r2SGLD")
LIMITS = ((8.5, 11.2), (27.2, 28.8), (2.48, 2.86))


measure = partial(measure_posteriors, methods=METHODS, limits=LIMITS)
draw = partial(draw_posteriors, height=3.7)
table = rows_of
compare = mode_claims


if __name__ == "__main__":
    run_script(__file__)
