"""ICSGLD (2022), figure 2, on 8 × 8 digits 0 to 4: energies, and modes, of SGD, SGLD and ICSGLD for three ζ.

Small data in place of MNIST: 632 digits of 8 × 8 pixels, a network 64-50-5 in place of two convolutions, and all rows
at every step in place of batches of 2,500. Everything that the paper sets is kept per datum: with r = 30,596 / 632, the
ratio of the numbers of digits, learning rate 10⁻⁶ r, temperature 0.1 / r, bins of 10 / r nats, weight decay 25 / r;
ω = min(0.01, 1/(k^0.6 + 100)); 6,000 steps are the paper's 500 epochs. 5,000 bins in place of 100,000 hold all
energies here. ζ = 3·10⁴ is the paper's; weights and field as printed. Four chains; of ICSGLD, of two replicas each, the
first.

(a) Energies over steps. SGD and SGLD go down and stay, as printed; the larger ζ, the more ICSGLD fluctuates, above the
energies of SGD, at the paper's ζ one of four chains. Gradients are multiplied by up to some hundreds and θ does not
settle, of which runs warn otherwise: weights would mean nothing here. (b) The paper shows in a plane of two singular
vectors that ICSGLD leaves the region where it was. Here modes are counted: from 12 times in the second half of a chain
L-BFGS goes down to a minimum, and two minima are one mode where straight lines, by way of other minima of the chain,
connect them without climbing more than the barrier of the abscissa above their ends. Grey: the least barrier between
minima of two chains, which start apart. The table counts at 10⁻³ nats per datum, 300 times the temperature.
"""

import warnings
from dataclasses import replace
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from figures import Claim, Data, Study, run_script
from figures.papers.csgmcmc import digits
from figures.papers.icsgld.network_modes import barriers, count_modes, minima
from figures.plots import style
from figures.scripts.claims import said_above, said_below
from figures.scripts.statistics import mean_and_error
from targets import posteriors
from toolkit import ContourWarning, samplers, schedules
from toolkit.samplers import Sampler
from toolkit.tempering import Partition, contour, step_decay

SEED = 31
DIFFERS = (
    "632 digits of 8 × 8 pixels and one hidden layer in place of MNIST and a convolutional network, all rows at a "
    "step, and every setting per datum as printed; modes are counted, where the paper shows a projection."
)
ZETAS = (3e4, 6e4, 3e5)
NAMES = ("SGD", "SGLD", *(f"ICSGLD, ζ = {zeta:.0e}" for zeta in ZETAS))
PRINTED_DATA, RATE, TEMPERATURE, WIDTH, DECAY = 30_596, 1e-6, 0.1, 10.0, 25.0


CHAINS, TIMES = 4, 12  # of each method, and at how many times of a chain its mode is looked for
LEVELS, LEVEL = np.geomspace(1e-5, 0.1, 41), 1e-3  # barriers, nats per datum: of the picture, and of the table


def methods(ratio: float, n_steps: int) -> tuple[Sampler, ...]:
    """One for each of NAMES; ratio: the paper's number of digits over ours."""
    step, temperature = RATE * ratio, TEMPERATURE / ratio
    still = schedules.custom(temperature=np.zeros(n_steps))
    flattened = samplers.icsgld(step, n_replicas=2, temperature=temperature)
    bins, decay = Partition(0.0, WIDTH / ratio, 5_000), step_decay(cap=0.01)
    return (
        samplers.sgld(step, temperature=temperature, schedule=still),
        samplers.sgld(step, temperature=temperature),
        *(replace(flattened, tempering=contour(zeta=z, partition=bins, interpolated=False, decay=decay))
          for z in ZETAS),
    )  # fmt: skip


def measure(study: Study) -> dict[str, Any]:
    """Energies (method, chain, time) over the number of data, and the steps at which they were looked at; the minima.

    minima: their energies (method, chain, time). barriers: between those of a chain, (method, chain, time, time).
    apart: between the last minima of different chains, (method, chain, chain). All over the number of data.
    """
    part = digits.classes(digits.split(*digits.digits()), digits.KNOWN)
    n_data, n_steps = len(part.labels), study.size(6_000, 200)
    times, n_iterations = study.size((TIMES, 300), (2, 10))
    n_chains = study.size(CHAINS, 2)
    ratio = PRINTED_DATA / n_data
    target = posteriors.network(part.features, part.labels, hidden=digits.HIDDEN, prior=(DECAY / ratio) ** -0.5)
    found: dict[str, Any] = {"energies": [], "minima": [], "barriers": [], "apart": []}
    for name, sampler in zip(NAMES, methods(ratio, n_steps), strict=True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ContourWarning)  # of θ that does not settle: see above
            run = study.sample(name, target, sampler, n_steps=n_steps, n_chains=n_chains, burn_in=n_steps // 2,
                               thin=n_steps // 2 // times, trace_every=n_steps // 200)  # fmt: skip
        assert run.trace is not None
        found["energies"].append(run.trace.fields["energy"][:, 0] / n_data)
        first = run.draws[:, :: sampler.n_replicas]
        below = [minima(target, positions, n_iterations) for positions in first]
        found["minima"].append([energies / n_data for _, energies in below])
        found["barriers"].append([barriers(target, points) / n_data for points, _ in below])
        found["apart"].append(barriers(target, np.array([points[-1] for points, _ in below])) / n_data)
        found["steps"] = run.trace.steps
    return found


def draw(data: Data) -> Figure:
    """Energy per datum of all chains, and the number of modes against the barrier that tells two apart."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(style.WIDTH, 2.9), width_ratios=(1.5, 1.0))
    modes = modes_at(data, LEVELS)
    for i, (colour, dash, name) in enumerate(zip(style.COLOURS, style.DASHES, NAMES, strict=True)):
        for chain, values in enumerate(data["energies"][i]):
            left.plot(data["steps"], values, color=colour, linestyle=dash, linewidth=0.7,
                      label=name if chain == 0 else "")  # fmt: skip
        right.plot(LEVELS, modes[i].mean(axis=0), color=colour, linestyle=dash)
    right.axvline(least_apart(data), **style.TRUTH)
    left.set(xlabel="step", ylabel="energy per datum, nats", yscale="log")
    left.set_title(f"(a) {data['energies'].shape[1]} chains of each", loc="left")
    times = data["minima"].shape[2]
    right.set(xlabel="barrier between modes, nats per datum", xscale="log", ylim=(0.0, times + 0.5))
    right.set_ylabel(f"modes among {times} minima")
    right.set_title("(b) mean over chains; grey: other chains", loc="left")
    figure.legend(*left.get_legend_handles_labels(), ncols=3, loc="outside lower center")
    return figure


def modes_at(data: Data, levels: Any) -> Any:
    """Number of modes of each chain that barriers above each of ``levels`` tell apart, (method, chain, level)."""
    return np.array([[count_modes(heights, levels) for heights in of_method] for of_method in data["barriers"]])


def least_apart(data: Data) -> float:
    """The least barrier between minima of two chains of a method, nats per datum."""
    first, second = np.triu_indices(data["apart"].shape[1], 1)
    return float(data["apart"][:, first, second].min())


def late(data: Data) -> Any:
    """Mean and standard deviation over time in the second half, (method, chain)."""
    half = data["energies"][..., data["energies"].shape[-1] // 2 :]
    return half.mean(axis=2), half.std(axis=2)


def table(data: Data) -> list[dict[str, Any]]:
    """One row per method and chain."""
    mean, spread = late(data)
    modes = modes_at(data, [LEVEL])[..., 0]
    return [
        {
            "method": name, "chain": c, "energy_per_datum": float(mean[i, c]),
            "spread_over_time": float(spread[i, c]), "lowest_minimum": float(data["minima"][i, c].min()),
            "highest_minimum": float(data["minima"][i, c].max()),
            "highest_barrier": float(data["barriers"][i, c].max()), "modes": int(modes[i, c]),
            "minima": data["minima"].shape[2], "least_barrier_between_chains": least_apart(data),
        }
        for i, name in enumerate(NAMES)
        for c in range(mean.shape[1])
    ]  # fmt: skip


def compare(data: Data) -> list[Claim]:
    """What the text says of figure 2: who goes down and stays, who fluctuates, and who visits modes."""
    spread, modes = late(data)[1], modes_at(data, [LEVEL])[..., 0].astype(float)
    ours = "Four chains; the settings are the paper's per datum, the data are not."
    fall = data["energies"][:, :, -1] - data["energies"][:, :, 0]
    claims = [
        said_below(f"energy per datum at the end less that at the start, {name}, nats", 0.0, mean_and_error(fall[i]),
                   "figure 2 (a), “fast decreasing losses”", ours)
        for i, name in enumerate(NAMES[:2])
    ]  # fmt: skip
    claims.append(
        said_above(
            "energy per datum, spread over time, SGLD less SGD, nats",
            0.0,
            mean_and_error(spread[1] - spread[0]),
            "figure 2 (c), “exploits a larger region”",
            f"{ours} SGD's spread is a descent that goes on.",
        )
    )
    for i, zeta in enumerate(ZETAS, 2):
        claims.append(
            said_above(
                f"energy per datum, spread over time, ICSGLD, ζ = {zeta:.0e}, less SGLD, nats",
                0.0,
                mean_and_error(spread[i] - spread[1]),
                "figure 2 (a), “fluctuating losses”",
                ours,
            )
        )
        moves = modes[i].mean() > modes[1].mean()
        why = "It goes from mode to mode." if moves else "Its energies fluctuate within one mode of every chain."
        claims.append(said_above(f"modes among {data['minima'].shape[2]} minima, barriers above {LEVEL:g} nats per "
                                 f"datum, ICSGLD, ζ = {zeta:.0e}, less SGLD", 0.0, mean_and_error(modes[i] - modes[1]),
                                 "figure 2 (d), “escapes it once it over-visits this region”", why))  # fmt: skip
    return claims


if __name__ == "__main__":
    run_script(__file__)
