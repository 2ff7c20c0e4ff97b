"""r2SGLD (2024), figure 11: how the size of an octagon changes the rate at which r2SGLD converges in it.

(a) KL(truth ‖ draws) of r2SGLD on 25 modes in an octagon of circumradius 1.5 to 3.0, which the paper calls diameter;
step sizes 2e-5 and 2e-4, temperatures 1 and 10, 10,000 draws, each octagon with its own truth. Dotted: as many
independent draws. Our choices: a draw every 10 steps, swaps by u < S, noise 0.05, starts at the origin, 64 chains.
(b) Rates against 1/diameter², relative to that of the smallest octagon, mean ± 2 standard errors, and their power laws.
Triangles: one over the number of draws to 0.5 nats in (a); grey: the same of independent draws, which have no memory
and whose rate falls only because a larger octagon has more cells to fill. Circles: how many independent draws a draw is
worth, which leaves that out; beside them the number of modes inside. Squares: a law of one shape that grows with the
octagon, the flat one, under reflected SGLD of step size 1e-3: the rate at which the position's autocorrelation decays,
that of the Laplacian's first eigenfunction.
"""

from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from figures import Claim, Data, Study, kl_curve, run_script
from figures.arrays import Array, Integers
from figures.plots import style
from figures.scripts.claims import THEORY, said_above
from figures.scripts.flat_target import FLAT
from figures.scripts.statistics import means_and_errors, ratio_of, with_error
from targets import constrained, mixtures, shapes
from toolkit import Problem, samplers
from toolkit.boundaries import reflect
from toolkit.diagnostics import equivalent_draws, expected_kl, kl_path

SEED = 11
DIFFERS = (
    "The paper prints a curve per size and no rate; the fall of KL that it shows is that of independent draws too, so "
    "the law of the diameter is shown on a flat target, where nothing else changes."
)
RADII = (1.5, 1.8, 2.1, 2.4, 2.7, 3.0)
CELL = 0.1
STEP = 1e-3  # of the flat target
LEVEL = 0.5  # nats


def octagon(radius: float) -> shapes.Shape:
    """The octagon of a circumradius."""
    return shapes.polygon(sides=8, radius=radius)


def modes_in(radius: float) -> int:
    """Integer points, near which the modes are, in the octagon; none of those on its very edge."""
    numbers = np.arange(-3.0, 4.0)
    distance = octagon(radius).distance(np.stack(np.meshgrid(numbers, numbers), axis=-1).reshape(-1, 2))
    return int((distance > 1e-9).sum())


def measure(study: Study) -> dict[str, Any]:
    """KL (radius, chain, checkpoint), what draws are worth per draw, and decay rates per unit time (radius, chain)."""
    n_draws, n_chains = study.size((10_000, 64), (5_000, 16))
    checkpoints = np.unique(np.geomspace(n_draws / 100, n_draws, 15).astype(int))
    radii = study.size(RADII, RADII[::2])
    results = [measure_modes(study, radius, checkpoints, n_chains) for radius in radii]
    kl, worth, floor = (np.array(values) for values in zip(*results, strict=True))
    return {
        "radii": radii, "checkpoints": checkpoints, "kl": kl, "worth": worth, "floor": floor,
        "modes": [modes_in(radius) for radius in radii],
        "reach": 1.0 / np.array([draws_to_level(checkpoints, path) for path in kl]),
        "reach_floor": 1.0 / draws_to_level(checkpoints, floor),
        "flat": [measure_flat(study, radius) for radius in radii],
    }  # fmt: skip


def measure_modes(study: Study, radius: float, checkpoints: Any, n_chains: int) -> tuple[Any, Any, Any]:
    """KL (chain, checkpoint), worth per draw (chain,), and the KL of independent draws (checkpoint,)."""
    problem = constrained(mixtures.cosine25(), octagon(radius))
    assert problem.truth is not None
    half = np.ceil(radius / CELL)
    edges = CELL * np.arange(-half, half + 1)
    masses = problem.truth.cell_masses(edges, edges)
    sampler = samplers.r2sgld((2e-5, 2e-4), gradient_noise=0.05, energy_noise=0.05)
    run = study.sample(
        f"r2SGLD, radius {radius:g}", problem, sampler, n_steps=10 * int(checkpoints[-1]), thin=10, n_chains=n_chains,
        init=np.zeros(2),
    )  # fmt: skip
    kl = kl_path(run.draws, masses, edges, edges, checkpoints)
    worth = equivalent_draws(kl[:, -1], masses) / checkpoints[-1]
    return kl, worth, np.array([expected_kl(masses, int(n)) for n in checkpoints])


def draws_to_level(checkpoints: Integers, kl: Array) -> Array:
    """Number of draws at which each path (path, checkpoint) comes to LEVEL."""
    lowest = np.minimum.accumulate(kl, axis=1)
    return np.exp([np.interp(-np.log(LEVEL), -np.log(path), np.log(checkpoints)) for path in lowest])


def measure_flat(study: Study, radius: float) -> Array:
    """Decay rates (group of chains,) of the position's autocorrelation."""
    n_draws, n_chains = study.size((2_000, 64), (300, 64))
    shape = octagon(radius)
    thin = round(40 * radius**2)  # a draw every seventh of a relaxation time, whatever the radius
    run = study.sample(
        f"R-SGLD, flat, radius {radius:g}", Problem(FLAT, shape.domain), samplers.sgld(STEP, boundary=reflect()),
        n_steps=thin * n_draws, thin=thin, n_chains=n_chains, init=shape.uniform_draws(n_chains, seed=study.seed),
    )  # fmt: skip
    return relaxation(run.draws.reshape(8, n_chains // 8, n_draws, 2), thin * STEP)


def relaxation(draws: Array, interval: float) -> Array:
    """Slope (group,) of the logarithm of the autocovariance about 0, the mean by symmetry, between lags 2 and 8."""
    near, far = ((draws[:, :, :-lag] * draws[:, :, lag:]).mean(axis=(1, 2, 3)) for lag in (2, 8))
    return np.asarray(np.log(near / far) / (6.0 * interval))


class PowerLaw(NamedTuple):
    """rate = scale · (1 / diameter²)^exponent, with the exponent's standard error."""

    exponent: float
    error: float
    scale: float


def power_law(data: Data, key: str) -> PowerLaw:
    """Weighted least squares in logarithms of rates (radius, repeat); the error covers a law that does not fit."""
    mean, error = means_and_errors(data[key])
    x, y, weight = -2.0 * np.log(2.0 * data["radii"]), np.log(mean), (mean / error) ** 2
    centre = np.average(x, weights=weight)
    slope = (weight * (x - centre) * y).sum() / (weight * (x - centre) ** 2).sum()
    offset = np.average(y - slope * x, weights=weight)
    misfit = (weight * (y - offset - slope * x) ** 2).sum() / (len(x) - 2)
    error_of_slope = np.sqrt(max(1.0, misfit) / (weight * (x - centre) ** 2).sum())
    return PowerLaw(float(slope), float(error_of_slope), float(np.exp(offset)))


def draw(data: Data) -> Figure:
    """KL by size on the left, rates by size on the right."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(style.WIDTH, 3.7), width_ratios=[1.25, 1.0])
    shades = plt.get_cmap("cividis")(np.linspace(0.0, 0.85, len(data["radii"])))
    for kl, floor, radius, shade in zip(data["kl"], data["floor"], data["radii"], shades, strict=True):
        kl_curve(data["checkpoints"], kl, left, label=f"{radius:g}", color=shade)
        left.plot(data["checkpoints"], floor, color=shade, linestyle=":", linewidth=0.9)
    left.plot([], [], color="0.4", linestyle=":", label="independent draws")
    left.set(xscale="log", yscale="log", xlabel="draws", ylabel="KL(truth ‖ draws), nats")
    left.set_yticks([0.03, 0.1, 0.3, 1.0], ["0.03", "0.1", "0.3", "1"])
    left.yaxis.set_minor_formatter(NullFormatter())
    left.legend(title="circumradius", title_fontsize=7, loc="lower left")
    left.set_title("(a) r2SGLD on 25 modes in an octagon", loc="left")
    places = 1.0 / (2.0 * data["radii"]) ** 2
    series = (("reach", "1 / draws to 0.5 nats", style.MEDIUM, "^", 7.0),
              ("worth", "independent draws that a draw is worth", style.DARK, "o", 4.0),
              ("flat", "decay of correlation, flat target", style.LIGHT, "s", 3.5))  # fmt: skip
    for key, name, colour, marker, size in series:
        (rates, errors), law = means_and_errors(data[key]), power_law(data, key)
        unit = law.scale * places[0] ** law.exponent
        label = f"{name}: {with_error(law.exponent, law.error)}"
        marks: dict[str, Any] = {"color": colour, "marker": marker, "markersize": size}
        marks |= {"markerfacecolor": "white"} if key == "reach" else {}  # seen where the squares cover its middle
        right.errorbar(places, rates / unit, 2.0 * errors / unit, linestyle="none", **marks)
        right.plot(places, (places / places[0]) ** law.exponent, color=colour)
        right.plot([], [], label=label, **marks)
        if key == "worth":
            for x, rate, modes in zip(places, rates / unit, data["modes"], strict=True):
                right.annotate(f"{modes}", (x, rate), xytext=(3, -10), textcoords="offset points", fontsize=6.5)
    floor = data["reach_floor"] / data["reach_floor"][0]
    right.plot(places, floor, **style.TRUTH, label=f"1 / independent draws to 0.5 nats: {floor_power(data):.2f}")
    right.set(xscale="log", yscale="log", xlabel="1 / diameter²", ylabel="rate over the smallest octagon's")
    ticks = [round(float(place), 3) for place in places]
    right.set_xticks(places, [f"{tick:g}" for tick in ticks], fontsize=6)
    right.minorticks_off()
    right.set_yticks([0.2, 0.5, 1.0], ["0.2", "0.5", "1"])
    right.set_ylim(0.15, 1.3)
    handles, labels = right.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, title_fontsize=7,
                  title="(b) rate: its power of 1 / diameter² (bars: ± 2 standard errors)")  # fmt: skip
    right.set_title("(b) rates (numbers: modes inside)", loc="left")
    return figure


def floor_power(data: Data) -> float:
    """Power of 1/diameter² in the rate at which independent draws reach LEVEL."""
    return float(np.polyfit(-2.0 * np.log(data["radii"]), np.log(data["reach_floor"]), 1)[0])


def table(data: Data) -> list[dict[str, Any]]:
    """One row per size: the last KL and its floor, both rates with standard errors, and their power laws."""
    keys = ("reach", "worth", "flat")
    laws = {key: power_law(data, key) for key in keys}
    errors = {key: means_and_errors(data[key])[1] for key in keys}
    kl, kl_error = means_and_errors(data["kl"][:, :, -1])
    return [
        {
            "circumradius": radius, "diameter": 2.0 * radius, "modes": int(data["modes"][i]),
            "draws": int(data["checkpoints"][-1]), "kl_nats": float(kl[i]),
            "standard_error": float(kl_error[i]),
            "kl_of_independent_draws": float(data["floor"][i, -1]),
            "rate_to_level": float(data["reach"][i].mean()), "rate_to_level_error": float(errors["reach"][i]),
            "rate_of_independent_draws": float(data["reach_floor"][i]),
            "worth_per_draw": float(data["worth"][i].mean()), "worth_error": float(errors["worth"][i]),
            "flat_rate_per_unit_time": float(data["flat"][i].mean()), "flat_error": float(errors["flat"][i]),
            **{f"power_of_{key}": laws[key].exponent for key in keys},
            **{f"power_of_{key}_error": laws[key].error for key in keys},
            "power_of_independent_draws": floor_power(data),
        }
        for i, radius in enumerate(data["radii"].tolist())
    ]  # fmt: skip


def compare(data: Data) -> list[Claim]:
    """The power of 1/diameter² beside the theory's."""
    reach, worth, flat = (power_law(data, key) for key in ("reach", "worth", "flat"))
    share = data["worth"][-1].mean() / data["worth"][0].mean()
    law = (1.0, 0.0, "the paper's theory")
    power = "power of 1/diameter² in"
    return [
        Claim(f"{power} the rate of reflected SGLD, flat target", 1.0, flat.exponent, flat.error, *law, origin=THEORY),
        Claim(f"{power} r2SGLD's rate to {LEVEL:g} nats, 25 modes", 1.0, reach.exponent, reach.error, *law,
              origin=THEORY,
              why=f"Independent draws have {floor_power(data):.2f} too, for larger octagons have more cells to fill."),
        Claim(f"{power} what a draw of r2SGLD is worth, 25 modes", 1.0, worth.exponent, worth.error, *law,
              origin=THEORY,
              why=f"With the number of cells left out, a draw in the largest octagon is worth {share:.2f} of one in "
              "the smallest."),
        said_above(f"r2SGLD's rate to {LEVEL:g} nats, the smallest octagon's over the largest's", 1.0,
                   ratio_of(data["reach"][0], data["reach"][-1]), "A.3, “more rapid decline in KL divergence”",
                   "So have independent draws, "
                   f"{data['reach_floor'][0] / data['reach_floor'][-1]:.2f}: more cells take longer to fill."),
    ]  # fmt: skip


if __name__ == "__main__":
    run_script(__file__)
