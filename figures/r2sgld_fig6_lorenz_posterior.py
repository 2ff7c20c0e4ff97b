"""r2SGLD (2024), figure 6: posteriors of Lorenz’ σ, ρ and β by SGLD and cycSGLD, with and without reflection.

Settings and our choices: figures/r2sgld_identification.py. The posterior is Gaussian in closed form, so that what a
sampler has reached can be seen. Reflection moves the start, from 0 to 2 and 2, and acts no more once σ has passed 4.
σ relaxes in 1/(5e-6 · 18.5) = 10,800 steps of SGLD, and the decay leaves it some 16,000 in all: it does not arrive.
"""

from pathlib import Path

from figures import run_script, save
from figures.lorenz_drawings import lorenz_posteriors

METHODS = ("SGLD", "R-SGLD", "cycSGLD", "R-cycSGLD")
LIMITS = ((7.2, 11.2), (27.2, 28.8), (2.48, 2.86))


def draw(out: Path, quick: bool) -> list[Path]:
    """Run the samplers, draw their densities, write modes and moments."""
    figure, table = lorenz_posteriors(METHODS, LIMITS, height=6.6, quick=quick)
    return save(figure, table, out, "r2sgld_fig6_lorenz_posterior")


if __name__ == "__main__":
    run_script(draw)
