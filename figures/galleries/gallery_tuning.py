"""How two tunings went: replica exchange of HMC in a flower, and BAOAB, whose moves are biased.

Above, `tune` chose the sampler: 64 chains explore 8 temperatures, the ladder is cut so that all swaps are rejected as
often, then path lengths are raced. The variant that is kept need not have the most independent draws: the score is by
new places, too. Below, the step size of BAOAB is the largest whose mean energy is above that at step size 0 by no more
than a bias of 2 % of a standard deviation allows, or where noise hides it, by its standard error; then friction is
raced. Drawn by `figures.tuning`.
"""

import json
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from figures import Data, Study, run_script, tuning
from figures.plots import style
from targets import constrained, mixtures, shapes
from toolkit import Sampler, Tuned, dynamics, samplers, tune
from toolkit.tuning.result import Cost
from toolkit.tuning.study import Fit, Round

SEED = 1
ALONE = True  # it says how many seconds a tuning took
SHAPE = shapes.flower(petals=5, offset=3.0, radius=2.0)


def baoab(step_size: float = 0.01) -> Sampler:
    """Underdamped Langevin dynamics by the BAOAB splitting, whose bias no formula says."""
    return Sampler("baoab", (step_size,), dynamics=dynamics.baoab(friction=0.5))


SAMPLERS: dict[str, Any] = {"pt_hmc": samplers.pt_hmc, "hmc": samplers.hmc, "baoab": baoab}


def measure(study: Study) -> dict[str, Any]:
    """Both tunings: their rounds as JSON, numbers of the samplers, and what they took."""
    n = study.size(200_000, 40_000)
    found = [
        tune(constrained(mixtures.cosine25(), SHAPE), seed=study.seed, n_gradients=n),
        tune(mixtures.cosine25(), baoab(), seed=study.seed, n_gradients=n),
    ]
    data: dict[str, Any] = {"seconds": [each.cost.seconds for each in found]}
    for i, each in enumerate(found):
        rounds = [{**one._asdict(), "fit": one.fit and one.fit._asdict()} for one in each.rounds]
        data |= {
            f"{i}: problem": each.problem, f"{i}: sampler": each.sampler.name, f"{i}: rounds": json.dumps(rounds),
            f"{i}: step sizes": each.sampler.arrays["step_sizes"], f"{i}: warnings": len(each.warnings),
            f"{i}: temperatures": each.sampler.arrays["temperatures"], f"{i}: gradients": each.cost.gradients,
            f"{i}: draws per gradient": each.draws_per_gradient, f"{i}: seed": each.seed,
        }  # fmt: skip
    return data


def tuned(data: Data, i: int) -> Tuned:
    """A tuning of the data, as far as its picture needs it."""

    def round_of(found: dict[str, Any]) -> Round:
        values: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in found.items()}
        return Round(**{**values, "fit": found["fit"] and Fit(**found["fit"])})

    name, sizes, ladder = str(data[f"{i}: sampler"]), data[f"{i}: step sizes"], data[f"{i}: temperatures"]
    sampler: Sampler = (
        SAMPLERS[name](sizes.tolist(), temperatures=ladder.tolist())
        if len(sizes) > 1
        else SAMPLERS[name](float(sizes[0]))
    )
    nothing = np.zeros((1, len(sizes), 2))
    return Tuned(
        str(data[f"{i}: problem"]), sampler, int(data[f"{i}: seed"]), nothing, 0, 1, nothing[0],
        tuple(map(round_of, json.loads(str(data[f"{i}: rounds"])))), (), ("",) * int(data[f"{i}: warnings"]),
        float(data[f"{i}: draws per gradient"]),
        Cost(int(data[f"{i}: gradients"]), float(data["seconds"][i])),
    )  # fmt: skip


def draw(data: Data) -> Figure:
    """One above the other."""
    figure = plt.figure(figsize=(style.WIDTH, 9.8))
    for i, part in enumerate(figure.subfigures(2, 1, height_ratios=(1.25, 1.0))):
        tuning(tuned(data, i), part)
    return figure


def table(data: Data) -> list[dict[str, Any]]:
    """What was found, and what it took."""
    return [
        {
            "problem": each.problem, "sampler": each.sampler.name, "gradients": each.cost.gradients,
            "rounds": len(each.rounds), "step sizes": " ".join(f"{v:.4g}" for v in each.sampler.arrays["step_sizes"]),
            "temperatures": " ".join(f"{v:.4g}" for v in each.sampler.arrays["temperatures"]),
            "independent draws per 1,000 gradients": 1e3 * each.draws_per_gradient,
        }
        for each in (tuned(data, 0), tuned(data, 1))
    ]  # fmt: skip


if __name__ == "__main__":
    run_script(__file__)
