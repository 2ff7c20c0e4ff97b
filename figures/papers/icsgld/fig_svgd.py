"""ICSGLD (2022), figure 3, SVGD: five groups of 100 particles, and one of 500, on the 25 modes.

Uniform starts in [−2.5, 2.5]², exact gradients, no box, Gaussian kernel with the median bandwidth, RMSprop-like steps
of 0.003: D.2 and its released code, where 5 × 100 particles make 10⁴ steps. Those we make too; of 500 (5·10⁴ steps in
the released code) 1,500, when they are all but at rest. Four repeats of each.

(a), (b) Particles of one repeat at the end over the true density in the box. (c) KL(truth ‖ particles) over the 25 unit
squares around the modes, half a count added to each, against gradient evaluations; mean and 68 % interval. The dotted
line is what a method of figure 6 may spend, the grey one the KL of 500 independent draws. Within a mode particles lie
more evenly than draws would; nothing carries them between modes, whose shares get no nearer to the truth's.
"""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from figures import Claim, Data, Study, density, kl_curve, run_script
from figures.papers.icsgld.rugged_box import EVALUATIONS, FREE, box_masses
from figures.plots import style
from figures.scripts.statistics import mean_and_error
from toolkit import samplers
from toolkit.diagnostics import equivalent_draws, expected_kl, kl_path

SEED = 2025
DIFFERS = (
    "The paper calls SVGD good but costly, by its picture. Counted mode by mode its uniform start is as good as what "
    "becomes of it in 12 times the cost of figure 6: 500 particles hold the modes' weights as some 100 independent "
    "draws would, or some 35 where they are one group."
)
MODES = np.linspace(-2.5, 2.5, 6)
FINE = np.linspace(-2.5, 2.5, 101)
GROUPS = {"5 × 100 particles": 100, "1 × 500 particles": 500}
LINES: dict[str, dict[str, Any]] = {
    "5 × 100 particles": {"color": style.MEDIUM, "linestyle": "-"},
    "1 × 500 particles": {"color": style.FIFTH, "linestyle": (0, (5, 1.5))},
}


def measure(study: Study) -> dict[str, Any]:
    """Particles (500, 2) of one repeat at the end, KL (repeat, checkpoint) and gradient evaluations, by grouping."""
    masses = box_masses(MODES)
    found: dict[str, Any] = {"masses": masses, "fine": box_masses(FINE)}
    steps = study.size((10_000, 1_500), (400, 100))
    for (name, particles), n_steps in zip(GROUPS.items(), steps, strict=True):
        shape = (4 * 500 // particles, particles, 2)
        start = np.random.default_rng(study.seed).uniform(-2.5, 2.5, shape)
        run = study.sample(
            f"SVGD {name}", FREE, samplers.svgd(3e-3, n_replicas=particles), n_steps=n_steps, thin=n_steps // 100,
            n_chains=shape[0], init=start,
        )  # fmt: skip
        paths = np.concatenate([start[:, :, None], run.replica_draws], axis=2).reshape(4, 500, -1, 2)
        found[f"kl {name}"] = np.hstack([kl_path(x, masses, MODES, MODES) for x in np.moveaxis(paths, 2, 0)])
        found[f"evaluations {name}"] = 500 * np.append(0, run.steps + 1)
        found[f"particles {name}"] = paths[0, :, -1]
    return found


def draw(data: Data) -> Figure:
    """Three panels."""
    figure, axes = plt.subplots(1, 3, figsize=(style.WIDTH, 2.6), width_ratios=[1.0, 1.0, 1.25])
    farthest = max(3.0, *(1.05 * float(np.abs(data[f"particles {name}"]).max()) for name in GROUPS))
    for panel, letter, name in zip(axes, "ab", GROUPS, strict=False):
        density(data["fine"], panel, x_edges=FINE, y_edges=FINE)
        panel.plot(*data[f"particles {name}"].T, ".", color="white", markersize=1.8, markeredgewidth=0.0)
        panel.set_title(f"({letter}) {name}", loc="left")
        panel.set(xlim=(-farthest, farthest), ylim=(-farthest, farthest), xlabel="$x_1$", facecolor="#00224e")
        kl_curve(
            data[f"evaluations {name}"][1:], data[f"kl {name}"][:, 1:], axes[2], label=name, level=0.683, **LINES[name]
        )
    axes[0].set_ylabel("$x_2$")
    axes[1].tick_params(labelleft=False)
    axes[2].axhline(expected_kl(data["masses"], 500), label="500 independent draws", **style.TRUTH)
    axes[2].axvline(EVALUATIONS, ymax=0.55, color="black", linewidth=0.8, linestyle=(0, (1, 2)),
                    label="cost of a sampler in figure 6")  # fmt: skip
    axes[2].set(xscale="log", yscale="log", xlabel="gradient evaluations per repeat", ylabel="KL over modes, nats")
    axes[2].set_title("(c) shares of the modes", loc="left")
    axes[2].set_ylim(0.015, 3.0)
    axes[2].set_box_aspect(1.0 / 1.25)  # as high as the squares beside it
    axes[2].set_yticks([0.02, 0.05, 0.1, 0.2, 0.5, 1.0], ["0.02", "0.05", "0.1", "0.2", "0.5", "1"])
    axes[2].minorticks_off()
    axes[2].legend(loc="upper left")
    return figure


def worth(data: Data, name: str) -> tuple[float, float]:
    """Independent draws with as large a KL over the modes as the particles at the end, and its standard error."""
    last = data[f"kl {name}"][:, -1]
    mean, error = mean_and_error(last)
    value, lower = equivalent_draws([mean, mean + error], data["masses"])
    return float(value), float(value - lower)


def table(data: Data) -> list[dict[str, Any]]:
    """One row per grouping and checkpoint."""
    return [
        {
            "particles": name,
            "gradient_evaluations": int(at),
            **dict(zip(("kl_over_modes", "standard_error"), mean_and_error(kl), strict=True)),
            "kl_of_500_independent_draws": expected_kl(data["masses"], 500),
        }
        for name in GROUPS
        for at, kl in zip(data[f"evaluations {name}"], data[f"kl {name}"].T, strict=True)
    ]


def compare(data: Data) -> list[Claim]:
    """What the particles are worth in draws: the paper shows a picture alone."""
    claims = []
    for name in GROUPS:
        value, error = worth(data, name)
        what = f"independent draws with the KL over modes of SVGD's {name} at the end (particles: 500)"
        why = "nothing carries particles between modes, whose shares stay near those of the start"
        claims.append(Claim(what, np.nan, value, error, "higher", why=why))
    return claims


if __name__ == "__main__":
    run_script(__file__)
