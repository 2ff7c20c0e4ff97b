"""CSGLD (2020), figure 1: a flattened energy, θ for three ζ, and convergence against SGLD.

(a) The energy U of 0.4 N(−6, 1) + 0.6 N(4, 1), and U + ζ log Ψ(U), in which CSGLD moves, at the θ it has learned (mean
of the chains). (b) θ, mean and two standard deviations over the chains, beside the bins' probabilities by quadrature.
(c) Root mean square error of the left mode's weight, truth 0.4, by the draws of all steps but the first tenth, with
bands of one standard error.

The poster prints no settings. Step size 0.1, ω = 1/(k^0.6 + 100), Δu = 1 and the start at 0 are those of ICSGLD (2022),
D.5; gradient noise 0.1 and a partition from 1.42, just under the lowest energy, are our choice. 32 chains of 10⁶ steps
(16 of 10⁵ in the quick version). Two more lines: θ learned in the first tenth and then at rest, and, ours, replica
exchange at temperatures 1 and 12, step sizes 0.1 and 0.5, for the same number of gradient evaluations. The table also
has the rule as printed: θ learns by c = θ(J)^ζ, and draws weigh θ(J)^ζ of their bin.
"""

import warnings
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures import Claim, Data, Study, run_script
from figures.papers.csgld.unequal_modes import (
    BARRIER,
    NOISE,
    PARTITION,
    PROBLEM,
    STEP_SIZE,
    bin_probabilities,
    contour_sampler,
    crossings,
    left_weights,
    log_psi,
    printed_sampler,
)
from figures.plots import style
from figures.scripts.claims import DERIVED, said_above, said_below
from figures.scripts.statistics import mean_and_error, ratio_and_error, root_mean_square
from toolkit import ContourWarning, samplers
from toolkit.diagnostics import theta_error

SEED = 2020
DIFFERS = (
    "Energies outside the partition teach θ nothing, and draws weigh Ψ^ζ, interpolated as the drift is: by the printed "
    "rule θ settles on wrong values (docs/samplers.md). The poster's curves carry no numbers."
)
ZETAS = (0.5, 0.75, 1.0)
LINES = {
    "SGLD": (style.LIGHT, (0, (1, 1.2))),
    "CSGLD": (style.MEDIUM, "-"),
    "CSGLD, θ at rest": (style.FOURTH, (0, (4, 1.5))),
    "reSGLD (ours)": (style.DARK, "-"),
}
SHADES = ((style.LIGHT, (0, (1, 1.2))), (style.MEDIUM, "-"), (style.FOURTH, (0, (4, 1.5))))


def measure(study: Study) -> dict[str, Any]:
    """θ (ζ, chain, bin) and its truth; weights of the left mode (method, chain, checkpoint); crossings in 10⁶ steps."""
    chains, steps = study.size((32, 1_000_000), (16, 100_000))
    checkpoints = np.unique(np.geomspace(steps // 1_000, steps, 25).astype(int))
    hot = samplers.resgld((STEP_SIZE, 0.5), temperatures=(1.0, 12.0), gradient_noise=NOISE)
    methods = {"SGLD": samplers.sgld(STEP_SIZE, gradient_noise=NOISE), "CSGLD": contour_sampler(0.75)}
    methods |= {"CSGLD, θ at rest": contour_sampler(0.75, freezes=True), "reSGLD (ours)": hot}
    methods |= {f"CSGLD, ζ = {zeta}": contour_sampler(zeta) for zeta in (0.5, 1.0)}
    theta, left, crossed = {}, [], []
    for label, sampler in methods.items():
        n = steps // sampler.n_replicas
        burn_in = n // 10 if "rest" in label else 0
        run = study.sample(label, PROBLEM, sampler, n_steps=n, n_chains=chains, burn_in=burn_in, thin=10, init=[0.0])
        if run.theta.size:
            theta[label] = theta_error(run).estimated
        if label in LINES:
            left.append(left_weights(run, checkpoints // sampler.n_replicas))
            crossed.append(crossings(run.draws[..., 0]) * 1e6 / (sampler.n_replicas * run.sampling_steps))
    return {
        "checkpoints": checkpoints,
        "theta": np.stack([theta["CSGLD, ζ = 0.5"], theta["CSGLD"], theta["CSGLD, ζ = 1.0"]]),
        "true_theta": bin_probabilities(),
        "left": np.stack(left),
        "crossings": np.stack(crossed),
        **as_printed(study, chains, steps),
    }


def as_printed(study: Study, chains: int, steps: int) -> dict[str, Any]:
    """θ (ζ, chain, bin) and weights of the left mode (ζ, chain) by the rule as printed, for the last two of ZETAS."""
    theta, left = [], []
    for zeta in ZETAS[1:]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ContourWarning)  # of θ that does not settle: what the table shows
            run = study.sample(f"CSGLD as printed, ζ = {zeta}", PROBLEM, printed_sampler(zeta), n_steps=steps,
                               n_chains=chains, thin=10, init=[0.0])  # fmt: skip
        theta.append(theta_error(run).estimated)
        left.append(left_weights(run, np.array([steps]))[:, 0])
    return {"theta_as_printed": np.stack(theta), "left_as_printed": np.stack(left)}


def draw(data: Data) -> Figure:
    """Three panels: energies, θ, convergence."""
    figure, panels = plt.subplots(1, 3, figsize=(style.WIDTH, 2.7))
    draw_energies(panels[0], data)
    draw_theta(panels[1], data)
    draw_convergence(panels[2], data)
    return figure


def draw_energies(axes: Axes, data: Data) -> None:
    """U, and the flattened energy for every ζ."""
    x = np.linspace(-10.5, 8.5, 600)
    energy = PROBLEM.evaluate(x[:, None])[0]
    axes.plot(x, energy, color=style.DARK, label="$U$")
    for zeta, theta, (colour, dashes) in zip(ZETAS, data["theta"], SHADES, strict=True):
        flat = energy + zeta * log_psi(energy, theta.mean(axis=0))
        axes.plot(x, flat, color=colour, linestyle=dashes, label=rf"$\zeta$ = {zeta}")
    axes.set(xlabel="$x$", ylabel="energy, nats", ylim=(-0.5, 19.0), title="(a) energy, flattened")
    axes.legend(loc="upper center", ncols=2, columnspacing=1.0)


def draw_theta(axes: Axes, data: Data) -> None:
    """θ against the probabilities of its bins."""
    true, shown = data["true_theta"], 13
    middles = PARTITION.edges[:shown] + 0.5
    axes.stairs(
        true[:shown], PARTITION.edges[: shown + 1], color="0.6", linewidth=2.0, label="quadrature", baseline=None
    )
    for i, (zeta, theta) in enumerate(zip(ZETAS, data["theta"], strict=True)):
        mean, spread = theta.mean(axis=0)[:shown], 2.0 * theta.std(axis=0, ddof=1)[:shown]
        lower = np.minimum(spread, 0.9 * mean)
        axes.errorbar(middles + 0.25 * (i - 1), mean, (lower, spread), fmt="ov^"[i], color=SHADES[i][0], markersize=2.5,
                      elinewidth=0.8, linewidth=0, label=rf"$\zeta$ = {zeta}")  # fmt: skip
    axes.set(
        yscale="log", ylim=(1e-6, 2.0), xlabel="energy, nats", ylabel=r"$\theta$", title=r"(b) $\theta$ and its truth"
    )
    axes.legend(loc="lower left")


def draw_convergence(axes: Axes, data: Data) -> None:
    """Error of the left mode's weight against gradient evaluations."""
    for (label, (colour, dashes)), left in zip(LINES.items(), data["left"], strict=True):
        root, error = root_mean_square(left - 0.4)
        axes.plot(data["checkpoints"], root, color=colour, linestyle=dashes, label=label)
        axes.fill_between(data["checkpoints"], root - error, root + error, color=colour, alpha=0.2, linewidth=0)
    axes.plot(data["checkpoints"], np.sqrt(0.24 / data["checkpoints"]), color="0.6", linewidth=2.0, zorder=0,
              label="independent draws")  # fmt: skip
    axes.set(xscale="log", yscale="log", ylim=(1e-5, 1.3), xlabel="gradient evaluations per chain",
             ylabel="RMS error of the left weight", title="(c) convergence")  # fmt: skip
    axes.legend(loc="lower left", handlelength=2.4)


def l1_errors(data: Data, key: str = "theta") -> Any:
    """Σ |θ − truth| of every ζ and chain, (ζ, chain)."""
    return np.abs(data[key] - data["true_theta"]).sum(axis=2)


def table(data: Data) -> list[dict[str, Any]]:
    """Numbers at the end: the left mode's weight, its error and crossings by method, θ's error by ζ."""
    rows = []
    for label, left, crossed in zip(LINES, data["left"], data["crossings"], strict=True):
        root, error = root_mean_square(left[:, -1] - 0.4)
        rows += [
            ("left mode's weight", label, 0.4, *mean_and_error(left[:, -1])),
            ("RMS error of the left mode's weight", label, 0.0, float(root), float(error)),
            ("crossings per 10^6 gradients", label, np.nan, *mean_and_error(crossed)),
        ]
    rows += [
        ("L1 error of theta", f"CSGLD, zeta = {zeta}", 0.0, *mean_and_error(errors))
        for zeta, errors in zip(ZETAS, l1_errors(data), strict=True)
    ]
    rows += [
        (number, f"CSGLD as printed, zeta = {zeta}", truth, *mean_and_error(values))
        for number, truth, per_zeta in (
            ("L1 error of theta", 0.0, l1_errors(data, "theta_as_printed")),
            ("left mode's weight", 0.4, data["left_as_printed"]),
        )
        for zeta, values in zip(ZETAS[1:], per_zeta, strict=True)
    ]
    names = ("number", "method", "truth", "value", "standard_error")
    return [dict(zip(names, row, strict=True)) for row in rows]


def barriers(data: Data) -> Any:
    """Height of the barrier over the left mode at ζ = 0.75 and each chain's θ, in nats, (chain,)."""
    energy = PROBLEM.evaluate(np.array([[-6.0], [BARRIER]]))[0]
    path = np.linspace(energy[0], energy[1], 200)
    flat = np.array([path + 0.75 * log_psi(path, theta) for theta in data["theta"][1]])
    return flat[:, -1] - flat.min(axis=1)


def compare(data: Data) -> list[Claim]:
    """The poster's three sentences; θ and weights beside those that our run of the rule as printed gives."""
    left = dict(zip(LINES, data["left"][:, :, -1], strict=True))
    crossed = dict(zip(LINES, map(mean_and_error, data["crossings"]), strict=True))
    l1 = [mean_and_error(errors) for errors in l1_errors(data)]
    roots = {label: root_mean_square(weights - 0.4) for label, weights in left.items()}
    return [
        said_below("barrier over the left mode at ζ = 0.75, nats", HEIGHT, mean_and_error(barriers(data)),
                   "figure 1 (a), “reduced energy barrier”: below U's"),
        *(said_below(f"θ at ζ = {zeta:g}, L1 against quadrature", WELL, found,
                     f"figure 1 (b), “well estimated”: L1 below {WELL}, our bound")
          for zeta, found in zip(ZETAS, l1, strict=True)),
        *beside_print(data, l1, left["CSGLD"]),
        Claim("left mode's weight, θ at rest", 0.4, *mean_and_error(left["CSGLD, θ at rest"]), 0.4,
              source="the target's", origin=DERIVED),
        Claim("crossings in 10⁶ steps, CSGLD, ζ = 0.75", np.nan, *crossed["CSGLD"], "higher"),
        Claim("crossings in 10⁶ steps, SGLD", np.nan, *crossed["SGLD"], "higher"),
        said_above("RMS error of the left weight, SGLD's over CSGLD's", 1.0,
                   ratio_and_error(roots["SGLD"], roots["CSGLD"]), "figure 1 (c), “converges much faster”"),
        Claim("RMS error of the left weight, CSGLD's over that of reSGLD (ours)", np.nan,
              *ratio_and_error(roots["CSGLD"], roots["reSGLD (ours)"]), "higher"),
    ]  # fmt: skip


def beside_print(data: Data, l1: list[tuple[float, float]], left: Any) -> list[Claim]:
    """θ and the left mode's weight by the default rule, beside this script's run of the rule as printed."""
    source = "our run of the rule as printed"
    claims = []
    for i, errors in enumerate(l1_errors(data, "theta_as_printed"), 1):
        printed, error = mean_and_error(errors)
        claims.append(Claim(f"θ at ζ = {ZETAS[i]:g}, L1 against quadrature", printed, *l1[i], "lower", error, source,
                            origin=DERIVED))  # fmt: skip
    printed, error = mean_and_error(data["left_as_printed"][0])
    learns = "θ that goes on learning runs away from where the chain is (tempering.contour); at rest it does not"
    return [*claims, Claim("left mode's weight, CSGLD, ζ = 0.75, truth 0.4", printed, *mean_and_error(left), 0.4, error,
                           source, learns, origin=DERIVED)]  # fmt: skip


HEIGHT = 11.6  # nats: U at the top of the barrier over U at −6
WELL = 0.1  # Σ |θ − truth| that we take "well estimated" to mean: a twentieth of what it can be

if __name__ == "__main__":
    run_script(__file__)
