"""r2SGLD (2024), figure 4: posteriors of Lorenz' σ, ρ and β by reSGLD and r2SGLD, ten seeds each.

Settings and our choices: figures/r2sgld_identification.py. The posterior is Gaussian in closed form, so that what a
sampler has reached can be seen. Reflection moves the start, from 0 to 2 and 2, and acts no more once σ has passed 4.
"""

from pathlib import Path

from figures import run_script, save
from figures.lorenz_drawings import lorenz_posteriors

METHODS = ("reSGLD", "r2SGLD")
LIMITS = ((8.5, 11.2), (27.2, 28.8), (2.48, 2.86))


def draw(out: Path, quick: bool) -> list[Path]:
    """Run the samplers, draw their densities, write modes and moments."""
    figure, table = lorenz_posteriors(METHODS, LIMITS, height=3.7, quick=quick)
    return save(figure, table, out, "r2sgld_fig4_lorenz_posterior")


if __name__ == "__main__":
    run_script(draw)
