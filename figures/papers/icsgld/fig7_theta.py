"""ICSGLD (2022), figure 7: θ learned by ten interacting chains, and by one of ten times the length, and the truth.

0.4 N(−6, 1) + 0.6 N(4, 1), ζ = 0.9, Δu = 1, step size 0.1, ω = 1/(k^0.6 + 100), gradient noise 0.03, all from 0; θ as
it is at the end. The bins begin at the lowest energy, 1.42 (released code: 0.15, which leaves an empty bin below).

(a), (b) The paper's lengths, 10⁶ steps of ten chains and 10⁷ of one, random field of 2022, 20 repeats (the paper has
10): probabilities of the bins, θ^ζ up to a factor, and how far they are from the truth by quadrature; bands are ± 2
standard deviations of one repeat. What both share is the bias of a step size of 0.1. (c) Variance over repeats, CSGLD's
over ICSGLD's, at a tenth of that length, 200 repeats, for that field and for the one of 2020, whose θ is the
probabilities themselves; bars are ± standard error. "All bins": mean of its logarithm over the principal directions of
log θ. The corollary's P^(1−α) = 2.51 is for endless runs; P ω_Pk / ω_k is 2.69 at this length and 2.56 at the paper's.
"""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from figures import Claim, Data, Study, run_script, theta_spectrum
from figures.arrays import Array
from figures.plots import style
from figures.scripts.claims import THEORY, said_above, said_below
from figures.scripts.statistics import mean_and_error, with_error
from targets import mixtures
from toolkit import Sampler
from toolkit.diagnostics import theta_error
from toolkit.tempering import Partition, contour, step_decay

SEED = 2024
DIFFERS = (
    "Backward difference, as printed, where the released code has the forward one; log Ψ interpolated within bins; and "
    "the truth is quadrature, where the paper's θ⋆ is the mean of the two methods' own curves."
)
PROBLEM = mixtures.unequal_pair()
PARTITION = Partition(1.42, 1.0, 24)
MIDDLES = 0.5 * (PARTITION.edges[1:] + PARTITION.edges[:-1])
METHODS = {"ICSGLD×P10": 10, "CSGLD×T10": 1}
YEARS = {"theta": 2022, "theta_zeta": 2020}
COROLLARY = 10.0**0.4  # P^(1−α), P = 10, α = 0.6
SMALLEST = 1e-4  # probability of the rarest bin that is compared
LINES: dict[str, dict[str, Any]] = {
    "ICSGLD×P10": {"color": style.MEDIUM, "linestyle": "-"},
    "CSGLD×T10": {"color": style.LIGHT, "linestyle": (0, (5, 1.5))},
}


def sampler(field: str, n_replicas: int) -> Sampler:
    """Contour SGLD with ``n_replicas`` and either random field."""
    flat = contour(zeta=0.9, partition=PARTITION, field=field, decay=step_decay(cap=1.0))
    return Sampler("contour", (0.1,) * n_replicas, (1.0,) * n_replicas, tempering=flat, gradient_noise=0.03)


def measure(study: Study) -> dict[str, Any]:
    """Probabilities of the bins by θ, (repeat, bin), by length, field and method, and the truth's."""
    whole, part = study.size(((20, 10_000_000), (200, 1_000_000)), ((10, 100_000), (40, 100_000)))
    found: dict[str, Any] = {}
    for length, field, (n_chains, evaluations) in (
        ("whole", "theta", whole), ("part", "theta", part), ("part", "theta_zeta", part)
    ):  # fmt: skip
        for name, replicas in METHODS.items():
            steps = evaluations // replicas
            run = study.sample(
                f"{name}, field of {YEARS[field]}", PROBLEM, sampler(field, replicas), n_steps=steps,
                burn_in=steps - 1, n_chains=n_chains, init=[0.0],
            )  # fmt: skip
            error = theta_error(run)
            found[f"{length} {field} {name}"] = error.estimated
    return found | {"truth": error.true}


def log_ratios(data: Data, which: str) -> tuple[Array, Array]:
    """log of the variances' ratio, CSGLD over ICSGLD, of each bin compared and last of all together; standard errors.

    All together: the mean of log over the principal directions, by determinants of the covariance of log(p_i / p_1).
    """
    often = data["truth"] > SMALLEST
    logs = [np.log(data[f"{which} {name}"][:, often]) for name in ("CSGLD×T10", "ICSGLD×P10")]

    def estimate(rows: Any) -> Array:
        alone = [np.log(values[rows].var(axis=0, ddof=1)) for values in logs]
        covariances = [np.cov(values[rows, 1:] - values[rows, :1], rowvar=False) for values in logs]
        together = [np.linalg.slogdet(covariance)[1] / len(covariance) for covariance in covariances]
        return np.append(alone[0] - alone[1], together[0] - together[1])

    n = len(logs[0])
    without = np.array([estimate(np.delete(np.arange(n), i)) for i in range(n)])  # one repeat each: the jackknife
    error = np.sqrt((n - 1) / n * ((without - without.mean(axis=0)) ** 2).sum(axis=0))
    return estimate(np.arange(n)), error


def ratio_of(logs: Array, error: Array) -> tuple[float, float]:
    """The variances' ratio of all bins together, of ``log_ratios``, and its standard error."""
    ratio = float(np.exp(logs[-1]))
    return ratio, ratio * float(error[-1])


def draw(data: Data) -> Figure:
    """Three panels."""
    figure, axes = plt.subplots(1, 3, figsize=(style.WIDTH, 3.0))
    often = data["truth"] > SMALLEST
    for name, line in LINES.items():
        shares = data[f"whole theta {name}"]
        truth = data["truth"] if name == "ICSGLD×P10" else None
        drawn = theta_spectrum(shares, axes[0], edges=PARTITION.edges, truth=truth, label=name, **line)
        if drawn.truth is not None:
            drawn.truth.set_label("truth")
        off = 100.0 * (shares[:, often] / data["truth"][often] - 1.0)
        mean, spread = off.mean(axis=0), off.std(axis=0, ddof=1)
        axes[1].plot(MIDDLES[often], mean, marker=".", **line)
        axes[1].fill_between(
            MIDDLES[often], mean - 2.0 * spread, mean + 2.0 * spread, color=line["color"], alpha=0.25, linewidth=0.0
        )
    axes[0].set(xlim=(1.4, 10.5), ylim=(2e-5, 1.5), ylabel="probability of a bin of 1 nat")
    axes[0].legend()
    axes[1].axhline(0.0, **style.TRUTH)
    axes[1].set_ylabel("error, % (bands: ± 2 sd of a repeat)")
    highest = 0.0
    for field, shift, colour, mark in (("theta", -0.12, style.DARK, "o"), ("theta_zeta", 0.12, style.FIFTH, "^")):
        logs, error = log_ratios(data, f"part {field}")
        low, middle, high = np.exp(logs[:-1] + np.outer((-1.0, 0.0, 1.0), error[:-1]))
        axes[2].errorbar(
            MIDDLES[often] + shift, middle, (middle - low, high - middle), color=colour, marker=mark, markersize=3,
            linestyle="none",
            label=f"field of {YEARS[field]}: {with_error(*ratio_of(logs, error))}",
        )  # fmt: skip
        highest = max(highest, high.max())
    axes[2].axhline(COROLLARY, label=f"corollary 2: {COROLLARY:.2f}", **style.TRUTH)
    axes[2].axhline(1.0, color="black", linewidth=0.6, label="equal variances")
    axes[2].set(ylim=(0.0, 1.6 * highest), ylabel="variance, CSGLD / ICSGLD (± std. error)")
    axes[2].legend(loc="upper left", title="numbers: all bins together", handlelength=1.2, title_fontsize=7)
    for panel, title in zip(
        axes, ("(a) probabilities by θ", "(b) their relative error", "(c) gain of ten chains"), strict=True
    ):
        panel.set_title(title, loc="left")
        panel.set_xlabel("energy $U$, nats")
    return figure


def table(data: Data) -> list[dict[str, Any]]:
    """One row per length, field and bin compared, and one for all of these bins."""
    rows = []
    often = np.flatnonzero(data["truth"] > SMALLEST)
    for which in ("whole theta", "part theta", "part theta_zeta"):
        logs, error = log_ratios(data, which)
        for k, bin_number in enumerate([*often, -1]):
            row: dict[str, Any] = {
                "length": "the paper's" if which.startswith("whole") else "a tenth",
                "field": YEARS[which.split()[1]],
                "energy_from": "all" if bin_number < 0 else f"{PARTITION.edges[bin_number]:g}",
                "truth": float(data["truth"][bin_number]) if bin_number >= 0 else np.nan,
            }
            for name in METHODS:
                values = data[f"{which} {name}"][:, bin_number]
                row[f"mean_{name}"] = float(values.mean()) if bin_number >= 0 else np.nan
                row[f"standard_deviation_{name}"] = float(values.std(ddof=1)) if bin_number >= 0 else np.nan
            ratio = float(np.exp(logs[k]))
            rows.append(row | {"variance_ratio": ratio, "variance_ratio_standard_error": ratio * float(error[k])})
    return rows


def compare(data: Data) -> list[Claim]:
    """The corollary's ratio for both fields; what D.5 says of both variances, and of θ's distance from the truth."""
    claims = []
    for which, length in (
        ("part theta", "a tenth of the length"), ("part theta_zeta", "a tenth of the length"),
        ("whole theta", "the paper's length"),
    ):  # fmt: skip
        value = ratio_of(*log_ratios(data, which))
        year = YEARS[which.split()[1]]
        what = f"variance of θ, CSGLD×T10 over ICSGLD×P10, all bins above 1e-4, field of {year}, {length}"
        why = FINITE if which == "part theta_zeta" else ""
        claims.append(Claim(what, COROLLARY, *value, COROLLARY, source="corollary 2, P^(1−α)", why=why, origin=THEORY))
        claims.append(said_above(what, 1.0, value, "D.5, “significantly smaller variance”"))
    for name in METHODS:
        each = np.abs(data[f"whole theta {name}"] - data["truth"]).sum(axis=1)
        what = f"Σ |probability of a bin by θ − truth|, one repeat, {name}, the paper's length"
        claims.append(said_below(what, NEAR, mean_and_error(each),
                                 f"D.5, “approximates the ground truth”: below {NEAR}, our bound"))  # fmt: skip
    return claims


NEAR = 0.1  # Σ |probability − truth| that we take "approximates" to mean: a twentieth of what it can be
FINITE = "The corollary is for endless runs; at this length P ω_Pk / ω_k is 2.69."


if __name__ == "__main__":
    run_script(__file__)
