"""Cyclical SG-MCMC (2020), figure 1: the cyclical step size beside the decreasing one.

(a) Steps of section 5.1, the first four of 30 cycles in 50,000 steps: cSGLD with α₀ = 0.09, dashed while it explores
(β = 1/4, temperature 0), solid while it samples; SGLD with 0.05 k^−0.55. (b) One cycle, paper's and released settings:
the released code starts at 0.07, always adds noise, and leaves out only the first 50 steps. Grey line: 0.06, twice the
variance of a mode of the 25 Gaussians. Above it gradient descent overshoots the mode and leaves it, and that is
how a cycle finds another one, noise or no noise.
"""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from figures import Claim, Data, Study, run_script
from figures.papers.csgmcmc.gaussian_grid import CYCLES, EVALUATIONS, methods
from figures.plots import style
from figures.scripts.claims import THEORY, said_above
from toolkit.schedules import evaluate

SEED = 1
DIFFERS = "The paper draws a sketch without numbers; these are the schedules of its section 5.1."
LIMIT = 0.06  # twice the variance 0.03
LENGTH = -(-EVALUATIONS // CYCLES)
NAMES = ("SGLD", "cSGLD", "SGLD, released", "cSGLD, released")


def measure(study: Study) -> dict[str, Any]:
    """Step sizes (method, step) of the whole run, and which steps are sampled from."""
    steps = np.arange(EVALUATIONS)
    factors = [(sampler.step_sizes[0], evaluate(sampler.schedule, steps, EVALUATIONS)) for sampler in methods()[:4]]
    return {
        "total": [base * found.step_size.sum() for base, found in factors],
        "kept": [found.keep.mean() for _, found in factors],
        "above": [(base * found.step_size > LIMIT).mean() for base, found in factors],
        "step_sizes": [base * found.step_size[: 4 * LENGTH] for base, found in factors],
        "keeps": [found.keep[: 4 * LENGTH] for _, found in factors],
    }


def draw(data: Data) -> Figure:
    """Four cycles left, one right."""
    figure, axes = plt.subplots(1, 2, figsize=(style.WIDTH, 3.1), sharey=True, width_ratios=[1.6, 1.0])
    lines = {"SGLD": style.LIGHT, "cSGLD": style.MEDIUM, "SGLD, released": style.FOURTH, "cSGLD, released": style.DARK}
    entries: dict[str, Any] = {}
    for panel, shown, n_steps in ((axes[0], (0, 1), 4 * LENGTH), (axes[1], (1, 3), LENGTH)):
        for i in shown:
            steps, sizes, keeps = np.arange(n_steps), data["step_sizes"][i, :n_steps], data["keeps"][i, :n_steps]
            colour, name = lines[NAMES[i]], NAMES[i]
            panel.plot(steps, np.where(keeps, sizes, np.nan), color=colour, label=name)
            if not keeps.all():
                use = "exploration, no noise" if i == 1 else "discarded steps"
                panel.plot(steps, np.where(keeps, np.nan, sizes), color=colour, linestyle=(0, (2, 1)), linewidth=1.8,
                           label=f"{name}: {use}")  # fmt: skip
        panel.axhline(LIMIT, label="above: steps overshoot a mode and leave it", **style.TRUTH)
        panel.set(xlabel="step", xlim=(0, n_steps), ylim=(0, 0.095))
        entries |= dict(zip(*panel.get_legend_handles_labels()[::-1], strict=True))
    axes[0].set(ylabel="step size", title="(a) four cycles, and a decreasing step size")
    axes[1].set(title="(b) one cycle, paper and code")
    figure.legend(entries.values(), entries.keys(), loc="outside lower center", ncols=3)
    return figure


def table(data: Data) -> list[dict[str, Any]]:
    """One row per schedule."""
    return [
        {
            "schedule": name,
            "largest_step_size": float(data["step_sizes"][i].max()),
            "sum_of_step_sizes": float(data["total"][i]),
            "share_of_steps_kept": float(data["kept"][i]),
            "share_of_steps_above_limit": float(data["above"][i]),
        }
        for i, name in enumerate(NAMES)
    ]


def compare(data: Data) -> list[Claim]:
    """The sum of all steps, which the paper's bound is about, and the share that explores."""
    step = 0.5 * CYCLES * 0.09  # half a step at the start of each cycle
    return [
        Claim("sum of the cyclical step sizes, K α₀ / 2 (error: half a step a cycle)", 2250.0, data["total"][1], step,
              2250.0, source="appendix E", origin=THEORY),
        Claim("share of steps that explore, β (error: a step a cycle)", 0.25, 1.0 - data["kept"][1], 1.0 / LENGTH,
              0.25),
        said_above("sum of the cyclical step sizes over that of the decreasing ones", 1.0,
                   (float(data["total"][1] / data["total"][0]), step / float(data["total"][0])),
                   "appendix E, “runs much faster … in terms of the amount of diffusion time”"),
    ]  # fmt: skip


if __name__ == "__main__":
    run_script(__file__)
