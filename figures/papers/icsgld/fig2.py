"""ICSGLD (2022), figure 2 (a), on 8 × 8 digits 0 to 4: energies of SGD, SGLD and ICSGLD for three ζ.

Small data in place of MNIST: 632 digits of 8 × 8 pixels, a network 64-50-5 in place of two convolutions, and all rows
at every step in place of batches of 2,500. Everything that the paper sets is kept per datum: with r = 30,596 / 632, the
ratio of the numbers of digits, learning rate 10⁻⁶ r, temperature 0.1 / r, bins of 10 / r nats, weight decay 25 / r;
ω = min(0.01, 1/(k^0.6 + 100)); 6,000 steps are the paper's 500 epochs. 5,000 bins in place of 100,000 hold all
energies here. ζ = 3·10⁴ is the paper's; weights and field as printed. Two replicas of each of two chains.

SGD and SGLD go down and stay, as printed. At the paper's ζ one of two chains fluctuates from step 2,900 on, the other
goes down, slower than SGLD; at ζ twice and ten times as large both fluctuate. All stay above the energies of SGD once
they fluctuate. The run warns that gradients are multiplied by up to 590 and θ settles on a wrong value, so that weights
would mean nothing here. How many modes are visited, figure 2 (b) to (d), was not measured. Shown: the first replica.
"""

from dataclasses import replace
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from figures import Claim, Data, Study, run_script
from figures.papers.csgmcmc import digits
from figures.plots import style
from targets import posteriors
from toolkit import samplers, schedules
from toolkit.samplers import Sampler
from toolkit.tempering import Partition, contour, step_decay

SEED = 31
DIFFERS = (
    "632 digits of 8 × 8 pixels and one hidden layer in place of MNIST and a convolutional network, all rows at a "
    "step, and every setting per datum as printed; modes were not counted."
)
ZETAS = (3e4, 6e4, 3e5)
NAMES = ("SGD", "SGLD", *(f"ICSGLD, ζ = {zeta:.0e}" for zeta in ZETAS))
PRINTED_DATA, RATE, TEMPERATURE, WIDTH, DECAY = 30_596, 1e-6, 0.1, 10.0, 25.0


def methods(ratio: float, n_steps: int) -> tuple[Sampler, ...]:
    """One for each of NAMES; ratio: the paper's number of digits over ours."""
    step, temperature = RATE * ratio, TEMPERATURE / ratio
    still = schedules.custom(temperature=np.zeros(n_steps))
    flattened = samplers.icsgld(step, n_replicas=2, temperature=temperature)
    bins, decay = Partition(0.0, WIDTH / ratio, 5_000), step_decay(cap=0.01)
    return (
        samplers.sgld(step, temperature=temperature, schedule=still),
        samplers.sgld(step, temperature=temperature),
        *(replace(flattened, tempering=contour(zeta=z, partition=bins, interpolated=False, decay=decay,
                                               freezes=True)) for z in ZETAS),
    )  # fmt: skip


def measure(study: Study) -> dict[str, Any]:
    """Energies (method, 2 chains, time) over the number of data, and the steps at which they were looked at."""
    part = digits.classes(digits.split(*digits.digits()), digits.KNOWN)
    n_data, n_steps = len(part.labels), study.size(6_000, 200)
    ratio = PRINTED_DATA / n_data
    target = posteriors.network(part.features, part.labels, hidden=digits.HIDDEN, prior=(DECAY / ratio) ** -0.5)
    found: dict[str, Any] = {"energies": []}
    for name, sampler in zip(NAMES, methods(ratio, n_steps), strict=True):
        # θ learns all along: it rests only after the burn-in, which is all but the last step.
        run = study.sample(name, target, sampler, n_steps=n_steps, n_chains=2, burn_in=n_steps - 1,
                           trace_every=n_steps // 200)  # fmt: skip
        assert run.trace is not None
        found["energies"].append(run.trace.fields["energy"][:, 0] / n_data)
        found["steps"] = run.trace.steps
    return found


def draw(data: Data) -> Figure:
    """Energy per datum of both chains."""
    figure, panel = plt.subplots(figsize=(style.WIDTH, 3.2))
    lines = zip(style.COLOURS, style.DASHES, NAMES, data["energies"], strict=True)
    for colour, dash, name, energies in lines:
        for chain, values in enumerate(energies):
            panel.plot(data["steps"], values, color=colour, linestyle=dash, linewidth=0.9,
                       label=name if chain == 0 else "")  # fmt: skip
    panel.set(xlabel="step", ylabel="energy per datum, nats", yscale="log")
    panel.legend(ncols=3, loc="upper right")
    return figure


def late(data: Data) -> Any:
    """Mean and standard deviation over time in the second half, (method, chain)."""
    half = data["energies"][..., data["energies"].shape[-1] // 2 :]
    return half.mean(axis=2), half.std(axis=2)


def table(data: Data) -> list[dict[str, Any]]:
    """One row per method and chain."""
    mean, spread = late(data)
    return [
        {"method": name, "chain": c, "energy_per_datum": float(mean[i, c]), "spread_over_time": float(spread[i, c])}
        for i, name in enumerate(NAMES)
        for c in range(mean.shape[1])
    ]


def compare(data: Data) -> list[Claim]:
    """Spread over time in the second half, ICSGLD less SGLD: the paper's losses of ICSGLD alone fluctuate."""
    spread = late(data)[1]
    claims = []
    for i, zeta in enumerate(ZETAS, 2):
        gap = spread[i] - spread[1]
        claims.append(Claim(f"energy per datum, spread over time, ICSGLD, ζ = {zeta:.0e}, less SGLD, nats", 0.0,
                            float(gap.mean()), float(gap.std(ddof=1) / np.sqrt(gap.size)), "higher",
                            source="figure 2 (a), in words", in_words=True,
                            why="Two chains; the settings are the paper's per datum, the data are not."))  # fmt: skip
    return claims


if __name__ == "__main__":
    run_script(__file__)
