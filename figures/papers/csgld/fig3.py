"""CSGLD (2020), figure 3: SGLD, cycSGLD, reSGLD and resampled CSGLD on many modes, beside the truth and ours.

The poster says “a synthetic multi-modal distribution” and prints no settings. Upper row: the nine modes of the authors'
demonstration, whose settings these are; lower row: the 25 modes of ICSGLD (2022) with the same settings. Each panel
holds the draws of one chain; below it are KL(truth ‖ draws) in cells of 0.1, in nats, and the L1 error of the modes'
weights, each the mean of 32 chains (8 in the quick version) with its standard error.

As released: the box [−2.5, 2.5]² by rejection, start (2, 2), gradient and energy noise 0.32, 2·10⁵ gradients a chain of
which the first 5,000 are burn-in, one draw per 20; SGLD's step size 10⁻³; 20 cosine cycles from 5·10⁻³, second halves
kept, one draw per 10; temperatures 1 and 3 with a swap tried every tenth step (a tenth of all swaps there), which pay
twice per step; ζ = 0.75, ω = min(3·10⁻³, 10/(k^0.8 + 100)), and 100 bins of 0.25 from −7.6655. Our choices: 50 bins of
0.25 from −4.998 in the lower row; systematic resampling, without losing the draws of less than mean weight as the
released loop does (a row of the table). Ours: temperatures 1 and 15, step sizes 10⁻³ and 2·10⁻², swaps at every step,
reflection. In the quick version chains have 4·10⁴ gradients. The runs of CSGLD warn: with these settings θ has hardly
settled, and the lowest bins, which noise alone visits, multiply gradients by up to 16.
"""

import warnings
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures import Claim, Data, Study, density, run_script
from figures.plots import style
from figures.scripts.claims import said_above
from figures.scripts.statistics import mean_and_error, mode_weight_errors, ratio_and_error, with_error
from targets import constrained, domains, mixtures
from toolkit import ContourWarning, Run, Sampler, boundaries, samplers, schedules
from toolkit.diagnostics import cell_counts, expected_kl, kl_path
from toolkit.maths.seeds import REPEAT, derived_seed
from toolkit.tempering import Partition, step_decay
from toolkit.weighting import resample

SEED = 9
DIFFERS = (
    "At equal cost reSGLD's plain pair of temperatures is ahead of CSGLD, and a wider ladder far ahead: CSGLD's energy "
    "noise is wider than its bins, and its θ is still learning. The poster shows densities alone, by one chain each."
)
BOX = domains.box([-2.5, -2.5], [2.5, 2.5])
PROBLEMS = {"cosine9": constrained(mixtures.cosine9(), BOX), "cosine25": constrained(mixtures.cosine25(), BOX)}
PARTITIONS = {"cosine9": Partition(-7.6655, 0.24999, 100), "cosine25": Partition(-4.998, 0.25, 50)}
EDGES = np.linspace(-2.5, 2.5, 51)
SHOWN = ("SGLD", "cycSGLD", "reSGLD", "CSGLD, resampled", "reSGLD (ours)")
METHODS = ("SGLD", "cycSGLD", "reSGLD", "CSGLD, weights", "CSGLD, resampled", "CSGLD, resampled as released",
           "reSGLD (ours)", "independent draws")  # fmt: skip


def second_halves(n_steps: int) -> schedules.Schedule:
    """Twenty cosine cycles with noise throughout; draws are kept in the second half of each."""
    length = n_steps // 20
    position = np.arange(n_steps) % length / length
    return schedules.custom(0.5 * (np.cos(np.pi * position) + 1.0), keep=position > 0.5)


def methods(steps: int, partition: Partition) -> dict[str, tuple[Sampler, int]]:
    """The samplers and their thinning."""
    noisy: dict[str, Any] = {"gradient_noise": 0.32, "boundary": boundaries.reject()}
    both: dict[str, Any] = {**noisy, "energy_noise": 0.32}
    decay = step_decay(gain=10.0, exponent=0.8, cap=3e-3)
    ours: dict[str, Any] = {**both, "boundary": boundaries.reflect()}
    return {
        "SGLD": (samplers.sgld(1e-3, **noisy), 20),
        "cycSGLD": (samplers.sgld(5e-3, schedule=second_halves(steps), **noisy), 10),
        "reSGLD": (samplers.resgld((1e-3, 1e-3), temperatures=(1.0, 3.0), swap_every=10, **both), 10),
        "CSGLD": (samplers.csgld(1e-3, partition=partition, decay=decay, **both), 20),
        "reSGLD (ours)": (samplers.resgld((1e-3, 2e-2), temperatures=(1.0, 15.0), **ours), 10),
    }


def measure(study: Study) -> dict[str, Any]:
    """By target and method: one chain's cell counts, and KL and the modes' L1 error of every chain."""
    chains, steps = study.size((32, 200_000), (8, 40_000))
    data: dict[str, Any] = {}
    for name, problem in PROBLEMS.items():
        assert problem.truth is not None
        masses = problem.truth.cell_masses(EDGES, EDGES)
        found: dict[str, tuple[Any, Any]] = {}
        for label, (sampler, thin) in methods(steps, PARTITIONS[name]).items():
            n = steps // sampler.n_replicas
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ContourWarning)  # of the released settings: see above
                run = study.sample(f"{label}, {name}", problem, sampler, n_steps=n, n_chains=chains,
                                   burn_in=n // 40, thin=thin, init=[2.0, 2.0])  # fmt: skip
            found |= weighted(run, study.seed) if label == "CSGLD" else {label: (run.draws, None)}
        n = found["SGLD"][0].shape[1]
        exact = np.stack(
            [problem.truth.independent_draws(n, seed=derived_seed(study.seed, REPEAT, c)) for c in range(chains)]
        )
        found["independent draws"] = (exact, None)
        pairs = [found[label] for label in METHODS]
        data |= {
            f"masses_{name}": masses,
            f"counts_{name}": np.stack([cell_counts(found[label][0][0], EDGES, EDGES) for label in SHOWN]),
            f"kl_{name}": np.stack([kl_path(x, masses, EDGES, EDGES, weights=w)[:, 0] for x, w in pairs]),
            f"l1_{name}": np.stack([mode_weight_errors(problem.truth, x, w) for x, w in pairs]),
            f"floor_{name}": expected_kl(masses, n),
        }
    return data


def weighted(run: Run, seed: int) -> dict[str, tuple[Any, Any]]:
    """CSGLD's draws with their weights, resampled, and weighed as the released loop resamples: ⌊w / mean w⌋ copies."""
    copies = np.floor(run.weights / run.weights.mean(axis=1, keepdims=True))
    return {
        "CSGLD, weights": (run.draws, run.weights),
        "CSGLD, resampled": (resample(run.draws, run.weights, seed=seed), None),
        "CSGLD, resampled as released": (run.draws, copies),
    }


def draw(data: Data) -> Figure:
    """Two rows of six panels."""
    figure, panels = plt.subplots(2, 6, figsize=(style.WIDTH, 3.3), sharex=True, sharey=True)
    for row, name in zip(panels, PARTITIONS, strict=True):
        masses = data[f"masses_{name}"]
        highest = float(masses.max() / np.diff(EDGES)[0] ** 2)
        sources = [masses, *(counts / counts.sum() for counts in data[f"counts_{name}"])]
        for axes, source, label in zip(row, sources, ("truth", *SHOWN), strict=True):
            image = density(source, axes, x_edges=EDGES, y_edges=EDGES, highest=highest)
            describe(axes, data, name, label)
        row[0].set_ylabel(f"$x_2$ ({name})")
        figure.colorbar(image, ax=row, label="density", shrink=0.75, pad=0.01, extend="max")
    for axes, letter, label in zip(panels[0], "abcdef", ("truth", *SHOWN), strict=True):
        axes.set_title(f"({letter}) {label}".replace(", ", ",\n").replace(" (ours", "\n(ours"), fontsize=7)
    return figure


def describe(axes: Axes, data: Data, name: str, label: str) -> None:
    """Write the two numbers of a method, or the truth's floor, below its panel."""
    which = "independent draws" if label == "truth" else label
    lines = [
        f"{short} {with_error(mean, error)}"
        for short, key in (("KL", "kl"), ("L1", "l1"))
        for mean, error in [mean_and_error(data[f"{key}_{name}"][METHODS.index(which)])]
    ]
    axes.set_xlabel("\n".join(["$x_1$", *(["exact draws:"] if label == "truth" else []), *lines]), fontsize=6)
    axes.set(xticks=[-2, 0, 2], yticks=[-2, 0, 2])


def table(data: Data) -> list[dict[str, Any]]:
    """One row per target and method."""
    return [
        {
            "target": name,
            "method": label,
            "kl_nats": mean_and_error(data[f"kl_{name}"][i])[0],
            "kl_standard_error": mean_and_error(data[f"kl_{name}"][i])[1],
            "kl_of_independent_draws": float(data[f"floor_{name}"]),
            "modes_l1": mean_and_error(data[f"l1_{name}"][i])[0],
            "modes_l1_standard_error": mean_and_error(data[f"l1_{name}"][i])[1],
        }
        for name in PARTITIONS
        for i, label in enumerate(METHODS)
    ]


def compare(data: Data) -> list[Claim]:
    """KL of CSGLD and ours, and the order of the methods, which is the poster's message."""
    claims = []
    for name in PARTITIONS:
        kl = dict(zip(METHODS, map(mean_and_error, data[f"kl_{name}"]), strict=True))
        l1 = dict(zip(METHODS, map(mean_and_error, data[f"l1_{name}"]), strict=True))
        claims += [
            Claim(f"KL, {name}, {label}, nats", np.nan, *kl[label], "lower")
            for label in ("CSGLD, weights", "CSGLD, resampled", "CSGLD, resampled as released", "reSGLD (ours)")
        ]
        claims += [Claim(f"modes' weights, L1, {name}, CSGLD", np.nan, *l1["CSGLD, weights"], "lower")]
        claims += [
            said_above(f"modes' weights, L1, {name}: {label} over CSGLD (CSGLD ahead: above 1)", 1.0,
                       ratio_and_error(l1[label], l1["CSGLD, weights"]), "as the poster's picture suggests", why)
            for label, why in (("SGLD", ""), ("cycSGLD", ""), ("reSGLD", SWAPS))
        ]  # fmt: skip
        ours = ratio_and_error(l1["CSGLD, weights"], l1["reSGLD (ours)"])
        claims += [Claim(f"modes' weights, L1, {name}: CSGLD over reSGLD (ours)", np.nan, *ours, "higher")]
    return claims


SWAPS = "a hot replica crosses in one move what CSGLD's flattened energy is a random walk in"

if __name__ == "__main__":
    run_script(__file__)
